"""Promises that take minutes to try: kills, interrupts, determinism, memory. One line for each, with what was seen.

``python benchmarks/dependable.py kills --count 50``; `interrupts`, `determinism`, `memory` likewise. The exit code is 1
where a promise was not kept.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(help=(__doc__ or "").partition("\n")[0], pretty_exceptions_enable=False)
PROBLEM = "trigonometric/inv/3-2-2/prog_1"
METHODS = ("vsr", "vsr-gp", "vsr-mcts", "gp", "mcts")
#: What two runs of the same seed may differ in.
VOLATILE = ("seconds", "peak_memory_mb", "points_read", "batches")


def command(method: str, *more: str, evaluations: int = 40_000) -> list[str]:
    limits = ["--max-evaluations", str(evaluations), "--max-queries", "6000"]
    return [sys.executable, "-m", "deap_vsr", "discover", PROBLEM, "--method", method, *limits, "--json", *more]


def outcome(text: str) -> dict[str, Any]:
    """Return the result that a command printed, without what may differ."""
    found = json.loads(text)
    found["oracle_queries"] += found["points_read"]  # what a log holds is not asked again
    for record in found["rounds"]:
        record.pop("seconds")
    return {key: value for key, value in found.items() if key not in VOLATILE}


def kept(method: str, folder: Path) -> list[str]:
    """Return options with which a run that was killed goes on."""
    return (
        ["--log", str(folder / "log.csv")]
        if method == "vsr"
        else ["--checkpoint", str(folder / "run.json"), "--resume"]
    )


@app.command()
def kills(count: int = 50, seed: int = 0) -> None:
    """Kill runs of every method at random moments (kill -9): they come to what an uninterrupted run comes to."""
    rng, wrong, killed, tried = random.Random(seed), 0, 0, 0
    whole = {}
    for method in METHODS:
        begun = time.perf_counter()
        whole[method] = outcome(subprocess.run(command(method), capture_output=True, text=True, check=True).stdout)
        whole[method]["took"] = time.perf_counter() - begun
    while killed < count:
        method, tried = METHODS[tried % len(METHODS)], tried + 1
        with tempfile.TemporaryDirectory() as name:
            given = command(method, *kept(method, Path(name)))
            for _ in range(rng.randint(1, 3)):
                process = subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(rng.uniform(0.1, 0.9) * whole[method]["took"])
                killed += process.poll() is None
                process.kill()
                process.wait()
            done = subprocess.run(given, capture_output=True, text=True, check=False)
            expected = {key: value for key, value in whole[method].items() if key != "took"}
            if done.returncode or outcome(done.stdout) != expected:
                wrong += 1
                print(f"{method}: another result after a kill: {done.stderr[-300:]}", flush=True)
    print(f"{killed} kills, {wrong} runs with another result")
    raise typer.Exit(bool(wrong))


@app.command()
def interrupts(count: int = 100, seed: int = 0) -> None:
    """Send SIGINT or SIGTERM at random moments; the exit code, the result, and that nothing is left are looked at."""
    rng, wrong, early, without, ended = random.Random(seed), 0, 0, 0, 0
    for number in range(count):
        method = METHODS[number % len(METHODS)]
        kind, code = rng.choice(((signal.SIGINT, 130), (signal.SIGTERM, 143)))
        given = [sys.executable, "-m", "deap_vsr", "discover", "trigonometric/inv/6-6-10/prog_0", "--method", method]
        pipe = subprocess.PIPE
        process = subprocess.Popen([*given, "--time-limit", "30", "--json"], stdout=pipe, stderr=pipe, text=True)
        time.sleep(rng.uniform(0.5, 12.0))
        process.send_signal(kind)
        out, said = process.communicate()
        if not out:
            early += 1  # before the search began
        elif json.loads(out)["expression"] == "":
            without += 1
        if out and process.returncode == 0:
            ended += 1  # it was done before
        elif process.returncode != code and out:
            wrong += 1
            print(f"{method}: exit code {process.returncode} instead of {code}: {said[-200:]}", flush=True)
        if not out and "Traceback" in said:
            print(f"{method}: a traceback while modules were loaded", flush=True)
    told = f"{early} before the search, {without} before a formula, {ended} done before"
    print(f"{count} signals: {wrong} wrong, {told}")
    raise typer.Exit(bool(wrong))


@app.command()
def determinism(count: int = 20) -> None:
    """Run every method with different PYTHONHASHSEED, and numbers of threads: one result each."""
    wrong = 0
    for method in METHODS:
        found = set()
        for number in range(count):
            threads = ("1", "4")[number % 2]
            names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
            environment = os.environ | dict.fromkeys(names, threads) | {"PYTHONHASHSEED": str(number + 1)}
            given = command(method, evaluations=15_000)
            done = subprocess.run(given, capture_output=True, text=True, check=True, env=environment)
            found.add(json.dumps(outcome(done.stdout), sort_keys=True))
        wrong += len(found) != 1
        print(f"{method}: {count} processes, {len(found)} different results", flush=True)
    raise typer.Exit(bool(wrong))


@app.command()
def memory(count: int = 500) -> None:
    """Call discover again and again in one process; growth after the first tenth, files and threads that are left."""
    import threading

    from deap_vsr import discover
    from deap_vsr.memory import held_memory

    held, files = 0.0, 0
    for number in range(count):
        discover(PROBLEM, METHODS[number % len(METHODS)], seed=number, max_evaluations=2_000, max_queries=1_000)
        if number == max(count // 10, len(METHODS)):
            held, files = held_memory(), len(os.listdir("/proc/self/fd"))
        if number % 50 == 0:
            print(f"{number}: {held_memory():.1f} MB", flush=True)
    growth = held_memory() / held - 1.0
    more = len(os.listdir("/proc/self/fd")) - files
    print(f"{count} calls: growth {growth:+.1%}, {more} files more, {threading.active_count()} threads")
    raise typer.Exit(growth > 0.05 or more > 0)


if __name__ == "__main__":
    app()
