"""The ``vsr`` command."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import deap_vsr
from deap_vsr.bench.commands import points_command, truth_command
from deap_vsr.campaign.commands import lab_app
from deap_vsr.compare.commands import compare_command, report_command
from deap_vsr.discover_command import discover_command
from deap_vsr.errors import VsrError
from deap_vsr.interrupts import Interrupts
from deap_vsr.lab.oracle import EquationOracle, Noise
from deap_vsr.lab.trials import sample_trials
from deap_vsr.markup import escape
from deap_vsr.problems import generate, suites
from deap_vsr.problems.check import check_file
from deap_vsr.problems.equation import Equation, load_equation
from deap_vsr.problems.laws import laws_suite

BAD_INPUT = 2
#: Variables shown in a table; problems may have 1,000.
MAX_SHOWN = 12

app = typer.Typer(
    help="Vertical symbolic regression: find formulas by holding variables constant.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Benchmark problems: list, show, check and make equation files.", no_args_is_help=True)
app.add_typer(data_app, name="data")
bench_app = typer.Typer(
    help='Benchmarks: ratios measured in one run, cost against size, recovery by points, how often "found" is true.',
    no_args_is_help=True,
)
app.add_typer(bench_app, name="bench")
bench_app.command("truth")(truth_command)
bench_app.command("points")(points_command)
app.command("discover")(discover_command)
app.add_typer(lab_app, name="lab")
app.command("compare")(compare_command)
app.command("report")(report_command)

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]


def main(interrupts: Interrupts | None = None) -> None:
    """Run the command; bad input ends with one clear line and exit code 2, Ctrl-C with 130, SIGTERM with 143.

    `interrupts` are those that hear signals already; by default they do from now on.
    """
    interrupts = interrupts or Interrupts().install()
    try:
        code = _run()
    except KeyboardInterrupt:
        errors.print("interrupted")
        code = 130
    except Exception:
        if not interrupts.count:
            raise
        errors.print("interrupted")  # what is raised within an extension may come out as another exception
        code = 130
    sys.exit(interrupts.exit_code(code) if isinstance(code, int) else code)


def _run() -> str | int | None:
    """Run the command; returns its exit code."""
    try:
        app()
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # typer's answer to a reader that has gone is 1
            return 0
        return leaving.code
    except VsrError as error:
        errors.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()  # the reader (head, less) has gone; nothing is left to say
        return 0
    except MemoryError:
        errors.print("[red]error:[/red] there is not enough memory for that")
        return BAD_INPUT
    except OSError as error:
        errors.print(f"[red]error:[/red] {escape(error.strerror or str(error))}", soft_wrap=True, highlight=False)
        with suppress(OSError):
            sys.stdout.close()  # what it still holds cannot be written, and would be tried again at the end
        return BAD_INPUT
    return 0


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"vsr {deap_vsr.__version__}", highlight=False)
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Vertical symbolic regression: find formulas by holding variables constant."""


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _files(place: str) -> list[Path]:
    found = suites.problem_files(place)
    if not found:
        raise VsrError(
            f"{place}: no equation files there; give a folder, a file, a glob or a name from `vsr data list`"
        )
    return found


@data_app.command("list")
def data_list(
    suite: Annotated[str, typer.Argument(help="A folder, glob or suite such as trigonometric/inv; empty: all.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the suites of the data folder, or the problems of one suite."""
    if not suite:
        counts: dict[str, int] = {}
        for name in suites.problem_names():
            folder = name.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
        if as_json:
            _print_json({"suites": counts, "problems": sum(counts.values())})
            return
        table = Table("suite", "problems", title=f"{sum(counts.values())} problems in {suites.data_root()}")
        for folder, count in counts.items():
            table.add_row(folder, str(count))
        console.print(table)
        return
    problems = [load_equation(path) for path in _files(suite)]
    if as_json:
        _print_json({"problems": [_summary(equation) for equation in problems]})
        return
    table = Table("problem", "group", "variables", "formula")
    for equation in problems:
        name = equation.name if equation.usable else f"{equation.name} (not usable)"
        table.add_row(escape(name), escape(equation.group), str(equation.n_vars), escape(equation.formula))
    console.print(table)


def _summary(equation: Equation) -> dict[str, Any]:
    return {
        "name": equation.name,
        "group": equation.group,
        "num_vars": equation.n_vars,
        "function_set": list(equation.function_set),
        "formula": equation.formula,
        "usable": equation.usable,
        "reason": equation.reason,
        "judge": equation.judge,
    }


@data_app.command("show")
def data_show(
    problem: Annotated[str, typer.Argument(help="Name (feynman-unit/I.39.22) or path of an equation file.")],
    points: Annotated[int, typer.Option(min=0, max=1_000_000, help="How many sampled points to show.")] = 5,
    free: Annotated[str, typer.Option(help="Variables to vary, e.g. x1,x3; the others are held. Default: all.")] = "",
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of normal noise on y.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of points and noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print one problem: its variables, its hidden formula and some data."""
    equation = load_equation(problem)
    names = [v.name for v in equation.variables]
    chosen = [name.strip() for name in free.split(",")] if free else names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise VsrError(f"--free {free}: {', '.join(unknown)} not among the variables {names[0]}..{names[-1]}")
    oracle = EquationOracle(equation, Noise(noise), seed)
    columns = [names.index(name) for name in chosen]
    trial = sample_trials(oracle, columns, 1, points, np.random.default_rng(seed))[0] if points else None
    if as_json:
        shown = _summary(equation) | {
            "latex": equation.tree.to_latex(),
            "equation": equation.tree.to_tokens(),
            "variables": [vars(v) for v in equation.variables],
            "data": {"X": trial.X.tolist(), "y": trial.y.tolist(), "dropped": trial.dropped} if trial else None,
        }
        _print_json(shown)
        return
    console.print(f"[bold]{escape(equation.name)}[/bold]  {escape(equation.group)}", highlight=False)
    console.print(f"y = {escape(equation.formula)}", highlight=False, soft_wrap=True)
    console.print(f"operators: {', '.join(equation.function_set)}", highlight=False)
    if equation.reason:
        console.print(f"{'note' if equation.usable else 'not usable'}: {escape(equation.reason)}", highlight=False)
    table = Table("variable", "symbol", "low", "high", "sampling", "sign")
    for v in equation.variables[:MAX_SHOWN]:
        table.add_row(v.name, escape(v.symbol), f"{v.low:g}", f"{v.high:g}", v.sampling, v.sign)
    console.print(table)
    if equation.n_vars > MAX_SHOWN:
        console.print(f"... and {equation.n_vars - MAX_SHOWN} more variables (--json shows all)", highlight=False)
    if trial:
        held = [name for name in names if name not in chosen]
        title = f"{points} points" + (f", {', '.join(held[:MAX_SHOWN])} held" if held else "")
        sample = Table(*names[:MAX_SHOWN], "y", title=title)
        for row, y in zip(trial.X, trial.y, strict=True):
            sample.add_row(*(f"{value:.5g}" for value in row[:MAX_SHOWN]), f"{y:.8g}")
        console.print(sample)


@data_app.command("check")
def data_check(
    place: Annotated[str, typer.Argument(help="Folder, file, glob or suite to check.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check that files load and that each pre-order list equals its readable formula."""
    files = _files(place or str(suites.data_root()))
    found: list[str] = []
    for path in track(files, "checking", console=errors, transient=True, disable=as_json or not errors.is_terminal):
        found += check_file(path)
    if as_json:
        _print_json({"files": len(files), "errors": found})
    else:
        for line in found:
            console.print(escape(line), highlight=False, soft_wrap=True)
        console.print(f"{len(files)} files, {len(found)} errors", highlight=False)
    if found:
        raise typer.Exit(BAD_INPUT)


@data_app.command("make")
def data_make(
    out: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path("data"),
    suite: Annotated[
        str,
        typer.Option(
            help="all (of data), trigonometric, feynman, feynman-unit, livermore2, classic; on demand feynman+dummy "
            "(with variables that have no effect) and laws: fresh ones.",
            show_default=True,
        ),
    ] = "all",
    sets: Annotated[str, typer.Option("--sets", help="Trigonometric sets.")] = "inv,sincos,sincosinv",
    config: Annotated[
        str, typer.Option(help="Trigonometric m-s-p, e.g. 8-8-12,10-10-20; empty: the paper's seven.")
    ] = "",
    programs: Annotated[
        int, typer.Option(min=1, help="Programs for each set and configuration; of laws, how many in all.")
    ] = generate.PROGRAMS,
    variables: Annotated[int, typer.Option(min=0, help="Place the m variables among so many; 0: no others.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of trigonometric programs, dummy variables, laws.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Write equation files: the whole data folder, or fresh programs on demand.

    Fresh programs: vsr data make fresh --suite trigonometric --config 8-8-12 --programs 20 --seed 7;
    with 45 distractors among 50 variables: add --config 5-5-5 --variables 50.

    Fresh laws, none of them in the data folder: vsr data make fresh --suite laws --programs 60 --seed 7

    Feynman's laws with one to three variables that have no effect: vsr data make fresh --suite feynman+dummy --seed 7
    """
    tables = generate.TABLES
    known = ("all", "trigonometric", "laws", generate.WITH_DUMMIES, *tables)
    if suite not in known:
        raise VsrError(f"--suite {suite}: expected {', '.join(known)}")
    if suite in tables and (config or variables or seed):
        raise VsrError(f"--suite {suite} comes from a table: --config, --variables and --seed are for trigonometric")
    if suite in ("laws", generate.WITH_DUMMIES) and (config or variables):
        raise VsrError(f"--suite {suite}: --config and --variables are for trigonometric")
    count = 0
    try:
        if suite == "laws":
            count += generate.write_problems(laws_suite(programs, seed), out)
        if suite == generate.WITH_DUMMIES:
            count += generate.write_problems(generate.dummy_suite(seed), out)
        if suite in ("all", "trigonometric"):
            shapes = tuple(_configuration(text) for text in config.split(",")) if config else generate.CONFIGURATIONS
            drawn = generate.trigonometric_suite(sets.split(","), shapes, programs, seed, variables or None)
            count += generate.write_problems(drawn, out)
        for table in tables:
            if suite in ("all", table):
                count += generate.write_problems(generate.table_suite(table), out)
    except OSError as error:
        raise VsrError(f"{out}: cannot write: {error.strerror}") from None
    if as_json:
        _print_json({"files": count, "out": str(out)})
    else:
        console.print(f"{count} files written to {escape(str(out))}", highlight=False)


def _configuration(text: str) -> tuple[int, int, int]:
    parts = text.strip().split("-")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise VsrError(f"--config {text}: expected m-s-p such as 8-8-12")
    m, s, p = map(int, parts)
    return m, s, p


@app.command("warm-up")
def warm_up_command(as_json: AsJson = False) -> None:
    """Compile the kernels, once on a machine: half a minute that the first run would wait for, before its clock starts.

    They are kept beside the package, or in the user's cache folder; NUMBA_CACHE_DIR chooses another place.
    """
    from deap_vsr.engine.warm import cache_folder, compile_kernels

    begun = time.perf_counter()
    compiled = compile_kernels()
    seconds, folder = time.perf_counter() - begun, cache_folder()
    if as_json:
        _print_json({"compiled": compiled, "seconds": seconds, "folder": folder})
        return
    console.print(f"kernels {'compiled' if compiled else 'were there, and read'} in {seconds:.1f} s", highlight=False)
    kept = f"kept in {folder}" if folder else "kept nowhere: no folder for them can be written"
    console.print(escape(kept), highlight=False, soft_wrap=True)


@bench_app.command("engine")
def bench_engine(
    quick: Annotated[bool, typer.Option(help="A fifth of the work: done within a minute.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare evaluation and constant fitting with DEAP, scipy and (if installed) Operon."""
    from deap_vsr.bench.engine import bench_engine as measure

    def say(text: str) -> None:
        errors.print(f"[dim]{escape(text)}[/dim]", highlight=False)

    report = measure(400, 40, 2, say) if quick else measure(progress=say)
    if as_json:
        _print_json(report)
        return
    table = Table("measurement", "value")
    for key, value in report.items():
        if isinstance(value, dict):
            text = ", ".join(f"{name} {share:.0%}" for name, share in value.items())
        elif isinstance(value, float):
            text = f"{value:.3g}"
        else:
            text = "absent" if value is None else str(value)
        table.add_row(key, escape(text))
    console.print(table)
    console.print("*_vs_*: how many times faster we are; success: share of fits reaching NMSE < 1e-12")


@bench_app.command("scaling")
def bench_scaling_command(
    quick: Annotated[bool, typer.Option(help="One program a size, small sizes, 2 s for GP.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for scaling.png (needs matplotlib).")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure cost against the number of variables, vsr with GP beside it."""
    from deap_vsr.bench.scaling import bench_scaling, growth, plot_scaling

    with errors.status("starting") as status:
        options: dict[str, Any] = {"n_programs": 1, "gp_seconds": 2.0, "max_size": 60} if quick else {}
        rows = bench_scaling(progress=status.update, **options)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            plot_scaling(rows).savefig(out / "scaling.png", dpi=110)
        except OSError as error:
            raise VsrError(f"{out}: cannot write: {error.strerror}") from None
    if as_json:
        _print_json({"rows": rows})
        return
    for family in dict.fromkeys(row["family"] for row in rows):
        table = Table("size", "method", "recovered", "seconds", "evaluations", "oracle queries", title=family)
        for row in rows:
            if row["family"] == family:
                numbers = (f"{row['seconds']:.2f}", f"{row['evaluations']:.0f}", f"{row['queries']:.0f}")
                table.add_row(str(row["size"]), row["method"], f"{row['recovered']:.0%}", *numbers)
        console.print(table)
        powers = ", ".join(f"{key} {growth(rows, family, key):.1f}" for key in ("seconds", "evaluations", "queries"))
        console.print(f"vsr grows as size to the power of: {powers}", highlight=False)
    if out is not None:
        console.print(f"written: {escape(str(out / 'scaling.png'))}", highlight=False)
