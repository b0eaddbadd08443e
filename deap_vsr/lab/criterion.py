"""What a formula costs in noise: the residual chi-squared it leaves, its constants, its length."""

from __future__ import annotations

import numpy as np

from deap_vsr.tree import MaskedTree, is_number, is_open

#: What a node of a formula costs in noise: there are some eight to choose from.
NODE = 2.0 * float(np.log(8.0))
#: What an open constant within a function costs beside, in nodes: more than a factor, less than a function.
INNER = 1.5
#: What a whole or half number within a function costs beside: there are some twenty to choose from.
LITERAL = 2.0 * float(np.log(20.0))


def criterion(chi_squared: float, tree: MaskedTree, n_constants: int, n_points: int, node: float = NODE) -> float:
    """Return how good a formula is in noise, less is better: what it leaves, and what it takes to write it down.

    The Bayesian information criterion charges for fitted constants. That a form was chosen among many costs as well,
    and a constant within a function more than one before it: C*x*sqrt(x) is (C*sqrt(x))**3, and grows better.
    """
    inner = inner_numbers(tree)
    n_literals = sum(not is_open(tree[position]) for position in inner)
    n_nodes = len(tree) + INNER * len(inner)
    return chi_squared + n_constants * float(np.log(n_points)) + node * n_nodes + LITERAL * n_literals


def inner_numbers(tree: MaskedTree) -> list[int]:
    """Return where numbers other than 1 and -1 are within a function, or below a fraction line."""
    result = []
    inside = [False]  # for the nodes to come, in prefix order
    for position, node in enumerate(tree):
        here = inside.pop()
        if here and is_number(node) and (is_open(node) or abs(float(node.value)) != 1.0):
            result.append(position)
        linear = node.name in ("add", "sub", "mul", "neg")
        operands = [here or not linear] * node.arity
        if node.name == "div":
            operands[0] = here
        inside += reversed(operands)
    return result
