"""Signs that the data cannot tell: sin(C*x) before C, and (C + C*x)**2, are the same with other signs.

Each cell of a table is fitted by itself and may come out with either. A table in which the sign jumps is noise; so it
is taken as it goes on from the cells before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from deap_vsr.lab.lab import Lab
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

#: Signs of so many constants at most are changed together, among so many; at so many points values are compared.
TOGETHER, AMONG, N_POINTS = 3, 6, 20
#: Values are the same if they differ by no more, relative to the largest: rounding, and some decades.
SAME = 1e-10
#: A constant does nothing if the values are the same with it by such a share larger.
MOVED = 0.1


def symmetries(tree: MaskedTree, X: Array, lab: Lab) -> list[list[int]]:
    """Return the sets of open constants whose signs can be changed together, and the formula stays the same.

    Parameters
    ----------
    X : points at which values are compared, of which some are taken
    """
    constants = np.array(tree.constants)
    if not 0 < len(constants) <= AMONG:
        return []
    some = X[np.linspace(0, len(X) - 1, N_POINTS).astype(int)]

    def values(factors: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(tree.with_constants(constants * factors).evaluate(some, lab.pset))

    def same(one: Array, other: Array) -> bool:
        good = np.isfinite(one)
        with np.errstate(all="ignore"):  # where one is no number they differ
            return bool((np.abs(other[good] - one[good]) <= SAME * np.max(np.abs(one[good]), initial=0.0)).all())

    ones = np.ones(len(constants))
    here = values(ones)
    if not np.isfinite(here).any():
        return []
    # The sign of what does nothing tells nothing: a constant that is nought, or before exp(-40*x).
    idle = {i for i in range(len(constants)) if same(here, values(ones + MOVED * (np.arange(len(ones)) == i)))}
    found: list[list[int]] = []
    for size in range(1, min(TOGETHER, len(constants)) + 1):
        for chosen in combinations(range(len(constants)), size):
            if idle & set(chosen) or any(set(known) <= set(chosen) for known in found):
                continue
            signs = np.ones(len(constants))
            signs[list(chosen)] = -1.0
            if same(here, values(signs)):
                found.append(list(chosen))
    return found


def with_one_sign(slots: Array, sets: Sequence[Sequence[int]]) -> Array:
    """Return slots, (K, J, L), each cell with the signs with which it goes on from the two cells before it."""
    slots = slots.copy()
    for chosen in sets:
        columns = list(chosen)
        for row in slots:
            known: list[Array] = []
            for j in range(len(row)):
                here = row[j, columns]
                if not np.isfinite(here).all():
                    continue
                if known:
                    ahead = known[-1] if len(known) < 2 else 2.0 * known[-1] - known[-2]
                    if np.sum(((-here - ahead) / _size(known)) ** 2) < np.sum(((here - ahead) / _size(known)) ** 2):
                        row[j, columns] = here = -here
                known.append(here)
    return slots


def _size(known: Sequence[Array]) -> Array:
    """Return how large the constants are that were seen: each counts as much as another."""
    return np.asarray(np.maximum(np.max(np.abs(known), axis=0), 1e-300))
