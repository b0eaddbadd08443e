"""Between a user's primitive set and the catalogue: which operators a set has, and formulas from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from deap import gp

from deap_vsr.errors import ExpressionError
from deap_vsr.tree.masked import Constant, MaskedTree, Node, Vocabulary, is_mutable, node_from_name, variable, with_flag
from deap_vsr.tree.operators import CATALOGUE, from_function
from deap_vsr.tree.walk import bottom_up

T = TypeVar("T")


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


def names_are_ours(pset: gp.PrimitiveSetTyped | None, names: Sequence[str]) -> bool:
    """Whether primitives of these names are what the catalogue calls so, and can stand beside any others."""
    if pset is None:
        return True
    known = known_operators(pset)
    return pset.ret is object and all(name in known and known[name].name == name for name in names)


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
    """Return a formula of the catalogue in a user's primitives and arguments; None if the set cannot say it.

    What the set has not is written with what it has: squares as products, -u as -1*u, 1/u as a division.
    """
    known = known_operators(pset)
    names = {f"x{column + 1}": name for column, name in enumerate(pset.arguments)}
    missing = False

    def number(value: float) -> Node:
        return Constant(value, False, False, pset.ret)

    def written(position: int, node: Node, operands: list[list[Node]]) -> list[Node]:
        nonlocal missing
        if isinstance(node, Constant):
            return [Constant(node.value, node.fitted, node.mutable, pset.ret)]
        if not node.arity:
            if node.value not in names:
                missing = True
                return [node]
            return [with_flag(pset.mapping[names[node.value]], is_mutable(node))]
        if node.name in known:
            return [with_flag(known[node.name], is_mutable(node)), *chain.from_iterable(operands)]
        for needed, nodes in _otherwise(node.name, operands, number):
            if set(needed) <= known.keys():
                return [known[one] if isinstance(one, str) else one for one in nodes]
        missing = True
        return [node, *chain.from_iterable(operands)]

    nodes = bottom_up(tree, written)
    return None if missing else MaskedTree(nodes)


def _otherwise(
    name: str, operands: Sequence[list[Node]], number: Callable[[float], Node]
) -> Iterator[tuple[tuple[str, ...], list[str | Node]]]:
    """Yield other ways to write an operator: the operators they need, and prefix nodes, operators by their names."""
    first = operands[0]
    if name.startswith("n") and name[1:].isdigit():
        exponent = int(name[1:])
        yield ("mul",), [*["mul"] * (exponent - 1), *first * exponent]
    elif name == "neg":
        yield ("mul",), ["mul", number(-1.0), *first]
        yield ("sub",), ["sub", number(0.0), *first]
    elif name == "inv":
        yield ("div",), ["div", number(1.0), *first]
    elif name == "sub":
        yield ("add", "mul"), ["add", *first, "mul", number(-1.0), *operands[1]]
        yield ("add", "neg"), ["add", *first, "neg", *operands[1]]
    elif name == "div":
        yield ("mul", "inv"), ["mul", *first, "inv", *operands[1]]
    elif name == "sqrt":
        yield ("pow",), ["pow", *first, number(0.5)]


def to_individual(formula: Any, kind: Callable[[Any], T], pset: gp.PrimitiveSetTyped) -> T:
    """Return a formula as an individual of a script's own class and primitives.

    Parameters
    ----------
    formula : what ``discover`` returned, or a formula of the catalogue
    kind : class of the individuals, such as ``creator.Individual``
    pset : its arguments stand for x1, x2, ..., in order
    """
    tree = getattr(formula, "tree", formula)
    if not isinstance(tree, MaskedTree):
        raise ExpressionError("there is no formula to make an individual of")
    written = to_set(tree, pset)
    if written is None:
        known = known_operators(pset)
        absent = dict.fromkeys(node.name for node in tree if node.arity and node.name not in known)
        wanted = f"operators {', '.join(absent)}" if absent else f"more than {len(pset.arguments)} arguments"
        raise ExpressionError(f"the primitive set cannot say {tree.to_infix()}: that needs {wanted}")
    return kind(with_flag(node, True) for node in written)


def from_individual(individual: Sequence[Node], pset: gp.PrimitiveSetTyped) -> MaskedTree:
    """Return an individual as a formula of the catalogue in x1, x2, ...; guards of protected operators are left out."""
    tree = to_catalogue(individual, pset)
    if tree is None:
        vocabulary = Vocabulary(pset)
        own = dict.fromkeys(node.name for node in individual if node.arity and not vocabulary.operator(node).known)
        raise ExpressionError(f"primitives {', '.join(own)} are none of the catalogue's")
    return tree
