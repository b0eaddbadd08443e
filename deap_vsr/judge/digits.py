"""Whether two formulas have the same digits, as far as there are any: what decides where sympy cannot."""

from __future__ import annotations

import numpy as np

from deap_vsr.lab.trials import Trial
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array

#: The relative difference of formulas that are the same, that of formulas that are near each other, and the share of
#: these points that may be more than the same digits apart; chosen between what equal formulas (1e-13) and series of up
#: to eight terms (1e-9) leave.
SAME, NEAR, GRADUAL = 1e-11, 1e-3, 0.1
#: Points that are enough to compare, and to fit constants anew to.
ENOUGH = 400
#: How far numbers are moved, relative to their size: their last digit but one. How often, each time at random; and how
#: many times what that changes a formula may be off by its own rounding, which comes at each of its nodes.
LAST, MOVES, ROUNDINGS = 1e-15, 4, 30.0


def agree(answer: MaskedTree, law: MaskedTree, X: Array) -> bool:
    """Whether two formulas have the same first digits, nearly wherever they are near each other.

    Points are left out at which either has no digits: a sine of 1e20, what is next to a pole. Differences of large
    terms may lose some more. On another branch (of an arc sine, a root) a formula that is the same is far off; one that
    approximates it comes off gradually. The answer's constants may be good to six digits only; then those fitted to the
    law decide.

    Parameters
    ----------
    X : (n_points, n_vars), where the law has values
    """
    y = law.evaluate(X)
    rounding = _rounding(law, X)
    return any(_same(tree, X, y, rounding) for tree in (answer, _refitted(answer, X, y)))


def _same(answer: MaskedTree, X: Array, y: Array, rounding: Array) -> bool:
    with np.errstate(all="ignore"):
        size = np.abs(y)
        off = np.abs(answer.evaluate(X) - y) / size
        rounding = np.maximum(rounding, _rounding(answer, X)) / size
        near = (size > 0.0) & (off <= NEAR) & (rounding <= NEAR)
        same = near & (off <= SAME + rounding)
    return bool(near.sum() - same.sum() <= GRADUAL * near.sum())


def _rounding(tree: MaskedTree, X: Array) -> Array:
    """Return how far rounding may put a formula's values off, (n_points,): all its numbers are moved a little."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        y = tree.evaluate(X)
        off = np.zeros(len(X))
        for _ in range(MOVES):
            numbers = MaskedTree(
                Constant(node.value * (1.0 + LAST * rng.uniform(-1.0, 1.0))) if isinstance(node, Constant) else node
                for node in tree
            )
            at = X * (1.0 + LAST * rng.uniform(-1.0, 1.0, X.shape))
            off = np.fmax(off, np.abs(numbers.evaluate(at) - y))
    return ROUNDINGS * off


def _refitted(answer: MaskedTree, X: Array, y: Array) -> MaskedTree:
    """Return the answer with constants fitted to what it is compared with."""
    from deap_vsr.engine.fitting import fit  # not before it is needed: numba takes its time

    opened = MaskedTree(Constant(node.value) if isinstance(node, Constant) else node for node in answer)
    at = np.argsort(np.abs(y), kind="stable")[:: max(len(y) // ENOUGH, 1)]  # of every size of y some
    with np.errstate(all="ignore"):
        weights = np.abs(y[at]) ** -2.0
    usable = np.isfinite(weights) & (weights > 0.0)
    if opened.n_constants == 0 or usable.sum() < 2 * opened.n_constants + 2:
        return answer
    return fit(opened, [Trial(X[at][usable], y[at][usable], weights=weights[usable])], n_starts=0).trees[0]
