"""Random masked trees for property tests.

A tree is decoded from a string of bytes, each byte choosing a node: fast to draw, and a shorter
string with smaller bytes is a simpler tree, which is what shrinking wants.
"""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from deap_vsr.tree import (
    Constant,
    MaskedTree,
    Node,
    is_mutable,
    is_open,
    node_from_name,
    operators,
    variable,
    with_flag,
)

ALL_OPERATORS = tuple(operators.CATALOGUE)

#: Numbers that print and fold in unusual ways, and some that do not.
PLAIN_NUMBERS = (1.0, 2.0, -1.0, 0.5, 3.0, -2.5, 7.0, 0.1, -0.3, 1.25, 5.0, -4.0, 8.0, 6.0)
ODD_NUMBERS = (
    0.0,
    -0.0,
    5e-324,
    1e-300,
    -1e-17,
    1e16,
    -1e22,
    9007199254740993.0,
    1.7976931348623157e308,
    -123456789.123456,
    math.pi,
    1e15,
)
#: Numbers with which most formulas stay within a float's range.
MODERATE_NUMBERS = (0.5, -0.5, 1.3, -1.7, 2.25, 0.1, -3.4, 4.6, 1.0, 2.0, -1.0, 3.0)


class _Genome:
    """Bytes to read from; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def double(self) -> float:
        value = struct.unpack("<d", bytes(self.byte() for _ in range(8)))[0]
        return value if math.isfinite(value) else 1.5


def _leaf(genome: _Genome, n_vars: int, numbers: Sequence[float] | None) -> Node:
    choice = genome.byte()
    if choice % 2 == 0 or numbers == ():
        return variable(choice // 2 % n_vars + 1)
    if numbers is None:
        pool = (*PLAIN_NUMBERS, *ODD_NUMBERS)
        pick = genome.byte()
        value = genome.double() if pick >= 192 else pool[pick % len(pool)]
    else:
        value = numbers[genome.byte() % len(numbers)]
    return Constant(value, fitted=choice % 4 == 3)


def decode(
    data: bytes,
    *,
    names: Sequence[str] = ALL_OPERATORS,
    n_vars: int = 3,
    numbers: Sequence[float] | None = None,
    masked: bool = True,
) -> MaskedTree:
    """Return the tree that `data` spells; `numbers` None means any finite double."""
    genome = _Genome(data)
    # Binary operators more often than their share, or most trees would be chains.
    pool = [name for name in names for _ in range(3 if operators.get(name).arity == 2 else 1)]
    nodes: list[Node] = []
    missing = 1
    while missing:
        choice = genome.byte()
        # Operators as long as there are more bytes than open ends, so that every genome ends.
        if choice % 8 != 7 and genome.left > 2 * missing:
            node: Node = node_from_name(pool[genome.byte() % len(pool)])
        else:
            node = _leaf(genome, n_vars, numbers)
        if masked and choice >= 128:
            node = with_flag(node, False)
        nodes.append(node)
        missing += node.arity - 1
    return MaskedTree(nodes)


def trees(
    *,
    names: Sequence[str] = ALL_OPERATORS,
    n_vars: int = 3,
    numbers: Sequence[float] | None = None,
    masked: bool = True,
    size: int = 60,
) -> st.SearchStrategy[MaskedTree]:
    """Random trees: any operators, variables, literal, open and frozen constants, any mask."""
    return st.binary(max_size=size).map(
        lambda data: decode(data, names=names, n_vars=n_vars, numbers=numbers, masked=masked)
    )


def random_tree(rng: random.Random, size: int = 40, **options: object) -> MaskedTree:
    """Return a random tree for seeded loops."""
    return decode(rng.randbytes(rng.randint(1, size)), **options)  # type: ignore[arg-type]


def masked_at_random(nodes: Iterable[Node], rng: random.Random) -> MaskedTree:
    """Return a tree of `nodes`, about half of them frozen."""
    return MaskedTree(with_flag(node, rng.random() < 0.5) for node in nodes)


def key(node: Node) -> tuple[object, ...]:
    """Return all that a node is: two nodes with one key are interchangeable."""
    value = None if node.arity else (node.value if isinstance(node.value, str) else repr(float(node.value)))
    arguments = tuple(node.args) if node.arity else ()
    return node.name if node.arity else "", value, is_mutable(node), is_open(node), arguments, node.ret


def keys(nodes: Iterable[Node]) -> list[tuple[object, ...]]:
    return [key(node) for node in nodes]


def frozen(nodes: Iterable[Node]) -> Counter[tuple[object, ...]]:
    """Return the multiset of frozen nodes."""
    return Counter(key(node) for node in nodes if not is_mutable(node))


def subtrees(tree: MaskedTree) -> list[slice]:
    """Return the slices of all complete sub-trees, by their first node."""
    return [tree.searchSubtree(i) for i in range(len(tree))]


def branches(tree: Sequence[Node], at: int = 0) -> tuple[list[list[Node]], int]:
    """Return the operands of the node at `at`, and where its sub-tree ends."""
    operands = []
    end = at + 1
    for _ in range(tree[at].arity):
        start = end
        _, end = branches(tree, start)
        operands.append(list(tree[start:end]))
    return operands, end


def commuted(nodes: Sequence[Node], rng: random.Random) -> list[Node]:
    """Return the expression with the operands of add and mul swapped at random."""
    operands = [commuted(operand, rng) for operand in branches(nodes)[0]]
    if nodes[0].name in ("add", "mul") and rng.random() < 0.5:
        operands.reverse()
    return [nodes[0], *(node for operand in operands for node in operand)]


def reassociated(nodes: Sequence[Node], rng: random.Random) -> list[Node]:
    """Return the expression with sums and products shuffled and bracketed anew."""
    name = nodes[0].name
    if not nodes[0].arity or name not in ("add", "mul"):
        operands = [reassociated(operand, rng) for operand in branches(nodes)[0]]
        return [nodes[0], *(node for operand in operands for node in operand)]
    pending, parts = [list(nodes)], []
    while pending:
        part = pending.pop()
        if part[0].arity and part[0].name == name:
            pending.extend(branches(part)[0])
        else:
            parts.append(reassociated(part, rng))
    rng.shuffle(parts)
    while len(parts) > 1:
        i = rng.randrange(len(parts) - 1)
        parts[i : i + 2] = [[node_from_name(name), *parts[i], *parts[i + 1]]]
    return parts[0]
