"""Tied slots: coefficients of one sum whose ratio is the same at every setting are one slot before a bracket.

Without it (x1 + x2)*(x3 + x4)*... would be opened into a sum with twice as many slots for every bracket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.lab.evidence import SAME_RATIO, Evidence
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name, with_flag
from deap_vsr.tree.operators import Array


@dataclass
class _Branch:
    """A node with its operands; for a slot, its values at the settings, and their standard errors."""

    node: Node
    operands: list[_Branch]
    values: Array | None = None
    errors: Array | None = None

    def nodes(self) -> list[Node]:
        return [self.node, *(node for operand in self.operands for node in operand.nodes())]


def factor_ties(
    tree: MaskedTree, constants: Array, errors: Array, evidence: Evidence, function_set: Sequence[str]
) -> MaskedTree:
    """Return `tree` with tied coefficients factored out of their sums, where the operators for that are in the set.

    Parameters
    ----------
    constants, errors : arrays of shape (n_settings, n_slots)
        Values of the slots of `tree`, in order, at several settings, and their standard errors.
    evidence : says whether the ratio of two slots is the same at all settings
    """
    if not {"add", "mul"} <= set(function_set):
        return tree
    slots = {position: (constants[:, i], errors[:, i]) for i, position in enumerate(tree.slots)}
    stack: list[_Branch] = []
    for position in range(len(tree) - 1, -1, -1):
        node = tree[position]
        operands = [stack.pop() for _ in range(node.arity)]
        stack.append(_Branch(node, operands, *slots.get(position, (None, None))))
    return MaskedTree(_Factoring(evidence).factored(stack[0]).nodes())


def _chain(branch: _Branch, name: str) -> list[_Branch]:
    """Return the operands of a chain of one operator."""
    if branch.node.name != name or not branch.operands:
        return [branch]
    return [part for operand in branch.operands for part in _chain(operand, name)]


def _joined(name: str, parts: Sequence[_Branch]) -> _Branch:
    joined = parts[0]
    for part in parts[1:]:
        joined = _Branch(with_flag(node_from_name(name), False), [joined, part])
    return joined


@dataclass(frozen=True)
class _Factoring:
    """Factoring by what the evidence says of ratios."""

    evidence: Evidence

    def factored(self, branch: _Branch) -> _Branch:
        if branch.node.name == "add":
            return self._sum(branch)
        operands = [self.factored(operand) for operand in branch.operands]
        if branch.node.name == "mul":
            return _merged_product(self._merged_exponentials(_Branch(branch.node, operands)))
        return _Branch(branch.node, operands, branch.values, branch.errors)

    def _sum(self, branch: _Branch) -> _Branch:
        terms = [self.factored(term) for term in _chain(branch, "add")]
        terms = [part for term in terms for part in _chain(term, "add")]
        split = [_coefficient(term) for term in terms]
        groups: list[list[int]] = []
        for i, (slot, _) in enumerate(split):
            if slot is None:
                groups.append([i])
                continue
            for group in groups:
                if self._ratio(slot, split[group[0]][0]) is not None:
                    group.append(i)
                    break
            else:
                groups.append([i])
        parts: list[_Branch] = []
        for group in groups:
            first = split[group[0]][0]
            if len(group) == 1 or first is None:
                parts.append(terms[group[0]])
                continue
            inside = [_scaled(split[i][1], self._ratio(split[i][0], first)) for i in group]
            parts.append(_Branch(with_flag(node_from_name("mul"), False), [first, _joined("add", inside)]))
        return _joined("add", parts)

    def _ratio(self, slot: _Branch | None, first: _Branch | None) -> float | None:
        """Return the ratio of two slots if it is the same at every setting."""
        if slot is None or first is None or slot is first:
            return None if slot is None or first is None else 1.0
        if slot.values is None or slot.errors is None or first.values is None or first.errors is None:
            return None
        return self.evidence.ratio(slot.values, slot.errors, first.values, first.errors)

    def _merged_exponentials(self, branch: _Branch) -> _Branch:
        """Return a product with its exponentials made one: exp(-800)*exp(801) would be nothing times infinity."""
        factors = _chain(branch, "mul")
        exponentials = [factor for factor in factors if factor.node.name == "exp" and factor.operands]
        if len(exponentials) < 2:
            return branch
        inside = _joined("add", [factor.operands[0] for factor in exponentials])
        merged = _Branch(exponentials[0].node, [self.factored(inside)])
        rest = [factor for factor in factors if factor.node.name != "exp" or not factor.operands]
        return _joined("mul", [*rest, merged])


def _coefficient(term: _Branch) -> tuple[_Branch | None, _Branch | None]:
    """Split a term into the slot before it and the rest (None for 1); no slot if there is not exactly one."""
    if term.values is not None:
        return term, None
    if term.node.name == "div" and term.operands:
        slot, rest = _coefficient(term.operands[0])
        if slot is None:
            return None, term
        above = rest if rest is not None else _Branch(Constant(1.0, False, False, term.node.ret), [])
        return slot, _Branch(term.node, [above, term.operands[1]])
    factors = _chain(term, "mul")
    if len(factors) == 1:
        return None, term
    split = [_coefficient(factor) for factor in factors]
    slots = [slot for slot, _ in split if slot is not None]
    if len(slots) != 1:
        return None, term
    parts = [part if slot is not None else factor for factor, (slot, part) in zip(factors, split, strict=True)]
    return slots[0], _joined("mul", [part for part in parts if part is not None])


def _scaled(rest: _Branch | None, ratio: float | None) -> _Branch:
    assert ratio is not None
    near = round(ratio)
    ratio = float(near) if near and abs(ratio - near) <= SAME_RATIO * abs(ratio) else ratio
    constant = _Branch(Constant(ratio, False, False), [])
    if rest is None:
        return constant
    return rest if ratio == 1.0 else _joined("mul", [constant, rest])


def _merged_product(branch: _Branch) -> _Branch:
    """Return a product with its slots made one: only their product can be told."""
    factors = _chain(branch, "mul")
    slots = [factor for factor in factors if factor.values is not None]
    if len(slots) < 2:
        return branch
    values: Array = np.prod([slot.values for slot in slots if slot.values is not None], axis=0)
    with np.errstate(all="ignore"):
        parts = [slot.errors / slot.values for slot in slots if slot.errors is not None and slot.values is not None]
        errors: Array = np.abs(values) * np.sqrt(np.sum(np.square(parts), axis=0))
    merged = _Branch(Constant(float(values[-1]), True, True, slots[0].node.ret), [], values, errors)
    return _joined("mul", [merged, *(factor for factor in factors if factor.values is None)])
