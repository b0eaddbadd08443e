"""What the tuned numbers of the search are worth: each is doubled and halved on a small fixed suite.

``python benchmarks/sensitivity.py --jobs 2`` prints, for every number of deap_vsr.lab, search and forms that is a
constant of a module or a default of its options, what changes: laws found, right and wrong, points and evaluations.
"""

import importlib
import inspect
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
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
#: Noise as a share of the spread of y; evaluations and points that a run may spend.
LEVELS, EVALUATIONS, POINTS = (0.0, 0.01), 1_000_000, 12_000


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
    for law in LAWS:
        for level in LEVELS:
            noise = Noise(level, relative=True) if level else 0.0
            try:
                result = discover(law, noise=noise, max_evaluations=EVALUATIONS, max_queries=POINTS)
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
) -> None:
    """Double and halve every number, and print what that changes."""
    names = [name for name in numbers() if only.lower() in name.lower()]
    work = [("", 1.0), *((name, factor) for name in names for factor in (2.0, 0.5))]
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        rows = list(track(pool.map(run, work), "running", total=len(work), console=Console(stderr=True)))
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
    runs = len(LAWS) * len(LEVELS)
    print(f"{len(names)} numbers, {runs} runs for each change; {changed} of {len(rows) - 1} changes make a difference")


if __name__ == "__main__":
    typer.run(main)
