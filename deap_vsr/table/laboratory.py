"""From a table to a laboratory: its rows are data from before, what would decide between rivals is the first sheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.campaign.campaign import Campaign
from deap_vsr.tree.operators import Array

#: Rows of the table that are told: a campaign looks at all that it has again and again.
ROWS = 500
#: Why the first sheet is asked.
WHY = "here the rivals on the table differ most"


def laboratory(
    folder: str | Path,
    X: Array,
    y: Array,
    names: Sequence[str],
    output: str,
    points: Array,
    options: dict[str, Any],
) -> Campaign:
    """Make the folder of a laboratory that knows rows X (n_rows, n_vars), y, and asks for points (n, n_vars) first.

    Columns that are the same in all rows are no knobs. ``options`` are those of :class:`Campaign`.
    """
    used = [column for column in range(X.shape[1]) if np.ptp(X[:, column]) > 0.0]
    knobs = {names[column]: _knob(X[:, column]) for column in used}
    campaign = Campaign(folder, knobs, output=output, **options)
    some = np.unique(np.linspace(0, len(y) - 1, min(len(y), ROWS)).astype(int))
    rows = [
        {**{names[column]: float(X[row, column]) for column in used}, output: float(y[row])} for row in some.tolist()
    ]
    campaign.tell(rows)
    if len(points):
        campaign.want(points[:, used], WHY)
    return campaign


def _knob(values: Array) -> dict[str, Any]:
    """Return the range of a column, and whether it is counted."""
    whole = bool((values == np.round(values)).all())
    low, high = float(values.min()), float(values.max())
    return {"low": low, "high": high + 1.0, "sampling": "integer"} if whole else {"low": low, "high": high}
