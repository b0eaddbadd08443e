"""The noise floor of a table: what rows of one setting, or neighbours, say of how far any formula could go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from deap_vsr.lab.table import TableOracle
from deap_vsr.table.rows import Rows
from deap_vsr.tree.operators import Array

#: Rows that are looked at, neighbours of each, and the fewest rows that tell anything.
ROWS, NEIGHBOURS, FEWEST = 3000, 8, 20
#: What is left is no noise if neighbours agree in it by so many standard errors: one table in some thousands by chance.
AGREE = 4.0


@dataclass(frozen=True)
class Floor:
    """The standard deviation of the noise, how it is known (repeats, neighbours, nothing), and a bound from above.

    Neighbours differ by the law as well as by noise, so that by them the noise is at most ``bound``.
    """

    noise: float
    bound: float
    known_by: str


def noise_floor(rows: Rows) -> Floor:
    """Return the noise floor, by repeats or, else, by neighbours: the half squared difference at no distance."""
    spread = float(np.std(rows.y))
    columns = list(rows.columns)
    if rows.n_rows < FEWEST or not columns or spread == 0.0:
        return Floor(0.0, spread, "nothing")
    repeats = TableOracle(rows.X[:, columns], rows.y, weights=rows.weights).tolerance
    if repeats is not None:
        freedom = max(rows.n_rows - len(np.unique(rows.X[:, columns], axis=0)), 1)
        return Floor(repeats, repeats * (1.0 + 2.5 / np.sqrt(2.0 * freedom)), "repeats")
    part = rows.part(np.linspace(0, rows.n_rows - 1, min(ROWS, rows.n_rows)).astype(int))
    distance, squares = neighbours(part.X[:, columns], part.y)
    slope, intercept = np.polyfit(distance, squares, 1)
    first = float(squares[0])
    noise = float(np.sqrt(max(intercept, 0.0))) if slope > 0 else float(np.sqrt(max(first, 0.0)))
    return Floor(min(noise, spread), min(max(float(np.sqrt(first)), noise), spread), "neighbours")


def neighbours(X: Array, values: Array) -> tuple[Array, Array]:
    """Return, for each rank of neighbour, the mean squared distance and the mean half squared difference."""
    units = np.std(X, axis=0)
    k = min(NEIGHBOURS, len(X) - 1)
    distance, index = cKDTree(X / np.where(units > 0, units, 1.0)).query(X / np.where(units > 0, units, 1.0), k + 1)
    half = 0.5 * (values[index[:, 1:]] - values[:, None]) ** 2
    return np.mean(distance[:, 1:] ** 2, axis=0), np.mean(half, axis=0)


def structure(rows: Rows, left: Array) -> float:
    """Return how far what is left, (n_rows,), is from noise: the largest agreement of neighbours, in standard errors.

    Neighbours in all columns that vary, along each column, and along what the formula says (`left` is that less y; y
    itself holds the noise). White noise agrees with nothing.
    """
    n = len(left)
    if n < FEWEST or not np.isfinite(left).all() or np.std(left) == 0.0:
        return 0.0
    centred = left - left.mean()
    centred = np.clip(centred, *(np.median(centred) + np.array([-5, 5]) * np.std(centred)))
    centred = centred / np.std(centred)
    found = []
    for values in (rows.y + left, *(rows.X[:, column] for column in rows.columns)):
        order = np.argsort(values, kind="stable")
        found.append(float(np.sum(centred[order][1:] * centred[order][:-1])) / np.sqrt(n))
    columns = list(rows.columns)
    if columns:
        X = rows.X[:, columns] / np.std(rows.X[:, columns], axis=0)
        _, index = cKDTree(X).query(X, 2)
        # Mutual neighbours count twice, which makes the sum wider by up to the root of two.
        found.append(float(np.sum(centred * centred[index[:, 1]])) / np.sqrt(2.0 * n))
    return float(max(found))
