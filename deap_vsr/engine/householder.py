"""Pivoted Householder QR of small tall matrices, compiled.

A matrix is handed over as the list of its columns, each a contiguous row of an array.
"""

from __future__ import annotations

import math

import numpy as np

from deap_vsr.engine.jit import jit, jit_sums
from deap_vsr.tree.operators import Array, Indices


@jit_sums
def dot(a: Array, b: Array, start: int) -> float:
    """Return the inner product of a[start:] and b[start:]; rows are scaled, so squares are safe."""
    total = 0.0
    for p in range(start, len(a)):
        total += a[p] * b[p]
    return total


@jit
def norm(row: Array, start: int) -> float:
    """Return the Euclidean norm of row[start:]."""
    return math.sqrt(dot(row, row, start))


@jit
def reflect(v: Array, beta: float, row: Array, start: int) -> None:
    """Apply the Householder reflection of `v` (from `start` on) to `row`."""
    share = beta * dot(v, row, start)
    for p in range(start, len(row)):
        row[p] -= share * v[p]


@jit
def qr(
    rows: Array,
    tolerance: float,
    order: Indices,
    beta: Array,
    diagonal: Array,
    others: Array,
) -> int:
    """Pivoted Householder QR of the matrix whose *columns* are `rows`, in place.

    Columns are compared by the share of their norm that is left, so their scale does not matter.
    The reflections are applied to the rows of `others` as well. After it, column k (of the original
    index order[k]) holds R above the diagonal and the reflection from the diagonal on.
    Returns the rank.
    """
    n_rows, n = len(rows), rows.shape[1]
    first = np.empty(n_rows)
    for k in range(n_rows):
        order[k] = k
        first[k] = norm(rows[k], 0)
    for k in range(n_rows):
        best = -1
        share = tolerance
        if k < n:
            for j in range(k, n_rows):
                if first[j] > 0.0:
                    left_over = norm(rows[j], k) / first[j]
                    if left_over > share:
                        share = left_over
                        best = j
        if best < 0:
            return k
        if best != k:
            for p in range(n):
                swap = rows[k, p]
                rows[k, p] = rows[best, p]
                rows[best, p] = swap
            order[k], order[best] = order[best], order[k]
            first[k], first[best] = first[best], first[k]
        length = norm(rows[k], k)
        head = rows[k, k]
        diagonal[k] = -length if head >= 0 else length
        rows[k, k] = head - diagonal[k]
        beta[k] = 1.0 / (length * (length + abs(head)))
        for j in range(k + 1, n_rows):
            reflect(rows[k], beta[k], rows[j], k)
        for j in range(len(others)):
            reflect(rows[k], beta[k], others[j], k)
    return n_rows


@jit
def scaled_column(column: Array, weight: Array, out: Array) -> float:
    """Write ``factor * column * weight`` into `out`, its largest entry near 1; returns the factor.

    So that sums of squares neither vanish nor overflow, whatever the scale of x and y.
    """
    largest = 0.0
    for p in range(len(column)):
        out[p] = column[p] * weight[p]
        largest = max(largest, abs(out[p]))
    if largest == 0.0 or not math.isfinite(largest):
        return 1.0
    factor = math.ldexp(1.0, -min(1000, max(-1000, math.frexp(largest)[1])))
    for p in range(len(column)):
        out[p] *= factor
    return factor
