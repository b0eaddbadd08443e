"""``vsr discover``: find the formula behind a problem."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from deap_vsr.errors import VsrError
from deap_vsr.files import write_atomically
from deap_vsr.lab.oracle import RMS, Noise
from deap_vsr.markup import escape

if TYPE_CHECKING:
    from deap_vsr.adapters.entry import Entry
    from deap_vsr.problems.equation import Variable
    from deap_vsr.result import Result


def discover_command(
    problem: Annotated[
        str,
        typer.Argument(
            help="A Python function, as MODULE:NAME or FILE.py:NAME; or name (feynman-unit/I.39.22) or path of an "
            "equation file. Not with --command."
        ),
    ] = "",
    command: Annotated[
        str,
        typer.Option(
            help="A program to ask: './sim {T} {p}' is run for each point and prints a number; without places for the "
            "variables it reads points as CSV and prints a line for each."
        ),
    ] = "",
    adapter: Annotated[
        str,
        typer.Option(
            help="srsci:FOLDER or newtonbench:FOLDER: a problem of your own copy of that benchmark (docs/adapters.md)"
        ),
    ] = "",
    domain: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable of a function or program: T=280:400, 'T[K]=280:400' with its unit, p=0.1:10:log, "
            "n=1:9:integer, material=steel,wood. Once for each."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(help="Name of the answer; more than once, where there are several: a formula for each."),
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="How far outside its domain a variable may be asked: T=200:500.")
    ] = None,
    feasible: Annotated[
        str, typer.Option(help="MODULE:NAME of a function that says of a setting whether it can be asked.")
    ] = "",
    workers: Annotated[int, typer.Option(min=1, help="Points of a function or program asked at the same time.")] = 1,
    processes: Annotated[bool, typer.Option("--processes", help="Workers are processes; else threads.")] = False,
    timeout: Annotated[float, typer.Option(min=0.0, help="Seconds that a process of --command may take; 0: any.")] = 0,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a process of --command that fails is tried again.")
    ] = 0,
    form: Annotated[str, typer.Option(help="Lines of a batch of --command: csv or jsonl.")] = "csv",
    shell: Annotated[bool, typer.Option("--shell", help="Let a shell run --command.")] = False,
    noise_sd: Annotated[
        float, typer.Option(min=0.0, help="Standard deviation of a function's or program's own noise, if known.")
    ] = 0.0,
    method: Annotated[
        str,
        typer.Option(
            help="vsr (slots solved one by one), vsr-gp or vsr-mcts (the paper's), gp or mcts (all variables at once), "
            "dsr, pqt, vpg, gpmeld (docs/neural.md; vsr-dsr, ... free variables one by one), "
            "gplearn, pyoperon or pysr (other packages; pysr was never run by us), or MODULE:NAME of your own."
        ),
    ] = "vsr",
    expansion: Annotated[
        str, typer.Option(help="How a round grows the formula: slotwise or joint; empty: the method's own.")
    ] = "",
    schedule: Annotated[
        str,
        typer.Option(help="Order in which variables are freed: numeric, auto, or e.g. x3,x1,x2; empty: auto for vsr."),
    ] = "",
    preset: Annotated[str, typer.Option(help="paper: the published settings.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole run.")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.0, help="Seconds; 0: none. 60 if no limit is given.")] = 0.0,
    max_evaluations: Annotated[int, typer.Option(min=0, help="Expressions evaluated over a trial; 0: no limit.")] = 0,
    max_queries: Annotated[int, typer.Option(min=0, help="Points asked of the oracle; 0: no limit.")] = 0,
    max_memory: Annotated[float, typer.Option(min=0.0, help="MB that the process may hold; 0: no limit.")] = 0.0,
    batch: Annotated[
        int | None, typer.Option(help="Points handed to the oracle at once, at the most, 1 or more; default: no limit.")
    ] = None,
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of normal noise on y.")] = 0.0,
    noise_of: Annotated[
        str, typer.Option(help="rms: --noise is a share of the root mean square of y (an equation file's only).")
    ] = "",
    noise_kind: Annotated[str, typer.Option(help="normal, uniform, laplace, exponential or logistic.")] = "normal",
    verify: Annotated[
        str,
        typer.Option(
            metavar="N|thorough",
            help="Fresh points that an answer is attacked with before it is called found. Where none of n disagrees, "
            "it may still be wrong in about 3/n of the domain. thorough: 300, for a cheap function; empty: 8, and 2 "
            "for each variable.",
        ),
    ] = "",
    optimizer: Annotated[str, typer.Option(help="How constants are fitted: lm, BFGS, Nelder-Mead, ...")] = "",
    operators: Annotated[
        str, typer.Option(help="Operators, e.g. add,mul,sin,const, or science (20 of them); empty: the file's.")
    ] = "",
    grammar: Annotated[
        str,
        typer.Option(help="For vsr-mcts and mcts: a file of rules, or coefficients (leaves C*x, C*sin(x), ...)."),
    ] = "",
    log: Annotated[
        Path | None,
        typer.Option(help="CSV file in which every measurement is kept; a run with the same file goes on from it."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File in which the state of GP and MCTS is kept, every few seconds.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint, if it is there.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json, formula.tex and pictures (which need matplotlib).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")] = False,
    target: Annotated[str, typer.Option(help="Of a table (.csv, .parquet, .feather): the column to explain.")] = "",
    weights: Annotated[str, typer.Option(help="Of a table: a column of weights, inverse variances.")] = "",
    ignore: Annotated[list[str] | None, typer.Option(help="Of a table: a column to leave out. Once for each.")] = None,
    lab: Annotated[
        Path | None, typer.Option(help="Of a table: folder of a new laboratory that asks first what decides.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Of a table: processes; the result is the same.")] = 1,
) -> None:
    """Find the formula behind a function, a program or a benchmark problem. Ctrl-C returns the best so far.

    A Python function: vsr discover simulator.py:pressure --domain T=280:400 --domain n=1:3 --domain V=0.1:2

    A program, 8 at a time, each answer kept: vsr discover --command './sim {T} {p}' --domain T=280:400 --domain p=1:5
    --workers 8 --log points.csv

    A law with three variables, freed in a given order: vsr discover feynman-unit/I.39.22 --schedule x3,x2,x1

    A table of measurements, with nothing to ask: vsr discover table.csv --target y --ignore id

    A formula that has to be right, of a function that is cheap to ask: vsr discover FILE --verify thorough

    A run that can be killed, and goes on when it is started again: vsr discover FILE --max-queries 5000 --log F.csv

    A long run of GP or MCTS: vsr discover FILE --method vsr-gp --max-evaluations 9000000 --checkpoint F --resume
    """
    from deap_vsr.methods import discover
    from deap_vsr.table_command import discover_table, is_table
    from deap_vsr.terminal import live_progress, make_folder, print_result

    console, errors = Console(emoji=False), Console(stderr=True, emoji=False)
    if resume and checkpoint is None:
        raise VsrError("--resume needs --checkpoint, the file to go on from")
    if out is not None:
        make_folder(out)  # before a long search, not after it
    if is_table(problem):
        discover_table(
            Path(problem), target, weights, ignore or [], _operators(operators), seed, time_limit, max_evaluations, out,
            as_json, lab, jobs,
        )  # fmt: skip
        return
    if command and problem:
        raise VsrError(f"--command and {problem}: expected one of them")
    doors = Doors(domain or [], output or [], limit or [], feasible, workers, processes, noise_sd)
    entry: Entry | None = None
    level = noise_from(noise, noise_of, noise_kind)
    if adapter:
        entry = doors.of_adapter(adapter, problem, level, seed)
        asked, told, level = entry.oracle, dict[str, Any](), 0.0
        batch, max_queries = batch or entry.batch, max_queries or entry.max_queries or 0
    elif command:
        asked, told = doors.of_program(command, operators, timeout, retries, form, shell)
    else:
        asked, told = doors.of(problem)
    with live_progress(errors) as (progress, tick):
        result = discover(
            asked,
            method,
            **told,
            expansion=expansion or None,
            schedule=schedule or None,
            seed=seed,
            time_limit=time_limit or None,
            max_evaluations=max_evaluations or None,
            max_queries=max_queries or None,
            max_memory=max_memory or None,
            batch=batch,
            noise=level,
            verify=_points(verify),
            preset=preset or None,
            optimizer=optimizer or None,
            operators=_operators(operators),
            grammar=grammar or None,
            log=log,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
            tick=tick,
        )
    several = isinstance(result, dict)
    figures = entry.figures(result) if entry is not None else {}
    if as_json:
        more = {"adapter": {name: value if math.isfinite(value) else None for name, value in figures.items()}}
        print(json.dumps(result.to_json() | (more if entry is not None else {}), ensure_ascii=False))
    results: dict[str, Result] = result if several else {"": result}
    for name, each in results.items():
        if not as_json:
            if name:
                console.print(f"[bold]{escape(name)}[/bold]")
            print_result(each, console)
            if figures:
                shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
                console.print(f"{adapter.partition(':')[0]}: {shown}", highlight=False)
        folder = out if out is None or not name else out / re.sub(r"[^\w.=-]+", "-", name)
        for path in _written(each, folder, entry) if folder is not None else []:
            if not as_json:
                console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
    if any(each.stopped_by == "interrupted" for each in results.values()):
        raise typer.Exit(130)


def _written(result: Result, folder: Path, entry: Entry | None) -> list[Path]:
    """Write a result into a folder, and its answer as another benchmark wants it; returns the paths."""
    from deap_vsr.terminal import write_result

    paths = write_result(result, folder)
    if entry is not None and result.tree is not None:
        name, text = entry.written(result)
        write_atomically(folder / name, text)
        paths.append(folder / name)
    return paths


def _operators(text: str) -> list[str] | None:
    return text.split(",") if text else None


@dataclass(frozen=True)
class Doors:
    """What the command line says of a function or a program."""

    domains: list[str]
    outputs: list[str]
    limits: list[str]
    feasible: str
    workers: int
    processes: bool
    noise_sd: float

    def _told(self) -> dict[str, Any]:
        from deap_vsr.lab.domains import domain_of_text
        from deap_vsr.loading import attribute_of

        variables: dict[str, Any] = {}
        for text in self.domains:
            name, domain = domain_of_text(text)
            if name in variables:
                raise VsrError(f"--domain {text}: {name} is there twice")
            variables[name] = domain
        if not variables:
            raise VsrError("a function or program needs its variables: --domain T=280:400, once for each")
        told: dict[str, Any] = {"variables": variables, "workers": self.workers}
        if self.limits:
            limits = dict(map(domain_of_text, self.limits))
            told["limits"] = {name: (each.low, each.high) for name, each in limits.items()}
        if self.feasible:
            told["feasible"] = attribute_of(self.feasible, "--feasible")
        if self.noise_sd:
            told["noise_sd"] = self.noise_sd
        if len(self.outputs) == 1:
            told["output"] = self.outputs[0]
        elif self.outputs:
            told["outputs"] = self.outputs
        return told

    def of(self, problem: str) -> tuple[Any, dict[str, Any]]:
        """Return the problem, a function where one is named, and what `discover` is told of it."""
        from deap_vsr.loading import attribute_of

        if not problem:
            raise VsrError("nothing to ask: give a function (MODULE:NAME), an equation file, or --command")
        if ":" not in problem or Path(problem).exists():
            if self.domains or self.workers > 1:
                raise VsrError(f"--domain and --workers are for functions and programs; {problem} is none")
            return problem, {}
        return attribute_of(problem, "function"), {**self._told(), "processes": self.processes}

    def of_adapter(self, adapter: str, problem: str, noise: float | Noise, seed: int) -> Entry:
        """Return the problem of another benchmark; its noise is its own affair."""
        from deap_vsr.adapters import entry_of
        from deap_vsr.lab.domains import domain_of_text

        of = noise if isinstance(noise, Noise) else Noise(noise)
        if of.relative:
            raise VsrError("--noise-of is for equation files; the benchmarks of --adapter have noise of their own")
        domains: dict[str, Variable] = {}
        for text in self.domains:
            name, domain = domain_of_text(text)
            if isinstance(domain, list):
                raise VsrError(f"--domain {text}: expected NAME=LOW:HIGH")
            domains[name] = domain
        return entry_of(adapter, problem, domains, of.scale, of.kind, seed)

    def of_program(
        self, command: str, operators: str, timeout: float, retries: int, form: str, shell: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return the oracle of a program; `discover` needs to be told no more."""
        from deap_vsr.doors import FUNCTION_SET, limits_of
        from deap_vsr.lab.domains import inputs_of
        from deap_vsr.lab.programs import ProgramOracle

        told = self._told()
        inputs = inputs_of(told.pop("variables"))
        if inputs.categories:
            raise VsrError(
                f"--domain {next(iter(inputs.categories))}: categories are for functions; run each word alone"
            )
        told["limits"] = limits_of(told.get("limits"), inputs.variables)
        options: dict[str, Any] = {"form": form, "timeout": timeout or None, "retries": retries, "shell": shell}
        return ProgramOracle(command, inputs.variables, _operators(operators) or FUNCTION_SET, **options, **told), {}


def noise_from(level: float, of: str, kind: str) -> float | Noise:
    """Return the noise that ``--noise``, ``--noise-of`` and ``--noise-kind`` stand for."""
    if of not in ("", RMS):
        raise VsrError(f"--noise-of {of}: expected {RMS}, or nothing for a standard deviation")
    return Noise(level, kind, of or False) if of or kind != "normal" else level


def _points(verify: str) -> int | str | None:
    """Return what is given as --verify; what is no number is left as it is."""
    try:
        return int(verify) if verify else None
    except ValueError:
        return verify
