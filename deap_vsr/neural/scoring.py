"""Fitting what was written: each formula once, the best kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.lab.budget import Budget
from deap_vsr.search.fits import MANY, data_state, fit_from, fit_state, fitted_on
from deap_vsr.search.schema import FitState, WeightedData
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Flags, Indices
from deap_vsr.tree.simplify import skeleton_key

#: What runs a function over a list, in order: the one parallel seam, as DEAP's ``toolbox.map``.
Map = Callable[[Callable[[MaskedTree], Fit], list[MaskedTree]], Iterable[Fit]]

#: Formulas fitted between two looks at the limits.
CHUNK = 16

#: Formulas whose errors are remembered, at the most: some 100 MB. Beyond that the older half is forgotten.
MAX_KNOWN = 1_000_000

#: Of the fits of a batch that were cut short this share, the best, is gone on with: what is learnt from, by default.
REFINED = 0.05

#: Of the best fits so many are kept, and handed back.
LEADERS = 10


class ScorerState(TypedDict):
    """A :class:`Scorer` in a checkpoint."""

    data: WeightedData
    errors: list[tuple[int, float]]
    leaders: list[FitState]
    refused: list[int]
    second: FitState | None


@dataclass(frozen=True, eq=False)
class Scored:
    """How n formulas fit: errors (n,), their keys, and which of them had not been met before, (n,)."""

    errors: Array
    keys: list[int]
    new: Flags

    def __add__(self, other: Scored) -> Scored:
        return Scored(np.append(self.errors, other.errors), self.keys + other.keys, np.append(self.new, other.new))

    def first_met(self) -> Indices:
        """Return the rows of formulas that had not been met before, each once; of all formulas where there are none."""
        rows = np.sort(np.unique(self.keys, return_index=True)[1])
        return rows[self.new[rows]] if self.new.any() else rows


@dataclass
class Scorer:
    """The data of a task, the errors of all formulas met so far, and the best of them.

    Attributes
    ----------
    data : Dataset
    budget : Budget
    target : normalised error at which the task is solved
    how : options of :func:`deap_vsr.engine.fitting.fit`
    map : where fits run
    errors : of formulas by their key; constants are anonymous
    refused : keys of formulas that are no answer, however well they fit
    leaders : the best fits, best first; of two that solve the task the shorter one is the better
    second : the best fit of those that are no answer
    """

    data: Dataset
    budget: Budget
    target: float
    how: dict[str, Any]
    map: Map = map
    errors: dict[int, float] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    leaders: list[Fit] = field(default_factory=list)
    second: Fit | None = None

    @property
    def candidates(self) -> list[Fit]:
        """The leaders, and behind them the best of what is no answer: it may be the best there is in the end."""
        return [*self.leaders[: LEADERS - 1], self.second] if self.second is not None else self.leaders

    @property
    def best(self) -> Fit | None:
        """The best fit."""
        return self.leaders[0] if self.leaders else None

    @property
    def solved(self) -> bool:
        """Whether the target is reached."""
        return self.best is not None and self.best.error <= self.target

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do, or nothing left to do it with."""
        return self.solved or self.budget.used_up() is not None

    def score(self, trees: Sequence[MaskedTree]) -> Scored | None:
        """Return how formulas fit; None where the budget is used up before all are known.

        What has been met before is not fitted again. All are fitted even where one of them solves the task: the
        shortest that does is wanted, as the first one often has constants that hide one another.
        """
        keys = [skeleton_key(tree) for tree in trees]
        new = {key: tree for key, tree in zip(keys, trees, strict=True) if key not in self.errors}
        waiting = list(new.items())
        fits: list[tuple[int, Fit]] = []
        slow = self.how["optimizer"] != "lm" and self.budget.seconds_left() is not None
        few = self.budget.evaluations_left() < MANY * CHUNK
        size = 1 if slow or few else CHUNK  # a slow fit may take all the time there is, a few all evaluations
        for begin in range(0, len(waiting), size):
            if self.best is not None and self.budget.used_up() is not None:
                return None
            part = waiting[begin : begin + size]
            for (key, _), outcome in zip(part, self.map(self._fit(), [tree for _, tree in part]), strict=True):
                self._take(outcome, key, outcome.evaluations)
                fits.append((key, outcome))
        self._refine(fits)
        errors = np.array([self.errors[key] for key in keys])
        if len(self.errors) > MAX_KNOWN:
            self.errors = dict(list(self.errors.items())[MAX_KNOWN // 2 :])
        return Scored(errors, keys, np.array([key in new for key in keys], bool))

    def _refine(self, fits: list[tuple[int, Fit]]) -> None:
        """Go on with the best of a batch, where their fits were cut short: they are what is learnt from."""
        best = sorted(fits, key=lambda item: _finite(item[1].error))[: math.ceil(REFINED * len(fits))]
        for key, first in best:
            if self.how["optimizer"] != "lm" or self.budget.used_up() is not None:
                return
            outcome = fitted_on(first, self.data, None, self.budget.evaluations_left())
            if outcome is not first:
                self._take(outcome, key, outcome.evaluations - first.evaluations)

    def _take(self, outcome: Fit, key: int, evaluations: int) -> None:
        self.budget.count(evaluations)
        self._offer(outcome, key)
        self.errors[key] = _finite(outcome.error)

    def rank(self, outcome: Fit) -> tuple[float, int]:
        """Return the order of fits: by error, and by length where the task is solved."""
        return max(outcome.error, self.target), len(outcome.tree)

    def _fit(self) -> Callable[[MaskedTree], Fit]:
        """Return what fits one formula; it can be sent to another process."""
        limit = None if self.how["optimizer"] == "lm" else self.budget.seconds_left()
        return partial(fit, trials=self.data, time_limit=limit, **self.how)

    def _offer(self, outcome: Fit, key: int) -> None:
        if key in self.refused:
            better = self.second is None or self.rank(outcome) < self.rank(self.second)
            self.second = outcome if better and math.isfinite(outcome.error) else self.second
            return
        worst = self.rank(self.leaders[-1]) if len(self.leaders) == LEADERS else (math.inf, 0)
        if math.isfinite(outcome.error) and self.rank(outcome) < worst:
            others = [other for other in self.leaders if other.tree is not outcome.tree]
            self.leaders = sorted([*others, outcome], key=self.rank)[:LEADERS]

    # --- checkpoints ---

    def state(self) -> dict[str, Any]:
        """Return data, errors and fits in JSON values."""
        return {
            "data": data_state(self.data),
            "errors": list(self.errors.items()),
            "leaders": [fit_state(outcome) for outcome in self.leaders],
            "refused": sorted(self.refused),
            "second": fit_state(self.second),
        }

    def restore(self, state: ScorerState) -> None:
        """Take over errors and fits that :meth:`state` returned."""
        self.errors, self.refused = dict(state["errors"]), frozenset(state["refused"])
        self.second = fit_from(state["second"])
        self.leaders = [outcome for outcome in map(fit_from, state["leaders"]) if outcome is not None]


def _finite(error: float) -> float:
    return error if math.isfinite(error) else math.inf
