"""Fitting one tree in every trial, compiled: where to start, what is linear, what the data determine."""

from __future__ import annotations

import math

import numpy as np

from deap_vsr.engine.householder import qr, scaled_column
from deap_vsr.engine.jit import jit, jit_within
from deap_vsr.engine.kernels import (
    ABS,
    ADD,
    BLOCK,
    EXP,
    INV,
    LITERAL,
    LOG,
    MUL,
    N2,
    N3,
    N4,
    N5,
    N6,
    N8,
    NEG,
    OPEN,
    POW,
    SQRT,
    SUB,
    VARIABLE,
    Program,
    binary,
    copy,
    is_binary,
    is_division,
    layout,
    mark_active,
    model,
    unary,
)
from deap_vsr.engine.levenberg import NOT_FINITE, Buffers, levenberg, projected_error
from deap_vsr.tree.operators import Array, Flags, Indices

#: A column of the Jacobian that keeps less than this share of its norm depends on the others.
RANK_TOLERANCE = 1e-10


@jit
def find_linear(codes: Indices, left: Indices, right: Indices, slot: Indices, linear: Flags) -> int:
    """Set `linear` for constants in which the tree is jointly affine; return how many.

    Sums pass linearity on to both operands, quotients to the numerator, products to the factor
    with more linear constants (the other one's then count as inner ones).
    """
    n = len(codes)
    count = np.zeros(n, np.int32)
    for i in range(n - 1, -1, -1):
        code = codes[i]
        if code == OPEN:
            count[i] = 1
        elif code in (ADD, SUB):
            count[i] = count[left[i]] + count[right[i]]
        elif code == MUL:
            count[i] = max(count[left[i]], count[right[i]])
        elif code == NEG or is_division(code):
            count[i] = count[left[i]]
    linear[:] = False
    reached = np.zeros(n, np.bool_)
    reached[0] = True
    total = 0
    for i in range(n):
        if not reached[i]:
            continue
        code = codes[i]
        if code == OPEN:
            linear[slot[i]] = True
            total += 1
        elif code in (ADD, SUB):
            reached[left[i]] = True
            reached[right[i]] = True
        elif code == MUL:
            if count[left[i]] >= count[right[i]]:
                reached[left[i]] = True
            else:
                reached[right[i]] = True
        elif code == NEG or is_division(code):
            reached[left[i]] = True
    return total


@jit_within
def natural_scales(
    codes: Indices, left: Indices, right: Indices, slot: Indices, literals: Array, X: Array, V: Array, scales: Array
) -> None:
    """Set each constant's natural unit: what makes it matter beside its neighbour.

    c * g has the unit 1 / |g|, c + g the unit |g|, where |g| is the mean over some points with
    the constants further down at their own units.
    """
    n = min(BLOCK, X.shape[1])
    scales[:] = 1.0
    for i in range(len(codes) - 1, -1, -1):
        code = codes[i]
        if code >= LITERAL:
            if code >= VARIABLE:
                copy(X[code - VARIABLE], V[i], n)
            elif code == OPEN:
                V[i, :n] = 1.0
            else:
                V[i, :n] = literals[slot[i]]
            continue
        if not is_binary(code):
            unary(code, V[left[i]], V[i], n)
            continue
        for own, other in ((left[i], right[i]), (right[i], left[i])):
            if codes[own] != OPEN or code == POW:
                continue
            size = _mean_size(V[other], n)
            unit = 1.0 / size if code == MUL else size
            if math.isfinite(unit) and unit > 0:
                scales[slot[own]] = unit
                V[own, :n] = unit
        binary(code, V[left[i]], V[right[i]], V[i], n)


@jit_within
def target_scales(
    codes: Indices, left: Indices, right: Indices, slot: Indices, V: Array, n: int, size: float, scales: Array
) -> None:
    """Set each constant's unit from above: what makes the whole as large as y, of the given `size`.

    The wanted magnitude walks from the root through the inverse of each operator; `V` holds the values of all nodes
    that :func:`natural_scales` left, for the magnitude of siblings.
    """
    wanted = np.ones(len(codes))
    wanted[0] = size
    for i in range(len(codes)):
        code = codes[i]
        w = wanted[i]
        if code == OPEN:
            if math.isfinite(w) and w > 0.0:
                scales[slot[i]] = w
            continue
        if code >= LITERAL:
            continue
        a = left[i]
        b = right[i]
        if b >= 0:
            size_a, size_b = _mean_size(V[a], n), _mean_size(V[b], n)
            if code in (ADD, SUB):
                wanted[a] = wanted[b] = w / 2.0
            elif code == MUL:
                wanted[a], wanted[b] = w / size_b, w / size_a
            elif is_division(code):
                wanted[a], wanted[b] = w * size_b, size_a / w
            else:
                wanted[a] = w ** (1.0 / size_b) if size_b > 0.0 else 1.0
                wanted[b] = abs(math.log(w) / math.log(size_a)) if w > 0.0 and size_a > 0.0 and size_a != 1.0 else 1.0
        elif code in (NEG, ABS):
            wanted[a] = w
        elif code == INV:
            wanted[a] = 1.0 / w
        elif code == SQRT:
            wanted[a] = w * w
        elif code == N2:
            wanted[a] = w**0.5
        elif code == N3:
            wanted[a] = w ** (1.0 / 3.0)
        elif code == N4:
            wanted[a] = w**0.25
        elif code == N5:
            wanted[a] = w**0.2
        elif code == N6:
            wanted[a] = w ** (1.0 / 6.0)
        elif code == N8:
            wanted[a] = w**0.125
        elif code == EXP:
            wanted[a] = max(1.0, abs(math.log(w))) if w > 0.0 else 1.0
        elif code == LOG:
            wanted[a] = math.exp(min(w, 600.0))
        # What is left has arguments near 1: sin, tanh, arctan, ...


@jit
def _mean_size(row: Array, n: int) -> float:
    """Return the mean magnitude of the finite values among the first n; 1 if there is none."""
    size = 0.0
    counted = 0
    for p in range(n):
        if math.isfinite(row[p]):
            size += abs(row[p])
            counted += 1
    if counted == 0 or size == 0.0 or not math.isfinite(size):
        return 1.0
    return size / counted


@jit_within
def _smallest(row: Array) -> int:
    """Return where the smallest number of a row is; the first of equal ones, or of none that is a number."""
    least = 0
    for i in range(1, len(row)):
        if row[i] < row[least]:
            least = i
    return least


@jit_within
def _candidate(k: int, scales: Array, linear: Flags, constants: Array) -> None:
    """Set the inner constants to the k-th point of an even spread of signs and sizes; the 0-th is the units.

    Sizes run from 1/30 to 30 natural units; the points are an additive recurrence, so that any
    first few of them fill the space.
    """
    ratio = 2.0
    q = 0
    for c in range(len(scales)):
        if not linear[c]:
            q += 1
    for _ in range(40):  # the generalised golden ratio: ratio ** (q + 1) = ratio + 1
        ratio = (1.0 + ratio) ** (1.0 / (q + 1))
    i = 0
    for c in range(len(scales)):
        if linear[c]:
            continue
        i += 1
        if k == 0:
            constants[c] = scales[c]
            continue
        place = (0.5 + k / ratio**i) % 1.0
        sign = 1.0 if place >= 0.4 else -1.0
        along = (place - 0.4) / 0.6 if place >= 0.4 else place / 0.4
        constants[c] = sign * scales[c] * 30.0 ** (2.0 * along - 1.0)


@jit
def spread(y: Array, weight: Array) -> float:
    """Return the root of the sum of squares that errors are measured in: that of y about its mean.

    For constant y it is that of y itself; for y = 0 it is 1.
    """
    largest = 0.0
    total = 0.0
    for p in range(len(y)):
        largest = max(largest, abs(y[p]))
        total += weight[p] * weight[p]
    if largest == 0.0 or total == 0.0:
        return 1.0
    mean = 0.0
    for p in range(len(y)):
        mean += weight[p] * weight[p] * (y[p] / largest)
    mean /= total
    about = 0.0
    square = 0.0
    for p in range(len(y)):
        about += (weight[p] * (y[p] / largest - mean)) ** 2
        square += (weight[p] * y[p] / largest) ** 2
    return largest * math.sqrt(about if about > 1e-26 * square else square)


@jit_within
def _uncertainty(
    program: Program,
    literals: Array,
    X: Array,
    y: Array,
    weight: Array,
    constants: Array,
    error: float,
    buffers: Buffers,
    errors: Array,
    determined: Flags,
) -> tuple[int, float]:
    """Standard errors, rank of the Jacobian, which constants the data determine, and the error as it comes out.

    Returns the rank and the squared error of the formula at these constants, or `error` if that is larger: terms of
    1e20 that should cancel do not.
    """
    codes, left, right, slot = program
    V, A, f, J, _, _, _, _, _ = buffers
    active = np.empty(len(codes), np.bool_)
    mark_active(codes, left, right, slot, np.ones(len(constants), np.bool_), active)
    model(codes, left, right, slot, literals, constants, X, active, V, A, f, J)
    total = 0.0
    for p in range(len(y)):
        total += ((y[p] - f[p]) * weight[p]) ** 2
    error = max(error, total) if math.isfinite(total) else math.inf
    return standard_errors_of(J, weight, error, errors, determined), error


@jit
def standard_errors_of(J: Array, weight: Array, error: float, errors: Array, determined: Flags) -> int:
    """Set standard errors (m,) and which constants the data determine, from J (m, n_points); returns its rank.

    `error` is the squared error in units of `weight`. A constant is determined if no direction that leaves the fit
    unchanged moves it.
    """
    m, n = J.shape
    rows = np.empty((m, n))
    order = np.empty(m, np.int64)
    beta, diagonal, factors = np.empty(m), np.empty(m), np.empty(m)
    for c in range(m):
        factors[c] = scaled_column(J[c], weight, rows[c])
    rank = qr(rows, RANK_TOLERANCE, order, beta, diagonal, rows[:0])
    variance = error / (n - rank) if n > rank else 0.0
    inverse = np.zeros((m, m))
    for column in range(rank):
        inverse[column, column] = 1.0 / diagonal[column]
        for i in range(column - 1, -1, -1):
            total = 0.0
            for k in range(i + 1, column + 1):
                total += rows[k, i] * inverse[k, column]
            inverse[i, column] = -total / diagonal[i]
    for i in range(m):
        determined[order[i]] = i < rank
    for i in range(rank):
        total = 0.0
        for k in range(i, rank):
            total += inverse[i, k] * inverse[i, k]
        errors[order[i]] = math.sqrt(variance * total) * factors[order[i]]
        # Along the null space this constant moves by inverse @ R[:, dropped], in its own unit.
        for j in range(rank, m):
            move = 0.0
            reach = 0.0
            for k in range(i, rank):
                move += inverse[i, k] * rows[j, k]
            for k in range(rank):
                reach += rows[j, k] * rows[j, k]
            if reach > 0.0 and abs(move) * abs(diagonal[i]) > 1e-6 * math.sqrt(reach):
                determined[order[i]] = False
    for c in range(m):
        if not determined[c]:
            errors[c] = math.inf
    return rank


@jit
def fit_trials(
    codes: Indices,
    literals: Array,
    X: Array,
    y: Array,
    weight: Array,
    offsets: Indices,
    starts: Array,
    n_screen: int,
    n_keep: int,
    max_iterations: int,
    enough: float,
    constants: Array,
    errors: Array,
    standard_errors: Array,
    determined: Flags,
    ranks: Indices,
    evaluations: Indices,
    reasons: Indices,
) -> None:
    """Fit the open constants of one tree anew in each trial.

    Trial k holds the points offsets[k] .. offsets[k + 1] of `X` (n_vars, n_points), `y` and `weight`
    (roots of the weights). Starts: those given (n_starts, n_constants), the constants of the trial
    before, and the best `n_keep` of `n_screen` spread ones; the rest are skipped once the
    normalised error is at most `enough`. Results go into the last seven arrays.
    """
    n_nodes, m = len(codes), starts.shape[1]
    left = np.empty(n_nodes, np.int32)
    right = np.empty(n_nodes, np.int32)
    slot = np.zeros(n_nodes, np.int32)
    layout(codes, left, right, slot)
    program = (codes, left, right, slot)
    linear = np.zeros(m, np.bool_)
    n_linear = find_linear(codes, left, right, slot, linear)
    active = np.empty(n_nodes, np.bool_)
    mark_active(codes, left, right, slot, linear, active)
    scales = np.ones(m)
    from_above = np.ones(m)
    now = np.empty(m)
    screened = np.empty((max(n_screen, 1), m))
    screened_errors = np.empty(max(n_screen, 1))
    V = np.empty((n_nodes, BLOCK))
    A = np.empty((n_nodes, BLOCK))
    for trial in range(len(offsets) - 1):
        begin, end = offsets[trial], offsets[trial + 1]
        n = end - begin
        Xt = np.ascontiguousarray(X[:, begin:end])
        yt = y[begin:end]
        wt = weight[begin:end] / spread(y[begin:end], weight[begin:end])
        buffers = (V, A, np.empty(n), np.zeros((m, n)), np.empty((m, n)), np.empty((1, n)), np.empty(m, np.int64),
                   np.empty(m), np.empty(m))  # fmt: skip
        best = math.inf
        reason = NOT_FINITE
        used = 0
        copy(starts[0], constants[trial], m)
        if n == 0:  # nothing to fit is no perfect fit
            errors[trial] = best
            evaluations[trial] = used
            reasons[trial] = reason
            standard_errors[trial] = math.inf
            determined[trial] = False
            ranks[trial] = 0
            continue
        n_first = 1 if trial > 0 and errors[trial - 1] < math.inf and n_linear < m else 0
        n_given = n_first + len(starts)
        for s in range(n_given + min(n_keep, n_screen)):
            if s > 0 and (best <= enough or n_linear == m):
                break
            if s == n_given:
                natural_scales(codes, left, right, slot, literals, Xt, V, scales)
                copy(scales, from_above, m)
                n_scale = min(BLOCK, n)
                target_scales(codes, left, right, slot, V, n_scale, _mean_size(yt, n), from_above)
                for k in range(n_screen):
                    _candidate(k // 2, from_above if k % 2 else scales, linear, screened[k])
                    _, screened_errors[k] = projected_error(
                        program, literals, Xt, yt, wt, linear, active, screened[k], buffers
                    )
                used += n_screen
            if s < n_given:
                copy(constants[trial - 1] if s < n_first else starts[s - n_first], now, m)
            else:
                best_one = _smallest(screened_errors)
                if not screened_errors[best_one] < math.inf:
                    break
                copy(screened[best_one], now, m)
                screened_errors[best_one] = math.inf
            error, spent, why = levenberg(program, literals, Xt, yt, wt, linear, now, max_iterations, 1e-29, buffers)
            used += spent
            if error < best:
                best, reason = error, why
                copy(now, constants[trial], m)
        errors[trial] = best
        evaluations[trial] = used
        reasons[trial] = reason
        standard_errors[trial] = math.inf
        determined[trial] = False
        ranks[trial] = 0
        if best < math.inf:
            ranks[trial], errors[trial] = _uncertainty(
                program, literals, Xt, yt, wt, constants[trial], best, buffers, standard_errors[trial],
                determined[trial],
            )  # fmt: skip
            evaluations[trial] += 1
