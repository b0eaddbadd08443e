"""Signs and turns that the data cannot tell: sin(C*x) before C, and (C + C*x)**2, are the same with other signs.

So is C*sin(C + C*x) with half a turn more and the other sign before it. Each cell of a table is fitted by itself and
may come out with either. A table that jumps is noise; so it is taken as it goes on from the cells before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deap_vsr.lab.lab import Lab
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

#: Signs of so many constants at most are changed together, among so many; at so many points values are compared.
TOGETHER, AMONG, N_POINTS = 3, 6, 20
#: Values are the same if they differ by no more, relative to the largest: rounding, and some decades.
SAME = 1e-10
#: Functions of a turn, and what values with another turn may differ by: a phase of some turns has lost digits.
WAVES, SAME_TURN = frozenset({"sin", "cos", "tan"}), 1e-8
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


@dataclass(frozen=True)
class Turn:
    """A constant that may be larger by ``size`` where the signs of ``flips`` change: the formula stays the same."""

    column: int
    size: float
    flips: tuple[int, ...] = ()


def turns(tree: MaskedTree, X: Array, lab: Lab) -> list[Turn]:
    """Return which open constants are phases, half or whole turns of which say nothing."""
    constants = np.array(tree.constants)
    count = len(constants)
    if not 0 < count <= AMONG or not any(node.name in WAVES for node in tree):
        return []
    some = X[np.linspace(0, len(X) - 1, N_POINTS).astype(int)]

    def values(at: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(tree.with_constants(at).evaluate(some, lab.pset))

    here = values(constants)
    if not np.isfinite(here).all() or not here.any():
        return []
    found = []
    for column in range(count):
        one = np.arange(count) == column
        if np.allclose(values(constants + MOVED * one), here, rtol=MOVED * SAME_TURN, atol=0.0):
            continue  # it does nothing
        others = [(np.pi, (other,)) for other in range(count) if other != column]
        for size, flips in ((np.pi, ()), *others, (2.0 * np.pi, ())):
            signs = np.ones(count)
            signs[list(flips)] = -1.0
            if np.abs(values(constants * signs + size * one) - here).max() <= SAME_TURN * np.abs(here).max():
                found.append(Turn(column, size, flips))
                break
    return found


def with_one_branch(slots: Array, sets: Sequence[Sequence[int]], phases: Sequence[Turn]) -> Array:
    """Return slots, (K, J, L), each cell with the signs and turns with which it goes on from the two cells before it.

    The first cell of a setting is taken as it is nearest to that of the first setting: a real constant is the same in
    all.
    """
    if not phases:
        return with_one_sign(slots, sets)
    slots = slots.copy()
    first: Array | None = None
    for row in slots:
        known: list[Array] = []
        for j in range(len(row)):
            if not np.isfinite(row[j]).all():
                continue
            ahead = first if not known else known[-1] if len(known) < 2 else 2.0 * known[-1] - known[-2]
            if ahead is not None:
                size = _size([*known, ahead])
                off = [np.sum(((other - ahead) / size) ** 2) for other in _variants(row[j], ahead, sets, phases)]
                row[j] = list(_variants(row[j], ahead, sets, phases))[int(np.argmin(off))]
            known.append(row[j].copy())
            first = known[0] if first is None else first
    return slots


def _variants(here: Array, ahead: Array, sets: Sequence[Sequence[int]], phases: Sequence[Turn]) -> Iterator[Array]:
    """Yield what says the same as the constants of a cell, each with the turns that are nearest to what is ahead."""
    for chosen in ((), *sets):
        other = here.copy()
        other[list(chosen)] *= -1.0
        for turn in phases:
            count = round(float((ahead[turn.column] - other[turn.column]) / turn.size))
            for more in (0, 1, -1) if turn.flips else (0,):
                turned = other.copy()
                turned[turn.column] += (count + more) * turn.size
                if (count + more) % 2:
                    turned[list(turn.flips)] *= -1.0
                yield turned


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
