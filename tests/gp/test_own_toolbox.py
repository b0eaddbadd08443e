"""Vertical search with a DEAP script's own toolbox."""

import functools
import operator
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from deap import base, gp, tools

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual

PSET = gp.PrimitiveSet("OWN", 3)
PSET.addPrimitive(operator.add, 2)
PSET.addPrimitive(operator.sub, 2)
PSET.addPrimitive(operator.mul, 2)
PSET.addEphemeralConstant("own_toolbox_constant", functools.partial(random.uniform, -1, 1))
PSET.renameArguments(ARG0="a", ARG1="b", ARG2="c")


def law(X):
    return 2.5 * X[:, 0] * X[:, 1] - 0.7 * X[:, 2]


def toolbox_of(mate=vsr.cxOnePoint, mutate=vsr.mutUniform):
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=PSET, min_=1, max_=2)
    toolbox.register("mate", mate)
    toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", mutate, expr=toolbox.expr_mut, pset=PSET)
    return toolbox


def oracle(n_vars=3):
    return vsr.CallableOracle(law, [(1, 5)] * n_vars)


def run(toolbox, seed=0, ngen=15, **options):
    random.seed(seed)
    population = [Individual(toolbox.expr()) for _ in range(30)]
    return vsr.eaVertical(population, toolbox, 0.5, 0.9, ngen, oracle(), **options)


def test_the_law_is_found_with_the_user_s_own_set():
    best = tools.HallOfFame(1)
    found, logbook = run(toolbox_of(), ngen=40, halloffame=best)
    assert found[0].fitness.values[0] < 1e-20
    assert best[0] == found[0]
    assert {row["round"] for row in logbook} == {1, 2, 3}
    X = np.random.default_rng(5).uniform(1, 5, (20, 3))
    np.testing.assert_allclose(vsr.MaskedTree(found[0]).evaluate(X, PSET), law(X), rtol=1e-6)


def test_each_round_brings_in_its_own_variable_only():
    toolbox = toolbox_of()
    asked = []

    def mutate(individual, expr, pset):
        asked.append(tuple(t.value for t in pset.terminals[object] if not isinstance(t, gp.MetaEphemeral)))
        return vsr.mutUniform(individual, expr, pset)

    toolbox.register("mutate", mutate, expr=toolbox.expr_mut, pset=PSET)
    run(toolbox, ngen=40)
    assert list(dict.fromkeys(asked)) == [("a",), ("b",), ("c",)]


def test_the_user_s_toolbox_and_set_are_left_as_they_were():
    toolbox = toolbox_of()
    before = dict(vars(toolbox))
    terminals = {kind: list(items) for kind, items in PSET.terminals.items()}
    run(toolbox, ngen=2)
    assert vars(toolbox) == before
    assert {kind: list(items) for kind, items in PSET.terminals.items()} == terminals


@pytest.mark.parametrize(
    ("toolbox", "message"),
    [
        (toolbox_of(mate=gp.cxOnePoint), "deap.gp's cxOnePoint"),
        (toolbox_of(mutate=gp.mutUniform), "register deap_vsr.mutUniform"),
        (toolbox_of(mate=gp.staticLimit(len, 9)(gp.cxOnePoint)), "deap.gp's cxOnePoint"),
        (base.Toolbox(), "has no mate"),
    ],
)
def test_operators_that_ignore_masks_are_refused(toolbox, message):
    with pytest.raises(vsr.VsrError, match=message):
        vsr.eaVertical([Individual(vsr.MaskedTree.from_infix("x1"))], toolbox, 0.5, 0.5, 1, oracle())


def test_a_toolbox_without_a_primitive_set_and_a_wrong_oracle_are_clear_errors():
    toolbox = toolbox_of()
    toolbox.register("mutate", vsr.mutShrink)
    with pytest.raises(vsr.VsrError, match="holds no primitive set"):
        run(toolbox)
    with pytest.raises(vsr.VsrError, match="has 3 arguments, the oracle 2 variables"):
        vsr.eaVertical([], toolbox_of(), 0.5, 0.5, 1, oracle(2))


OWN_PRIMITIVE = """
import random, runpy, sys
from deap import tools
import deap_vsr as vsr
script = runpy.run_path(sys.argv[1])
stats = tools.Statistics(lambda individual: individual.fitness.values[0])
stats.register("sum", sum)
random.seed(3)
population = script["toolbox"].population(n=30)
oracle = vsr.CallableOracle(script["law"], [(1, 5)] * 3)
found, logbook = vsr.eaVertical(population, script["toolbox"], 0.5, 0.9, 3, oracle, stats=stats)
print([dict(row) for row in logbook])
print([str(individual) for individual in found])
"""


def test_a_primitive_of_one_s_own_gives_the_same_logbook_in_every_process():
    script = Path(__file__).parents[2] / "examples" / "symbreg_vertical.py"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", OWN_PRIMITIVE, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for seed, threads in (("0", "1"), ("1", "2"), ("17", "4"), ("99", "1"), ("4294967295", "3"))
    }
    assert len(outputs) == 1
    logbook, found = outputs.pop().splitlines()
    assert logbook.count("'gen'") >= 6
    assert "protected_division" in found
