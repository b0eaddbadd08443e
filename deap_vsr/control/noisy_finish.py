"""The end of a search in noise: all data fitted together, what is not significant dropped, short numbers restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from deap_vsr.control.contract import Budget
from deap_vsr.control.finish import reopened
from deap_vsr.control.freezing import FreezeRule, criterion, squares
from deap_vsr.control.identify import dropped, identified
from deap_vsr.control.short import SIGNIFICANCE, restored, rounded
from deap_vsr.engine.fitting import Dataset, Fit, fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.operators import Array
from deap_vsr.simplify import fold, literals, without_neutral
from deap_vsr.tidy import with_differences
from deap_vsr.tree import Constant, MaskedTree

#: A constant of more standard errors is not tried without.
SIGNIFICANT = 8.0


@dataclass(frozen=True)
class Finished:
    """A formula as it is written in the end, the standard errors of its constants, and its criterion."""

    tree: MaskedTree
    standard_errors: tuple[float, ...] | None
    price: float


def left_in_noise(outcome: Fit, data: Dataset, noise: float) -> Array:
    """Return what a fit leaves in each trial: sums of squares in units of the noise."""
    return np.asarray(outcome.errors * squares(data) / noise**2)


def price_in_noise(outcome: Fit, data: Dataset, noise: float) -> float:
    """Return the criterion of a fit whose constants are fitted anew in each trial; infinite if it is not finite."""
    left = float(left_in_noise(outcome, data, noise).sum())
    price = criterion(left, outcome.constants.size, len(data.y), len(outcome.tree))
    return price if np.isfinite(price) else np.inf


def unlike(outcomes: Sequence[Fit]) -> list[Fit]:
    """Return the first of all fits that leave the same: exp(log(C*x)) is C*x."""
    kept: list[Fit] = []
    for outcome in outcomes:
        if not any(np.allclose(outcome.errors, other.errors, rtol=1e-6, atol=0.0) for other in kept):
            kept.append(outcome)
    return kept


def without_insignificant(outcome: Fit, data: Dataset, noise: float, budget: Budget) -> Fit:
    """Return the fit without terms that are not worth their constants, one after the other."""
    while True:
        with np.errstate(all="ignore"):
            weak = np.flatnonzero((np.abs(outcome.constants) <= SIGNIFICANT * outcome.standard_errors).all(axis=0))
        best = outcome
        for i in weak:
            shorter = dropped(outcome, np.arange(outcome.tree.n_constants) == i)
            if shorter is None:
                continue
            again = fit(shorter[0], data, starts=shorter[1], n_starts=0)
            budget.count(again.evaluations)
            if price_in_noise(again, data, noise) < price_in_noise(best, data, noise):
                best = again
        if best is outcome:
            return outcome
        outcome = best


def finished_in_noise(
    tree: MaskedTree, data: Dataset, function_set: tuple[str, ...], noise: float, budget: Budget
) -> Finished:
    """Return the formula with its constants fitted together to all `data` (one trial) and shortly written."""
    outcome = fit(reopened(tree), data, n_starts=0)
    budget.count(outcome.evaluations)
    if not outcome.determined.all():
        outcome, spent = identified(outcome, data, function_set, FreezeRule(), noise)
        budget.count(spent)
    outcome = without_insignificant(outcome, data, noise, budget)
    price = price_in_noise(outcome, data, noise)
    if not outcome.determined.all() or not np.isfinite(price):
        return Finished(literals(outcome.trees[0]), None, price)
    freedom = max(len(data.y) - int(outcome.ranks[0]), 1)
    left = float(left_in_noise(outcome, data, noise)[0])
    errors = outcome.standard_errors[0] / np.sqrt(left / freedom)  # for the noise that is known
    written = literals(outcome.tree.with_constants(_short(outcome, data, noise, errors, budget)))
    known = [
        error for node, error in zip(_numbers(written), _all_errors(outcome, errors), strict=True) if _counts(node)
    ]
    return Finished(_written(written, function_set), tuple(float(e) for e in known), price)


def _short(outcome: Fit, data: Dataset, noise: float, errors: Array, budget: Budget) -> Array:
    """Return the constants with short numbers restored, if the formula with them leaves no more than chance allows."""
    values = outcome.constants[0]
    unit = spread(data.y, data.weight)
    residuals, J = residual_model(outcome.tree, encoder(None).encode([outcome.tree]), data, None)(values)
    budget.count(1)
    A = J * unit
    straight = values @ A - residuals * unit  # as if the formula were linear in its constants, which it is nearby
    plain = np.array([rounded(float(v), float(e)) for v, e in zip(values, errors, strict=True)])
    short = restored(A, straight, noise, values, errors)
    least = float(np.sum((residuals * unit) ** 2))
    with np.errstate(all="ignore"):
        there = outcome.tree.with_constants(short).evaluate(data.columns.T)
        grown = (float(np.sum((there - data.y) ** 2)) - least) / noise**2
    n_short = int(np.sum(short != plain))
    return short if grown <= chdtri(max(n_short, 1), SIGNIFICANCE) + 1.0 else plain


def _written(tree: MaskedTree, function_set: Sequence[str]) -> MaskedTree:
    """Return the formula as one would write it, where that leaves its constants in order, as their errors are."""
    tidy = with_differences(without_neutral(fold(tree)), function_set)
    sizes = [[abs(node.value) for node in _numbers(which) if _counts(node)] for which in (tree, tidy)]
    return tidy if sizes[0] == sizes[1] else tree


def _numbers(tree: MaskedTree) -> list[Constant]:
    return [node for node in tree if isinstance(node, Constant)]


def _counts(node: Constant) -> bool:
    """Whether a number is a constant of the formula: 1 and -1 are none."""
    return bool(abs(node.value) != 1.0)


def _all_errors(outcome: Fit, errors: Array) -> list[float]:
    """Return the standard errors of all constants of the tree in prefix order; of those not fitted 0."""
    fitted = dict(zip(outcome.tree.open_constants, errors.tolist(), strict=True))
    return [fitted.get(i, 0.0) for i, node in enumerate(outcome.tree) if isinstance(node, Constant)]
