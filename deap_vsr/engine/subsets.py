"""Least squares on every small subset of columns, compiled.

Columns and y are in units of the tolerance of each point, so that a subset fits where the mean square of what it leaves
is at most a limit near 1. Subsets are walked depth first; the columns that are left are kept orthogonal to those chosen
(modified Gram-Schmidt), so that a subset costs one scalar product of the last column.
"""

from __future__ import annotations

import numpy as np

from deap_vsr.engine.jit import jit, jit_within
from deap_vsr.engine.kernels import copy
from deap_vsr.tree.operators import Array, Indices

#: A column that keeps less than this share of its square depends on those chosen before it.
_DEPENDENT = 1e-16


def find_subsets(
    A: Array,
    y: Array,
    counts: Indices,
    first_below: int,
    limits: Array,
    found: Indices,
    best: Indices,
    least: Array,
) -> tuple[int, int]:
    """Find subsets of the rows of `A` (n_atoms, n_points) whose sums fit `y`; the smallest size that has some.

    Parameters
    ----------
    counts : for each size 1, 2, ..., how many of the first atoms are looked at
    first_below : the first atom of a subset has a smaller index than this
    limits : for each size, the largest sum of squares that fits
    found : (max_found, max_size) array, filled with subsets, -1 behind their end
    best, least : (max_size, max_size) and (max_size,) arrays
        For each size the subset that leaves least, and the sum of squares that it leaves.

    Returns
    -------
    how many were found, and how many subsets were tried
    """
    return _walk_tables(A[None], y, counts, first_below, limits, found, best[None], least[None])


def scan_subsets(A: Array, y: Array, counts: Indices, first_below: int, best: Indices, least: Array) -> int:
    """Find the best subset of each size for each of many tables `A` (n_tables, n_atoms, n_points).

    `best` and `least` have one entry a table; returns how many subsets were tried.
    """
    nothing: Indices = np.empty((0, len(counts)), np.int64)
    return _walk_tables(A, y, counts, first_below, np.zeros(len(counts)), nothing, best, least)[1]


@jit
def _walk_tables(
    A: Array,
    y: Array,
    counts: Indices,
    first_below: int,
    limits: Array,
    found: Indices,
    best: Indices,
    least: Array,
) -> tuple[int, int]:
    """Walk the subsets of each of many tables; returns how many fit the last one, and how many were tried in all."""
    n_found, total = 0, 0
    for t in range(len(A)):
        n_found, tried = _walk(A[t], y, counts, first_below, limits, found, best[t], least[t])
        total += tried
    return n_found, total


@jit_within
def _walk(
    A: Array,
    y: Array,
    counts: Indices,
    first_below: int,
    limits: Array,
    found: Indices,
    best: Indices,
    least: Array,
) -> tuple[int, int]:
    n_atoms, n_points = A.shape
    max_size = len(counts)
    W = np.empty((max_size, n_atoms, n_points))
    R = np.empty((max_size, n_points))
    squares = np.empty(n_atoms)
    copy(y, R[0], n_points)
    for a in range(n_atoms):
        copy(A[a], W[0, a], n_points)
        squares[a] = _square(A[a])
    chosen = np.empty(max_size, np.int64)
    rest = np.empty(max_size)
    rest[0] = _square(y)
    n_found, tried = 0, 0
    least[:] = np.inf
    best[:] = -1
    for size in range(1, max_size + 1):
        at_best = np.inf
        n = min(counts[size - 1], n_atoms)
        level = 0
        chosen[0] = -1
        while level >= 0:
            chosen[level] += 1
            a = chosen[level]
            if a > n - (size - level) or (level == 0 and a >= first_below):
                level -= 1
                continue
            column = W[level, a]
            length = _square(column)
            if not length > _DEPENDENT * squares[a]:
                continue
            along = _dot(column, R[level]) / length
            if level < size - 1:
                _remove(R[level], column, along, R[level + 1])
                rest[level + 1] = _square(R[level + 1])
                for b in range(a + 1, n):
                    share = _dot(column, W[level, b]) / length
                    _remove(W[level, b], column, share, W[level + 1, b])
                chosen[level + 1] = a
                level += 1
                continue
            tried += 1
            left = rest[level] - along * along * length
            # The difference of two squares is good to some 13 digits: what seems to fit is looked at closely.
            if left <= max(limits[size - 1], 1e-12 * rest[level]) or left < 0.5 * at_best:
                left = 0.0
                for p in range(n_points):
                    left += (R[level, p] - along * column[p]) ** 2
            if left < at_best:
                at_best = left
                copy(chosen, best[size - 1], size)
            if left <= limits[size - 1] and n_found < len(found):
                found[n_found] = -1
                copy(chosen, found[n_found], size)
                n_found += 1
        least[size - 1] = at_best
        if n_found > 0:
            break
    return n_found, tried


@jit
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for p in range(len(a)):
        total += a[p] * b[p]
    return total


@jit
def _square(a: Array) -> float:
    return _dot(a, a)


@jit
def _remove(vector: Array, direction: Array, share: float, out: Array) -> None:
    for p in range(len(vector)):
        out[p] = vector[p] - share * direction[p]
