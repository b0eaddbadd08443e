"""The end of a search: constants refitted together and shortened, the formula checked on fresh and on wider data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.errors import NoValuesError
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import draw_inputs, sample_trials
from deap_vsr.problems.equation import Variable
from deap_vsr.search.contract import Budget
from deap_vsr.search.freezing import FreezeRule, fits
from deap_vsr.search.identify import hidden_by_rounding, without_idle_terms
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import fold, literals, without_neutral
from deap_vsr.tree.tidy import with_differences, with_squares

#: When a formula is exact, on fresh data.
EXACT = FreezeRule(error=1e-18)
#: A short number is within so many standard errors.
ROOM = 20.0


def finished(tree: MaskedTree, oracle: Oracle, budget: Budget, rng: np.random.Generator) -> MaskedTree | None:
    """Return the formula with its constants refitted together and shortly written; None if it does not fit."""
    skeleton = reopened(tree)
    n_points = 2 * skeleton.n_constants + 8
    try:
        (trial,) = sample_trials(oracle, range(len(oracle.variables)), 1, n_points, rng)
    except NoValuesError:
        return None
    data = Dataset.of([replace(trial, weights=relative_weights(trial.y))])
    outcome = fit(skeleton, data, n_starts=0)
    budget.count(outcome.evaluations)
    standing = replace(outcome, constants=np.array([skeleton.constants]).reshape(1, -1))
    found: MaskedTree | None = None
    for which in (outcome, standing):  # terms that are rounding once all are fitted together, or as they stand
        found = found or _without_rounding(which, data, budget)
    if found is None and outcome.determined.all() and fits(outcome, data, EXACT):
        found = shortened(outcome, data, budget)
    if found is None:  # what the data do not determine stays as it is, but for the last digits
        kept = fit(literals(tree), data)
        budget.count(kept.evaluations)
        unknown = np.full(standing.constants.shape, np.inf)
        if fits(kept, data, EXACT):
            found = shortened(replace(standing, errors=kept.errors, standard_errors=unknown), data, budget)
    return None if found is None else _written(found, data, oracle.function_set, budget)


def reopened(tree: MaskedTree) -> MaskedTree:
    """Return the tree with its constants open again, those that were frozen too; 1 and -1 stay what they are."""
    return MaskedTree(
        Constant(node.value, True, True, node.ret)
        if isinstance(node, Constant) and (node.fitted or abs(node.value) != 1.0)
        else node
        for node in tree
    )


def _without_rounding(outcome: Fit, data: Dataset, budget: Budget) -> MaskedTree | None:
    """Return the formula without terms that are rounding, if it fits, with short numbers or as it is; else None.

    Beside y of 1e9 no fitted constant may be exact enough, and a short one is.
    """
    shorter = without_idle_terms(outcome, data)
    if shorter is None:
        return None
    literal = literals(shorter[0].with_constants(shorter[1][0]))
    again = fit(shorter[0], data, starts=shorter[1], n_starts=0)
    budget.count(again.evaluations + 2)
    candidates = [literal]
    if again.determined.all() and np.isfinite(again.errors[0]):
        candidates.insert(0, shortened(again, data, budget))
    return next((tree for tree in candidates if fits(fit(tree, data), data, EXACT)), None)


def _written(tree: MaskedTree, data: Dataset, function_set: Sequence[str], budget: Budget) -> MaskedTree:
    """Return the formula with differences and squares as one would write them, if that fits as well."""
    budget.count(1)
    tidy = with_differences(with_squares(tree, function_set), function_set)
    return tidy if fits(fit(tidy, data), data, EXACT) else tree


def relative_weights(y: Array) -> Array | None:
    """Return weights that make errors count relative to y, where exact y of one sign spans some decades; else None.

    Least squares would not see the small ones, and what only they tell would be lost to rounding.
    """
    size = np.abs(y)
    if not len(y) or not ((y > 0).all() or (y < 0).all()) or size.max() < 1e3 * size.min():
        return None
    return np.asarray((size.max() / np.maximum(size, 1e-12 * size.max())) ** 2)


def shortened(outcome: Fit, data: Dataset, budget: Budget) -> MaskedTree:
    """Return the fitted formula with each number at as few digits as its standard error and the data allow.

    All numbers are shortened at once; where that does not fit, one after the other, each that does staying short.
    """
    full = outcome.constants[0]
    # Where y is rounded to the same numbers, residuals of nothing do not mean that a constant is known so well.
    errors = np.maximum(outcome.standard_errors[0], hidden_by_rounding(outcome, data) / ROOM)
    short = np.array([short_number(v, e) for v, e in zip(full, errors, strict=True)])
    tree = outcome.tree
    allowed = max(EXACT.error * 1e-6, 4.0 * float(outcome.errors[0]))

    def error(values: Array) -> float:
        budget.count(1)
        return float(fit(literals(tree.with_constants(values)), data).errors[0])

    if error(short) <= allowed:
        return without_neutral(fold(literals(tree.with_constants(short))))
    values = full.copy()
    for i in range(len(values)):
        trial = values.copy()
        trial[i] = short[i]
        if error(trial) <= allowed:
            values = trial
    return without_neutral(fold(literals(tree.with_constants(values))))


def short_number(value: float, error: float) -> float:
    """Return the number of fewest digits within the uncertainty of `value`; itself if that takes more than 10."""
    room = max(ROOM * error, 1e-11 * abs(value)) if np.isfinite(error) else 1e-11 * abs(value)
    for digits in range(1, 11):
        candidate = float(f"{value:.{digits - 1}e}")
        if abs(candidate - value) <= room:
            return candidate
    return float(value)


def accepted(tree: MaskedTree, oracle: Oracle, budget: Budget, rng: np.random.Generator, n_points: int = 24) -> bool:
    """Whether the formula, its constants as they are, holds on fresh data and, where it can be asked, outside.

    A surrogate may do as well as the law on the domain; it hardly does outside.
    """
    everything = range(len(oracle.variables))
    try:
        (inside,) = sample_trials(oracle, everything, 1, n_points, rng)
    except NoValuesError:
        return False
    data = Dataset.of([inside])
    if not fits(fit(tree, data), data, EXACT):
        return False
    wider = [_wider(v, limits) for v, limits in zip(oracle.variables, oracle.limits, strict=True)]
    budget.count(2)
    X = draw_inputs(wider, n_points, rng)
    y = oracle.evaluate(X)
    good = np.isfinite(y)
    if good.sum() < 8:
        return True
    prediction = tree.evaluate(X[good])
    with np.errstate(all="ignore"):
        agrees = np.abs(prediction - y[good]) <= 1e-7 * np.abs(y[good]) + 1e-9 * np.median(np.abs(y[good]))
    return bool(agrees.mean() >= 0.9)


def _wider(variable: Variable, limits: tuple[float, float]) -> Variable:
    """Return the variable with a range half as wide again, within what the oracle answers."""
    if variable.sampling == "integer":
        return variable
    if variable.sampling == "loguniform":
        grow = (variable.high / variable.low) ** 0.25
        low, high = variable.low / grow, variable.high * grow
    else:
        grow = 0.25 * (variable.high - variable.low)
        low, high = variable.low - (grow if variable.sign == "as_range" else 0.0), variable.high + grow
    if variable.sign == "both":
        high = min(high, limits[1], -limits[0])
    else:
        low, high = max(low, limits[0]), min(high, limits[1])
    return replace(variable, low=low, high=high) if low < high else variable
