"""The rows of a table as the steps of a search take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import rounding_errors
from deap_vsr.lab.trials import Trial
from deap_vsr.tree.operators import Array, Indices

#: Forms are screened on so many rows, and fitted to so many at the most: least squares of a few constants needs no
#: more, and 20,000 rows take a few milliseconds a fit.
SCREENED, FITTED = 300, 20_000
#: A normalised error so small is rounding: decades above what most refitted laws leave (1e-30), and below what series
#: and ratios leave of a law that hardly bends (1e-19).
EXACT = 1e-22


@dataclass(frozen=True, eq=False)
class Rows:
    """What the steps of a search are given.

    Attributes
    ----------
    X : (n_rows, n_vars), y : (n_rows,), both finite
    weights : (n_rows,) with mean 1, or None
    function_set : names of operators that a formula may use
    columns : those that a formula may use, from 0
    """

    X: Array
    y: Array
    weights: Array | None
    function_set: tuple[str, ...]
    columns: tuple[int, ...]
    budget: Budget = field(default_factory=Budget)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @classmethod
    def of(
        cls,
        X: Array,
        y: Array,
        function_set: Sequence[str] = ("add", "sub", "mul", "div", "const"),
        weights: Array | None = None,
        columns: Sequence[int] | None = None,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> Rows:
        """Make rows of arrays; columns that do not vary are not used."""
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        varying = [int(c) for c in np.flatnonzero(np.ptp(X, axis=0) > 0.0)] if len(X) else []
        used = varying if columns is None else [column for column in columns if column in varying]
        return cls(X, y, weights, tuple(function_set), tuple(used), budget or Budget(), rng or np.random.default_rng(0))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def allowed(self) -> frozenset[str]:
        """The operators that a formula may use."""
        return frozenset(self.function_set)

    @property
    def trial(self) -> Trial:
        """All rows as one trial."""
        return Trial(self.X, self.y, tuple(range(self.X.shape[1])), self.weights)

    def part(self, rows: Indices) -> Rows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(
            self.X[rows], self.y[rows], weights, self.function_set, self.columns, self.budget, self.rng
        )  # fmt: skip

    @cached_property
    def data(self) -> Dataset:
        """The rows that formulas are fitted to: all, or as many as tell the same."""
        return Dataset.of([self._some(FITTED).trial])

    @cached_property
    def screen(self) -> Rows:
        """Some rows, by which forms are screened: spread over the table, and those that noise touches least.

        Where y is steep a few rows hold nearly all that can be known in noise.
        """
        if self.n_rows <= SCREENED:
            return self
        largest = np.argsort(-np.abs(self.y - np.median(self.y)), kind="stable")[: SCREENED // 5]
        others = np.setdiff1d(np.arange(self.n_rows), largest)
        spread = others[np.linspace(0, len(others) - 1, SCREENED - len(largest)).astype(int)]
        return self.part(np.sort(np.concatenate([largest, spread])))

    @cached_property
    def rounding(self) -> float:
        """The normalised error that is due to the rounding of y."""
        return float(max(EXACT * 1e-2, 10.0 * rounding_errors(self.data)[0]))

    def _some(self, count: int) -> Rows:
        if self.n_rows <= count:
            return self
        return self.part(np.linspace(0, self.n_rows - 1, count).astype(int))

    @property
    def late(self) -> bool:
        """Whether the budget is used up."""
        return self.budget.used_up() is not None
