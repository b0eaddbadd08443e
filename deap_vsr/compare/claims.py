"""The paper's claim counted: in how many cells vertical search is no worse than horizontal, and ours than its figure.

A cell is a group of a set at a level of noise, as in the paper's tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.compare.paper import NAMES, published
from deap_vsr.compare.statistics import TIE, Row, grouped, label, summary

#: Of these `vsr`, which grows slot by slot, has no horizontal half of its own: it is set against all that are there.
HORIZONTAL = ("gp", "mcts")
#: Cells that are named where a method is behind; more are counted.
_MAX_NAMED = 4


@dataclass(frozen=True)
class Claim:
    """How often a method is no worse than another one, or than the paper's figure for it.

    `behind` are the cells in which it is worse; `points` is how many times as many points it asked, the median over
    the runs that both have; NaN against the paper, which does not say.
    """

    method: str
    other: str
    n_cells: int
    behind: tuple[str, ...]
    points: float = math.nan

    @property
    def no_worse(self) -> int:
        """In how many cells it is no worse."""
        return self.n_cells - len(self.behind)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return every vertical method against its horizontal half, then every method against the paper's figure for it.

    Medians of the NMSE are compared, over the runs that both methods have; below 1e-6 they are equal.
    """
    labels = list(dict.fromkeys(map(label, rows)))
    pairs = [(one, other) for one in labels for other in labels if _is_half(one, other)]
    found = [_against(rows, one, other) for one, other in pairs]
    return [*found, *(claim for one in labels for claim in _against_the_paper(rows, one))]


def in_words(rows: Sequence[Row]) -> list[str]:
    """Return two sentences, or none: in how many cells vertical search is no worse, and what it costs in points."""
    found = [claim for claim in claims(rows) if math.isfinite(claim.points)]
    if not found:
        return []
    ahead = [
        f"{claim.method} than {claim.other} in {claim.no_worse} of {claim.n_cells} cells{_but(claim.behind)}"
        for claim in found
    ]
    costs = [f"{claim.points:.2g} times as many for {claim.method} as for {claim.other}" for claim in found]
    return [
        f"The median NMSE is no worse (below 1e-6 is equal): {'; '.join(ahead)}.",
        f"Points asked, the median over runs that both have: {'; '.join(costs)}.",
    ]


def _is_half(vertical: str, other: str) -> bool:
    """Whether `other` is the method, of all variables at once, that `vertical` frees one by one."""
    if vertical == "vsr":
        return other in HORIZONTAL
    return vertical.replace("+slotwise", "") == f"vsr-{other}"


def _against(rows: Sequence[Row], method: str, other: str) -> Claim:
    behind, ratios, cells = [], [], 0
    for cell, runs in _cells(rows):
        sides = [{(row["problem"], row["seed"]): row for row in runs if label(row) == name} for name in (method, other)]
        common = [key for key in sides[0] if key in sides[1]]
        if not common:
            continue
        cells += 1
        ours, theirs = (max(summary([side[key] for key in common], "nmse").median, TIE) for side in sides)
        if ours > theirs:
            behind.append(cell)
        asked = [[side[key]["oracle_queries"] for side in sides] for key in common]
        ratios += [one / two for one, two in asked if one and two]
    return Claim(method, other, cells, tuple(behind), float(np.median(ratios)) if ratios else math.nan)


def _against_the_paper(rows: Sequence[Row], method: str) -> Iterator[Claim]:
    name = NAMES.get(method, "")
    behind, cells = [], 0
    for cell, runs in _cells([row for row in rows if label(row) == method and not row["noise_of"]]):
        first = runs[0]
        figure = published().get((first["set"], first["group"], first["noise"], "nmse", name))
        if figure is None:
            continue
        cells += 1
        if max(summary(runs, "nmse").median, TIE) > max(figure.value, TIE):
            behind.append(cell)
    if cells:
        yield Claim(method, f"the paper's {name}", cells, tuple(behind))


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for (where, group, noise), runs in grouped(rows, "set", "group", "noise").items():
        yield f"{where} {group}{f', noise {noise:g}' if noise else ''}".strip(), runs


def _but(behind: Sequence[str]) -> str:
    if not behind:
        return ""
    more = f" and {len(behind) - _MAX_NAMED} more" if len(behind) > _MAX_NAMED else ""
    return f" (not in {', '.join(behind[:_MAX_NAMED])}{more})"
