"""A comparison from its plan to its rows: what is missing is run, and every finished run is stored at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deap_vsr.compare.parallel import run_locally, run_on_cluster
from deap_vsr.compare.plan import Plan
from deap_vsr.compare.run import Row, order
from deap_vsr.compare.store import Store


@dataclass(frozen=True)
class News:
    """What a comparison tells when a run is finished."""

    row: Row
    done: int
    failed: int
    total: int
    seconds_left: float


def compare(
    plan: Plan,
    folder: Path,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    n_jobs: int = 1,
    cluster: str | None = None,
    hang_after: float | None = None,
    tell: Callable[[News], None] = lambda news: None,
) -> list[Row]:
    """Run what is missing of a plan and return all its rows, in the plan's order.

    Parameters
    ----------
    folder : where the store is
    resume : whether the folder may hold runs of this plan already
    retry_failed : whether those of them that failed are run again
    n_jobs : runs at a time on this machine
    cluster : address of a Dask scheduler, instead
    hang_after : seconds after which a run is killed and counted as failed; by default well behind its limit
    """
    with Store(folder, plan.settings, resume, retry_failed) as store:
        missing = [order(job, plan.problems[job.problem], hang_after) for job in plan.jobs if job.key not in store.rows]
        failed = sum(row["status"] == "failed" for row in store.rows.values())
        begun = time.perf_counter()
        rows = run_locally(missing, n_jobs) if cluster is None else run_on_cluster(missing, cluster)
        finished = 0
        for row in rows:
            if not store.append(row):
                continue
            finished += 1
            failed += row["status"] == "failed"
            left = (time.perf_counter() - begun) / finished * (len(missing) - finished)
            tell(News(row, len(store.rows), failed, len(plan.jobs), left))
        return [store.rows[job.key] for job in plan.jobs]
