"""One run in a fresh process, so that its peak memory is its own and nothing it does can harm the comparison.

``python -m deap_vsr.compare.run`` reads an order from its input and prints a row: JSON both.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from deap_vsr.compare.job import COLUMNS, METRICS, Job, Problem, parts_of
from deap_vsr.errors import VsrError, short

Row = dict[str, Any]

#: Seconds until a run that is bounded by counts only is taken for hanging.
HANG_AFTER = 6 * 3600.0
#: Columns in which two runs of one job may differ; `trace` and `result` hold seconds as well.
VOLATILE = ("seconds", "peak_memory_mb", "machine", "versions", "trace", "result")
_PACKAGES = ("deap", "numba", "numpy", "scipy", "sympy")
#: One core for each run, however many run at a time.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "JULIA_NUM_THREADS")
#: Points of a convergence curve that are kept, at most.
_MAX_TRACE = 200


def order(job: Job, problem: Problem, hang_after: float | None = None) -> Row:
    """Return everything that is needed to do a job, in JSON values; with `hang_after` seconds it is killed."""
    if hang_after is None:
        hang_after = HANG_AFTER if job.time_limit is None else 2 * job.time_limit + 300
    return {"job": asdict(job), "problem": asdict(problem), "hang_after": hang_after}


def run_apart(given: Row, owner: int | None = None) -> Row:
    """Do the job of an order in a process of its own, and return its row; a failure is a row as well.

    The process ends if this one does, or that with the id `owner`; so does this one, which is of its pool.
    """
    if owner is not None and owner != os.getpid():
        _end_with_owner(owner)
    command = [sys.executable, "-m", "deap_vsr.compare.run", str(os.getpid()), str(owner or os.getpid())]
    pipe = subprocess.PIPE
    environment = dict(os.environ) | dict.fromkeys(_THREADS, "1")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        try:
            out, said = process.communicate(json.dumps(given).encode(), timeout=given["hang_after"])
        except subprocess.TimeoutExpired:
            return failure(given, f"did not end within {given['hang_after']:g} s and was killed")
        finally:
            process.kill()
    try:
        row: Row = json.loads(out)
        return row
    except ValueError:
        last = said.decode(errors="replace").strip().splitlines()[-1:] or [""]
        code = process.returncode
        how = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"ended with code {code}"
        return failure(given, f"the process {how}: {short(last[0], 200)}")


def do(given: Row) -> Row:
    """Do the job of an order in this process, and return its row."""
    from deap_vsr.memory import forget_peak
    from deap_vsr.problems.equation import parse_equation

    job, problem = Job(**given["job"]), Problem(**given["problem"])
    trace = Trace()
    try:
        equation = parse_equation(problem.text, job.problem, default_name=job.problem)
        _warm_up(job)
        forget_peak()
        outcome = _discover(equation, job, trace)
        result = outcome.to_json()
        right = has_right_form(outcome, equation) if job.noise else None
        false = is_false(outcome, right)
    except Exception as error:
        kind = "" if isinstance(error, VsrError) else f"{type(error).__name__}: "
        return failure(given, short(f"{kind}{error}", 300))
    metrics = result["metrics"] or dict.fromkeys(METRICS)
    return _row(given) | {
        "status": "done",
        "recovered": bool(result["recovered"]),
        "standing": result["status"],
        "right_form": right,
        "false_found": false,
        **{name: metrics[name] for name in METRICS},
        **{name: result[name] for name in ("stopped_by", "expression", "seconds", "evaluations", "oracle_queries")},
        "peak_memory_mb": result["peak_memory_mb"],
        "trace": trace.points,
        "result": result,
    }


def is_false(result: Any, right: bool | None) -> bool:
    """Whether a result calls found what is not the law; in noise (`right` is known) what has not its form."""
    return result.status == "found" and not (right or result.verdict.recovered)


def has_right_form(result: Any, equation: Any) -> bool:
    """Whether an answer is the law but for the values of its numbers, which cannot be exact in noise."""
    from deap_vsr.judge.form import right_form

    if result.tree is None:
        return False
    return bool(result.verdict.recovered or result.verdict.same_form or right_form(result.tree, equation))


class Trace:
    """The convergence curve of a run: follows its progress, and keeps when the best error fell."""

    def __init__(self) -> None:
        self.points: list[dict[str, float]] = []

    def __call__(self, news: Any) -> None:
        """Take over what a search tells of itself."""
        error = float(news.best)
        last = self.points[-1] if self.points else None
        if not error < float("inf") or (last is not None and news.round == last["round"] and error >= last["error"]):
            return
        spent = news.budget.spent
        self.points.append({"round": news.round, "error": error, **spent})
        if len(self.points) > _MAX_TRACE:
            del self.points[1:-1:2]


def _discover(equation: Any, job: Job, trace: Trace) -> Any:
    from deap_vsr.lab.oracle import Noise
    from deap_vsr.methods import discover

    limits = {name: getattr(job, name) for name in ("time_limit", "max_evaluations", "max_queries")}
    method, expansion, grammar = parts_of(job.method)
    return discover(
        equation,
        method,
        expansion=expansion,
        grammar=grammar,
        seed=job.seed,
        noise=Noise(job.noise, relative=job.noise_of) if job.noise_of else job.noise,
        preset=job.preset,
        optimizer=job.optimizer,
        progress=trace,
        **limits,
    )


def _warm_up(job: Job) -> None:
    """Run the method for a moment on a small law: what is loaded then is no memory of the learning phase."""
    from dataclasses import replace

    from deap_vsr.problems.equation import load_equation

    small = replace(job, seed=0, noise=0.0, time_limit=None, max_evaluations=100, max_queries=None, optimizer=None)
    _discover(load_equation("feynman-unit/I.39.22"), small, Trace())


def _row(given: Row) -> Row:
    """Return what is known of a run before it is done; the columns are the same for every row."""
    problem = Problem(**given["problem"])
    known = {"set": problem.set, "group": problem.group, "n_vars": problem.n_vars, "digest": problem.digest}
    row: Row = dict.fromkeys(COLUMNS) | given["job"] | known | {"status": "failed", "trace": []}
    return row | {"versions": _versions(row["method"]), "machine": _machine()}


def failure(given: Row, error: str) -> Row:
    """Return the row of a run that failed."""
    right = False if given["job"]["noise"] else None
    return _row(given) | {"error": error, "recovered": False, "false_found": False, "right_form": right}


def _versions(method: str) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("deap-vsr", *_PACKAGES, parts_of(method)[0]):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def _machine() -> dict[str, Any]:
    """Return what the machine is; not what it is called, as reports are mailed."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    model, flags = (re.search(rf"{name}\s*: (.+)", told) for name in ("model name", "flags"))
    return {
        "processor": model[1] if model else platform.processor(),
        "instructions": hashlib.sha256(flags[1].encode()).hexdigest()[:8] if flags else "",
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@cache
def _end_with_owner(owner: int) -> None:
    """Let this process end when that with the id `owner` is gone, be it killed."""
    threading.Thread(target=_end_with, args=(os.getppid(), owner), daemon=True).start()


def _end_with(parent: int, owner: int) -> None:
    """Wait until a process that this one works for is gone, and end."""
    while os.getppid() == parent and _is_alive(owner):
        time.sleep(0.5)
    os._exit(1)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main(parent: int, owner: int) -> None:
    """Read an order, do it, print the row."""
    for stop in (signal.SIGINT, signal.SIGTERM):  # these are for who asked for the run, with whom it ends
        signal.signal(stop, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent, owner), daemon=True).start()
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a package prints is no part of the answer
    row = do(json.load(sys.stdin))
    with answer:
        json.dump(row, answer, allow_nan=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
