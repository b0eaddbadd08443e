"""Oracles with flaws, made of a law: noise, outliers, gaps, errors of a solver, steps, and what no formula says.

Sizes are in units of the standard deviation of y over the domain unless a row says otherwise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import special

from deap_vsr.lab.oracle import CallableOracle, Noise
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.problems.laws import LEAST_EFFECT, effects
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree.operators import Array

Function = Callable[[Array], Array]

#: The answer that is an outlier, counted from 1, and by how much it is off.
OUTLIER, OUTLIER_SIZE = 30, 50.0
#: By how much y is larger within a step.
STEP_FACTOR = 1.5
MISSING = 0.03
SOLVER_ERROR = 1e-6
JITTER = 1e-14
DIGITS = 4


@dataclass(frozen=True)
class Case:
    """What a search is given, and what is true of it.

    ``law`` is None where no formula in the oracle's operators is right; ``wrong_share`` is the share of the domain in
    which the oracle does not follow the law.
    """

    oracle: CallableOracle
    law: Equation | None
    wrong_share: float = 0.0


@dataclass(frozen=True)
class Row:
    """A kind of flaw: what makes a case of a law and a seed, and how many points may be asked; None: any number."""

    name: str
    make: Callable[[Equation, int], Case]
    max_queries: int | None = None


def spread(law: Equation) -> float:
    """Return the standard deviation of a law's y over its domain."""
    return float(np.std(law.evaluate(draw_inputs(law.variables, 10_000, np.random.default_rng(0)))))


def _rng(law: Equation, seed: int) -> np.random.Generator:
    """Return a stream of one's own for a law and a seed; what is drawn from it is no noise of the oracle's."""
    return np.random.default_rng([seed, zlib.crc32(law.name.encode())])


def _oracle(law: Equation, seed: int, function: Function | None = None, noise: float = 0.0) -> CallableOracle:
    """Return an oracle that answers as `function` does, by default the law, in noise."""
    return CallableOracle(
        law.evaluate if function is None else function,
        law.variables,
        law.function_set,
        noise=Noise(noise, relative=True),
        spread=spread(law) if noise else None,
        seed=seed,
    )


# --- noise --------------------------------------------------------------------------------


def in_noise(law: Equation, seed: int, noise: float) -> Case:
    """Return the law in normal noise."""
    return Case(_oracle(law, seed, noise=noise), law)


def one_outlier(law: Equation, seed: int) -> Case:
    """Return the law in noise of 1 % whose 30th answer is far off."""
    asked, off = 0, OUTLIER_SIZE * spread(law)

    def answer(X: Array) -> Array:
        nonlocal asked
        y = law.evaluate(X)
        if asked < OUTLIER <= asked + len(y):
            y[OUTLIER - 1 - asked] += off
        asked += len(y)
        return y

    return Case(_oracle(law, seed, answer, 0.01), law)


def with_gaps(law: Equation, seed: int) -> Case:
    """Return the law in noise of 1 %, some answers being missing at random."""
    rng = _rng(law, seed)

    def answer(X: Array) -> Array:
        y = law.evaluate(X)
        return np.where(rng.random(len(y)) < MISSING, np.nan, y)

    return Case(_oracle(law, seed, answer, 0.01), law)


def of_the_reading(law: Equation, seed: int, size: float) -> Case:
    """Return the law with normal noise of a share of each answer."""
    rng = _rng(law, seed)

    def answer(X: Array) -> Array:
        y = law.evaluate(X)
        return y * (1.0 + size * rng.standard_normal(len(y)))

    return Case(_oracle(law, seed, answer), law)


# --- errors that are no noise -------------------------------------------------------------


def by_a_solver(law: Equation, seed: int) -> Case:
    """Return the law with a relative error that looks like noise, and is the same when it is asked again."""
    direction = _rng(law, seed).standard_normal(law.n_vars)
    low, high = np.array([v.bounds for v in law.variables]).T

    def answer(X: Array) -> Array:
        phase: Array = 1e6 * ((X - low) / (high - low) @ direction)
        return law.evaluate(X) * (1.0 + SOLVER_ERROR * np.sin(phase))

    return Case(_oracle(law, seed, answer), law)


def rounded(law: Equation, seed: int) -> Case:
    """Return the law with answers of so many significant digits."""
    return Case(
        _oracle(law, seed, lambda X: np.array([float(f"{value:.{DIGITS}g}") for value in law.evaluate(X)])), law
    )


def with_step(law: Equation, seed: int, share: float) -> Case:
    """Return the law, but for an interval of one variable with a share of its domain, in which y is larger."""
    rng = _rng(law, seed)
    column = int(rng.integers(law.n_vars))
    begin = float(rng.uniform(0.0, 1.0 - share))

    def answer(X: Array) -> Array:
        place = place_of(law.variables[column], X[:, column])
        inside = (begin <= place) & (place <= begin + share)
        return np.where(inside, STEP_FACTOR, 1.0) * law.evaluate(X)

    return Case(_oracle(law, seed, answer), law, share)


def place_of(variable: Variable, x: Array) -> Array:
    """Return the share of the values drawn that are smaller than x, from 0 to 1."""
    low, high = variable.low, variable.high
    if variable.sampling == "loguniform":
        return np.asarray(np.log(x / low) / np.log(high / low))
    return (x - low) / (high - low)


# --- no law, or many ----------------------------------------------------------------------


def _stairs(x: Array) -> Array:
    return np.where(x > 0.6, 2.0, 1.0)


#: Functions that the operators cannot say, with the range of their variable.
INEXPRESSIBLE: Sequence[tuple[Callable[[Array], Array], float, float]] = (
    (special.erf, 0.2, 2.0),
    (special.j0, 0.5, 8.0),
    (special.gamma, 0.6, 4.0),
    (_stairs, 0.1, 1.0),
)


def inexpressible(law: Equation, seed: int) -> Case:
    """Return a law, times a function of one more variable that the operators cannot say, in noise of 1 %."""
    function, low, high = INEXPRESSIBLE[int(_rng(law, seed).integers(len(INEXPRESSIBLE)))]
    name = f"x{law.n_vars + 1}"
    variables = (*law.variables, Variable(name, low, high, symbol=name))

    def answer(X: Array) -> Array:
        return law.evaluate(X[:, :-1]) * function(X[:, -1])

    y = answer(draw_inputs(variables, 10_000, np.random.default_rng(0)))
    noise = Noise(0.01, relative=True)
    oracle = CallableOracle(answer, variables, law.function_set, noise=noise, spread=float(np.std(y)), seed=seed)
    return Case(oracle, None)


def whole_numbers(law: Equation, seed: int) -> Case:
    """Return the law with a variable that is 1 or 2, or 0, 1 or 2, and nothing else: x**2 may as well be 3*x - 2.

    In random order, the first variable is taken that matters then; if none does, the one that does most.
    """
    rng = _rng(law, seed)
    choices = [(int(column), float(low)) for column in rng.permutation(law.n_vars) for low in rng.permutation(2)]
    laws = [_with_whole(law, column, low) for column, low in choices]
    sizes = [_effect(changed, column) for changed, (column, _) in zip(laws, choices, strict=True)]
    taken = next((i for i, size in enumerate(sizes) if size > LEAST_EFFECT), int(np.argmax(sizes)))
    column = choices[taken][0]

    def answer(X: Array) -> Array:
        return np.where(X[:, column] == np.round(X[:, column]), law.evaluate(X), np.nan)

    return Case(_oracle(laws[taken], seed, answer), law)


def _with_whole(law: Equation, column: int, low: float) -> Equation:
    variables = list(law.variables)
    variables[column] = replace(variables[column], low=low, high=3.0, sampling="integer")
    return replace(law, variables=tuple(variables))


def _effect(law: Equation, column: int) -> float:
    """Return how much a variable matters; -1 where y is not finite."""
    X, other = draw_inputs(law.variables, 400, np.random.default_rng(0)).reshape(2, 200, law.n_vars)
    finite = np.isfinite(law.evaluate(X)).all() and np.isfinite(law.evaluate(other)).all()
    return effects(law, X, other)[column] if finite else -1.0


# --- the rows -----------------------------------------------------------------------------

_IN_1_PERCENT = partial(in_noise, noise=0.01)

#: The rows by name, in the order of the table.
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("exact", partial(in_noise, noise=0.0)),
        Row("noise 0.1%", partial(in_noise, noise=0.001)),
        Row("noise 1%", _IN_1_PERCENT),
        Row("noise 1%, 300 points", _IN_1_PERCENT, 300),
        Row("noise 1%, 1000 points", _IN_1_PERCENT, 1000),
        Row("noise 1%, one outlier", one_outlier),
        Row("noise 1%, 3% missing", with_gaps),
        Row("solver error 1e-6", by_a_solver),
        Row("noise 1% of the reading", partial(of_the_reading, size=0.01)),
        Row("rounded to 4 digits", rounded),
        Row("jitter 1e-14", partial(of_the_reading, size=JITTER)),
        Row("step 1%", partial(with_step, share=0.01)),
        Row("step 5%", partial(with_step, share=0.05)),
        Row("step 10%", partial(with_step, share=0.1)),
        Row("inexpressible", inexpressible),
        Row("whole numbers", whole_numbers),
    )
}
