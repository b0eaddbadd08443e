"""Results in files: written whole, and checked when they are read. Nothing in a file is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from deap_vsr.errors import VsrError, short
from deap_vsr.files import checked, read_text, write_atomically
from deap_vsr.judge.metrics import Verdict
from deap_vsr.lab.data import Data
from deap_vsr.problems.equation import Variable
from deap_vsr.search.checkpoint import check_trees, tree_from, tree_state
from deap_vsr.search.records import Round, SolvedSlot
from deap_vsr.search.schema import Count, TreeState
from deap_vsr.search.standing import Standing
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.names import Names
from deap_vsr.tree.operators import Array

if TYPE_CHECKING:
    from deap_vsr.result import Result

KIND, FORMAT = "deap_vsr result", 1
#: A file of more than this is no result of ours: 100,000 points of ten variables take some 25 MB.
MAX_BYTES = 200_000_000

#: Numbers that JSON does not have are text.
Real = float | Literal["nan", "inf", "-inf"]
Scalar = bool | int | float | str | None
Row = list[Real]
#: Options of a search: numbers and words, in lists and groups, nested no deeper than ours are.
_Inmost = Scalar | list[Scalar] | dict[str, Scalar]
_Inner = Scalar | list[_Inmost] | dict[str, _Inmost]
_Outer = Scalar | list[_Inner] | dict[str, _Inner]
Settings = dict[str, Scalar | list[_Outer] | dict[str, _Outer]]


class _Table(TypedDict):
    column: Count
    form: TreeState
    x: Row
    values: list[Row]
    constants: list[Row]
    errors: list[Row] | None


class _Round(TypedDict):
    freed: list[Count]
    controlled: list[Count]
    tree: TreeState
    errors: Row
    constants: list[Row]
    slots: Count
    accepted: bool
    queries: int
    seconds: Real
    tables: list[_Table]


class _Names(TypedDict):
    given: list[str]
    units: list[str]
    output: str
    unit: str


class _Verdict(TypedDict):
    recovered: bool
    recovered_by: str | None
    same_form: bool
    metrics: dict[str, Real]


class _Standing(TypedDict):
    status: Literal["found", "fits", "partial"]
    reason: str
    survived: Count
    share: Real
    outside: bool
    search: str
    lead: Real | None
    rivals: list[tuple[Real, TreeState]]


class _Data(TypedDict):
    X: list[Row]
    y: Row
    sigma: Row


class _Plain(TypedDict):
    method: str
    expansion: str | None
    seed: int
    noise: Real
    budget: dict[str, Real | None]
    settings: Settings
    seconds: Real
    evaluations: Count
    oracle_queries: int
    peak_memory_mb: Real | None
    stopped_by: str
    equation: str
    version: str
    points_read: Count
    failures: Count
    error: Real | None
    batches: Count


class _Kept(_Plain):
    tree: TreeState | None
    schedule: list[list[Count]]
    variables: list[dict[str, Scalar]]
    names: _Names
    standard_errors: Row | None
    correlation: list[Row] | None
    verdict: _Verdict | None
    standing: _Standing
    outliers: list[tuple[Row, Real]]
    rounds: list[_Round]
    data: _Data


class _File(TypedDict):
    kind: str
    format: int
    result: dict[str, Any]
    kept: _Kept


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
        **{name: getattr(result, name) for name in _Plain.__annotations__},
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
    kept = checked(content, _File, str(path))["kept"]
    fields: dict[str, Any] = {name: kept[name] for name in _Plain.__annotations__}  # type: ignore[literal-required]
    for name in ("noise", "seconds", "error", "peak_memory_mb"):
        fields[name] = None if fields[name] is None else float(fields[name])
    if fields["peak_memory_mb"] is None:
        fields["peak_memory_mb"] = math.nan
    fields["budget"] = {name: None if limit is None else float(limit) for name, limit in kept["budget"].items()}
    for name, read in _READ.items():
        try:
            fields[name] = read(kept)
        except (VsrError, ValueError, TypeError, OverflowError) as error:
            raise VsrError(f"{path}: kept.{name}: cannot be read: {short(str(error), 200)}") from None
    return fields


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


def _array(rows: Any, *shape: int | None) -> Array:
    """Return numbers as an array of a shape, where None is any length."""
    found = np.array(rows, dtype=float)
    if not found.size and len(shape) > 1:
        found = found.reshape([size or 0 for size in shape])
    if found.ndim != len(shape) or any(size not in (None, n) for n, size in zip(found.shape, shape, strict=True)):
        raise ValueError(f"found numbers of shape {found.shape}, expected {shape}")
    return found


def _floats(values: Iterable[float | str]) -> tuple[float, ...]:
    return tuple(map(float, values))


def _tree(state: Any, kept: _Kept) -> MaskedTree:
    tree = tree_from(state)
    check_trees([tree], len(kept["variables"]))
    return tree


def _columns(columns: Iterable[int], kept: _Kept) -> tuple[int, ...]:
    found = tuple(columns)
    if any(column >= len(kept["variables"]) for column in found):
        raise ValueError(f"found column {max(found)}, of {len(kept['variables'])} variables from 0")
    return found


def _rounds(kept: _Kept) -> list[Round]:
    return [
        Round(
            _columns(state["freed"], kept),
            _columns(state["controlled"], kept),
            _tree(state["tree"], kept),
            _floats(state["errors"]),
            tuple(map(_floats, state["constants"])),
            state["slots"],
            state["accepted"],
            state["queries"],
            float(state["seconds"]),
            tuple(_read_table(table, kept) for table in state["tables"]),
        )
        for state in kept["rounds"]
    ]


def _read_table(state: _Table, kept: _Kept) -> SolvedSlot:
    (column,), x, form = _columns([state["column"]], kept), _array(state["x"], None), _tree(state["form"], kept)
    values = _array(state["values"], None, len(x))
    constants = _array(state["constants"], len(values), form.n_constants)
    errors = None if state["errors"] is None else _array(state["errors"], len(values), len(x))
    return SolvedSlot(column, x, values, form, constants, errors)


def _variables(kept: _Kept) -> tuple[Variable, ...]:
    given: Any = kept["variables"]
    return tuple(Variable(**state) for state in given)


def _names(kept: _Kept) -> Names:
    state = kept["names"]
    if not len(state["given"]) == len(state["units"]) == len(kept["variables"]):
        raise ValueError(f"found {len(state['given'])} names, expected {len(kept['variables'])}, and as many units")
    return Names(tuple(state["given"]), tuple(state["units"]), state["output"], state["unit"])


def _correlation(kept: _Kept) -> tuple[tuple[float, ...], ...] | None:
    rows, errors = kept["correlation"], kept["standard_errors"]
    if rows is None:
        return None
    return tuple(map(tuple, _array(rows, len(errors or ()), len(errors or ())).tolist()))


def _verdict(kept: _Kept) -> Verdict | None:
    state = kept["verdict"]
    if state is None:
        return None
    metrics = {name: float(value) for name, value in state["metrics"].items()}
    return Verdict(state["recovered"], state["recovered_by"], state["same_form"], metrics)


def _standing(kept: _Kept) -> Standing:
    state: dict[str, Any] = {**kept["standing"]}
    rivals = tuple((float(behind), _tree(tree, kept)) for behind, tree in state["rivals"])
    lead = None if state["lead"] is None else float(state["lead"])
    return Standing(**{**state, "rivals": rivals, "share": float(state["share"]), "lead": lead})


def _data(kept: _Kept) -> Data:
    y = _array(kept["data"]["y"], None)
    return Data(_array(kept["data"]["X"], len(y), len(kept["variables"])), y, _array(kept["data"]["sigma"], len(y)))


#: How each field is read that is more than a number or a word.
_READ: dict[str, Callable[[_Kept], Any]] = {
    "variables": _variables,
    "names": _names,
    "tree": lambda kept: None if kept["tree"] is None else _tree(kept["tree"], kept),
    "schedule": lambda kept: tuple(_columns(group, kept) for group in kept["schedule"]),
    "standard_errors": lambda kept: None if kept["standard_errors"] is None else _floats(kept["standard_errors"]),
    "correlation": _correlation,
    "verdict": _verdict,
    "standing": _standing,
    "outliers": lambda kept: tuple((_floats(x), float(y)) for x, y in kept["outliers"]),
    "rounds": _rounds,
    "data": _data,
}
