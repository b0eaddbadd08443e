"""The commands ``vsr compare`` and ``vsr report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Shown

from deap_vsr.errors import VsrError
from deap_vsr.markup import escape

if TYPE_CHECKING:
    from deap_vsr.compare.tables import Table

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

#: Characters of a line where the output is no terminal.
_FILE_WIDTH = 130

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]


def compare_command(
    suites: Annotated[
        list[str],
        typer.Argument(
            help="Folders, globs, names such as trigonometric/inv/3-2-2, or paper:table1 to paper:table4, "
            "paper:optimizers, :noise, :quartiles, :metrics, :memory."
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            help="e.g. gp,vsr-gp,vsr-gp+slotwise,mcts+coefficients,vsr, or gplearn,pyoperon,pysr (never run by us); "
            "empty: the suite's, or all."
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="How many: 0, 1, ...")] = 1,
    time_limit: Annotated[float, typer.Option(min=0.0, help="Seconds a run; 0: none. 60 if no limit is given.")] = 0.0,
    max_evaluations: Annotated[int, typer.Option(min=0, help="Evaluations a run; 0: no limit.")] = 0,
    max_queries: Annotated[int, typer.Option(min=0, help="Oracle queries a run; 0: no limit.")] = 0,
    noise: Annotated[str, typer.Option(help="Levels, e.g. 0,0.1; empty: the suite's, or none.")] = "",
    noise_of: Annotated[
        str, typer.Option(help="rms: levels are shares of the root mean square of y, as SRBench's are.")
    ] = "",
    preset: Annotated[str, typer.Option(help="paper: the published settings, where a method has them.")] = "",
    optimizers: Annotated[str, typer.Option(help="e.g. lm,BFGS,CG; empty: the suite's, or each method's own.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time on this machine.")] = 1,
    cluster: Annotated[str, typer.Option(help="Address of a Dask scheduler to run on, e.g. tcp://host:8786.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for the runs, tables, pictures and the report.")] = Path(
        "comparison"
    ),
    resume: Annotated[bool, typer.Option("--resume", help="Run only what is missing in --out.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume: run again what failed.")] = False,
    hang_after: Annotated[
        float, typer.Option(min=0.0, help="Seconds after which a run is killed as hanging; 0: well behind its limit.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Compare methods on suites of problems, all with the same limits; kill it and go on with --resume.

    Two methods on ten problems: vsr compare trigonometric/inv/3-2-2 --methods gp,vsr-gp --max-evaluations 5000

    The paper's first table: vsr compare paper:table1 --time-limit 60 --jobs 8 --out table1
    """
    from deap_vsr.compare.harness import compare
    from deap_vsr.compare.plan import plan
    from deap_vsr.compare.report import write_report
    from deap_vsr.compare.statistics import ordered
    from deap_vsr.compare.tables import overview

    if retry_failed and not resume:
        raise VsrError("--retry-failed goes with --resume")
    planned = plan(
        suites,
        methods=_listed(methods),
        n_seeds=seeds,
        time_limit=time_limit or None,
        max_evaluations=max_evaluations or None,
        max_queries=max_queries or None,
        noise=_numbers(noise),
        preset=preset or None,
        optimizers=_listed(optimizers),
        noise_of=noise_of or None,
    )
    _say(f"{len(planned.jobs)} runs: {len(planned.problems)} problems, methods {', '.join(planned.methods)}")
    if planned.left_out:
        _say(f"left out, as not usable: {', '.join(planned.left_out)}")
    if not cluster:
        _compile()
    try:
        with errors.status("running") as status:

            def tell(news: Any) -> None:
                _say(_line(news))
                left = duration(news.seconds_left)
                status.update(f"{news.done} of {news.total} runs, {news.failed} failed, about {left} left")

            rows = compare(
                planned, out, resume=resume, retry_failed=retry_failed, n_jobs=jobs, cluster=cluster or None,
                hang_after=hang_after or None, tell=tell,
            )  # fmt: skip
    except KeyboardInterrupt:
        _say(f"interrupted; finished runs are in {out}: go on with the same command and --resume")
        raise typer.Exit(130) from None
    written = write_report(out)
    failed = sum(row["status"] == "failed" for row in rows)
    table = overview(ordered(rows, planned.methods))
    if as_json:
        print(json.dumps({
            "out": str(out), "runs": len(rows), "failed": failed,
            "table": [dict(zip(table.columns, (cell.value for cell in row), strict=True)) for row in table.rows],
            "files": list(map(str, written)),
        }, ensure_ascii=False))  # fmt: skip
        return
    _show(table)
    console.print(f"{len(rows)} runs, {failed} failed", highlight=False)
    console.print(f"report: {escape(str(written[0]))}", highlight=False, soft_wrap=True)


def report_command(
    folder: Annotated[Path, typer.Argument(help="A folder of `vsr compare`; its runs may still be going on.")],
    as_json: AsJson = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), pictures and an HTML report of a comparison."""
    from deap_vsr.compare.report import write_report

    written = write_report(folder)
    if as_json:
        print(json.dumps({"out": str(folder), "files": list(map(str, written))}, ensure_ascii=False))
        return
    for path in written:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _show(table: Table) -> None:
    """Print the overview; what of it has room in a terminal."""
    names = {
        "set", "group", "noise", "method", "runs", "failed", "median NMSE", "recovered", "right form", "found",
        "false found", "seconds", "queries",
    }  # fmt: skip
    shown = Shown(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    columns = []
    for column, name in enumerate(table.columns):
        values = {row[column].value for row in table.rows}
        if name in names and values != {None} and not (name in ("noise", "failed") and values == {0}):
            columns.append(column)
            left = name in ("set", "group", "method")
            shown.add_column(
                name.removeprefix("median "), overflow="fold", no_wrap=not left, justify="left" if left else "right"
            )
    for row in table.rows:
        shown.add_row(*(escape(row[column].text) for column in columns))
    (console if console.is_terminal else Console(emoji=False, width=_FILE_WIDTH)).print(shown)


def duration(seconds: float) -> str:
    """Return seconds in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _line(news: Any) -> str:
    """Return the line of a finished run."""
    from deap_vsr.compare.job import Job

    row = news.row
    title = Job(**{name: row[name] for name in Job.__annotations__}).title
    if row["status"] == "failed":
        what = f"FAILED: {row['error']}"
    else:
        nmse = "none" if row["nmse"] is None else f"{row['nmse']:.2g}"
        stands = f"{'FALSELY ' if row['false_found'] else ''}{row['standing']}"
        told = ", recovered" if row["recovered"] else ", right form" if row["right_form"] else ""
        what = f"{stands}, NMSE {nmse}{told}, {row['seconds']:.1f} s"
    failed = f", {news.failed} failed" if news.failed else ""
    return f"{news.done}/{news.total} {title}: {what}{failed}, {duration(news.seconds_left)} left"


def _say(text: str) -> None:
    errors.print(escape(text), highlight=False, soft_wrap=True)


def _compile() -> None:
    """Compile the kernels before many processes do it at the same time, each for itself."""
    from deap_vsr.engine.warm import compile_kernels

    with errors.status("reading the kernels"):
        compile_kernels()


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, _listed(text)))
    except ValueError:
        raise VsrError(f"--noise {text}: expected numbers such as 0,0.1") from None
