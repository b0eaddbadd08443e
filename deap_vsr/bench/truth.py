"""How often "found" is true: fresh laws behind flawed oracles, what vsr calls found, and what of that is false."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from deap_vsr.bench.flaws import ROWS, Case
from deap_vsr.bench.runs import Job, Json, Progress, all_runs, answer_of, failure_of, median_of
from deap_vsr.errors import VsrError
from deap_vsr.judge.form import right_form
from deap_vsr.methods import discover
from deap_vsr.problems.equation import Equation
from deap_vsr.problems.laws import laws_suite
from deap_vsr.result import Result

#: The file of finished runs, a JSON object a line.
RUNS = "truth.jsonl"


@dataclass(frozen=True)
class TruthJob(Job):
    """One run: a row of the table, a law and a seed."""

    row: str
    law: str
    laws_seed: int
    seed: int
    time_limit: float


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
    jobs = {
        TruthJob(row, name, laws_seed, seed, float(time_limit)): law
        for row in rows
        for seed in range(n_seeds)
        for name, law in laws.items()
    }
    keep = None if out is None else out / RUNS
    return all_runs(TruthJob, jobs, run_one, n_jobs=n_jobs, keep=keep, tell=tell)


def rows_of(text: str) -> tuple[str, ...]:
    """Return the names of rows that a text such as ``exact; noise*`` asks for, in the order of the table."""
    patterns = [pattern.strip() for pattern in text.split(";") if pattern.strip()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in ROWS):
            raise VsrError(f"no row {pattern!r}; rows are {'; '.join(ROWS)}")
    return tuple(name for name in ROWS if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns))


# --- one run ------------------------------------------------------------------------------


def run_one(job: TruthJob, law: Equation) -> Json:
    """Do one run; a failure is a run as well."""
    row = ROWS[job.row]
    known = asdict(job) | {"family": law.group, "n_vars": law.n_vars, "formula": law.formula}
    case = row.make(law, job.seed)
    try:
        result = discover(case.oracle, "vsr", seed=job.seed, time_limit=job.time_limit, max_queries=row.max_queries)
    except Exception as error:
        return known | {"found": False, "false": False, "right": False} | failure_of(error)
    return known | judged(result, case)


def judged(result: Result, case: Case) -> Json:
    """Return what a run called found, whether that is false, whether its form is right, and what it cost."""
    right = case.law is not None and result.tree is not None and right_form(result.tree, case.law)
    found = called_found(result)
    # The largest share of the domain in which a result says that it may still be wrong; without one it says none.
    unsure = getattr(result, "share", None) or 0.0
    return answer_of(result) | {
        "found": found,
        "false": found and (not right or case.wrong_share > unsure),
        "right": right,
        "reason": getattr(result, "reason", None),
        "status": getattr(result, "status", None),
        "share": getattr(result, "share", None),
    }


def called_found(result: Result) -> bool:
    """Whether a result says that its formula is the law, and not only that it fits."""
    status = getattr(result, "status", None)
    return status == "found" if status is not None else result.stopped_by in ("found", "done")


# --- the table ----------------------------------------------------------------------------


def counted(runs: Sequence[Json]) -> list[Json]:
    """Return one line for each row: counts, and medians of points and seconds over the runs that did not fail."""
    lines = []
    for row in dict.fromkeys(run["row"] for run in runs):
        mine = [run for run in runs if run["row"] == row]
        line: Json = {"row": row, "runs": len(mine), "failed": sum(run["error"] is not None for run in mine)}
        line |= {key: sum(run[key] for run in mine) for key in ("found", "false", "right")}
        line["right_and_found"] = sum(run["right"] and run["found"] for run in mine)
        line |= {key: median_of(mine, key) for key in ("points", "seconds")}
        lines.append(line)
    return lines
