"""``vsr discover``: find the formula behind a problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from deap_vsr.errors import VsrError


def discover_command(
    problem: Annotated[str, typer.Argument(help="Name (feynman-unit/I.39.22) or path of an equation file.")],
    method: Annotated[
        str,
        typer.Option(
            help="vsr (slots solved one by one), vsr-gp or vsr-mcts (the paper's), gp or mcts (all variables at once), "
            "gplearn, pyoperon or pysr (other packages), or MODULE:NAME of a method of your own."
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
    batch: Annotated[
        int | None, typer.Option(help="Points handed to the oracle at once, at the most, 1 or more; default: no limit.")
    ] = None,
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of normal noise on y.")] = 0.0,
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
    operators: Annotated[str, typer.Option(help="Operators allowed, e.g. add,mul,sin,const; empty: the file's.")] = "",
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
) -> None:
    """Find the formula behind a problem. Ctrl-C returns the best so far.

    A law with three variables, freed in a given order: vsr discover feynman-unit/I.39.22 --schedule x3,x2,x1

    A formula that has to be right, of a function that is cheap to ask: vsr discover FILE --verify thorough

    A run that can be killed, and goes on when it is started again: vsr discover FILE --max-queries 5000 --log F.csv

    A long run of GP or MCTS: vsr discover FILE --method vsr-gp --max-evaluations 9000000 --checkpoint F --resume
    """
    from deap_vsr.methods import discover
    from deap_vsr.terminal import live_progress, make_folder, print_result, write_result

    console, errors = Console(emoji=False), Console(stderr=True, emoji=False)
    if resume and checkpoint is None:
        raise VsrError("--resume needs --checkpoint, the file to go on from")
    if out is not None:
        make_folder(out)  # before a long search, not after it
    with live_progress(errors) as (progress, tick):
        result = discover(
            problem,
            method,
            expansion=expansion or None,
            schedule=schedule or None,
            seed=seed,
            time_limit=time_limit or None,
            max_evaluations=max_evaluations or None,
            max_queries=max_queries or None,
            batch=batch,
            noise=noise,
            verify=_points(verify),
            preset=preset or None,
            optimizer=optimizer or None,
            operators=operators.split(",") if operators else None,
            grammar=grammar or None,
            log=log,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
            tick=tick,
        )
    if as_json:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        print_result(result, console)
    for path in write_result(result, out) if out is not None else []:
        if not as_json:
            console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
    if result.stopped_by == "interrupted":
        raise typer.Exit(130)


def _points(verify: str) -> int | str | None:
    """Return what is given as --verify; what is no number is left as it is."""
    try:
        return int(verify) if verify else None
    except ValueError:
        return verify
