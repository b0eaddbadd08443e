"""Levenberg-Marquardt with variable projection, compiled.

Constants that enter linearly are solved exactly, by a pivoted Householder QR, at every step; the
others ("inner" ones) move by damped Gauss-Newton steps on what the linear ones leave (Kaufman's
form of variable projection). Nothing depends on the scale of x, y or the constants: residuals are
in units of the spread of y, damping is relative to the columns of the Jacobian, and start values
are chosen in each constant's natural unit.
"""

from __future__ import annotations

import math

import numpy as np

from deap_vsr.engine.householder import dot, norm, qr, reflect, scaled_column
from deap_vsr.engine.jit import jit
from deap_vsr.engine.kernels import Program, copy, mark_active, model
from deap_vsr.tree.operators import Array, Flags, Indices

#: Why a fit ended.
EXACT, CONVERGED, ITERATIONS, STUCK, NOT_FINITE = 0, 1, 2, 3, 4

#: A column that keeps less than this share of its norm depends on the columns before it.
_LINEAR_TOLERANCE = 1e-13

#: Relative rounding error of a number.
_ROUNDING = 1.1e-16

#: Work space of a fit: V, A, f, J, rows, work, order, beta, diagonal.
Buffers = tuple[Array, Array, Array, Array, Array, Array, Indices, Array, Array]


@jit
def solve_linear(
    J: Array,
    f: Array,
    y: Array,
    weight: Array,
    linear: Flags,
    constants: Array,
    rows: Array,
    work: Array,
    order: Indices,
    beta: Array,
    diagonal: Array,
) -> tuple[int, float]:
    """Solve the linear constants exactly; returns (rank, squared length of what is left).

    `J`, `f` belong to linear constants of 0. Afterwards `rows` holds the QR, and work[0] the
    rotated residual, of which entries rank.. are what is left. What of y is lost beside a large `f` counts as left.
    """
    n = len(y)
    count = 0
    lost = 0.0
    for p in range(n):
        work[0, p] = (y[p] - f[p]) * weight[p]
        lost = max(lost, abs(f[p] * weight[p]))
    lost *= _ROUNDING
    factors = np.empty(len(constants))
    for c in range(len(constants)):
        if linear[c]:
            factors[count] = scaled_column(J[c], weight, rows[count])
            count += 1
    rank = qr(rows[:count], _LINEAR_TOLERANCE, order, beta, diagonal, work)
    solution = np.zeros(count)
    for k in range(rank - 1, -1, -1):
        value = work[0, k]
        for j in range(k + 1, rank):
            value -= rows[j, k] * solution[order[j]]
        solution[order[k]] = value / diagonal[k]
    count = 0
    for c in range(len(constants)):
        if linear[c]:
            constants[c] = solution[count] * factors[count]
            count += 1
    rest = norm(work[0], rank)
    return rank, rest * rest + n * lost * lost


@jit
def damped_step(H: Array, g: Array, damping: float, units: Array, step: Array) -> bool:
    """Solve (H + damping * diag(units)) step = g by Cholesky; False if it cannot be solved."""
    q = len(g)
    L = np.empty((q, q))
    for i in range(q):
        for j in range(i + 1):
            total = H[i, j]
            if i == j:
                total += damping * units[i]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                L[i, i] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(q):
        total = g[i]
        for k in range(i):
            total -= L[i, k] * step[k]
        step[i] = total / L[i, i]
    for i in range(q - 1, -1, -1):
        total = step[i]
        for k in range(i + 1, q):
            total -= L[k, i] * step[k]
        step[i] = total / L[i, i]
    return True


@jit
def projected_error(
    program: Program,
    literals: Array,
    X: Array,
    y: Array,
    weight: Array,
    linear: Flags,
    active: Flags,
    constants: Array,
    buffers: Buffers,
) -> tuple[int, float]:
    """Evaluate once and solve the linear constants; returns (rank, squared error), inf if not finite."""
    codes, left, right, slot = program
    V, A, f, J, rows, work, order, beta, diagonal = buffers
    for c in range(len(constants)):
        if linear[c]:  # from 0, so that y of 1e-30 does not drown in the values of a start
            constants[c] = 0.0
    model(codes, left, right, slot, literals, constants, X, active, V, A, f, J)
    rank, error = solve_linear(J, f, y, weight, linear, constants, rows, work, order, beta, diagonal)
    return rank, error if math.isfinite(error) else math.inf


@jit
def levenberg(
    program: Program,
    literals: Array,
    X: Array,
    y: Array,
    weight: Array,
    linear: Flags,
    constants: Array,
    max_iterations: int,
    target: float,
    buffers: Buffers,
) -> tuple[float, int, int]:
    """Fit `constants` in place from where they stand.

    Returns (squared error in units of `weight`, evaluations, reason).
    """
    codes, left, right, slot = program
    V, A, f, J, rows, work, _, beta, _ = buffers
    n_constants = len(constants)
    inner = np.empty(n_constants, np.int64)
    is_inner = np.empty(n_constants, np.bool_)
    q = 0
    for c in range(n_constants):
        is_inner[c] = not linear[c]
        if is_inner[c]:
            inner[q] = c
            q += 1
    by_linear = np.empty(len(codes), np.bool_)
    by_inner = np.empty(len(codes), np.bool_)
    mark_active(codes, left, right, slot, linear, by_linear)
    mark_active(codes, left, right, slot, is_inner, by_inner)
    rank, error = projected_error(program, literals, X, y, weight, linear, by_linear, constants, buffers)
    evaluations = 1
    if not error < math.inf:
        return error, evaluations, NOT_FINITE
    if q == 0:
        return error, evaluations, EXACT if error <= target else CONVERGED
    H = np.empty((q, q))
    g = np.empty(q)
    step = np.empty(q)
    units = np.zeros(q)
    trial = np.empty(n_constants)
    rotated = np.empty((q, len(y)))
    damping, growth = 1e-3, 2.0
    for _ in range(max_iterations):
        if error <= target:
            return error, evaluations, EXACT
        # Derivatives by the inner constants at the present linear ones, rotated like the residual.
        model(codes, left, right, slot, literals, constants, X, by_inner, V, A, f, J)
        evaluations += 1
        for i in range(q):
            for p in range(len(y)):
                rotated[i, p] = J[inner[i], p] * weight[p]
            for k in range(rank):
                reflect(rows[k], beta[k], rotated[i], k)
        finite = True
        for i in range(q):
            g[i] = dot(rotated[i], work[0], rank)
            for j in range(i + 1):
                H[i, j] = dot(rotated[i], rotated[j], rank)
            finite = finite and math.isfinite(H[i, i])
            units[i] = max(units[i], H[i, i])
        if not finite:
            return error, evaluations, NOT_FINITE
        for i in range(q):
            if units[i] == 0.0:  # a constant without effect
                units[i] = 1.0
        accepted = False
        while not accepted:
            if damping > 1e20:
                return error, evaluations, STUCK
            if not damped_step(H, g, damping, units, step):
                damping *= growth
                growth *= 2.0
                continue
            expected = 0.0
            for i in range(q):
                expected += step[i] * (damping * units[i] * step[i] + g[i])
            if expected <= 1e-15 * error:
                return error, evaluations, CONVERGED
            copy(constants, trial, n_constants)
            for i in range(q):
                trial[inner[i]] += step[i]
            new_rank, new_error = projected_error(program, literals, X, y, weight, linear, by_linear, trial, buffers)
            evaluations += 1
            if new_error < error:
                gain = (error - new_error) / expected
                damping *= max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3)
                growth = 2.0
                accepted = True
                settled = error - new_error <= 1e-12 * error
                error, rank = new_error, new_rank
                copy(trial, constants, n_constants)
                if settled:
                    return error, evaluations, CONVERGED
            else:
                damping *= growth
                growth *= 2.0
                if evaluations > 3 * max_iterations:
                    return error, evaluations, ITERATIONS
        # The buffers hold the QR of the accepted point: it was the last one tried.
    return error, evaluations, EXACT if error <= target else ITERATIONS
