"""Compiled evaluation and exact derivatives of trees, as op-code arrays over blocks of points.

A tree is its prefix list of codes (see :mod:`deap_vsr.engine.program`). Every node has a row in the
block buffers `V` (values) and `A` (adjoints): children stand behind their parent in prefix order,
so a walk from the end computes values and a walk from the start pushes derivatives down.

This is the one place besides the catalogue that knows operators; a test compares every value and
derivative of the two.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from deap_vsr.engine.guards import (
    guarded_binary,
    guarded_left_derivative,
    guarded_right_derivative,
    guarded_unary,
    guarded_unary_derivative,
    is_guarded_division,
)
from deap_vsr.engine.jit import jit
from deap_vsr.tree.guarded import FIRST
from deap_vsr.tree.operators import CATALOGUE, Array, Flags, Indices

Numbers = TypeVar("Numbers", Array, Indices)

#: A tree: codes, left, right, slot (see :func:`layout`).
Program = tuple[Indices, Indices, Indices, Indices]

# Codes of leaves, behind all op-codes; operators have their op-code, variable j has VARIABLE + j.
LITERAL, OPEN, VARIABLE = 1024, 1025, 2048

#: Points in a block: rows of a typical tree then fit the first-level cache.
BLOCK = 128

(
    ADD, SUB, MUL, DIV, INV, NEG, N2, N3, N4, N5, N6, N8, POW, SQRT, EXP, LOG, SIN, COS, TAN,
    ARCSIN, ARCCOS, ARCTAN, SINH, COSH, TANH, ABS,
) = (CATALOGUE[name].opcode for name in (
    "add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "n4", "n5", "n6", "n8", "pow", "sqrt", "exp", "log", "sin",
    "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "abs",
))  # fmt: skip


@jit
def copy(row: Numbers, out: Numbers, n: int) -> None:
    """Write the first `n` entries of `row` into `out`.

    Slices are not assigned to slices: that would have numba compile, into every kernel, the text of an error.
    """
    for p in range(n):
        out[p] = row[p]


@jit
def is_binary(code: int) -> bool:
    """Whether the operator `code` takes two operands."""
    return code in (ADD, SUB, MUL, DIV, POW) or is_guarded_division(code)


@jit
def is_division(code: int) -> bool:
    """Whether the operator `code` is a division, guarded or not."""
    return code == DIV or is_guarded_division(code)


@jit
def layout(codes: Indices, left: Indices, right: Indices, slot: Indices) -> int:
    """Find the operands of each node, and the place of each constant among its like.

    `left`, `right`: (n_nodes,), -1 where there is none. `slot`: for literals the index into the
    literals, for open constants into the constants. Returns the number of open constants.
    """
    n = len(codes)
    stack = np.empty(n + 1, np.int32)
    top = 0
    for i in range(n - 1, -1, -1):
        left[i] = -1
        right[i] = -1
        if codes[i] < LITERAL:
            top -= 1
            left[i] = stack[top]
            if is_binary(codes[i]):
                top -= 1
                right[i] = stack[top]
        stack[top] = i
        top += 1
    n_open = 0
    n_literal = 0
    for i in range(n):
        if codes[i] == OPEN:
            slot[i] = n_open
            n_open += 1
        elif codes[i] == LITERAL:
            slot[i] = n_literal
            n_literal += 1
    return n_open


@jit
def unary(code: int, x: Array, out: Array, n: int) -> None:
    """Apply a unary operator to the first `n` entries of `x`."""
    if code >= FIRST:
        guarded_unary(code, x, out, n)
    elif code == INV:
        for p in range(n):
            out[p] = 1.0 / x[p]
    elif code == NEG:
        for p in range(n):
            out[p] = -x[p]
    elif code == N2:
        for p in range(n):
            out[p] = x[p] * x[p]
    elif code == N3:
        for p in range(n):
            out[p] = x[p] * x[p] * x[p]
    elif code == N4:
        for p in range(n):
            square = x[p] * x[p]
            out[p] = square * square
    elif code == N5:
        for p in range(n):
            square = x[p] * x[p]
            out[p] = square * square * x[p]
    elif code == N6:
        for p in range(n):
            cube = x[p] * x[p] * x[p]
            out[p] = cube * cube
    elif code == N8:
        for p in range(n):
            square = x[p] * x[p]
            fourth = square * square
            out[p] = fourth * fourth
    elif code == SQRT:
        for p in range(n):
            out[p] = math.sqrt(x[p]) if x[p] >= 0 else math.nan
    elif code == EXP:
        for p in range(n):
            out[p] = np.exp(x[p])
    elif code == LOG:
        for p in range(n):
            out[p] = np.log(x[p])
    elif code == SIN:
        for p in range(n):
            out[p] = np.sin(x[p])
    elif code == COS:
        for p in range(n):
            out[p] = np.cos(x[p])
    elif code == TAN:
        for p in range(n):
            out[p] = np.tan(x[p])
    elif code == ARCSIN:
        for p in range(n):
            out[p] = np.arcsin(x[p])
    elif code == ARCCOS:
        for p in range(n):
            out[p] = np.arccos(x[p])
    elif code == ARCTAN:
        for p in range(n):
            out[p] = np.arctan(x[p])
    elif code == SINH:
        for p in range(n):
            out[p] = np.sinh(x[p])
    elif code == COSH:
        for p in range(n):
            out[p] = np.cosh(x[p])
    elif code == TANH:
        for p in range(n):
            out[p] = np.tanh(x[p])
    else:
        for p in range(n):
            out[p] = abs(x[p])


@jit
def binary(code: int, a: Array, b: Array, out: Array, n: int) -> None:
    """Apply a binary operator to the first `n` entries of `a` and `b`."""
    if code >= FIRST:
        guarded_binary(code, a, b, out, n)
    elif code == ADD:
        for p in range(n):
            out[p] = a[p] + b[p]
    elif code == SUB:
        for p in range(n):
            out[p] = a[p] - b[p]
    elif code == MUL:
        for p in range(n):
            out[p] = a[p] * b[p]
    elif code == DIV:
        for p in range(n):
            out[p] = a[p] / b[p]
    else:
        for p in range(n):
            out[p] = np.power(a[p], b[p])


@jit
def unary_derivative(code: int, x: Array, value: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a unary node to its operand."""
    if code >= FIRST:
        guarded_unary_derivative(code, x, value, adjoint, out, n)
    elif code == INV:
        for p in range(n):
            out[p] = -adjoint[p] * value[p] * value[p]
    elif code == NEG:
        for p in range(n):
            out[p] = -adjoint[p]
    elif code == N2:
        for p in range(n):
            out[p] = adjoint[p] * 2.0 * x[p]
    elif code == N3:
        for p in range(n):
            out[p] = adjoint[p] * 3.0 * x[p] * x[p]
    elif code == N4:
        for p in range(n):
            out[p] = adjoint[p] * 4.0 * x[p] * x[p] * x[p]
    elif code == N5:
        for p in range(n):
            square = x[p] * x[p]
            out[p] = adjoint[p] * 5.0 * square * square
    elif code == N6:
        for p in range(n):
            square = x[p] * x[p]
            out[p] = adjoint[p] * 6.0 * square * square * x[p]
    elif code == N8:
        for p in range(n):
            cube = x[p] * x[p] * x[p]
            out[p] = adjoint[p] * 8.0 * cube * cube * x[p]
    elif code == SQRT:
        for p in range(n):
            out[p] = adjoint[p] * 0.5 / value[p]
    elif code == EXP:
        for p in range(n):
            out[p] = adjoint[p] * value[p]
    elif code == LOG:
        for p in range(n):
            out[p] = adjoint[p] / x[p]
    elif code == SIN:
        for p in range(n):
            out[p] = adjoint[p] * np.cos(x[p])
    elif code == COS:
        for p in range(n):
            out[p] = -adjoint[p] * np.sin(x[p])
    elif code == TAN:
        for p in range(n):
            out[p] = adjoint[p] * (1.0 + value[p] * value[p])
    elif code == ARCSIN:
        for p in range(n):
            out[p] = adjoint[p] / np.sqrt((1.0 - x[p]) * (1.0 + x[p]))
    elif code == ARCCOS:
        for p in range(n):
            out[p] = -adjoint[p] / np.sqrt((1.0 - x[p]) * (1.0 + x[p]))
    elif code == ARCTAN:
        for p in range(n):
            out[p] = adjoint[p] / (1.0 + x[p] * x[p])
    elif code == SINH:
        for p in range(n):
            out[p] = adjoint[p] * np.cosh(x[p])
    elif code == COSH:
        for p in range(n):
            out[p] = adjoint[p] * np.sinh(x[p])
    elif code == TANH:
        for p in range(n):
            cosh = np.cosh(x[p])
            out[p] = adjoint[p] / (cosh * cosh)
    else:
        for p in range(n):
            out[p] = adjoint[p] * np.sign(x[p])


@jit
def left_derivative(code: int, a: Array, b: Array, value: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a binary node to its first operand."""
    if code >= FIRST:
        guarded_left_derivative(code, a, b, adjoint, out, n)
    elif code in (ADD, SUB):
        for p in range(n):
            out[p] = adjoint[p]
    elif code == MUL:
        for p in range(n):
            out[p] = adjoint[p] * b[p]
    elif code == DIV:
        for p in range(n):
            out[p] = adjoint[p] / b[p]
    else:
        for p in range(n):
            out[p] = adjoint[p] * b[p] * np.power(a[p], b[p] - 1.0)


@jit
def right_derivative(code: int, a: Array, b: Array, value: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a binary node to its second operand."""
    if code >= FIRST:
        guarded_right_derivative(code, a, b, value, adjoint, out, n)
    elif code == ADD:
        for p in range(n):
            out[p] = adjoint[p]
    elif code == SUB:
        for p in range(n):
            out[p] = -adjoint[p]
    elif code == MUL:
        for p in range(n):
            out[p] = adjoint[p] * a[p]
    elif code == DIV:
        for p in range(n):
            out[p] = -adjoint[p] * value[p] / b[p]
    else:
        for p in range(n):
            out[p] = adjoint[p] * value[p] * np.log(a[p]) if value[p] != 0.0 else 0.0


@jit
def forward(
    codes: Indices,
    left: Indices,
    right: Indices,
    slot: Indices,
    literals: Array,
    constants: Array,
    X: Array,
    start: int,
    n: int,
    V: Array,
) -> None:
    """Compute the values of all nodes for points start .. start + n into `V` (n_nodes, BLOCK).

    `X`: (n_vars, n_points).
    """
    for i in range(len(codes) - 1, -1, -1):
        code = codes[i]
        if code >= VARIABLE:
            column = code - VARIABLE
            for p in range(n):
                V[i, p] = X[column, start + p]
        elif code == OPEN:
            V[i, :n] = constants[slot[i]]
        elif code == LITERAL:
            V[i, :n] = literals[slot[i]]
        elif right[i] >= 0:
            binary(code, V[left[i]], V[right[i]], V[i], n)
        else:
            unary(code, V[left[i]], V[i], n)


@jit
def backward(
    codes: Indices,
    left: Indices,
    right: Indices,
    slot: Indices,
    active: Flags,
    start: int,
    n: int,
    V: Array,
    A: Array,
    J: Array,
) -> None:
    """Write the derivatives by the active open constants into `J` (n_constants, n_points).

    `active`: (n_nodes,), whether a node's sub-tree holds such a constant.
    """
    if not active[0]:
        return
    A[0, :n] = 1.0
    for i in range(len(codes)):
        if not active[i]:
            continue
        code = codes[i]
        if code == OPEN:
            copy(A[i], J[slot[i], start : start + n], n)
            continue
        a = left[i]
        b = right[i]
        if b < 0:
            unary_derivative(code, V[a], V[i], A[i], A[a], n)
            continue
        if active[a]:
            left_derivative(code, V[a], V[b], V[i], A[i], A[a], n)
        if active[b]:
            right_derivative(code, V[a], V[b], V[i], A[i], A[b], n)


@jit
def mark_active(codes: Indices, left: Indices, right: Indices, slot: Indices, wanted: Flags, active: Flags) -> None:
    """Set `active` for every node with a wanted constant at or below it. `wanted`: (n_constants,)."""
    for i in range(len(codes) - 1, -1, -1):
        active[i] = codes[i] == OPEN and wanted[slot[i]]
        if left[i] >= 0 and active[left[i]]:
            active[i] = True
        if right[i] >= 0 and active[right[i]]:
            active[i] = True


@jit
def model(
    codes: Indices,
    left: Indices,
    right: Indices,
    slot: Indices,
    literals: Array,
    constants: Array,
    X: Array,
    active: Flags,
    V: Array,
    A: Array,
    f: Array,
    J: Array,
) -> None:
    """Compute values `f` (n_points,) and derivatives `J` by the active constants."""
    n_points = X.shape[1]
    for start in range(0, n_points, BLOCK):
        n = min(BLOCK, n_points - start)
        forward(codes, left, right, slot, literals, constants, X, start, n, V)
        copy(V[0], f[start : start + n], n)
        backward(codes, left, right, slot, active, start, n, V, A, J)


@jit
def evaluate_many(
    codes: Indices,
    offsets: Indices,
    literals: Array,
    literal_offsets: Indices,
    constants: Array,
    constant_offsets: Indices,
    X: Array,
    out: Array,
) -> None:
    """Evaluate trees over the same points.

    `codes`: all trees' codes, tree t at offsets[t] .. offsets[t + 1], and so for literals and
    constants. `X`: (n_vars, n_points). `out`: (n_trees, n_points).
    """
    n_points = X.shape[1]
    longest = 1
    for t in range(len(offsets) - 1):
        longest = max(longest, offsets[t + 1] - offsets[t])
    rows = np.empty((longest, BLOCK))
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        for start in range(0, n_points, BLOCK):
            n = min(BLOCK, n_points - start)
            top = 0  # the rows are a stack, the first operand on top
            literal = literal_offsets[t + 1]
            constant = constant_offsets[t + 1]
            for i in range(end - 1, begin - 1, -1):
                code = codes[i]
                if code < LITERAL:
                    if is_binary(code):
                        binary(code, rows[top - 1], rows[top - 2], rows[top - 2], n)
                        top -= 1
                    else:
                        unary(code, rows[top - 1], rows[top - 1], n)
                    continue
                if code >= VARIABLE:
                    column = code - VARIABLE
                    for p in range(n):
                        rows[top, p] = X[column, start + p]
                elif code == OPEN:
                    constant -= 1
                    rows[top, :n] = constants[constant]
                else:
                    literal -= 1
                    rows[top, :n] = literals[literal]
                top += 1
            copy(rows[0], out[t, start : start + n], n)


@jit
def first_incomplete(codes: Indices, offsets: Indices) -> int:
    """Return the first tree that is not one complete expression, or -1."""
    for t in range(len(offsets) - 1):
        missing = 1
        for i in range(offsets[t], offsets[t + 1]):
            if missing == 0:
                return t
            if codes[i] >= LITERAL:
                missing -= 1
            elif is_binary(codes[i]):
                missing += 1
        if missing:
            return t
    return -1


@jit
def residuals(
    codes: Indices, literals: Array, constants: Array, X: Array, y: Array, weight: Array, r: Array, J: Array
) -> None:
    """Compute weighted residuals `r` = weight * (f - y) and their derivatives `J` (n_constants, n_points)."""
    n = len(codes)
    left = np.empty(n, np.int32)
    right = np.empty(n, np.int32)
    slot = np.zeros(n, np.int32)
    layout(codes, left, right, slot)
    active = np.empty(n, np.bool_)
    mark_active(codes, left, right, slot, np.ones(len(constants), np.bool_), active)
    V = np.empty((n, BLOCK))
    A = np.empty((n, BLOCK))
    model(codes, left, right, slot, literals, constants, X, active, V, A, r, J)
    for p in range(len(y)):
        r[p] = weight[p] * (r[p] - y[p])
    for c in range(len(constants)):
        for p in range(len(y)):
            J[c, p] *= weight[p]
