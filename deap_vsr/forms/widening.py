"""Many operators: forms are looked for with few of them first, and with the others where that does not do.

Every operator more makes more atoms, more families of functions and more skeletons, and what is looked for comes later
among them, or not at all. Most laws are written in the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from deap_vsr.forms.atoms import Atom, atoms_of
from deap_vsr.tree import operators

#: What formulas are put together with, whatever functions they have.
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "sqrt", "pow", "const"})
#: Operators that most laws are written in.
CORE = ARITHMETIC | {"exp", "log", "sin", "cos"}
#: Sets of so many operators at most are tried as they are: whoever gives few has chosen them.
FEW = 13


class _HasEffort(Protocol):
    @property
    def effort(self) -> str: ...


T = TypeVar("T", bound=_HasEffort)


def lean(function_set: tuple[str, ...]) -> tuple[str, ...]:
    """Return the part of a large set that is tried first; a user's own operators belong to it."""
    if len(function_set) - ("const" in function_set) <= FEW:
        return function_set
    return tuple(name for name in function_set if name in CORE or not operators.get(name).known)


def rare(function_set: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a large set has beside the functions of the core, and what formulas are put together with."""
    return tuple(name for name in function_set if name in ARITHMETIC or name not in CORE)


def widened(stages: Sequence[T], function_set: tuple[str, ...]) -> list[tuple[T, tuple[str, ...]]]:
    """Return stages with the operators each is tried with, in order.

    Of the same effort all are tried with the core first, so that a law of the core costs what it costs
    with few operators; then with everything. Stages that take seconds are then tried with the other functions alone:
    what has functions of both kinds is left to the last effort.
    """
    first = lean(function_set)
    if first == function_set:
        return [(stage, function_set) for stage in stages]
    result: list[tuple[T, tuple[str, ...]]] = []
    for effort, row in groupby(stages, key=lambda stage: stage.effort):
        same = list(row)
        then = rare(function_set) if effort in ("quick", "most") else function_set
        result += [(stage, names) for names in (first, then) for stage in same]
    return result


def atoms_in_noise(function_set: tuple[str, ...]) -> tuple[Atom, ...]:
    """Return the atoms that sums in noise are made of: those of the core, as ten of them are tried."""
    return atoms_of(lean(function_set))
