"""Pictures of a result; needs matplotlib (``pip install deap-vsr[plot]``)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from deap_vsr.errors import VsrError, printable
from deap_vsr.tree import MaskedTree, Node, is_mutable, is_open, is_variable
from deap_vsr.tree.notation import short_formula, short_numbers
from deap_vsr.tree.operators import Array, Flags
from deap_vsr.tree.walk import operand_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deap_vsr.result import Result

FROZEN, SLOT, OPEN = "#9fb8d0", "#f2a33a", "#ffffff"
#: Characters of a formula above its tree.
MAX_FORMULA = 80
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-"}


def have_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    return find_spec("matplotlib") is not None


def plain(text: str) -> str:
    """Return text of others for a picture: on one line, and no formula of matplotlib's; a legend leaves out _names."""
    shown = printable(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def figure_of(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches; a clear error without matplotlib."""
    if not have_matplotlib():
        raise VsrError("pictures need matplotlib: pip install matplotlib, or deap-vsr[plot]")
    return _picture()(figsize=(width, height), layout="constrained")


@cache
def _picture() -> type[Figure]:
    """Return the class of our figures: a notebook shows them as they are, without pyplot."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=90)
            return content.getvalue()

    return Picture


def plot_path(result: Result) -> Figure:
    """Draw the path of reduced forms: one tree for each round, frozen nodes and slots coloured.

    Other attempts, and earlier passes through the schedule, are left out.
    """
    rounds = result.path
    trees = [short_numbers(record.tree, result.names) for record in rounds]
    leaves = [sum(node.arity == 0 for node in tree) for tree in trees]
    heights = [tree.height + 1.6 for tree in trees]
    figure = figure_of(max(6.0, 0.52 * max(leaves, default=1) + 1), max(2.0, 0.62 * sum(heights) + 0.8))
    if not rounds:
        figure.suptitle("no round was finished")
        return figure
    axes = figure.subplots(len(rounds), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, record, tree in zip(axes, rounds, trees, strict=True):
        _draw_tree(axis, tree, record.tree)
        held = " ".join(map(result.names.name, record.controlled)) or "nothing"
        free = " ".join(map(result.names.name, record.freed))
        fit = "" if record.accepted else "; does not fit"
        formula = short_formula(record.tree, result.names)
        formula = formula if len(formula) <= MAX_FORMULA else formula[: MAX_FORMULA - 4] + " ..."
        said = f"{plain(result.names.output)} = {formula}"
        axis.set_title(f"free: {free}; held: {held}{fit}\n{said}", loc="left", fontsize=9)
    figure.suptitle(
        f"{plain(result.equation)}\nblue: frozen, orange: slots, white: may still change".strip(), fontsize=10
    )
    return figure


def _draw_tree(axis: Axes, shown: MaskedTree, tree: MaskedTree) -> None:
    """Draw a tree: `shown` has the labels, `tree` (of the same shape) the mask."""
    places = _layout(shown)
    for position, parent in _edges(shown):
        (x0, y0), (x1, y1) = places[parent], places[position]
        axis.plot([x0, x1], [y0, y1], color="#777777", linewidth=1, zorder=1)
    for (x, y), node, masked in zip(places, shown, tree, strict=True):
        colour = FROZEN if not is_mutable(masked) else SLOT if is_open(masked) else OPEN
        label = _SIGNS.get(node.name, node.name) if node.arity else _leaf_text(node)
        axis.text(
            x, y, label, ha="center", va="center", fontsize=9, zorder=2,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": colour, "edgecolor": "#444444", "linewidth": 0.8},
        )  # fmt: skip
    axis.set_xlim(-0.7, max(x for x, _ in places) + 0.7)
    axis.set_ylim(min(y for _, y in places) - 0.5, 0.5)
    axis.set_axis_off()


def plot_fit(result: Result) -> Figure:
    """Draw what was measured against what the formula says; on the line they agree."""
    figure = figure_of(5.5, 5.0)
    draw_fit(figure.subplots(), *_measured(result), result.names.answer)
    return figure


def draw_fit(axis: Axes, y: Array, said: Array, answer: str) -> None:
    """Draw y, (n,), against what a formula says, (n,), with the line on which they agree."""
    axis.plot(said, y, "o", markersize=3, color=SLOT, markeredgecolor="#555555", markeredgewidth=0.4)
    if len(y):
        ends = [min(y.min(), said.min()), max(y.max(), said.max())]
        axis.plot(ends, ends, color="#777777", linewidth=1, zorder=0)
    axis.set_xlabel(plain(f"{answer}, as the formula says"))
    axis.set_ylabel(plain(f"{answer}, measured"))
    axis.set_title(f"{len(y)} points", fontsize=10)


def plot_residuals(result: Result, most: int = 6) -> Figure:
    """Draw what the formula leaves, against its value and against each variable: a right one leaves no shape."""
    y, said = _measured(result)
    X = result.data.X[_known(result)]
    columns = [(result.names.label(i), X[:, i]) for i in range(X.shape[1])]
    return residuals_of(y, said, [(result.names.answer, said), *columns][:most])


def residuals_of(y: Array, said: Array, columns: Sequence[tuple[str, Array]]) -> Figure:
    """Draw y - said, (n,), one panel for each labelled column, (n,)."""
    rows = (len(columns) + 1) // 2
    figure = figure_of(9.0, 2.6 * rows)
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for axis, (label, values) in zip(axes, columns, strict=False):
        axis.axhline(0.0, color="#777777", linewidth=1, zorder=0)
        axis.plot(values, y - said, "o", markersize=3, color=FROZEN, markeredgecolor="#555555", markeredgewidth=0.4)
        axis.set_xlabel(plain(label))
        axis.set_ylabel("measured - formula")
    for axis in axes[len(columns) :]:
        axis.set_axis_off()
    return figure


def _known(result: Result) -> Flags:
    """Return which points have an answer, and a value of the formula."""
    if result.tree is None:
        raise VsrError(f"no formula was found, so there is no fit to draw: {result.reason}")
    if not len(result.data):
        return np.zeros(0, bool)
    return np.asarray(result.data.good & np.isfinite(result.predict(result.data.X)))


def _measured(result: Result) -> tuple[Array, Array]:
    """Return what was measured and what the formula says there, (n,) each."""
    known = _known(result)
    if not known.any():
        return np.empty(0), np.empty(0)
    return result.data.y[known], result.predict(result.data.X[known])


def _leaf_text(node: Node) -> str:
    return str(node.value) if is_variable(node) else f"{node.value:.4g}"


def _edges(tree: MaskedTree) -> list[tuple[int, int]]:
    """Return (position, position of its parent) for every node but the root."""
    return sorted((child, parent) for parent, below in enumerate(operand_positions(tree)) for child in below)


def _layout(tree: MaskedTree) -> list[tuple[float, float]]:
    """Return (x, y) of every node: leaves side by side, parents above the middle of their operands."""
    depth = [0] * len(tree)
    for position, parent in _edges(tree):
        depth[position] = depth[parent] + 1
    leaves = [position for position, node in enumerate(tree) if not node.arity]
    x = {position: float(place) for place, position in enumerate(leaves)}
    for position, below in reversed(list(enumerate(operand_positions(tree)))):
        if below:
            x[position] = sum(x[child] for child in below) / len(below)
    return [(x[position], -float(depth[position])) for position in range(len(tree))]


def plot_slots(result: Result, most: int = 6) -> Figure:
    """Draw slots as slotwise expansion measured them, with the forms that fit: one panel a slot, a curve a setting.

    In noise bars are two standard errors to each side.
    """
    tables = [(record, table) for record in result.path if record.accepted for table in record.tables]
    tables = tables[:most]
    rows = max((len(tables) + 1) // 2, 1)
    figure = figure_of(9.0, 2.8 * rows)
    if not tables:
        figure.suptitle("no slot was measured")
        return figure
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for axis, (record, table) in zip(axes, tables, strict=False):
        fine = np.linspace(table.x.min(), table.x.max(), 300)
        X = np.zeros((len(fine), table.column + 1))
        X[:, table.column] = fine
        for k, (values, constants) in enumerate(zip(table.values, table.constants, strict=True)):
            curve = table.form.with_constants(constants).evaluate(X)
            (line,) = axis.plot(fine, np.where(np.isfinite(curve), curve, np.nan), linewidth=1)
            bars = None if table.errors is None else 2.0 * table.errors[k]
            style = {"fmt": "o", "color": line.get_color(), "markersize": 4, "elinewidth": 1}
            axis.errorbar(table.x, values, bars, label=f"setting {k + 1}", **style)
        axis.set_xlabel(plain(result.names.label(table.column)))
        axis.set_ylabel("slot")
        free = " ".join(result.names.name(column) for column in record.freed if column != table.column)
        form = short_formula(table.form, result.names)
        axis.set_title(f"{form}   (free: {free or 'nothing else'})", fontsize=9)
    for axis in axes[len(tables) :]:
        axis.set_axis_off()
    axes[0].legend(fontsize=8)
    figure.suptitle("slots as functions of the new variable: measured (dots) and solved (lines)", fontsize=10)
    return figure


#: The pictures of a result by name.
PICTURES = {"path": plot_path, "slots": plot_slots, "fit": plot_fit, "residuals": plot_residuals}
