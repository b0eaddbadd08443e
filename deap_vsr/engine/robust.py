"""Fits that large residuals pull less: least absolute errors, and Huber's, by weights that follow the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, Points, fit
from deap_vsr.engine.program import evaluate
from deap_vsr.tree import Node
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import literals

#: How often weights are made anew. By trial: absolute errors of a line then are within 1e-4 of the least.
ROUNDS = 15
#: Residuals beyond so many standard deviations (by their median) count as far off; 95 % as precise as least squares.
HUBER = 1.345
#: Of the median, residuals count as at least so large for absolute errors: one that is 0 would have all the weight.
LEAST = 1e-3

KINDS = ("squares", "absolute", "robust")


def fit_by(errors: str, tree: Sequence[Node], trials: Sequence[Points] | Dataset, **how: Any) -> Fit:
    """Fit as :func:`deap_vsr.fit` does by least squares, or by "absolute" or "robust" (Huber's) errors.

    The errors of the outcome are normalised squares all the same.
    """
    data = Dataset.of(trials)
    found = fit(tree, data, **how)
    if errors == "squares" or not found.tree.n_constants:
        return found
    pset, evaluations = how.get("pset"), found.evaluations
    for _ in range(ROUNDS):
        factors = [_factors(found, k, data, errors, pset) for k in range(data.n_trials)]
        if any(factor is None for factor in factors):  # exact, or beyond help
            break
        reweighted = replace(data, weight=data.weight * np.sqrt(np.concatenate(factors)))  # type: ignore[arg-type]
        again = fit(found.tree, reweighted, **{**how, "starts": found.constants, "n_starts": 0})
        evaluations += again.evaluations
        if not np.isfinite(again.errors).all():
            break
        found = again
    left = [float(fit(literals(one), data.trial(k), pset=pset).errors[0]) for k, one in enumerate(found.trees)]
    return replace(found, errors=np.array(left), evaluations=evaluations + len(left))


def _factors(found: Fit, k: int, data: Dataset, errors: str, pset: Any) -> Array | None:
    """Return by how much the weights of trial k change, (n_points,); None where nothing is to be gained."""
    part = data.trial(k)
    with np.errstate(all="ignore"):
        size = np.abs(evaluate([found.trees[k]], part.columns.T, pset)[0] - part.y) * part.weight
    middle = float(np.median(size)) if len(size) else 0.0
    if not np.isfinite(size).all() or middle == 0.0:
        return None
    if errors == "absolute":
        return np.asarray(1.0 / np.maximum(size, LEAST * middle))
    return np.asarray(np.minimum(1.0, HUBER * 1.4826 * middle / np.maximum(size, 1e-300)))
