"""The child process of :mod:`deap_vsr._symbolic`: compares two formulas with sympy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import sympy

from deap_vsr.tree import MaskedTree

#: Groups of look-alike operands larger than this are compared in sorted order only.
MAX_PERMUTED = 5


def decide(question: dict[str, Any]) -> bool | None:
    """Return True (same formula), False (another one) or None (cannot say)."""
    positive = set(question["positive"])
    answer, truth = (_expression(question[key], positive) for key in ("answer", "truth"))
    tolerance, scales = question["tolerance"], question["scales"]
    fractions = _as_rational(answer, truth)
    if fractions is not None:
        return _same_rational(fractions[0], fractions[1], tolerance, scales)
    for rewrite in _rewrites():
        if _alike(rewrite(answer), rewrite(truth), tolerance):
            return True
    return None


def _expression(tokens: list[list[str]], positive: set[str]) -> Any:
    """Return the sympy expression; variables that are positive on their range are declared so."""
    expression = MaskedTree.from_tokens(tokens).to_sympy()
    return expression.xreplace(
        {s: sympy.Symbol(s.name, positive=True) for s in expression.free_symbols if s.name in positive}
    )


def _rewrites() -> Iterator[Callable[[Any], Any]]:
    """Yield rewritings that bring equal formulas to one form, cheap ones first."""
    yield lambda e: e
    yield sympy.expand
    yield lambda e: sympy.expand(sympy.expand_log(sympy.expand_power_base(e)))
    yield lambda e: sympy.expand(sympy.powsimp(sympy.expand(e)))
    yield lambda e: sympy.factor_terms(sympy.together(sympy.expand(e)))
    yield lambda e: sympy.expand(sympy.expand_trig(e))
    yield sympy.simplify


# --- rational functions: decided for certain ----------------------------------------------


def _as_rational(*expressions: Any) -> tuple[Any, ...] | None:
    """Return (numerator, denominator) of each as polynomials in the variables, or None."""
    symbols = sorted(set().union(*(e.free_symbols for e in expressions)), key=str)
    if not symbols:
        return None
    result = []
    for expression in expressions:
        if not expression.is_rational_function(*symbols):
            return None
        # Rational numbers throughout: with floats sympy's fractions may not cancel.
        exact = sympy.nsimplify(expression, rational=True)
        result.append(tuple(sympy.Poly(part, *symbols) for part in sympy.fraction(sympy.together(exact))))
    return tuple(result)


def _same_rational(answer: Any, truth: Any, tolerance: float, scales: dict[str, float]) -> bool:
    """Whether a/b = c/d, that is a d = c b, coefficient by coefficient."""
    left, right = answer[0] * truth[1], truth[0] * answer[1]

    def size(powers: tuple[int, ...], coefficient: Any) -> float:
        total = abs(float(coefficient))
        for symbol, power in zip(left.gens, powers, strict=True):
            total *= scales.get(symbol.name, 1.0) ** power
        return total

    terms = {powers: [0, 0] for powers in {*left.monoms(), *right.monoms()}}
    for side, polynomial in enumerate((left, right)):
        for powers, coefficient in polynomial.terms():
            terms[powers][side] = coefficient
    largest = max((size(powers, c) for powers, pair in terms.items() for c in pair), default=0.0)
    for powers, (a, b) in terms.items():
        if abs(a - b) > tolerance * max(abs(a), abs(b)) and size(powers, a - b) > 1e-12 * largest:
            return False
    return True


# --- anything else: alike after the same rewriting ----------------------------------------


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    """Whether two expressions are equal but for the last digits of their numbers."""
    if a.is_number and b.is_number:
        x, y = complex(a), complex(b)
        return abs(x - y) <= tolerance * abs(y)
    if not a.args or not b.args:
        return bool(a == b)
    if a.func != b.func or len(a.args) != len(b.args):
        return False
    if not (a.is_Add or a.is_Mul):
        return all(_alike(x, y, tolerance) for x, y in zip(a.args, b.args, strict=True))
    groups_a, groups_b = _grouped(a.args), _grouped(b.args)
    if groups_a.keys() != groups_b.keys():
        return False
    return all(_match(groups_a[key], groups_b[key], tolerance) for key in groups_a)


def _match(left: list[Any], right: list[Any], tolerance: float) -> bool:
    """Whether the operands of one shape can be paired off."""
    if len(left) != len(right):
        return False
    orders = permutations(right) if len(right) <= MAX_PERMUTED else [right]
    return any(all(_alike(x, y, tolerance) for x, y in zip(left, order, strict=True)) for order in orders)


def _grouped(arguments: tuple[Any, ...]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for argument in arguments:
        groups.setdefault(_shape(argument), []).append(argument)
    return groups


def _shape(expression: Any) -> str:
    """Return the expression's text with anonymous numbers, operands in sorted order."""
    if expression.is_number:
        return "C"
    if not expression.args:
        return str(expression)
    shapes = [_shape(argument) for argument in expression.args]
    if expression.is_Add or expression.is_Mul:
        shapes = sorted(shape for shape in shapes if not (expression.is_Mul and shape == "C"))
    return f"{expression.func.__name__}({','.join(shapes)})"


def main() -> None:
    """Answer one JSON line for each JSON line read."""
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            verdict = decide(json.loads(line))
        except Exception:  # whatever sympy raises, it could not decide
            verdict = None
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main()
