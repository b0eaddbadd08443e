"""Regions: intervals of one variable in which answers jump away from a formula that they follow everywhere else.

A formula that comes close to the law leaves it little by little. Where answers jump, at two values a hair apart, and
follow the formula to the last digit on both sides, it is what was measured that changes there: a phase, a range of the
instrument, another branch of a program. What goes on to the end of a range may be a part of the law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deap_vsr.lab.evidence import OF_MEDIAN, RELATIVE
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Flags

#: A formula of which more of the domain, or of the answers that are to refute it, is off is not the law but for a
#: region. By hand: three steps of a tenth in four, as twelve points meet them, are within it.
MOST = 0.3
#: Points between two that are off, at any values of the other variables, that have to be off for the interval to be
#: what they have in common; where one is not, it is the next variable.
PROBES = 3
#: How often an end of a region is halved: to a thousandth of where it may be.
HALVED = 10
#: At its ends answers are off by at least this share of what they are off within: a smooth function, so near to where
#: it is off by nothing, is not.
JUMP = 0.1


@dataclass(frozen=True)
class Region:
    """An interval of a variable, and its share of the domain, in which answers do not follow a formula.

    From ``low`` to ``high`` they were seen to be off; at ``below`` and ``above`` they follow it.
    """

    column: int
    low: float
    high: float
    below: float
    above: float
    share: float

    def holds(self, X: Array) -> Flags:
        """Return which points, (n, n_vars), may be within it."""
        x = X[:, self.column]
        return np.asarray((x > self.below) & (x < self.above), dtype=bool)

    def in_words(self, variable: Variable) -> str:
        """Return where it is."""
        size = f"{100 * self.share:.2g}% of the domain"
        return f"where {variable.name} is from {self.low:.4g} to {self.high:.4g} ({size})"


def region_of(formula: MaskedTree, known: Trial, off: Flags, lab: Lab) -> Region | None:
    """Return the region in which all exact answers are that are `off`, (n,); None if they are in no such interval.

    ::

        for each variable of which no value between those that are off belongs to a point that is not:
            points between, the other variables anywhere: they are off
            from both ends outwards, halving: values that are off, and values that are not, a hair apart
            on this side of each end they are off by as much as within
    """
    look = _Look(formula, known, lab)
    needed = PROBES * lab.n_vars + 2 * (HALVED + 1)
    for column in _columns(known, off, lab):
        if lab.budget.queries_left() < needed:
            return None
        region = look.along(column, known.X[off, column], known.X[~off, column])
        if region is not None:
            return region if region.share <= MOST else None
    return None


def _columns(known: Trial, off: Flags, lab: Lab) -> Iterator[int]:
    """Yield the columns in which the values that are off are an interval of their own."""
    for column, variable in enumerate(lab.variables):
        if variable.sampling == "integer" or variable.stepped or variable.sign == "both":
            continue
        x = known.X[:, column]
        low, high = float(x[off].min()), float(x[off].max())
        if not ((x[~off] >= low) & (x[~off] <= high)).any():
            yield column


class _Look:
    """A look at where answers follow a formula, on counted points."""

    def __init__(self, formula: MaskedTree, known: Trial, lab: Lab) -> None:
        self.formula, self.lab = formula, lab
        self.floor = OF_MEDIAN * float(np.median(np.abs(known.y)))

    def along(self, column: int, bad: Array, good: Array) -> Region | None:
        """Return the region in one variable, given values at which answers are off, and at which they are not."""
        variable = self.lab.variables[column]
        low, high = float(bad.min()), float(bad.max())
        sizes = []
        for place in self.lab.rng.uniform(size=PROBES):
            size = self._off(column, low + place * (high - low))
            if not size > 0.0:  # or there is no answer
                return None
            sizes.append(size)
        least = JUMP * float(np.median(sizes))
        low, below = self._end(column, low, good[good < low].max(initial=-np.inf), variable.bounds[0], least)
        high, above = self._end(column, high, good[good > high].min(initial=np.inf), variable.bounds[1], least)
        if np.isnan(below) or np.isnan(above):
            return None
        places = _places(variable, np.array([below, above]))
        return Region(column, low, high, below, above, float(places[1] - places[0]))

    def _end(self, column: int, inside: float, outside: float, edge: float, least: float) -> tuple[float, float]:
        """Return an end of the region: the last value that is off, and the first that is not.

        The second is NaN where there is none, or what is off becomes less than `least` towards the end.
        """
        if np.isinf(outside):
            if self._off(column, edge) != 0.0:
                return inside, np.nan
            outside = edge
        size = np.inf
        for _ in range(HALVED):
            middle = 0.5 * (inside + outside)
            off = self._off(column, middle)
            if np.isnan(off):
                return inside, np.nan
            if off > 0.0:
                inside, size = middle, off
            else:
                outside = middle
        return inside, outside if size >= least else np.nan

    def _off(self, column: int, value: float) -> float:
        """Return how far the answer is off at a value of a variable, the others anywhere, relative to y; 0: it is not.

        NaN where there is no answer.
        """
        X = self.lab.draw(1)
        X[:, column] = value
        y = float(self.lab.ask(X)[0])
        with np.errstate(all="ignore"):
            there = float(self.formula.evaluate(X, self.lab.pset)[0])
        if not np.isfinite(y):
            return np.nan
        size = max(abs(y), abs(there))
        apart = abs(there - y) / size if size > 0.0 else 0.0
        return apart if apart * size > RELATIVE * abs(y) + self.floor or np.isnan(there) else 0.0


def _places(variable: Variable, x: Array) -> Array:
    """Return the share of a variable's values that are smaller."""
    low, high = variable.bounds
    if variable.sampling == "loguniform" and low > 0.0:
        return np.asarray(np.log(x / low) / np.log(high / low))
    return np.asarray((x - low) / (high - low))
