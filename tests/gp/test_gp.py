import builtins
import copy
import dataclasses
import gc
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from deap import base, gp, tools
from strategies import keys

from deap_vsr import MaskedTree, Trial, primitive_set
from deap_vsr.engine import fit
from deap_vsr.engine.fitting import Fit
from deap_vsr.gp.algorithms import Individual, assignFit, eaMasked, evaluateFit, selBestDistinct
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.gp.toolbox import restricted
from deap_vsr.lab.budget import Budget
from deap_vsr.search.contract import Task
from deap_vsr.tree import Constant
from deap_vsr.tree.simplify import skeleton_key

OPERATORS = ("add", "sub", "mul", "sin", "const")
X = np.random.default_rng(0).uniform(0.5, 3, (40, 2))


def task(function, candidates=(), columns=(0, 1), seed=0, **limits):
    budget = Budget(**(limits or {"evaluations": 40_000}))

    def draw(rng):
        inputs = rng.uniform(0.5, 3, (30, 2))
        budget.count_queries(len(inputs))
        return [Trial(inputs, function(inputs))]

    return Task(list(candidates), draw, OPERATORS, columns, 2, budget, 1e-12, np.random.default_rng(seed))


def test_gp_finds_a_small_formula():
    found = GpRegressor().regress(task(lambda X: 2 * X[:, 0] + np.sin(X[:, 1])))
    assert found[0].errors[0] < 1e-12
    assert found[0].constants.shape[0] == 1


def test_frozen_nodes_of_the_candidates_are_in_every_answer():
    skeleton = MaskedTree.from_infix("sin(x1)*C + 0.25").with_mask([0, 0, 0, 0, 1, 0])
    found = GpRegressor().regress(task(lambda X: np.sin(X[:, 0]) * (1 + 3 * X[:, 1]) + 0.25, [skeleton], columns=(1,)))
    assert found[0].errors[0] < 1e-12
    for candidate in found:
        frozen = [node.name if node.arity else node.value for node in candidate.tree if node.name in ("x1", "0.25")]
        assert frozen == ["x1", 0.25]
        assert candidate.tree.mask.count(0) == 5


def test_new_material_uses_only_the_variables_of_the_task():
    found = GpRegressor(generations=5).regress(task(lambda X: X[:, 0] * X[:, 1], columns=(1,)))
    assert found
    assert all(node.value != "x1" for candidate in found for node in candidate.tree if not node.arity)


def test_the_state_of_the_standard_random_is_restored():
    random.seed(5)
    expected = random.Random(5).random()
    GpRegressor(generations=2).regress(task(lambda X: X[:, 0]))
    assert random.random() == expected


def test_a_round_ends_with_its_budget():
    for limits in ({"evaluations": 3000}, {"queries": 200}, {"seconds": 0.2}):
        asked = task(lambda X: np.exp(np.sin(7 * X[:, 0]) * X[:, 1]), **limits)
        GpRegressor().regress(asked)
        assert asked.budget.used_up() == next(iter(limits))


SAME = """
import sys
sys.path.insert(0, {folder!r})
from test_own_toolbox import oracle, run, tools, toolbox_of, vsr
from deap_vsr.tree.simplify import skeleton_key
found = vsr.discover(oracle(), "gp", max_evaluations=3000)
print(found.expression, found.rounds[0].errors)
stats = tools.Statistics(lambda individual: individual.fitness.values[0])
stats.register("values", list)
hall, logbook = run(toolbox_of(), seed=5, ngen=3, stats=stats)
print([sorted(row.items()) for row in logbook])
print([(str(individual), individual.fitness.values) for individual in hall])
print([skeleton_key(individual) for individual in hall])
"""


def test_the_same_seed_gives_the_same_result_and_logbook_whatever_the_hash_seed():
    program = SAME.format(folder=str(Path(__file__).parent))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2", "17", "4294967295")
    }
    assert len(outputs) == 1
    found, logbook, hall, forms = outputs.pop().splitlines()
    assert "x1" in found
    assert logbook.count("('gen', ") > 8
    assert hall.count("a") > 5
    assert forms.count(",") > 5  # a checkpoint holds forms, and is read by another process


def test_the_oracle_is_asked_once_for_each_generation_however_many_candidates_and_fits_there_are():
    asked = task(lambda X: np.exp(np.sin(7 * X[:, 0]) * X[:, 1]), evaluations=10**9)
    GpRegressor(population=20, offspring=40, generations=4).regress(asked)
    assert asked.budget.queries == 5 * 30
    assert asked.budget.evaluations > 1000


def live_fits():
    return sum(type(thing) is Fit for thing in gc.get_objects())


def test_a_long_round_keeps_the_fits_of_one_generation_only():
    # Fails at 2280f42: every fit of the round is kept, over 4,000 of them.
    noise = np.random.default_rng(2)
    told, kept, before = 0, [], live_fits()

    def tell(error, tree, state):
        nonlocal told
        told += 1
        if told % 50 == 0:
            kept.append(live_fits() - before)

    asked = task(lambda X: X[:, 0] * X[:, 1] + noise.normal(0, 0.3, len(X)), evaluations=10**9)
    found = GpRegressor(population=10, offspring=15, generations=301).regress(dataclasses.replace(asked, tell=tell))
    assert told == 301
    assert found
    assert len(kept) == 6
    assert max(kept) <= 10 + 15


def test_outcomes_are_those_of_the_population_that_is_returned_in_its_order():
    toolbox = toolbox_of(primitive_set(OPERATORS, 2))
    outcomes = []
    final, _ = eaMasked(population(toolbox), toolbox, 0.5, 0.9, 4, lambda: [Trial(X, X[:, 0] ** 3)], outcomes=outcomes)
    assert len(final) > 10
    assert [outcome.error for outcome in outcomes] == [individual.fitness.values[0] for individual in final]
    for individual, outcome in zip(final, outcomes, strict=True):
        assert outcome.constants[0].tolist() == individual.constants


def test_a_generation_cut_short_leaves_population_and_outcomes_as_they_were():
    toolbox = toolbox_of(primitive_set(OPERATORS, 2))
    evaluated, outcomes = 0, []

    def evaluate(individual, trials):
        nonlocal evaluated
        evaluated += 1
        return None if evaluated > 150 else fit(individual, trials, n_starts=0, max_iterations=3)

    toolbox.register("evaluate", evaluate)
    told = []

    def draw():
        return [Trial(X, X[:, 0] ** 3 + 0.1 * len(told))]

    final, logbook = eaMasked(population(toolbox), toolbox, 0.5, 0.9, 99, draw, tell=told.append, outcomes=outcomes)
    assert 2 < len(logbook) < 10
    assert final == told[-1].population
    assert [outcome.error for outcome in outcomes] == [individual.fitness.values[0] for individual in final]


class StoppedClock(Budget):
    """Time is up after so many evaluations."""

    def used_up(self):
        return "seconds" if self.evaluations > 5000 else None


def test_a_candidate_s_constants_and_errors_are_those_of_its_tree_also_after_a_generation_cut_short():
    # Fails at 2280f42: individuals fitted again before the cut came with the outcomes of the newer trials.
    noise = np.random.default_rng(2)
    asked = task(lambda X: X[:, 0] * X[:, 1] + noise.normal(0, 0.3, len(X)))
    asked = dataclasses.replace(asked, budget=StoppedClock())
    found = GpRegressor().regress(asked)
    assert sum(candidate.tree.n_constants > 0 for candidate in found) > 10
    for candidate in found:
        assert candidate.constants[0].tolist() == candidate.tree.constants


def test_a_copy_of_an_individual_has_its_nodes_mask_and_fitness_and_shares_nothing_that_changes():
    tree = MaskedTree.from_infix("0.123456789*x1 + C*sin(x2)").with_mask([0, 0, 0, 0, 1, 1, 0, 0])
    original = Individual(tree)
    original.fitness.values = (0.25,)
    clone = copy.deepcopy(original)
    assert type(clone) is Individual
    assert keys(clone) == keys(original)
    assert clone.fitness.values == (0.25,)
    clone[4:8] = [Constant(7.0)]
    clone.fitness.values = (9.0,)
    assert keys(original) == keys(tree)
    assert original.fitness.values == (0.25,)
    unrated = copy.deepcopy(Individual(tree))
    assert not unrated.fitness.valid
    assert keys(pickle.loads(pickle.dumps(original))) == keys(tree)


def test_the_fitness_of_a_candidate_is_measured_by_the_spread_of_y():
    # The same candidate at two settings of a controlled variable that only scales y: no lottery.
    values = []
    for scale in (1e-3, 1.0, 1e3):
        individual = Individual(MaskedTree.from_infix("C*x1 + C"))
        assignFit(individual, fit(individual, [Trial(X, scale * np.sin(3 * X[:, 0]))]))
        values.append(individual.fitness.values[0])
    assert 0.1 < values[0] < 1.0
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)


# --- the loop -----------------------------------------------------------------------------


def toolbox_of(pset):
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("mate", gp.cxOnePoint)
    toolbox.register("mutate", gp.mutUniform, expr=lambda pset, type_: gp.genGrow(pset, 0, 2, type_), pset=pset)
    toolbox.register("select", selBestDistinct, n_random=2)
    toolbox.register("evaluate", evaluateFit, pset=pset, n_starts=0, max_iterations=5)
    return toolbox


def population(toolbox, n=20):
    random.seed(1)
    return [Individual(toolbox.expr()) for _ in range(n)]


def test_everybody_of_a_generation_is_scored_on_the_same_trials_and_survivors_again():
    pset = primitive_set(OPERATORS, 2)
    toolbox = toolbox_of(pset)
    seen = []

    def evaluate(individual, trials):
        seen.append((len(draws), trials.y.tobytes()))
        return fit(individual, trials, n_starts=0, max_iterations=3)

    draws = []

    def draw():
        draws.append(None)
        return [Trial(X, X[:, 0] * X[:, 1] + len(draws))]

    toolbox.register("evaluate", evaluate)
    final, logbook = eaMasked(population(toolbox), toolbox, 0.5, 0.9, 4, draw)
    assert len(draws) == 5
    assert all(len({token for number, token in seen if number == draw}) == 1 for draw in range(1, 6))
    assert logbook[0]["nevals"] == 20
    assert all(row["nevals"] > 20 for row in logbook[1:])
    assert len(final) <= 20


def test_statistics_hall_of_fame_and_verbose_are_those_of_deap(capsys):
    toolbox = toolbox_of(primitive_set(OPERATORS, 2))
    stats = tools.Statistics(lambda individual: individual.fitness.values[0])
    stats.register("min", np.min)
    hall = tools.HallOfFame(3)
    eaMasked(
        population(toolbox),
        toolbox,
        0.5,
        0.9,
        3,
        lambda: [Trial(X, X[:, 0])],
        stats=stats,
        halloffame=hall,
        verbose=True,
    )
    assert len(hall) == 3
    assert "min" in capsys.readouterr().out


def test_the_loop_ends_at_its_target():
    toolbox = toolbox_of(primitive_set(OPERATORS, 2))
    _, logbook = eaMasked(population(toolbox), toolbox, 0.5, 0.9, 50, lambda: [Trial(X, X[:, 0] * 3)], target=1e-10)
    assert len(logbook) < 20


def test_what_is_not_finite_never_wins():
    bad, good = Individual(MaskedTree.from_infix("log(-x1)")), Individual(MaskedTree.from_infix("x1"))
    for individual in (bad, good):
        assignFit(individual, fit(individual, [Trial(X, X[:, 1])]))
    assert good.fitness > bad.fitness
    assert selBestDistinct([bad, good], 1) == [good]


def test_a_fitness_that_is_maximised_is_respected():
    class Gain(base.Fitness):
        weights = (1.0,)

    better, worse = Individual(MaskedTree.from_infix("C*x1")), Individual(MaskedTree.from_infix("x2*0"))
    for individual in (better, worse):
        individual.fitness = Gain()
        assignFit(individual, fit(individual, [Trial(X, 2 * X[:, 0])]))
    assert better.fitness > worse.fitness
    assert better.fitness.values == pytest.approx((1.0,))
    assert better.constants == pytest.approx([2.0])


def test_selection_keeps_distinct_forms_and_prefers_the_shorter_of_equals():
    texts = ["C*x1", "x1*C", "C*x1 + C*x1*0", "x2"]
    individuals = [Individual(MaskedTree.from_infix(text)) for text in texts]
    for individual in individuals:
        assignFit(individual, fit(individual, [Trial(X, 2 * X[:, 0])]))
    chosen = selBestDistinct(individuals, 3)
    assert [len(individual) for individual in chosen] == [3, 9, 1]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("C*x1", "x1*C", True),
        ("C*C*x1", "C*x1", True),
        ("sin(C) + x1", "C + x1", True),
        ("x1 - x2", "x2 - x1", False),
        ("C*x1", "2*x1", False),
    ],
)
def test_forms_tell_what_a_candidate_can_fit(first, second, same):
    assert (skeleton_key(MaskedTree.from_infix(first)) == skeleton_key(MaskedTree.from_infix(second))) == same


def test_the_set_of_a_round_has_the_new_variable_and_constants_only():
    pset = restricted(primitive_set(OPERATORS, 3), (1,))
    terminals = [t for kinds in pset.terminals.values() for t in kinds if not isinstance(t, gp.MetaEphemeral)]
    assert {terminal.value for terminal in terminals} == {"x2"}
    assert pset.arguments == ["x1", "x2", "x3"]


def test_the_set_of_a_round_has_single_operators_and_no_ready_made_terms():
    # A leaf such as C*sin(x) would know the shape of the benchmark.
    pset = restricted(primitive_set((*OPERATORS, "inv", "n2"), 3), (0, 1, 2))
    primitives = {primitive.name: primitive.arity for kinds in pset.primitives.values() for primitive in kinds}
    assert primitives == {"add": 2, "sub": 2, "mul": 2, "sin": 1, "inv": 1, "n2": 1}
    assert sum(len(kinds) for kinds in pset.terminals.values()) == 3 + 1


def test_no_text_is_parsed_or_compiled_while_candidates_are_grown_and_fitted(monkeypatch):
    asked = task(lambda X: X[:, 0] * X[:, 1] + np.sin(X[:, 0]), evaluations=3000)
    GpRegressor(generations=1).regress(asked)  # kernels are ready

    def refuse(*arguments, **options):
        raise AssertionError("source text in the inner loop")

    for place, name in ((gp, "compile"), (builtins, "eval"), (builtins, "compile"), (MaskedTree, "from_infix")):
        monkeypatch.setattr(place, name, refuse)
    found = GpRegressor().regress(asked)
    monkeypatch.undo()
    assert found
    assert asked.budget.evaluations >= 3000
