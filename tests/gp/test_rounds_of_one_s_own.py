"""rounds and freeze: a vertical search in a loop of one's own; formulas as individuals, and back."""

import operator
import random

import numpy as np
import pytest
from deap import algorithms, gp, tools
from strategies import keys
from test_own_toolbox import PSET, law, oracle, toolbox_of
from test_script_seams import plain_set, protected_division

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual
from deap_vsr.tree import is_mutable


def toolbox_with_individuals():
    toolbox = toolbox_of()
    toolbox.register("individual", tools.initIterate, Individual, toolbox.expr)
    toolbox.register("select", tools.selTournament, tournsize=3)
    return toolbox


def frozen(individual):
    """The nodes that may not change, but for the values of constants."""
    return [node.name for node in individual if not is_mutable(node)]


def test_any_algorithm_of_deap_runs_the_rounds_and_what_is_frozen_stays():
    random.seed(1)
    seen, changed, checked = [], 0, 0
    for step in vsr.rounds(toolbox_with_individuals(), oracle()):
        population = step.population(40)
        kept = [frozen(one) for one in population if frozen(one)]
        population, _ = algorithms.eaMuPlusLambda(population, step.toolbox, 40, 80, 0.4, 0.5, 12, verbose=False)
        for individual in population:
            checked += bool(kept)
            changed += bool(kept) and frozen(individual) not in kept
        seen.append((step.number, step.new, step.last))
        population = vsr.freeze(population, step)
    assert seen == [(1, (0,), False), (2, (1,), False), (3, (2,), True)]
    assert checked >= 40
    assert changed == 0
    assert population[0].fitness.values[0] < 1e-20


def test_the_trials_of_a_round_hold_what_is_not_freed():
    steps = []
    for step in vsr.rounds(toolbox_with_individuals(), oracle(), schedule=["b", ("a", "c")]):
        steps.append(step)
        vsr.freeze(step.population(10), step)
    assert [np.ptp(steps[0].trials[0].X, axis=0)[column] > 0 for column in range(3)] == [False, True, False]
    assert (np.ptp(steps[1].trials[0].X, axis=0) > 0).all()
    assert [step.freed for step in steps] == [(1,), (1, 0, 2)]


def test_a_round_that_is_not_closed_or_closed_twice_is_a_clear_error():
    with pytest.raises(vsr.VsrError, match="round 1 was not closed"):
        list(vsr.rounds(toolbox_with_individuals(), oracle()))
    step = next(vsr.rounds(toolbox_with_individuals(), oracle()))
    population = step.population(5)
    vsr.freeze(population, step)
    with pytest.raises(vsr.VsrError, match="closed already"):
        vsr.freeze(population, step)
    with pytest.raises(vsr.VsrError, match="has no individual"):
        next(vsr.rounds(toolbox_of(), oracle()))


def test_the_search_ends_early_where_a_formula_holds_for_all_variables():
    only_first = vsr.CallableOracle(lambda X: 2.0 * X[:, 0], [(1, 5)] * 3)
    random.seed(0)
    numbers = []
    for step in vsr.rounds(toolbox_with_individuals(), only_first):
        population, _ = algorithms.eaSimple(step.population(30), step.toolbox, 0.5, 0.5, 5, verbose=False)
        population = vsr.freeze(population, step)
        numbers.append(step.number)
    assert numbers == [1]
    assert population[0].fitness.values[0] < 1e-20


# --- formulas as individuals --------------------------------------------------------------


def test_a_formula_that_was_discovered_becomes_an_individual_and_back():
    result = vsr.discover(oracle(), max_evaluations=200_000)
    individual = vsr.to_individual(result, Individual, PSET)
    assert type(individual) is Individual
    assert all(map(is_mutable, individual))
    X = np.random.default_rng(0).uniform(1, 5, (30, 3))
    compiled = gp.compile(individual, PSET)
    np.testing.assert_allclose([compiled(*x) for x in X.tolist()], law(X), rtol=1e-12)
    back = vsr.from_individual(individual, PSET)
    np.testing.assert_allclose(back.evaluate(X), law(X), rtol=1e-12)
    assert keys(vsr.from_individual(vsr.to_individual(back, Individual, PSET), PSET)) == keys(back)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("x1**2", "mul(ARG0, ARG0)"),
        ("x2**3", "mul(mul(ARG1, ARG1), ARG1)"),
        ("-x1", "mul(-1.0, ARG0)"),
        ("inv(x3)", "protected_division(1.0, ARG2)"),
        ("x1/x2", "protected_division(ARG0, ARG1)"),
    ],
)
def test_what_a_set_has_not_is_written_with_what_it_has(text, written):
    pset = plain_set()
    pset.addPrimitive(protected_division, 2)
    assert str(vsr.to_individual(vsr.MaskedTree.from_infix(text), Individual, pset)) == written


def test_differences_are_written_with_sums_where_there_is_no_other_way():
    pset = gp.PrimitiveSet("SUMS", 2)
    pset.addPrimitive(operator.add, 2)
    pset.addPrimitive(operator.mul, 2)
    tree = vsr.MaskedTree.from_infix("x1 - x2")
    assert str(vsr.to_individual(tree, Individual, pset)) == "add(ARG0, mul(-1.0, ARG1))"


def test_what_cannot_be_said_is_a_clear_error():
    pset = plain_set()
    with pytest.raises(vsr.VsrError, match=r"cannot say sin\(x1\).*operators sin"):
        vsr.to_individual(vsr.MaskedTree.from_infix("sin(x1)"), Individual, pset)
    with pytest.raises(vsr.VsrError, match="more than 3 arguments"):
        vsr.to_individual(vsr.MaskedTree.from_infix("x4 + x1"), Individual, pset)
    with pytest.raises(vsr.VsrError, match="no formula"):
        vsr.to_individual(None, Individual, pset)
    pset.addPrimitive(max, 2)
    with pytest.raises(vsr.VsrError, match="max are none of the catalogue's"):
        vsr.from_individual([pset.mapping["max"], pset.mapping["ARG0"], pset.mapping["ARG1"]], pset)
