"""Our exact derivatives against complex-step differentiation, on random trees.

Run ``python -m deap_vsr.bench.derivatives`` for 10,000 trees.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from deap_vsr.engine.kernels import residuals
from deap_vsr.engine.program import encoder
from deap_vsr.tree import (
    Constant,
    MaskedTree,
    Node,
    Vocabulary,
    is_open,
    is_variable,
    node_from_name,
    operators,
    variable,
)
from deap_vsr.tree.operators import Array
from deap_vsr.tree.walk import bottom_up

#: abs is not analytic; everything else is, away from its branch cuts.
ANALYTIC = tuple(name for name in operators.CATALOGUE if name != "abs")
#: Beyond this condition the values themselves are rounding noise; such points are counted apart.
_ILL = 1e5


def compare_derivatives(n_trees: int = 10_000, n_points: int = 3, seed: int = 0) -> dict[str, Any]:
    """Return how many derivatives were compared, the worst relative difference, and what was left out."""
    rng, points = random.Random(seed), np.random.default_rng(seed)
    compared = ill = outside = 0
    worst = 0.0
    for _ in range(n_trees):
        tree = random_analytic_tree(rng)
        X = points.uniform(0.2, 2.0, (n_points, 3))
        ours, theirs = kernel_derivatives(tree, X), complex_step(tree, X)
        usable, stiff = _usable(tree, X)
        # Smaller ones than 1e-250 vanish in the step itself.
        good = usable & ~stiff & np.isfinite(ours) & np.isfinite(theirs) & (np.abs(ours) > 1e-250)
        with np.errstate(all="ignore"):
            difference = np.abs(ours - theirs) / np.abs(theirs)
        worst = max(worst, float(np.max(difference, where=good, initial=0.0)))
        compared += int(good.sum())
        ill += int((usable & stiff).sum() * len(ours))
        outside += int((~usable).sum() * len(ours))
    return {"trees": n_trees, "compared": compared, "worst": worst, "ill_conditioned": ill, "out_of_domain": outside}


def random_analytic_tree(rng: random.Random, n_vars: int = 3, size: int = 12) -> MaskedTree:
    """Return a random tree of about `size` nodes with at least one open constant."""
    while True:
        nodes: list[Node] = []
        missing = 1
        while missing:
            grow = len(nodes) + missing < size and rng.random() < 0.75
            if grow:
                nodes.append(node_from_name(rng.choice(ANALYTIC)))
            elif rng.random() < 0.5:
                nodes.append(Constant(rng.uniform(-2.0, 2.0)))
            else:
                nodes.append(variable(rng.randint(1, n_vars)))
            missing += nodes[-1].arity - 1
        if any(map(is_open, nodes)):
            return MaskedTree(nodes)


def kernel_derivatives(tree: MaskedTree, X: Array) -> Array:
    """Return the derivatives by the open constants, (n_constants, n_points), from the kernel."""
    batch = encoder(None).encode([tree])
    r, J = np.empty(len(X)), np.empty((tree.n_constants, len(X)))
    columns, ones = np.ascontiguousarray(X.T), np.ones(len(X))
    residuals(batch.codes, batch.literals, np.array(tree.constants), columns, 0 * ones, ones, r, J)
    return J


def complex_step(tree: MaskedTree, X: Array, step: float = 1e-20) -> Array:
    """Return Im f(c + i step) / step for each open constant: exact to rounding, no cancellation."""
    meaning = Vocabulary()
    rows = []
    for moved in tree.open_constants:

        def value(position: int, node: Node, operands: list[Any], moved: int = moved) -> Any:
            if node.arity:
                return _complex(meaning.operator(node))(*operands)
            if is_variable(node):
                return X[:, int(node.value[1:]) - 1].astype(complex)
            return np.full(len(X), complex(node.value, step if position == moved else 0.0))

        with np.errstate(all="ignore"):
            rows.append(bottom_up(tree, value).imag / step)
    return np.array(rows)


def _complex(operator: operators.Operator) -> Any:
    return np.power if operator.name == "pow" else operator.function


def _usable(tree: MaskedTree, X: Array) -> tuple[Any, Any]:
    """Return where every node is inside its real domain, and where one of them is ill-conditioned."""
    meaning = Vocabulary()
    usable, stiff = np.ones(len(X), bool), np.zeros(len(X), bool)

    def judged(position: int, node: Node, operands: list[Any]) -> Any:
        """Return a node's values, and how much the relative rounding errors of its operands grow on the way there."""
        if not node.arity:
            column = meaning.column(node)
            return np.full(len(X), meaning.number(node)) if column is None else X[:, column], np.ones(len(X))
        arguments = [operand[0] for operand in operands]
        operator = meaning.operator(node)
        value = operator.function(*arguments)
        assert operator.derivative is not None
        slopes = operator.derivative(value, *arguments)
        # Slopes themselves must be as well determined, so their arguments count as well.
        condition = 1.0 + sum(
            np.abs(slope * argument / value) * bound + np.abs(argument) * bound * (operator.arity == 1)
            for slope, (argument, bound) in zip(slopes, operands, strict=True)
        )
        usable[:] &= np.isfinite(value) & np.isfinite(condition)
        if operator.name == "pow":
            usable[:] &= arguments[0] > 0
            condition = condition + operands[0][1] / np.abs(np.log(arguments[0]))
        stiff[:] |= condition > _ILL
        return value, condition

    with np.errstate(all="ignore"):
        bottom_up(tree, judged)
    return usable, stiff


if __name__ == "__main__":
    print(json.dumps(compare_derivatives()))
