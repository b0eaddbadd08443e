"""Fitting trees with primitives that the kernel does not know: Levenberg-Marquardt on the numpy model.

Values come from numpy, everything else from our compiled linear algebra, in which the order of additions is fixed: a
library's may change with the place of an array in memory, and no two processes would then give the same last digits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Dataset, Fit, joined, residual_model
from deap_vsr.engine.householder import dot
from deap_vsr.engine.kernels import layout
from deap_vsr.engine.levenberg import damped_step, solve_linear
from deap_vsr.engine.optimizers import finished, spread_starts
from deap_vsr.engine.program import Batch, Model, encoder
from deap_vsr.engine.trials import find_linear, spread
from deap_vsr.tree import Constant, MaskedTree, Node, Vocabulary, is_open, node_from_name, variable
from deap_vsr.tree.operators import Array, Flags


def fit_foreign(
    tree: MaskedTree,
    batch: Batch,
    data: Dataset,
    pset: gp.PrimitiveSetTyped | None,
    starts: Array,
    n_starts: int,
    max_iterations: int,
    deadline: float | None,
    enough: float,
) -> Fit:
    """Fit each trial from every start, until the error is at most `enough`; see :func:`deap_vsr.engine.fitting.fit`."""
    parts = []
    linear = _linear(tree, encoder(pset).vocabulary)
    for k in range(data.n_trials):
        trial = data.trial(k)
        model = residual_model(tree, batch, trial, pset)

        def value(constants: Array, trial: Dataset = trial) -> float:
            f = tree.with_constants(constants).evaluate(trial.columns.T, pset)
            with np.errstate(all="ignore"):
                return _square((f - trial.y) * (trial.weight / spread(trial.y, trial.weight)))

        best = Descent(starts[0], np.inf, 0, "not finite" if len(trial.y) else "no points")
        spent = 0
        for start in spread_starts(starts, n_starts) if len(trial.y) else []:
            found = descend(model, value, _solved(model, start, linear), max_iterations, deadline)
            spent += found.evaluations + int(linear.any())
            best = found if found.error < best.error else best
            if best.error <= enough or found.reason == "seconds" or not len(start):
                break
        parts.append(finished(tree, model, best.constants, best.error, spent, best.reason, len(trial.y)))
    return joined(parts)


def _linear(tree: MaskedTree, vocabulary: Vocabulary) -> Flags:
    """Return which open constants (L,) the tree is affine in; nothing is known of those inside a foreign primitive."""
    stand_in: dict[int, Node] = {1: node_from_name("sin"), 2: node_from_name("pow")}
    nodes: list[Node] = []
    linear = np.zeros(tree.n_constants, np.bool_)
    for node in tree:
        if not node.arity:
            nodes.append(Constant(1.0) if is_open(node) else variable(1))
        elif vocabulary.operator(node).known:
            operator = vocabulary.operator(node)
            nodes.append(node_from_name(operator.plain or operator.name))
        elif node.arity in stand_in:
            nodes.append(stand_in[node.arity])
        else:
            return linear
    codes = encoder(None).encode([nodes]).codes
    left, right, slot = (np.zeros(len(codes), np.int32) for _ in range(3))
    layout(codes, left, right, slot)
    find_linear(codes, left, right, slot, linear)
    return linear


def _solved(model: Model, start: Array, linear: Flags) -> Array:
    """Return the start with its linear constants solved for, whatever the scale of y."""
    if not linear.any():
        return start
    zero = np.where(linear, 0.0, start)
    r, J = model(zero)
    if not (np.isfinite(r).all() and np.isfinite(J[linear]).all()):
        return start
    return zero + _whole_step(r, J, linear)[0]


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent from one start ended: constants (L,), squared error, evaluations and why."""

    constants: Array
    error: float
    evaluations: int
    reason: str


def descend(
    model: Model, value: Callable[[Array], float], start: Array, max_iterations: int, deadline: float | None
) -> Descent:
    """Minimise the squared residuals of `model` from `start`; `value` returns them alone, without derivatives.

    Each iteration tries the whole Gauss-Newton step, by QR, which solves what is linear at once, and damped steps
    where that does not help.
    """
    constants, (r, J) = start, model(start)
    error, evaluations, damping = _square(r), 1, 1e-3
    if not np.isfinite(error):
        return Descent(constants, np.inf, evaluations, "not finite")
    if not len(start):
        return Descent(constants, error, evaluations, "exact" if error <= 1e-29 else "converged")
    for _ in range(max_iterations):
        if error <= 1e-29:
            return Descent(constants, error, evaluations, "exact")
        if deadline is not None and time.perf_counter() > deadline:
            return Descent(constants, error, evaluations, "seconds")
        if not np.isfinite(J).all():
            return Descent(constants, error, evaluations, "not finite")
        step, left = _whole_step(r, J, np.ones(len(J), np.bool_))
        if error - left <= 1e-12 * error:
            return Descent(constants, error, evaluations, "converged")
        while True:
            new = value(constants + step)
            evaluations += 1
            if new < error:
                break
            if damping > 1e10:
                return Descent(constants, error, evaluations, "stuck")
            if evaluations > 3 * max_iterations:
                return Descent(constants, error, evaluations, "iterations")
            step = _damped(r, J, damping)
            damping *= 8.0
        settled = error - new <= 1e-12 * error
        constants, error, damping = constants + step, new, max(damping / 64.0, 1e-12)
        if settled:
            return Descent(constants, error, evaluations, "converged")
        r, J = model(constants)
        evaluations += 1
    return Descent(constants, error, evaluations, "exact" if error <= 1e-29 else "iterations")


def _square(r: Array) -> float:
    error = float(dot(r, r, 0))
    return error if np.isfinite(error) else np.inf


def _whole_step(r: Array, J: Array, moves: Flags) -> tuple[Array, float]:
    """Return the Gauss-Newton step (L,) of the constants that move, and the squared error of a linear model after it.

    Directions that the data do not determine are left alone.
    """
    m, n = J.shape
    step, beta, diagonal = np.zeros(m), np.empty(m), np.empty(m)
    _, left = solve_linear(
        J, np.zeros(n), -r, np.ones(n), moves, step, np.empty((m, n)), np.empty((1, n)),
        np.empty(m, np.int64), beta, diagonal,
    )  # fmt: skip
    return step, left


def _damped(r: Array, J: Array, damping: float) -> Array:
    """Return the damped step (L,), the damping in units of each constant's own column."""
    m = len(J)
    H, step = np.empty((m, m)), np.zeros(m)
    for i in range(m):
        for j in range(i + 1):
            H[i, j] = dot(J[i], J[j], 0)
    units = np.where(np.diag(H) > 0, np.diag(H), 1.0)
    damped_step(H, np.array([-dot(row, r, 0) for row in J]), damping, units, step)
    return step
