"""Guarded operators in the compiled kernel: values and derivatives of the families of :mod:`deap_vsr.tree.guarded`."""

from __future__ import annotations

import math

import numpy as np

from deap_vsr.engine.jit import jit
from deap_vsr.tree.guarded import FIRST, KINDS, N_BINARY, SPAN, THRESHOLDS
from deap_vsr.tree.operators import CATALOGUE, Array

LOG, SQRT = CATALOGUE["log"].opcode, CATALOGUE["sqrt"].opcode

# By kind: what is answered where an operator is guarded, and how it is guarded.
_OTHERWISE = tuple(1.0 if kind[2] == "1" else 0.0 for kind in KINDS)
_OR_LEFT = KINDS.index(("div", "", "left"))
_BY_QUOTIENT = tuple(kind[1] == "finite" for kind in KINDS)
_OF_ABS = tuple(kind[1] == "abs" for kind in KINDS)
_PLAIN = tuple(CATALOGUE[kind[0]].opcode for kind in KINDS)
_NEVER = tuple(kind[2] == "none" for kind in KINDS)
_LAST_BINARY = FIRST + SPAN * N_BINARY


@jit
def is_guarded_division(code: int) -> bool:
    """Whether the operator `code` is a guarded one of two operands."""
    return FIRST <= code < _LAST_BINARY


@jit
def _is_guarded(kind: int, threshold: float, a: float, x: float) -> bool:
    """Whether a guarded operator has its other answer, for the divisor or argument `x`; `a` is the dividend."""
    if _NEVER[kind]:
        return False
    if _BY_QUOTIENT[kind]:
        return not math.isfinite(a / x)
    if _PLAIN[kind] == SQRT:
        return x < 0.0
    if _PLAIN[kind] == LOG and not _OF_ABS[kind]:
        return x <= threshold
    return abs(x) <= threshold


@jit
def guarded_unary(code: int, x: Array, out: Array, n: int) -> None:
    """Apply a guarded operator of one operand."""
    kind, threshold = (code - FIRST) // SPAN, THRESHOLDS[(code - FIRST) % SPAN]
    plain = _PLAIN[kind]
    for p in range(n):
        value = abs(x[p]) if _OF_ABS[kind] else x[p]
        if _is_guarded(kind, threshold, 1.0, x[p]):
            out[p] = _OTHERWISE[kind]
        elif plain == LOG:
            out[p] = np.log(value)
        elif plain == SQRT:
            out[p] = math.sqrt(value) if value >= 0 else math.nan
        else:
            out[p] = 1.0 / value


@jit
def guarded_binary(code: int, a: Array, b: Array, out: Array, n: int) -> None:
    """Apply a guarded division."""
    kind, threshold = (code - FIRST) // SPAN, THRESHOLDS[(code - FIRST) % SPAN]
    for p in range(n):
        if _is_guarded(kind, threshold, a[p], b[p]):
            out[p] = a[p] if kind == _OR_LEFT else _OTHERWISE[kind]
        else:
            out[p] = a[p] / b[p]


@jit
def guarded_unary_derivative(code: int, x: Array, value: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a guarded operator to its operand; what is answered instead does not move."""
    kind, threshold = (code - FIRST) // SPAN, THRESHOLDS[(code - FIRST) % SPAN]
    plain = _PLAIN[kind]
    for p in range(n):
        if _is_guarded(kind, threshold, 1.0, x[p]):
            out[p] = 0.0
        elif plain == LOG:
            out[p] = adjoint[p] / abs(x[p]) * np.sign(x[p]) if _OF_ABS[kind] else adjoint[p] / x[p]
        elif plain == SQRT:
            out[p] = adjoint[p] * 0.5 / value[p] * (np.sign(x[p]) if _OF_ABS[kind] else 1.0)
        else:
            out[p] = -adjoint[p] * value[p] * value[p]


@jit
def guarded_left_derivative(code: int, a: Array, b: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a guarded division to its dividend."""
    kind, threshold = (code - FIRST) // SPAN, THRESHOLDS[(code - FIRST) % SPAN]
    for p in range(n):
        if _is_guarded(kind, threshold, a[p], b[p]):
            out[p] = adjoint[p] if kind == _OR_LEFT else 0.0
        else:
            out[p] = adjoint[p] / b[p]


@jit
def guarded_right_derivative(code: int, a: Array, b: Array, value: Array, adjoint: Array, out: Array, n: int) -> None:
    """Push the adjoint of a guarded division to its divisor."""
    kind, threshold = (code - FIRST) // SPAN, THRESHOLDS[(code - FIRST) % SPAN]
    for p in range(n):
        out[p] = 0.0 if _is_guarded(kind, threshold, a[p], b[p]) else -adjoint[p] * value[p] / b[p]
