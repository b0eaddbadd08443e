"""The doors of `discover`: an equation, an oracle, a function; one for each of several outputs or categories."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from deap_vsr.errors import VsrError, short
from deap_vsr.lab.domains import Domains, inputs_of
from deap_vsr.lab.functions import FunctionOracle, arguments
from deap_vsr.lab.log import Log
from deap_vsr.lab.oracle import EquationOracle, Noise, Oracle, View
from deap_vsr.lab.outputs import Shared
from deap_vsr.lab.streams import StreamOracle
from deap_vsr.problems.equation import Equation, Variable, load_equation
from deap_vsr.tree.operators import NAMED_SETS, normalise_function_set

#: What may be asked: a name or path of an equation file, an Equation, an oracle, a function.
Problem = str | Path | Equation | Oracle | Callable[..., Any]
#: What an answer may use where nobody says: wide enough for most laws, and nothing that passes for anything.
FUNCTION_SET = ("add", "sub", "mul", "div", "n2", "n3", "sqrt", "exp", "log", "sin", "cos", "const")
#: A search for each combination of categories; more are hardly meant.
MAX_SEARCHES = 50
_TABLE = (
    "a table cannot be asked for y at settings of our choice, which is what this search does: give a function of it, "
    'discover(f, variables={"T": (280, 400)}), or a log of points that were measured before, log="points.csv"'
)


@dataclass(frozen=True)
class Asked:
    """What `discover` was told of a function beside the function itself; see there."""

    variables: Domains | None = None
    outputs: Sequence[str] | None = None
    workers: int = 1
    processes: bool = False
    feasible: Callable[[Mapping[str, float]], Any] | None = None
    limits: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | None = None
    call: str = "auto"
    about: dict[str, Any] = field(default_factory=dict)

    def told(self) -> list[str]:
        """Return the names of what was told."""
        usual = Asked()
        names = ("variables", "outputs", "workers", "processes", "feasible", "limits", "call")
        return [name for name in names if getattr(self, name) != getattr(usual, name)] + list(self.about)


@dataclass(frozen=True)
class Door:
    """What one search asks: its oracle, the log it is asked with, the equation behind it if that is known.

    ``label`` says which of several it is.
    """

    oracle: Oracle
    log: str | Path | Log | None = None
    equation: Equation | None = None
    label: str = ""


def doors(
    problem: Problem,
    noise: Noise | float,
    seed: int,
    operators: str | Sequence[str] | None,
    log: str | Path | None,
    asked: Asked,
) -> list[Door]:
    """Return what to search: one door, or one for each output and each combination of categories."""
    allowed = None if operators is None else operators_of(operators)
    if isinstance(problem, str | Path) and str(problem).lower().endswith((".csv", ".tsv", ".xlsx", ".parquet")):
        raise VsrError(f"{short(str(problem))}: {_TABLE}")
    is_oracle = hasattr(problem, "evaluate") and hasattr(problem, "variables")
    if not is_oracle and (hasattr(problem, "columns") or isinstance(problem, np.ndarray | list | tuple | dict)):
        raise VsrError(f"a {type(problem).__name__}: {_TABLE}")
    if callable(problem) and not is_oracle:
        return _of_function(problem, noise, seed, allowed or FUNCTION_SET, log, asked)
    if asked.told():
        raise VsrError(f"{', '.join(asked.told())}: for a function; an equation file or an oracle says it itself")
    if isinstance(problem, str | Path):
        problem = load_equation(problem)
    if isinstance(problem, Equation):
        equation = problem if allowed is None else replace(problem, function_set=allowed)
        return [Door(EquationOracle(equation, noise, seed), log, equation)]
    if not is_oracle:
        kinds = "a name, a path, an Equation, an oracle or a function"
        raise VsrError(f"a problem is {kinds}, not a {type(problem).__name__}")
    if noise:
        raise VsrError("noise is for equation files; give an oracle of your own its noise when you make it")
    if isinstance(problem, StreamOracle) and problem.outputs:
        own = copy.copy(problem)
        own.function_set = allowed or problem.function_set
        return _of_outputs(own, log)
    oracle = cast(Oracle, problem)
    return [Door(oracle if allowed is None else View(oracle, function_set=allowed), log)]


def operators_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return a function set as people give it; VsrError for text that is no set, for nothing, and for numbers alone."""
    if isinstance(names, str) and names not in NAMED_SETS:
        raise VsrError(f"operators: found the text {short(names)!r}, expected a list such as {names.split(',')!r}")
    allowed = normalise_function_set(names)
    if not set(allowed) - {"const"}:
        raise VsrError(f"operators: no operator among them, {'only const' if allowed else 'nothing at all'}")
    return allowed


def _of_function(
    function: Callable[..., Any],
    noise: Noise | float,
    seed: int,
    allowed: tuple[str, ...],
    log: str | Path | None,
    asked: Asked,
) -> list[Door]:
    """Return the doors of a function."""
    if asked.variables is None:
        raise VsrError('a function needs variables: discover(f, variables={"T": (280, 400), "p": (1, 5)})')
    inputs = inputs_of(asked.variables, [p.name for p in arguments(function) if p.default is p.empty])
    if isinstance(asked.outputs, str):
        raise VsrError(f"outputs: found the text {short(asked.outputs)!r}, expected a list of names")
    combinations = list(itertools.product(*inputs.categories.values()))
    if len(combinations) * max(len(asked.outputs or ()), 1) > MAX_SEARCHES:
        raise VsrError(f"variables: {len(combinations)} combinations of categories, each a search; expected fewer")
    found = []
    for words in combinations:
        fixed = dict(zip(inputs.categories, words, strict=True))
        oracle = FunctionOracle(
            function,
            inputs.variables,
            allowed,
            call=asked.call,
            fixed=fixed,
            workers=asked.workers,
            processes=asked.processes,
            outputs=tuple(asked.outputs or ()),
            feasible=_with(asked.feasible, fixed),
            limits=limits_of(asked.limits, inputs.variables),
            noise=noise,
            seed=seed,
            **asked.about,
        )
        label = ", ".join(f"{name}={word}" for name, word in fixed.items())
        path = log if log is None or not label else _beside(Path(log), label)
        for door in _of_outputs(oracle, path):
            found.append(replace(door, label=", ".join(filter(None, (label, door.label)))))
    return found


def _of_outputs(oracle: StreamOracle, log: str | Path | None) -> list[Door]:
    if not oracle.outputs:
        return [Door(oracle, log)]
    shared = Shared(oracle, log)
    return [Door(*shared.of(output), label=output) for output in oracle.outputs]


def _with(
    feasible: Callable[[Mapping[str, Any]], Any] | None, fixed: dict[str, Any]
) -> Callable[[Mapping[str, Any]], Any] | None:
    if feasible is None or not fixed:
        return feasible
    return lambda row: feasible({**row, **fixed})


def _beside(path: Path, label: str) -> Path:
    """Return the file of one combination of categories: points-material-steel.csv beside points.csv."""
    return path.with_name(f"{path.stem}-{re.sub(r'[^A-Za-z0-9.]+', '-', label)}{path.suffix}")


def limits_of(
    limits: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | None, variables: Sequence[Variable]
) -> list[tuple[float, float]] | None:
    """Return how far each variable may be asked; what is not said is its domain."""
    if limits is None:
        return None
    if not isinstance(limits, Mapping):
        return [(float(low), float(high)) for low, high in limits]
    unknown = [name for name in limits if name not in {v.name for v in variables}]
    if unknown:
        names = ", ".join(v.name for v in variables)
        raise VsrError(f"limits: {', '.join(unknown)} is none of the variables {names}")
    found = []
    for variable in variables:
        low, high = limits.get(variable.name, variable.bounds)
        least, largest = variable.bounds
        if not (low <= least and largest <= high):
            what = f"found ({low:g}, {high:g}), expected at least its domain ({least:g}, {largest:g})"
            raise VsrError(f"limits: {variable.name}: {what}")
        found.append((float(low), float(high)))
    return found
