"""Slots on a surrogate: a smooth model of the rows is asked in their place, and what it leads to is refitted on rows.

A surrogate's wiggles are systematic, and no noise: it may propose, and nothing that it says is believed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import fmin_l_bfgs_b
from scipy.spatial import cKDTree

from deap_vsr.errors import VsrError
from deap_vsr.lab.oracle import CallableOracle
from deap_vsr.methods import discover
from deap_vsr.search.finish import reopened
from deap_vsr.table.field import Field
from deap_vsr.table.rows import Rows
from deap_vsr.tree import MaskedTree, is_variable, variable
from deap_vsr.tree.operators import Array

#: Rows of a Gaussian process, whose cost grows with their cube; with more rows than the second number boosting is tried
#: beside it.
PROCESS, MANY = 400, 2000
#: A surrogate that explains less of held-out rows proposes nothing.
WORTH = 0.9
#: A question is within the support if its neighbour is no further than so many times the usual distance of rows.
REACH = 1.5
#: Steps to the likeliest numbers of a kernel.
STEPS = 40
#: Evaluations of the search that asks the surrogate.
EVALUATIONS = 100_000


def surrogate_slots(field: Field, evaluations: int = EVALUATIONS) -> None:
    """Offer what vertical search finds with a surrogate as its oracle."""
    rows = field.rows
    if rows.n_rows < 30 or len(rows.columns) < 1 or rows.late:
        return
    model = surrogate(rows)
    if model is None:
        return
    oracle = _oracle(model, rows)
    part = rows.budget.part(evaluations=evaluations)
    try:
        result = discover(
            oracle, "vsr", time_limit=part.seconds_left(), max_evaluations=max(int(part.left("evaluations")), 1),
            seed=int(rows.rng.integers(2**31)),
        )  # fmt: skip
    except VsrError:
        return
    part.count(result.evaluations)
    trees = [result.tree, *(record.tree for record in result.rounds[-3:])]
    for tree in trees:
        if tree is not None:
            field.offer(_back(reopened(tree), rows), "surrogate")


def surrogate(rows: Rows) -> Any:
    """Return a fitted model of the rows, a Gaussian process or, for many, boosting; None if it explains too little."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    columns = list(rows.columns)
    order = rows.rng.permutation(rows.n_rows)
    train, test = order[: int(0.8 * len(order))], order[int(0.8 * len(order)) :]
    kernel = ConstantKernel(1.0, (1e-3, 1e5)) * RBF([1.0] * len(columns), (1e-2, 1e3)) + WhiteKernel(1e-4, (1e-10, 1.0))
    process = make_pipeline(
        StandardScaler(),
        GaussianProcessRegressor(kernel, optimizer=_likeliest(rows), normalize_y=True, random_state=0),
    )
    models = [(process, train[:PROCESS])]
    if rows.n_rows > MANY:
        models.append((make_pipeline(HistGradientBoostingRegressor(random_state=0)), train))
    best, score = None, WORTH
    for model, part in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows.X[part][:, columns], rows.y[part])
            explained = float(model.score(rows.X[test][:, columns], rows.y[test]))
        if explained > score:
            best, score = model, explained
    return best


def _likeliest(rows: Rows) -> Callable[..., tuple[Array, float]]:
    """Return what finds the numbers of a kernel: within so many steps, and the best so far where time is up."""

    def search(negative: Callable[..., tuple[float, Array]], begin: Array, bounds: Array) -> tuple[Array, float]:
        best: list[tuple[float, Array]] = []

        def tried(theta: Array) -> tuple[float, Array]:
            if best and rows.late:
                raise _LateError
            value, slope = negative(theta)
            if not best or value < best[0][0]:
                best[:] = [(value, theta.copy())]
            return value, slope

        with suppress(_LateError):
            fmin_l_bfgs_b(tried, begin, bounds=bounds, maxfun=STEPS)
        return best[0][1], best[0][0]

    return search


class _LateError(Exception):
    """Time is up."""


def _oracle(model: Any, rows: Rows) -> CallableOracle:
    """Return a surrogate as an oracle: its own standard errors, and no answer outside of the support of the rows."""
    columns = list(rows.columns)
    X = rows.X[:, columns]
    units = np.std(X, axis=0)
    tree = cKDTree(X / units)
    usual = float(np.quantile(tree.query(X / units, 2)[0][:, 1], 0.95))
    process = hasattr(model[-1], "kernel_")

    def ask(points: Array) -> tuple[Array, Array]:
        if process:
            y, sigma = model.predict(points, return_std=True)
        else:
            y = model.predict(points)
            sigma = np.full(len(y), 0.05 * float(np.std(rows.y)))
        far = tree.query(points / units)[0] > REACH * usual * np.sqrt(len(columns))
        return np.where(far, np.nan, y), np.maximum(sigma, 1e-12 * float(np.std(rows.y)))

    bounds = [(float(column.min()), float(column.max())) for column in X.T]
    return CallableOracle(ask, bounds, rows.function_set, repeatable=False)


def _back(tree: MaskedTree, rows: Rows) -> MaskedTree:
    """Return a formula of the columns in use as one of the table's."""
    return MaskedTree(
        variable(rows.columns[int(str(node.value)[1:]) - 1] + 1) if is_variable(node) else node for node in tree
    )
