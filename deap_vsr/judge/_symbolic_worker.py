"""The child process of :mod:`deap_vsr.judge._symbolic`: compares two formulas with sympy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import sympy

from deap_vsr.tree import MaskedTree, Node, is_number, is_variable
from deap_vsr.tree.operators import CATALOGUE
from deap_vsr.tree.walk import bottom_up

#: A difference that double precision cannot show beside the values, such as that of + 1e-18.
DUST = 1e-15
#: Groups of look-alike operands larger than this are compared in sorted order only.
MAX_PERMUTED = 5


def decide(question: dict[str, Any]) -> bool | None:
    """Return True (same formula), False (another one) or None (cannot say)."""
    trees = [MaskedTree.from_tokens(question[key]) for key in ("answer", "truth")]
    tolerance = question["tolerance"]
    if _different(trees[0], trees[1], question["points"], tolerance):
        return False
    positive = set(question["positive"])
    answer, truth = (_expression(tree, positive) for tree in trees)
    fractions = _as_rational(answer, truth)
    if fractions is not None and _same_rational(fractions[0], fractions[1], tolerance):
        return True
    for rewrite in _rewrites():
        if _alike(rewrite(answer), rewrite(truth), tolerance):
            return True
    return None


# --- different for certain ----------------------------------------------------------------


def _different(answer: MaskedTree, truth: MaskedTree, points: list[list[float]], tolerance: float) -> bool:
    """Whether no small change of the constants makes one formula the other.

    Values are computed to 60 digits, so that the difference of the two is seen however small it is. If the
    formulas are the same but for the last digits of constants, the difference is, to first order, a
    combination of the derivatives by the constants, with small factors. A surrogate's difference is not.
    """
    with mpmath.workdps(60):
        rows = [row for row in (_row(answer, truth, point) for point in points) if row is not None]
    if len(rows) < 3:
        return False
    difference = [row[0] for row in rows]
    largest = max(map(abs, difference))
    truth_size = max(abs(row[2]) for row in rows)
    if largest <= DUST * truth_size:
        return False
    # The difference in units of its own size fits a float again; so do the relative derivatives.
    D = np.array([float(d / largest) for d in difference])
    J = np.array([[float(slope / largest) for slope in row[1]] for row in rows])
    if not np.isfinite(J).all():
        return False
    size = np.linalg.norm(J, axis=0)
    J, size = J[:, size > 0], size[size > 0]
    if not len(size):
        return True
    factors, *_ = np.linalg.lstsq(J / size, D, rcond=1e-11)
    rest = np.linalg.norm(D - (J / size) @ factors) / np.linalg.norm(D)
    # Constants that are dust themselves (x + 1e-17) may change as they like.
    counts = size > DUST * float(truth_size / largest) * len(rows) ** 0.5
    changes = np.abs(factors / size)[counts]
    return bool(rest > 1e-3 or 2 * np.max(changes, initial=0.0) > tolerance)


def _row(answer: MaskedTree, truth: MaskedTree, point: list[float]) -> tuple[Any, list[Any], Any] | None:
    """Return the difference at a point, the derivatives by relative changes of all constants, and the truth."""
    tiny = mpmath.mpf(10) ** -25
    slopes = []
    values = []
    for tree in (answer, truth):
        value = _precise(tree, point)
        if value is None:
            return None
        values.append(value)
        for i, node in enumerate(tree):
            if is_number(node) and node.value:
                changed = _precise(tree, point, i, tiny)
                if changed is None:
                    return None
                slopes.append((changed - value) / tiny)
    return values[0] - values[1], slopes, values[1]


def _precise(tree: MaskedTree, point: list[float], changed: int = -1, by: Any = 0) -> Any:
    """Return the value to mpmath's precision, the constant at `changed` a factor 1 + `by` off; None if not real."""

    def value(position: int, node: Node, operands: list[Any]) -> Any:
        if node.arity:
            symbolic = CATALOGUE[node.name].symbolic
            function = _MPMATH.get(symbolic) or getattr(mpmath, symbolic) if isinstance(symbolic, str) else symbolic
            return function(*operands)
        if is_variable(node):
            return mpmath.mpf(point[int(node.value[1:]) - 1])
        return mpmath.mpf(node.value) * (1 + by if position == changed else 1)

    try:
        found = bottom_up(tree, value)
    except (ArithmeticError, ValueError):
        return None
    return found if isinstance(found, mpmath.mpf) and mpmath.isfinite(found) else None


_MPMATH: dict[str, Any] = {"Abs": abs}


def _expression(tree: MaskedTree, positive: set[str]) -> Any:
    """Return the sympy expression; variables that are positive on their range are declared so."""
    expression = tree.to_sympy()
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


# --- rational functions: equal coefficient by coefficient ----------------------------------


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


def _same_rational(answer: Any, truth: Any, tolerance: float) -> bool:
    """Whether a/b = c/d, that is a d = c b, coefficient by coefficient."""
    left, right = dict((answer[0] * truth[1]).terms()), dict((truth[0] * answer[1]).terms())
    return all(
        abs(left.get(powers, 0) - right.get(powers, 0)) <= tolerance * abs(right.get(powers, 0))
        for powers in {*left, *right}
    )


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
