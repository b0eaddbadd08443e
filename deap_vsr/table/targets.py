"""What steps look for: y, or y with an outer function undone, and how to put that back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.table.rows import Rows
from deap_vsr.tree import Constant, Node, node_from_name, operators
from deap_vsr.tree.operators import Array


@dataclass(frozen=True, eq=False)
class Target:
    """z = T(y) on the rows, (n_rows,), and on the screened ones; ``root``: how well each of these is known."""

    z: Array
    screened: Array
    root: Array
    functions: tuple[Function, ...]
    sign: float
    allowed: frozenset[str]

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
    found = [Target(rows.y, screen.y, weight, (), 1.0, rows.allowed)]
    for function in _in_order(rows.function_set):
        operator = operators.get(function.name)
        inverse = operator.inverse
        if inverse is None or operator.derivative is None:
            continue
        sign = -1.0 if (rows.y < 0).all() and "mul" in rows.allowed else 1.0
        with np.errstate(all="ignore"):
            z, part = np.asarray(inverse(sign * rows.y)), np.asarray(inverse(sign * screen.y))
            slope = np.abs(np.asarray(operator.derivative(operator.function(part), part)[0], dtype=float))
        if np.isfinite(z).all() and np.isfinite(slope).all() and (slope > 0).any() and np.ptp(z) > 0:
            slope = np.broadcast_to(slope, part.shape)
            # A few rows in which much is undone must not decide alone.
            root = weight * np.minimum(slope / float(np.median(slope)), 10.0)
            found.append(Target(z, part, root, (function,), sign, rows.allowed))
    return found


def _in_order(function_set: Sequence[str]) -> list[Function]:
    """Return functions in the order in which their inverses are likely to help: powers, then others."""
    first = ("inv", "sqrt", "log", "exp", "n2")
    known = functions(function_set)
    return sorted(known, key=lambda f: first.index(f.name) if f.name in first else len(first))
