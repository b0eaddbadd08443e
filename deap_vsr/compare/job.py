"""One run of a comparison, and the problem it is of. Light to import: processes that wait for runs need no more."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from deap_vsr.errors import VsrError

#: The named grammar of mcts and vsr-mcts, as a part of a variant's name.
GRAMMAR = "coefficients"

METRICS = ("mse", "nmse", "rmse", "nrmse", "inv_nmse", "inv_nrmse", "r2")
#: What every row of a store has: the job, what it is of, what came out, what it cost, and where it was run. `status` is
#: that of the run, done or failed; `standing` that of its answer, found, fits or partial; `right_form` is
#: whether an answer in noise has the law's form.
COLUMNS = (
    "problem", "method", "seed", "noise", "optimizer", "preset", "time_limit", "max_evaluations", "max_queries",
    "set", "group", "n_vars", "digest",
    "status", "error", "recovered", "standing", "false_found", *METRICS, "stopped_by", "expression",
    "seconds", "evaluations", "oracle_queries", "peak_memory_mb",
    "trace", "result", "versions", "machine", "noise_of", "right_form",
)  # fmt: skip
#: Those that rows of earlier versions have not; they are read as None.
NEW_COLUMNS = ("standing", "false_found", "noise_of", "right_form")


@dataclass(frozen=True)
class Problem:
    """An equation file as it is sent to whoever runs it, which may be a machine without that file."""

    name: str
    set: str
    group: str
    n_vars: int
    text: str

    @property
    def digest(self) -> str:
        """What tells this file from another of the same name."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Job:
    """One run: everything that has to be the same for it to be repeated.

    `method` is a variant: a method's name, with its expansion or its named grammar behind a plus where it is not the
    method's own (:func:`parts_of`). An `optimizer` or `preset` of None is the method's own.
    """

    problem: str
    method: str
    seed: int
    noise: float = 0.0
    optimizer: str | None = None
    preset: str | None = None
    time_limit: float | None = None
    max_evaluations: int | None = None
    max_queries: int | None = None
    noise_of: str | None = None
    """What the noise is a share of, :data:`deap_vsr.lab.oracle.RMS`; None: it is a standard deviation."""

    @property
    def key(self) -> str:
        """What tells it from every other job of its comparison."""
        return key_of(asdict(self))

    @property
    def title(self) -> str:
        """The run in a few words."""
        noise = f", noise {self.noise:g}{f' of {self.noise_of}' if self.noise_of else ''}" if self.noise else ""
        optimizer = f", {self.optimizer}" if self.optimizer else ""
        return f"{self.problem} {self.method}{optimizer}, seed {self.seed}{noise}"


def parts_of(variant: str) -> tuple[str, str | None, str | None]:
    """Return method, expansion and grammar of a variant such as ``vsr-mcts+slotwise+coefficients``."""
    method, *more = variant.split("+")
    grammar = GRAMMAR if GRAMMAR in more else None
    expansions = [part for part in more if part != GRAMMAR]
    if len(expansions) > 1 or more.count(GRAMMAR) > 1:
        raise VsrError(f"{variant}: expected a method, and behind it at most one expansion and one grammar")
    return method, expansions[0] if expansions else None, grammar


def key_of(row: dict[str, Any]) -> str:
    """Return the key of the job that a row is of."""
    noise = f"{float(row['noise'])!r}{row['noise_of'] or ''}"
    return f"{row['problem']}|{row['method']}|{row['optimizer'] or ''}|{noise}|{row['seed']}"
