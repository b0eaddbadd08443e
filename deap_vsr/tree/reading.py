"""A formula for printing, in operators that its set may not have.

-x1 for -1*x1, x1**4 for (x1**2)**2, exp(-x1) for 1/exp(x1), 2/3 for 0.6666666666666666.
"""

from __future__ import annotations

from itertools import chain

from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name
from deap_vsr.tree.operators import INTEGER_POWERS
from deap_vsr.tree.powers import Nodes, fraction, literal
from deap_vsr.tree.tidy import operands_of
from deap_vsr.tree.walk import bottom_up


def for_reading(tree: MaskedTree) -> MaskedTree:
    """Return a formula for printing: -x1 for -1*x1, 1/x1 for inv(x1), x1**4 for (x1**2)**2, whatever the set has."""

    def shown(position: int, node: Node, operands: list[Nodes]) -> Nodes:
        whole = [node, *chain.from_iterable(operands)]
        value = literal(whole)
        if value is not None:
            return _as_fraction(whole, value)
        if node.arity and node.name == "mul":
            return _as_quotient(operands) or _with_sign(whole, operands)
        if node.arity == 1 and node.name == "inv":
            return _inverse(operands[0])
        if node.name == "div" and node.arity and literal(operands[0]) == 1.0:
            return _inverse(operands[1])
        if node.name == "pow" and node.arity and literal(operands[1]) in INTEGER_POWERS:
            return [node_from_name(f"n{int(literal(operands[1]) or 0)}"), *operands[0]]
        if node.name in ("n2", "n3") and operands[0][0].name in ("n2", "n3", "n4"):
            exponent = int(node.name[1:]) * int(operands[0][0].name[1:])
            return [node_from_name(f"n{exponent}"), *operands[0][1:]] if exponent in INTEGER_POWERS else whole
        return whole

    nodes = bottom_up(tree, shown)
    return MaskedTree(nodes)


def _as_fraction(whole: Nodes, value: float) -> Nodes:
    """Return a number as a quotient of small ones, if it is one and has many digits."""
    parts = fraction(value)
    return whole if parts is None else [node_from_name("div"), *(Constant(float(n), False, False) for n in parts)]


def _inverse(below: Nodes) -> Nodes:
    """Return 1/u; of an exponential that of the opposite."""
    if below[0].name == "exp" and below[0].arity:
        return [below[0], *_opposite(below[1:])]
    return [node_from_name("div"), Constant(1.0, False, False), *below]


def _opposite(nodes: Nodes) -> Nodes:
    """Return -u, without two signs."""
    if nodes[0].name == "neg" and nodes[0].arity:
        return nodes[1:]
    value = literal(nodes)
    if value is not None:
        return [Constant(-value, False, False)]
    if nodes[0].arity == 2 and nodes[0].name in ("mul", "div", "sub"):
        first, second = operands_of(nodes)
        return [nodes[0], *second, *first] if nodes[0].name == "sub" else [nodes[0], *_opposite(first), *second]
    return [node_from_name("neg"), *nodes]


def _as_quotient(operands: list[Nodes]) -> Nodes | None:
    """Return a product with 1/u as a quotient; None if there is no such factor."""
    for one, other in (operands, operands[::-1]):
        if one[0].name == "div" and one[0].arity and literal(one[1:]) == 1.0:
            return [one[0], *other, *one[2:]]
    return None


def _with_sign(whole: Nodes, operands: list[Nodes]) -> Nodes:
    """Return a product without a factor of -1: as the sign of what it is a factor of."""
    if literal(operands[0]) != -1.0 or literal(operands[1]) is not None:
        return whole
    return [node_from_name("neg"), *operands[1]]
