"""The contract between the orchestrator and a regressor: a task with its budget, and the candidates that come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deap_vsr.engine.fitting import Fit
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array


class Budget:
    """Limits on seconds, evaluations and oracle queries, whichever comes first, and what is spent.

    A part of a budget (:meth:`part`) has limits of its own; what it spends counts for the whole.
    """

    def __init__(
        self,
        oracle: Oracle,
        seconds: float | None = None,
        evaluations: int | None = None,
        queries: int | None = None,
        whole: Budget | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.oracle = oracle
        self.whole = whole
        self.tick = tick
        self.started = time.perf_counter()
        self.evaluations = 0
        self._first_query = oracle.queries
        self.limits = {"seconds": seconds, "evaluations": evaluations, "queries": queries}

    @property
    def spent(self) -> dict[str, float]:
        """What has been spent of each."""
        return {
            "seconds": time.perf_counter() - self.started,
            "evaluations": self.evaluations,
            "queries": self.oracle.queries - self._first_query,
        }

    def count(self, evaluations: int) -> None:
        """Count evaluations, here and in the whole; whoever wants to show progress is told."""
        self.evaluations += evaluations
        self.tick()
        if self.whole is not None:
            self.whole.count(evaluations)

    def used_up(self) -> str | None:
        """Return which limit is reached (seconds, evaluations, queries), or None."""
        spent = self.spent
        for name, limit in self.limits.items():
            if limit is not None and spent[name] >= limit:
                return name
        return self.whole.used_up() if self.whole is not None else None

    def seconds_left(self) -> float | None:
        """Return how many seconds are left, here and in the whole, at least a little; None without a limit."""
        limit = self.limits["seconds"]
        left = None if limit is None else max(limit - self.spent["seconds"], 0.01)
        above = self.whole.seconds_left() if self.whole is not None else None
        return above if left is None else left if above is None else min(left, above)

    def queries_left(self) -> float:
        """Return how many points may still be asked, here and in the whole; inf without a limit."""
        limit = self.limits["queries"]
        left = np.inf if limit is None else limit - self.spent["queries"]
        return left if self.whole is None else min(left, self.whole.queries_left())

    def resume(self, spent: dict[str, float]) -> None:
        """Go on as if `spent` had been spent; the oracle's count is as it was then."""
        self.started = time.perf_counter() - spent["seconds"]
        self.evaluations = int(spent["evaluations"])
        self._first_query = self.oracle.queries - int(spent["queries"])

    def part(self, share: float, names: Sequence[str] = ("seconds", "evaluations", "queries")) -> Budget:
        """Return a budget of `share` of what is left of `names`; for the others the limits of the whole hold."""

        def left(name: str) -> float | None:
            limit = self.limits[name]
            return None if limit is None or name not in names else share * (limit - self.spent[name])

        evaluations, queries = left("evaluations"), left("queries")
        return Budget(
            self.oracle,
            left("seconds"),
            None if evaluations is None else int(evaluations),
            None if queries is None else int(queries),
            whole=self,
        )


@dataclass(frozen=True)
class Candidate:
    """A tree, and how it fared in the trials of its task: errors (K,), constants (K, L)."""

    tree: MaskedTree
    errors: Array
    constants: Array
    evaluations: int = 0

    @classmethod
    def of(cls, outcome: Fit) -> Candidate:
        """Make one of a fit."""
        return cls(outcome.tree, outcome.errors, outcome.constants, outcome.evaluations)


@dataclass(frozen=True)
class Task:
    """What a regressor is asked: grow candidates on one round's data.

    Attributes
    ----------
    candidates : masked trees to grow; empty in the first round
    draw : callable
        ``draw(rng)`` returns trials; X always has all columns. An experiment draws fresh ones.
    function_set : names of the operators allowed in new material
    columns : variables allowed in new material, from 0
    budget : Budget
    target : float
        Normalised error at which the task is solved.
    rng : numpy Generator
    effort : "cheap", "most" or "all"
        Whether only cheap stages are wanted, or all but what is tried last.
    tell : callable
        ``tell(error, tree, state)``, to be called now and then: the best error and tree so far, and a function that
        returns JSON values from which `regress` can go on. A regressor that never calls it is not seen to progress,
        and starts its round anew when a run is resumed.
    resume : what `state` returned, if the task goes on from there
    """

    candidates: Sequence[MaskedTree]
    draw: Callable[[np.random.Generator], list[Trial]]
    function_set: tuple[str, ...]
    columns: tuple[int, ...]
    n_vars: int
    budget: Budget
    target: float
    rng: np.random.Generator
    effort: str = "all"
    tell: Callable[[float, MaskedTree, Callable[[], dict[str, Any]]], None] = lambda error, tree, state: None
    resume: dict[str, Any] | None = None


class Regressor(Protocol):
    """GP, MCTS, ...: anything that grows candidates."""

    def regress(self, task: Task) -> list[Candidate]:
        """Return candidates, best first, the mask of the task's candidates respected."""
