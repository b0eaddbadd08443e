"""Rewriting a tree as a sum of terms with one constant each.

``(x1 + C)*(C - C*inv(x1))`` has constants that trade off against each other; the same formula as
``C + C*x1 + C*inv(x1)`` has constants that the data determine, one by one, and linearly. A product of
atoms with whole exponents is a term; what is no sum, product, quotient or power is an atom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.tree import (
    Constant,
    MaskedTree,
    Node,
    format_number,
    is_number,
    is_open,
    is_variable,
    node_from_name,
    operators,
)
from deap_vsr.tree.operators import INTEGER_POWERS
from deap_vsr.tree.walk import bottom_up

#: More terms than this are not worth it.
MAX_TERMS = 60

#: A product of atoms: (atom, exponent) pairs in order; () is the constant term.
Monomial = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Coefficient:
    """A factor before a term: a number, and whether it is fitted."""

    value: float
    fitted: bool


Terms = dict[Monomial, _Coefficient]


class TooManyTermsError(Exception):
    """The sum would have more than MAX_TERMS terms."""


def expand(tree: MaskedTree, function_set: Sequence[str]) -> MaskedTree | None:
    """Return `tree` as a sum of terms, in operators of `function_set`; None if that cannot be had.

    All constants of the result are mutable; those whose value was fitted, or is mixed with fitted ones, are open.
    """
    expansion = _Expansion(function_set)
    try:
        terms = expansion.terms_of(tree)
        return MaskedTree(expansion.nodes_of(terms))
    except (TooManyTermsError, KeyError, OverflowError, ZeroDivisionError):
        return None


class _Expansion:
    """One expansion: the atoms met so far, and the operators it may use."""

    def __init__(self, function_set: Sequence[str]) -> None:
        self.allowed = set(function_set)
        self.atoms: dict[str, list[Node]] = {}

    # --- reading ---

    def terms_of(self, tree: Sequence[Node]) -> Terms:
        return bottom_up(tree, lambda position, node, operands: self._node(node, operands))

    def _node(self, node: Node, operands: list[Terms]) -> Terms:
        if is_variable(node):
            return self._atom([node])
        if is_number(node):
            return {(): _Coefficient(float(node.value), is_open(node))}
        match node.name:
            case "add":
                return _sum(operands[0], operands[1])
            case "sub":
                return _sum(operands[0], _scaled(operands[1], _Coefficient(-1.0, False)))
            case "neg":
                return _scaled(operands[0], _Coefficient(-1.0, False))
            case "mul":
                return _product(operands[0], operands[1])
            case "div":
                return _product(operands[0], self._inverse(operands[1]))
            case "inv":
                return self._inverse(operands[0])
        if set(operands[0]) <= {()} and len(operands) == 1:
            return self._constant(node, operands[0])
        for power, operator in INTEGER_POWERS.items():
            if node.name == operator.name:
                result = operands[0]
                for _ in range(power - 1):
                    result = _product(result, operands[0])
                return result
        if len(operands) == 1:
            return self._unary(node, operands[0])
        return self._atom([node, *(item for operand in operands for item in self.nodes_of(operand))])

    def _unary(self, node: Node, operand: Terms) -> Terms:
        """Return a function of a sum; a fitted offset within it comes out, where it then enters linearly."""
        name = node.name
        offset = operand.get(())
        rest = {monomial: c for monomial, c in operand.items() if monomial}
        if offset is not None and offset.fitted:
            if name == "exp":
                return _scaled(self._unary(node, rest), _Coefficient(float(np.exp(offset.value)), True))
            plain = not any(map(is_open, self.nodes_of(rest)))  # a fitted frequency would become two
            if name in ("sin", "cos") and self.allowed >= {"sin", "cos"} and plain:
                sine, cosine = (self._unary(node_from_name(n), rest) for n in ("sin", "cos"))
                by_sine, by_cosine = np.sin(offset.value), np.cos(offset.value)
                if name == "sin":
                    by_sine, by_cosine = by_cosine, by_sine
                else:
                    by_sine = -by_sine
                return _sum(
                    _scaled(sine, _Coefficient(float(by_sine), True)),
                    _scaled(cosine, _Coefficient(float(by_cosine), True)),
                )
        if name in ("sin", "cos") and rest and all(not c.fitted and c.value < 0 for c in operand.values()):
            flipped = self._unary(node, _scaled(operand, _Coefficient(-1.0, False)))
            return flipped if name == "cos" else _scaled(flipped, _Coefficient(-1.0, False))
        return self._atom([node, *self.nodes_of(operand)])

    def _constant(self, node: Node, operand: Terms) -> Terms:
        inner = operand.get((), _Coefficient(0.0, False))
        value = float(operators.get(node.name)(inner.value))
        if not np.isfinite(value):
            raise OverflowError
        return {(): _Coefficient(value, inner.fitted)}

    def _atom(self, nodes: list[Node]) -> Terms:
        key = " ".join("C" if is_open(n) else n.name if n.arity else str(n.value) for n in nodes)
        if any(map(is_open, nodes)):  # its constants are its own, even if another atom looks like it
            key += f" #{len(self.atoms)}"
        self.atoms.setdefault(key, nodes)
        return {((key, 1),): _Coefficient(1.0, False)}

    def _inverse(self, terms: Terms) -> Terms:
        """Return 1/terms: of a single term its inverse, else an atom with one factor taken out of it."""
        if not terms:
            raise ZeroDivisionError
        if len(terms) == 1:
            ((monomial, coefficient),) = terms.items()
            inverted = tuple((atom, -exponent) for atom, exponent in monomial)
            return {inverted: _Coefficient(1.0 / coefficient.value, coefficient.fitted)}
        # a + b x is b (a/b + x): the scale of a denominator belongs to the numerator.
        first = min(terms, key=lambda monomial: (not terms[monomial].fitted, not monomial, monomial))
        factor = terms[first]
        rest = {
            monomial: _Coefficient(c.value / factor.value, (c.fitted or factor.fitted) and monomial != first)
            for monomial, c in terms.items()
        }
        ((monomial, _),) = self._atom(self.nodes_of(rest)).items()
        return {tuple((atom, -1) for atom, _ in monomial): _Coefficient(1.0 / factor.value, factor.fitted)}

    # --- writing ---

    def nodes_of(self, terms: Terms) -> list[Node]:
        parts = [self._term(monomial, terms[monomial]) for monomial in sorted(terms, key=lambda m: (len(m), m))]
        return self._chain("add", parts or [[Constant(0.0, fitted=False)]])

    def _term(self, monomial: Monomial, coefficient: _Coefficient) -> list[Node]:
        factors: list[list[Node]] = []
        divisors: list[list[Node]] = []
        if coefficient.fitted or coefficient.value != 1.0 or not monomial:
            factors.append([Constant(coefficient.value, fitted=coefficient.fitted)])
        for atom, exponent in monomial:
            power = self._power(self.atoms[atom], abs(exponent))
            if exponent > 0:
                factors.append(power)
            elif "inv" in self.allowed:
                factors.append([node_from_name("inv"), *power])
            else:
                divisors.append(power)
        if divisors and "div" not in self.allowed:
            raise KeyError("div")
        above = self._chain("mul", factors or [[Constant(1.0, fitted=False)]])
        return [node_from_name("div"), *above, *self._chain("mul", divisors)] if divisors else above

    def _power(self, nodes: list[Node], exponent: int) -> list[Node]:
        if exponent in INTEGER_POWERS and INTEGER_POWERS[exponent].name in self.allowed:
            return [node_from_name(INTEGER_POWERS[exponent].name), *nodes]
        return self._chain("mul", [nodes] * exponent)

    def _chain(self, name: str, parts: Sequence[list[Node]]) -> list[Node]:
        if len(parts) > 1 and name not in self.allowed:
            raise KeyError(name)
        joined = parts[0]
        for part in parts[1:]:
            joined = [node_from_name(name), *joined, *part]
        return joined


def _sum(a: Terms, b: Terms) -> Terms:
    result = dict(a)
    for monomial, coefficient in b.items():
        other = result.get(monomial)
        if other is None:
            result[monomial] = coefficient
        else:
            result[monomial] = _Coefficient(other.value + coefficient.value, other.fitted or coefficient.fitted)
    return _checked({m: c for m, c in result.items() if c.fitted or c.value != 0})


def _scaled(a: Terms, factor: _Coefficient) -> Terms:
    return {m: _Coefficient(c.value * factor.value, c.fitted or factor.fitted) for m, c in a.items()}


def _product(a: Terms, b: Terms) -> Terms:
    result: Terms = {}
    for first, c in a.items():
        for second, d in b.items():
            exponents = dict(first)
            for atom, exponent in second:
                exponents[atom] = exponents.get(atom, 0) + exponent
            monomial = tuple(sorted((atom, exponent) for atom, exponent in exponents.items() if exponent))
            term = {monomial: _Coefficient(c.value * d.value, c.fitted or d.fitted)}
            result = _sum(result, term)
    return _checked(result)


def _checked(terms: Terms) -> Terms:
    if len(terms) > MAX_TERMS:
        raise TooManyTermsError(format_number(len(terms)))
    return terms
