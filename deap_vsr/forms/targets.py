"""Lists of targets that stages look behind: y itself, and y with functions or factors undone.

Those that several stages share are made once for a table: the last one that was asked for is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from deap_vsr.forms.peeling import divided, peeled
from deap_vsr.forms.table import Table, Target


def plain(table: Table) -> Iterator[Target]:
    """Yield y itself."""
    yield Target.plain(table)


@lru_cache(maxsize=1)
def once(table: Table) -> tuple[Target, ...]:
    """Return y with one outer function undone."""
    return tuple(peeled(Target.plain(table)))


@lru_cache(maxsize=1)
def twice(table: Table) -> tuple[Target, ...]:
    """Return y with two functions undone."""
    return tuple(inner for target in once(table) for inner in peeled(target))


def thrice(table: Table) -> Iterator[Target]:
    """Yield y with three functions undone."""
    for target in twice(table):
        yield from peeled(target)


@lru_cache(maxsize=1)
def factors(table: Table) -> tuple[Target, ...]:
    """Return y divided by each of the first dozen atoms."""
    return tuple(divided(table, 12))


@lru_cache(maxsize=1)
def behind_factors(table: Table) -> tuple[Target, ...]:
    """Return y divided by an atom, with one function of that undone."""
    return tuple(inner for target in factors(table) for inner in peeled(target))


def once_twice_and_factors(table: Table) -> Iterator[Target]:
    """Yield y with one function undone, with two, and divided by an atom."""
    yield from once(table)
    yield from twice(table)
    yield from factors(table)


def everything_undone(table: Table) -> Iterator[Target]:
    """Yield the same, and what is behind the factors."""
    yield from once_twice_and_factors(table)
    yield from behind_factors(table)


@lru_cache(maxsize=1)
def few_factors(table: Table) -> tuple[Target, ...]:
    """Return y divided by each of the first atoms, fewer of them: for stages that take long."""
    return tuple(divided(table, 8))


def behind_few_factors(table: Table) -> Iterator[Target]:
    """Yield y divided by one of the very first atoms, with one function of that undone."""
    for target in few_factors(table)[:4]:
        yield from peeled(target)
