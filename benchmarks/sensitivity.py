"""What the tuned numbers of the search are worth: each is doubled and halved on a small fixed suite.

``python benchmarks/sensitivity.py --jobs 2`` prints, for every number of deap_vsr.lab, search and forms that is a
constant of a module or a default of its options, what changes: laws found, right and wrong, points and evaluations.
With ``--out ROWS.jsonl`` it goes on where it was stopped.
"""

import importlib
import inspect
import json
import multiprocessing
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOMS = ("deap_vsr.lab", "deap_vsr.search", "deap_vsr.forms")
#: Laws of several kinds, each with its own operators: a sum, a product, a bell, an oscillation, a ratio.
LAWS = (
    "trigonometric/sincosinv/3-2-2/prog_0",
    "feynman-unit/I.39.22",
    "feynman-unit/I.6.20",
    "feynman-unit/I.50.26",
    "feynman-unit/I.27.6",
)
#: Evaluations and points of an exact run, and of one with noise; that as a share of the spread of y. In noise those
#: laws that take a second or two: there are some 400 changes.
EXACT, NOISY, NOISE = (1_000_000, 12_000), (200_000, 3000), 0.01
RUNS = (*((law, 0.0, EXACT) for law in LAWS), *((law, NOISE, NOISY) for law in LAWS[:2]))


def modules() -> list[ModuleType]:
    """Return all modules of the rooms."""
    found = []
    for room in map(importlib.import_module, ROOMS):
        found += [
            importlib.import_module(f"{room.__name__}.{item.name}") for item in pkgutil.iter_modules(room.__path__)
        ]
    return found


def numbers() -> list[str]:
    """Return the names of all tuned numbers: module.NAME, or module.Class.field."""
    names = []
    for module in modules():
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, int | float) and not isinstance(value, bool):
                names.append(f"{module.__name__}.{name}")
            elif is_dataclass(value) and inspect.isclass(value) and value.__module__ == module.__name__:
                names += [
                    f"{module.__name__}.{name}.{item.name}"
                    for item in fields(value)
                    if isinstance(item.default, int | float) and not isinstance(item.default, bool) and item.default
                ]
    return [name for name in names if _is_at_home(name)]


def _is_at_home(name: str) -> bool:
    """Whether a constant is defined in the module, and not imported into it."""
    module, _, attribute = name.rpartition(".")
    if module not in {item.__name__ for item in modules()}:
        return True
    text = inspect.getsource(importlib.import_module(module))
    return any(line.startswith(attribute) or f", {attribute}" in line.split("=")[0] for line in text.splitlines()
               if "=" in line and not line.startswith((" ", "#", "from", "import")))  # fmt: skip


def change(name: str, factor: float) -> None:
    """Multiply a number, wherever it is used."""
    module, _, attribute = name.rpartition(".")
    everything = modules()
    if module in {item.__name__ for item in everything}:
        old = getattr(importlib.import_module(module), attribute)
        new = _scaled(old, factor)
        for item in everything:
            if vars(item).get(attribute) is old:
                setattr(item, attribute, new)
            for value in vars(item).values() if isinstance(old, float) else ():  # small integers are one object
                for function in _functions(value):
                    replace_defaults(function, old, new)
        return
    home, _, owner = module.rpartition(".")
    kind: Any = getattr(importlib.import_module(home), owner)
    old = getattr(kind, attribute)
    setattr(kind, attribute, _scaled(old, factor))
    names = [item.name for item in fields(kind) if item.init]
    defaults = list(kind.__init__.__defaults__)
    defaults[names.index(attribute) - len(names)] = _scaled(old, factor)
    kind.__init__.__defaults__ = tuple(defaults)


def _functions(value: Any) -> list[FunctionType]:
    if isinstance(value, FunctionType):
        return [value]
    return [item for item in vars(value).values() if isinstance(item, FunctionType)] if inspect.isclass(value) else []


def replace_defaults(function: FunctionType, old: Any, new: Any) -> None:
    """Put `new` in place of `old` where it is a default."""
    if function.__defaults__ and any(value is old for value in function.__defaults__):
        function.__defaults__ = tuple(new if value is old else value for value in function.__defaults__)


def _scaled(value: float, factor: float) -> float:
    return type(value)(max(round(value * factor), 1)) if isinstance(value, int) else value * factor


def run(job: tuple[str, float]) -> dict[str, Any]:
    """Run the suite with one number changed; in a process of its own, as the change stays."""
    name, factor = job
    if name:
        change(name, factor)
    from deap_vsr import Noise, discover  # the methods are made of numbers as they are then

    right = wrong = failed = 0
    points, evaluations = [], []
    for law, level, (n_evaluations, n_points) in RUNS:
        noise = Noise(level, relative=True) if level else 0.0
        try:
            result = discover(law, noise=noise, max_evaluations=n_evaluations, max_queries=n_points)
        except Exception:  # a number may make no sense twice as large: that is told as well
            failed += 1
            continue
        near = result.verdict is not None and result.verdict.metrics["mse"] <= 0.01 * result.noise**2
        good = result.verdict is not None and (near if level else result.verdict.recovered)
        right += good
        wrong += not good and result.status == "found"
        points.append(result.oracle_queries)
        evaluations.append(result.evaluations)
    medians = {"points": float(np.median(points or [0])), "evaluations": float(np.median(evaluations or [0]))}
    return {"name": name, "factor": factor, "right": right, "wrong": wrong, "failed": failed, **medians}


def main(
    jobs: int = 1,
    only: Annotated[str, typer.Option(help="Only numbers whose name contains this.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also numbers that change nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="File of finished rows: those that it holds are not done again.")
    ] = None,
) -> None:
    """Double and halve every number, and print what that changes."""
    names = [name for name in numbers() if only.lower() in name.lower()]
    work = [("", 1.0), *((name, factor) for name in names for factor in (2.0, 0.5))]
    lines = out.read_text(encoding="utf-8").splitlines() if out is not None and out.exists() else []
    done = {(row["name"], row["factor"]): row for row in map(json.loads, lines)}
    missing = [job for job in work if job not in done]
    # Forked where the rooms are loaded; methods.py is not among them, as it takes numbers as they are.
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([module.__name__ for module in modules()])
    with ProcessPoolExecutor(jobs, mp_context=forked, max_tasks_per_child=1) as pool:
        for row in track(pool.map(run, missing), "running", total=len(missing), console=Console(stderr=True)):
            done[row["name"], row["factor"]] = row
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    rows = [done[job] for job in work]
    base = rows[0]
    table = Table("number", "times", "right", "wrong, called found", "failed", "points: median", "evaluations: median")
    changed = 0
    for row in rows:
        same = all(row[key] == base[key] for key in ("right", "wrong", "failed", "points", "evaluations"))
        changed += not same
        if everything or not same or row is base:
            title = row["name"].removeprefix("deap_vsr.") or "as it is"
            counts = (str(row[key]) for key in ("right", "wrong", "failed"))
            figures = (*counts, f"{row['points']:.0f}", f"{row['evaluations']:.0f}")
            table.add_row(title, f"{row['factor']:g}", *figures)
    Console().print(table)
    changes = f"{changed} of {len(rows) - 1} changes make a difference"
    print(f"{len(names)} numbers, {len(RUNS)} runs for each change; {changes}")


if __name__ == "__main__":
    typer.run(main)
