"""Whether an answer has the form of a law: with its numbers fitted anew it is the law, and nothing in it is idle.

For answers from noisy or faulty measurements, whose numbers cannot be exact. Like the judge of recovery this knows the
hidden formula: never part of a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.judge.metrics import TEST_SEED
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Equation
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import Constant, MaskedTree, Node, is_number, is_variable, node_from_name
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import canonical, literals

#: What rounding may leave: NMSE, and units in the last place of the largest y.
ROUNDING_NMSE = 1e-18
ROUNDING_UNITS = 16.0
#: Constants that an answer may have beyond those of the law: (x1 - x2)**2 multiplied out has one.
MORE_CONSTANTS = 1
#: Starts beside the answer's own numbers: near those, and anywhere.
NEAR_STARTS, FAR_STARTS = 3, 6


def right_form(answer: MaskedTree, law: Equation, n_points: int = 400, seed: int = TEST_SEED) -> bool:
    """Whether `answer` is `law` but for the values of its numbers.

    Three things are asked. All numbers but 1 and -1, fitted anew on `n_points` exact points of the law's domain, leave
    rounding only. No term and no factor with a variable in it can go without losing that. There are no more constants
    than in the law, and one.

    Parameters
    ----------
    answer : its numbers may be literal or fitted, and are where the fit starts
    law : the hidden formula with its domain
    """
    opened = with_open_numbers(answer)
    if opened.n_constants > with_open_numbers(law.tree).n_constants + MORE_CONSTANTS:
        return False
    X = draw_inputs(law.variables, n_points, np.random.default_rng(seed))
    data = _exact_points(law, X)
    fitted = _refitted(opened, data, seed)
    return fitted is not None and all(_refitted(shorter, data, seed) is None for shorter in without_one(fitted))


def with_open_numbers(tree: MaskedTree) -> MaskedTree:
    """Return the canonical form with every number but 1 and -1 an open constant."""
    nodes = canonical(literals(tree))
    return MaskedTree(
        Constant(node.value) if is_number(node) and abs(float(node.value)) != 1.0 else node for node in nodes
    )


def without_one(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield the tree without one of its terms or factors, for each of them.

    A number alone is a term, and no factor: C*x1*(C*x2 + C) has one constant more than it needs, and nothing idle.
    """
    for position, node in enumerate(tree):
        if node.name not in _ALONE:
            continue
        operands = _operands(tree, position)
        end = position + 1 + sum(map(len, operands))
        for gone, left in ((0, 1), (1, 0)):
            if node.name in ("add", "sub") or any(map(is_variable, operands[gone])):
                before = _ALONE[node.name] if gone == 0 else ()
                yield MaskedTree([*tree[:position], *before, *operands[left], *tree[end:]])


#: What stands before the second operand when the first has gone: 0 + u, 0 - u, 1*u, 1/u.
_ALONE: dict[str, tuple[Node, ...]] = {
    "add": (),
    "sub": (node_from_name("mul"), Constant(-1.0, fitted=False)),
    "mul": (),
    "div": (node_from_name("div"), Constant(1.0, fitted=False)),
}


def _operands(tree: MaskedTree, position: int) -> list[Sequence[Node]]:
    first = tree.searchSubtree(position + 1)
    return [tree[first], tree[tree.searchSubtree(first.stop)]]


def _exact_points(law: Equation, X: Array) -> Dataset:
    y = law.evaluate(X)
    good = np.isfinite(y)
    return Dataset.of([Trial(X[good], y[good], tuple(range(law.n_vars)))])


def _refitted(tree: MaskedTree, data: Dataset, seed: int) -> MaskedTree | None:
    """Return the tree with its open constants fitted; None if that leaves more than rounding."""
    enough = _rounding(data.y)
    present = np.array(tree.constants)
    near = 1.0 + 0.1 * np.random.default_rng(seed).standard_normal((NEAR_STARTS, len(present)))
    starts = np.concatenate([present[None], present * near])
    outcome = fit(tree, data, starts=starts, n_starts=FAR_STARTS, max_iterations=200, enough=enough)
    return outcome.trees[0] if outcome.errors[0] <= enough else None


def _rounding(y: Array) -> float:
    """Return the NMSE that is rounding: of y that hardly varies more than of others."""
    spread = float(np.std(y))
    last = ROUNDING_UNITS * float(np.spacing(np.max(np.abs(y))))
    return max(ROUNDING_NMSE, (last / spread) ** 2) if spread else ROUNDING_NMSE
