"""``vsr discover table.csv --target y``: a formula for the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from deap_vsr.errors import VsrError, short
from deap_vsr.files import write_atomically
from deap_vsr.markup import escape
from deap_vsr.plot import have_matplotlib

#: Endings of files that are tables, and what of pandas reads them.
READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet", ".feather": "read_feather"}


def is_table(problem: str) -> bool:
    """Whether an argument of ``vsr discover`` is a table."""
    return Path(problem).suffix.lower() in READERS


def read_table(path: Path) -> Any:
    """Return a table as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise VsrError("tables need pandas and scikit-learn: pip install 'deap-vsr[table]'") from None
    if not path.is_file():
        raise VsrError(f"{path}: there is no such table")
    how = {"sep": "\t"} if path.suffix.lower() == ".tsv" else {}
    try:
        return getattr(pd, READERS[path.suffix.lower()])(path, **how)
    except (ValueError, OSError, ImportError) as error:
        raise VsrError(f"{path}: cannot be read as a table: {short(str(error), 200)}") from None


def columns_of(
    frame: Any, path: Path, target: str, weights: str, ignore: Sequence[str]
) -> tuple[Any, Any, Any, list[str]]:
    """Return X, y and weights of a table, and words about rows and columns that were left out."""
    names = [str(name) for name in frame.columns]
    for what, name in [
        ("--target", target),
        *([("--weights", weights)] if weights else []),
        *(("--ignore", n) for n in ignore),
    ]:
        if name not in names:
            raise VsrError(f"{path}: {what}: found {name or 'nothing'}, expected a column: {', '.join(names[:20])}")
    frame.columns = names
    left_out = [name for name in names if name in ignore]
    used = [name for name in names if name not in (target, weights, *ignore)]
    text = [name for name in (*used, target) if frame[name].dtype.kind not in "biuf"]
    if text:
        raise VsrError(f"{path}: column {text[0]} is no number; leave it out with --ignore {text[0]}")
    empty = [name for name in used if frame[name].isna().all()]
    used = [name for name in used if name not in empty]
    notes = [f"column {name} is empty: left out" for name in empty]
    if not used:
        raise VsrError(f"{path}: no columns are left to explain {target} by")
    known = frame[[*used, target, *([weights] if weights else [])]]
    good = np.isfinite(known.to_numpy(dtype=float)).all(axis=1)
    if not good.any():
        raise VsrError(f"{path}: no row has a number in every column")
    if not good.all():
        notes.append(f"{int((~good).sum())} of {len(good)} rows have no number in some column: left out")
    notes += [f"column {name}: ignored" for name in left_out]
    known = known[good]
    return (
        known[used],
        known[target].to_numpy(dtype=float),
        known[weights].to_numpy(dtype=float) if weights else None,
        notes,
    )


def discover_table(
    path: Path,
    target: str,
    weights: str,
    ignore: Sequence[str],
    operators: Sequence[str] | None,
    seed: int,
    time_limit: float,
    max_evaluations: int,
    out: Path | None,
    as_json: bool,
    lab: Path | None = None,
    jobs: int = 1,
) -> None:
    """Find a formula for the rows of a table, show it, and write it down."""
    console, errors = Console(emoji=False), Console(stderr=True, emoji=False)
    X, y, weight, notes = columns_of(read_table(path), path, target, weights, ignore)
    try:
        from deap_vsr.estimator import OPERATORS, VsrRegressor
    except ImportError:
        raise VsrError("tables need pandas and scikit-learn: pip install 'deap-vsr[table]'") from None
    limit = time_limit or (None if max_evaluations else 60.0)
    model = VsrRegressor(
        tuple(operators or OPERATORS), limit, max_evaluations or None, random_state=seed, n_jobs=jobs
    )  # fmt: skip
    with errors.status("reading the rows") as shown:
        model.fit(X, y, weight, tell=lambda step: shown.update(f"looking for {step}"))
    model.notes_ = [*notes, *model.notes_]
    told = told_of(model, target)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        for line in model.report().replace("y = ", f"{target} = ", 1).split("\n"):
            console.print(escape(line), highlight=False, soft_wrap=True)
    if out is not None:
        _written(model, X, y, told, out)
    if lab is not None:
        campaign = model.laboratory(lab, X, y, target)
        errors.print(f"{campaign.folder} is a laboratory now; next: vsr lab ask {campaign.folder}", highlight=False)


def _written(model: Any, X: Any, y: Any, told: dict[str, Any], out: Path) -> None:
    """Write what was found, and its pictures where they can be drawn."""
    write_atomically(out / "result.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    write_atomically(out / "formula.tex", model.latex() + "\n")
    write_atomically(out / "equations.csv", model.equations_.to_csv(index=False))
    if have_matplotlib():
        for kind in ("front", "fit", "residuals"):
            model.plot(kind, X, y).savefig(out / f"{kind}.png", dpi=150)


def told_of(model: Any, target: str) -> dict[str, Any]:
    """Return what is known of a fitted table in JSON values."""
    front = model.equations_
    plain: dict[str, Any] = json.loads(front.to_json(orient="records"))  # numbers that JSON does not have become null
    return {
        "target": target, "expression": model.expression_, "sympy": str(model.sympy()), "latex": model.latex(),
        "status": model.status_, "reason": model.reason_, "found_by": front["step"][model.best_index_],
        "lead": float(model.lead_) if np.isfinite(model.lead_) else None,
        "rivals": [{"expression": text, "behind": float(behind)} for behind, text in model.rivals_],
        "measurements": np.asarray(model.measurements_).tolist(), "equations": plain, "notes": model.notes_,
    }  # fmt: skip
