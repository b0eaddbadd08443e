"""Between a user's primitive set and the catalogue: which operators a set has, and formulas from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from deap import gp

from deap_vsr.errors import ExpressionError
from deap_vsr.tree.masked import Constant, MaskedTree, Node, Vocabulary, is_mutable, node_from_name, variable, with_flag
from deap_vsr.tree.operators import CATALOGUE, from_function


def known_operators(pset: gp.PrimitiveSetTyped) -> dict[str, gp.Primitive]:
    """Return the primitives of a set that are operators of the catalogue, by the names they have there.

    A guarded one stands for the operator that it guards, where the set has not that itself.
    """
    known: dict[str, gp.Primitive] = {}
    guarded: dict[str, gp.Primitive] = {}
    for primitives in pset.primitives.values():
        for primitive in primitives:
            operator = from_function(primitive.name, pset.context[primitive.name], primitive.arity)
            if CATALOGUE.get(operator.name) is operator:
                known.setdefault(operator.name, primitive)
            elif operator.plain:
                guarded.setdefault(operator.plain, primitive)
    return {**known, **{name: primitive for name, primitive in guarded.items() if name not in known}}


def to_catalogue(tree: Sequence[Node], pset: gp.PrimitiveSetTyped) -> MaskedTree | None:
    """Return a tree of a user's set in operators of the catalogue and x1, x2, ...; None if it holds others.

    Guards are left out: where they matter the formula is another one, which whoever uses it must see for himself.
    """
    vocabulary = Vocabulary(pset)
    nodes: list[Node] = []
    for node in tree:
        if node.arity:
            operator = vocabulary.operator(node)
            if not operator.plain and CATALOGUE.get(operator.name) is not operator:
                return None
            nodes.append(with_flag(node_from_name(operator.plain or operator.name), is_mutable(node)))
            continue
        column = vocabulary.column(node)
        if column is not None:
            nodes.append(with_flag(variable(column + 1), is_mutable(node)))
        elif isinstance(node, Constant):
            nodes.append(Constant(node.value, node.fitted, node.mutable))
        else:
            try:
                nodes.append(Constant(vocabulary.number(node), False, is_mutable(node)))
            except ExpressionError:
                return None
    return MaskedTree(nodes)


def to_set(tree: MaskedTree, pset: gp.PrimitiveSetTyped) -> MaskedTree | None:
    """Return a formula of the catalogue in a user's primitives and arguments; None if the set has not all of them."""
    known = known_operators(pset)
    names = {f"x{column + 1}": name for column, name in enumerate(pset.arguments)}
    nodes: list[Node] = []
    for node in tree:
        if node.arity:
            if node.name not in known:
                return None
            nodes.append(with_flag(known[node.name], is_mutable(node)))
        elif isinstance(node, Constant):
            nodes.append(Constant(node.value, node.fitted, node.mutable, pset.ret))
        else:
            nodes.append(with_flag(pset.mapping[names[node.value]], is_mutable(node)))
    return MaskedTree(nodes)
