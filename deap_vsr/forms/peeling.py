"""Stage 2, peeling: targets in which an outer operator, or a factor, is undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.table import Table, Target
from deap_vsr.tree import Constant, Node, is_open, node_from_name, operators
from deap_vsr.tree.operators import Array

#: Functions of which powers of x are made.
POWERS = {"inv", "sqrt", "n2", "n3", "n4", "n5", "n6", "n8"}


def peeled(target: Target) -> Iterator[Target]:
    """Yield targets with one outer function undone, for every function of the set that has an inverse."""
    table = target.table
    for function in functions(table.function_set):
        inverse = operators.get(function.name).inverse
        if inverse is None:
            continue
        signs = (1.0, -1.0) if (target.z < 0).all() and "mul" in table.allowed else (1.0,)
        for sign in signs:
            with np.errstate(all="ignore"):
                z = inverse(sign * target.z)
                slope = np.abs(np.asarray(_derivative(function, z)))
                tolerance = target.tolerance / slope
            if np.isfinite(z).all() and (tolerance > 0).all() and np.isfinite(tolerance).all():
                tolerance = np.maximum(tolerance, 4e-16 * np.abs(z))
                yield Target(table, z, tolerance, _Peel(target, function, sign), target.cost + 1 + (sign < 0))


def _derivative(function: Function, z: Array) -> Array:
    operator = operators.get(function.name)
    assert operator.derivative is not None
    return np.broadcast_to(np.asarray(operator.derivative(operator.function(z), z)[0], dtype=float), z.shape)


class _Peel:
    """Puts the function back."""

    def __init__(self, target: Target, function: Function, sign: float) -> None:
        self.target, self.function, self.sign = target, function, sign

    def __call__(self, nodes: Sequence[Node]) -> Nodes:
        allowed = self.target.table.allowed
        inner = self.function.of(nodes, allowed)
        if self.function.name == "exp" and "mul" in allowed and len(nodes) > 1:
            # exp(C + u) is C exp(u): a constant in front is one that later rounds can tell apart.
            depth = next(i for i, node in enumerate(nodes) if node.name != "add")
            offset = nodes[depth]
            if depth and is_open(offset) and abs(offset.value) < 600.0:
                rest = (*nodes[1:depth], *nodes[depth + 1 :])
                factor = Constant(float(np.exp(offset.value)))
                inner = (node_from_name("mul"), factor, *self.function.of(rest, allowed))
        if self.sign < 0:
            inner = (node_from_name("mul"), Constant(-1.0, fitted=False), *inner)
        return self.target.wrap(inner)


def divided(table: Table, count: int, begin: int = 0, powers: bool = False) -> Iterator[Target]:
    """Yield y divided by each of the first atoms from `begin` on, or the `powers` among them, where that is finite."""
    plain = Target.plain(table)
    if "mul" not in table.allowed:
        return
    values = table.values(count)
    for atom, value in list(zip(table.atoms, values, strict=False))[begin:]:
        if powers and any(node.arity == 1 and node.name not in POWERS for node in atom.nodes):
            continue
        if np.isfinite(value).all() and (np.abs(value) > 1e-12 * np.abs(value).max()).all():
            yield Target(
                table, table.y / value, table.tolerance / np.abs(value), _Product(plain, atom.nodes), 1 + atom.cost
            )


class _Product:
    """Puts the factor back; a sum of one term needs no second product."""

    def __init__(self, target: Target, factor: Nodes) -> None:
        self.target, self.factor = target, factor

    def __call__(self, nodes: Sequence[Node]) -> Nodes:
        return self.target.wrap((node_from_name("mul"), *self.factor, *nodes))
