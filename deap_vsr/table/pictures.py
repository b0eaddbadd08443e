"""Pictures of a formula for a table: the front, predicted against measured, and what is left by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deap_vsr.plot import FROZEN, SLOT, draw_fit, figure_of, plain, residuals_of
from deap_vsr.tree import MaskedTree, is_variable
from deap_vsr.tree.operators import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Points that are drawn, of more rows some; panels of residuals.
POINTS, PANELS = 3000, 8
#: Errors below this are drawn there: rounding.
LEAST = 1e-32


def front_of(sizes: Sequence[int], errors: Array, held_out: Array, best: int, texts: Sequence[str]) -> Figure:
    """Draw errors, (n,), and those on rows held out, (n, 2) at random and at the edge, against the size of formulas."""
    figure = figure_of(7.0, 4.5)
    axis = figure.subplots()
    axis.plot(sizes, np.maximum(errors, LEAST), "-o", color=FROZEN, markeredgecolor="#555555", label="all rows")
    for column, (marker, label) in enumerate((("x", "held out at random"), ("+", "held out at the edge"))):
        if np.isfinite(held_out[:, column]).any():
            axis.plot(sizes, np.maximum(held_out[:, column], LEAST), marker, color="#555555", label=label)
    axis.plot(
        [sizes[best]], [max(errors[best], LEAST)], "o", markersize=11, markerfacecolor="none", color=SLOT,
        label="the answer",
    )  # fmt: skip
    axis.set_yscale("log")
    axis.set_xlabel("nodes")
    axis.set_ylabel("share of y that is left (NMSE)")
    axis.set_title(plain(texts[best][:80]), fontsize=9)
    axis.legend(fontsize=8)
    return figure


def fit_of(tree: MaskedTree, X: Array, y: Array, answer: str) -> Figure:
    """Draw y, (n_rows,), against what a formula says at X, (n_rows, n_columns)."""
    X, y, said = _drawn(tree, X, y)
    figure = figure_of(5.5, 5.0)
    draw_fit(figure.subplots(), y, said, answer)
    return figure


def left_of(tree: MaskedTree, X: Array, y: Array, names: Sequence[str], answer: str) -> Figure:
    """Draw what a formula leaves against its value and each column, those that it uses first."""
    X, y, said = _drawn(tree, X, y)
    used = {int(str(node.value)[1:]) - 1 for node in tree if is_variable(node)}
    columns = sorted(range(X.shape[1]), key=lambda column: column not in used)
    panels = [(answer, said), *((names[column], X[:, column]) for column in columns)]
    return residuals_of(y, said, panels[:PANELS])


def _drawn(tree: MaskedTree, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return some rows, and what a formula says there; rows at which it has no value are left out."""
    some = np.unique(np.linspace(0, len(y) - 1, min(len(y), POINTS)).astype(int))
    with np.errstate(all="ignore"):
        said = np.asarray(tree.evaluate(X[some]), dtype=float)
    good = np.isfinite(said)
    return X[some][good], y[some][good], said[good]
