"""Separable parts: y is a power law times a function of one monomial, and that function a table of one variable.

log|T(y)| = a . u + g(b . u) with u = log|x|. The direction b comes out of least squares, with g a polynomial, whatever
the function is and however many variables are in it; its entries are small whole numbers, or halves, up to a factor.
With the powers taken off, rows sorted by the monomial are a slot's table, which the one-variable forms solve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.optimize import least_squares

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Nodes
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.lab.evidence import Exact, Noisy
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Task
from deap_vsr.table.field import Field
from deap_vsr.table.linear import Linear
from deap_vsr.table.powers import Logs, refined_parts
from deap_vsr.table.rows import Rows
from deap_vsr.table.targets import Target, targets
from deap_vsr.table.terms import Monomial, Part, function_parts, product_nodes, values_of
from deap_vsr.tree import MaskedTree, Node, is_variable, variable
from deap_vsr.tree.operators import Array

#: Degree of the polynomial that stands for the function: six terms follow what bends twice.
DEGREE = 7
#: How far entries of a direction may be off multiples of a half, once one of them is a small whole number.
NEAR = 0.06
#: Points of the table of the function, spread over its range: what forms take for tables of slots, twice over.
POINTS = 60
#: Evaluations for one such table, and what a direction must explain of what powers leave, to be looked at.
EVALUATIONS, WORTH = 60_000, 0.5
#: Functions of one monomial that are offered.
KEPT = 6


def separable(field: Field, n_targets: int = 3) -> None:
    """Offer power laws times a function of one monomial: one function, with a number within, of each direction."""
    for target, logs, direction in _bent(field.rows, n_targets):
        for ratio in rounded(direction, logs):
            inner = ratio.nodes(field.rows.allowed)
            if inner is None:
                continue
            simple = [Part(inner, cost=ratio.cost)]
            values = values_of([inner], field.rows.screen.X)
            parts, A = function_parts(simple, values, field.rows.function_set)
            with np.errstate(all="ignore"):
                L = np.log(np.abs(A))
            linear = Linear(L, logs.z, [part.cost for part in parts], logs.block, logs.root)
            best = [(parts[item.parts[0]],) for item in linear.singles(len(parts))]
            for refined in refined_parts(best, logs)[:KEPT]:
                field.all(map(target.wrap, logs.written(refined)), "separable")
                if field.over:
                    return


def separable_forms(field: Field, n_targets: int = 2, effort: str = "cheap") -> None:
    """Offer power laws times a function of one monomial, solved as a table of one variable."""
    for target, logs, direction in _bent(field.rows, n_targets):
        for ratio in rounded(direction, logs)[:2]:
            for powers in list(_powers_beside(ratio, logs))[:3]:
                for nodes in _solved(ratio, powers, target, field, effort):
                    field.offer(target.wrap(nodes), "separable")
                if field.over:
                    return


def _bent(rows: Rows, n_targets: int) -> Iterator[tuple[Target, Logs, Array]]:
    """Yield targets with the directions along which their logarithms bend."""
    for target in targets(rows)[:n_targets]:
        logs = Logs(rows, target)
        if logs.usable and len(logs.columns) > 1:
            for direction in directions(logs):
                yield target, logs, direction


def directions(logs: Logs, n_starts: int = 3) -> list[Array]:
    """Return directions b, (n_columns,), along which the logarithm bends, those that leave least first."""
    U = logs.block[1:].T
    middle, width = U.mean(axis=0), U.std(axis=0)
    V = (U - middle) / width
    quadratic = [V[:, i] * V[:, j] for i in range(V.shape[1]) for j in range(i + 1)]
    if len(quadratic) + V.shape[1] + 1 > 0.7 * len(V):
        return []
    A = np.column_stack([np.ones(len(V)), V, *quadratic])
    solution = solved(A * logs.root[:, None], logs.z * logs.root)[1 + V.shape[1] :]
    if not np.isfinite(solution).all():
        return []
    H = np.zeros((V.shape[1],) * 2)
    H[np.tril_indices(len(H))] = solution
    H = H + H.T
    values, vectors = np.linalg.eigh(H)
    order = np.argsort(-np.abs(values))[:n_starts]
    base = _bend(np.zeros(V.shape[1]), V, logs)
    found = []
    for i in order:
        fitted = least_squares(partial(_bend, V=V, logs=logs), vectors[:, i], method="trf", max_nfev=40)
        left = float(np.sum(fitted.fun**2) / max(np.sum(base**2), 1e-300))
        if left < WORTH:
            found.append((left, fitted.x / width))
    found.sort(key=lambda item: item[0])
    return [direction for _, direction in found]


def _bend(b: Array, V: Array, logs: Logs) -> Array:
    """Return what is left of the logarithm with a polynomial along b beside the powers, (n_rows,)."""
    t = V @ b
    size = float(np.max(np.abs(t))) or 1.0
    P = np.polynomial.chebyshev.chebvander(t / size, DEGREE)
    A = np.column_stack([V, P[:, [0, *range(2, DEGREE + 1)]]]) * logs.root[:, None]
    z = logs.z * logs.root
    solution = solved(A, z, 1e-11)
    return np.asarray(z - A @ solution)


def rounded(direction: Array, logs: Logs) -> list[Monomial]:
    """Return monomials whose exponents are a direction's, those of whole numbers first; each and one over it."""
    largest = float(np.max(np.abs(direction)))
    found: list[Monomial] = []
    for whole in (1.0, 2.0, 3.0, 0.5, 1.5):
        exponents = whole * direction / largest
        simple = np.round(2.0 * exponents) / 2.0
        if np.max(np.abs(simple - exponents)) > NEAR * max(whole, 1.0):
            continue
        item = Monomial(tuple((logs.columns[i], float(e)) for i, e in enumerate(simple) if e))
        if item.powers:
            found += [item, item.inverse] if np.sum(simple) >= 0 else [item.inverse, item]
    return sorted(found, key=lambda item: any(e != int(e) for _, e in item.powers))[:4]


def _powers_beside(monomial: Monomial, logs: Logs) -> Iterator[dict[int, float]]:
    """Yield the powers beside a function of a monomial: simple numbers, known but for a power of the monomial."""
    U = logs.block[1:].T
    known = dict(monomial.powers)
    ratio = np.array([known.get(column, 0.0) for column in logs.columns])
    t = U @ ratio
    centred = (t - t.mean()) / (np.max(np.abs(t - t.mean())) or 1.0)
    P = np.polynomial.chebyshev.chebvander(centred, DEGREE)
    A = np.column_stack([U, P[:, [0, *range(2, DEGREE + 1)]]]) * logs.root[:, None]
    a = solved(A, logs.z * logs.root, 1e-11)[: U.shape[1]]
    # What is left of a without its part along the monomial is known; the rest is the function's own.
    place = int(np.argmax(np.abs(ratio)))
    for k in (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0):
        powers = a - ratio * (a[place] / ratio[place] - k)
        simple = np.round(2.0 * powers) / 2.0
        if np.max(np.abs(simple - powers)) <= 2.0 * NEAR:
            yield dict(zip(logs.columns, simple.tolist(), strict=True))


def _solved(
    ratio: Monomial, powers: dict[int, float], target: Target, field: Field, effort: str
) -> Iterator[Nodes | None]:
    """Yield forms: the powers times each function of the monomial that fits its table."""
    rows = field.rows
    inner = ratio.nodes(rows.allowed)
    factors = [((variable(column + 1),), exponent) for column, exponent in powers.items() if exponent]
    front = product_nodes(None, factors, rows.allowed) if factors else ()
    if inner is None or front is None:
        return
    trial = _table(inner, front, target, rows)
    if trial is None:
        return
    for tree in solve(trial, rows, effort):
        function = [part for node in tree for part in (inner if is_variable(node) else (node,))]
        yield product_nodes(None, [(tuple(function), 1.0), *factors], rows.allowed)


def _table(inner: Nodes, front: Sequence[Node], target: Target, rows: Rows) -> Trial | None:
    """Return the function's table: some rows, spread over the range of the monomial."""
    with np.errstate(all="ignore"):
        r = MaskedTree(inner).evaluate(rows.X)
        z = target.z / (MaskedTree(front).evaluate(rows.X) if front else 1.0)
    good = np.flatnonzero(np.isfinite(r) & np.isfinite(z))
    if len(good) < 12:
        return None
    order = good[np.argsort(r[good], kind="stable")]
    chosen = order[np.unique(np.linspace(0, len(order) - 1, POINTS).astype(int))]
    if np.ptp(r[chosen]) == 0.0 or np.ptp(z[chosen]) == 0.0:
        return None
    return Trial(r[chosen][:, None], z[chosen], (0,))


def solve(trial: Trial, rows: Rows, effort: str) -> list[MaskedTree]:
    """Return functions of x1 for a table of one variable, by the one-variable forms; exact ones, else in noise."""
    noise = _roughness(trial)
    scale = float(np.std(trial.y))
    if noise <= 1e-3 * scale:  # it may be exact: then nothing else is as good
        exact = _task(trial, rows, effort, Exact())
        found = FormsRegressor().regress(exact)
        if found:
            return [item.tree for item in found]
    sigma = max(noise, 1e-12 * scale)
    weighted = Trial(trial.X, trial.y, (0,), np.full(len(trial.y), 1.0 / sigma**2))
    found = FormsRegressor().regress(_task(weighted, rows, "cheap", Noisy(1.0)))
    return [item.tree for item in found]


def _roughness(trial: Trial) -> float:
    """Return the noise of a table, (n,) points in order, by what a straight line through two neighbours leaves."""
    x, y = trial.X[:, 0], trial.y
    with np.errstate(all="ignore"):
        share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        off = y[1:-1] - (1.0 - share) * y[:-2] - share * y[2:]
        size = np.sqrt(1.0 + share**2 + (1.0 - share) ** 2)
    off = off[np.isfinite(off)] / size[np.isfinite(off)]
    return float(1.4826 * np.median(np.abs(off))) if len(off) else 0.0


def _task(trial: Trial, rows: Rows, effort: str, evidence: Exact | Noisy) -> Task:
    budget = rows.budget.part(evaluations=EVALUATIONS)
    function_set = rows.function_set
    return Task([], lambda rng: [trial], function_set, (0,), 1, budget, 0.0, rows.rng, effort, evidence)
