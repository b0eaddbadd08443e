"""Rows of runs that were never made, for tests of what is done with rows."""

from __future__ import annotations

from typing import Any

from deap_vsr.compare.job import NEW_COLUMNS
from deap_vsr.search.checkpoint import tree_state
from deap_vsr.tree import MaskedTree

Row = dict[str, Any]


def row_of(method: str = "gp", nmse: float | None = 0.1, problem: int = 0, seed: int = 0, **changed: Any) -> Row:
    """Return a row as a run leaves it; without an NMSE, that of a failed run."""
    failed = nmse is None
    metrics = dict.fromkeys(("mse", "nmse", "rmse", "nrmse", "inv_nmse", "inv_nrmse", "r2"))
    if nmse is not None:
        root = nmse**0.5
        metrics = {"mse": nmse, "nmse": nmse, "rmse": root, "nrmse": root, "inv_nmse": 1 / (1 + nmse),
                   "inv_nrmse": 1 / (1 + root), "r2": 1 - nmse}  # fmt: skip
    row = {
        "problem": f"trigonometric/inv/2-1-1/prog_{problem}", "method": method, "seed": seed, "noise": 0.0,
        "optimizer": None, "preset": None, "time_limit": None, "max_evaluations": 1000, "max_queries": None,
        "set": "trigonometric/inv", "group": "(2,1,1)", "n_vars": 2, "digest": "0", "status": "failed",
        "error": "no reason", "recovered": False, "standing": None, "false_found": False,
        **metrics, "stopped_by": None, "expression": None, "seconds": None,
        "evaluations": None, "oracle_queries": None, "peak_memory_mb": None, "trace": [], "result": None,
        "noise_of": None, "right_form": None,
        "versions": {"python": "3"}, "machine": {"processor": "some", "cores": 2, "system": "Linux"},
    }  # fmt: skip
    if not failed:
        row |= {
            "status": "done", "error": None, "recovered": nmse == 0.0,
            "standing": "found" if nmse == 0.0 else "partial", "stopped_by": "done" if nmse == 0.0 else "evaluations",
            "expression": "x1 + 2*x2", "seconds": 1.5, "evaluations": 1000, "oracle_queries": 500,
            "peak_memory_mb": 3.0, "result": {"rounds": [round_of("x1 + C", [0, 0, 1])]},
            "trace": [{"round": 1, "error": 0.5, "seconds": 0.1, "evaluations": 10, "queries": 40}],
        }  # fmt: skip
    return row | changed


def old_row_of(*given: Any, **changed: Any) -> Row:
    """Return a row as version 0.1 has left it: how an answer stands was not said, and a run was stopped by found."""
    row = row_of(*given, **changed)
    for name in NEW_COLUMNS:
        del row[name]
    return row | {"stopped_by": "found" if row["stopped_by"] == "done" else row["stopped_by"]}


def round_of(formula: str, mask: list[int], **changed: Any) -> Row:
    """Return a round as the JSON of a result has it."""
    tree = MaskedTree.from_infix(formula).with_mask(mask)
    return {
        "freed": ["x1"], "controlled": ["x2"], "expression": tree.to_infix(), "nodes": tree_state(tree),
        "errors": [1e-9, 2e-9], "constants": [], "slots": len(tree.slots), "accepted": True, "queries": 1,
        "seconds": 0.1,
    } | changed  # fmt: skip


def settings_of(rows: list[Row], **changed: Any) -> Row:
    """Return settings of a comparison of which `rows` are all the runs."""
    return {
        "version": "0.1.0", "suites": ["trigonometric/inv/2-1-1"],
        "methods": list(dict.fromkeys(row["method"] for row in rows)), "seeds": [0], "noise": [0.0],
        "optimizers": [None], "preset": None, "time_limit": None, "max_evaluations": 1000, "max_queries": None,
        "noise_of": None, "runs": len(rows), "left_out": [], "problems": {},
    } | changed  # fmt: skip
