"""What an experiment is about: ``lab.json``, its knobs, its instrument, and how it is read and written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import deap_vsr
from deap_vsr.errors import EquationError, VsrError, printable, short
from deap_vsr.lab.oracle import Relative
from deap_vsr.problems.equation import Variable
from deap_vsr.tree.operators import normalise_function_set

SCHEMA = 1
FILE = "lab.json"
#: Columns of the tables that are no variables.
RESERVED = ("id", "batch", "why", "status", "sigma", "n", "valid", "comment")
#: What those are called where a variable has their name.
_OTHERWISE = {"sigma": "standard error", "n": "repeats"}
#: Knobs are set to so many digits, where nothing else is said: what people read off a dial.
DIGITS = 3
#: How far off its set point a knob may be, as a share of its range, to count as set.
TOLERANCE = 0.05
#: Operators that an answer may use, where nothing else is said: those that most laws of laboratories are made of.
OPERATORS = ("add", "sub", "mul", "div", "n2", "sqrt", "exp", "log", "const")
#: Sheets, and measurements in all, where nothing else is said.
SHEET, POINTS = 12, 200
#: Expressions evaluated over a trial, at the most, in each look at what was measured: some seconds' work. There is no
#: clock in a campaign, as it is replayed.
EVALUATIONS = 2_000_000
#: A name longer than this fits no table; a folder with more variables than this is no laboratory.
MAX_NAME, MAX_VARIABLES = 60, 100

Noise = float | Relative | None


class SetupError(VsrError, ValueError):
    """A laboratory whose ``lab.json`` cannot be used; the message names the field, what was found and expected."""


@dataclass(frozen=True)
class Setup:
    """What an experiment is about.

    Attributes
    ----------
    variables : the knobs
    tolerances : how far off its set point each knob may be, in its own unit
    output, unit : what is measured
    operators : that an answer may use
    noise : standard deviation of the instrument, a share of the reading, 0 for exact; None: found out by repeats
    sheet : measurements of a sheet
    points : measurements in all, at the most
    seed : of the whole campaign
    version : that made the folder
    """

    variables: tuple[Variable, ...]
    tolerances: tuple[float, ...]
    output: str = "y"
    unit: str = ""
    operators: tuple[str, ...] = OPERATORS
    noise: Noise = None
    sheet: int = SHEET
    points: int = POINTS
    seed: int = 0
    evaluations: int = EVALUATIONS
    version: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    def column(self, name: str) -> str:
        """Return what a column of the tables is called that is no variable: another name where a variable has it."""
        return _OTHERWISE.get(name, name) if name in (*self.names, self.output) else name

    def sigma(self, y: float) -> float:
        """Return the stated standard deviation of a reading; NaN where none is stated."""
        if self.noise is None:
            return math.nan
        return self.noise.share * abs(y) if isinstance(self.noise, Relative) else self.noise

    def text(self) -> str:
        """Return it as the text of ``lab.json``."""
        knobs = [
            {
                "name": variable.name,
                "unit": variable.unit,
                "low": variable.low,
                "high": variable.high,
                "sampling": variable.sampling,
                **({"step": variable.step} if variable.step else {"digits": variable.digits}),
                "cost": variable.cost,
                "tolerance": tolerance,
            }
            for variable, tolerance in zip(self.variables, self.tolerances, strict=True)
        ]
        noise = f"{100 * self.noise.share:.12g} %" if isinstance(self.noise, Relative) else self.noise
        document = {
            "schema": SCHEMA,
            "version": self.version,
            "output": {"name": self.output, "unit": self.unit},
            "variables": knobs,
            "operators": list(self.operators),
            "noise": noise,
            "sheet": self.sheet,
            "points": self.points,
            "seed": self.seed,
            "evaluations": self.evaluations,
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def setup_of(document: Any, source: str = FILE) -> Setup:
    """Return a setup from the values of ``lab.json``; SetupError names the field, what was found and expected."""
    if not isinstance(document, dict):
        raise _wrong(source, "", document, "an object")
    known = {"schema", "version", "output", "variables", "operators", "noise", "sheet", "points", "seed", "evaluations"}
    for field in document:
        if field not in known:
            raise _wrong(source, str(field), "an unknown field", ", ".join(sorted(known)))
    schema = document.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise _wrong(source, "schema", schema, f"{SCHEMA}; a folder of a later version needs that version")
    output = document.get("output", "y")
    output = output if isinstance(output, dict) else {"name": output}
    listed = document.get("variables")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_VARIABLES:
        raise _wrong(source, "variables", listed, f"a list of 1 to {MAX_VARIABLES} variables")
    knobs = [_knob(entry, f"variables[{i}]", source) for i, entry in enumerate(listed)]
    setup = Setup(
        variables=tuple(variable for variable, _ in knobs),
        tolerances=tuple(tolerance for _, tolerance in knobs),
        output=_text(output.get("name", "y"), "output.name", source),
        unit=_text(output.get("unit", ""), "output.unit", source, empty=True),
        operators=_operators(document.get("operators", list(OPERATORS)), source),
        noise=noise_of(document.get("noise"), f"{source}: noise"),
        sheet=_count(document.get("sheet", SHEET), "sheet", source, 1, 1000),
        points=_count(document.get("points", POINTS), "points", source, 1, 100_000),
        seed=_count(document.get("seed", 0), "seed", source, 0, 2**63),
        evaluations=_count(document.get("evaluations", EVALUATIONS), "evaluations", source, 1, 10**12),
        version=_text(document.get("version", deap_vsr.__version__), "version", source, empty=True),
    )
    _check_names(setup, source)
    return setup


def read_setup(folder: Path) -> Setup:
    """Return the setup of a folder."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SetupError(f"{folder}: no laboratory there, {FILE} is missing; `vsr lab init` makes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: cannot be read: {error}") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path}: is no JSON: {short(str(error))}") from None
    return setup_of(document, str(path))


def knob(text: str) -> dict[str, Any]:
    """Return an entry of ``variables`` from a text such as ``T=280:400`` or ``T[K]=280:400:0.5``.

    Behind the range may follow a step, ``log`` (spread over decades), and ``cost=3`` (dear to change).
    """
    match = re.fullmatch(r"\s*([^=\[\]]+?)\s*(?:\[([^\]]*)\])?\s*=\s*(.*)", text)
    if match is None:
        raise SetupError(f"--knob {short(text)}: expected NAME=LOW:HIGH or NAME[unit]=LOW:HIGH:STEP")
    entry: dict[str, Any] = {"name": match[1], "unit": match[2] or ""}
    for part in map(str.strip, match[3].split(":")):
        if part == "log":
            entry["sampling"] = "loguniform"
        elif part.startswith("cost="):
            entry["cost"] = _number(part[5:], f"--knob {short(text)}: cost")
        else:
            field = next((name for name in ("low", "high", "step") if name not in entry), None)
            if field is None:
                raise SetupError(f"--knob {short(text)}: {short(part)} is too much; expected LOW:HIGH:STEP")
            entry[field] = _number(part, f"--knob {short(text)}: {field}")
    if "high" not in entry:
        raise SetupError(f"--knob {short(text)}: expected a range LOW:HIGH")
    return entry


def noise_of(given: Any, field: str = "noise") -> Noise:
    """Return what is stated of the noise: a number, a share as ``1 %``, 0 or ``exact``, or None if nothing is."""
    if given is None or isinstance(given, Relative):
        return given
    if isinstance(given, str):
        text = given.strip().lower()
        if text in ("", "unknown"):
            return None
        if text == "exact":
            return 0.0
        size = _number(text.rstrip("% "), field)
        return Relative(_least(size / 100.0, field)) if text.endswith("%") else _least(size, field)
    return _least(_number(given, field), field)


def entries_of(variables: Mapping[str, Any] | Sequence[Any]) -> list[dict[str, Any]]:
    """Return entries of ``variables``: of a mapping of names to pairs or fields, of Variables, or of entries."""
    if isinstance(variables, Mapping):
        given: list[Any] = []
        for name, value in variables.items():
            if isinstance(value, Variable):
                given.append(replace(value, name=name))
            elif isinstance(value, Mapping):
                given.append({"name": name, **value})
            else:
                low, high = _pair(name, value)
                given.append({"name": name, "low": low, "high": high})
        return entries_of(given)
    entries = []
    for value in variables:
        if isinstance(value, Variable):
            more = [key for key in ("step", "digits") if getattr(value, key)]
            entries.append(
                {key: getattr(value, key) for key in ("name", "unit", "low", "high", "sampling", "cost", *more)}
            )
        else:
            entries.append(dict(value) if isinstance(value, Mapping) else value)
    return entries


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise SetupError(f"variables: {short(name)} is {short(value)}, expected a pair (low, high)") from None
    return low, high


# --- one field --------------------------------------------------------------------------------


def _knob(entry: Any, field: str, source: str) -> tuple[Variable, float]:
    if not isinstance(entry, dict):
        raise _wrong(source, field, entry, "an object with name, low and high")
    known = {"name", "unit", "low", "high", "sampling", "step", "digits", "cost", "tolerance"}
    for key in entry:
        if key not in known:
            raise _wrong(source, f"{field}.{short(key)}", "an unknown field", ", ".join(sorted(known)))
    name = _text(entry.get("name"), f"{field}.name", source)
    low, high = (_number(entry.get(key), f"{source}: {field}.{key}") for key in ("low", "high"))
    step = _number(entry.get("step", 0.0), f"{source}: {field}.step")
    digits = 0 if step else _count(entry.get("digits", DIGITS), f"{field}.digits", source, 1, 15)
    cost = _number(entry.get("cost", 0.0), f"{source}: {field}.cost")
    sampling = _text(entry.get("sampling", "uniform"), f"{field}.sampling", source)
    unit = _text(entry.get("unit", ""), f"{field}.unit", source, empty=True)
    try:
        variable = Variable(name, low, high, sampling, "", name, cost, unit, step, digits)
    except EquationError as error:
        raise SetupError(f"{source}: {field}: {error}") from None
    tolerance = _number(entry.get("tolerance", TOLERANCE * (high - low)), f"{source}: {field}.tolerance")
    return variable, _least(tolerance, f"{source}: {field}.tolerance")


def _check_names(setup: Setup, source: str) -> None:
    seen: set[str] = set()
    for name in (*setup.names, setup.output):
        if name in RESERVED and name not in _OTHERWISE:
            raise _wrong(source, "variables", name, "another name: this one is a column of the tables")
        if name in seen or (name in _OTHERWISE.values() and len(seen) < len(setup.names)):
            raise _wrong(source, "variables", name, "a name of its own for each")
        if name != name.strip() or any(sign in name for sign in ',;"\t[]()'):
            raise _wrong(source, "variables", name, "a name without commas, quotes, brackets, and blanks at its ends")
        seen.add(name)


def _operators(given: Any, source: str) -> tuple[str, ...]:
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise _wrong(source, "operators", given, "a list of names such as add, mul, exp, const")
    try:
        operators = normalise_function_set(given)
    except VsrError as error:
        raise SetupError(f"{source}: operators: {error}") from None
    if not set(operators) - {"const"}:
        raise _wrong(source, "operators", given, "at least one operator beside const")
    return operators


def _text(value: Any, field: str, source: str, empty: bool = False) -> str:
    if not isinstance(value, str) or not (empty or value.strip()) or len(value) > MAX_NAME or printable(value) != value:
        raise _wrong(source, field, value, f"a text of {0 if empty else 1} to {MAX_NAME} signs on one line")
    return value


def _count(value: Any, field: str, source: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _wrong(source, field, value, f"a whole number from {least} to {most}")
    return value


def _number(value: Any, field: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SetupError(f"{field}: found {short(value)}, expected a finite number")
    return number


def _least(value: float, field: str) -> float:
    if value < 0:
        raise SetupError(f"{field}: found {value:g}, expected a number of at least 0")
    return value


def _wrong(source: str, field: str, found: object, expected: str) -> SetupError:
    where = f"{source}: {field}" if field else source
    return SetupError(f"{where}: found {short(found)}, expected {expected}")
