"""Stage 1, sparse sums: least squares on every small subset of the atoms and 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.engine.subsets import find_subsets
from deap_vsr.forms.atoms import Nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.lab.criterion import NODE
from deap_vsr.tree import Constant, Node, node_from_name
from deap_vsr.tree.operators import Array, Flags, Indices

#: For sums of 1, 2, ... terms, among how many of the first atoms they are looked for.
EXHAUSTIVE = (150, 120, 45, 28, 20)
#: Subsets of one size that are looked at more closely.
MAX_FOUND = 48
#: Sums of the smallest size that are fitted, in noise, where many do nearly as well.
KEPT_IN_NOISE = 8
#: A term below this share of the largest one fits the rounding of the others.
NEGLIGIBLE = 1e-8


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Columns to choose from: values (n, n_settings, n_points), nodes of each (None for 1), costs."""

    values: Array
    nodes: list[Nodes | None]
    costs: list[int]

    @classmethod
    def of_atoms(cls, target: Target, count: int) -> Dictionary:
        """Return 1 and the first atoms that have finite values on the table."""
        values = target.table.values(count)
        good = np.flatnonzero(np.isfinite(values[:, 0, 0]))
        atoms = [target.table.atoms[i] for i in good]
        ones = np.ones((1, *values.shape[1:]))
        return cls(
            np.concatenate([ones, values[good]]),
            [None, *(atom.nodes for atom in atoms)],
            [1, *(atom.cost for atom in atoms)],
        )


def sparse_sums(target: Target, counts: Sequence[int] = EXHAUSTIVE, keep: int = 3) -> Iterator[Step]:
    """Yield, in one step, the cheapest sums of the smallest size that fits in every setting."""
    dictionary = Dictionary.of_atoms(target, max(counts))
    subsets, tried = fitting_subsets(target, dictionary, counts)
    forms = []
    for subset, coefficients in subsets[: keep if target.table.evidence.certain else KEPT_IN_NOISE]:
        needed = _needed(dictionary, subset, coefficients)
        for part in (needed, np.ones_like(needed)) if 0 < needed.sum() < len(needed) else (np.ones_like(needed),):
            chosen = [i for i, wanted in zip(subset, part, strict=True) if wanted]
            parts = [dictionary.nodes[i] for i in chosen]
            written = [sum_nodes(parts, row, target) for row in coefficients[:, part]]
            cost = sum(1 + dictionary.costs[i] for i in chosen) + target.cost
            if written[0] is not None:
                wrapped = [target.wrap(nodes) for nodes in written if nodes is not None]
                forms.append(Form.of(wrapped, cost, len(chosen) < len(subset)))
    yield forms, tried


def _needed(dictionary: Dictionary, subset: list[int], coefficients: Array) -> Flags:
    """Return which terms of a sum are no rounding: larger somewhere than a small share of the largest term."""
    sizes = np.abs(coefficients.T) * np.abs(dictionary.values[subset]).max(axis=2)  # (n_terms, n_settings)
    return np.asarray((sizes > NEGLIGIBLE * sizes.max(axis=0)).any(axis=1), dtype=bool)


def fitting_subsets(
    target: Target, dictionary: Dictionary, counts: Sequence[int], first_below: int | None = None
) -> tuple[list[tuple[list[int], Array]], int]:
    """Return subsets that fit in every setting with their coefficients (n_settings, n_terms), cheapest first.

    In noise what they leave counts as well.
    """
    limits = target.table.limits(len(counts))
    room = max(target.table.n_points - 2, 1)  # a sum of as many terms as points fits anything
    allowed = [c if size <= room else 0 for size, c in enumerate(counts, start=1)]
    looked_at: Indices = np.array(
        _within(allowed, len(dictionary.values), target.table.left() / len(target.z)), np.int64
    )
    with np.errstate(over="ignore"):
        scaled = dictionary.values / target.tolerance
        z = target.z / target.tolerance
    found: Indices = np.empty((MAX_FOUND, len(counts)), np.int64)
    best: Indices = np.empty((len(counts), len(counts)), np.int64)
    below = len(scaled) if first_below is None else first_below
    first = np.ascontiguousarray(scaled[:, 0])
    n_found, tried = find_subsets(first, z[0], looked_at, below, limits, found, best, np.empty(len(counts)))
    result = []
    for row in found[:n_found]:
        subset = [int(i) for i in row if i >= 0]
        coefficients = solve_everywhere(scaled[subset], z, limits[len(subset) - 1])
        if coefficients is not None:
            result.append((subset, coefficients))

    def price(item: tuple[list[int], Array]) -> float:
        subset, coefficients = item
        cost = float(sum(dictionary.costs[i] for i in subset))
        if target.table.evidence.certain:
            return cost
        left = np.einsum("kt,tkp->kp", coefficients, scaled[subset]) - z
        return NODE * cost + float(np.sum(left**2))

    result.sort(key=price)
    return result, tried * len(z)


def _within(counts: Sequence[int], n_atoms: int, left: float) -> list[int]:
    """Return for each size among how many atoms subsets are looked for, so that there are no more than `left`."""
    result = []
    for size, count in enumerate(counts, start=1):
        n = min(count, n_atoms)
        while math.comb(n, size) > max(left, 1.0):
            n -= 1
        left -= math.comb(n, size)
        result.append(count if n == min(count, n_atoms) else n)
    return result


def solve_everywhere(columns: Array, z: Array, limit: float) -> Array | None:
    """Return the coefficients (n_settings, n_terms) of `columns` (n_terms, n_settings, n_points); None if one fails."""
    rows = []
    for k in range(len(z)):
        A = columns[:, k].T
        with np.errstate(over="ignore"):
            units = np.linalg.norm(A, axis=0)
        if not (np.isfinite(units) & (units > 0)).all():
            return None
        solution = solved(A / units, z[k], 1e-14)
        if not np.sum((A / units @ solution - z[k]) ** 2) <= limit:
            return None
        rows.append(solution / units)
    return np.array(rows)


def sum_nodes(parts: Sequence[Nodes | None], coefficients: Array, target: Target) -> Nodes | None:
    """Return the sum of C * part; None stands for 1. None if the set cannot write it."""
    allowed = target.table.allowed
    terms = [term_nodes(part, float(c), allowed) for part, c in zip(parts, coefficients, strict=True)]
    if any(term is None for term in terms) or (len(terms) > 1 and "add" not in allowed):
        return None
    nodes: tuple[Node, ...] = terms[0] or ()
    for term in terms[1:]:
        nodes = (node_from_name("add"), *nodes, *(term or ()))
    return nodes


def term_nodes(part: Nodes | None, coefficient: float, allowed: frozenset[str]) -> Nodes | None:
    """Return C * part, or C / rest where part is 1 / rest."""
    constant = Constant(coefficient)
    if part is None:
        return (constant,)
    if part[0].name == "div" and isinstance(part[1], Constant) and part[1].value == 1.0:
        return (part[0], constant, *part[2:])
    return (node_from_name("mul"), constant, *part) if "mul" in allowed else None
