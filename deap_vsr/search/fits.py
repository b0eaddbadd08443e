"""What regressors that fit many formulas share: going on with what promises something, and fits in a checkpoint."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.search.checkpoint import expect, tree_from, tree_state
from deap_vsr.search.schema import FitState

#: Evaluations that a fit takes at the most, about.
MANY = 100

#: The arrays of a fit.
_ARRAYS = ("errors", "constants", "standard_errors", "determined", "ranks")


def fitted_on(outcome: Fit, data: Dataset, best: Fit | None, left: float = math.inf) -> Fit:
    """Return a fit itself, or, where it was cut short and promises something, what more iterations make of it.

    It promises something if its error is less than ten times that of the `best` so far. Where few evaluations are
    `left` they are not spent on it: it may take all there are.
    """
    promising = best is None or outcome.error < 10.0 * best.error
    if left < 4 * MANY or not promising or "iterations" not in outcome.stopped:
        return outcome
    more = fit(outcome.tree, data, starts=outcome.constants, n_starts=1)
    better = more if more.error < outcome.error else outcome
    return replace(better, evaluations=outcome.evaluations + more.evaluations)


def fit_state(outcome: Fit | None) -> dict[str, Any] | None:
    """Return a fit as JSON values; :func:`fit_from` reads it."""
    if outcome is None:
        return None
    arrays = {name: getattr(outcome, name) for name in _ARRAYS}
    return arrays | {"tree": tree_state(outcome.tree), "stopped": outcome.stopped}


def fit_from(state: FitState | None) -> Fit | None:
    """Return the fit that :func:`fit_state` wrote."""
    if state is None:
        return None
    tree = tree_from(state["tree"])
    shape = len(state["errors"]), tree.n_constants
    errors, ranks = np.array(state["errors"], float), np.array(state["ranks"], np.int64)
    constants, uncertain = (np.array(state[name], float).reshape(shape) for name in ("constants", "standard_errors"))
    determined = np.array(state["determined"], bool).reshape(shape)
    expect(shape[0] > 0 and len(ranks) == len(state["stopped"]) == shape[0], "a rank and a reason for each trial")
    return Fit(tree, errors, constants, uncertain, determined, ranks, 0, tuple(state["stopped"]))


def data_state(data: Dataset) -> dict[str, Any]:
    """Return the data of a task as JSON values; :func:`deap_vsr.search.checkpoint.data_from` reads it."""
    return {"X": data.columns.T, "y": data.y, "weight": data.weight, "offsets": data.offsets}
