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

#: Of the best fits so many are kept, and handed back.
LEADERS = 10


class ScorerState(TypedDict):
    """A :class:`Scorer` in a checkpoint."""

    data: WeightedData
    errors: list[tuple[int, float]]
    leaders: list[FitState]


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
    leaders : the best fits, best first; of two that solve the task the shorter one is the better
    """

    data: Dataset
    budget: Budget
    target: float
    how: dict[str, Any]
    map: Map = map
    errors: dict[int, float] = field(default_factory=dict)
    leaders: list[Fit] = field(default_factory=list)

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
        slow = self.how["optimizer"] != "lm" and self.budget.seconds_left() is not None
        few = self.budget.evaluations_left() < MANY * CHUNK
        size = 1 if slow or few else CHUNK  # a slow fit may take all the time there is, a few all evaluations
        for begin in range(0, len(waiting), size):
            if self.best is not None and self.budget.used_up() is not None:
                return None
            part = waiting[begin : begin + size]
            for (key, _), first in zip(part, self.map(self._fit(), [tree for _, tree in part]), strict=True):
                left = self.budget.evaluations_left() if self.how["optimizer"] == "lm" else 0
                outcome = fitted_on(first, self.data, self.best, left)
                self.budget.count(outcome.evaluations)
                self._offer(outcome)
                self.errors[key] = outcome.error if math.isfinite(outcome.error) else math.inf
        errors = np.array([self.errors[key] for key in keys])
        if len(self.errors) > MAX_KNOWN:
            self.errors = dict(list(self.errors.items())[MAX_KNOWN // 2 :])
        return Scored(errors, keys, np.array([key in new for key in keys], bool))

    def rank(self, outcome: Fit) -> tuple[float, int]:
        """Return the order of fits: by error, and by length where the task is solved."""
        return max(outcome.error, self.target), len(outcome.tree)

    def _fit(self) -> Callable[[MaskedTree], Fit]:
        """Return what fits one formula; it can be sent to another process."""
        limit = None if self.how["optimizer"] == "lm" else self.budget.seconds_left()
        return partial(fit, trials=self.data, time_limit=limit, **self.how)

    def _offer(self, outcome: Fit) -> None:
        worst = self.rank(self.leaders[-1]) if len(self.leaders) == LEADERS else (math.inf, 0)
        if math.isfinite(outcome.error) and self.rank(outcome) < worst:
            self.leaders = sorted([*self.leaders, outcome], key=self.rank)[:LEADERS]

    # --- checkpoints ---

    def state(self) -> dict[str, Any]:
        """Return data, errors and leaders in JSON values."""
        return {
            "data": data_state(self.data),
            "errors": list(self.errors.items()),
            "leaders": [fit_state(outcome) for outcome in self.leaders],
        }

    def restore(self, state: ScorerState) -> None:
        """Take over errors and leaders that :meth:`state` returned."""
        self.errors = dict(state["errors"])
        self.leaders = [outcome for outcome in map(fit_from, state["leaders"]) if outcome is not None]
