"""Guarded operators: the protected division, logarithm, root and inverse of DEAP scripts, as families of the catalogue.

A guarded operator is a plain one that answers with a number where the plain one has no value, or hardly has one: `a/b`
with 1 where ``abs(b)`` is at most a threshold. They are no operators that a problem could ask for by name: they come
into a search only with a user's primitive set that has them (:mod:`deap_vsr.tree.recognise`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from deap_vsr.tree.operators import CATALOGUE, POWER, Operator

#: The op-code of a guarded operator is FIRST + SPAN * kind + place of its threshold. For ever, as other op-codes are.
FIRST, SPAN = 64, 32

#: The kinds: plain operator, whether it is that of the absolute value, and what is answered where it is guarded
#: ("left": the first operand; "none": nothing is guarded). "finite" guards by the quotient instead of the divisor.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("div", "", "0"),
    ("div", "", "1"),
    ("div", "", "left"),
    ("div", "finite", "0"),
    ("div", "finite", "1"),
    ("inv", "", "0"),
    ("inv", "", "1"),
    ("log", "abs", "0"),
    ("log", "abs", "1"),
    ("log", "", "0"),
    ("log", "", "1"),
    ("log", "abs", "none"),
    ("sqrt", "abs", "none"),
    ("sqrt", "", "0"),
    ("sqrt", "", "1"),
)
#: Kinds with two operands come first.
N_BINARY = 5

#: An operator is guarded where its divisor or argument is at most one of these: 0, a power of ten, or the number just
#: below it, as scripts have both <= and <. Powers of ten, as nobody writes other thresholds.
_POWERS = tuple(float(f"1e-{k}") for k in range(12, 0, -1))
THRESHOLDS: tuple[float, ...] = (
    0.0,
    *_POWERS,
    *(float(np.nextafter(power, 0.0)) for power in _POWERS),
)
#: Kinds that have a threshold; the others are guarded by what they are.
_WITH_THRESHOLD = tuple(
    i for i, kind in enumerate(KINDS) if kind[1] != "finite" and kind[0] != "sqrt" and kind[2] != "none"
)


def _divide(mode: str, otherwise: str, threshold: float) -> tuple[Any, Any]:
    def is_guarded(a: Any, b: Any) -> Any:
        return ~np.isfinite(np.divide(a, b)) if mode == "finite" else np.abs(b) <= threshold

    def value(a: Any, b: Any) -> Any:
        instead = a if otherwise == "left" else float(otherwise)
        return np.where(is_guarded(a, b), instead, np.divide(a, b))

    def derivative(v: Any, a: Any, b: Any) -> tuple[Any, Any]:
        guarded = is_guarded(a, b)
        return np.where(guarded, float(otherwise == "left"), 1.0 / b), np.where(guarded, 0.0, -v / b)

    return value, derivative


def _unary(plain: str, mode: str, otherwise: str, threshold: float) -> tuple[Any, Any]:
    known = CATALOGUE[plain]

    def is_guarded(x: Any) -> Any:
        if otherwise == "none":
            return np.zeros(np.shape(x), bool)
        if plain == "sqrt":
            return np.asarray(x) < 0.0
        return np.asarray(np.abs(x) if mode == "abs" or plain == "inv" else x) <= threshold

    def value(x: Any) -> Any:
        instead = 0.0 if otherwise == "none" else float(otherwise)
        return np.where(is_guarded(x), instead, known.function(np.abs(x) if mode == "abs" else x))

    def derivative(v: Any, x: Any) -> tuple[Any]:
        assert known.derivative is not None
        (slope,) = known.derivative(v, np.abs(x) if mode == "abs" else x)
        return (np.where(is_guarded(x), 0.0, slope * np.sign(x) if mode == "abs" else slope),)

    return value, derivative


@cache
def guarded(opcode: int) -> Operator:
    """Return the guarded operator of an op-code."""
    kind, place = divmod(opcode - FIRST, SPAN)
    plain, mode, otherwise = KINDS[kind]
    threshold = THRESHOLDS[place]
    known = CATALOGUE[plain]
    value, derivative = (
        _divide(mode, otherwise, threshold) if kind < N_BINARY else _unary(plain, mode, otherwise, threshold)
    )
    name = "_".join(part for part in (plain, mode, "" if otherwise == "none" else f"or_{otherwise}") if part)
    if place:
        name += f"_{'to' if threshold in _POWERS else 'below'}_{_POWERS[(place - 1) % len(_POWERS)]!r}"

    def symbolic(*arguments: Any) -> Any:
        import sympy

        return known.sympy(sympy, *(map(sympy.Abs, arguments) if mode == "abs" else arguments))

    return replace(
        called(known, name), name=name, function=value, derivative=derivative, symbolic=symbolic, opcode=opcode,
        aliases=(), twins=(), inverse=None, plain=plain,
    )  # fmt: skip


def called(operator: Operator, name: str) -> Operator:
    """Return an operator that is printed as the function `name`."""
    places = ", ".join(f"{{{i}}}" for i in range(operator.arity))
    latex = rf"\operatorname{{{{{name}}}}}\left({places}\right)"
    operands = (0,) * operator.arity
    return replace(
        operator, infix=f"{name}({places})", latex=latex, precedence=POWER + 1, operands=operands,
        latex_precedence=None, latex_operands=operands, called=name,
    )  # fmt: skip


def restored(opcode: int, name: str) -> Operator:
    """Return a guarded operator that was pickled."""
    return called(guarded(opcode), name)


def every_opcode(arity: int) -> list[int]:
    """Return the op-codes of all guarded operators of so many operands, those of the smallest threshold first."""
    kinds = range(N_BINARY) if arity == 2 else range(N_BINARY, len(KINDS)) if arity == 1 else ()
    return [
        FIRST + SPAN * kind + place
        for kind in kinds
        for place in (range(len(THRESHOLDS)) if kind in _WITH_THRESHOLD else (0,))
    ]
