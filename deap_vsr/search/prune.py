"""What is not worth its nodes and constants in noise goes: backward elimination by the description length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.lab.criterion import NODE, inner_numbers
from deap_vsr.lab.evidence import Evidence
from deap_vsr.lab.lab import Lab
from deap_vsr.search.leading import leading
from deap_vsr.search.merge import merged, with_one_coefficient
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array
from deap_vsr.tree.tidy import without_inverses

#: What competes is first fitted to so many of the measurements.
SCREENED = 2000
#: What is shorter, and has a price, in doubled nats, so much higher on these, is not fitted to all of them: chance
#: makes hardly half as much.
FAR = 40.0
#: Functions that are 1 where what they are of is small.
ONE_AT_NOUGHT = frozenset({"exp", "cos", "cosh"})
#: A constant within a function is tried as a whole or half number if it is so near it.
NEAR, LARGEST_SHORT = 0.03, 1e3


def some_of(data: Dataset) -> Dataset:
    """Return some of the measurements, spread over all of them."""
    if len(data.y) <= SCREENED:
        return data
    kept = np.linspace(0, len(data.y) - 1, SCREENED).astype(int)
    columns = np.ascontiguousarray(data.columns[:, kept])
    return Dataset(columns, data.y[kept], data.weight[kept], np.array([0, SCREENED]))


def unlike(outcomes: Sequence[Fit], count: int) -> list[Fit]:
    """Return the first `count` fits that differ in what they leave: exp(log(C*x)) is C*x."""
    kept: list[Fit] = []
    for outcome in outcomes:
        if len(kept) == count:
            break
        same = [np.all(np.abs(outcome.errors - other.errors) <= 1e-4 * other.errors) for other in kept]
        if not any(same):
            kept.append(outcome)
    return kept


def pruned(outcome: Fit, data: Dataset, lab: Lab, evidence: Evidence, node: float = NODE) -> Fit:
    """Return the fit without what is not worth its nodes, at the price of `node` each, and constants.

    Backward elimination: an operand takes the place of its operator, whichever lowers the price most, until none
    does. So terms and factors go, and functions that do nothing or undo each other. What is shorter multiplied out, is.
    """

    def price(attempt: Fit) -> float:
        return evidence.price(attempt, data, node, tied=False)

    plain = [without_inverses(tree, lab.function_set) for tree in outcome.trees]
    if str(plain[0]) != str(outcome.trees[0]):
        again = lab.fit(plain[0], data, starts=np.array([tree.constants for tree in plain]), n_starts=0)
        if (again.errors <= 1.001 * outcome.errors).all():  # log(x**2) is 2*log(x) for positive x only
            outcome = again
    least = price(outcome)
    owed = 0.0  # what the merged coefficients cost that it has by now
    part = some_of(data) if data.n_trials == 1 else data
    while lab.budget.used_up(asking=False) is None:
        best = outcome
        limit = np.inf
        if part is not data:
            screened = lab.fit(outcome.tree, part, starts=outcome.constants, n_starts=0)
            limit = evidence.price(screened, part, node) + FAR
        more = 0.0
        for tree, starts, surcharge in _shorter(outcome, lab.function_set, node):
            if part is not data:  # most are far worse, as a part of the measurements tells
                screened = lab.fit(tree, part, starts=starts, n_starts=0)
                if not evidence.price(screened, part, node) + surcharge < limit:
                    continue
            again = lab.fit(tree, data, starts=starts, n_starts=0)
            lower = price(again) + owed + surcharge
            if lower < least:
                best, least, more = again, lower, surcharge
            if lab.budget.used_up(asking=False) is not None:
                break
        if best is outcome:
            break
        outcome, owed = best, owed + more
    return outcome


def _with_short_constants(outcome: Fit) -> Iterator[MaskedTree]:
    """Yield formulas with one constant within a function at a whole or half number near it: exponents mostly are."""
    tree = outcome.trees[0]
    inner = set(inner_numbers(tree))
    for column, position in enumerate(tree.open_constants):
        values = outcome.constants[:, column]
        if position not in inner or not (np.abs(values) < LARGEST_SHORT).all():
            continue
        short = round(2.0 * float(np.mean(values))) / 2.0
        if short and (np.abs(values - short) <= NEAR * abs(short)).all():
            nodes = list(tree)
            nodes[position] = Constant(short, False, False, nodes[position].ret)
            yield MaskedTree(nodes)


def _with_ones(outcome: Fit) -> Iterator[MaskedTree]:
    """Yield formulas with 1 in the place of a function that is 1 at nought: exp(u) is, where u is small."""
    tree = outcome.trees[0]
    for position, node in enumerate(tree):
        if node.name in ONE_AT_NOUGHT:
            whole = tree.searchSubtree(position)
            yield MaskedTree([*tree[: whole.start], Constant(1.0, False, False), *tree[whole.stop :]])


def _shorter(
    outcome: Fit, function_set: Sequence[str], node: float
) -> Iterator[tuple[MaskedTree, Array | None, float]]:
    """Yield trees with one operator less, where their constants start, and what they cost beside their price.

    That two coefficients are the same happens by chance, the sooner the more pairs there are. So it costs to say which
    two, and what is no longer written for it counts for nothing.
    """
    tree = outcome.tree
    seen = set()
    for position, operator in enumerate(tree):
        first = position + 1
        for _ in range(operator.arity):
            operand = tree.searchSubtree(first)
            kept = [*range(position), *range(operand.start, operand.stop)]
            kept += range(tree.searchSubtree(position).stop, len(tree))
            first = operand.stop
            shorter = MaskedTree([tree[i] for i in kept])
            text = shorter.to_infix(skeleton=True)
            if text not in seen and any(not n.arity and isinstance(n.value, str) for n in shorter):
                seen.add(text)
                columns = [column for column, i in enumerate(tree.open_constants) if i in set(kept)]
                yield shorter, outcome.constants[:, columns], 0.0
    fitted, L = outcome.trees[0], tree.n_constants
    for shorter in with_one_coefficient(fitted, function_set):
        yield shorter, None, 2.0 * float(np.log(L * (L - 1))) + node * max(len(tree) - len(shorter), 0)
    yield from ((shorter, None, 0.0) for shorter in (*merged(fitted, function_set), *leading(fitted, function_set)))
    yield from ((shorter, None, 0.0) for shorter in (*_with_short_constants(outcome), *_with_ones(outcome)))
    expanded = expand(tree, function_set)
    if expanded is not None and len(expanded) < len(tree):
        yield expanded, None, 0.0
