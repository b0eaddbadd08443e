"""An external program of 50 ms a call: wall time with 1 and 8 workers, and a run that is killed five times.

``python benchmarks/external.py`` prints what benchmarks/simulators.md says.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Answers after so many seconds, and writes down that it has.
SIMULATOR = """
import os, random, sys, time
values = [float(text) for text in sys.argv[2:]]
time.sleep(float(os.environ["SIM_SECONDS"]))
with open(sys.argv[1], "a") as audit:
    audit.write(os.environ["SIM_RUN"] + " " + " ".join(sys.argv[2:]) + "\\n")
if len(values) == 3:
    n, T, V = values
    print(8.314 * n * T / (V - 0.043 * n) - 3.6 * n**2 / V**2)
else:
    a, b = values
    print(1.73 * a + 0.61 * a * b + random.gauss(0, 0.02))
"""
#: A law that takes some dozens of points, and one with noise, which takes hundreds.
FEW = ("n=0.5:2", "T=250:400", "V=0.5:5")
NOISY = ("a=1:3", "b=1:3")


def command(folder: Path, workers: int, points: int, domains: tuple[str, ...], *more: str) -> list[str]:
    (folder / "sim.py").write_text(SIMULATOR, encoding="utf-8")
    places = " ".join(f"{{{domain.partition('=')[0]}}}" for domain in domains)
    program = f"{sys.executable} -S {folder / 'sim.py'} {folder / 'audit.txt'} {places}"
    told = [part for domain in domains for part in ("--domain", domain)]
    vsr = [sys.executable, "-m", "deap_vsr", "discover", "--command", program, *told, "--json"]
    return [*vsr, "--workers", str(workers), "--max-queries", str(points), *more]


def environment(run: int, seconds: float) -> dict[str, str]:
    return {**os.environ, "SIM_SECONDS": str(seconds), "SIM_RUN": str(run)}


def points_of(log: Path) -> set[tuple[float, ...]]:
    """Return the points that a log has an answer for; a last line that is torn is none."""
    whole, _, _ = log.read_text(encoding="utf-8").rpartition("\n") if log.exists() else ("", "", "")
    return {tuple(map(float, row[:3])) for row in list(csv.reader(whole.splitlines()))[1:]}


def timed(
    workers: int, domains: tuple[str, ...] = FEW, seconds: float = 0.05, points: int = 600
) -> tuple[float, dict[str, object]]:
    """Return the wall time of a whole run, and its result."""
    with tempfile.TemporaryDirectory() as name:
        begun = time.perf_counter()
        run = subprocess.run(
            command(Path(name), workers, points, domains), env=environment(0, seconds), capture_output=True, check=True
        )
        return time.perf_counter() - begun, json.loads(run.stdout)


def killed(kills: int = 5, workers: int = 8, seconds: float = 0.05, points: int = 2000) -> dict[str, object]:
    """Kill a run some times, each when a few points more are in the log; go on to the end; say what was asked twice."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "points.csv"
        line = command(folder, workers, points, FEW, "--log", str(log))
        known: list[set[tuple[float, ...]]] = []
        for run in range(kills):
            before = len(points_of(log))
            process = subprocess.Popen(line, env=environment(run, seconds), stdout=subprocess.DEVNULL)
            while len(points_of(log)) < before + 4 and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            known.append(points_of(log))
        last = subprocess.run(line, env=environment(kills, seconds), capture_output=True, check=True)
        result = json.loads(last.stdout)
        time.sleep(2 * seconds)  # until what ran when the last kill came has ended
        asked = [row.split() for row in (folder / "audit.txt").read_text(encoding="utf-8").splitlines()]
        again = [row for row in asked if any(tuple(map(float, row[1:])) in known[run] for run in range(int(row[0])))]
        return {
            "formula": result["formula"],
            "kills": kills,
            "in_log_at_each_kill": [len(points) for points in known],
            "answers": len(asked),
            "asked_again_though_in_log": len(again),
            "points_read": result["points_read"],
            "oracle_queries": result["oracle_queries"],
        }


if __name__ == "__main__":
    for domains in (FEW, NOISY):
        for workers in (1, 8):
            wall, result = timed(workers, domains)
            told = {key: result[key] for key in ("formula", "status", "oracle_queries", "seconds")}
            print(f"{workers} worker(s): {wall:.1f} s of wall time with the start of Python, {told}", flush=True)
    print(killed())
