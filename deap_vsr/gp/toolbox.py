"""The seam to a user's toolbox: which primitive set it holds, and its copy for one round."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from deap import base, gp

from deap_vsr.errors import VsrError
from deap_vsr.tree import random_constant
from deap_vsr.tree.operators import from_function


def primitive_set_of(toolbox: base.Toolbox) -> gp.PrimitiveSetTyped:
    """Return the set that the toolbox's `mutate` holds; clear errors for what would ignore masks."""
    registered = {name: item for name, item in vars(toolbox).items() if isinstance(item, functools.partial)}
    for alias in ("mate", "mutate"):
        item = registered.get(alias)
        if item is None:
            raise VsrError(f"the toolbox has no {alias}; register deap_vsr's cxOnePoint and mutUniform, say")
        function = item.func
        while hasattr(function, "__wrapped__"):  # behind staticLimit
            function = function.__wrapped__
        if getattr(function, "__module__", "") == "deap.gp":
            raise VsrError(
                f"toolbox.{alias} is deap.gp's {function.__name__}, which changes frozen nodes; "
                f"register deap_vsr.{function.__name__} instead"
            )
    pset = registered["mutate"].keywords.get("pset")
    if not isinstance(pset, gp.PrimitiveSetTyped):
        raise VsrError("toolbox.mutate holds no primitive set; register it with pset=...")
    return pset


def controlled(pset: gp.PrimitiveSetTyped, columns: Sequence[int]) -> list[str]:
    """Return the names of all variables but `columns`."""
    return [name for column, name in enumerate(pset.arguments) if column not in columns]


def restricted(pset: gp.PrimitiveSetTyped, columns: Sequence[int]) -> gp.PrimitiveSetTyped:
    """Return a view of a primitive set in which, of the variables, only `columns` are terminals.

    Variables and ephemeral constants are there about as often as all literals: many of these would crowd them out.
    """
    view = copy.copy(pset)
    held = controlled(pset, columns)
    view.terminals = defaultdict(list)
    for kind, terminals in pset.terminals.items():
        kept = [t for t in terminals if isinstance(t, gp.MetaEphemeral) or t.value not in held]
        drawn = [t for t in kept if isinstance(t, gp.MetaEphemeral)]
        named = [t for t in kept if t not in drawn and t.value in pset.arguments]
        n_literals = len(kept) - len(drawn) - len(named)
        view.terminals[kind] = list(kept)
        for wanted in (named, drawn):
            view.terminals[kind] += (n_literals // max(len(wanted), 1) - 1) * wanted
    return view


def with_ephemeral(pset: gp.PrimitiveSetTyped) -> gp.PrimitiveSetTyped:
    """Return a copy of a primitive set that has an ephemeral constant of the set's type beside."""
    mine = copy.copy(pset)
    for name in ("terminals", "primitives"):
        items = getattr(pset, name)
        setattr(mine, name, defaultdict(list, {kind: list(found) for kind, found in items.items()}))
    mine.mapping, mine.context = dict(pset.mapping), dict(pset.context)
    gp.PrimitiveSetTyped.addEphemeralConstant(mine, "vsr_const", random_constant, pset.ret)
    return mine


def has_ephemeral(pset: gp.PrimitiveSetTyped) -> bool:
    """Whether a primitive set has ephemeral constants."""
    return any(isinstance(t, gp.MetaEphemeral) for terminals in pset.terminals.values() for t in terminals)


def meaning(pset: gp.PrimitiveSetTyped) -> gp.PrimitiveSetTyped:
    """Return what a primitive set says of trees and no more: it can be sent to other processes.

    Operators that are recognised go by their own name, also where the set has them as a lambda; ephemeral constants,
    which other processes would make classes of their own of, stay behind.
    """
    slim = copy.copy(pset)
    slim.terminals, slim.primitives, slim.mapping = defaultdict(list), defaultdict(list), {}
    slim.context = dict(pset.context)
    for primitives in pset.primitives.values():
        for primitive in primitives:
            operator = from_function(primitive.name, pset.context[primitive.name], primitive.arity)
            if operator.known:
                slim.context[primitive.name] = operator
    return slim


def with_set(toolbox: base.Toolbox, pset: gp.PrimitiveSetTyped, other: gp.PrimitiveSetTyped) -> base.Toolbox:
    """Return a copy of the toolbox with another primitive set wherever it holds `pset`, but for `evaluate`."""

    def replaced(value: Any) -> Any:
        if value is pset:
            return other
        if isinstance(value, functools.partial):
            keywords = {name: replaced(item) for name, item in value.keywords.items()}
            return functools.partial(value.func, *map(replaced, value.args), **keywords)
        return value

    mine = base.Toolbox()
    for alias, item in vars(toolbox).items():
        setattr(mine, alias, item if alias == "evaluate" else replaced(item))
    return mine


def with_terminals(toolbox: base.Toolbox, columns: Sequence[int]) -> base.Toolbox:
    """Return a copy of the toolbox for a round: new material holds, of the variables, only `columns`.

    Wherever the toolbox holds its primitive set the copy holds a view of it, but for `evaluate`: what was grown in
    earlier rounds has their variables.
    """
    pset = primitive_set_of(toolbox)
    return with_set(toolbox, pset, restricted(pset, columns))
