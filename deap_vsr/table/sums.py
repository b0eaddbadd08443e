"""Sums: T(y) is a sum of a few products, each a monomial, alone or times a function; ratios of such sums as well.

All pairs of a large dictionary are looked through at once, then longer sums by a beam. A ratio P/(1 + Q) is linear in
the coefficients of both, z = P - z Q: then the products of z and monomials are in the dictionary too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Nodes
from deap_vsr.lab.criterion import NODE
from deap_vsr.table.field import Field
from deap_vsr.table.linear import Linear, Subset
from deap_vsr.table.rows import Rows
from deap_vsr.table.targets import Target, targets
from deap_vsr.table.terms import (
    Monomial,
    Part,
    chains,
    distinct,
    function_parts,
    monomials,
    product_nodes,
    simple_parts,
    sum_of,
    values_of,
)
from deap_vsr.tree import Constant, node_from_name
from deap_vsr.tree.operators import Array

#: Monomials, functions, and products of both, that sums are looked for among; by what two seconds are enough for.
MONOMIALS, FUNCTIONS, TERMS = 400, 40, 700
#: Terms of a sum at the most, and sums that are followed from size to size.
MAX_TERMS, WIDTH = 6, 8
#: Sums that are offered, of each target.
OFFERED = 8
#: A share that is left cannot be told from nothing below this.
LEAST = 1e-26
#: Monomials of a ratio, above and below.
OF_RATIOS = 120


class Terms:
    """What a sum may be of: nodes (without a factor) and values on the screened rows, the simplest first."""

    def __init__(
        self, found: Sequence[tuple[float, list[tuple[Nodes, float]], Array]], allowed: frozenset[str]
    ) -> None:
        found = sorted(found, key=lambda item: item[0])
        A = np.array([values for _, _, values in found])
        kept = distinct(A)
        self.allowed = allowed
        self.costs = [found[i][0] for i in kept]
        self.powers = [found[i][1] for i in kept]
        self.A = A[kept]

    def nodes(self, i: int, factor: float) -> Nodes | None:
        """Return term `i` times an open constant."""
        return product_nodes(factor, self.powers[i], self.allowed)


def terms_of(rows: Rows, numbers: bool = False, limit: int = TERMS, functions: bool = True) -> Terms:
    """Return monomials, and monomials times functions of simple parts; with `numbers` of multiples of these."""
    allowed, X = rows.allowed, rows.screen.X
    plain = monomials(rows.columns, MONOMIALS, 4, halves="sqrt" in allowed)
    written = [(item, nodes) for item in plain if (nodes := item.nodes(allowed)) is not None]
    values = values_of([nodes for _, nodes in written], X)
    found = [(item.cost + 2.0, item.factors, row) for (item, _), row in zip(written, values, strict=True)]
    few = [name for name in chains(rows.function_set) if len(name) == 1 and name[0] not in ("1+", "1-")]
    if few and functions:
        simple, inner = simple_parts(rows, max(FUNCTIONS // len(few), 2 * len(rows.columns)), 3)
        parts, columns = function_parts(simple, inner, tuple(name for (name,) in few), numbers)
        applied = [(part, column) for part, column in zip(parts, columns, strict=True) if len(part.chain) == 1]
        found += _with_functions(applied, written, values, allowed, limit)
    return Terms(sorted(found, key=lambda item: item[0])[: 2 * limit], allowed)


def _with_functions(
    functions: Sequence[tuple[Part, Array]],
    written: Sequence[tuple[Monomial, Nodes]],
    values: Array,
    allowed: frozenset[str],
    limit: int,
) -> list[tuple[float, list[tuple[Nodes, float]], Array]]:
    """Return functions, their squares, and both times monomials."""
    found: list[tuple[float, list[tuple[Nodes, float]], Array]] = []
    most = max(limit // max(len(functions), 1), 1)
    for part, column in functions:
        nodes = part.nodes(allowed)
        for exponent in (1.0, 2.0):
            with np.errstate(all="ignore"):
                power = column if exponent == 1.0 else column**2
                times = power * values[:most]
            own = [(nodes, exponent)]
            cost = part.cost + exponent + 1.0
            found.append((cost, own, power))
            for (item, _), row in zip(written[:most], times, strict=True):
                found.append((cost + item.cost, [*item.factors, *own], row))
    return found


def sums(field: Field, n_targets: int = 4, numbers: bool = False) -> None:
    """Offer sums of products for y, and for y with an outer function undone."""
    terms = terms_of(field.rows, numbers)
    one = np.ones((1, field.rows.screen.n_rows))
    for target in targets(field.rows)[:n_targets]:
        for block in (None, one):
            linear = Linear(terms.A, target.screened, terms.costs, block, target.root)
            begin = linear.pairs(3 * WIDTH)
            found = linear.singles(4) + linear.beam(begin, MAX_TERMS, WIDTH)
            for subset in sorted(found, key=lambda item: item.score)[:OFFERED]:
                field.offer(target.wrap(_written(subset, terms, target, block is not None)), "sum")
                if field.over:
                    return


def _written(subset: Subset, terms: Terms, target: Target, constant: bool) -> Nodes | None:
    """Return a sum with its coefficients, as open constants."""
    chosen = list(subset.parts)
    A = terms.A[chosen]
    if constant:
        A = np.vstack([A, np.ones(A.shape[1])])
    solution = solved((A * target.root).T, target.screened * target.root)
    parts = [terms.nodes(i, float(c)) for i, c in zip(chosen, solution, strict=False)]
    if constant:
        parts.append((Constant(float(solution[-1])),))
    return sum_of(parts, terms.allowed)


# --- ratios -------------------------------------------------------------------------------


def ratios(field: Field, n_targets: int = 3) -> None:
    """Offer ratios of sums, P/(1 + Q), for y and for y with an outer function undone."""
    rows, allowed = field.rows, field.rows.allowed
    if "add" not in allowed or not allowed & {"div", "inv"}:
        return
    # Functions are left out: 1 - sin(x)**2 - cos(x)**2 times y is nothing, and explains all.
    terms = terms_of(rows, limit=OF_RATIOS, functions=False)
    n = min(OF_RATIOS, len(terms.A))
    for target in targets(rows)[:n_targets]:
        below = terms.A[:n] * target.screened
        A = np.vstack([terms.A[:n], np.ones((1, terms.A.shape[1])), below])
        costs = [*terms.costs[:n], 1.0, *(cost + 2.0 for cost in terms.costs[:n])]
        linear = Linear(A, target.screened, costs, None, target.root)
        # Each term below with the best beside it: pairs without one would crowd them out.
        begin = [item for i in range(n + 1, len(A)) for item in linear.longer(Subset((i,), 0.0), 4)]
        found = linear.beam(sorted(begin, key=lambda item: item.score)[: 4 * WIDTH], 5, 4 * WIDTH)
        found = [item for item in found if any(i > n for i in item.parts) and any(i <= n for i in item.parts)]
        for subset in sorted(found, key=lambda item: item.score)[:OFFERED]:
            field.offer(target.wrap(_ratio(subset, terms, n, A, target)), "ratio")
            if field.over:
                return


def _ratio(subset: Subset, terms: Terms, n: int, A: Array, target: Target) -> Nodes | None:
    """Return P/(1 + Q)."""
    chosen = list(subset.parts)
    solution = solved((A[chosen] * target.root).T, target.screened * target.root)
    above: list[Nodes | None] = []
    below: list[Nodes | None] = [(Constant(1.0, fitted=False),)]
    for i, c in zip(chosen, solution.tolist(), strict=True):
        if i == n:
            above.append((Constant(c),))
        elif i < n:
            above.append(terms.nodes(i, c))
        else:
            below.append(terms.nodes(i - n - 1, -c))
    P, Q = sum_of(above, terms.allowed), sum_of(below, terms.allowed)
    if P is None or Q is None:
        return None
    if "div" in terms.allowed:
        return (node_from_name("div"), *P, *Q)
    return (node_from_name("mul"), *P, node_from_name("inv"), *Q)


# --- polynomials --------------------------------------------------------------------------


def linear(field: Field) -> None:
    """Offer y as a sum of columns: what tables without a law are often best told by, however many columns they have."""
    rows, screen = field.rows, field.rows.screen
    parts = [Monomial(((column, 1.0),)) for column in rows.columns] + [Monomial()]
    if len(parts) > screen.n_rows // 3:
        return
    A = np.vstack([screen.X[:, list(rows.columns)].T, np.ones(screen.n_rows)])
    target = targets(rows)[0]
    chosen, _ = eliminated(A, target.screened * target.root, target.root)
    for kept in (chosen, range(len(parts))):
        field.offer(sum_of([product_nodes(1.0, parts[i].factors, rows.allowed) for i in kept], rows.allowed), "linear")


def polynomials(field: Field, n_targets: int = 5) -> None:
    """Offer T(y) times a monomial as a polynomial of second degree: sums of many terms, such as squares of distances.

    All terms are fitted at once; those that are not worth their price go, one after the other.
    """
    rows, allowed = field.rows, field.rows.allowed
    screen, columns = rows.screen, rows.columns
    parts, A = second_degree(rows)
    if not len(A) or len(A) > screen.n_rows // 3:
        return
    # Square roots of sums have the square of a factor behind them.
    simple = [item for item in monomials(columns, 200, 3) if {abs(e) for _, e in item.powers} in ({1.0}, {2.0})]
    factors = [Monomial(), *simple]
    scores: list[tuple[float, Target, Monomial, list[int]]] = []
    for target in targets(rows)[:n_targets]:
        for factor in factors:
            inside = factor.nodes(allowed) if factor.powers else None
            value = values_of([inside], screen.X)[0] if inside is not None else np.ones(screen.n_rows)
            if not np.isfinite(value).all() or not (value != 0).all():
                continue
            chosen, fitted = eliminated(A / value, target.screened * target.root, target.root)
            score = _score(target.values(fitted), screen, len(chosen)) + NODE * factor.cost
            scores.append((score, target, factor, chosen))
            if rows.late:
                break
        if rows.late:
            break
    for _, target, factor, chosen in sorted(scores, key=lambda item: item[0])[:6]:
        terms = [product_nodes(1.0, parts[i].factors, allowed) for i in chosen]
        total = sum_of(terms, allowed)
        if total is not None and factor.powers:
            total = product_nodes(None, [(total, 1.0), *factor.inverse.factors], allowed)
        field.offer(target.wrap(total), "polynomial")
        if field.over:
            return


def second_degree(rows: Rows) -> tuple[list[Monomial], Array]:
    """Return the terms of a polynomial of second degree, and values (n_terms, n_rows); none without words for them."""
    columns = rows.columns
    whole = [Monomial(((c, 1.0),)) for c in columns] + [Monomial(((c, 2.0),)) for c in columns]
    whole += [Monomial(((a, 1.0), (b, 1.0))) for i, a in enumerate(columns) for b in columns[:i]]
    nodes = [written for item in whole if (written := item.nodes(rows.allowed)) is not None]
    if len(nodes) < len(whole):
        return [], np.empty((0, rows.screen.n_rows))
    return [*whole, Monomial()], np.vstack([values_of(nodes, rows.screen.X), np.ones(rows.screen.n_rows)])


def _score(said: Array, screen: Rows, n_terms: int) -> float:
    """Return the description length, doubled, of what values, (n_rows,), leave of y: what is undone is no measure."""
    weights = np.ones(len(said)) if screen.weights is None else screen.weights
    with np.errstate(all="ignore"):
        left = float(np.sum(weights * (said - screen.y) ** 2) / np.sum(weights * (screen.y - screen.y.mean()) ** 2))
    if not np.isfinite(left):
        return np.inf
    return len(said) * float(np.log(max(left, LEAST))) + price_of(len(said)) * n_terms


def price_of(n: int) -> float:
    """Return what a term costs beside n rows."""
    return float(np.log(n)) + 4.0 * NODE


def eliminated(A: Array, z: Array, root: Array, kept: int = 0) -> tuple[list[int], Array]:
    """Return which terms (n_terms, n_rows) stay, and the values of their sum, (n_rows,); the last `kept` stay."""
    B = (A * root).T
    size = np.linalg.norm(B, axis=0)
    B = B / size
    n, total = len(z), float(z @ z) or 1.0
    chosen = list(range(B.shape[1]))
    price = price_of(n)
    while True:
        solution, _, rank, _ = np.linalg.lstsq(B[:, chosen], z, rcond=1e-12)
        left = max(float(np.sum((z - B[:, chosen] @ solution) ** 2)) / total, LEAST)
        fitted = (solution / size[chosen]) @ A[chosen]
        if len(chosen) <= max(kept, 1) or (rank < len(chosen) and not kept):
            return chosen, fitted
        if left > 0.5:  # hopeless
            return chosen, fitted
        inverse = np.linalg.pinv(B[:, chosen].T @ B[:, chosen])
        losses = solution**2 / np.maximum(np.diag(inverse), 1e-300) / total
        worst = int(np.argmin(losses[: len(chosen) - kept]))
        if n * float(np.log(max(left + losses[worst], LEAST) / left)) > price:
            return chosen, fitted
        del chosen[worst]
