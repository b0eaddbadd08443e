"""What a run shows: live progress, the result as text, and the files it leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deap_vsr.errors import VsrError
from deap_vsr.markup import escape
from deap_vsr.result import Result
from deap_vsr.search.records import Progress
from deap_vsr.tree.names import Names
from deap_vsr.tree.notation import short_formula

#: Variables named in a line; problems may have 1,000.
MAX_NAMED = 8


@contextmanager
def live_progress(console: Console) -> Iterator[tuple[Callable[[Progress], None], Callable[[], None]]]:
    """Show a line that follows a run, and reduced forms as they are found; yields `progress` and `tick` of discover."""
    with console.status("reading the kernels") as status:
        news: list[Progress] = []
        shown = [0.0]

        def progress(now: Progress) -> None:
            news[:] = [now]
            if now.tree is not None and console.is_terminal:
                form = escape(short_formula(now.tree, now.names))
                console.print(f"[dim]{_names(now.freed, now.names)}:[/dim] {form}", highlight=False, soft_wrap=True)

        def tick() -> None:
            now = time.perf_counter()
            if news and now - shown[0] > 0.2:
                shown[0] = now
                status.update(progress_line(news[0]))

        yield progress, tick


def progress_line(news: Progress) -> str:
    """Return one line on where a run is."""
    spent, limits = news.budget.spent, news.budget.limits
    left = f", {limits['seconds'] - spent['seconds']:.0f} s left" if limits["seconds"] is not None else ""
    return (
        f"round {news.round}/{news.n_rounds}, free: {_names(news.freed, news.names)}; best error {news.best:.2g}; "
        f"{spent['evaluations']:.0f} evaluations, {spent['queries']:.0f} queries{left}"
    )


def _names(columns: tuple[int, ...], called: Names) -> str:
    names = [called.name(column) for column in columns]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return " ".join(names[-MAX_NAMED:]) + more


def print_result(result: Result, console: Console) -> None:
    """Print the path of reduced forms, the formula, how good it is and what it cost."""
    path = Table("free", "held", "reduced form", "largest error", "slots", title="the path of reduced forms")
    for record in result.path:
        path.add_row(
            _names(record.freed, result.names),
            _names(record.controlled, result.names) or "nothing",
            escape(short_formula(record.tree, result.names)),
            f"{max(record.errors):.2g}" + ("" if record.accepted else " (does not fit)"),
            str(record.slots),
        )
    console.print(path)
    others = len(result.rounds) - len(result.path)
    if others:
        console.print(f"other rounds, in the JSON of the result: {others}", highlight=False)
    if result.tree is None:
        console.print("no formula was found", highlight=False)
    else:
        equals = f"{result.names.output} = {result.formula}"
        console.print(f"[bold]{escape(equals)}[/bold]", highlight=False, soft_wrap=True)
        console.print(f"sympy: {escape(result.sympy)}", highlight=False, soft_wrap=True)
        console.print(f"LaTeX: {escape(result.latex)}", highlight=False, soft_wrap=True)
    _print_standing(result, console)
    if result.standard_errors and result.noise > 0:
        errors = ", ".join(f"{c.standard_error:.2g} of {c.value:.6g}" for c in result.constants)
        console.print(f"standard errors of the constants, in order: {errors}", highlight=False, soft_wrap=True)
    if result.verdict is not None:
        how = f" ({result.verdict.recovered_by})" if result.verdict.recovered else ""
        console.print(f"recovered: {'yes' if result.verdict.recovered else 'no'}{how}", highlight=False)
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in result.verdict.metrics.items())
        console.print(f"on 10,000 fresh points: {numbers}", highlight=False, soft_wrap=True)
    known = f"{result.points_read} points read from the log, " if result.points_read else ""
    console.print(
        f"stopped by: {result.stopped_by}; {result.seconds:.2f} s, {result.evaluations} evaluations, "
        f"{result.oracle_queries} oracle queries{result.in_batches}, {known}{result.peak_memory_mb:.1f} MB",
        highlight=False,
        soft_wrap=True,
    )


def _print_standing(result: Result, console: Console) -> None:
    """Print how the answer stands, and its rivals."""
    lines = [f"{result.status}: {result.reason}"]
    if result.status == "found":  # else it may be wrong everywhere, as the reason says
        lines[0] += f"; it may be wrong in at most about {result.share:.1%} of the domain"
    if result.status == "found" and not result.standing.outside and not result.equation:
        lines.append("how far outside its domain may it be asked? --limit NAME=LOW:HIGH (limits=) makes it surer")
    lines += [
        f"rival, {behind:.1f} nats behind: {result.names.named(tree).to_infix()}"
        for behind, tree in result.standing.rivals
    ]
    if result.outliers:
        lines.append(f"answers left out, as asking again did not confirm them: {len(result.outliers)}")
    if result.failures:
        lines.append(f"points at which the oracle raised an exception: {result.failures}")
    if result.error is not None and result.verdict is None:
        lines.append(f"error on all that was measured, relative to the spread of y: {result.error:.2g}")
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True)


def make_folder(folder: Path) -> None:
    """Make a folder to write into; VsrError if that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VsrError(f"{folder}: cannot write: {error.strerror}") from None


def write_result(result: Result, folder: Path) -> list[Path]:
    """Write result.json, formula.tex and, where matplotlib is there, path.png and slots.png; returns the paths."""
    texts = {"result.json": json.dumps(result.to_json(), indent=1) + "\n", "formula.tex": result.latex + "\n"}
    make_folder(folder)
    try:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        written = [folder / name for name in texts]
        from deap_vsr.plot import have_matplotlib, plot_path, plot_slots

        if have_matplotlib():
            plot_path(result).savefig(folder / "path.png", dpi=120)
            written.append(folder / "path.png")
            if any(record.tables for record in result.rounds):
                plot_slots(result).savefig(folder / "slots.png", dpi=120)
                written.append(folder / "slots.png")
    except OSError as error:
        raise VsrError(f"{folder}: cannot write: {error.strerror}") from None
    return written
