"""How often "found" is true: fresh laws behind flawed oracles, what vsr calls found, and what of that is false."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.bench.flaws import ROWS, Case
from deap_vsr.errors import VsrError
from deap_vsr.files import write_atomically
from deap_vsr.judge.form import right_form
from deap_vsr.methods import discover
from deap_vsr.problems.equation import Equation
from deap_vsr.problems.laws import laws_suite
from deap_vsr.result import Result
from deap_vsr.terminal import make_folder

#: The file of finished runs, a JSON object a line.
RUNS = "truth.jsonl"

Json = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run: everything that has to be the same for it to be repeated."""

    row: str
    law: str
    laws_seed: int
    seed: int
    time_limit: float

    @classmethod
    def of(cls, run: Json) -> Job:
        """Return the job that a finished run is of."""
        return cls(run["row"], run["law"], int(run["laws_seed"]), int(run["seed"]), float(run["time_limit"]))


@dataclass(frozen=True)
class Progress:
    """A run that has just been finished, and how many have been of how many."""

    run: Json
    done: int
    total: int


def bench_truth(
    rows: Sequence[str] = tuple(ROWS),
    n_laws: int = 24,
    n_seeds: int = 1,
    time_limit: float = 60.0,
    *,
    laws_seed: int = 0,
    n_jobs: int = 1,
    out: Path | None = None,
    tell: Callable[[Progress], None] = lambda news: None,
) -> list[Json]:
    """Run every row on every law with every seed; returns the finished runs, in the order of the rows.

    Parameters
    ----------
    rows : names of :data:`deap_vsr.bench.flaws.ROWS`
    laws_seed : of :func:`deap_vsr.problems.laws.laws_suite`
    n_jobs : how many processes
    out : folder in which finished runs are kept; those that it holds are not done again
    """
    laws = {law.name: law for law in laws_suite(n_laws, laws_seed)}
    jobs = [
        Job(row, law, laws_seed, seed, float(time_limit)) for row in rows for seed in range(n_seeds) for law in laws
    ]
    kept = None if out is None else _kept(out)
    runs = {job: run for job, run in (kept or {}).items() if job in set(jobs)}
    missing = [job for job in jobs if job not in runs]
    for run in _finished([(job, laws[job.law]) for job in missing], n_jobs):
        if run["stopped_by"] == "interrupted":
            raise KeyboardInterrupt
        runs[Job.of(run)] = run
        if out is not None:
            _keep(out / RUNS, run)
        tell(Progress(run, len(runs), len(jobs)))
    return [runs[job] for job in jobs]


def rows_of(text: str) -> tuple[str, ...]:
    """Return the names of rows that a text such as ``exact; noise*`` asks for, in the order of the table."""
    patterns = [pattern.strip() for pattern in text.split(";") if pattern.strip()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in ROWS):
            raise VsrError(f"no row {pattern!r}; rows are {'; '.join(ROWS)}")
    return tuple(name for name in ROWS if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns))


# --- one run ------------------------------------------------------------------------------


def run_one(job: Job, law: Equation) -> Json:
    """Do one run; a failure is a run as well."""
    row = ROWS[job.row]
    known = asdict(job) | {"family": law.group, "n_vars": law.n_vars, "formula": law.formula}
    case = row.make(law, job.seed)
    try:
        result = discover(case.oracle, "vsr", seed=job.seed, time_limit=job.time_limit, max_queries=row.max_queries)
    except Exception as error:
        nothing = {"found": False, "false": False, "right": False, "points": None, "seconds": None, "expression": ""}
        return known | nothing | {"stopped_by": "failed", "error": f"{type(error).__name__}: {error}"[:300]}
    return known | judged(result, case)


def judged(result: Result, case: Case) -> Json:
    """Return what a run called found, whether that is false, whether its form is right, and what it cost."""
    right = case.law is not None and result.tree is not None and right_form(result.tree, case.law)
    found = called_found(result)
    # The largest share of the domain in which a result says that it may still be wrong; without one it says none.
    unsure = getattr(result, "share", None) or 0.0
    return {
        "found": found,
        "false": found and (not right or case.wrong_share > unsure),
        "right": right,
        "points": result.oracle_queries,
        "seconds": result.seconds,
        "expression": result.expression,
        "stopped_by": result.stopped_by,
        "reason": getattr(result, "reason", None),
        "status": getattr(result, "status", None),
        "share": getattr(result, "share", None),
        "error": None,
    }


def called_found(result: Result) -> bool:
    """Whether a result says that its formula is the law, and not only that it fits."""
    status = getattr(result, "status", None)
    return status == "found" if status is not None else result.stopped_by in ("found", "done")


def _finished(work: Sequence[tuple[Job, Equation]], n_jobs: int) -> Iterator[Json]:
    """Do jobs, so many at a time; yields runs as they are finished."""
    from joblib import Parallel, delayed

    if n_jobs == 1:
        yield from (run_one(job, law) for job, law in work)
        return
    pool = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    yield from pool(delayed(run_one)(job, law) for job, law in work)


# --- the table ----------------------------------------------------------------------------


def counted(runs: Sequence[Json]) -> list[Json]:
    """Return one line for each row: counts, and medians of points and seconds over the runs that did not fail."""
    lines = []
    for row in dict.fromkeys(run["row"] for run in runs):
        mine = [run for run in runs if run["row"] == row]
        ended = [run for run in mine if run["error"] is None]
        line: Json = {"row": row, "runs": len(mine), "failed": len(mine) - len(ended)}
        line |= {key: sum(run[key] for run in mine) for key in ("found", "false", "right")}
        line["right_and_found"] = sum(run["right"] and run["found"] for run in mine)
        for key in ("points", "seconds"):
            line[key] = float(np.median([run[key] for run in ended])) if ended else None
        lines.append(line)
    return lines


# --- what is kept -------------------------------------------------------------------------


def _kept(folder: Path) -> dict[Job, Json]:
    """Return the finished runs of a folder, which is made if it is not there; a line cut short is cut off."""
    make_folder(folder)
    path = folder / RUNS
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        if torn:
            write_atomically(path, whole + "\n" if whole else "")
        runs = [json.loads(line) for line in whole.splitlines()]
        return {Job.of(run): run for run in runs}
    except OSError as error:
        raise VsrError(f"{path}: cannot be used: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise VsrError(f"{path}: these are no runs of `vsr bench truth`; give another --out") from None


def _keep(path: Path, run: Json) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run, ensure_ascii=False) + "\n")
    except OSError as error:
        raise VsrError(f"{path}: cannot write: {error.strerror}") from None
