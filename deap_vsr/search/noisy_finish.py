"""The end of a search in noise: all data fitted together, what is not significant dropped, short numbers restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, Fit, fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import sample_trials
from deap_vsr.search.contract import Budget
from deap_vsr.search.criterion import criterion, left_in_noise, price_in_noise, pruned
from deap_vsr.search.finish import reopened
from deap_vsr.search.freezing import FreezeRule
from deap_vsr.search.identify import identified
from deap_vsr.search.short import SIGNIFICANCE, restored, rounded, short_in_noise
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import fold, literals, structural_hash, without_neutral
from deap_vsr.tree.tidy import with_differences


@dataclass(frozen=True)
class Finished:
    """A formula as it is written in the end, the standard errors of its constants, and its criterion."""

    tree: MaskedTree
    standard_errors: tuple[float, ...] | None
    price: float


def finished_in_noise(
    tree: MaskedTree, data: Dataset, function_set: tuple[str, ...], noise: float, budget: Budget
) -> Finished:
    """Return the formula with its constants fitted together to all `data` (one trial) and shortly written."""
    outcome = fit(reopened(tree), data, n_starts=0)
    budget.count(outcome.evaluations)
    if not outcome.determined.all():
        outcome, spent = identified(outcome, data, function_set, FreezeRule(), noise)
        budget.count(spent)
    outcome = pruned(outcome, data, noise, function_set, budget)
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


def better_in_noise(
    trees: Sequence[MaskedTree],
    oracle: Oracle,
    noise: float,
    budget: Budget,
    rng: np.random.Generator,
    n_points: int = 1000,
) -> int:
    """Return which finished formula is best on fresh data: by what it leaves, its constants and its length.

    The first, if the others are the same terms in brackets, or there are too few points to tell.
    """
    sums = [expand(literals(tree), oracle.function_set) for tree in trees]
    if None not in sums and len({structural_hash(tree) for tree in sums if tree is not None}) == 1:
        return 0
    n_points = int(min(n_points, budget.queries_left()))
    if n_points < 200:
        return 0
    try:
        data = Dataset.of(sample_trials(oracle, range(len(oracle.variables)), 1, n_points, rng))
    except (NoValuesError, OutOfQueriesError):
        return 0
    prices = []
    for tree in trees:
        outcome = fit(literals(tree), data)
        budget.count(outcome.evaluations)
        left = float(left_in_noise(outcome, data, noise).sum())
        prices.append(criterion(left, reopened(tree), sum(map(_counts, _numbers(tree))), n_points))
    return int(np.argmin(prices))


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
    n_short = sum(short_in_noise(v, e) == s for v, e, s in zip(values.tolist(), errors.tolist(), short, strict=True))
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
