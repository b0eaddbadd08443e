"""How much of a suite is recovered: by group, with seconds, oracle queries, and the failures by name.

Run with ``python benchmarks/recovery.py feynman-unit --seeds 3 --jobs 2``; rows go to --out as they are finished.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from deap_vsr import Noise, discover, load_equation
from deap_vsr.judge.form import right_form
from deap_vsr.problems import suites

#: Columns of the printed table.
WIDTH = 140


def run(job: tuple[str, str, int, dict[str, Any]]) -> dict[str, Any]:
    """Run one problem; a failure is a row as well."""
    path, method, seed, options = job
    row: dict[str, Any] = {"path": path, "method": method, "seed": seed}
    try:
        result = discover(path, method, seed=seed, **options)
    except Exception as error:
        return row | {"recovered": False, "nmse": None, "stopped_by": f"{type(error).__name__}: {error}"[:200]}
    verdict, law = result.verdict, load_equation(path)
    return row | {
        "recovered": bool(verdict and verdict.recovered),
        "same_form": bool(verdict and verdict.same_form),
        "nmse": verdict.metrics["nmse"] if verdict else None,
        "mse": verdict.metrics["mse"] if verdict else None,
        "noise": result.noise,
        "near": bool(verdict and verdict.metrics["mse"] <= 0.01 * result.noise**2),
        "accurate": bool(verdict and verdict.metrics["r2"] >= 0.999),
        "right_form": bool(options["noise"] and result.tree is not None and right_form(result.tree, law)),
        "status": result.status,
        "seconds": result.seconds,
        "queries": result.oracle_queries,
        "evaluations": result.evaluations,
        "stopped_by": result.stopped_by,
        "expression": result.expression,
    }


def main(
    places: Annotated[list[str], typer.Argument(help="Suites, folders or globs.")],
    method: str = "vsr",
    seeds: int = 1,
    time_limit: float = 60.0,
    max_queries: int = 0,
    max_evaluations: int = 0,
    noise: float = 0.0,
    relative: Annotated[bool, typer.Option(help="The noise is a share of the spread of y.")] = False,
    expansion: Annotated[str, typer.Option(help="For vsr-gp and vsr-mcts: joint or slotwise.")] = "",
    grammar: Annotated[str, typer.Option(help="For mcts and vsr-mcts: coefficients, or a file of rules.")] = "",
    jobs: int = 1,
    out: Path | None = None,
) -> None:
    """Run every usable problem of the suites and print a table."""
    options: dict[str, Any] = {
        "time_limit": time_limit or None, "max_queries": max_queries or None, "grammar": grammar or None,
        "max_evaluations": max_evaluations or None,
    }  # fmt: skip
    options["noise"] = Noise(noise, relative=relative) if noise else 0.0
    options["expansion"] = expansion or None
    paths = [str(path) for place in places for path in suites.problem_files(place) if load_equation(path).usable]
    if not paths:
        raise typer.BadParameter(f"no usable problem in {', '.join(places)}")
    work = [(path, method, seed, options) for seed in range(seeds) for path in paths]
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        for row in track(pool.map(run, work), "running", total=len(work), console=Console(stderr=True)):
            rows.append(row)
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault("/".join(Path(row["path"]).parts[-3:-1]), []).append(row)
    # In noise no constant is exact: a law counts that is off by a hundredth of the variance of the noise at most; the
    # right form is that of the law, and nothing more.
    right = "near" if noise else "recovered"
    table = Table(
        "group", "runs", right, "right form", "found", "false", "R2 >= 0.999", "median NMSE", "seconds: median",
        "largest", "queries: median",
    )  # fmt: skip
    for name, group in groups.items():
        errors = [np.inf if row["nmse"] is None else row["nmse"] for row in group]
        seconds = [row.get("seconds", np.nan) for row in group]
        share = f"{np.mean([row.get(right, False) for row in group]):.1%}"
        queries = f"{np.nanmedian([row.get('queries', np.nan) for row in group]):.0f}"
        accurate = f"{np.mean([row.get('accurate', False) for row in group]):.1%}"
        form = [row.get("right_form" if noise else "recovered", False) for row in group]
        found = [row.get("status") == "found" for row in group]
        false = sum(said and not right for said, right in zip(found, form, strict=True))
        table.add_row(
            name, str(len(group)), share, str(sum(form)), str(sum(found)), str(false), accurate,
            f"{np.median(errors):.1e}", f"{np.nanmedian(seconds):.2f}", f"{np.nanmax(seconds):.1f}", queries,
        )  # fmt: skip
    Console(width=WIDTH).print(table)
    failed = [f"{Path(row['path']).stem} ({row['seed']}: {row['stopped_by']})" for row in rows if not row.get(right)]
    print(f"{len(rows) - len(failed)} of {len(rows)} {right}; not: {', '.join(failed) or 'none'}")


if __name__ == "__main__":
    typer.run(main)
