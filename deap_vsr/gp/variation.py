"""Mask-aware GP operators in DEAP's manner: they change individuals in place and return tuples.

Each is a drop-in for the operator of the same name in ``deap.gp``, and does the same on trees without
a mask. Only *open* positions are touched: mutable nodes with nothing frozen at or below them. New material
is mutable. Randomness comes from the standard ``random`` module, as DEAP's users expect.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from deap import gp

from deap_vsr.engine.program import encoder
from deap_vsr.tree import Constant, Node, is_ephemeral, is_mutable, is_open

T = TypeVar("T", bound=gp.PrimitiveTree)


def open_positions(individual: Sequence[Node]) -> list[int]:
    """Return the positions whose whole sub-tree may be replaced: nothing in it is frozen."""
    positions: list[int] = []
    stack: list[bool] = []  # for each complete sub-tree to the right: is all of it mutable?
    for i in range(len(individual) - 1, -1, -1):
        node = individual[i]
        free = is_mutable(node)
        for _ in range(node.arity):
            free &= stack.pop()
        stack.append(free)
        if free:
            positions.append(i)
    positions.reverse()
    return positions


def _below_root(individual: Sequence[Node]) -> list[int]:
    """Return the open positions but the root, which is only taken if the tree is nothing else."""
    positions = open_positions(individual)
    return positions[1:] if len(individual) > 1 and positions[:1] == [0] else positions


def _by_type(individual: Sequence[Node], positions: Sequence[int]) -> dict[type, list[int]]:
    """Group positions by return type, in order of appearance (a set's order changes from run to run)."""
    groups: dict[type, list[int]] = {}
    for position in positions:
        groups.setdefault(individual[position].ret, []).append(position)
    return groups


def _swap(ind1: T, ind2: T, positions1: Sequence[int], positions2: Sequence[int]) -> tuple[T, T]:
    """Swap two sub-trees of one type, drawn from the given positions."""
    groups1, groups2 = _by_type(ind1, positions1), _by_type(ind2, positions2)
    shared = [kind for kind in groups1 if kind in groups2]
    if shared:
        kind = random.choice(shared)
        slice1 = ind1.searchSubtree(random.choice(groups1[kind]))
        slice2 = ind2.searchSubtree(random.choice(groups2[kind]))
        ind1[slice1], ind2[slice2] = ind2[slice2], ind1[slice1]
    return ind1, ind2


def cxOnePoint(ind1: T, ind2: T) -> tuple[T, T]:
    """Swap two random open sub-trees of the same return type."""
    return _swap(ind1, ind2, _below_root(ind1), _below_root(ind2))


def cxOnePointLeafBiased(ind1: T, ind2: T, termpb: float) -> tuple[T, T]:
    """Swap two open sub-trees: leaves with probability `termpb`, else operators (each parent draws)."""

    def positions(individual: T) -> list[int]:
        leaves = random.random() < termpb
        return [p for p in _below_root(individual) if (individual[p].arity == 0) == leaves]

    return _swap(ind1, ind2, positions(ind1), positions(ind2))


def mutUniform(individual: T, expr: Callable[..., list[Any]], pset: gp.PrimitiveSetTyped) -> tuple[T]:
    """Replace a random open sub-tree by one that ``expr(pset=pset, type_=...)`` generates."""
    positions = open_positions(individual)
    if positions:
        position = random.choice(positions)
        kind = individual[position].ret
        individual[individual.searchSubtree(position)] = expr(pset=pset, type_=kind)
    return (individual,)


def mutNodeReplacement(individual: T, pset: gp.PrimitiveSetTyped) -> tuple[T]:
    """Replace a random node below the root, with nothing frozen below it, by another of the same arity and types."""
    return replace_node(individual, pset, _below_root(individual) if len(individual) > 1 else [])


def replace_node(individual: T, pset: gp.PrimitiveSetTyped, positions: Sequence[int]) -> tuple[T]:
    """Replace the node at one of the positions by another of the same arity and types."""
    if positions:
        position = random.choice(positions)
        node = individual[position]
        if node.arity:
            alike = [p for p in pset.primitives[node.ret] if p.args == node.args]
            if alike:
                individual[position] = random.choice(alike)
        elif pset.terminals[node.ret]:
            individual[position] = _terminal(pset, node.ret)
    return (individual,)


def mutInsert(individual: T, pset: gp.PrimitiveSetTyped) -> tuple[T]:
    """Put a new operator above a random open sub-tree, which becomes one of its operands."""
    positions = open_positions(individual)
    if not positions:
        return (individual,)
    place = individual.searchSubtree(random.choice(positions))
    kind = individual[place.start].ret
    operators = [p for p in pset.primitives[kind] if kind in p.args and all(pset.terminals[a] for a in p.args)]
    if not operators:
        return (individual,)
    operator = random.choice(operators)
    keep = random.choice([i for i, argument in enumerate(operator.args) if argument == kind])
    inserted: list[Any] = [operator]
    for i, argument in enumerate(operator.args):
        inserted += individual[place] if i == keep else [_terminal(pset, argument)]
    individual[place] = inserted
    return (individual,)


def mutGrow(individual: T, expr: Callable[..., list[Any]], pset: gp.PrimitiveSetTyped) -> tuple[T]:
    """Put a new operator above a random open sub-tree; its other operands come from ``expr(pset=pset, type_=...)``.

    Unlike a replacement it keeps what is there: C becomes C + C*x, not C*x.
    """
    positions = open_positions(individual)
    if not positions:
        return (individual,)
    place = individual.searchSubtree(random.choice(positions))
    kind = individual[place.start].ret
    operators = [p for p in pset.primitives[kind] if kind in p.args]
    if operators:
        operator = random.choice(operators)
        keep = random.choice([i for i, argument in enumerate(operator.args) if argument == kind])
        inserted: list[Any] = [operator]
        for i, argument in enumerate(operator.args):
            inserted += individual[place] if i == keep else expr(pset=pset, type_=argument)
        individual[place] = inserted
    return (individual,)


def mutTerm(individual: T, expr: Callable[..., list[Any]], pset: gp.PrimitiveSetTyped) -> tuple[T]:
    """Add a scaled term to a random open sub-tree g: it becomes g + C*t, t coming from ``expr(pset=pset, type_=...)``.

    Fitting then finds how much of t is wanted, which may be nothing; a bare t would have to come with its scale. Sets
    without addition, multiplication or ephemeral constants are left to :func:`mutGrow`.
    """
    positions = open_positions(individual)
    if not positions:
        return (individual,)
    place = individual.searchSubtree(random.choice(positions))
    kind = individual[place.start].ret
    operators = {p.name: p for p in pset.primitives[kind] if p.args == [kind, kind]}
    meaning = {encoder(pset).vocabulary.operator(p).name: p for p in operators.values()}
    scales = [t for t in pset.terminals[kind] if isinstance(t, gp.MetaEphemeral)]
    if "add" not in meaning or "mul" not in meaning or not scales:
        return mutGrow(individual, expr, pset)
    term = [meaning["mul"], random.choice(scales)(), *expr(pset=pset, type_=kind)]
    individual[place] = [meaning["add"], *individual[place], *term]
    return (individual,)


def mutShrink(individual: T) -> tuple[T]:
    """Replace a random open operator by one of its operands of the same type."""
    choices = []
    for position in open_positions(individual):
        node = individual[position]
        if node.arity and node.ret in node.args:
            choices.append(position)
    if choices:
        position = random.choice(choices)
        node = individual[position]
        wanted = random.choice([i for i, kind in enumerate(node.args) if kind == node.ret])
        operand = individual.searchSubtree(position + 1)
        for _ in range(wanted):
            operand = individual.searchSubtree(operand.stop)
        individual[individual.searchSubtree(position)] = individual[operand]
    return (individual,)


def mutEphemeral(individual: T, mode: str) -> tuple[T]:
    """Give one (`mode` "one") or all ("all") mutable open constants a new value.

    DEAP's ephemeral constants are drawn anew; ours move by a factor near 1 and, now and then, change sign.
    """
    if mode not in ("one", "all"):
        raise ValueError(f'mutEphemeral: mode is {mode!r}, expected "one" or "all"')
    positions = [i for i, node in enumerate(individual) if is_open(node) and is_mutable(node)]
    if mode == "one" and positions:
        positions = [random.choice(positions)]
    for position in positions:
        node = individual[position]
        if is_ephemeral(node):
            individual[position] = type(node)()
        else:
            sign = -1.0 if random.random() < 0.1 else 1.0
            value = sign * node.value * random.lognormvariate(0.0, 0.5) + random.gauss(0.0, 0.1)
            individual[position] = Constant(value, node.fitted, node.mutable, node.ret)
    return (individual,)


def with_value(node: Node, value: float) -> Constant:
    """Return an open constant like `node` at another value."""
    return Constant(value, True, is_mutable(node), node.ret)


def _terminal(pset: gp.PrimitiveSetTyped, kind: type) -> Any:
    terminal = random.choice(pset.terminals[kind])
    return terminal() if isinstance(terminal, gp.MetaEphemeral) else terminal


def staticLimit(key: Callable[[Any], float], max_value: float) -> Callable[[Any], Any]:
    """Decorate an operator so that a child beyond the limit goes back to what it was before.

    DEAP's own replaces it by a random parent, and hands out the same object twice when both children are too large;
    whatever then changes one of them changes the other as well.
    """

    def decorator(operator: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(operator)
        def limited(*arguments: Any, **options: Any) -> list[Any]:
            parents = [list(argument) for argument in arguments if isinstance(argument, gp.PrimitiveTree)]
            children = list(operator(*arguments, **options))
            for child, nodes in zip(children, parents, strict=False):
                if key(child) > max_value:
                    list.__setitem__(child, slice(None), nodes)
            return children

        return limited

    return decorator
