"""Shorter formulas: what a formula is without one of its operators."""

from __future__ import annotations

from collections.abc import Iterator

from deap_vsr.tree import Constant, MaskedTree, is_mutable
from deap_vsr.tree.walk import operand_positions


def shorter(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield the formula with an operand, or an open constant, in the place of each operator that may change."""
    operands = operand_positions(tree)
    for position, node in enumerate(tree):
        whole = tree.searchSubtree(position)
        if not node.arity or not all(map(is_mutable, tree[whole])):
            continue
        for place in ([Constant(1.0)], *(tree[tree.searchSubtree(operand)] for operand in operands[position])):
            yield MaskedTree([*tree[: whole.start], *place, *tree[whole.stop :]])
