"""Linear algebra that never fails: where numbers overflow, or nothing converges, there is no solution."""

from __future__ import annotations

import numpy as np

from deap_vsr.tree.operators import Array


def solved(A: Array, z: Array, rcond: float | None = None) -> Array:
    """Return the x that makes ``A @ x`` closest to `z`, (n,) or (n, k); NaN where there is none.

    Parameters
    ----------
    A : array of shape (n_points, n)
    z : array of shape (n_points,) or (n_points, k)
    rcond : singular values that are smaller, by the largest, count as nought
    """
    nothing = np.full((A.shape[1], *z.shape[1:]), np.nan)
    if not (np.isfinite(A).all() and np.isfinite(z).all()):
        return nothing
    try:
        return np.asarray(np.linalg.lstsq(A, z, rcond=rcond)[0])
    except np.linalg.LinAlgError:
        return nothing


def null_vector(A: Array) -> Array:
    """Return the unit vector x, (n,), for which ``A @ x`` is smallest; NaN where there is none."""
    try:
        return np.asarray(np.linalg.svd(A)[2][-1])
    except np.linalg.LinAlgError:
        return np.full(A.shape[1], np.nan)
