"""Outliers: answers that asking again does not confirm. They are counted, listed, and left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.look import neighbours_of
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

#: An answer that is off by so many standard deviations is asked again: of a million by chance none is.
SUSPECT = 6.0
#: So many of the answers, or so many in all, may be asked again: where more are off, the formula is to blame.
MOST, SHARE = 3, 0.01


def without_outliers(tree: MaskedTree, trial: Trial, lab: Lab) -> Trial | None:
    """Return a trial without the answers far off `tree`, constants as they are, that others do not confirm.

    Each is asked again, twice; an oracle that repeats itself is asked a hair beside. None if there are no outliers, or
    if so many answers are off that it is the formula that is wrong.
    """
    if lab.evidence.certain:
        return None
    off = _off(tree, trial.X, trial.y, lab) * _roots(trial)
    suspects = np.flatnonzero(~(np.abs(off) <= SUSPECT))
    if not len(suspects) or len(suspects) > max(MOST, SHARE * len(trial.y)):
        return None
    X = np.repeat(trial.X[suspects], 2, axis=0)
    if lab.repeats:
        X = neighbours_of(X, lab)
    try:
        again = lab.ask(X, again=True)
    except OutOfQueriesError:
        return None
    beside = (_off(tree, X, again, lab) * np.repeat(_roots(trial)[suspects], 2)).reshape(-1, 2)
    with np.errstate(all="ignore"):
        agree = np.abs(beside[:, 0] - beside[:, 1]) <= SUSPECT
        gone = agree & (np.abs(beside.mean(axis=1) - off[suspects]) > SUSPECT)
    if not gone.any():
        return None
    bad = suspects[gone]
    lab.log.leave_out(trial.X[bad], trial.y[bad] * lab.scale)
    keep = np.ones(len(trial.y), bool)
    keep[bad] = False
    return replace(
        trial, X=trial.X[keep], y=trial.y[keep], weights=None if trial.weights is None else trial.weights[keep]
    )


def _off(tree: MaskedTree, X: Array, y: Array, lab: Lab) -> Array:
    """Return how far answers are off a formula, in units of the noise of an answer of weight 1."""
    with np.errstate(all="ignore"):
        return np.asarray((y - tree.evaluate(X, lab.pset)) / lab.evidence.noise)


def _roots(trial: Trial) -> Array:
    """Return the roots of the weights of a trial."""
    return np.ones(len(trial.y)) if trial.weights is None else np.sqrt(trial.weights)
