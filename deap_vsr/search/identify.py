"""Identifiability: rewriting a candidate that fits, so that the data determine its constants."""

from __future__ import annotations

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.lab.evidence import ROUNDING
from deap_vsr.lab.lab import Lab
from deap_vsr.tree import Constant, MaskedTree, is_open
from deap_vsr.tree.expand import MAX_TERMS, expand
from deap_vsr.tree.operators import Array, Flags

#: A constant whose term is smaller than this share of the spread of y, in every trial, is dropped: half the digits.
NEGLIGIBLE = 1e-9

#: Errors up to this are rounding: some decades above eps**2.
EXACT = 1e-24


def identified(outcome: Fit, data: Dataset, lab: Lab) -> Fit:
    """Return the outcome of an equivalent candidate in a sum of terms.

    Constants that trade off against each other move from trial to trial even where the formula does not, and
    every later round would grow in the wrong places. The given outcome is returned where the rewritten one does
    not fit or is determined no better.
    """
    exact = lab.evidence.certain
    tree = expand(_with_whole_numbers(outcome) if exact else outcome.tree, lab.function_set)
    n_points = min(np.diff(data.offsets).tolist(), default=0)
    while tree is not None and lab.budget.left("seconds") > 0.0:
        if tree.n_constants > min(n_points, MAX_TERMS):  # functions of sums were multiplied out: it takes long to fit
            return outcome
        rewritten = lab.fit(tree, data)
        if not lab.evidence.fits(rewritten, data):
            return outcome
        small = term_sizes(rewritten, data) < NEGLIGIBLE
        shorter = expand(_without(tree, small), lab.function_set) if small.any() and exact else None
        if shorter is None or len(shorter) >= len(tree):
            shorter = _without_idle_function(rewritten, data, lab)
        if shorter is None:
            better = rewritten.determined.all() or not outcome.determined.all()
            return rewritten if better else outcome
        tree = shorter
    return outcome


def _with_whole_numbers(outcome: Fit) -> MaskedTree:
    """Return the tree with every constant that is the same whole number in all trials at that number.

    The phase of cos(C + 0.999999999*x) cannot come out of it, that of cos(C + x) can.
    """
    nodes = list(outcome.tree)
    known: Flags = np.asarray(outcome.determined.all(axis=0), dtype=bool)
    for column, position in enumerate(outcome.tree.open_constants):
        values = outcome.constants[:, column]
        whole = float(np.round(values[0]))
        if known[column] and whole != 0 and (np.abs(values - whole) <= 1e-9).all():
            nodes[position] = Constant(whole, fitted=False, ret=nodes[position].ret)
    return MaskedTree(nodes)


def _without_idle_function(outcome: Fit, data: Dataset, lab: Lab) -> MaskedTree | None:
    """Return the tree without a function that does nothing; None if there is no such function.

    1e8*sin(1e-8*x) is x in disguise, and its constants move as they like: where the operand in place of the function
    fits as well, the function goes.
    """
    tree = outcome.tree
    for position, node in enumerate(tree):
        operand = list(tree[tree.searchSubtree(position)])[1:]
        if not lab.budget.left("seconds") > 0.0:
            return None
        if node.arity != 1 or not any(map(is_open, operand)):
            continue
        nodes = list(tree)
        nodes[tree.searchSubtree(position)] = operand
        shorter = expand(MaskedTree(nodes), lab.function_set)
        if shorter is None or len(shorter) >= len(tree):
            continue
        if (lab.fit(shorter, data).errors <= np.maximum(outcome.errors, EXACT)).all():
            return shorter
    return None


def term_sizes(outcome: Fit, data: Dataset) -> Array:
    """Return how much each constant matters: |c df/dc| in units of the spread of y, the largest of all trials.

    What is within the rounding of y, at all points, is nothing.
    """
    batch = encoder(None).encode([outcome.tree])
    sizes = np.zeros(outcome.constants.shape[1])
    for k in range(data.n_trials):
        part = data.trial(k)
        _, J = residual_model(outcome.tree, batch, part, None)(outcome.constants[k])
        moved = np.abs(outcome.constants[k])[:, None] * np.abs(J)
        moved[moved <= _rounding(part)] = 0.0
        sizes = np.maximum(sizes, np.max(moved, axis=1, initial=0.0) * max(J.shape[1], 1) ** 0.5)
    return sizes


def _rounding(data: Dataset) -> Array:
    """Return how far y may be off by rounding, in the units of residuals: (n_points,)."""
    return np.asarray(ROUNDING * np.abs(data.y) * data.weight / spread(data.y, data.weight))


def hidden_by_rounding(outcome: Fit, data: Dataset) -> Array:
    """Return how far each constant of the first trial may move until y moves by more than rounding: (L,)."""
    part = data.trial(0)
    model = residual_model(outcome.tree, encoder(None).encode([outcome.tree]), part, None)
    _, J = model(outcome.constants[0])
    with np.errstate(all="ignore"):
        room = np.min(_rounding(part) / np.abs(J), axis=1, initial=np.inf)
    return np.where(np.isfinite(room), room, 0.0)


def _without(tree: MaskedTree, drop: Flags) -> MaskedTree:
    copy = list(tree)
    for position, gone in zip(tree.open_constants, drop, strict=True):
        if gone:
            copy[position] = Constant(0.0, fitted=False)
    return MaskedTree(copy)


def without_idle_terms(outcome: Fit, data: Dataset) -> tuple[MaskedTree, Array] | None:
    """Return the tree without terms whose constants matter in no trial, and the constants (K, L) of the others.

    None if there are no such terms, or nothing would be left.
    """
    idle = term_sizes(outcome, data) < NEGLIGIBLE
    if not idle.any():
        return None
    found = _dropped(outcome, idle)
    if found is None:  # something cannot go: what can go alone goes together
        alone = [np.arange(len(idle)) == i for i in np.flatnonzero(idle)]
        single = [flags for flags in alone if _dropped(outcome, flags) is not None]
        found = _dropped(outcome, np.any(single, axis=0)) if single else None
    return found


def _dropped(outcome: Fit, idle: Flags) -> tuple[MaskedTree, Array] | None:
    found = without_terms(outcome.tree, idle)
    return None if found is None else (found[0], outcome.constants[:, found[1]])


def without_terms(tree: MaskedTree, idle: Flags) -> tuple[MaskedTree, list[int]] | None:
    """Return the tree without the terms of some of its open constants, and which constants are left in it.

    None if something cannot go, or nothing would be left.
    """
    gone = {position for position, out in zip(tree.open_constants, idle, strict=True) if out}
    stack: list[list[int] | None] = []  # positions; None stands for 0
    for position in range(len(tree) - 1, -1, -1):
        name = tree[position].name
        operands = [stack.pop() for _ in range(tree[position].arity)]
        if position in gone:
            stack.append(None)
        elif name == "add" and None in operands:
            stack.append(operands[0] if operands[1] is None else operands[1])
        elif name == "sub" and operands[1] is None:
            stack.append(operands[0])
        elif (name in ("mul", "div") and operands[0] is None) or (name == "mul" and operands[1] is None):
            stack.append(None)
        elif None in operands:
            return None  # a function of nothing: not a term that can go
        else:
            stack.append([position, *(item for operand in operands for item in operand or [])])
    if stack[0] is None:
        return None
    left = [i for i, position in enumerate(tree.open_constants) if position in stack[0]]
    return MaskedTree([tree[position] for position in stack[0]]), left
