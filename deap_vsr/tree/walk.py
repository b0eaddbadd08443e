"""Walks over a tree, or any nodes in prefix order, without recursion: depth alone cannot crash them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from deap_vsr.tree.masked import Node

T = TypeVar("T")


def bottom_up(nodes: Sequence[Node], combine: Callable[[int, Node, list[T]], T]) -> T:
    """Return what `combine` makes of the root.

    ``combine(position, node, operands)`` is called for each node, the last first; `operands` is what it made of the
    node's operands, in their order.
    """
    stack: list[T] = []
    for position in range(len(nodes) - 1, -1, -1):
        node = nodes[position]
        stack.append(combine(position, node, [stack.pop() for _ in range(node.arity)]))
    return stack[0]


def operand_positions(nodes: Sequence[Node]) -> list[list[int]]:
    """Return the positions of each node's operands, in their order."""
    positions: list[list[int]] = [[] for _ in nodes]

    def note(position: int, node: Node, operands: list[int]) -> int:
        positions[position] = operands
        return position

    bottom_up(nodes, note)
    return positions
