"""NewtonBench by number of points: every law of the user's own copy, asked in rounds, with limits on points.

``python benchmarks/newtonbench.py FOLDER --limits 20,50,100,200 [--noise 0.01]``; see docs/adapters.md. No figure of
the real benchmark has been taken with it yet: it was tried on a stand-in of our own.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import numpy as np

from deap_vsr import discover
from deap_vsr.adapters import entry_of
from deap_vsr.adapters.entry import inside


def problems(folder: Path) -> list[str]:
    """Return every problem, ``module/difficulty/law``, of a copy."""
    found = []
    for core in sorted(folder.glob("modules/m*/core.py")):
        with inside(folder):
            laws = import_module(f"modules.{core.parent.name}.laws")
        for difficulty in ("easy", "medium", "hard"):
            try:
                versions = laws.get_available_law_versions(difficulty)
            except (ValueError, KeyError):
                continue
            found += [f"{core.parent.name}/{difficulty}/{version}" for version in versions]
    return found


def run(folder: Path, problem: str, limit: int, noise: float, seconds: float) -> dict[str, float]:
    """Return what one law came to within `limit` points."""
    entry = entry_of(f"newtonbench:{folder}", problem, {}, noise)
    result = discover(entry.oracle, batch=entry.batch, max_queries=limit, time_limit=seconds)
    told = {"points": result.oracle_queries, "found": result.status == "found"}
    return told | entry.figures(result)


def main() -> None:
    """Print a line for every law, and a table by number of points."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limits", default="20,50,100,200")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--time-limit", type=float, default=60.0)
    given = parser.parse_args()
    lines = ["| points at most | laws | exact | called found | of them not exact | points, median | rounds, median |"]
    lines.append("|---|---|---|---|---|---|---|")
    for limit in map(int, given.limits.split(",")):
        rows = []
        for problem in problems(given.folder):
            rows.append(run(given.folder, problem, limit, given.noise, given.time_limit))
            print(limit, problem, rows[-1], flush=True)
        exact = [bool(row["exact"]) for row in rows]
        found = [bool(row["found"]) for row in rows]
        false = sum(f and not e for f, e in zip(found, exact, strict=True))
        points, rounds = (np.median([row[name] for row in rows]) for name in ("points", "rounds"))
        lines.append(f"| {limit} | {len(rows)} | {sum(exact)} | {sum(found)} | {false} | {points:.0f} | {rounds:.0f} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
