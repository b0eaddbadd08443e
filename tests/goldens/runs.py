"""The runs whose outcomes are pinned in goldens.json: seeded, bounded by counts, never by seconds.

Each entry of `RUNS` is a function without arguments that makes its oracle, runs, and returns plain JSON values: the
expression, the points asked, the evaluations and the rounds. Only names that `deap_vsr` exports are used.
"""

import functools
import operator
import random
from pathlib import Path

import numpy as np
from deap import base, gp, tools

from deap_vsr import (
    CallableOracle,
    EquationOracle,
    Noise,
    Variable,
    cxOnePoint,
    cxOnePointLeafBiased,
    discover,
    eaVertical,
    load_equation,
    mutGrow,
    mutUniform,
    register_operator,
    staticLimit,
)

RATIONAL = ("add", "sub", "mul", "div", "const")
USUAL = (*RATIONAL, "n2", "sqrt", "exp", "log", "sin")
RATES = Path(__file__).with_name("rates.txt")


# --- problems -----------------------------------------------------------------------------


def equation(name, noise=0.0, seed=0):
    """Return the oracle of an equation file; unlike a name, it is not judged, which takes seconds."""
    return EquationOracle(load_equation(name), noise, seed)


gas = functools.partial(equation, "feynman-unit/I.39.22")
"""x1*x2/x3: a product."""
small_sum = functools.partial(equation, "trigonometric/inv/2-1-1/prog_1")
"""0.5318 + 0.6855*x1 + 0.4457/(x1*x2)."""
middle_sum = functools.partial(equation, "trigonometric/inv/3-2-2/prog_0")
"""0.158 + 0.0523*x1 + 0.3661/x3 - 0.0742/(x1*x3) - 0.637*x2*x3."""
trigonometric_sum = functools.partial(equation, "trigonometric/sincosinv/3-2-2/prog_1")
"""-0.7473 + 0.582/x1 - 0.5657*sin(x2) - 0.1063*x3/x2 - 0.2709*sin(x1)*x3."""
bell = functools.partial(equation, "feynman-unit/I.6.20")
"""exp(-(x1/x2)**2/2)/(sqrt(2*pi)*x2): no sum."""


def own(law, variables, function_set=RATIONAL, **options):
    """Return the oracle of a law of x, an array with a row for each variable; an integer is so many of (0.5, 3)."""
    domains = [(0.5, 3.0)] * variables if isinstance(variables, int) else variables
    return CallableOracle(lambda X: law(X.T), domains, function_set, **options)


def decay(**options):
    """2*x1*exp(-x3/2): no sum, and x2 does not matter."""
    return own(lambda x: 2.0 * x[0] * np.exp(-0.5 * x[2]), 3, (*RATIONAL, "exp", "sin"), **options)


def wave(**options):
    """Return a law that the operators cannot express."""
    return own(lambda x: np.sin(3.0 * x[0]) * x[1], 2, ("add", "mul", "const"), **options)


def bound_share(x):
    """Return how much of a ligand is bound: the smaller root of a quadratic."""
    total = x[0] + x[1] + x[2]
    return 0.5 * (total - np.sqrt(total**2 - 4.0 * x[0] * x[1]))


def rate(x):
    """Return a rate that saturates in x1 and is inhibited by x2."""
    return 2.4 * x[0] / (0.7 + x[0]) / (1.0 + x[1] / 1.5) * x[2]


def five_of_twenty(x):
    """Return a sum in which fifteen of the variables do not matter."""
    return 1.5 * x[2] * x[7] - 0.4 * x[11] + x[16] / x[19]


def hump(x):
    """Return 1/(1 + x*x), an operator of one's own."""
    return 1.0 / (1.0 + x * x)


hump.takes_arrays = True


def hump_law():
    """Return a law with an operator of one's own."""
    register_operator("goldens_hump", hump, 1)
    return own(lambda x: x[0] * hump(x[1]) + x[2], 3, ("add", "mul", "goldens_hump", "const"))


# --- one run ------------------------------------------------------------------------------


def found_by(problem, method="vsr", **options):
    """Run `discover` and return what is pinned."""
    result = discover(problem, method, **options)
    return {
        "expression": result.expression,
        "queries": result.oracle_queries,
        "evaluations": result.evaluations,
        "rounds": [
            [list(record.freed), record.tree.to_infix(skeleton=True), record.queries] for record in result.rounds
        ],
    }


# --- a user's own toolbox -----------------------------------------------------------------


class Minimised(base.Fitness):
    """An error, as most scripts have it."""

    weights = (-1.0,)


class Maximised(base.Fitness):
    """1/(1 + error)."""

    weights = (1.0,)


class Shrinking(gp.PrimitiveTree):
    """An individual whose error is minimised."""

    def __init__(self, content):
        super().__init__(content)
        self.fitness = Minimised()


class Growing(gp.PrimitiveTree):
    """An individual whose fitness is maximised."""

    def __init__(self, content):
        super().__init__(content)
        self.fitness = Maximised()


def protected_division(left, right):
    """Divide; by zero it is 1."""
    try:
        return left / right
    except ZeroDivisionError:
        return 1.0


def set_of(name, *functions):
    """Return a primitive set of binary functions of a, b and c, with an ephemeral constant."""
    pset = gp.PrimitiveSet(name, 3)
    for function in functions:
        pset.addPrimitive(function, 2)
    pset.addEphemeralConstant(f"goldens_{name}", functools.partial(random.uniform, -1, 1))
    pset.renameArguments(ARG0="a", ARG1="b", ARG2="c")
    return pset


POLYNOMIALS = set_of("polynomials", operator.add, operator.sub, operator.mul)
DIVIDING = set_of("dividing", operator.add, operator.sub, operator.mul, protected_division)

WAVES = gp.PrimitiveSetTyped("waves", [float] * 3, float)
WAVES.addPrimitive(np.add, [float, float], float)
WAVES.addPrimitive(np.multiply, [float, float], float)
WAVES.addPrimitive(np.sin, [float], float)
WAVES.addTerminal(3.25, float)
WAVES.addEphemeralConstant("goldens_waves", functools.partial(random.uniform, -1, 1), float)


def toolbox_of(pset, mate, mutate):
    """Return a toolbox as a DEAP script has it."""
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("mate", mate)
    toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", mutate, expr=toolbox.expr_mut, pset=pset)
    return toolbox


def grown_by(toolbox, kind, oracle, seed, n=30, ngen=8, **options):
    """Run `eaVertical` and return what is pinned; a population of `n` and `ngen` generations in each round."""
    before = random.getstate()
    random.seed(seed)
    try:
        population = [kind(toolbox.expr()) for _ in range(n)]
        best = tools.HallOfFame(1)
        _, logbook = eaVertical(population, toolbox, 0.5, 0.9, ngen, oracle, halloffame=best, **options)
    finally:
        random.setstate(before)
    return {
        "expression": str(best[0]),
        "queries": oracle.queries,
        "logbook": [[row["round"], row["gen"], row["nevals"]] for row in logbook],
    }


def own_division():
    """Run the toolbox of examples/symbreg_vertical.py, with a division of one's own, which is recognised."""
    oracle = own(lambda x: 2.5 * x[0] * x[1] - 0.7 * x[2], [(1, 5)] * 3)
    return grown_by(toolbox_of(DIVIDING, cxOnePoint, mutUniform), Shrinking, oracle, seed=0, n=10, ngen=3)


def own_polynomials():
    """Run a set of Python's operators, all of which are compiled."""
    oracle = own(lambda x: 2.5 * x[0] * x[1] + x[2] * x[1] - 0.7 * x[2], [(1, 5)] * 3)
    return grown_by(toolbox_of(POLYNOMIALS, cxOnePoint, mutUniform), Shrinking, oracle, seed=1, n=40, ngen=20)


def own_typed_set():
    """Run a typed set of numpy's functions with limited sizes, a schedule of groups, and noise."""
    toolbox = toolbox_of(WAVES, cxOnePointLeafBiased, mutGrow)
    toolbox.register("mate", cxOnePointLeafBiased, termpb=0.2)
    toolbox.decorate("mate", staticLimit(len, 25))
    toolbox.decorate("mutate", staticLimit(len, 25))
    oracle = own(lambda x: 3.25 * x[0] + np.sin(x[1]) * x[2], 3, noise=0.01, seed=5)
    return grown_by(toolbox, Growing, oracle, seed=7, schedule=[(0,), (1, 2)])


# --- the runs -----------------------------------------------------------------------------

RUNS = {
    # vsr, exact: laws of the suites, by name or oracle
    "vsr-gas": lambda: found_by(gas(), max_evaluations=1_000_000),
    "vsr-gas-by-name-and-seed-3": lambda: found_by("feynman-unit/I.39.22", seed=3, max_queries=10_000),
    "vsr-gas-schedule-x3-x1-x2": lambda: found_by(gas(), schedule="x3,x1,x2", max_queries=10_000),
    "vsr-gas-schedule-numeric": lambda: found_by(gas(), schedule="numeric", max_queries=10_000),
    "vsr-gas-60-queries": lambda: found_by(gas(), max_queries=60),
    "vsr-gas-150-queries": lambda: found_by(gas(), max_queries=150),
    "vsr-gas-300-queries": lambda: found_by(gas(), max_queries=300),
    "vsr-gas-100-evaluations": lambda: found_by(gas(), max_evaluations=100),
    "vsr-gas-without-division": lambda: found_by(
        load_equation("feynman-unit/I.39.22"), operators=["add", "mul", "const"], max_evaluations=3_000
    ),
    "vsr-bell": lambda: found_by(bell(), max_queries=20_000),
    "vsr-bell-300-queries": lambda: found_by(bell(), max_queries=300),
    "vsr-trigonometric-sum": lambda: found_by(trigonometric_sum(), max_queries=20_000),
    "vsr-trigonometric-sum-1000-queries": lambda: found_by(trigonometric_sum(), max_queries=1_000),
    "vsr-six-variables": lambda: found_by(equation("trigonometric/sincosinv/6-6-10/prog_1"), max_queries=20_000),
    "vsr-square-root-of-the-suite": lambda: found_by(equation("livermore2/Vars4/Vars4-2"), max_queries=20_000),
    "vsr-gauss-of-three": lambda: found_by(equation("feynman-unit/I.6.20b"), seed=1, max_queries=20_000),
    # vsr, exact: laws of one's own
    "vsr-quadratic-root": lambda: found_by(own(bound_share, 3, USUAL), max_queries=10_000),
    "vsr-function-of-a-function": lambda: found_by(
        own(lambda x: np.exp(1.3 * np.sin(1.7 * x[0])), 1, USUAL), max_queries=10_000
    ),
    "vsr-ratio": lambda: found_by(own(lambda x: x[0] * x[1] / (0.7 + x[1] + x[2]), 3), max_queries=10_000),
    "vsr-tied-brackets": lambda: found_by(own(lambda x: (x[0] + x[1]) * (x[2] + x[3]), 4), max_queries=10_000),
    "vsr-wider-limits": lambda: found_by(
        own(lambda x: np.sin(x[0]) * x[1] + 0.5, 2, (*RATIONAL, "sin"), limits=[(0.0, 6.0)] * 2), max_queries=10_000
    ),
    "vsr-logarithm-of-negative-numbers": lambda: found_by(
        own(lambda x: x[1] * np.log(x[0]) + 2.0, [(-1.0, 4.0), (0.5, 3.0)], USUAL), max_queries=10_000
    ),
    "vsr-values-in-half-the-domain": lambda: found_by(
        own(lambda x: np.sqrt(x[0] - x[1]) * x[2], 3, (*RATIONAL, "sqrt")), max_queries=4_000, max_evaluations=50_000
    ),
    "vsr-integer-variable": lambda: found_by(
        own(lambda x: 1.5 * x[0] ** 2 / x[1], [Variable("x1", 1, 30, "integer"), (0.5, 3.0)]), max_queries=10_000
    ),
    "vsr-few-integers-are-left-to-joint": lambda: found_by(
        own(lambda x: x[0] * x[1], [Variable("x1", 1, 5, "integer"), Variable("x2", 1, 5, "integer")]),
        max_evaluations=20_000,
    ),
    "vsr-samplings-and-signs": lambda: found_by(
        own(
            lambda x: 0.3 * x[0] * x[1] - x[2] ** 2,
            [
                Variable("x1", 0.01, 100.0, "loguniform"),
                Variable("x2", 0.5, 3.0, "uniform", "both"),
                Variable("x3", -2.0, 2.0, "uniform", "as_range"),
            ],
        ),
        max_queries=10_000,
    ),
    "vsr-five-of-twenty-variables": lambda: found_by(own(five_of_twenty, 20), max_queries=20_000),
    "vsr-huge-values": lambda: found_by(
        own(lambda x: 1e200 * x[0] * x[1] / x[2], [(1.0, 4.0)] * 3, USUAL), max_queries=10_000
    ),
    "vsr-many-decades": lambda: found_by(
        own(lambda x: x[1] * np.exp(6.0 * x[0]), [(0.5, 6.0), (0.5, 3.0)], USUAL), max_queries=10_000
    ),
    "vsr-point-by-point": lambda: found_by(
        CallableOracle(lambda point: 2.0 * point[0] - point[1], [(0.5, 3.0)] * 2, vectorized=False), max_queries=5_000
    ),
    "vsr-operator-of-one-s-own": lambda: found_by(hump_law(), max_queries=5_000),
    "vsr-operators-of-an-oracle-replaced": lambda: found_by(
        own(lambda x: np.sin(x[0]) * x[1], 2, (*RATIONAL, "sin")),
        operators=RATIONAL,
        max_queries=2_000,
        max_evaluations=5_000,
    ),
    "vsr-falls-back-to-joint": lambda: found_by(wave(), max_evaluations=20_000),
    # vsr in noise
    "vsr-noise-0.01-sum": lambda: found_by(middle_sum(0.01), max_queries=8_000),
    "vsr-noise-0.1-sum": lambda: found_by(middle_sum(0.1, 1), seed=1, max_queries=5_000),
    "vsr-noise-0.1-sum-by-name": lambda: found_by(
        "trigonometric/inv/2-1-1/prog_1", noise=0.1, seed=2, max_queries=3_000
    ),
    "vsr-noise-0.1-sum-1000-queries": lambda: found_by(middle_sum(0.1), max_queries=1_000, max_evaluations=20_000),
    "vsr-noise-0.1-sum-300-queries": lambda: found_by(middle_sum(0.1), max_queries=300),
    "vsr-noise-0.1-sum-60-queries": lambda: found_by(middle_sum(0.1), max_queries=60),
    "vsr-noise-0.01-gas-150-queries": lambda: found_by(gas(0.01), max_queries=150),
    "vsr-noise-short-sum": lambda: found_by(
        own(lambda x: 2.0 * x[0] * x[1] + 0.5, 2, noise=Noise(0.02, "laplace"), seed=4), max_queries=4_000
    ),
    "vsr-noise-0.02-decay": lambda: found_by(decay(noise=0.02), max_evaluations=1_000_000),
    "vsr-noise-0.003-bell": lambda: found_by(bell(0.003, 1), seed=1, max_evaluations=200_000),
    "vsr-noise-relative-bell-800-queries": lambda: found_by(
        bell(Noise(0.1, "uniform", True)), max_queries=800, max_evaluations=100_000
    ),
    "vsr-noise-relative-sum": lambda: found_by(small_sum(Noise(0.05, "logistic", True)), seed=6, max_queries=4_000),
    "vsr-noise-0.01-saturation": lambda: found_by(
        own(lambda x: 3.0 * x[0] / (2.0 + x[1]), 2, noise=0.01), max_evaluations=1_000_000
    ),
    "vsr-noise-0.1-saturation": lambda: found_by(
        own(lambda x: 3.0 * x[0] / (2.0 + x[1]), 2, noise=0.1, seed=3),
        seed=3,
        max_queries=4_000,
        max_evaluations=300_000,
    ),
    "vsr-noise-without-sums": lambda: found_by(
        own(lambda x: 2.5 * x[0] / x[1], 2, ("mul", "div", "const"), noise=0.02), max_evaluations=500_000
    ),
    "vsr-noise-schedule": lambda: found_by(trigonometric_sum(0.01), schedule=["x3", "x1", "x2"], max_queries=6_000),
    "vsr-noise-falls-back-to-joint": lambda: found_by(wave(noise=0.02), max_evaluations=20_000),
    "vsr-noise-five-of-twenty-variables": lambda: found_by(
        own(five_of_twenty, 20, noise=0.05), max_queries=8_000, max_evaluations=50_000
    ),
    "vsr-noise-not-repeatable": lambda: found_by(
        own(lambda x: x[0] * x[1], 2, noise=0.02, repeatable=False), max_evaluations=20_000
    ),
    # gp and vertical gp
    "gp-gas": lambda: found_by(gas(), "gp", max_evaluations=20_000),
    "gp-trigonometric-sum": lambda: found_by(trigonometric_sum(), "gp", seed=1, max_evaluations=20_000),
    "gp-gas-150-queries": lambda: found_by(gas(), "gp", max_queries=150, max_evaluations=20_000),
    "gp-noise-0.1-sum": lambda: found_by(small_sum(0.1), "gp", max_evaluations=20_000),
    "gp-logarithm-of-negative-numbers": lambda: found_by(
        own(lambda x: x[1] * np.log(x[0]) + 2.0, [(-1.0, 4.0), (0.5, 3.0)], USUAL), "gp", max_evaluations=10_000
    ),
    "gp-nelder-mead": lambda: found_by(gas(), "gp", optimizer="Nelder-Mead", max_evaluations=20_000),
    "gp-paper": lambda: found_by(gas(), "gp", preset="paper", max_evaluations=20_000),
    "vsr-gp-gas": lambda: found_by(gas(), "vsr-gp", max_evaluations=30_000),
    "vsr-gp-gas-schedule-auto": lambda: found_by(gas(), "vsr-gp", schedule="auto", max_evaluations=30_000),
    "vsr-gp-sum-3000-queries": lambda: found_by(
        small_sum(), "vsr-gp", seed=3, max_queries=3_000, max_evaluations=30_000
    ),
    "vsr-gp-gas-60-queries": lambda: found_by(gas(), "vsr-gp", max_queries=60, max_evaluations=20_000),
    "vsr-gp-noise-0.1-sum": lambda: found_by(small_sum(0.1), "vsr-gp", max_evaluations=30_000),
    "vsr-gp-noise-0.01-sum": lambda: found_by(middle_sum(0.01), "vsr-gp", max_evaluations=30_000, max_queries=10_000),
    "vsr-gp-paper": lambda: found_by(gas(), "vsr-gp", preset="paper", max_evaluations=30_000),
    "vsr-gp-paper-noise-0.1": lambda: found_by(small_sum(0.1), "vsr-gp", preset="paper", max_evaluations=5_000),
    "vsr-gp-slotwise-gas": lambda: found_by(gas(), "vsr-gp", expansion="slotwise", max_evaluations=50_000),
    "vsr-gp-slotwise-sum-1000-queries": lambda: found_by(
        small_sum(), "vsr-gp", expansion="slotwise", max_queries=1_000, max_evaluations=30_000
    ),
    "vsr-gp-slotwise-noise-0.1-sum": lambda: found_by(
        small_sum(0.1), "vsr-gp", expansion="slotwise", schedule="x2,x1", max_evaluations=50_000
    ),
    "vsr-gp-slotwise-noise-0.02-decay": lambda: found_by(
        decay(noise=0.02), "vsr-gp", expansion="slotwise", max_evaluations=100_000
    ),
    "vsr-gp-slotwise-noise-falls-back-to-joint": lambda: found_by(
        wave(noise=0.02), "vsr-gp", expansion="slotwise", max_queries=3_000, max_evaluations=20_000
    ),
    # mcts and vertical mcts
    "mcts-gas": lambda: found_by(gas(), "mcts", max_evaluations=20_000),
    "mcts-noise-0.1-sum": lambda: found_by(small_sum(0.1), "mcts", seed=1, max_evaluations=20_000),
    "mcts-coefficients": lambda: found_by(trigonometric_sum(), "mcts", grammar="coefficients", max_evaluations=20_000),
    "mcts-paper": lambda: found_by(gas(), "mcts", preset="paper", max_evaluations=20_000),
    "mcts-grammar-of-one-s-own": lambda: found_by(
        own(rate, [(0.1, 5.0), (0.1, 5.0), (0.5, 2.0)]), "mcts", grammar=RATES, max_evaluations=30_000
    ),
    "vsr-mcts-gas": lambda: found_by(gas(), "vsr-mcts", max_evaluations=30_000),
    "vsr-mcts-gas-schedule-x3-x2-x1-300-queries": lambda: found_by(
        gas(), "vsr-mcts", schedule="x3,x2,x1", max_queries=300, max_evaluations=30_000
    ),
    "vsr-mcts-coefficients": lambda: found_by(
        trigonometric_sum(), "vsr-mcts", grammar="coefficients", max_evaluations=30_000
    ),
    "vsr-mcts-noise-0.01-sum": lambda: found_by(small_sum(0.01), "vsr-mcts", max_evaluations=30_000),
    "vsr-mcts-noise-0.1-coefficients": lambda: found_by(
        middle_sum(0.1), "vsr-mcts", grammar="coefficients", max_evaluations=15_000
    ),
    "vsr-mcts-paper": lambda: found_by(gas(), "vsr-mcts", preset="paper", max_evaluations=10_000),
    "vsr-mcts-slotwise-gas": lambda: found_by(gas(), "vsr-mcts", expansion="slotwise", max_evaluations=50_000),
    "vsr-mcts-slotwise-300-queries": lambda: found_by(
        gas(), "vsr-mcts", expansion="slotwise", max_queries=300, max_evaluations=20_000
    ),
    "vsr-mcts-slotwise-noise-0.02-decay": lambda: found_by(
        decay(noise=0.02), "vsr-mcts", expansion="slotwise", max_evaluations=100_000
    ),
    # a user's own toolbox
    "ea-vertical-own-division": own_division,
    "ea-vertical-polynomials": own_polynomials,
    "ea-vertical-typed-set-in-noise": own_typed_set,
}
