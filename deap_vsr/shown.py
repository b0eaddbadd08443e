"""A result as HTML, for notebooks, and as JSON, for machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from deap_vsr.search.checkpoint import tree_state
from deap_vsr.search.records import Round
from deap_vsr.tree.names import Names, latex_name
from deap_vsr.tree.notation import short_formula

if TYPE_CHECKING:
    from deap_vsr.result import Result

#: Rows of the path that are shown; the others are in `rounds`.
MAX_ROWS = 20


def html_of(result: Result) -> str:
    """Return the formula, how it stands, its constants with their errors, its rivals and the path that led to it."""
    if result.tree is None:
        head = "<p>no formula was found</p>"
    else:
        latex = escape(f"{latex_name(result.names.output)} = {result.latex}")
        text = escape(f"{result.names.output} = {result.formula}")
        head = f"<p>$\\displaystyle {latex}$</p><p><code>{text}</code></p>"
    cost = f"{result.oracle_queries} points asked{result.in_batches}, {result.points_read} read, {result.seconds:.1f} s"
    parts = [head, f"<p><b>{escape(result.status)}</b>: {escape(result.reason)} ({escape(cost)})</p>"]
    known = [c for c in result.constants if math.isfinite(c.standard_error)]
    if known and result.noise > 0:
        parts.append(
            _table(["constant", "standard error"], [(f"{c.value:.6g}", f"{c.standard_error:.2g}") for c in known])
        )
    if result.rivals:
        parts.append(_table(["rival", "nats behind"], [(r.formula, f"{r.behind:.1f}") for r in result.rivals]))
    rows = []
    for record in result.path[-MAX_ROWS:]:
        free, held = (" ".join(map(result.names.name, columns)) for columns in (record.freed, record.controlled))
        rows.append((free, held or "nothing", short_formula(record.tree, result.names)))
    if rows:
        parts.append(_table(["free", "held", "reduced form"], rows))
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


# --- JSON ---------------------------------------------------------------------------------


def json_of(result: Result) -> dict[str, Any]:
    """Return everything as plain JSON values; numbers that JSON does not have become null."""
    verdict = result.verdict
    plain = {
        "equation": result.equation,
        "method": result.method,
        "expansion": result.expansion,
        "schedule": [[f"x{column + 1}" for column in group] for group in result.schedule],
        "seed": result.seed,
        "noise": result.noise,
        "budget": result.budget,
        "settings": result.settings,
        "version": result.version,
        "expression": result.expression,
        "formula": result.formula,
        "output": {"name": result.names.output, "unit": result.names.unit},
        "variables": [
            {"name": v.name, "symbol": result.names.name(i), "unit": v.unit, "low": v.low, "high": v.high}
            for i, v in enumerate(result.variables)
        ],
        "sympy": result.sympy,
        "latex": result.latex,
        "standard_errors": list(result.standard_errors) if result.standard_errors is not None else None,
        "constants": [{"value": c.value, "standard_error": c.standard_error} for c in result.constants],
        "covariance": None if result.covariance is None else result.covariance.tolist(),
        "n_constants": sum(not node.arity and not isinstance(node.value, str) for node in result.tree or []),
        "metrics": verdict.metrics if verdict else None,
        "recovered": verdict.recovered if verdict else None,
        "recovered_by": verdict.recovered_by if verdict else None,
        "same_form": verdict.same_form if verdict else None,
        "seconds": result.seconds,
        "evaluations": result.evaluations,
        "oracle_queries": result.oracle_queries,
        "batches": result.batches,
        "points_read": result.points_read,
        "failures": result.failures,
        "status": result.status,
        "reason": result.reason,
        "survived": result.standing.survived,
        "share": result.standing.share,
        "outside": result.standing.outside,
        "found_by": result.standing.search,
        "lead": result.standing.lead,
        "rivals": [
            {"expression": tree.to_infix(), "formula": result.names.named(tree).to_infix(), "behind": behind}
            for behind, tree in result.standing.rivals
        ],
        "error": result.error,
        "outliers": [{"x": list(x), "y": y} for x, y in result.outliers],
        "peak_memory_mb": result.peak_memory_mb,
        "stopped_by": result.stopped_by,
        "rounds": [_round_json(record, result.names) for record in result.rounds],
    }
    cleaned: dict[str, Any] = _finite(plain)
    return cleaned


def _round_json(record: Round, names: Names) -> dict[str, Any]:
    return {
        "freed": [f"x{column + 1}" for column in record.freed],
        "controlled": [f"x{column + 1}" for column in record.controlled],
        "expression": record.tree.to_infix(),
        "formula": names.named(record.tree).to_infix(),
        "nodes": tree_state(record.tree),
        "errors": list(record.errors),
        "constants": [list(row) for row in record.constants],
        "slots": record.slots,
        "accepted": record.accepted,
        "queries": record.queries,
        "seconds": record.seconds,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
