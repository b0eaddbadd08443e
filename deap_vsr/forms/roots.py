"""Stage 3, roots: A z^2 - 2 B z + c = 0 is linear in the coefficients of A, B and c, and z = (B +- sqrt(D))/A.

The relation tells A and B. What is below the root is then a function of x like any other, D = (A z - B)^2, and a sparse
sum for it has fewer constants than B^2 - A c, whose terms cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deap_vsr.forms.atoms import Nodes
from deap_vsr.forms.sums import Dictionary, fitting_subsets, sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, node_from_name
from deap_vsr.tree.operators import Array

#: Terms of a relation, and among how many columns they are looked for; the same for the sum below the root.
RELATION, BELOW_ROOT = (0, 38, 38, 32, 20), (45, 40, 28, 16)
#: Atoms that z and z^2 are multiplied with: in the part that a relation must have, and in the other.
FORCED, OTHER = 9, 3
#: A and B are known less well than z: so many tolerances more are allowed below the root, until all is fitted together.
SLACK = 1e3


def roots(target: Target, counts: Sequence[int] = RELATION, keep: int = 3) -> Iterator[Step]:
    """Yield, in one step, forms (B +- sqrt(D))/A with sums A, B and D.

    The sign is that of the data, which must be on one branch. Noisy data are left to other stages, as z is on both
    sides; a set without a root has none of these.
    """
    table = target.table
    if not table.evidence.certain or not {"add", "sqrt"} <= table.allowed or not table.allowed & {"sub", "mul"}:
        yield [], 0
        return
    forms: list[Form] = []
    total = 0
    for lead in (2, 1):
        relations, tried = _relations(target, lead, counts)
        total += tried
        for relation in relations:
            if len(forms) < keep:
                found, tried = relation.forms(target)
                forms += found
                total += tried
    yield forms[:keep], total


@dataclass(frozen=True, eq=False)
class _Sum:
    """A or B: coefficients (n_settings, n_terms), values (n_settings, n_points), whether there is a 1 besides."""

    parts: list[Nodes | None]
    coefficients: Array
    values: Array
    with_one: bool

    def nodes(self, setting: int, target: Target) -> Nodes | None:
        """Return its nodes at a setting; none for 1 alone; None if the set cannot write it."""
        if not self.parts:
            return ()
        total = sum_nodes(self.parts, self.coefficients[setting], target)
        if total is None or not self.with_one:
            return total
        return (node_from_name("add"), Constant(1.0, fitted=False), *total)


@dataclass(frozen=True, eq=False)
class _Relation:
    """z^2 or z as a sum of the atoms times powers of z: `terms` are (power of z, number of the column of `plain`)."""

    lead: int
    plain: Dictionary
    terms: list[tuple[int, int]]
    coefficients: Array

    def part(self, power: int, factor: float) -> _Sum:
        """Return what z^power is multiplied with, times `factor`; 1 more for the power that was solved for."""
        places = [place for place, (p, _) in enumerate(self.terms) if p == power]
        atoms = [self.terms[place][1] for place in places]
        scaled = factor * self.coefficients[:, places]
        values = np.einsum("kt,tkp->kp", scaled, self.plain.values[atoms])
        one = power == self.lead
        return _Sum([self.plain.nodes[i] for i in atoms], scaled, values + one, one)

    def forms(self, target: Target) -> tuple[list[Form], int]:
        """Return the roots, with the sums that fit below the square root, and how many of these were tried."""
        A, B = (self.part(2, -1.0), self.part(1, 0.5)) if self.lead == 2 else (self.part(2, 2.0), self.part(1, -1.0))
        with np.errstate(over="ignore", invalid="ignore"):
            rest = A.values * target.z - B.values
        sign = float(np.sign(rest[0, 0]))
        if not (sign * rest > 0).all():
            return [], 0
        with np.errstate(over="ignore"):
            below = replace(target, z=rest**2, tolerance=2.0 * SLACK * np.abs(A.values * rest) * target.tolerance)
        if not (np.isfinite(below.z) & (below.tolerance > 0)).all():
            return [], 0
        dictionary = Dictionary.of_atoms(target, max(BELOW_ROOT))
        subsets, tried = fitting_subsets(below, dictionary, BELOW_ROOT)
        forms = []
        for subset, coefficients in subsets[:2]:
            parts = [dictionary.nodes[i] for i in subset]
            written = []
            for k, row in enumerate(coefficients):
                D = sum_nodes(parts, row, target)
                nodes = root_nodes(A.nodes(k, target), B.nodes(k, target), D, sign, target)
                if nodes is not None:
                    written.append(target.wrap(nodes))
            cost = sum(1 + dictionary.costs[i] for i in subset) + 3 + target.cost
            cost += sum(1 + power + self.plain.costs[i] for power, i in self.terms if power)
            if written:
                forms.append(Form.of(written, cost))
        return forms, tried


def _relations(target: Target, lead: int, counts: Sequence[int]) -> tuple[list[_Relation], int]:
    """Return the relations that are solved for z^2 (`lead` 2) or z (1), and how many were tried."""
    plain = Dictionary.of_atoms(target, 14)
    # What is on the left has coefficient 1; the other power of z must be there, or it is a ratio or a root of one.
    columns = [(3 - lead, i) for i in range(2 - lead, min(FORCED, len(plain.nodes)))]
    n_forced = len(columns)
    columns += [(lead, i) for i in range(1, min(OTHER + 1, len(plain.nodes)))]
    columns += [(0, i) for i in range(len(plain.nodes))]
    squares = _new_squares(plain.values, FORCED)  # of terms of B: they are in c, and are not written
    scale = np.abs(target.z).max(axis=1, keepdims=True)  # squares of z in its own units do not overflow
    z = target.z / scale
    slope = lead * np.maximum(np.abs(z), 0.1) ** (lead - 1)
    relation = replace(target, z=z**lead, tolerance=target.tolerance / scale * slope)
    both = Dictionary(
        np.array([*(plain.values[i] * z**power for power, i in columns), *squares]),
        [*(plain.nodes[i] for _, i in columns), *(None for _ in squares)],
        [*(plain.costs[i] + power for power, i in columns), *(max(plain.costs) for _ in squares)],
    )
    columns += [(0, 0) for _ in squares]
    subsets, tried = fitting_subsets(relation, both, counts, first_below=n_forced)
    found = []
    for subset, rows in subsets:
        terms = [columns[i] for i in subset]
        # z^lead = C g z^power in units of z; what has no power of z is not needed any more.
        units = np.concatenate([scale ** (lead - power) if power else scale for power, _ in terms], axis=1)
        found.append(_Relation(lead, plain, terms, rows * units))
    return found, tried


def _new_squares(values: Array, count: int) -> list[Array]:
    """Return the squares of the first columns that are no multiples of a column; values (n, n_settings, n_points)."""
    units = values / np.linalg.norm(values, axis=(1, 2), keepdims=True)
    new = []
    for square in values[1:count] ** 2:
        along = np.abs(np.einsum("nkp,kp->n", units, square / np.linalg.norm(square)))
        if along.max() < 1.0 - 1e-9:
            new.append(square)
    return new


def root_nodes(A: Nodes | None, B: Nodes | None, D: Nodes | None, sign: float, target: Target) -> Nodes | None:
    """Return (B +- sqrt(D))/A, where no nodes stand for 1; None if the set cannot write it."""
    allowed = target.table.allowed
    if A is None or B is None or D is None:
        return None
    root = (node_from_name("sqrt"), *D)
    first = B or (Constant(1.0, fitted=False),)
    if sign > 0:
        above = (node_from_name("add"), *first, *root)
    elif "sub" in allowed:
        above = (node_from_name("sub"), *first, *root)
    else:
        above = (node_from_name("add"), *first, node_from_name("mul"), Constant(-1.0, fitted=False), *root)
    if not A:
        return above
    if "div" in allowed:
        return (node_from_name("div"), *above, *A)
    return (node_from_name("mul"), *above, node_from_name("inv"), *A) if "inv" in allowed else None
