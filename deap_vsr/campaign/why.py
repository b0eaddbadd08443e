"""Why each point is asked, in words that a person at the bench understands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.campaign.setup import Setup
from deap_vsr.tree.operators import Array, Flags

#: Points that have something in common are so many at least: two may be by chance.
GROUP = 3


def reasons(points: Array, earlier: Array, setup: Setup, formula: bool) -> list[str]:
    """Return why each of some points, (n, n_vars), is asked, beside those that were asked `earlier`.

    What is held is what a point has in common with others: the points themselves tell what is varied.
    """
    pool = np.vstack([earlier, points]) if len(earlier) else points
    return [_reason(i, point, points, earlier, pool, setup, formula) for i, point in enumerate(points)]


def _reason(i: int, point: Array, points: Array, earlier: Array, pool: Array, setup: Setup, formula: bool) -> str:
    if (earlier == point).all(axis=1).any() if len(earlier) else False:
        return "a repeat: is it the same as before?"
    if (points[:i] == point).all(axis=1).any():
        return "a repeat: how large is the noise?"
    names = setup.names
    same: Flags = pool == point
    others = same[~same.all(axis=1)]
    alone = others[others.sum(axis=1) == len(point) - 1]
    if len(alone) >= GROUP - 1 and len(point) > 1:
        varied = int(np.argmin(alone.sum(axis=0)))
        return f"{names[varied]} alone is varied, the rest is held"
    held = _held(others)
    if held:
        free = [name for column, name in enumerate(names) if column not in held]
        verb = "is" if len(free) == 1 else "are"
        return f"{_listed(free)} {verb} varied, {_listed([names[column] for column in held])} held"
    if len(point) == 1:
        return "a value that was not asked before"
    return "anywhere: does the formula so far hold?" if formula else "anywhere: a first look"


def _held(others: Flags) -> list[int]:
    """Return the columns that most of those points have in common that have anything in common with one."""
    patterns, counts = np.unique(others[others.any(axis=1)], axis=0, return_counts=True)
    good = [(int(count), pattern) for pattern, count in zip(patterns, counts, strict=True) if count >= GROUP - 1]
    if not good:
        return []
    _, best = max(good, key=lambda item: (item[1].sum(), item[0]))
    return [int(column) for column in np.flatnonzero(best)]


def _listed(names: Sequence[str]) -> str:
    *most, last = map(str, names)
    return f"{', '.join(most)} and {last}" if most else last
