"""Waves in fewer numbers: sin(u)*cos(v) + cos(u)*sin(v) is sin(u + v), and cos(u + 4.71) is sin(u).

A phase of several variables is found term by term, as a sum of products; as a wave it has half the numbers, and what is
to come has one slot to grow in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name

#: Numbers within waves are taken for the same within this share: phases of tens of turns are known far better, those of
#: less than one hardly worse.
SAME_NUMBER = 0.05
#: The factors before both are taken for the same, but for their sign, within this factor.
WITHIN = 1.25

#: A number within a wave that is so near to some quarters of a turn is tried as these: noise keeps it from being them.
NEAR_QUARTER = 0.05
#: A wave ahead by a quarter of a turn, and its sign.
AHEAD = {"sin": ("cos", 1.0), "cos": ("sin", -1.0)}

Nodes = tuple[Node, ...]


def without_quarters(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield the formula with one wave without the quarters of a turn that are added in it."""
    for position, node in enumerate(tree):
        if node.name not in AHEAD:
            continue
        whole = tree.searchSubtree(position)
        terms = _chain(tree, position + 1, "add")
        for i, number in enumerate(terms):
            if len(terms) < 2 or len(number) != 1 or not is_open(number[0]):
                continue
            value = float(number[0].value)
            quarters = round(value / (0.5 * math.pi))
            if abs(value - 0.5 * math.pi * quarters) > NEAR_QUARTER:
                continue
            name, sign = node.name, 1.0
            for _ in range(quarters % 4):
                name, turned = AHEAD[name]
                sign *= turned
            wave = (node_from_name(name), *_joined("add", [*terms[:i], *terms[i + 1 :]]))
            yield MaskedTree([*tree[: whole.start], *_signed(wave, sign), *tree[whole.stop :]])


@dataclass(frozen=True)
class _Waves:
    """A product of two waves: their names and arguments, other factors, numbers apart, and what those come to."""

    waves: tuple[tuple[str, Nodes], ...]
    others: tuple[Nodes, ...]
    numbers: tuple[Nodes, ...]
    size: float


def as_one_wave(first: Sequence[Node], second: Sequence[Node], sign: float = 1.0) -> Iterator[Nodes]:
    """Yield the sum of two terms, the second times `sign`, as one wave, if that is what they are."""
    one, other = _waves(first), _waves(second)
    if one is None or other is None or len(one.others) != len(other.others) or not one.size:
        return
    if not all(_same(a, b, 0.0) for a, b in zip(one.others, other.others, strict=True)):
        return
    ratio = sign * other.size / one.size
    if not 1.0 / WITHIN <= abs(ratio) <= WITHIN:
        return
    for aligned in (other.waves, other.waves[::-1]):
        if not all(_same(a, b, SAME_NUMBER) for (_, a), (_, b) in zip(one.waves, aligned, strict=True)):
            continue
        names, theirs = tuple(name for name, _ in one.waves), tuple(name for name, _ in aligned)
        if sorted(names) == ["cos", "sin"] and theirs == names[::-1]:
            name, joins = "sin", "add" if ratio > 0.0 else "sub"
        elif {names, theirs} == {("cos", "cos"), ("sin", "sin")}:
            name, joins = "cos", "sub" if ratio > 0.0 else "add"
        else:
            continue
        arguments = sorted(one.waves, key=lambda wave: wave[0] == "cos")  # the sine's first, where there is one
        wave = (node_from_name(name), node_from_name(joins), *arguments[0][1], *arguments[1][1])
        factors = one if names != ("sin", "sin") else other  # of two sines the sign would be the other one
        product = _joined("mul", [*factors.numbers, *factors.others, wave])
        yield _signed(product, -1.0 if factors is other and sign < 0.0 else 1.0)
        return


def _waves(nodes: Sequence[Node]) -> _Waves | None:
    """Return a term as a product of two waves; None if it is none."""
    factors = _chain(MaskedTree(nodes), 0, "mul")
    waves = tuple((factor[0].name, factor[1:]) for factor in factors if factor[0].name in ("sin", "cos"))
    numbers = tuple(factor for factor in factors if isinstance(factor[0], Constant))
    others = tuple(factor for factor in factors if factor[0].name not in ("sin", "cos") and factor not in numbers)
    if len(waves) != 2:
        return None
    return _Waves(waves, others, numbers, math.prod(float(number[0].value) for number in numbers))


def _chain(tree: MaskedTree, position: int, name: str) -> list[Nodes]:
    """Return the operands of a chain of sums, or of products."""
    if tree[position].name != name:
        return [tuple(tree[tree.searchSubtree(position)])]
    second = tree.searchSubtree(position + 1).stop
    return [*_chain(tree, position + 1, name), *_chain(tree, second, name)]


def _same(first: Nodes, second: Nodes, share: float) -> bool:
    """Whether parts of formulas are the same, numbers within a share of their size."""
    return len(first) == len(second) and all(
        abs(a.value - b.value) <= share * abs(a.value)
        if isinstance(a, Constant) and isinstance(b, Constant)
        else (a.name, a.arity, None if a.arity else a.value) == (b.name, b.arity, None if b.arity else b.value)
        for a, b in zip(first, second, strict=True)
    )


def _joined(name: str, parts: Sequence[Nodes]) -> Nodes:
    nodes = parts[0]
    for part in parts[1:]:
        nodes = (node_from_name(name), *nodes, *part)
    return nodes


def _signed(nodes: Nodes, sign: float) -> Nodes:
    return nodes if sign > 0.0 else (node_from_name("mul"), Constant(-1.0, False, False), *nodes)
