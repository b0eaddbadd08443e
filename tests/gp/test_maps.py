"""Any map gives the same run, and leaves a script's own things alone."""

import functools
import operator
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import joblib
import numpy as np
import pytest
from deap import base, gp, tools

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual

PSET = gp.PrimitiveSet("MAPS", 2)
PSET.addPrimitive(operator.add, 2)
PSET.addPrimitive(operator.mul, 2)
PSET.addPrimitive(lambda a, b: a / b if b else 1.0, 2, name="pdiv")  # no module has it; it is recognised
PSET.addEphemeralConstant("maps_constant", functools.partial(random.uniform, -1, 1))
LAMBDA = gp.PrimitiveSet("LAMBDA", 2)
LAMBDA.addPrimitive(operator.add, 2)
LAMBDA.addPrimitive(lambda a, b: a + 2.0 * b, 2, name="own")  # nor is it recognised
LAMBDA.addEphemeralConstant("lambda_constant", functools.partial(random.uniform, -1, 1))


def law(X):
    return 1.5 * X[:, 0] / X[:, 1] + 0.3


def absolute(y, prediction, individual):
    return (float(np.mean(np.abs(y - prediction))),)


def first(individual):
    return individual.fitness.values[0]


def run(pset=PSET, mapped=None):
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("mate", vsr.cxOnePoint)
    toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", vsr.mutUniform, expr=toolbox.expr_mut, pset=pset)
    toolbox.register("loss", absolute)
    toolbox.register("select", tools.selTournament, tournsize=3)
    if mapped is not None:
        toolbox.register("map", mapped)
    stats = tools.Statistics(first)
    stats.register("min", np.min)
    random.seed(2)
    population = [Individual(toolbox.expr()) for _ in range(20)]
    found, logbook = vsr.eaVertical(
        population, toolbox, 0.5, 0.9, 3, vsr.CallableOracle(law, [(1, 5)] * 2), stats=stats
    )
    return [str(individual) for individual in found], [dict(row) for row in logbook]


def in_joblib(function, individuals):
    return joblib.Parallel(n_jobs=2)(joblib.delayed(function)(individual) for individual in individuals)


def test_serial_threads_fork_spawn_and_joblib_give_the_same_run_and_leave_the_ephemeral_alone():
    serial = run()
    before, cached = PSET.mapping["maps_constant"], len(gp.MetaEphemeral.cache)
    with ThreadPoolExecutor(3) as pool:
        assert run(mapped=pool.map) == serial
    for method in ("fork", "spawn"):
        with get_context(method).Pool(2) as pool:
            assert run(mapped=pool.map) == serial
    assert run(mapped=in_joblib) == serial
    assert PSET.mapping["maps_constant"] is before
    assert len(gp.MetaEphemeral.cache) == cached
    assert -1 <= before().value <= 1


def test_a_primitive_that_cannot_be_sent_to_other_processes_is_a_clear_error():
    with get_context("spawn").Pool(1) as pool, pytest.raises(vsr.VsrError, match="def and not lambda"):
        run(LAMBDA, pool.map)


def test_searches_in_threads_find_what_they_find_alone():
    # Fails at 7ff2e9b: they drew from one stream of the standard random in turns.
    def found(seed):
        return vsr.discover("feynman-unit/I.39.22", "gp", seed=seed, max_evaluations=3000).expression

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(3) as pool:
            together = list(pool.map(found, range(3)))
    finally:
        sys.setswitchinterval(before)
    assert together == [found(seed) for seed in range(3)]
