"""What regressors that fit many formulas share: going on with what promises something, and fits in a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.engine.program import as_columns
from deap_vsr.search.checkpoint import tree_from, tree_state

#: The arrays of a fit.
_ARRAYS = ("errors", "constants", "standard_errors", "determined", "ranks")


def fitted_on(outcome: Fit, data: Dataset, best: Fit | None) -> Fit:
    """Return a fit itself, or, where it was cut short and promises something, what more iterations make of it.

    It promises something if its error is less than ten times that of the `best` so far.
    """
    promising = best is None or outcome.error < 10.0 * best.error
    if not promising or "iterations" not in outcome.stopped:
        return outcome
    more = fit(outcome.tree, data, starts=outcome.constants, n_starts=1)
    better = more if more.error < outcome.error else outcome
    return replace(better, evaluations=outcome.evaluations + more.evaluations)


def fit_state(outcome: Fit | None) -> dict[str, Any] | None:
    """Return a fit as JSON values; :func:`fit_from` reads it."""
    if outcome is None:
        return None
    arrays = {name: getattr(outcome, name) for name in _ARRAYS}
    shape = outcome.constants.shape
    return arrays | {"tree": tree_state(outcome.tree), "shape": shape, "stopped": outcome.stopped}


def fit_from(state: dict[str, Any] | None) -> Fit | None:
    """Return the fit that :func:`fit_state` wrote."""
    if state is None:
        return None
    errors, constants, uncertain, determined, ranks = (np.array(state[name]) for name in _ARRAYS)
    shape = tuple(state["shape"])
    parts = (constants.reshape(shape), uncertain.reshape(shape), determined.reshape(shape).astype(bool), ranks)
    return Fit(tree_from(state["tree"]), errors, *parts, 0, tuple(state["stopped"]))


def data_state(data: Dataset) -> dict[str, Any]:
    """Return the data of a task as JSON values; :func:`data_from` reads it."""
    return {"X": data.columns.T, "y": data.y, "weight": data.weight, "offsets": data.offsets}


def data_from(state: dict[str, Any]) -> Dataset:
    """Return the data that :func:`data_state` wrote."""
    X, y, weight, offsets = (np.array(state[key]) for key in ("X", "y", "weight", "offsets"))
    return Dataset(as_columns(X, 0), y, weight, offsets)
