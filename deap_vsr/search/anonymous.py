"""Anonymous curves: whether a polynomial says as much about a variable, in no more words, as a formula does.

Any smooth curve is a sum of a few functions, to within noise. So a sum with as many fitted numbers as a polynomial
takes only approximates; a law takes fewer. Short numbers that noise would hardly have led to are not fitted: they are
the law's own.
"""

from __future__ import annotations

import numpy as np

from deap_vsr.engine.fitting import Dataset, residual_model
from deap_vsr.engine.linear import solved
from deap_vsr.engine.program import encoder
from deap_vsr.lab.criterion import NODE
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.search.finish import reopened
from deap_vsr.search.short import short_in_noise
from deap_vsr.tree import Constant, MaskedTree, is_variable
from deap_vsr.tree.operators import Array

#: Settings of the other variables, and values of one, at which a formula is looked at.
N_SETTINGS, N_VALUES = 5, 120
#: Terms of the longest polynomial.
MAX_TERMS = 14
#: Directions in which fitted numbers change a curve by less than this share of the most are none.
SAME = 1e-6
#: A formula that is a polynomial of so many terms itself, to this share of its values, is not compared with such.
CUBIC, IS_POLYNOMIAL = 4, 1e-9


def anonymous(formula: MaskedTree, lab: Lab) -> str:
    """Return along which variable a polynomial does as well as a formula, in words; nothing if there is none."""
    tree = _with_loose_numbers_open(formula, lab)
    n_points = len(lab.log)
    for column, variable in enumerate(lab.variables):
        n_nodes = _n_nodes(formula, column)
        if not n_nodes or variable.sampling == "integer" or not tree.n_constants:
            continue
        X = _slices(lab, column)
        n_fitted = max(_n_directions(tree, part) for part in X)
        if n_fitted < 1:
            continue
        words = n_fitted * np.log(n_points) + NODE * n_nodes
        length, n_terms = _as_polynomial(formula, variable, X, column, n_points, lab)
        if length < words:
            return f"{n_fitted} fitted numbers along {variable.name} do no more than a polynomial of {n_terms} terms"
    return ""


def _with_loose_numbers_open(formula: MaskedTree, lab: Lab) -> MaskedTree:
    """Return the formula with those of its numbers open that are no short ones, by their standard errors."""
    tree = reopened(formula)
    if not tree.n_constants:
        return tree
    data = Dataset.of([lab.measured()])
    outcome = lab.fit(tree, data, n_starts=0)
    errors = lab.evidence.standard_errors(outcome, data)[0]
    nodes = list(tree)
    for place, value, error in zip(tree.open_constants, outcome.constants[0].tolist(), errors.tolist(), strict=True):
        written = float(nodes[place].value)
        if short_in_noise(value, error) == written:
            nodes[place] = Constant(written, False, False, nodes[place].ret)
    return MaskedTree(nodes)


def polynomials(variable: Variable, x: Array, degree: int, logarithmic: bool | None = None) -> Array:
    """Return Chebyshev polynomials of a variable over its range, without the constant: (degree, n_points)."""
    low, high = variable.bounds
    if (variable.sampling == "loguniform" if logarithmic is None else logarithmic) and low > 0.0 and (x > 0.0).all():
        x, low, high = np.log(x), np.log(low), np.log(high)
    places = np.clip(2.0 * (x - low) / (high - low) - 1.0, -1.5, 1.5)
    return np.asarray(np.polynomial.chebyshev.chebvander(places, degree).T[1:], dtype=float)


def _slices(lab: Lab, column: int) -> list[Array]:
    """Return points along one variable, the others held, at some settings: (n_values, n_vars) each."""
    parts = [np.repeat(setting[None], N_VALUES, axis=0) for setting in lab.draw(N_SETTINGS)]
    for part in parts:
        part[:, column] = np.sort(lab.draw(N_VALUES)[:, column])
    return parts


def _n_directions(tree: MaskedTree, X: Array) -> int:
    """Return in how many ways fitted numbers change the curve along one variable."""
    with np.errstate(all="ignore"):
        y = tree.evaluate(X)
    if not np.isfinite(y).all():
        return 0
    data = Dataset.of([Trial(X, y)])
    _, J = residual_model(tree, encoder(None).encode([tree]), data, None)(np.array(tree.constants))
    norms = np.linalg.norm(J, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        return 0
    sizes = np.linalg.svd(J / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return int(np.sum(sizes > SAME * np.max(sizes, initial=0.0)))


def _as_polynomial(
    formula: MaskedTree, variable: Variable, X: list[Array], column: int, n_points: int, lab: Lab
) -> tuple[float, int]:
    """Return how long the formula is with a polynomial along one variable, beside what that leaves, and its terms."""
    best = (np.inf, 0)
    kinds = (False, True) if variable.bounds[0] > 0.0 else (False,)
    for logarithmic in kinds:
        left = np.zeros(MAX_TERMS)
        exact = True
        for part in X:
            with np.errstate(all="ignore"):
                y = formula.evaluate(part, lab.pset)
                weight = 1.0 / lab.evidence.sigma(y)
            if not np.isfinite(y).all():
                return np.inf, 0
            basis = np.vstack([np.ones(len(y)), polynomials(variable, part[:, column], MAX_TERMS - 1, logarithmic)])
            for terms in range(1, MAX_TERMS + 1):
                A = (basis[:terms] * weight).T
                off = y * weight - A @ solved(A, y * weight)
                left[terms - 1] += float(np.mean(off**2)) / len(X)
                if terms == CUBIC:
                    exact = exact and float(np.max(np.abs(off))) <= IS_POLYNOMIAL * float(np.max(np.abs(y * weight)))
        if exact:
            continue
        lengths = n_points * left + np.arange(1, MAX_TERMS + 1) * np.log(n_points)
        best = min(best, (float(np.min(lengths)), int(np.argmin(lengths)) + 1))
    return best


def _n_nodes(formula: MaskedTree, column: int) -> int:
    """Return how many nodes a formula has for one variable alone: those of the parts with no other, without numbers."""
    name = f"x{column + 1}"
    count, after = 0, 0
    for position in range(len(formula)):
        if position < after:
            continue
        whole = formula.searchSubtree(position)
        names = {node.value for node in formula[whole] if is_variable(node)}
        if names == {name}:
            count += sum(_is_counted(formula, i) for i in range(whole.start, whole.stop))
            after = whole.stop
    return count


def _is_counted(formula: MaskedTree, position: int) -> bool:
    """Whether a node is one of the formula's words: numbers, and what joins them, are paid for as numbers."""
    node = formula[position]
    if node.arity != 2:
        return not isinstance(node, Constant)
    second = formula.searchSubtree(position + 1).stop
    return not isinstance(formula[position + 1], Constant) and not isinstance(formula[second], Constant)
