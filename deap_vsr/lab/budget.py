"""Limits on seconds, evaluations, oracle queries and memory, and what is spent of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from deap_vsr.errors import VsrError
from deap_vsr.memory import held_memory

#: Seconds between two looks at the memory: a look takes some ten microseconds.
LOOK_EVERY = 0.02
#: What is limited.
NAMES = ("seconds", "evaluations", "queries")


class Budget:
    """Limits, whichever comes first, and what is spent.

    A part of a budget (:meth:`part`) has limits of its own; what it spends counts for the whole.
    """

    def __init__(
        self,
        seconds: float | None = None,
        evaluations: int | None = None,
        queries: int | None = None,
        whole: Budget | None = None,
        tick: Callable[[], None] = lambda: None,
        memory: float | None = None,
    ) -> None:
        if not isinstance(seconds, int | float | None):
            raise VsrError(f"a budget is given seconds, evaluations and queries, not a {type(seconds).__name__}")
        self.whole = whole
        self.strict = True
        self.kept = 0
        """Points that are kept for the end of a run."""
        self.tick = tick
        self.memory = memory
        """MB that the process may hold; of the whole only."""
        self._looked = 0.0
        self._too_large = False
        self.started = time.perf_counter()
        self.evaluations = 0
        self.queries = 0
        self.batches = 0
        self.limits: dict[str, float | None] = {"seconds": seconds, "evaluations": evaluations, "queries": queries}

    @property
    def run(self) -> Budget:
        """The budget of the whole run, which others are parts of."""
        return self if self.whole is None else self.whole.run

    def restart(self) -> None:
        """Start the clock anew."""
        self.started = time.perf_counter()

    @property
    def spent(self) -> dict[str, float]:
        """What has been spent of each, and in how many batches points were asked."""
        seconds = time.perf_counter() - self.started
        counts = {"evaluations": self.evaluations, "queries": self.queries, "batches": self.batches}
        return {"seconds": seconds, **counts}

    def count(self, evaluations: int) -> None:
        """Count evaluations, here and in the whole; whoever wants to show progress is told."""
        self.evaluations += evaluations
        self.tick()
        if self.whole is not None:
            self.whole.count(evaluations)

    def count_queries(self, queries: int) -> None:
        """Count points, here and in the whole."""
        self.queries += queries
        if self.whole is not None:
            self.whole.count_queries(queries)

    def count_batch(self) -> None:
        """Count a batch of points, here and in the whole."""
        self.batches += 1
        if self.whole is not None:
            self.whole.count_batch()

    def left(self, name: str) -> float:
        """Return what is left of `name`, here and in the whole; inf without a limit."""
        limit = self.limits[name] if self.strict or name != "queries" else None
        kept = self.kept if name == "queries" else 0
        here = math.inf if limit is None else limit - kept - self.spent[name]
        return here if self.whole is None else min(here, self.whole.left(name))

    def evaluations_left(self) -> float:
        """Return how many evaluations are left of the run's own limit, which is kept; inf without one.

        A part may go on to the end of what it has begun.
        """
        return self.left("evaluations") if self.whole is None else self.whole.evaluations_left()

    def used_up(self, asking: bool = True) -> str | None:
        """Return which limit is reached, or None; a limit of the whole is one of its parts.

        For what asks nothing, not `asking`, a limit on points is none.
        """
        spent = self.spent
        for name, limit in self.limits.items():
            if limit is None or (name == "queries" and not asking):
                continue
            if spent[name] >= limit - (self.kept if name == "queries" else 0):
                return name
        if self.whole is not None:
            return self.whole.used_up(asking)
        return "memory" if self.memory is not None and self._is_too_large(self.memory) else None

    def _is_too_large(self, most: float) -> bool:
        """Whether the process holds too much; looked at now and then, and once it does, for good."""
        now = time.perf_counter()
        if now - self._looked >= LOOK_EVERY and not self._too_large:
            self._looked, self._too_large = now, held_memory() > most
        return self._too_large

    def seconds_left(self) -> float | None:
        """Return how many seconds are left, at least a little; None without a limit."""
        left = self.left("seconds")
        return None if left == math.inf else max(left, 0.01)

    def queries_left(self) -> float:
        """Return how many points may still be asked; inf without a limit."""
        return self.left("queries")

    def resume(self, spent: dict[str, float]) -> None:
        """Go on as if `spent` had been spent."""
        self.started = time.perf_counter() - spent["seconds"]
        self.evaluations, self.queries = int(spent["evaluations"]), int(spent["queries"])
        self.batches = int(spent.get("batches", 0))

    def part(self, share: float = 1.0, names: Sequence[str] = NAMES, **at_most: float | None) -> Budget:
        """Return a budget of `share` of what is left of `names`, and of no more than `at_most` of each.

        For the others the limits of the whole hold.
        """
        limits: dict[str, float | None] = {}
        for name in NAMES:
            most = at_most.get(name)
            shares = [share * self.left(name) if name in names else math.inf, math.inf if most is None else most]
            limits[name] = None if min(shares) == math.inf else max(min(shares), 0.0)
        seconds, evaluations, queries = (limits[name] for name in NAMES)
        return Budget(seconds, _whole(evaluations), _whole(queries), whole=self)

    def keep(self, points: int) -> int:
        """Keep points for the end of the run, in the whole; returns how many were kept until now."""
        if self.whole is not None:
            return self.whole.keep(points)
        before, self.kept = self.kept, points
        return before

    def lenient(self) -> Budget:
        """Let the last batch of points be asked whole, within what the whole has left; the part is used up then."""
        self.strict = False
        return self


def _whole(share: float | None) -> int | None:
    """Return a share as a whole number: of what is left something, however small the share."""
    return None if share is None else int(share) or int(share > 0)
