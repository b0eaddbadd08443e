"""How good a formula is in noise, and what is not worth its nodes and constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.search.contract import Budget
from deap_vsr.search.freezing import squares
from deap_vsr.tree import MaskedTree, is_open
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array
from deap_vsr.tree.tidy import without_inverses

#: What a node of a formula costs in noise: there are some eight to choose from.
NODE = 2.0 * float(np.log(8.0))
#: What an open constant within a function costs beside, in nodes.
INNER = 1.5


def criterion(chi_squared: float, tree: MaskedTree, n_constants: int, n_points: int, node: float = NODE) -> float:
    """Return how good a formula is in noise, less is better: what it leaves, and what it takes to write it down.

    The Bayesian information criterion charges for fitted constants. That a form was chosen among many costs as well,
    and a constant within a function more than one before it: C*x*sqrt(x) is (C*sqrt(x))**3, and grows better.
    """
    n_nodes = len(tree) + INNER * n_inner_constants(tree)
    return chi_squared + n_constants * float(np.log(n_points)) + node * n_nodes


def n_inner_constants(tree: MaskedTree) -> int:
    """Return how many open constants are within a function, or below a fraction line."""
    count = 0
    inside = [False]  # for the nodes to come, in prefix order
    for node in tree:
        here = inside.pop()
        count += here and is_open(node)
        linear = node.name in ("add", "sub", "mul", "neg")
        operands = [here or not linear] * node.arity
        if node.name == "div":
            operands[0] = here
        inside += reversed(operands)
    return count


def left_in_noise(outcome: Fit, data: Dataset, noise: float) -> Array:
    """Return what a fit leaves in each trial: sums of squares in units of the noise."""
    return np.asarray(outcome.errors * squares(data) / noise**2)


def price_in_noise(outcome: Fit, data: Dataset, noise: float, node: float = NODE) -> float:
    """Return the criterion of a fit whose constants are fitted anew in each trial; infinite if it is not finite."""
    left = float(left_in_noise(outcome, data, noise).sum())
    price = criterion(left, outcome.tree, outcome.constants.size, len(data.y), node)
    return price if np.isfinite(price) else np.inf


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


def pruned(
    outcome: Fit, data: Dataset, noise: float, function_set: Sequence[str], budget: Budget, node: float = NODE
) -> Fit:
    """Return the fit without what is not worth its nodes, at the price of `node` each, and constants.

    Backward elimination: an operand takes the place of its operator, whichever lowers the criterion most, until none
    does. So terms and factors go, and functions that do nothing or undo each other. What is shorter multiplied out, is.
    """
    plain = [without_inverses(tree, function_set) for tree in outcome.trees]
    if str(plain[0]) != str(outcome.trees[0]):
        again = fit(plain[0], data, starts=np.array([tree.constants for tree in plain]), n_starts=0)
        budget.count(again.evaluations)
        if (again.errors <= 1.001 * outcome.errors).all():  # log(x**2) is 2*log(x) for positive x only
            outcome = again
    price = price_in_noise(outcome, data, noise, node)
    while budget.used_up() is None:
        best = outcome
        for tree, starts in _shorter(outcome, function_set):
            again = fit(tree, data, starts=starts, n_starts=0)
            budget.count(again.evaluations)
            lower = price_in_noise(again, data, noise, node)
            if lower < price:
                best, price = again, lower
            if budget.used_up() is not None:
                break
        if best is outcome:
            break
        outcome = best
    return outcome


def _shorter(outcome: Fit, function_set: Sequence[str]) -> Iterator[tuple[MaskedTree, Array | None]]:
    """Yield trees with one operator less, and where their constants start."""
    tree = outcome.tree
    seen = set()
    for position, node in enumerate(tree):
        first = position + 1
        for _ in range(node.arity):
            operand = tree.searchSubtree(first)
            kept = [*range(position), *range(operand.start, operand.stop)]
            kept += range(tree.searchSubtree(position).stop, len(tree))
            first = operand.stop
            shorter = MaskedTree([tree[i] for i in kept])
            text = shorter.to_infix(skeleton=True)
            if text not in seen and any(not n.arity and isinstance(n.value, str) for n in shorter):
                seen.add(text)
                columns = [column for column, i in enumerate(tree.open_constants) if i in set(kept)]
                yield shorter, outcome.constants[:, columns]
    expanded = expand(tree, function_set)
    if expanded is not None and len(expanded) < len(tree):
        yield expanded, None
