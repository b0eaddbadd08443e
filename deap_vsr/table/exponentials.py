"""Power laws times the exponential of a polynomial over a monomial: bells, Gaussians with a centre and a width.

log|y| = c + sum of a_i log|x_i| + P(x) / m(x): linear in all of its numbers. Terms of P that are not worth their price
go, one after the other; exponents are simple numbers.
"""

from __future__ import annotations

import numpy as np

from deap_vsr.lab.criterion import NODE
from deap_vsr.table.field import Field
from deap_vsr.table.powers import Logs
from deap_vsr.table.sums import eliminated, price_of, second_degree
from deap_vsr.table.targets import targets
from deap_vsr.table.terms import Monomial, monomials, product_nodes, sum_of, values_of
from deap_vsr.tree import node_from_name, variable

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
    z = logs.z * logs.root
    found = []
    for below in [
        Monomial(),
        *(item for item in monomials(rows.columns, BELOW, 2) if min(e for _, e in item.powers) > 0),
    ]:
        nodes = below.nodes(allowed)
        value = values_of([nodes], rows.screen.X)[0] if below.powers and nodes is not None else np.ones(len(z))
        if not np.isfinite(value).all() or not (value != 0).all():
            continue
        with np.errstate(all="ignore"):
            varying = [i for i, row in enumerate(A / value) if np.ptp(row) > 1e-9 * np.max(np.abs(row))]
        chosen, fitted = eliminated(np.vstack([A[varying] / value, logs.block]), z, logs.root, kept=len(logs.block))
        left = max(float(np.sum(((fitted - logs.z) * logs.root) ** 2) / np.sum(z**2)), 1e-26)
        inside = [varying[i] for i in chosen if i < len(varying)]
        score = len(z) * float(np.log(left)) + price_of(len(z)) * len(inside) + NODE * below.cost
        found.append((score, below, inside, value))
    for _, below, inside, value in sorted(found, key=lambda item: item[0])[:OFFERED]:
        full = np.vstack([A[inside] / value, logs.block])
        solution = np.linalg.lstsq((full * logs.root).T, z, rcond=None)[0]
        terms = [
            product_nodes(float(c), parts[i].factors, allowed) for i, c in zip(inside, solution.tolist(), strict=False)
        ]
        total = sum_of(terms, allowed)
        if total is None:
            continue
        if below.powers:
            total = product_nodes(None, [(total, 1.0), *below.inverse.factors], allowed)
        if total is None:
            continue
        front, *exponents = solution[len(inside) :].tolist()
        powers = [
            ((variable(column + 1),), float(np.round(2.0 * e) / 2.0))
            for column, e in zip(logs.columns, exponents, strict=True)
        ]
        powers = [item for item in powers if item[1]]
        factor = float(np.exp(np.clip(front, -600.0, 600.0)))
        field.offer(product_nodes(factor, [*powers, ((node_from_name("exp"), *total), 1.0)], allowed), "exponential")
        if field.over:
            return
