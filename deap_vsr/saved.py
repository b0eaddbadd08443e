"""Results in files: written whole, and checked when they are read. Nothing in a file is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deap_vsr.errors import VsrError, short
from deap_vsr.files import read_text, write_atomically
from deap_vsr.judge.metrics import Verdict
from deap_vsr.lab.data import Data
from deap_vsr.problems.equation import Variable
from deap_vsr.search.checkpoint import tree_from, tree_state
from deap_vsr.search.records import Round, SolvedSlot
from deap_vsr.search.standing import Standing
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.names import Names
from deap_vsr.tree.operators import Array

if TYPE_CHECKING:
    from deap_vsr.result import Result

KIND, FORMAT = "deap_vsr result", 1
#: A file of more than this is no result of ours: 100,000 points of ten variables take some 25 MB.
MAX_BYTES = 200_000_000

_PLAIN = {
    "method": str, "expansion": str, "seed": int, "noise": float, "budget": dict, "settings": dict, "seconds": float,
    "evaluations": int, "oracle_queries": int, "peak_memory_mb": float, "stopped_by": str, "equation": str,
    "version": str, "points_read": int, "failures": int, "error": float, "batches": int,
}  # fmt: skip
_MAY_BE_NOTHING = ("expansion", "error", "peak_memory_mb")


def save(result: Result, path: Path) -> None:
    """Write a result as JSON: what :meth:`Result.to_json` tells, and beside it all that is needed to read it back."""
    kept = {
        "tree": None if result.tree is None else tree_state(result.tree),
        "schedule": [list(group) for group in result.schedule],
        "variables": [asdict(variable) for variable in result.variables],
        "names": asdict(result.names),
        "standard_errors": _list(result.standard_errors),
        "correlation": _list(result.correlation),
        "verdict": None if result.verdict is None else asdict(result.verdict),
        "standing": {**asdict(result.standing), "rivals": [[b, tree_state(t)] for b, t in result.standing.rivals]},
        "outliers": [[list(x), _number(y)] for x, y in result.outliers],
        "rounds": [_round(record) for record in result.rounds],
        "data": {key: _list(getattr(result.data, key)) for key in ("X", "y", "sigma")},
        **{name: getattr(result, name) for name in _PLAIN},
    }
    content = {"kind": KIND, "format": FORMAT, "result": result.to_json(), "kept": _finite(kept)}
    try:
        write_atomically(path, json.dumps(content, ensure_ascii=False) + "\n")
    except OSError as error:
        raise VsrError(f"{path}: cannot write the result: {error.strerror}") from None


def load(path: Path) -> dict[str, Any]:
    """Return the fields of a result that :func:`save` wrote.

    Raises
    ------
    VsrError
        Naming the file, the field, what was found and what was expected.
    """
    try:
        content = json.loads(read_text(path, MAX_BYTES))
    except OSError as error:
        raise VsrError(f"{path}: cannot read the result: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise VsrError(f"{path}: found no JSON, expected a result that Result.save wrote") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise VsrError(f"{path}: kind: expected {KIND!r}, as Result.save writes it")
    if content.get("format") != FORMAT:
        raise VsrError(f"{path}: format: found {short(content.get('format'))}, expected {FORMAT}")
    reader = _Reader(path, content.get("kept"))
    return {**{name: reader.plain(name) for name in _PLAIN}, **{name: reader.read(name) for name in _READ}}


class _Reader:
    """Reads the fields of a file; what cannot be read is an error with its name."""

    def __init__(self, path: Path, kept: Any) -> None:
        if not isinstance(kept, dict):
            raise VsrError(f"{path}: kept: found {short(kept)}, expected an object")
        self.path, self.kept = path, kept

    def value(self, name: str) -> Any:
        if name not in self.kept:
            raise VsrError(f"{self.path}: kept.{name}: found no such key, expected it")
        return self.kept[name]

    def plain(self, name: str) -> Any:
        value, kind = self.value(name), _PLAIN[name]
        if value is None and name in _MAY_BE_NOTHING:
            return math.nan if name == "peak_memory_mb" else None
        if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
            return self.tried(name, lambda: float(value))
        if not isinstance(value, kind) or isinstance(value, bool):
            raise VsrError(f"{self.path}: kept.{name}: found {short(value)}, expected a {kind.__name__}")
        return value

    def read(self, name: str) -> Any:
        return self.tried(name, lambda: _READ[name](self.value(name)))

    def tried(self, name: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (VsrError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            found = short(self.kept.get(name))
            raise VsrError(
                f"{self.path}: kept.{name}: found {found}, which cannot be read: {short(str(error))}"
            ) from None


# --- writing ------------------------------------------------------------------------------


def _round(record: Round) -> dict[str, Any]:
    return {**record.state(), "tables": [_table(table) for table in record.tables]}


def _table(table: SolvedSlot) -> dict[str, Any]:
    arrays = {key: _list(getattr(table, key)) for key in ("x", "values", "constants", "errors")}
    return {"column": table.column, "form": tree_state(table.form), **arrays}


def _list(values: Any) -> Any:
    return None if values is None else _finite(np.asarray(values, dtype=float).tolist())


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _finite(value: Any) -> Any:
    """Return JSON values in which numbers that JSON does not have are text: "nan", "inf"."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return _number(value) if isinstance(value, float) else value


# --- reading ------------------------------------------------------------------------------


def _array(values: Any, ndim: int) -> Array:
    found = np.array(values, dtype=float)
    if found.ndim != ndim and found.size:
        raise ValueError(f"{found.ndim} dimensions, expected {ndim}")
    return found


def _tree(state: Any) -> MaskedTree | None:
    return None if state is None else tree_from(state)


def _some_tree(state: Any) -> MaskedTree:
    return tree_from(state)


def _rounds(states: Any) -> list[Round]:
    found = []
    for state in states:
        plain = {key: value for key, value in state.items() if key != "tables"}
        plain["errors"] = [float(error) for error in plain["errors"]]
        plain["constants"] = [[float(value) for value in row] for row in plain["constants"]]
        record = Round.restored(plain, None)
        tables = tuple(map(_read_table, state["tables"]))
        found.append(Round(**{**{k: getattr(record, k) for k in plain}, "tables": tables}))
    return found


def _read_table(state: Any) -> SolvedSlot:
    errors = None if state["errors"] is None else _array(state["errors"], 2)
    x, values, constants = _array(state["x"], 1), _array(state["values"], 2), np.array(state["constants"], dtype=float)
    return SolvedSlot(int(state["column"]), x, values, _some_tree(state["form"]), constants, errors)


def _names(state: Any) -> Names:
    given, units = tuple(map(str, state["given"])), tuple(map(str, state["units"]))
    return Names(given, units, str(state["output"]), str(state["unit"]))


def _standing(state: Any) -> Standing:
    rivals = tuple((float(behind), _some_tree(tree)) for behind, tree in state["rivals"])
    if state["status"] not in ("found", "fits", "partial"):
        raise ValueError("status is found, fits or partial")
    lead = None if state["lead"] is None else float(state["lead"])
    return Standing(**{**state, "rivals": rivals, "share": float(state["share"]), "lead": lead})


def _data(state: Any) -> Data:
    X, y, sigma = np.array(state["X"], dtype=float), _array(state["y"], 1), _array(state["sigma"], 1)
    if len(X) != len(y) or len(y) != len(sigma):
        raise ValueError("X, y and sigma are of different lengths")
    return Data(X, y, sigma)


_READ: dict[str, Callable[[Any], Any]] = {
    "tree": _tree,
    "schedule": lambda groups: tuple(tuple(map(int, group)) for group in groups),
    "variables": lambda states: tuple(Variable(**state) for state in states),
    "names": _names,
    "standard_errors": lambda values: None if values is None else tuple(map(float, values)),
    "correlation": lambda rows: None if rows is None else tuple(tuple(map(float, row)) for row in rows),
    "verdict": lambda state: None if state is None else Verdict(**{**state, "metrics": _floats(state["metrics"])}),
    "standing": _standing,
    "outliers": lambda rows: tuple((tuple(map(float, x)), float(y)) for x, y in rows),
    "rounds": _rounds,
    "data": _data,
}


def _floats(values: dict[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in values.items()}
