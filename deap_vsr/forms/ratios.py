"""Stage 3, ratios: z = P/Q is linear in the coefficients of both, z = P - z (Q - 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.forms.atoms import Nodes
from deap_vsr.forms.sums import Dictionary, fitting_subsets, sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, node_from_name

#: Terms of P and Q together, and among how many of them they are looked for.
COUNTS = (0, 26, 22, 18, 16)


def ratios(target: Target, below: int = 9, counts: Sequence[int] = COUNTS, keep: int = 3) -> Iterator[Step]:
    """Yield, in one step, forms P/(1 + Q) with sums P and Q.

    Noisy data are left to other stages, as z is on both sides.
    """
    table = target.table
    if not table.evidence.certain or "add" not in table.allowed or not table.allowed & {"div", "inv"}:
        yield [], 0
        return
    plain = Dictionary.of_atoms(target, 14)
    n_below = min(below, len(plain.nodes) - 1)
    times_z = plain.values[1 : n_below + 1] * target.z
    # In turn, so that the first few hold the simplest of both; those with z first.
    both = Dictionary(
        np.concatenate([times_z, plain.values]), plain.nodes[1 : n_below + 1] + plain.nodes,
        [cost + 1 for cost in plain.costs[1 : n_below + 1]] + plain.costs,
    )  # fmt: skip
    subsets, tried = fitting_subsets(target, both, counts, first_below=n_below)
    forms: list[Form] = []
    for subset, coefficients in subsets:
        above = [i for i in subset if i >= n_below]
        under = [i for i in subset if i < n_below]
        if not above or len(forms) >= keep:
            continue
        order = [subset.index(i) for i in (*above, *under)]
        starts = coefficients[:, order]
        starts[:, len(above) :] *= -1.0
        written = []
        for row in starts:
            P = sum_nodes([both.nodes[i] for i in above], row[: len(above)], target)
            Q = sum_nodes([both.nodes[i] for i in under], row[len(above) :], target)
            if P is not None and Q is not None:
                written.append(target.wrap(ratio_nodes(P, Q, target)))
        cost = sum(1 + both.costs[i] for i in subset) + 3 + target.cost
        if written:
            forms.append(Form.of(written, cost))
    yield forms, tried


def ratio_nodes(P: Nodes, Q: Nodes, target: Target) -> Nodes:
    """Return P/(1 + Q)."""
    below = (node_from_name("add"), Constant(1.0, fitted=False), *Q)
    if "div" in target.table.allowed:
        return (node_from_name("div"), *P, *below)
    return (node_from_name("mul"), *P, node_from_name("inv"), *below)
