"""Squares and inverses: (x1 - x2)**2 for x1**2 - 2*x1*x2 + x2**2, 0.5*x1 for log(sqrt(exp(x1))).

Only operators of the function set are used. Values stay the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name
from deap_vsr.tree.walk import bottom_up

#: Coefficients of a square that differ by no more are those of a square.
SAME = 1e-12

#: Powers that come out of a logarithm, and go into an exponential.
POWERS = {"sqrt": 0.5, "n2": 2.0, "n3": 3.0}

Nodes = list[Node]


def without_inverses(tree: MaskedTree, function_set: Sequence[str]) -> MaskedTree:
    """Return the tree without functions that undo each other, on positive numbers: log(sqrt(exp(x1))) is 0.5*x1.

    x1/exp(C*x2), which is no number where exp is infinite, is x1*exp(C*x2) with the sign of C changed. A factor that
    comes out of a function is an open constant.
    """
    product = "mul" in function_set

    def undone(position: int, node: Node, operands: list[Nodes]) -> Nodes:
        last = operands[-1] if operands else [node]
        pair, rest = (node.name, last[0].name), last[1:]
        if pair in (("log", "exp"), ("exp", "log"), ("n2", "sqrt")):
            return rest
        if node.name == "log" and last[0].name in POWERS and product:  # 0.5*log(u); u may be exp(v)
            logarithm = rest[1:] if rest[0].name == "exp" else [node, *rest]
            return [node_from_name("mul"), Constant(POWERS[last[0].name]), *logarithm]
        if node.name in POWERS and last[0].name == "exp" and product:
            return [last[0], node_from_name("mul"), Constant(POWERS[node.name]), *rest]
        if pair in (("div", "exp"), ("inv", "exp")) and product and _has_factor(rest):
            power = [last[0], rest[0], Constant(-float(rest[1].value)), *rest[2:]]
            return [node_from_name("mul"), *operands[0], *power] if node.name == "div" else power
        return [node, *chain.from_iterable(operands)]

    nodes = bottom_up(tree, undone)
    return MaskedTree(nodes)


def _has_factor(nodes: Sequence[Node]) -> bool:
    """Whether an open constant is in front."""
    return nodes[0].name in ("mul", "div") and is_open(nodes[1])


# --- squares ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A term of a sum: a number times factors."""

    number: float
    factors: tuple[tuple[Node, ...], ...]

    @property
    def square_of(self) -> tuple[tuple[Node, ...], ...] | None:
        """The factors of what it is a number times the square of."""
        half, other = self.factors[0::2], self.factors[1::2]  # they are in order: the same ones are neighbours
        return half if half and list(map(_text, half)) == list(map(_text, other)) else None

    def nodes(self, function_set: Sequence[str]) -> Nodes:
        """Return the product."""
        parts: list[Nodes] = []
        for factor in self.factors:  # they are in order: the same ones are neighbours
            if parts and "n2" in function_set and _text(parts[-1]) == _text(factor):
                parts[-1] = [node_from_name("n2"), *factor]
            else:
                parts.append(list(factor))
        if self.number != 1.0 or not parts:
            parts.insert(0, [Constant(self.number, False, False)])
        return [*(node_from_name("mul") for _ in parts[1:]), *chain.from_iterable(parts)]


def with_squares(tree: MaskedTree, function_set: Sequence[str]) -> MaskedTree:
    """Return the tree with p*a**2 + r*a*b + q*b**2 written as one square where r**2 = 4*p*q."""
    if not {"add", "mul"} <= set(function_set):
        return tree

    def squared(position: int, node: Node, operands: list[Nodes]) -> Nodes:
        whole = [node, *chain.from_iterable(operands)]
        if node.name not in ("add", "sub"):
            return whole
        terms = terms_of(whole, 1.0)
        joined = _joined_squares(terms, function_set)
        if len(joined) == len(terms):
            return whole
        parts = [term.nodes(function_set) for term in joined]
        return [*(node_from_name("add") for _ in parts[1:]), *chain.from_iterable(parts)]

    nodes = bottom_up(tree, squared)
    return MaskedTree(nodes)


def operands_of(nodes: Sequence[Node]) -> list[Nodes]:
    """Return the operands of the first node."""
    tree = MaskedTree(nodes)
    result = []
    start = 1
    for _ in range(nodes[0].arity):
        part = tree.searchSubtree(start)
        result.append(list(nodes[part]))
        start = part.stop
    return result


def terms_of(nodes: Nodes, sign: float) -> list[Term]:
    """Return the terms of a sum, its signs in their numbers."""
    if nodes[0].name not in ("add", "sub"):
        number, factors = _factors(nodes)
        return [Term(sign * number, tuple(sorted(factors, key=_text)))]
    first, second = operands_of(nodes)
    return terms_of(first, sign) + terms_of(second, -sign if nodes[0].name == "sub" else sign)


def _text(nodes: Sequence[Node]) -> str:
    return MaskedTree(nodes).to_infix()


def _factors(nodes: Nodes) -> tuple[float, list[tuple[Node, ...]]]:
    """Return the number and the other factors of a product; a square is twice its factor."""
    node = nodes[0]
    if isinstance(node, Constant) and not node.fitted:
        return float(node.value), []
    if node.name not in ("mul", "n2"):
        return 1.0, [tuple(nodes)]
    parts = [_factors(operand) for operand in operands_of(nodes)]
    parts = parts if node.name == "mul" else parts * 2
    number = 1.0
    for value, _ in parts:
        number *= value
    return number, [factor for _, factors in parts for factor in factors]


def _joined_squares(terms: list[Term], function_set: Sequence[str]) -> list[Term]:
    squares = [i for i, term in enumerate(terms) if term.square_of is not None]
    for i, j in combinations(squares, 2):
        for k, cross in enumerate(terms):
            joined = _joined_square(terms[i], cross, terms[j], function_set) if k not in (i, j) else None
            if joined is not None:
                rest = [joined if place == i else term for place, term in enumerate(terms) if place not in (j, k)]
                return _joined_squares(rest, function_set)
    return terms


def _joined_square(a: Term, cross: Term, b: Term, function_set: Sequence[str]) -> Term | None:
    """Return the square that the three terms make up; None if they do not, or its numbers are not as short."""
    first, second = a.square_of, b.square_of
    if first is None or second is None:
        return None
    if sorted(map(_text, cross.factors)) != sorted(map(_text, (*first, *second))):
        return None
    if abs(cross.number**2 - 4.0 * a.number * b.number) > SAME * cross.number**2:
        return None
    ratio = cross.number / (2.0 * a.number)  # a (first + ratio*second)**2
    if a.number * b.number <= 0.0 or ratio != round(ratio):
        return None
    plain = Term(1.0, first).nodes(function_set)
    scaled = Term(abs(ratio), second).nodes(function_set)
    if ratio > 0:
        inside = [node_from_name("add"), *plain, *scaled]
    elif "sub" in function_set:
        inside = [node_from_name("sub"), *plain, *scaled]
    else:
        inside = [node_from_name("add"), *plain, *Term(ratio, second).nodes(function_set)]
    if "n2" in function_set:
        return Term(a.number, ((node_from_name("n2"), *inside),))
    return Term(a.number, (tuple(inside), tuple(inside)))
