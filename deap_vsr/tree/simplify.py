"""Canonical form, structural hash and folding of constants."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from deap_vsr.tree import Constant, MaskedTree, Node, Vocabulary, is_mutable, is_number, is_open, node_from_name
from deap_vsr.tree.operators import CATALOGUE, Operator
from deap_vsr.tree.walk import bottom_up

_STANDARD = Vocabulary()


def fold(tree: MaskedTree, vocabulary: Vocabulary = _STANDARD, frozen: bool = True) -> MaskedTree:
    """Replace every sub-tree that holds constants only by one constant of the same value.

    The new constant is open (mutable) if one of those it replaces is. Sub-trees whose value is not finite are left as
    they are, and so are those with a frozen node, unless `frozen` ones may go.
    """

    def folded(position: int, node: Node, operands: list[list[Node]]) -> list[Node]:
        whole = [node, *chain.from_iterable(operands)]
        if node.arity and all(map(_is_one_number, operands)) and (frozen or all(map(is_mutable, whole))):
            return _folded(vocabulary.operator(node), [operand[0] for operand in operands], whole)
        return whole

    nodes = bottom_up(tree.checked(), folded)
    return type(tree)(nodes)


def _is_one_number(nodes: Sequence[Node]) -> bool:
    return len(nodes) == 1 and is_number(nodes[0])


def _folded(operator: Operator, numbers: Sequence[Node], otherwise: list[Node]) -> list[Node]:
    value = float(operator(*(float(number.value) for number in numbers)))
    if not np.isfinite(value):
        return otherwise
    fitted, mutable = any(map(is_open, numbers)), any(map(is_mutable, numbers))
    return [Constant(value, fitted, mutable, numbers[0].ret)]


class _Part:
    """A sub-tree in canonical order: positions of its nodes and the digests that order it."""

    __slots__ = ("digest", "exact", "nodes", "rank")
    digest: str
    exact: str

    def __init__(self, nodes: list[int], rank: tuple[int, int], name: str, exact: str, parts: Sequence[_Part]) -> None:
        self.nodes = nodes
        self.rank = rank
        # The same for equal structure, whatever the values of constants ...
        self.digest = _digest(name, *(part.digest for part in parts))
        # ... and not, to break ties: sin(2 x) + sin(3 x) has one order only.
        self.exact = _digest(exact, *(part.exact for part in parts))

    def sort_key(self) -> tuple[tuple[int, int], str, str]:
        return self.rank, self.digest, self.exact


class _Chain:
    """Sums within sums (or products within products), flattened but not yet ordered."""

    __slots__ = ("heads", "name", "parts")

    def __init__(self, name: str, position: int, operands: Sequence[_Part | _Chain]) -> None:
        self.name = name
        self.heads = [position]
        self.parts: list[_Part] = []
        for operand in operands:
            if isinstance(operand, _Chain) and operand.name == name:
                # Extend the longer list, so that a chain of n operands costs n steps.
                self.heads, operand.heads = sorted((self.heads, operand.heads), key=len, reverse=True)
                self.parts, operand.parts = sorted((self.parts, operand.parts), key=len, reverse=True)
                self.heads += operand.heads
                self.parts += operand.parts
            else:
                self.parts.append(_closed(operand))


@lru_cache(maxsize=200_000)
def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _closed(item: _Part | _Chain) -> _Part:
    """Return a chain as a left-nested part: all its operators first, then the ordered operands."""
    if isinstance(item, _Part):
        return item
    parts = sorted(item.parts, key=_Part.sort_key)
    nodes = [*sorted(item.heads), *chain.from_iterable(part.nodes for part in parts)]
    return _Part(nodes, (1, len(nodes)), item.name, item.name, parts)


def _leaf(node: Node, position: int) -> _Part:
    if is_number(node):
        return _Part([position], (2, 0), "C", f"C {float(node.value)!r} {is_open(node)}", ())
    index = int(node.value[1:]) if node.value[1:].isdigit() else 0
    return _Part([position], (0, index), node.value, node.value, ())


def _ordered(tree: Sequence[Node], vocabulary: Vocabulary = _STANDARD) -> _Part:
    """Return `tree` in canonical order: variables, then larger parts, then constants."""

    def ordered(position: int, node: Node, operands: list[_Part | _Chain]) -> _Part | _Chain:
        if not node.arity:
            return _leaf(node, position)
        if vocabulary.operator(node).commutative:
            return _Chain(node.name, position, operands)
        parts = [_closed(operand) for operand in operands]
        nodes = [position, *chain.from_iterable(part.nodes for part in parts)]
        return _Part(nodes, (1, len(nodes)), node.name, node.name, parts)

    return _closed(bottom_up(tree, ordered))


def without_neutral(tree: MaskedTree) -> MaskedTree:
    """Return the tree without factors and divisors of 1 and terms of 0; literals only, open constants stay."""

    def shorter(position: int, node: Node, operands: list[list[Node]]) -> list[Node]:
        neutral = {"mul": 1.0, "div": 1.0, "add": 0.0, "sub": 0.0}.get(node.name) if node.arity == 2 else None
        if neutral is not None and is_literal(operands[1], neutral):
            return operands[0]
        if node.name in ("mul", "add") and neutral is not None and is_literal(operands[0], neutral):
            return operands[1]
        return [node, *chain.from_iterable(operands)]

    nodes = bottom_up(tree, shorter)
    return type(tree)(nodes)


def literals(tree: MaskedTree) -> MaskedTree:
    """Return the tree with every constant a number as it stands: none is fitted, none may change."""
    return MaskedTree(
        Constant(node.value, False, False, node.ret) if isinstance(node, Constant) or is_open(node) else node
        for node in tree
    )


def with_sums(tree: MaskedTree) -> MaskedTree:
    """Return the tree with differences and signs as sums with a factor of -1, so that only numbers tell them apart."""

    def summed(position: int, node: Node, operands: list[list[Node]]) -> list[Node]:
        if node.name in ("sub", "neg") and node.arity:
            operands[-1] = [node_from_name("mul"), Constant(-1.0, fitted=False), *operands[-1]]
        if node.name == "neg" and node.arity:
            return operands[0]
        name = node_from_name("add") if node.name == "sub" and node.arity else node
        return [name, *chain.from_iterable(operands)]

    nodes = bottom_up(tree, summed)
    return type(tree)(nodes)


def is_literal(nodes: Sequence[Node], value: float) -> bool:
    """Whether nodes are one literal of this value."""
    return len(nodes) == 1 and isinstance(nodes[0], Constant) and not nodes[0].fitted and nodes[0].value == value


def canonical(tree: MaskedTree, vocabulary: Vocabulary = _STANDARD) -> MaskedTree:
    """Return the canonical form: constants folded, commutative operands ordered.

    Values stay the same up to the rounding of a re-ordered sum or product; applying it twice
    changes nothing.
    """
    form = fold(tree, vocabulary)
    while True:
        ordered = type(tree)([form[position] for position in _ordered(form, vocabulary).nodes])
        form = fold(_merged(ordered, vocabulary), vocabulary)
        if len(form) == len(ordered):
            return ordered


def _merged(tree: MaskedTree, vocabulary: Vocabulary) -> MaskedTree:
    """Fold the constants of a chain, which canonical order has put last: (x + 2) + 3 is x + 5."""

    def merged(position: int, node: Node, operands: list[tuple[list[Node], bool]]) -> tuple[list[Node], bool]:
        """Return nodes, and whether they are a sum or product with a number last."""
        whole = [node, *chain.from_iterable(operand for operand, _ in operands)]
        number_last = bool(node.arity) and vocabulary.operator(node).commutative and _is_one_number(operands[1][0])
        if number_last:
            (first, first_has_one), (second, _) = operands
            if first_has_one and first[0].name == node.name:
                number = _folded(vocabulary.operator(node), [first[-1], second[0]], [])
                whole = [*first[:-1], *number] if number else whole
        return whole, number_last

    return type(tree)(bottom_up(tree, merged)[0])


def structural_hash(tree: MaskedTree, vocabulary: Vocabulary = _STANDARD) -> str:
    """Return a hash of the canonical form with constants anonymous.

    Trees that differ only in the values of their constants, or in the order of commutative
    operands, share it. It is the same in every process.
    """
    return _ordered(canonical(tree, vocabulary), vocabulary).digest


def skeleton_key(tree: Sequence[Node], chains: bool = False) -> int:
    """Return a hash of a formula with anonymous constants: what it can fit, not with which values.

    Constants of constants are one constant, and the operands of sums and products are in order, so that most
    candidates that can only do the same share it. With `chains` sums within sums are one sum, and so are products, and
    a function of a constant is a constant only where it takes every value: exp(C)*x cannot do what C*x can.
    Cheaper than :func:`structural_hash`, as searches ask it for every candidate; the same in every process.
    """
    stack: list[int | _Long] = []
    pop, push = stack.pop, stack.append
    for node in reversed(tree):
        arity = node.arity
        if arity == 0:
            push(_OPEN if is_open(node) else _code(str(node.value)))
            continue
        name = node.name
        if arity == 1:
            operand = _hash_of(pop())
            free = operand == _OPEN and (not chains or name in _ONTO)
            push(_OPEN if free else hash((_code(name), operand)))
        elif name in _COMMUTATIVE:
            long = _Long(name, [])
            for item in [pop() for _ in range(arity)]:
                if chains and isinstance(item, _Long) and item.name == name:
                    long.hashes.extend(item.hashes)
                else:
                    long.hashes.append(_hash_of(item))
            push(long)
        else:
            operands = [_hash_of(pop()) for _ in range(arity)]
            push(_OPEN if operands.count(_OPEN) == arity else hash((_code(name), *operands)))
    return _hash_of(stack[0])


class _Long(NamedTuple):
    """A sum or product that may yet become part of a longer one: its operator and the hashes of its operands."""

    name: str
    hashes: list[int]


def _hash_of(item: int | _Long) -> int:
    if isinstance(item, int):
        return item
    hashes = item.hashes
    n_open = hashes.count(_OPEN)
    if n_open == len(hashes):
        return _OPEN
    if n_open > 1:  # C + x + C is C + x
        hashes = [_OPEN, *(one for one in hashes if one != _OPEN)]
    return hash((_code(item.name), *sorted(hashes)))


_OPEN = 0x5EED  # stands for an open constant among hashes

#: Unary operators that take every value but, perhaps, 0.
_ONTO = {"neg", "inv", "n3", "n5"}


@lru_cache(maxsize=100_000)
def _code(text: str) -> int:
    """Return a number for a name, the same in every process; hashes of text are not."""
    return zlib.crc32(text.encode()) << 20 | len(text)


_COMMUTATIVE = {operator.name for operator in CATALOGUE.values() if operator.commutative}
