"""Power laws times the exponential of a polynomial over a monomial: bells, Gaussians with a centre and a width.

log|y| = c + sum of a_i log|x_i| + P(x) / m(x): linear in all of its numbers. Terms of P that are not worth their price
go, one after the other; exponents are simple numbers.
"""

from __future__ import annotations

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Nodes
from deap_vsr.lab.criterion import NODE
from deap_vsr.table.field import Field
from deap_vsr.table.powers import Logs
from deap_vsr.table.sums import LEAST, eliminated, price_of, second_degree
from deap_vsr.table.targets import targets
from deap_vsr.table.terms import Monomial, monomials, product_nodes, sum_of, values_of
from deap_vsr.tree import node_from_name, variable
from deap_vsr.tree.operators import Array

#: Monomials below the polynomial, and exponentials that are offered.
BELOW, OFFERED = 60, 6


def exponentials(field: Field) -> None:
    """Offer power laws times the exponential of a polynomial of second degree over a monomial."""
    rows, allowed = field.rows, field.rows.allowed
    logs = Logs(rows, targets(rows)[0])
    if "exp" not in allowed or "mul" not in allowed or not logs.usable:
        return
    parts, A = second_degree(rows)
    if not len(A) or len(A) + len(logs.block) > rows.screen.n_rows // 3:
        return
    below = [Monomial(), *(m for m in monomials(rows.columns, BELOW, 2) if min(e for _, e in m.powers) > 0)]
    found = []
    for monomial in below:
        nodes = monomial.nodes(allowed)
        value = values_of([nodes], rows.screen.X)[0] if monomial.powers and nodes is not None else np.ones(len(logs.z))
        if np.isfinite(value).all() and (value != 0).all():
            score, chosen = _chosen(A / value, logs)
            found.append((score + NODE * monomial.cost, monomial, chosen, A[chosen] / value))
        if rows.late:
            break
    for _, monomial, chosen, values in sorted(found, key=lambda item: item[0])[:OFFERED]:
        field.offer(_written([parts[i] for i in chosen], values, monomial, logs), "exponential")
        if field.over:
            return


def _chosen(A: Array, logs: Logs) -> tuple[float, list[int]]:
    """Return the score of the terms A (n_terms, n_rows) that stay beside the powers of all variables, and which do."""
    with np.errstate(all="ignore"):
        varying = [i for i, row in enumerate(A) if np.ptp(row) > 1e-9 * np.max(np.abs(row))]
    powers = logs.block
    z = logs.z * logs.root
    chosen, fitted = eliminated(np.vstack([A[varying], powers]), z, logs.root, kept=len(powers))
    left = max(float(np.sum((fitted * logs.root - z) ** 2) / (np.sum(z**2) or 1.0)), LEAST)
    inside = [varying[i] for i in chosen if i < len(varying)]
    return len(z) * float(np.log(left)) + price_of(len(z)) * len(inside), inside


def _written(terms: list[Monomial], values: Array, below: Monomial, logs: Logs) -> Nodes | None:
    """Return powers at multiples of a half, times exp of a sum of terms, values (n_terms, n_rows), over a monomial."""
    allowed = logs.rows.allowed
    A = np.vstack([values, logs.block])
    solution = solved((A * logs.root).T, logs.z * logs.root).tolist()
    inside = [product_nodes(c, term.factors, allowed) for c, term in zip(solution, terms, strict=False)]
    total = sum_of(inside, allowed)
    if total is not None and below.powers:
        total = product_nodes(None, [(total, 1.0), *below.inverse.factors], allowed)
    if total is None:
        return None
    front, *exponents = solution[len(terms) :]
    exponents = [round(2.0 * exponent) / 2.0 for exponent in exponents]
    powers: list[tuple[Nodes, float]] = [
        ((variable(column + 1),), exponent)
        for column, exponent in zip(logs.columns, exponents, strict=True)
        if exponent
    ]
    factor = float(np.exp(np.clip(front, -600.0, 600.0)))
    return product_nodes(factor, [*powers, ((node_from_name("exp"), *total), 1.0)], allowed)
