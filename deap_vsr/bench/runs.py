"""Many runs, some at a time: a finished one is kept as a line of a file, and is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deap_vsr.errors import VsrError
from deap_vsr.files import write_atomically
from deap_vsr.problems.equation import Equation
from deap_vsr.result import Result
from deap_vsr.terminal import make_folder

Json = dict[str, Any]
J = TypeVar("J", bound="Job")


@dataclass(frozen=True)
class Job:
    """One run: its fields are everything that has to be the same for it to be repeated, and are in the run as well."""

    @classmethod
    def of(cls: type[J], run: Json) -> J:
        """Return the job that a finished run is of."""
        return cls(**{field.name: run[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Progress:
    """A run that has just been finished, and how many have been of how many."""

    run: Json
    done: int
    total: int


def all_runs(
    kind: type[J],
    jobs: Mapping[J, Equation],
    do: Callable[[J, Equation], Json],
    *,
    n_jobs: int = 1,
    keep: Path | None = None,
    tell: Callable[[Progress], None] = lambda news: None,
) -> list[Json]:
    """Do all jobs but those whose run is kept; returns the runs in the order of the jobs.

    Parameters
    ----------
    jobs : the law of each
    do : does one run; a module's function, as it may be called in another process
    n_jobs : how many processes
    keep : file of finished runs, named as its command is: ``DIR/truth.jsonl``; its folder is made

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, also where a search has taken it for its own end; such a run is not kept.
    """
    kept = {} if keep is None else _kept(keep, kind)
    runs = {job: run for job, run in kept.items() if job in jobs}
    missing = [(job, law) for job, law in jobs.items() if job not in runs]
    for run in _finished(missing, do, n_jobs):
        if run["stopped_by"] == "interrupted":
            raise KeyboardInterrupt
        runs[kind.of(run)] = run
        if keep is not None:
            _keep(keep, run)
        tell(Progress(run, len(runs), len(jobs)))
    return [runs[job] for job in jobs]


def _finished(work: Sequence[tuple[J, Equation]], do: Callable[[J, Equation], Json], n_jobs: int) -> Iterator[Json]:
    """Do jobs, so many at a time; yields runs as they are finished."""
    from joblib import Parallel, delayed

    if n_jobs == 1:
        yield from (do(job, law) for job, law in work)
        return
    pool = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    yield from pool(delayed(do)(job, law) for job, law in work)


# --- what every run tells -----------------------------------------------------------------


def answer_of(result: Result) -> Json:
    """Return the answer of a run that did not fail, and what it cost."""
    return {
        "points": result.oracle_queries,
        "seconds": result.seconds,
        "expression": result.expression,
        "stopped_by": result.stopped_by,
        "error": None,
    }


def failure_of(error: Exception) -> Json:
    """Return the same for a run that raised: a failure is a run as well."""
    nothing = {"points": None, "seconds": None, "expression": "", "stopped_by": "failed"}
    return nothing | {"error": f"{type(error).__name__}: {error}"[:300]}


def median_of(runs: Sequence[Json], key: str) -> float | None:
    """Return the median over the runs that did not fail; None if there are none."""
    values = [run[key] for run in runs if run["error"] is None]
    return float(np.median(values)) if values else None


# --- what is kept -------------------------------------------------------------------------


def _kept(path: Path, kind: type[J]) -> dict[J, Json]:
    """Return the finished runs of a file, whose folder is made if it is not there; a line cut short is cut off."""
    make_folder(path.parent)
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        if torn:
            write_atomically(path, whole + "\n" if whole else "")
        runs = [json.loads(line) for line in whole.splitlines()]
        return {kind.of(run): run for run in runs}
    except OSError as error:
        raise VsrError(f"{path}: cannot be used: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise VsrError(f"{path}: these are no runs of `vsr bench {path.stem}`; give another --out") from None


def _keep(path: Path, run: Json) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run, ensure_ascii=False) + "\n")
    except OSError as error:
        raise VsrError(f"{path}: cannot write: {error.strerror}") from None
