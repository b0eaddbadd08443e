"""Typing errors before there is a formula: a decimal point or a sign that its neighbours do not confirm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.campaign.replay import Answer, places
from deap_vsr.campaign.setup import Setup
from deap_vsr.tree.operators import Array

#: A slip of the decimal point is a power of ten to within this, in decades: a factor of 1.4 either way.
NEAR = 0.15
#: Rows that the model must be so much better at than at the one that is pointed out: in the middle, by this factor.
CLEARLY = 8.0
#: Rows beyond as many as the model has numbers.
SPARE = 4
RIDGE = 1e-6


def slips(answers: Sequence[Answer], setup: Setup) -> list[str]:
    """Return what looks like a slip of a decimal point or a sign, one row at the most.

    A smooth model of the logarithm of y, of degree 2 in each variable, is fitted without each row in turn.
    """
    good = [one for one in answers if np.isfinite(one.y) and one.y != 0.0]
    if len(good) < 2 * len(setup.variables) + 1 + SPARE:
        return []
    y = np.array([one.y for one in good])
    signs = np.sign(y)
    odd = np.flatnonzero(signs != np.sign(signs.sum()))
    if len(odd) == 1 and abs(signs.sum()) >= SPARE:
        return [f"id {good[odd[0]].id or '-'}: {y[odd[0]]:g} has another sign than all others; the sign?"]
    basis = _basis(np.array([one.x for one in good]), setup)
    off = np.array([_off(basis, np.log10(np.abs(y)), i) for i in range(len(y))])
    worst = int(np.argmax(np.abs(off)))
    power = round(float(off[worst]))
    usual = float(np.median(np.abs(off)))
    if not power or abs(off[worst] - power) > NEAR or abs(off[worst]) < CLEARLY * usual:
        return []
    times = f"{10**power:g} times" if power > 0 else f"{10**-power:g}th of"
    return [f"id {good[worst].id or '-'}: {y[worst]:g} is about {times} what its neighbours say; the decimal point?"]


def _off(basis: Array, target: Array, i: int) -> float:
    """Return how far a row is off what the others say, in decades."""
    others = np.arange(len(target)) != i
    B, t = basis[others], target[others]
    coefficients = np.linalg.solve(B.T @ B + RIDGE * len(t) * np.eye(B.shape[1]), B.T @ t)
    return float(target[i] - basis[i] @ coefficients)


def _basis(X: Array, setup: Setup) -> Array:
    """Return 1, places of the variables, and their squares: (n, 1 + 2m)."""
    at = places(X, setup)
    return np.column_stack([np.ones(len(X)), at, at**2])
