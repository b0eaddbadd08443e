"""Policies on the two smallest trigonometric sets: medians, and how many laws were recovered.

``python benchmarks/neural_sets.py [dsr,vsr-dsr,...] [--programs 3] [--max-evaluations 40000] [--out FILE.jsonl]``

Runs that are in the file already are not made again.
"""

import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

import typer

from deap_vsr import discover, load_equation

METHODS = "dsr,pqt,vpg,gpmeld,vsr-dsr,vsr-pqt,vsr-vpg,vsr-gpmeld"
SETS = [f"{operators}/{size}" for size in ("2-1-1", "3-2-2") for operators in ("inv", "sincos", "sincosinv")]


def run(problem: str, method: str, evaluations: int) -> dict[str, object]:
    begun = time.process_time()
    result = discover(load_equation(f"trigonometric/{problem}"), method, max_evaluations=evaluations)
    assert result.verdict is not None
    return {
        "problem": problem, "method": method, "nmse": result.verdict.metrics["nmse"], "status": result.status,
        "recovered": result.verdict.recovered, "accepted": [bool(record.accepted) for record in result.rounds],
        "evaluations": result.evaluations, "seconds": time.process_time() - begun,
    }  # fmt: skip


def show(rows: list[dict[str, object]], methods: list[str]) -> None:
    """Print medians and recoveries as a table."""
    found: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        found[str(row["problem"]).rsplit("/", 1)[0], str(row["method"])].append(row)
    print("| set | " + " | ".join(methods) + " |")
    print("|" + "---|" * (len(methods) + 1))
    for name in SETS:
        cells = []
        for method in methods:
            runs = found[name, method]
            median = statistics.median(float(str(row["nmse"])) for row in runs) if runs else float("nan")
            cells.append(f"{median:.1e} ({sum(bool(row['recovered']) for row in runs)} of {len(runs)})")
        print(f"| {name} | " + " | ".join(cells) + " |")
    wrong = sum(row["status"] == "found" and not row["recovered"] for row in rows)
    print(f"\n{len(rows)} runs, {wrong} called found and not recovered")


def main(
    methods: str = typer.Argument(METHODS), programs: int = 3, max_evaluations: int = 40_000, out: Path | None = None
) -> None:
    """Run methods on the sets, and say what came out."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out is not None and out.exists() else []
    known = {(row["problem"], row["method"]) for row in rows}
    for program in range(programs):
        for problem in (f"{name}/prog_{program}" for name in SETS):
            for method in methods.split(","):
                if (problem, method) in known:
                    continue
                rows.append(run(problem, method, max_evaluations))
                if out is not None:
                    with out.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
    show(rows, methods.split(","))


if __name__ == "__main__":
    typer.run(main)
