"""Rivals of a formula: others like it, and what else came up in the search, that the data may not refute.

A law stands alone; an approximation has neighbours that do as well. What is longer is none: sin(x) is x where x is
small, and then x is what one says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.leading import leading
from deap_vsr.search.prune import some_of, unlike
from deap_vsr.tree import Constant, MaskedTree, Node, is_variable, node_from_name
from deap_vsr.tree.operators import CATALOGUE, Array
from deap_vsr.tree.simplify import structural_hash
from deap_vsr.tree.written import as_written

#: Of rivals so many of the best are fitted to all measurements.
FITTED = 6
#: Formulas that differ by no more than this share of the noise are one in two ways of writing.
SAME = 1e-3
#: Formulas that all the data together set apart by no more, in units of the noise, are not told apart by any data like
#: these: half a nat.
UNTOLD = 1.0
#: What has more nodes is none even if it is so far from the formula, and all the data speak for neither or against it:
#: the law is there in less than one of ten cases, log(1 + 1/x) for 1/x, and it has some nodes that do nothing else.
HARDLY_TOLD = 3.0
#: Sub-trees of so many nodes, of one variable without constants, are exchanged whole: sin(x)/x has four.
MAX_ATOM = 4
#: A rival whose price, doubled nats, is so much above the formula's on a part of the measurements is none.
FAR = 80.0


def rivals_of(tree: MaskedTree, data: Dataset, lab: Lab) -> list[Fit]:
    """Return fits of other formulas to `data` (one trial), the best first, none the same as another or as `tree`."""
    part = some_of(data)
    here = lab.fit(tree, part, n_starts=0)
    limit = lab.evidence.price(here, part, tied=False) + FAR
    found: list[tuple[float, Fit]] = []
    seen = {structural_hash(tree)}
    for other, starts in _others(tree, lab.function_set):
        key = structural_hash(other)
        if key in seen or other.n_constants > tree.n_constants or len(other) > len(tree):
            continue
        seen.add(key)
        outcome = lab.fit(other, part, starts=starts, n_starts=1)
        price = lab.evidence.price(outcome, part, tied=False)
        if price < limit:
            found.append((price, outcome))
        if lab.budget.used_up(asking=False) is not None:
            break
    found.sort(key=lambda item: item[0])
    best = unlike([here, *(outcome for _, outcome in found)], FITTED + 1)[1:]
    return [lab.fit(outcome.tree, data, starts=outcome.constants, n_starts=0) for outcome in best]


def _others(tree: MaskedTree, function_set: Sequence[str]) -> Iterator[tuple[MaskedTree, Array]]:
    """Yield formulas with one function, or one atom, exchanged for another, and where their constants start."""
    functions = [name for name in function_set if name in CATALOGUE and CATALOGUE[name].arity == 1]
    known = np.array([tree.constants])
    yield from ((other, known) for other in leading(tree, function_set) if other.n_constants == tree.n_constants)
    after = 0  # of an atom that was exchanged its parts are not
    for position, node in enumerate(tree):
        whole = tree.searchSubtree(position)
        inside = list(tree[whole])
        atom = _variable_of(inside)
        if position < after:
            continue
        if atom is not None and len(inside) <= MAX_ATOM:
            after = whole.stop
            for other in ([atom], *([node_from_name(name), atom] for name in functions)):
                yield MaskedTree([*tree[: whole.start], *other, *tree[whole.stop :]]), known
        elif node.arity == 1:
            for name in functions:
                if name != node.name:
                    yield MaskedTree([*tree[:position], node_from_name(name), *tree[position + 1 :]]), known


def _variable_of(nodes: Sequence[Node]) -> Node | None:
    """Return the variable of a sub-tree of one variable without constants; None if it is none."""
    leaves = [node for node in nodes if not node.arity]
    if any(isinstance(node, Constant) for node in leaves) or len({node.value for node in leaves}) != 1:
        return None
    return leaves[0] if is_variable(leaves[0]) else None


def lead(tree: MaskedTree, data: Dataset, lab: Lab) -> tuple[float, list[tuple[float, MaskedTree]]]:
    """Return how far a formula, its constants fitted anew, is ahead of its rivals in nats, and these, nearest first."""
    skeleton = reopened(tree)
    own = lab.evidence.price(lab.fit(skeleton, data, n_starts=0), data, tied=False)
    others = chain(lab.facts.get("others", []), turned_over(tree, lab.function_set))
    fits = [*rivals_of(skeleton, data, lab), *_came_up(skeleton, others, data, lab)]
    prices = [(lab.evidence.price(fit, data, tied=False), fit.trees[0]) for fit in fits]
    behind = sorted(((0.5 * (price - own), other) for price, other in prices), key=lambda item: item[0])
    return (behind[0][0] if behind else np.inf), behind


def turned_over(tree: MaskedTree, function_set: Sequence[str]) -> Iterator[MaskedTree]:
    """Yield a formula with sums A + B in it written as A/(1 - B/A), which begins so where B is small beside A.

    1/sqrt(x1) - 0.96*x2*x3/x1 is 1/(sqrt(x1) + x2*x3), as far as noise tells.
    """
    if not {"add", "sub", "mul", "div"} <= set(function_set):
        return
    for position, node in enumerate(tree):
        if node.name not in ("add", "sub") or not node.arity:
            continue
        whole, first = tree.searchSubtree(position), tree.searchSubtree(position + 1)
        operands = list(tree[first]), list(tree[first.stop : whole.stop])
        if not all(any(map(is_variable, operand)) for operand in operands):
            continue
        minus = [node_from_name("mul"), Constant(-1.0, False, False)] if node.name == "sub" else []
        one, other = operands[0], [*minus, *operands[1]]
        for large, small in ((one, other), (other, one)):
            share = [node_from_name("div"), *small, node_from_name("mul"), *large, *large]
            below = [node_from_name("sub"), node_from_name("div"), Constant(1.0, False, False), *large, *share]
            nodes = [node_from_name("div"), Constant(1.0, False, False), *below]
            fraction = as_written(MaskedTree([*tree[: whole.start], *nodes, *tree[whole.stop :]]), function_set)
            if reopened(fraction).n_constants <= reopened(tree).n_constants:  # else another one once fitted
                yield fraction


def _came_up(skeleton: MaskedTree, others: Iterable[MaskedTree], data: Dataset, lab: Lab) -> Iterator[Fit]:
    """Yield fits of what else came up in the search: what its beam followed, and what parts of a formula could be.

    What can say all that the formula says is none, in other words, in more numbers or in more nodes: exp(u) - 1 is u
    where u is small. Nor is what has a function more that does nothing.
    """
    seen = {structural_hash(skeleton)}
    here = lab.fit(skeleton, data, n_starts=0)
    for tree in others:
        other = reopened(tree)
        key = structural_hash(other)
        if key in seen or _adds_function(other, skeleton):
            continue
        if lab.budget.used_up(asking=False) is not None:
            return
        seen.add(key)
        outcome = lab.fit(other, data, n_starts=0)
        same = SAME * np.sqrt(len(data.y))
        if _apart(outcome, here, data, lab) <= same:
            continue
        longer = other.n_constants > skeleton.n_constants or len(other) > len(skeleton)
        near = UNTOLD if longer else same
        if len(other) > len(skeleton) and outcome.errors[0] >= here.errors[0]:
            near = HARDLY_TOLD
        if _contains(outcome, here, data, lab, near):
            continue
        yield outcome


def _contains(other: Fit, fit: Fit, data: Dataset, lab: Lab, apart: float) -> bool:
    """Whether a formula, its numbers fitted to what another one gives, comes so near to that one."""
    with np.errstate(all="ignore"):
        y = fit.trees[0].evaluate(data.columns.T, lab.pset)
    if not np.isfinite(y).all():
        return False
    again = lab.fit(other.tree, replace(data, y=y), starts=other.constants, n_starts=1)
    return _apart(again, fit, data, lab) <= apart


def _apart(outcome: Fit, other: Fit, data: Dataset, lab: Lab) -> float:
    """Return the distance of what two fitted formulas give, in units of the noise: its square is in doubled nats."""
    with np.errstate(all="ignore"):
        first, second = (one.trees[0].evaluate(data.columns.T, lab.pset) for one in (outcome, other))
        distance = float(np.linalg.norm((first - second) * data.weight)) / lab.evidence.noise
    return distance if np.isfinite(distance) else np.inf


def _adds_function(other: MaskedTree, tree: MaskedTree) -> bool:
    """Whether a formula is another with one function more."""
    if len(other) != len(tree) + 1:
        return False
    wanted = structural_hash(tree)
    shorter = (MaskedTree([*other[:i], *other[i + 1 :]]) for i, node in enumerate(other) if node.arity == 1)
    return any(structural_hash(one) == wanted for one in shorter)
