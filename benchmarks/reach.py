"""Fresh laws with few and with many operators, exact and in noise: right forms, true words, seconds and points.

Run with ``python benchmarks/reach.py --sets ten,science,all --noise 0 --seeds 101 --count 48``, or with problems of
files: ``--suite feynman-unit``, or of a table: ``--suite benchmarks/hard_laws.csv``, the named hard laws of the field
and twenty of our own of their shapes, which were written down before any of them was run. Rows go to --out as they are
finished. "ten" is ten operators and whatever else the law needs, "science" the named set, "all" the catalogue's 25 (all
but sign, which is no function of its own), "own" the problem's.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from deap_vsr import Noise, discover, load_equation
from deap_vsr.judge.form import right_form
from deap_vsr.problems.equation import Equation
from deap_vsr.problems.generate import table_problems
from deap_vsr.problems.laws import laws_suite
from deap_vsr.problems.suites import problem_files
from deap_vsr.tree.operators import CATALOGUE, named_set

TEN = ("add", "sub", "mul", "div", "n2", "sqrt", "exp", "log", "sin", "cos")


def with_set(law: Equation, name: str) -> Equation:
    """Return the law with other operators to look for it with; what it needs is always among them."""
    if name == "own":
        return law
    wanted = {"ten": TEN, "science": named_set("science"), "all": [n for n in CATALOGUE if n != "neg"]}[name]
    needed = {node.name for node in law.tree if node.arity}
    return replace(law, function_set=(*(n for n in CATALOGUE if n in needed or n in wanted), "const"))


def run(
    law: Equation, name: str, noise: float, seed: int, time_limit: float, max_queries: int | None
) -> dict[str, Any]:
    """Run one law; a failure is a row as well."""
    row: dict[str, Any] = {"law": law.name, "formula": law.formula, "set": name, "noise": noise, "seed": seed}
    level = Noise(noise, relative=True) if noise else 0.0
    try:
        result = discover(
            with_set(law, name), "vsr", seed=seed, noise=level, time_limit=time_limit, max_queries=max_queries
        )
    except Exception as error:
        return row | {"right": False, "status": f"{type(error).__name__}: {error}"[:200]}
    recovered = bool(result.verdict and result.verdict.recovered)
    right = recovered or (result.tree is not None and right_form(result.tree, law))
    return row | {
        "right": recovered if not noise else right,
        "status": result.status,
        "seconds": result.seconds,
        "points": result.oracle_queries,
        "n_nodes": len(result.tree) if result.tree is not None else None,
        "n_nodes_of_law": len(law.tree),
        "expression": result.expression,
    }


def problems(suite: str, count: int, seed: int) -> list[Equation]:
    """Return fresh laws, or those of a suite, by turns so many of them."""
    if not suite:
        return list(laws_suite(count, seed))
    if suite.endswith(".csv"):
        every = list(table_problems(Path(suite), "hard"))
    else:
        every = [law for law in map(load_equation, problem_files(suite)) if law.usable]
    return every[:: max(len(every) // count, 1)][:count]


def main(
    sets: str = "ten,science,all",
    noise: str = "0",
    seeds: Annotated[str, typer.Option(help="Of the generator of laws.")] = "101",
    count: int = 48,
    suite: Annotated[
        str, typer.Option(help="Problems of files instead of fresh laws; seeds are then those of runs.")
    ] = "",
    time_limit: float = 30.0,
    max_queries: int = 0,
    out: Path | None = None,
) -> None:
    """Run the laws with every set and level of noise, and print a table."""
    laws = [(int(seed), law) for seed in seeds.split(",") for law in problems(suite, count, int(seed))]
    levels = [float(level) for level in noise.split(",")]
    work = [(law, name, level, seed) for level in levels for seed, law in laws for name in sets.split(",")]
    rows = []
    for law, name, level, seed in track(work, "running", console=Console(stderr=True)):
        rows.append(run(law, name, level, seed, time_limit, max_queries or None))
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    table = Table(
        "noise", "set", "laws", "right", "found", "found, and wrong", "seconds: median", "sum", "points: median"
    )
    for level in levels:
        for name in sets.split(","):
            group = [row for row in rows if (row["noise"], row["set"]) == (level, name)]
            found = [row for row in group if row["status"] == "found"]
            seconds = [row["seconds"] for row in group if "seconds" in row]
            table.add_row(
                f"{level:g}", name, str(len(group)), f"{np.mean([row['right'] for row in group]):.1%}", str(len(found)),
                str(sum(not row["right"] for row in found)), f"{np.median(seconds):.2f}", f"{np.sum(seconds):.0f}",
                f"{np.median([row['points'] for row in group if 'points' in row]):.0f}",
            )  # fmt: skip
    Console().print(table)
    for row in rows:
        if not row["right"]:
            print(row["noise"], row["set"], row["law"], row["formula"], "->", row.get("expression"), row["status"])


if __name__ == "__main__":
    typer.run(main)
