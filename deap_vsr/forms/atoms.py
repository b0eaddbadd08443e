"""Atoms: all constant-free expressions of one variable that an operator set can build, simple ones first.

Built by rule from whatever set: functions of what is there, products and quotients of what is there. Sums are built as
well, as arguments of functions, but are no atoms: sums of atoms are what the search is for. Of expressions with the
same values, up to a factor, only the simplest stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deap_vsr.engine.program import evaluate
from deap_vsr.tree import Constant, Node, is_variable, node_from_name, operators, variable
from deap_vsr.tree.operators import Array

#: Where expressions are compared: no special points.
_PROBES: Array = np.linspace(0.1137, 2.917, 29)[:, None]

Nodes = tuple[Node, ...]


@dataclass(frozen=True)
class Atom:
    """An expression of x1, and what it costs: one for each operator and leaf, more for functions of functions."""

    nodes: Nodes
    cost: int

    def of(self, column: int) -> list[Node]:
        """Return its nodes with the variable of `column` (from 0) in place of x1."""
        return [variable(column + 1) if is_variable(node) else node for node in self.nodes]


@dataclass(frozen=True)
class Function:
    """A function of one argument that a set can build: a unary operator, or 1/x where there is only division."""

    name: str

    def of(self, nodes: Sequence[Node], allowed: frozenset[str]) -> Nodes:
        """Apply it to nodes."""
        if self.name == "inv" and "inv" not in allowed:
            return (node_from_name("div"), Constant(1.0, fitted=False), *nodes)
        return (node_from_name(self.name), *nodes)


def functions(function_set: Sequence[str]) -> list[Function]:
    """Return the functions of one argument that a set can build; a sign is no function of its own."""
    names = [name for name in function_set if name not in ("const", "neg") and operators.get(name).arity == 1]
    if "div" in function_set and "inv" not in names:
        names.insert(0, "inv")
    return [Function(name) for name in names]


@lru_cache(maxsize=64)
def atoms_of(function_set: tuple[str, ...], max_cost: int = 8, limit: int = 150) -> tuple[Atom, ...]:
    """Return the atoms of a set, cheapest first, at most `limit`; x itself is the first."""
    allowed = frozenset(function_set)
    unary = functions(function_set)
    own = [name for name in function_set if name != "const" and not operators.get(name).known]
    products: list[str] = [name for name in ("mul", "div") if name in allowed]
    products += [name for name in own if operators.get(name).arity == 2]
    sums: list[str] = [name for name in ("add", "sub") if name in allowed]
    seen: set[bytes] = set()
    built: dict[int, list[tuple[Nodes, bool, bool]]] = {1: [((variable(1),), False, False)]}  # nodes, function?, sum?
    result = [Atom((variable(1),), 1)]
    _is_new((variable(1),), seen)
    for cost in range(2, max_cost + 1):
        fresh: list[tuple[Nodes, bool, bool]] = []
        for operator in products:
            for left in range(1, cost - 1):
                for a, _, first in built.get(left, []):
                    for b, _, second in built.get(cost - 1 - left, []):
                        if not (first or second):
                            fresh.append(((node_from_name(operator), *a, *b), False, False))
        for function in unary:
            fresh += [(function.of(n, allowed), True, False) for n, inner, _ in built.get(cost - 1, []) if not inner]
            fresh += [(function.of(n, allowed), True, False) for n, inner, _ in built.get(cost - 2, []) if inner]
        for operator in sums:
            for left in range(1, cost - 4):
                for a, _, _ in built.get(left, []):
                    for b, _, _ in built.get(cost - 4 - left, []):
                        fresh.append(((node_from_name(operator), *a, *b), False, True))
        built[cost] = [item for item in fresh if _is_new(item[0], seen)]
        result += [Atom(nodes, cost) for nodes, _, is_sum in built[cost] if not is_sum]
        if len(result) >= limit:
            break
    return tuple(result[:limit])


def _is_new(nodes: Nodes, seen: set[bytes]) -> bool:
    """Whether the values are no constant, finite somewhere, and new, up to a factor."""
    values = evaluate([nodes], _PROBES)[0]
    values[~np.isfinite(values) | (np.abs(values) > 1e100)] = np.nan
    known = values[np.isfinite(values)]
    if len(known) < 3 or np.ptp(known) <= 1e-9 * np.max(np.abs(known)):
        return False
    scaled = values / known[np.argmax(np.abs(known))]
    key = np.round(scaled, 9).tobytes()
    if key in seen:
        return False
    seen.add(key)
    return True
