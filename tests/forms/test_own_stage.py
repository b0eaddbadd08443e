import pickle
from dataclasses import replace

import numpy as np
import pytest
from one_variable import USUAL, evidence_of, make_table, make_trials

from deap_vsr import MaskedTree, VsrError
from deap_vsr.forms.regressor import STEPS_IN_NOISE, FormsRegressor
from deap_vsr.forms.stage import EFFORTS, STAGES, Stage
from deap_vsr.forms.table import Form, Target
from deap_vsr.forms.targets import behind_factors, factors, few_factors, once, plain, twice
from deap_vsr.lab.budget import Budget
from deap_vsr.search.contract import Task

ROWS = [(1.0, 2.0, 0.7), (0.4, 3.0, 1.2), (2.0, 1.5, 0.5)]
DECAY = "C + C*exp(C*x1)"


def decay(x, a, b, c):
    return a + b * np.exp(-c * x)


class Propose:
    """Finds always the same form, and remembers for which targets it was asked."""

    def __init__(self, text, start, n_steps=1, tried=0):
        self.tree, self.start, self.n_steps, self.tried = MaskedTree.from_infix(text), start, n_steps, tried
        self.asked = []
        self.steps = 0

    def __call__(self, target):
        self.asked.append(target)
        for _ in range(self.n_steps):
            self.steps += 1
            yield [Form(target.wrap(self.tree), np.array([self.start]), len(self.tree))], self.tried


def propose_decay(**options):
    return Propose(DECAY, (1.0, 1.0, -1.0), **options)


def propose_nonsense(**options):
    return Propose("C*log(x1)", (1.0,), **options)


def solve(stages, law=decay, rows=ROWS, effort="cheap", noise=0.0, budget=None):
    trials = make_trials(law, rows, noise=noise)
    rng = np.random.default_rng(0)
    task = Task(
        [], lambda rng: trials, USUAL, (0,), 1, budget or Budget(), 1e-12, rng, effort, evidence_of(noise)
    )  # fmt: skip
    return FormsRegressor(stages=stages).regress(task)


def skeletons(found):
    return [candidate.tree.to_infix(skeleton=True) for candidate in found]


# --- used -----------------------------------------------------------------------------------


def test_a_stage_of_ones_own_finds_what_the_others_do_not():
    assert solve(STAGES) == []
    (found,) = solve((*STAGES, Stage("decay", propose_decay())))
    assert skeletons([found]) == [DECAY]
    np.testing.assert_allclose(found.constants, [(a, b, -c) for a, b, c in ROWS], rtol=1e-9)


@pytest.mark.parametrize(
    ("law", "form"),
    [
        (lambda x, a, b, c: a / (1.0 + 8.0 * np.exp(-2.0 * c * x)), "1/(C/exp(C*x1) + C)"),
        (lambda x, a, b, c: a * np.sqrt(0.3 + np.exp(-2.0 * c * x)), "sqrt(C/exp(C*x1) + C)"),
    ],
)
def test_behind_a_function_a_number_within_another_is_found_in_noise(law, form):
    assert skeletons(solve(STAGES, law, effort="most", noise=0.002))[0] == form


def test_in_noise_as_well_if_it_has_few_constants():
    noise = 0.002
    assert DECAY not in skeletons(solve(STAGES, noise=noise))
    assert DECAY in skeletons(solve((*STAGES, Stage("decay", propose_decay(), few_constants=True)), noise=noise))
    many = propose_decay()
    assert DECAY not in skeletons(solve((*STAGES, Stage("decay", many)), noise=noise))
    assert many.asked == []


def test_a_form_that_does_not_hold_is_not_taken():
    nonsense = propose_nonsense()
    assert solve((Stage("nonsense", nonsense),)) == []
    assert len(nonsense.asked) == 1


def test_it_is_asked_for_each_of_its_targets():
    line = Propose("C + C*x1", (1.0, 1.0))
    found = solve((Stage("line", line, once),), lambda x, a, b: 1.0 / (a + b * x), [(1.0, 2.0), (0.4, 3.0)])
    assert skeletons(found) == ["1/(C + C*x1)"]
    np.testing.assert_allclose(found[0].constants, [(1.0, 2.0), (0.4, 3.0)])
    line.asked.clear()
    assert solve((Stage("line", line, once),)) == []
    table = line.asked[0].table
    assert len(line.asked) == len(once(table)) > 3


# --- order, effort, counting ------------------------------------------------------------------


def test_stages_are_tried_in_their_order_until_one_finds_something():
    short, long = propose_decay(), Propose("C - C*exp(C*x1)", (1.0, -1.0, -1.0))
    stages = Stage("nonsense", propose_nonsense()), Stage("short", short), Stage("long", long)
    assert skeletons(solve(stages)) == [DECAY]
    assert (len(short.asked), len(long.asked)) == (1, 0)
    assert skeletons(solve(stages[::-1])) == ["C - C*exp(C*x1)"]
    assert (len(short.asked), len(long.asked)) == (1, 1)


@pytest.mark.parametrize("noise", [0.0, 0.002])
@pytest.mark.parametrize("asked", EFFORTS)
def test_a_task_asks_for_stages_of_its_effort_and_of_less(asked, noise):
    finds = {effort: propose_nonsense() for effort in EFFORTS}
    solve(tuple(Stage(effort, finds[effort], plain, effort, True) for effort in EFFORTS), effort=asked, noise=noise)
    tried = [effort for effort in EFFORTS if finds[effort].asked]
    assert tried == list(EFFORTS[: EFFORTS.index(asked) + 1])


def test_an_effort_that_no_task_can_ask_for_is_an_error():
    with pytest.raises(VsrError, match=r"stage mine: effort: found huge, expected one of cheap, quick, most, all"):
        Stage("mine", propose_decay(), effort="huge")


def test_in_noise_a_stage_of_more_constants_is_not_tried_where_fewer_do():
    short, long = propose_decay(), propose_nonsense()
    behind = Stage("long", long, effort="most", few_constants=True, n_constants=4)
    solve((Stage("short", short, few_constants=True), behind), effort="most", noise=0.002)
    assert (len(short.asked), len(long.asked)) == (1, 0)
    solve((Stage("short", short, few_constants=True), replace(behind, n_constants=3)), effort="most", noise=0.002)
    assert len(long.asked) == 1


@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_what_a_step_has_tried_is_counted_and_so_is_the_fit(noise):
    spent = []
    for tried in (0, 1000):
        budget = Budget()
        solve((Stage("decay", propose_decay(tried=tried), few_constants=True),), noise=noise, budget=budget)
        spent.append(budget.evaluations)
    assert 0 < spent[0] == spent[1] - 1000


@pytest.mark.parametrize("effort", EFFORTS)
def test_behind_the_stages_of_the_package_it_has_its_turn_in_noise_although_much_fits_before(effort):
    mine = propose_nonsense()
    stages = (*STAGES, Stage("mine", mine, plain, effort, few_constants=True))
    assert solve(stages, lambda x, a: a * np.sin(x), [(1.0,), (2.0,)], effort, noise=0.05) != []
    assert mine.steps == 1


def test_in_noise_stages_of_one_effort_in_a_row_share_their_steps_once_something_fits():
    finds = [propose_decay(n_steps=40), propose_nonsense(n_steps=40), propose_nonsense(n_steps=40)]
    stages = tuple(Stage(str(i), find, few_constants=True) for i, find in enumerate(finds))
    assert solve(stages, noise=0.01) != []
    assert [find.steps for find in finds] == [40, STEPS_IN_NOISE + 1 - 40, 0]
    finds = [propose_nonsense(n_steps=80), propose_nonsense(n_steps=80)]
    assert solve(tuple(Stage(str(i), find, few_constants=True) for i, find in enumerate(finds)), noise=0.01) == []
    assert [find.steps for find in finds] == [80, 80]


# --- the stages of the package ----------------------------------------------------------------


def test_stages_have_names_of_their_own_and_come_with_growing_effort():
    assert len({stage.name for stage in STAGES}) == len(STAGES)
    efforts = [EFFORTS.index(stage.effort) for stage in STAGES]
    assert efforts == sorted(efforts)


@pytest.mark.parametrize("targets", [once, twice, factors, behind_factors, few_factors])
def test_targets_that_stages_share_are_made_once_for_a_table(targets):
    tables = [make_table(decay, rows) for rows in (ROWS, ROWS[::-1])]
    first = targets(tables[0])
    assert targets(tables[0]) is first
    assert all(isinstance(target, Target) and target.table is tables[0] for target in first)
    assert all(target.table is tables[1] for target in targets(tables[1]))


def test_a_regressor_with_its_stages_can_be_pickled():
    regressor = pickle.loads(pickle.dumps(FormsRegressor(keep_in_noise=4)))
    assert regressor.keep_in_noise == 4
    assert [stage.name for stage in regressor.stages] == [stage.name for stage in STAGES]
