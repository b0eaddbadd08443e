"""The seam to a user's toolbox: which primitive set it holds, and its copy for one round."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from deap import base, gp

from deap_vsr.errors import VsrError


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
    """Return a view of a primitive set in which, of the variables, only `columns` are terminals."""
    view = copy.copy(pset)
    held = controlled(pset, columns)
    view.terminals = defaultdict(list)
    for kind, terminals in pset.terminals.items():
        view.terminals[kind] = [t for t in terminals if isinstance(t, gp.MetaEphemeral) or t.value not in held]
    return view


def with_terminals(toolbox: base.Toolbox, columns: Sequence[int]) -> base.Toolbox:
    """Return a copy of the toolbox for a round: new material holds, of the variables, only `columns`.

    Wherever the toolbox holds its primitive set the copy holds a view of it, but for `evaluate`: what was grown in
    earlier rounds has their variables.
    """
    pset = primitive_set_of(toolbox)
    view = restricted(pset, columns)

    def replaced(value: Any) -> Any:
        if value is pset:
            return view
        if isinstance(value, functools.partial):
            keywords = {name: replaced(item) for name, item in value.keywords.items()}
            return functools.partial(value.func, *map(replaced, value.args), **keywords)
        return value

    mine = base.Toolbox()
    for alias, item in vars(toolbox).items():
        setattr(mine, alias, item if alias == "evaluate" else replaced(item))
    return mine
