"""What steps look for: y, or y with an outer function undone, and how to put that back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.table.rows import Rows
from deap_vsr.tree import Constant, Node, node_from_name, operators
from deap_vsr.tree.operators import Array

#: Noise that steps reckon with before any is known, as a share of the spread of y: it says which rows to trust.
LIKELY = 1.0
#: Share of rows at which a function must have been undone.
UNDONE = 0.9


@dataclass(frozen=True, eq=False)
class Target:
    """z = T(y) on the rows, (n_rows,), and on the screened ones.

    ``root``: how well each of the screened ones is known; ``size``: how large it is beside what noise may do to it.
    """

    z: Array
    screened: Array
    root: Array
    size: Array
    functions: tuple[Function, ...]
    sign: float
    allowed: frozenset[str]

    def values(self, z: Array) -> Array:
        """Return y for values of z, (n,)."""
        with np.errstate(all="ignore"):
            for function in reversed(self.functions):
                z = np.asarray(operators.get(function.name).function(z), dtype=float)
        return self.sign * z

    def wrap(self, nodes: Sequence[Node] | None) -> Nodes | None:
        """Return the nodes of y for those of z."""
        if nodes is None:
            return None
        inner: Nodes = tuple(nodes)
        for function in reversed(self.functions):
            inner = function.of(inner, self.allowed)
        if self.sign < 0:
            inner = (node_from_name("mul"), Constant(-1.0, fitted=False), *inner)
        return inner


def targets(rows: Rows) -> list[Target]:
    """Return y itself, then y with one outer function of the set undone, where that is finite on all rows."""
    screen = rows.screen
    weight = np.ones(screen.n_rows) if screen.weights is None else np.sqrt(screen.weights)
    spread = LIKELY * (float(np.std(screen.y)) or 1.0)
    found = [Target(rows.y, screen.y, weight, np.abs(screen.y) / spread, (), 1.0, rows.allowed)]
    for function in _in_order(rows.function_set):
        operator = operators.get(function.name)
        inverse = operator.inverse
        if inverse is None or operator.derivative is None:
            continue
        sign = -1.0 if np.median(rows.y) < 0 and "mul" in rows.allowed else 1.0
        with np.errstate(all="ignore"):
            z, part = np.asarray(inverse(sign * rows.y)), np.asarray(inverse(sign * screen.y))
            slope = np.abs(np.asarray(operator.derivative(operator.function(part), part)[0], dtype=float))
        slope = np.broadcast_to(slope, part.shape)
        good = np.isfinite(part) & np.isfinite(slope) & (slope > 0)
        if min(float(np.isfinite(z).mean()), float(good.mean())) < UNDONE or np.ptp(z[np.isfinite(z)]) == 0:
            continue
        # Where noise has carried y out of the range of a function, nothing is known of what is within.
        part, slope = np.where(good, part, 0.0), np.where(good, slope, 0.0)
        size = np.abs(part) * slope / spread
        # Rows that noise hardly touches are all as good: a few of them must not decide alone.
        root = slope / (1.0 + size)
        root = weight * root / float(np.median(root[good]))
        found.append(Target(z, part, root, size, (function,), sign, rows.allowed))
    return found


def _in_order(function_set: Sequence[str]) -> list[Function]:
    """Return functions in the order in which their inverses are likely to help: powers, then others."""
    first = ("inv", "sqrt", "log", "exp", "n2")
    known = functions(function_set)
    return sorted(known, key=lambda f: first.index(f.name) if f.name in first else len(first))
