"""Tied slots: coefficients of one sum whose ratio is the same at every setting are one slot before a bracket.

Without it (x1 + x2)*(x3 + x4)*... would be opened into a sum with twice as many slots for every bracket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name, with_flag
from deap_vsr.tree.operators import Array

#: Ratios that differ by no more are the same.
SAME_RATIO = 1e-8


@dataclass
class _Branch:
    """A node with its operands; for a slot, its values at the settings."""

    node: Node
    operands: list[_Branch]
    values: Array | None = None

    def nodes(self) -> list[Node]:
        return [self.node, *(node for operand in self.operands for node in operand.nodes())]


def factor_ties(tree: MaskedTree, constants: Array, function_set: Sequence[str] = ("add", "mul")) -> MaskedTree:
    """Return `tree` with tied coefficients factored out of their sums, where the operators for that are in the set.

    Parameters
    ----------
    constants : array of shape (n_settings, n_slots)
        Values of the slots of `tree`, in order, at several settings.
    """
    if not {"add", "mul"} <= set(function_set):
        return tree
    values = {position: constants[:, i] for i, position in enumerate(tree.slots)}
    root = _branches(tree, values)
    return MaskedTree(_factored(root).nodes())


def _branches(tree: Sequence[Node], values: dict[int, Array]) -> _Branch:
    stack: list[_Branch] = []
    for position in range(len(tree) - 1, -1, -1):
        node = tree[position]
        operands = [stack.pop() for _ in range(node.arity)]
        stack.append(_Branch(node, operands, values.get(position)))
    return stack[0]


def _factored(branch: _Branch) -> _Branch:
    if branch.node.name == "add":
        return _factored_sum(branch)
    operands = [_factored(operand) for operand in branch.operands]
    if branch.node.name == "mul":
        return _merged_product(_merged_exponentials(_Branch(branch.node, operands)))
    return _Branch(branch.node, operands, branch.values)


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


def _factored_sum(branch: _Branch) -> _Branch:
    terms = [_factored(term) for term in _chain(branch, "add")]
    terms = [part for term in terms for part in _chain(term, "add")]
    split = [_coefficient(term) for term in terms]
    groups: list[list[int]] = []
    for i, (slot, _) in enumerate(split):
        if slot is None:
            groups.append([i])
            continue
        for group in groups:
            first = split[group[0]][0]
            if first is not None and _ratio(slot, first) is not None:
                group.append(i)
                break
        else:
            groups.append([i])
    parts: list[_Branch] = []
    for group in groups:
        if len(group) == 1:
            parts.append(terms[group[0]])
            continue
        first = split[group[0]][0]
        assert first is not None
        inside = [_scaled(split[i][1], _ratio(split[i][0], first)) for i in group]
        parts.append(_Branch(with_flag(node_from_name("mul"), False), [first, _joined("add", inside)]))
    return _joined("add", parts)


def _ratio(slot: _Branch | None, first: _Branch) -> float | None:
    """Return the ratio of two slots if it is the same at every setting."""
    if slot is None or slot.values is None or first.values is None:
        return None
    with np.errstate(all="ignore"):
        ratios = slot.values / first.values
    mean = float(np.mean(ratios))
    if not np.isfinite(ratios).all() or mean == 0 or np.ptp(ratios) > SAME_RATIO * abs(mean):
        return None
    return mean


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


def _merged_exponentials(branch: _Branch) -> _Branch:
    """Return a product with its exponentials made one: exp(-800)*exp(801) would be nothing times infinity."""
    factors = _chain(branch, "mul")
    exponentials = [factor for factor in factors if factor.node.name == "exp" and factor.operands]
    if len(exponentials) < 2:
        return branch
    inside = _joined("add", [factor.operands[0] for factor in exponentials])
    merged = _Branch(exponentials[0].node, [_factored(inside)])
    rest = [factor for factor in factors if factor.node.name != "exp" or not factor.operands]
    return _joined("mul", [*rest, merged])


def _merged_product(branch: _Branch) -> _Branch:
    """Return a product with its slots made one: only their product can be told."""
    factors = _chain(branch, "mul")
    slots = [factor for factor in factors if factor.values is not None]
    if len(slots) < 2:
        return branch
    values: Array = np.prod([slot.values for slot in slots if slot.values is not None], axis=0)
    merged = _Branch(Constant(float(values[-1]), True, True, slots[0].node.ret), [], values)
    return _joined("mul", [merged, *(factor for factor in factors if factor.values is None)])
