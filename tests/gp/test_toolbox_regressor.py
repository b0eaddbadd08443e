"""GP with a toolbox of one's own as a regressor."""

import dataclasses
import json
import random

import numpy as np
from deap import tools
from strategies import keys
from test_own_toolbox import PSET, oracle, toolbox_of

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual
from deap_vsr.lab.budget import Budget
from deap_vsr.search.contract import Task


def regressor_of(toolbox, **options):
    toolbox.register("individual", tools.initIterate, Individual, toolbox.expr)
    toolbox.register("evaluate", vsr.evaluateFit, pset=PSET, n_starts=0, max_iterations=5)
    toolbox.register("select", vsr.selBestDistinct)
    return vsr.ToolboxRegressor(toolbox, 0.5, 0.9, **{"ngen": 3, "size": 12, "pset": PSET, **options})


def task_of(columns=(0, 1), candidates=(), **limits):
    asked = oracle()

    def draw(rng):
        X = rng.uniform(1, 5, (20, 3))
        return [vsr.Trial(X, asked.evaluate(X))]

    rng = np.random.default_rng(3)
    return Task(list(candidates), draw, asked.function_set, columns, 3, Budget(**limits), 1e-12, rng)


def test_a_task_without_candidates_begins_with_individuals_of_the_toolbox_over_its_variables():
    made, toolbox = [], toolbox_of()
    regressor = regressor_of(toolbox, ngen=0)
    toolbox.register("individual", lambda expr: made.append(Individual(expr())) or made[-1], toolbox.expr)
    found = regressor.regress(task_of(columns=(1,)))
    assert len(made) == 12
    leaves = {leaf.value for individual in made for leaf in individual if not leaf.arity}
    assert {leaf for leaf in leaves if isinstance(leaf, str)} == {"b"}
    begun = {vsr.MaskedTree(individual).to_infix(PSET, skeleton=True) for individual in made}
    assert {candidate.tree.to_infix(PSET, skeleton=True) for candidate in found} <= begun


def test_beginners_that_use_a_controlled_variable_are_left_out_unless_all_do():
    def begun(columns):
        leaf = PSET.mapping
        beginners = [Individual([leaf["mul"], leaf[name], leaf[name]]) for name in ("a", "b")]
        toolbox = toolbox_of(mutate=lambda individual, expr, pset: (individual,))
        found = regressor_of(toolbox, ngen=0, beginners=beginners).regress(task_of(columns))
        return {str(candidate.tree) for candidate in found}

    assert begun((0, 1)) == {"mul(a, a)", "mul(b, b)"}
    assert begun((1, 2)) == {"mul(b, b)"}
    assert begun((2,)) == {"mul(a, a)", "mul(b, b)"}


def test_a_round_counts_each_individual_for_one_and_ends_with_its_budget():
    regressor = regressor_of(toolbox_of(), ngen=1000)
    task = task_of(evaluations=200)
    regressor.regress(task)
    assert sum(row["nevals"] for row in regressor.logbook) == task.budget.evaluations
    assert 200 <= task.budget.evaluations < 200 + 2 * 12


def test_the_logbook_of_a_regressor_goes_on_from_round_to_round():
    regressor = regressor_of(toolbox_of())
    first = regressor.regress(task_of(columns=(0,)))
    regressor.regress(task_of(columns=(1,), candidates=[candidate.tree for candidate in first]))
    assert [(row["round"], row["gen"]) for row in regressor.logbook] == [(n, g) for n in (1, 2) for g in range(4)]


def test_the_standard_random_is_left_alone_or_followed_as_wanted():
    def texts(seeded, seed):
        random.seed(seed)
        before = random.getstate()
        found = regressor_of(toolbox_of(), seeded=seeded).regress(task_of())
        return [str(candidate.tree) for candidate in found], random.getstate() == before

    assert texts(True, 0) == texts(True, 1)
    assert texts(True, 0)[1]
    followed = texts(False, 0)
    assert followed == texts(False, 0)
    assert followed != texts(False, 1)
    assert not followed[1]


def test_a_round_goes_on_from_any_state_that_it_tells_of():
    states = []

    def tell(error, tree, state):
        states.append((json.dumps(state()), task.rng.bit_generator.state))

    def content(found):
        return [(keys(one.tree), one.errors.tolist(), one.constants.tolist()) for one in found]

    task = dataclasses.replace(task_of(), tell=tell)
    found = content(regressor_of(toolbox_of()).regress(task))
    assert len(states) == 3
    for state, rng in states:
        again = dataclasses.replace(task_of(), resume=json.loads(state))
        again.rng.bit_generator.state = rng
        assert content(regressor_of(toolbox_of()).regress(again)) == found
