"""Equation files: one benchmark problem each; read, checked, written.

The format is described in docs/equation-files.md and docs/equation.schema.json.
"""

from __future__ import annotations

import difflib
import json
import math
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deap_vsr.errors import EquationError, UnknownOperatorError
from deap_vsr.problems import suites
from deap_vsr.problems.dialects import read_document
from deap_vsr.tree import MaskedTree, format_number, operators
from deap_vsr.tree.operators import Array

#: Largest file that is read, in bytes. A problem with 1,000 variables has about 120,000.
MAX_BYTES = 1_000_000
MAX_VARIABLES = 5_000
MAX_TOKENS = 20_000

SAMPLINGS = ("uniform", "loguniform", "integer")
SIGNS = ("positive", "both", "as_range")


@dataclass(frozen=True)
class Variable:
    """One input: its name x1, x2, ..., its symbol in the law, and how values are drawn.

    ``sampling`` is uniform, loguniform or integer (`high` excluded). ``sign`` is positive (draw in
    [low, high]), both (draw the magnitude, then a sign) or as_range (uniform, low may be < 0); by default positive, or
    as_range where `low` is negative. ``unit`` is a text.
    ``cost`` is what changing it costs, in any unit: the dearer, the seldomer it is changed within a batch.
    A knob that cannot be set to every value has a ``step``, or so many significant ``digits``; 0: to every value.
    """

    name: str
    low: float
    high: float
    sampling: str = "uniform"
    sign: str = ""
    symbol: str = ""
    cost: float = 0.0
    unit: str = ""
    step: float = 0.0
    digits: int = 0

    def __post_init__(self) -> None:
        for field, value in (("low", self.low), ("high", self.high)):
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise EquationError(f"variable {self.name}", field, value, "a finite number")
        if not self.sign:
            object.__setattr__(self, "sign", "as_range" if self.low < 0 else "positive")
        problem = _range_problem(self.low, self.high, self.sampling, self.sign)
        if problem is not None:
            raise EquationError(f"variable {self.name}", "", *problem)
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise EquationError(f"variable {self.name}", "cost", self.cost, "a finite number >= 0")
        if not (math.isfinite(self.step) and 0 <= self.step <= self.high - self.low):
            raise EquationError(f"variable {self.name}", "step", self.step, "a number >= 0, at most high - low")
        if not 0 <= self.digits <= 15:
            raise EquationError(f"variable {self.name}", "digits", self.digits, "a whole number from 0 to 15")

    @property
    def stepped(self) -> bool:
        """Whether it cannot be set to every value: what is held may be a short number by itself."""
        return self.sampling == "integer" or self.step > 0 or self.digits > 0

    def with_range(self, low: float, high: float) -> Variable:
        """Return the variable with another range; itself where values cannot be drawn from that one."""
        return self if _range_problem(low, high, self.sampling, self.sign) else replace(self, low=low, high=high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that can be drawn."""
        whole = self.sampling == "integer"
        least = float(math.ceil(self.low)) if whole else self.low
        largest = float(math.ceil(self.high) - 1) if whole else self.high
        return (-largest, largest) if self.sign == "both" else (least, largest)


@dataclass(frozen=True)
class Equation:
    """One problem: variables with their domains, operators allowed, and the hidden formula."""

    name: str
    variables: tuple[Variable, ...]
    function_set: tuple[str, ...]
    tree: MaskedTree
    formula: str
    group: str = ""
    usable: bool = True
    reason: str = ""
    judge: str = "full"

    @property
    def n_vars(self) -> int:
        """Number of variables."""
        return len(self.variables)

    def evaluate(self, X: Array) -> Array:
        """Return the hidden formula's values, without noise, for X of shape (n_points, n_vars)."""
        return self.tree.evaluate(X)


def load_equation(name: str | Path) -> Equation:
    """Load a problem by path, or by name from the data folder (``feynman/I.39.22``).

    Raises
    ------
    EquationError
        Naming the file, the field, the value found and what was expected.
    """
    path = Path(name)
    if not suites.is_there(path, Path.is_file):
        path = suites.data_root() / f"{name}.json"
        if not suites.is_there(path, Path.is_file):
            close = difflib.get_close_matches(str(name), suites.problem_names(), n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else "; `vsr data list` shows the names"
            raise EquationError(str(name), "", "neither a file nor the name of a problem", f"a path or a name{hint}")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise EquationError(str(name), "", error.strerror or "an error", "a file that can be read") from None
    if raw.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip() == b"1":
        raise EquationError(str(name), "first line", "1 (an encrypted file)", "a file that is not encrypted")
    if len(raw) > MAX_BYTES:
        raise EquationError(str(name), "", f"more than {MAX_BYTES} bytes", f"at most {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EquationError(str(name), "", f"byte {error.start} that is not UTF-8", "UTF-8 text") from None
    return parse_equation(text, str(name), default_name=suites.name_of(path))


def parse_equation(text: str, source: str = "<text>", default_name: str = "") -> Equation:
    """Read the text of an equation file, in our format or a known dialect."""
    document = read_document(text, source)
    n_vars = _count(document, source)
    variables = _variables(document, n_vars, source)
    tree = _tree(document, n_vars, source)
    function_set = _function_set(document, tree, source)
    judge = _text(document, "judge", "full", source)
    if judge not in ("full", "fit"):
        raise EquationError(source, "judge", judge, "full or fit")
    usable = document.get("usable", True)
    if not isinstance(usable, bool):
        raise EquationError(source, "usable", usable, "true or false")
    return Equation(
        name=_text(document, "name", default_name or source, source),
        variables=variables,
        function_set=function_set,
        tree=tree,
        formula=_text(document, "formula", "", source) or tree.to_infix(),
        group=_text(document, "group", f"m={n_vars}", source),
        usable=usable,
        reason=_text(document, "reason", "", source),
        judge=judge,
    )


def format_equation(equation: Equation) -> str:
    """Return the text of the equation file, the same bytes for the same equation."""
    fields: dict[str, Any] = {
        "num_vars": equation.n_vars,
        "var_domains": [[_plain(v.low), _plain(v.high)] for v in equation.variables],
        "function_set": list(equation.function_set),
        "equation": [list(token) for token in equation.tree.to_tokens()],
        "name": equation.name,
        "group": equation.group,
        "formula": equation.formula,
        "variables": [
            {
                "name": v.name,
                "symbol": v.symbol,
                "low": _plain(v.low),
                "high": _plain(v.high),
                "sampling": v.sampling,
                "sign": v.sign,
                **({"cost": _plain(v.cost)} if v.cost else {}),
                **({"unit": v.unit} if v.unit else {}),
            }
            for v in equation.variables
        ],
        "usable": equation.usable,
        "reason": equation.reason,
        "judge": equation.judge,
    }
    lines = []
    for key, value in fields.items():
        if key == "variables":
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f' "variables": [\n  {rows}]')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{" + ",\n".join(lines)[1:] + "}\n"


def _plain(value: float) -> int | float:
    """Return whole numbers as int, so that the file says 10 and not 10.0."""
    return int(value) if format_number(value).lstrip("-").isdigit() else value


def _required(document: dict[str, Any], key: str, expected: str, source: str, prefix: str = "") -> Any:
    if key not in document:
        raise EquationError(source, f"{prefix}{key}", "no such key", expected)
    return document[key]


def _text(document: dict[str, Any], key: str, default: str, source: str, prefix: str = "") -> str:
    value = document.get(key, default)
    if not isinstance(value, str):
        raise EquationError(source, f"{prefix}{key}", value, "a text")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise EquationError(source, f"{prefix}{key}", value, "text that can be written in UTF-8")
    return value


def _count(document: dict[str, Any], source: str) -> int:
    expected = f"a whole number from 1 to {MAX_VARIABLES}"
    value = _required(document, "num_vars", expected, source)
    if isinstance(value, str) and value.isascii() and value.strip().isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_VARIABLES:
        raise EquationError(source, "num_vars", value, expected)
    return value


def _list(document: dict[str, Any], key: str, length: int | None, expected: str, source: str) -> Sequence[Any]:
    value = _required(document, key, expected, source)
    if not isinstance(value, list | tuple):
        raise EquationError(source, key, value, expected)
    if length is not None and len(value) != length:
        raise EquationError(source, key, f"{len(value)} entries", f"{length}, as num_vars says")
    return value


def _variables(document: dict[str, Any], n_vars: int, source: str) -> tuple[Variable, ...]:
    if "variables" in document:
        entries = _list(document, "variables", n_vars, "a list of variables", source)
        return tuple(_variable(entry, i, source) for i, entry in enumerate(entries))
    domains = _list(document, "var_domains", n_vars, "[[low, high], ...], one pair for each variable", source)
    variables = []
    for i, domain in enumerate(domains):
        field = f"var_domains[{i}]"
        if not isinstance(domain, list | tuple) or len(domain) != 2:
            raise EquationError(source, field, domain, "[low, high]")
        low, high = (_finite(bound, field, source) for bound in domain)
        sign = "as_range" if low < 0 else "positive"
        name = f"x{i + 1}"
        variables.append(_checked_variable(name, low, high, "uniform", sign, name, field, source))
    return tuple(variables)


def _variable(entry: Any, index: int, source: str) -> Variable:
    field, name = f"variables[{index}]", f"x{index + 1}"
    if not isinstance(entry, dict):
        raise EquationError(source, field, entry, "an object with name, low, high, sampling, sign")
    if entry.get("name", name) != name:
        raise EquationError(source, f"{field}.name", entry["name"], f"{name}, as variables are listed in order")
    for key, allowed in (("sampling", SAMPLINGS), ("sign", SIGNS)):
        if entry.get(key, allowed[0]) not in allowed:
            raise EquationError(source, f"{field}.{key}", entry[key], ", ".join(allowed))
    low, high = (
        _finite(_required(entry, key, "a number", source, f"{field}."), f"{field}.{key}", source)
        for key in ("low", "high")
    )
    sampling, sign = entry.get("sampling", "uniform"), entry.get("sign", "positive")
    symbol = _text(entry, "symbol", name, source, f"{field}.")
    variable = _checked_variable(name, low, high, sampling, sign, symbol, field, source)
    cost = _finite(entry.get("cost", 0.0), f"{field}.cost", source, "a finite number >= 0")
    if cost < 0:
        raise EquationError(source, f"{field}.cost", cost, "a finite number >= 0")
    return replace(variable, cost=cost, unit=_text(entry, "unit", "", source, f"{field}."))


def _finite(value: Any, field: str, source: str, expected: str = "a finite number") -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise EquationError(source, field, value, expected)
    return number


def _checked_variable(
    name: str, low: float, high: float, sampling: str, sign: str, symbol: str, field: str, source: str
) -> Variable:
    problem = _range_problem(low, high, sampling, sign)
    if problem is not None:
        raise EquationError(source, field, *problem)
    return Variable(name, low, high, sampling, sign, symbol)


def _range_problem(low: float, high: float, sampling: str, sign: str) -> tuple[str, str] | None:
    """Return what was found and what was expected, if values cannot be drawn so."""
    found = f"low {low:g}, high {high:g}"
    if sampling not in SAMPLINGS:
        return sampling, ", ".join(SAMPLINGS)
    if sign not in SIGNS:
        return sign, ", ".join(SIGNS)
    if not (math.isfinite(low) and math.isfinite(high)):
        return found, "finite numbers"
    if not low < high:
        return found, "low < high"
    if not math.isfinite(high - low):
        return found, "a range whose width is finite"
    if sampling == "integer" and max(-low, high) > 2**53:
        return found, "whole numbers up to 2**53"
    if sign == "as_range":
        if sampling == "loguniform":
            return "loguniform with sign as_range", "uniform or integer with as_range"
    elif low < 0 or (low == 0 and sampling == "loguniform"):
        bound = "low > 0" if sampling == "loguniform" else "low >= 0"
        return found, f"{bound} for {sampling}, sign {sign}"
    if sampling == "loguniform" and not math.isfinite(high / low):
        return found, "for loguniform a high that is at most 1e308 times low"
    if sampling == "integer" and math.ceil(low) >= math.ceil(high):
        return found, "at least one whole number from low up to, not including, high"
    return None


def _tree(document: dict[str, Any], n_vars: int, source: str) -> MaskedTree:
    tokens = _list(document, "equation", None, "a pre-order list of [text, kind] pairs", source)
    if not tokens or len(tokens) > MAX_TOKENS:
        raise EquationError(source, "equation", f"{len(tokens)} tokens", f"1 to {MAX_TOKENS} tokens")
    missing = 1
    for i, (text, kind) in enumerate(tokens):
        field = f"equation[{i}]"
        if missing == 0:
            raise EquationError(source, field, f"extra token {text!r}", "the end, as the expression is complete")
        if kind == "var":
            if not 1 <= _variable_number(text) <= n_vars:
                raise EquationError(source, field, f"variable {text}", f"x1..x{n_vars} (or X_0..X_{n_vars - 1})")
        elif kind in ("unary", "binary"):
            try:
                arity = operators.get(text).arity
            except UnknownOperatorError:
                raise EquationError(source, field, text, f"an operator: {', '.join(operators.CATALOGUE)}") from None
            if arity != {"unary": 1, "binary": 2}[kind]:
                raise EquationError(source, field, f"{text} as {kind}", f"kind {'unary' if arity == 1 else 'binary'}")
        missing += {"unary": 0, "binary": 1}.get(kind, -1)
    if missing:
        raise EquationError(source, "equation", f"{len(tokens)} tokens", f"{missing} more operand(s) to complete it")
    return MaskedTree.from_tokens(
        (f"x{_variable_number(text)}", kind) if kind == "var" else (text, kind) for text, kind in tokens
    )


def _variable_number(text: str) -> int:
    """Return the number, from 1, of a variable written x1, or X_0 or X0 counted from 0; 0 if it is none."""
    match = re.fullmatch(r"x([1-9][0-9]{0,8})|X_?(0|[1-9][0-9]{0,8})", text, re.ASCII)
    if match is None:
        return 0
    return int(match[1]) if match[1] else int(match[2]) + 1


def _function_set(document: dict[str, Any], tree: MaskedTree, source: str) -> tuple[str, ...]:
    names = _list(document, "function_set", None, "a list of operator names", source)
    try:
        allowed = operators.normalise_function_set(names)
    except UnknownOperatorError as error:
        expected = f"names of operators: {', '.join(operators.CATALOGUE)}, const"
        raise EquationError(source, "function_set", error.name, expected) from None
    needed = dict.fromkeys(node.name for node in tree if node.arity)
    outside = [name for name in needed if name not in allowed]
    if outside and document["complete_function_set"]:
        raise EquationError(
            source, "function_set", list(allowed), f"also {', '.join(outside)}, which the equation uses"
        )
    return (*allowed, *outside)
