"""Leading terms: exp(u) - cos(v) is u + v**2/2 where u and v are small, as exp(u) - 1 is u, and log(1 + u).

What is left of functions whose values nearly cancel is all that data can tell; in noise such pairs stand in for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name
from deap_vsr.tree.simplify import is_literal
from deap_vsr.tree.tidy import operands_of

#: Functions that are 1 at nought, by what they add to it first: their operand, its square, or less its square.
FIRST = {"exp": (1, 1), "cosh": (1, 2), "cos": (-1, 2)}


def leading(tree: MaskedTree, function_set: Sequence[str]) -> Iterator[MaskedTree]:
    """Yield the formula with leading terms in the place of a difference of functions that are 1 at nought.

    Numbers before them, and their common sign, are left to the constants of the formula.
    """
    if not {"add", "sub"} <= set(function_set):
        return
    for position, node in enumerate(tree):
        if node.name != "sub" or not node.arity:
            continue
        first = tree.searchSubtree(position + 1)
        whole = tree.searchSubtree(position)
        left, right = (_first(tree[part], function_set) for part in (first, slice(first.stop, whole.stop)))
        if left is None or right is None:
            continue
        terms = [(sign, nodes) for sign, nodes in (left, (-right[0], right[1])) if sign]
        if len(terms) == 2:
            (sign, one), (other_sign, other) = terms
            nodes = [node_from_name("add" if sign == other_sign else "sub"), *one, *other]
        elif terms:
            nodes = terms[0][1]
        else:
            continue
        yield MaskedTree([*tree[: whole.start], *nodes, *tree[whole.stop :]])


def without_logarithms(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield the formula with u in the place of log(1 + u): for the end of a search, as what grows may need it."""
    for position, node in enumerate(tree):
        if node.name == "log" and node.arity and tree[position + 1].name == "add":
            whole = tree.searchSubtree(position)
            operands = operands_of(tree[tree.searchSubtree(position + 1)])
            for one, other in (operands, operands[::-1]):
                if is_literal(one, 1.0):
                    yield MaskedTree([*tree[: whole.start], *other, *tree[whole.stop :]])


def _first(nodes: Sequence[Node], function_set: Sequence[str]) -> tuple[int, list[Node]] | None:
    """Return what a function adds to 1 first, with its sign; nothing, for 1 itself; None for anything else."""
    head = nodes[0]
    if isinstance(head, Constant):
        return (0, []) if head.value == 1.0 and not is_open(head) else None
    if not head.arity or head.name not in FIRST:
        return None
    sign, power = FIRST[head.name]
    operand = list(nodes[1:])
    if power == 1:
        return sign, operand
    square = [node_from_name("n2"), *operand] if "n2" in function_set else [node_from_name("mul"), *operand, *operand]
    return sign, square
