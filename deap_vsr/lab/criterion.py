"""What a formula costs in noise: the residual chi-squared it leaves, its constants, its length."""

from __future__ import annotations

import numpy as np

from deap_vsr.tree import MaskedTree, is_open

#: What a node of a formula costs in noise: there are some eight to choose from.
NODE = 2.0 * float(np.log(8.0))
#: What an open constant within a function costs beside, in nodes: more than a factor, less than a function.
INNER = 1.5


def criterion(chi_squared: float, tree: MaskedTree, n_constants: int, n_points: int, node: float = NODE) -> float:
    """Return how good a formula is in noise, less is better: what it leaves, and what it takes to write it down.

    The Bayesian information criterion charges for fitted constants. That a form was chosen among many costs as well,
    and a constant within a function more than one before it: C*x*sqrt(x) is (C*sqrt(x))**3, and grows better.
    """
    n_nodes = len(tree) + INNER * sum(inner_constants(tree))
    return chi_squared + n_constants * float(np.log(n_points)) + node * n_nodes


def inner_constants(tree: MaskedTree) -> list[bool]:
    """Return for each open constant whether it is within a function, or below a fraction line."""
    result = []
    inside = [False]  # for the nodes to come, in prefix order
    for node in tree:
        here = inside.pop()
        if is_open(node):
            result.append(here)
        linear = node.name in ("add", "sub", "mul", "neg")
        operands = [here or not linear] * node.arity
        if node.name == "div":
            operands[0] = here
        inside += reversed(operands)
    return result
