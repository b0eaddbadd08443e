import numpy as np
import pytest
from one_variable import ALGEBRA, USUAL, fit_error, make_table, make_trials, operators_of

from deap_vsr import CallableOracle, MaskedTree, register_operator
from deap_vsr.forms.inner import inner_constants
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.skeletons import FEWEST, MOST, skeletons_of, small_skeletons
from deap_vsr.forms.stage import STAGES, Stage
from deap_vsr.forms.table import Target
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.contract import Task
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import PASSES, Slotwise
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import operators
from deap_vsr.tree.simplify import structural_hash

EXACT = 1e-20
SMALL = ("add", "sub", "mul", "exp", "sin", "const")
POWERS = ("add", "mul", "exp", "pow", "const")


def written(terms):
    return [MaskedTree(term.nodes).to_infix(skeleton=True) for term in terms]


def first_fit(law, rows, function_set, n_points=28, **options):
    """The first form that fits everywhere, its table, and how many skeletons were tried."""
    table = make_table(law, rows, function_set, n_points=n_points, **options)
    for count, (forms, spent) in enumerate(small_skeletons(Target.plain(table)), start=1):
        assert spent > 0
        for form in forms:
            if fit_error(form, table) < EXACT:
                return form, table, count
    return None, table, count


# --- enumeration ----------------------------------------------------------------------------


@pytest.mark.parametrize("function_set", [SMALL, USUAL, POWERS, ("add", "mul", "sin", "const")])
def test_skeletons_have_two_or_three_inner_constants_and_come_cheapest_first(function_set):
    found = skeletons_of(function_set, limit=500)
    costs = [sum(term.cost for term in terms) + len(terms) - 1 for terms in found]
    assert costs == sorted(costs)
    for terms in found:
        assert sum(term.n_inner for term in terms) in range(FEWEST, MOST + 1)
        for term in terms:
            tree = MaskedTree(term.nodes).checked()
            assert tree.n_constants == term.n_inner
            assert {node.name for node in tree if node.arity} <= set(function_set)


@pytest.mark.parametrize("function_set", [SMALL, USUAL, POWERS])
def test_no_two_skeletons_have_the_same_structure(function_set):
    found = skeletons_of(function_set, limit=1500)
    keys = [tuple(sorted(structural_hash(MaskedTree(term.nodes)) for term in terms)) for terms in found]
    assert len(set(keys)) == len(keys)


def test_what_there_is_to_begin_with():
    found = [written(terms) for terms in skeletons_of(("add", "mul", "sin", "const"), limit=6)]
    assert found == [
        ["sin(C + C*x1)"],
        ["sin(C*sin(C*x1))"],
        ["sin(C + sin(C*x1))"],
        ["sin(C*sin(C + x1))"],
        ["sin(C + sin(C + x1))"],
        ["sin(C + C*sin(x1))"],
    ]


@pytest.mark.parametrize("text", ["sqrt(C*", "log(C*", "exp(C + ", "1/(C*", "1/(C - ", "log(exp"])
def test_constants_that_come_out_of_a_function_are_not_put_into_it(text):
    found = [part for terms in skeletons_of(USUAL, limit=2000) for part in written(terms)]
    assert found
    alone = [part for part in found if part.startswith(text) and " + " not in part]
    assert alone == []


def test_a_set_without_functions_has_quotients_or_nothing():
    found = [part for terms in skeletons_of(ALGEBRA, limit=200) for part in written(terms)]
    assert "1/(C + 1/(C + x1))" in found
    assert skeletons_of(("add", "mul", "const")) == ()


def test_operators_of_ones_own_take_part(monkeypatch):
    monkeypatch.setattr(operators, "_ALIASES", dict(operators._ALIASES))
    register_operator("ramp_skeletons", lambda x: float(np.logaddexp(0.0, x)), 1)
    register_operator("mix_skeletons", lambda a, b: float(np.hypot(a, b)), 2)
    found = [
        part
        for terms in skeletons_of(("add", "mul", "ramp_skeletons", "mix_skeletons"), limit=200)
        for part in written(terms)
    ]
    assert "ramp_skeletons(C + C*x1)" in found
    assert "mix_skeletons(C, C*x1)" in found


# --- fitting --------------------------------------------------------------------------------

#: A law, its constants at the settings, a function set.
LAWS = {
    "an exponential of a wave": (
        lambda x, a, b: np.exp(a * np.sin(b * x)),
        [(1.3, 1.7), (0.8, 2.1), (0.5, 1.2)],
        SMALL,
    ),
    "a wave with a decay of its own": (
        lambda x, a, b: np.sin(a * x) * np.exp(b * x),
        [(3.3, -0.7), (2.8, -1.1), (2.5, 0.4)],
        SMALL,
    ),
    "two decays": (
        lambda x, a, b, c, d: a * np.exp(-b * x) + c * np.exp(-d * x),
        [(1.3, 0.7, 2.0, 2.5), (0.8, 1.1, 1.0, 3.0), (2.5, 0.4, 1.5, 1.9)],
        SMALL,
    ),
    "a soft step": (
        lambda x, a, b, c: a * np.log(b + np.exp(c * x)),
        [(1.3, 0.7, 2.0), (0.8, 1.1, 1.0), (2.5, 0.4, 1.5)],
        USUAL,
    ),
    "Gompertz": (
        lambda x, a, b, c: a * np.exp(-b * np.exp(-c * x)),
        [(1.3, 2.7, 2.0), (0.8, 1.1, 1.0), (2.5, 3.4, 1.5)],
        SMALL,
    ),
    "Weibull": (
        lambda x, a, b, c: a * np.exp(-b * x**c),
        [(1.3, 0.7, 1.6), (0.8, 1.1, 2.3), (2.5, 0.4, 0.7)],
        POWERS,
    ),
    "a gamma density": (
        lambda x, a, b, c: a * x**b * np.exp(-c * x),
        [(1.3, 0.7, 1.6), (0.8, 1.1, 2.3), (2.5, 0.4, 0.7)],
        POWERS,
    ),
    "a wave of a shifted root": (
        lambda x, a, b, c: a * np.cos(b * np.sqrt(c + x)),
        [(1.3, 2.7, 0.6), (0.8, 3.1, 1.3), (2.5, 1.4, 0.7)],
        USUAL,
    ),
    "an offset and a hyperbolic step": (
        lambda x, a, b, c, d: a + b * np.tanh(c * x + d),
        [(1.3, 2.7, 2.0, -2.0), (0.8, 1.1, 1.0, -1.4), (2.5, 3.4, 1.5, -3.0)],
        ("add", "mul", "tanh", "const"),
    ),
    "a wave whose frequency grows": (
        lambda x, a, b, c: a * np.sin(b * x + c * x * x),
        [(1.3, 0.7, 1.6), (0.8, 1.1, 1.3), (2.5, 0.4, 0.7)],
        SMALL,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_with_more_inner_constants_is_found(name):
    law, rows, function_set = LAWS[name]
    form, table, _ = first_fit(law, rows, function_set)
    assert form is not None
    assert operators_of(form) <= set(function_set)
    assert form.starts.shape == (3, MaskedTree(form.nodes).n_constants)
    assert fit_error(form, table) < EXACT


def test_a_stage_with_one_inner_constant_does_not_find_it():
    law, rows, function_set = LAWS["an exponential of a wave"]
    table = make_table(law, rows, function_set)
    forms = [form for forms, _ in inner_constants(Target.plain(table), 2) for form in forms]
    first = make_table(law, rows[:1], function_set)
    assert not any(fit_error(form, first) < EXACT for form in forms)


def test_a_law_that_differs_at_one_setting_is_not_found():
    law, rows, _ = LAWS["Gompertz"]
    rows = [(*row, kink) for row, kink in zip(rows, (0.0, 0.0, 1.0), strict=True)]
    small = ("mul", "exp", "const")
    form, _, count = first_fit(lambda x, a, b, c, d: law(x, a, b, c) + d * np.floor(3.0 * x), rows, small)
    assert form is None
    assert count > 1


def test_more_constants_than_half_the_points_are_not_fitted():
    law, rows, function_set = LAWS["Gompertz"]
    table = make_table(law, rows, function_set, n_points=6)
    assert list(small_skeletons(Target.plain(table))) == []


def test_a_second_pass_goes_on_from_more_starts():
    table = make_table(lambda x, a: np.floor(a * x), [(3.0,), (2.0,)], ("add", "mul", "sin", "const"), n_points=20)
    spent = [spent for _, spent in small_skeletons(Target.plain(table), ((0, 3, 2), (0, 2, 10)))]
    assert len(spent) == 5
    assert min(spent[3:]) > max(spent[:3])


# --- in the regressor -----------------------------------------------------------------------


def task_of(law, rows, function_set, effort="all", evaluations=None):
    trials = make_trials(law, rows, n_points=28)
    budget = Budget(evaluations=evaluations)
    rng = np.random.default_rng(0)
    return Task([], lambda rng: trials, function_set, (0,), 1, budget, 1e-18, rng, effort)


def test_skeletons_are_the_last_stage():
    law, rows, function_set = LAWS["a wave whose frequency grows"]
    found = FormsRegressor().regress(task_of(law, rows, function_set))
    assert found[0].tree.to_infix(skeleton=True) == "C*sin(C*(x1*x1) + C*x1)"
    np.testing.assert_allclose(np.abs(found[0].constants), [(a, c, b) for a, b, c in rows], rtol=1e-6)
    assert FormsRegressor().regress(task_of(law, rows, function_set, "cheap")) == []


SKELETONS = tuple(stage for stage in STAGES if stage.name.endswith("skeletons"))
BEFORE = tuple(stage for stage in STAGES if stage not in SKELETONS)


def test_skeletons_are_not_tried_where_a_stage_before_finds_something():
    never = Stage("never", lambda target: pytest.fail("skeletons were tried"))
    regressor = FormsRegressor(stages=(*BEFORE, never))
    assert regressor.regress(task_of(lambda x, a, b: a + np.exp(-b * x), [(1.0, 2.0), (0.4, 1.2)], USUAL))


@pytest.mark.parametrize(("effort", "n_skeletons"), [("cheap", 0), ("most", 150), ("all", 2900)])
def test_the_less_effort_the_fewer_skeletons_and_none_is_fitted_twice_from_the_same_starts(effort, n_skeletons):
    passes = [part for stage in SKELETONS if stage.is_wanted(effort) for part in stage.find.keywords["passes"]]
    fitted = [(number, n_starts) for begin, end, n_starts in passes for number in range(begin, end)]
    assert len(fitted) == len(set(fitted)) == n_skeletons


def test_no_further_skeleton_is_fitted_when_the_budget_is_used_up():
    task = task_of(lambda x, a: np.floor(a * x), [(3.0,), (2.0,)], USUAL, evaluations=2_000)
    assert FormsRegressor(stages=SKELETONS).regress(task) == []
    assert 500 <= task.budget.evaluations <= 2_100  # a step that may try 1,500 is not begun with less left


class Nothing:
    """A regressor that finds nothing, and remembers what it could have spent at each effort."""

    def __init__(self):
        self.shares = {}

    def regress(self, task):
        self.shares.setdefault(task.effort, task.budget.limits["evaluations"])
        task.budget.count(10)
        return []


def search(regressor):
    """Search for a law that no form is, within 10 000 evaluations."""
    oracle = CallableOracle(lambda X: np.floor(9.0 * X[:, 0]), [(0.4, 2.6)], USUAL)
    lab = Lab(oracle, Budget(evaluations=10_000), np.random.default_rng(0))
    return vertical(lab, Slotwise(regressor, SlotOptions()), None), lab.budget


def test_the_last_pass_of_a_search_leaves_something_to_others():
    regressor = Nothing()
    found, _ = search(regressor)
    assert [effort for effort, _ in PASSES] == list(regressor.shares) == ["cheap", "most", "all"]
    assert regressor.shares["all"] < regressor.shares["most"] < regressor.shares["cheap"]
    assert regressor.shares["all"] < 0.25 * 10_000  # half of the pass's share for one table
    assert found.stopped_by == "exhausted"


def test_a_search_that_spends_the_share_of_its_last_pass_is_exhausted_and_not_at_its_limit():
    class Spender(Nothing):
        def regress(self, task):
            task.budget.count(10 if task.effort != "all" else 4_000)
            return []

    found, budget = search(Spender())
    assert found.stopped_by == "exhausted"
    assert budget.used_up() is None
