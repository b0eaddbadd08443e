"""What a run returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import deap_vsr
from deap_vsr.errors import ExpressionError
from deap_vsr.judge.metrics import Verdict, judge
from deap_vsr.lab.lab import Lab
from deap_vsr.problems.equation import Equation
from deap_vsr.search.checkpoint import tree_state
from deap_vsr.search.records import Found, Round
from deap_vsr.search.standing import Standing
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.reading import for_reading


@dataclass(frozen=True, repr=False)
class Result:
    """The formula that was found, how good it is, what it cost, and the path that led to it.

    ``verdict`` is the judge's, where the hidden formula is known. ``standard_errors`` are those of the fitted constants
    of a formula that was found, in prefix order: as measured, also for a constant that was restored to a short number
    afterwards. A coefficient restored to 1 or -1 is no constant of the formula any more, and has none.
    """

    tree: MaskedTree | None
    method: str
    expansion: str | None
    schedule: tuple[tuple[int, ...], ...]
    seed: int
    noise: float
    budget: dict[str, float | None]
    settings: dict[str, Any]
    seconds: float
    evaluations: int
    oracle_queries: int
    peak_memory_mb: float
    stopped_by: str
    """Why the run ended: done (a formula stands), seconds, evaluations, queries, interrupted, exhausted."""
    rounds: list[Round] = field(default_factory=list)
    equation: str = ""
    verdict: Verdict | None = None
    standard_errors: tuple[float, ...] | None = None
    version: str = ""
    points_read: int = 0
    """Points whose answer was read from a log instead of asked; not among the queries."""
    failures: int = 0
    """Points at which the oracle raised an exception; they have no answer."""
    standing: Standing = field(default_factory=lambda: Standing("partial", ""))
    """How the answer stands: what it was attacked with, and what is unsure."""
    error: float | None = None
    """Root mean square of what the formula leaves of all that was measured, relative to the spread of y."""
    outliers: tuple[tuple[tuple[float, ...], float], ...] = ()
    """Answers that were left out, as asking again did not confirm them: the point, and y."""
    batches: int = 0
    """Batches in which the points were asked; its largest size, if there is one, is among the settings."""

    @classmethod
    def of(
        cls,
        found: Found,
        stands: Standing,
        lab: Lab,
        equation: Equation | None,
        *,
        method: str,
        expansion: str | None,
        schedule: tuple[tuple[int, ...], ...],
        seed: int,
        settings: dict[str, Any],
        memory: float,
    ) -> Result:
        """Return the result of a search, judged if the hidden formula is known."""
        seconds = lab.budget.spent["seconds"]
        return cls(
            tree=found.tree,
            method=method,
            expansion=expansion,
            schedule=schedule,
            seed=seed,
            noise=found.noise,
            budget=dict(lab.budget.limits),
            settings=settings if lab.batch is None else {**settings, "batch": lab.batch},
            seconds=seconds,
            evaluations=lab.budget.evaluations,
            oracle_queries=lab.budget.queries - lab.log.n_read,
            peak_memory_mb=memory,
            stopped_by="done" if found.stopped_by == "found" else found.stopped_by,
            rounds=found.rounds,
            equation=equation.name if equation is not None else "",
            verdict=judge(found.tree, equation) if found.tree is not None and equation is not None else None,
            standard_errors=found.standard_errors,
            version=deap_vsr.__version__,
            points_read=lab.log.n_read,
            failures=lab.facts.get("failures", 0),
            standing=stands,
            error=_error(found, lab),
            outliers=tuple((tuple(x.tolist()), float(y)) for x, y in zip(*lab.log.outliers, strict=True)),
            batches=lab.batches,
        )

    @property
    def status(self) -> str:
        """Whether the formula is "found", "fits" or is "partial" (:class:`deap_vsr.search.standing.Standing`)."""
        return self.standing.status

    @property
    def reason(self) -> str:
        """Why it stands as it does, in words."""
        return self.standing.reason

    @property
    def share(self) -> float:
        """The largest share of the domain in which the formula may still be wrong."""
        return self.standing.share

    def __repr__(self) -> str:
        """Return the formula, how it stands, and what it cost."""
        cost = f"{self.oracle_queries} points{self.in_batches}, {self.seconds:.1f} s"
        return f"<Result {self.status}: y = {self.expression or '?'} ({self.reason}; {cost})>"

    @property
    def in_batches(self) -> str:
        """In how many batches points were asked, in words; empty where their size was not limited."""
        size = self.settings.get("batch")
        return "" if size is None else f" in {self.batches} batches of at most {size}"

    @property
    def expression(self) -> str:
        """The formula as text; empty if none was found."""
        return for_reading(self.tree).to_infix() if self.tree is not None else ""

    @property
    def latex(self) -> str:
        """The formula in LaTeX; empty if none was found."""
        return for_reading(self.tree).to_latex() if self.tree is not None else ""

    @property
    def sympy(self) -> str:
        """The formula as sympy prints it; empty if there is none or it is too deep for sympy."""
        try:
            return str(self.tree.to_sympy()) if self.tree is not None else ""
        except ExpressionError:
            return ""

    @property
    def path(self) -> list[Round]:
        """The rounds that led to the answer, without other attempts and earlier passes."""
        places = path_of([r.freed for r in self.rounds], [r.accepted for r in self.rounds])
        return [self.rounds[i] for i in places]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values; numbers that JSON does not have become null."""
        verdict = self.verdict
        plain = {
            "equation": self.equation,
            "method": self.method,
            "expansion": self.expansion,
            "schedule": [[f"x{column + 1}" for column in group] for group in self.schedule],
            "seed": self.seed,
            "noise": self.noise,
            "budget": self.budget,
            "settings": self.settings,
            "version": self.version,
            "expression": self.expression,
            "sympy": self.sympy,
            "latex": self.latex,
            "standard_errors": list(self.standard_errors) if self.standard_errors is not None else None,
            "n_constants": sum(not node.arity and not isinstance(node.value, str) for node in self.tree or []),
            "metrics": verdict.metrics if verdict else None,
            "recovered": verdict.recovered if verdict else None,
            "recovered_by": verdict.recovered_by if verdict else None,
            "same_form": verdict.same_form if verdict else None,
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "oracle_queries": self.oracle_queries,
            "batches": self.batches,
            "points_read": self.points_read,
            "failures": self.failures,
            "status": self.status,
            "reason": self.reason,
            "survived": self.standing.survived,
            "share": self.standing.share,
            "outside": self.standing.outside,
            "found_by": self.standing.search,
            "lead": self.standing.lead,
            "rivals": [{"expression": tree.to_infix(), "behind": behind} for behind, tree in self.standing.rivals],
            "error": self.error,
            "outliers": [{"x": list(x), "y": y} for x, y in self.outliers],
            "peak_memory_mb": self.peak_memory_mb,
            "stopped_by": self.stopped_by,
            "rounds": [_round_json(record) for record in self.rounds],
        }
        cleaned: dict[str, Any] = _finite(plain)
        return cleaned


def _error(found: Found, lab: Lab) -> float | None:
    """Return what a formula leaves of all that was measured, relative to the spread of y."""
    measured = lab.measured()
    if found.tree is None or len(measured.y) < 2:
        return None
    with np.errstate(all="ignore"):
        left = found.tree.evaluate(measured.X, lab.pset) / lab.scale - measured.y
        error = float(np.sqrt(np.mean(left**2)) / (np.std(measured.y) or 1.0))
    return error if math.isfinite(error) else None


def path_of(freed: Sequence[Sequence[Any]], accepted: Sequence[bool]) -> list[int]:
    """Return which rounds led to the last one, in order: each with a part of the variables that the next has free.

    Of several attempts with the same variables it is the last that was accepted, if one was.
    """
    path = [len(freed) - 1] if freed else []
    for i in range(len(freed) - 2, -1, -1):
        if not set(freed[i]) < set(freed[path[0]]):
            continue
        same = [j for j in range(i, -1, -1) if set(freed[j]) == set(freed[i])]
        path.insert(0, next((j for j in same if accepted[j]), i))
    return path


def _round_json(record: Round) -> dict[str, Any]:
    return {
        "freed": [f"x{column + 1}" for column in record.freed],
        "controlled": [f"x{column + 1}" for column in record.controlled],
        "expression": record.tree.to_infix(),
        "nodes": tree_state(record.tree),
        "errors": list(record.errors),
        "constants": [list(row) for row in record.constants],
        "slots": record.slots,
        "accepted": record.accepted,
        "queries": record.queries,
        "seconds": record.seconds,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
