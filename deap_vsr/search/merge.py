"""Constants that may be one: C1*u + C2*v is C1*(u - v) where C2 is -C1, and so shorter by a number.

One is what laws begin with: 1 - exp(-C*x), log(1 + C*x). A form that is found as a sum has a constant more, which noise
keeps from being exactly that of the law, and which would be a slot of its own in the rounds to come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deap_vsr.search.phases import as_one_wave, without_quarters
from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name

#: Constants are tried as one if their ratio is within this factor of 1 or -1: beyond it no data would agree.
WITHIN = 1.25

Nodes = tuple[Node, ...]


def merged(tree: MaskedTree, function_set: Sequence[str]) -> Iterator[MaskedTree]:
    """Yield a fitted formula with a constant less, written otherwise; the others are where their fit may start."""
    if not {"add", "mul"} <= set(function_set):
        return
    if {"sin", "cos"} <= set(function_set):
        yield from without_quarters(tree)
    for position, node in enumerate(tree):
        if node.name == "sub":
            first, second = tree.searchSubtree(position + 1), tree.searchSubtree(position)
            for wave in as_one_wave(tree[first], tree[first.stop : second.stop], -1.0):
                yield MaskedTree([*tree[:position], *wave, *tree[second.stop :]])
    for whole, terms in _sums(tree):
        for nodes in (*_logarithms(terms), *_fractions(terms, function_set), *_one_wave(terms)):
            yield MaskedTree([*tree[: whole.start], *nodes, *tree[whole.stop :]])


def with_one_coefficient(tree: MaskedTree, function_set: Sequence[str]) -> Iterator[MaskedTree]:
    """Yield a fitted formula with two terms of a sum before one coefficient, where theirs are about the same."""
    if not {"add", "mul"} <= set(function_set):
        return
    for whole, terms in _sums(tree):
        for nodes in _as_one(terms, "sub" in function_set):
            yield MaskedTree([*tree[: whole.start], *nodes, *tree[whole.stop :]])


def _sums(tree: MaskedTree) -> Iterator[tuple[slice, list[_Term]]]:
    """Yield the sums of a formula that are no operands of sums: where they are, and their terms."""
    for position, node in enumerate(tree):
        if node.name == "add" and not (position and _is_within_sum(tree, position)):
            yield tree.searchSubtree(position), [_Term.of(nodes) for nodes in _terms(tree, position)]


def _is_within_sum(tree: MaskedTree, position: int) -> bool:
    """Whether a sum is an operand of a sum: what is above has looked at it."""
    return any(
        tree[above].name == "add"
        and position in (above + 1, tree.searchSubtree(above + 1).stop)
        for above in range(position)
    )  # fmt: skip


def _terms(tree: MaskedTree, position: int) -> list[Nodes]:
    """Return the operands of a chain of sums."""
    if tree[position].name != "add":
        return [tuple(tree[tree.searchSubtree(position)])]
    second = tree.searchSubtree(position + 1).stop
    return [*_terms(tree, position + 1), *_terms(tree, second)]


@dataclass(frozen=True)
class _Term:
    """A term of a sum: its nodes, and its open coefficient, if it has one, with what stands behind it."""

    nodes: Nodes
    coefficient: Constant | None
    rest: Nodes

    @classmethod
    def of(cls, nodes: Nodes) -> _Term:
        """Take a term apart: C, C*u and u*C."""
        if len(nodes) == 1 and is_open(nodes[0]):
            return cls(nodes, _constant(nodes[0]), (ONE,))
        if nodes[0].name == "mul":
            tree = MaskedTree(nodes)
            first, second = tree[tree.searchSubtree(1)], tree[tree.searchSubtree(tree.searchSubtree(1).stop)]
            for one, other in ((first, second), (second, first)):
                inner = cls.of(tuple(one))
                if inner.coefficient is not None:
                    rest = tuple(other) if inner.rest == (ONE,) else (node_from_name("mul"), *inner.rest, *other)
                    return cls(nodes, inner.coefficient, rest)
        if nodes[0].name == "div":
            tree = MaskedTree(nodes)
            above, below = tree[tree.searchSubtree(1)], tree[tree.searchSubtree(tree.searchSubtree(1).stop)]
            inner = cls.of(tuple(above))
            if inner.coefficient is not None:
                return cls(nodes, inner.coefficient, (node_from_name("div"), *inner.rest, *below))
        return cls(nodes, None, nodes)


ONE = Constant(1.0, fitted=False, mutable=False)
MINUS = Constant(-1.0, fitted=False, mutable=False)


def _constant(node: Node) -> Constant:
    return node if isinstance(node, Constant) else Constant(node.value)


def _joined(parts: Sequence[Nodes]) -> Nodes:
    nodes = parts[0]
    for part in parts[1:]:
        nodes = (node_from_name("add"), *nodes, *part)
    return nodes


def _as_one(terms: Sequence[_Term], can_subtract: bool) -> Iterator[Nodes]:
    """Yield the sum with two of its terms before one coefficient."""
    for i, first in enumerate(terms):
        for j, second in enumerate(terms[:i]):
            if first.coefficient is None or second.coefficient is None or not first.coefficient.value:
                continue
            ratio = second.coefficient.value / first.coefficient.value
            if not 1.0 / WITHIN <= abs(ratio) <= WITHIN:
                continue
            if ratio > 0.0:
                inside = _joined([first.rest, second.rest])
            elif can_subtract:
                inside = (node_from_name("sub"), *first.rest, *second.rest)
            else:
                inside = _joined([first.rest, _negative(second.rest)])
            bracket: Nodes = (node_from_name("mul"), first.coefficient, *inside)
            yield _joined([*(term.nodes for k, term in enumerate(terms) if k not in (i, j)), bracket])


def _one_wave(terms: Sequence[_Term]) -> Iterator[Nodes]:
    """Yield the sum with two of its terms as one wave."""
    for i, first in enumerate(terms):
        for j, second in enumerate(terms[:i]):
            for wave in as_one_wave(second.nodes, first.nodes):
                yield _joined([*(term.nodes for k, term in enumerate(terms) if k not in (i, j)), wave])


def _negative(nodes: Nodes) -> Nodes:
    return (MINUS,) if nodes == (ONE,) else (node_from_name("mul"), MINUS, *nodes)


def _logarithms(terms: Sequence[_Term]) -> Iterator[Nodes]:
    """Yield the sum C1*log(u + C2) + C3 as C1*log(1 + C*u): the constant outside is that inside."""
    alone = [i for i, term in enumerate(terms) if term.coefficient is not None and term.rest == (ONE,)]
    for i, term in enumerate(terms):
        if not alone or term.rest[0].name != "log":
            continue
        inner = [_Term.of(nodes) for nodes in _terms(MaskedTree(term.rest), 1)]
        shifts = [k for k, part in enumerate(inner) if part.coefficient is not None and part.rest == (ONE,)]
        others = [part for k, part in enumerate(inner) if k not in shifts]
        if len(shifts) != 1 or not others:
            continue
        shift = inner[shifts[0]].coefficient
        if shift is None or shift.value <= 0.0:
            continue
        factor = Constant(1.0 / shift.value)
        scaled: list[Nodes] = [(ONE,)]
        for part in others:
            if part.coefficient is not None:
                own = Constant(part.coefficient.value / shift.value)
                scaled.append((node_from_name("mul"), own, *part.rest))
            elif len(others) == 1:
                scaled.append((node_from_name("mul"), factor, *part.nodes))
        if len(scaled) != len(others) + 1:
            continue
        log: Nodes = (node_from_name("log"), *_joined(scaled))
        if term.coefficient is not None:
            log = (node_from_name("mul"), term.coefficient, *log)
        yield _joined([*(other.nodes for k, other in enumerate(terms) if k not in (i, alone[0])), log])


def _fractions(terms: Sequence[_Term], function_set: Sequence[str]) -> Iterator[Nodes]:
    """Yield the sum C1 + C2/(u + C3) as 1/(C + C/u), a saturation: of three constants one is made of the others."""
    if "inv" not in function_set and "div" not in function_set:
        return
    alone = [i for i, term in enumerate(terms) if term.coefficient is not None and term.rest == (ONE,)]
    for i, term in enumerate(terms):
        if not alone or i == alone[0] or term.coefficient is None:
            continue
        below = _below(term.rest)
        inner = [_Term.of(nodes) for nodes in _terms(MaskedTree(term.rest), below)] if below else []
        shifts = [part.coefficient for part in inner if part.coefficient is not None and part.rest == (ONE,)]
        others = [part for part in inner if part.rest != (ONE,)]
        level = terms[alone[0]].coefficient
        if len(shifts) != 1 or len(others) != 1 or level is None or not level.value * shifts[0].value:
            continue
        if not 1.0 / WITHIN <= -term.coefficient.value / (level.value * shifts[0].value) <= WITHIN:
            continue
        own = others[0].coefficient
        share = Constant(shifts[0].value / level.value / (1.0 if own is None or not own.value else own.value))
        bracket = _joined([(Constant(1.0 / level.value),), _quotient(share, others[0].rest, function_set)])
        whole = _quotient(ONE, bracket, function_set)
        yield _joined([*(other.nodes for k, other in enumerate(terms) if k not in (i, alone[0])), whole])


def _below(nodes: Nodes) -> int:
    """Return where what is below a fraction line begins, above which there is 1; 0 if there is none."""
    if nodes[0].name == "div" and isinstance(nodes[1], Constant) and nodes[1].value == 1.0 and not is_open(nodes[1]):
        return 2
    return int(nodes[0].name == "inv")


def _quotient(above: Constant, below: Nodes, function_set: Sequence[str]) -> Nodes:
    if "div" in function_set:
        return (node_from_name("div"), above, *below)
    inverse: Nodes = (node_from_name("inv"), *below)
    return inverse if above == ONE else (node_from_name("mul"), above, *inverse)
