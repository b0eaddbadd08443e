"""The command ``vsr bench truth``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from deap_vsr.bench.runs import Progress

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

#: With --quick: within a minute.
QUICK_ROWS, QUICK_LAWS, QUICK_SECONDS = "exact; noise 1%; step 10%", 3, 3.0
LAWS, SECONDS = 24, 60.0


def truth_command(
    rows: Annotated[
        str, typer.Option(help="Rows of the table, e.g. 'exact; noise 1%; step*', separated by semicolons; empty: all.")
    ] = "",
    laws: Annotated[int, typer.Option(min=0, help=f"How many laws; 0: {LAWS}.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each law: seeds 0, 1, ...")] = 1,
    time_limit: Annotated[float, typer.Option(min=0.0, help=f"Seconds a run; 0: {SECONDS:g}.")] = 0.0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the laws; take one that nobody has looked at.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which finished runs are kept; the same command goes on from them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_LAWS} laws, {QUICK_ROWS}: within a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")] = False,
) -> None:
    """Count how often "found" is true: fresh laws behind flawed oracles.

    Many runs, which can be killed: vsr bench truth --rows "noise*" --laws 40 --seed 7 --jobs 2 --out DIR
    """
    from deap_vsr.bench.truth import bench_truth, counted, rows_of

    names = rows_of(rows or (QUICK_ROWS if quick else ""))
    with errors.status("starting") as status:

        def tell(news: Progress) -> None:
            status.update(f"{news.done} of {news.total} runs")
            errors.print(escape(_line(news)), highlight=False, soft_wrap=True)

        runs = bench_truth(
            names,
            laws or (QUICK_LAWS if quick else LAWS),
            seeds,
            time_limit or (QUICK_SECONDS if quick else SECONDS),
            laws_seed=seed,
            n_jobs=jobs,
            out=out,
            tell=tell,
        )
    lines = counted(runs)
    if as_json:
        print(json.dumps({"seed": seed, "rows": lines}, ensure_ascii=False))
    else:
        _show(lines, runs)


def _line(news: Progress) -> str:
    """Return the line of a finished run."""
    run = news.run
    where = f"{news.done}/{news.total} {run['row']}, {run['law']}, seed {run['seed']}"
    if run["error"] is not None:
        return f"{where}: FAILED: {run['error']}"
    what = f"{'' if run['found'] else 'not '}called found, form {'right' if run['right'] else 'not right'}"
    return f"{where}: {what}{', FALSE' if run['false'] else ''}, {run['points']} points, {run['seconds']:.1f} s"


def _show(lines: list[dict[str, Any]], runs: list[dict[str, Any]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("oracle", no_wrap=True)
    for name in ("runs", "found", "false", "right form", "right, found", "points", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        counts = (str(line[key]) for key in ("runs", "found", "false", "right", "right_and_found"))
        costs = ("-", "-") if line["points"] is None else (f"{line['points']:.0f}", f"{line['seconds']:.1f}")
        table.add_row(line["row"], *counts, *costs)
    console.print(table)
    for run in runs:
        if run["error"] is not None:
            told = f"failed: {run['row']}, {run['law']}, seed {run['seed']}: {run['error']}"
            console.print(escape(told), highlight=False, soft_wrap=True)
    told = "found: so called; right form: the law but for the values of its numbers; points and seconds are medians"
    console.print(told, highlight=False, soft_wrap=True)
