"""The commands ``vsr bench truth`` and ``vsr bench points``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from deap_vsr.errors import VsrError
from deap_vsr.markup import escape

if TYPE_CHECKING:
    from deap_vsr.bench.points import Shown
    from deap_vsr.bench.runs import Json, Progress

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

#: With --quick: within a minute.
QUICK_ROWS, QUICK_LAWS, QUICK_SECONDS = "exact; noise 1%; step 10%", 3, 3.0
QUICK_PROBLEMS, QUICK_LIMITS, QUICK_NOISE = 8, "30,100,300,1000", "0,0.01"
LAWS, SECONDS = 24, 60.0
SUITE, LIMITS, NOISE = "feynman-unit", "20,30,50,100,200,300,1000,3000", "0,0.001,0.01,0.1"

#: Characters that a table of many limits may take, in a narrow terminal as well.
_WIDE = 300

Laws = Annotated[int, typer.Option(min=0, help=f"How many fresh laws; 0: {LAWS}.")]
Seconds = Annotated[float, typer.Option(min=0.0, help=f"Seconds a run; 0: {SECONDS:g}.")]
Jobs = Annotated[int, typer.Option(min=1, help="Runs at a time.")]
LawsSeed = Annotated[int, typer.Option(min=0, help="Seed of the laws; take one that nobody has looked at.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]


def truth_command(
    rows: Annotated[
        str, typer.Option(help="Rows of the table, e.g. 'exact; noise 1%; step*', separated by semicolons; empty: all.")
    ] = "",
    laws: Laws = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each law: seeds 0, 1, ...")] = 1,
    time_limit: Seconds = 0.0,
    jobs: Jobs = 1,
    seed: LawsSeed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which finished runs are kept; the same command goes on from them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_LAWS} laws, {QUICK_ROWS}: within a minute.")] = False,
    as_json: AsJson = False,
) -> None:
    """Count how often "found" is true: fresh laws behind flawed oracles.

    Many runs, which can be killed: vsr bench truth --rows "noise*" --laws 40 --seed 7 --jobs 2 --out DIR
    """
    from deap_vsr.bench.truth import bench_truth, counted, rows_of

    names = rows_of(rows or (QUICK_ROWS if quick else ""))
    with _progress(_truth_name, _truth_told) as tell:
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
        _show_truth(lines, runs)


def _truth_name(run: Json) -> str:
    return f"{run['row']}, {run['law']}, seed {run['seed']}"


def _truth_told(run: Json) -> str:
    what = f"{'' if run['found'] else 'not '}called found, form {'right' if run['right'] else 'not right'}"
    return f"{what}{', FALSE' if run['false'] else ''}"


def _show_truth(lines: list[Json], runs: list[Json]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("oracle", no_wrap=True)
    for name in ("runs", "found", "false", "right form", "right, found", "points", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        counts = (str(line[key]) for key in ("runs", "found", "false", "right", "right_and_found"))
        costs = ("-", "-") if line["points"] is None else (f"{line['points']:.0f}", f"{line['seconds']:.1f}")
        table.add_row(line["row"], *counts, *costs)
    console.print(table)
    _show_failures(runs, _truth_name)
    told = "found: so called; right form: the law but for the values of its numbers; points and seconds are medians"
    console.print(told, highlight=False, soft_wrap=True)


# --- vsr bench points ---------------------------------------------------------------------


def points_command(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE",
            help=f"Names such as {SUITE} or feynman-unit/I.1*, folders, globs, or the word laws: fresh laws. "
            f"By default {SUITE}, or laws if --laws is given.",
        ),
    ] = None,
    limits: Annotated[str, typer.Option(help=f"How many points may be asked, e.g. 30,100,none; empty: {LIMITS}.")] = "",
    noise: Annotated[
        str, typer.Option(help=f"Levels of noise as shares of the spread of y, e.g. 0,0.01; empty: {NOISE}.")
    ] = "",
    laws: Laws = 0,
    seed: LawsSeed = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem: seeds 0, 1, ...")] = 1,
    time_limit: Seconds = 0.0,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder in which finished runs are kept, the same command goes on from them; "
            "for points.md and points.png (needs matplotlib) as well."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"{QUICK_PROBLEMS} problems, {QUICK_LIMITS}, noise {QUICK_NOISE}: a minute."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count what is recovered against the number of points that may be asked, exact and in noise.

    Many runs, which can be killed: vsr bench points feynman-unit --limits 50,300,none --noise 0,0.01 --jobs 2 --out DIR
    """
    from deap_vsr.bench.points import bench_points, counted, limits_of, noise_of, problems_of, tables

    places = list(suites or ())
    if laws and "laws" not in places:
        places.append("laws")
    places = places or [SUITE]
    problems = problems_of(places, laws or LAWS, seed)
    if quick:
        problems = problems[:: -(-len(problems) // QUICK_PROBLEMS)]
    asked = limits_of(limits or (QUICK_LIMITS if quick else LIMITS))
    levels = noise_of(noise or (QUICK_NOISE if quick else NOISE))
    seconds = time_limit or (QUICK_SECONDS if quick else SECONDS)
    with _progress(_points_name, _points_told) as tell:
        runs = bench_points(problems, asked, levels, seeds, seconds, n_jobs=jobs, out=out, tell=tell)
    lines = counted(runs)
    what = f"{', '.join(places)}; {seconds:g} s a run; seed of the laws, if any: {seed}."
    written = [] if out is None else _write_points(lines, what, out)
    if as_json:
        print(json.dumps({"suites": places, "seed": seed, "rows": lines}, ensure_ascii=False))
        return
    for shown in tables(lines):
        _show_points(shown)
    _show_failures(runs, _points_name)
    for path in written:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _show_points(shown: Shown) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("limit", no_wrap=True, min_width=10)
    for head in shown.heads:
        table.add_column(head, justify="right", no_wrap=True, min_width=4)
    for name, cells in shown.rows.items():
        table.add_row(name, *cells)
    console.print(f"{shown.title}:", highlight=False, soft_wrap=True)
    console.print(table, width=_WIDE, crop=False)  # a number cut short is another number
    console.print()


def _write_points(lines: Sequence[Json], what: str, folder: Path) -> list[Path]:
    """Write the tables and, where matplotlib is there, the picture; returns the paths."""
    from deap_vsr.bench.points import plot_points, tables
    from deap_vsr.plot import have_matplotlib

    text, picture = folder / "points.md", folder / "points.png"
    drawn = have_matplotlib()
    parts = ["# Recovery against points\n", f"{what}\n", *(shown.markdown() for shown in tables(lines))]
    try:
        text.write_text("\n".join(parts) + ("\n![the same as a picture](points.png)\n" if drawn else ""), "utf-8")
        if drawn:
            plot_points(lines).savefig(picture, dpi=110)
    except OSError as error:
        raise VsrError(f"{folder}: cannot write: {error.strerror}") from None
    return [text, picture] if drawn else [text]


def _points_name(run: Json) -> str:
    from deap_vsr.bench.points import limit_name, noise_name

    return f"{noise_name(run['noise'])}, limit {limit_name(run['limit'])}, {run['problem']}, seed {run['seed']}"


def _points_told(run: Json) -> str:
    what = "recovered" if run["recovered"] else "right form" if run["right"] else "not recovered"
    return f"{what}, called {run['status']}{', FALSE' if run['false'] else ''}"


# --- what both show -----------------------------------------------------------------------


@contextmanager
def _progress(name: Callable[[Json], str], told: Callable[[Json], str]) -> Iterator[Callable[[Progress], None]]:
    """Show how many runs there have been, and a line of each: its name, and what is told of it; yields `tell`."""
    with errors.status("starting") as status:

        def tell(news: Progress) -> None:
            run = news.run
            status.update(f"{news.done} of {news.total} runs")
            failed = run["error"] is not None
            what = (
                f"FAILED: {run['error']}" if failed else f"{told(run)}, {run['points']} points, {run['seconds']:.1f} s"
            )
            line = f"{news.done}/{news.total} {name(run)}: {what}"
            errors.print(escape(line), highlight=False, soft_wrap=True)

        yield tell


def _show_failures(runs: Sequence[Json], name: Callable[[Json], str]) -> None:
    for run in runs:
        if run["error"] is not None:
            console.print(escape(f"failed: {name(run)}: {run['error']}"), highlight=False, soft_wrap=True)
