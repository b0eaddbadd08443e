"""The pictures of a comparison; they need matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deap_vsr.compare.statistics import Row, cost, grouped, label, number
from deap_vsr.plot import figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Errors below are drawn here: less is not asked of a recovered formula.
FLOOR = 1e-12
#: Failed runs are drawn here.
CEILING = 1e4
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#a6761d", "#1b9e77")
#: Panels of one picture, and curves of one panel, at most.
_MAX_PANELS, _MAX_CURVES = 12, 300


@dataclass(frozen=True)
class Picture:
    """A figure, a short name for its file, and what it shows."""

    name: str
    title: str
    figure: Figure


def all_pictures(rows: Sequence[Row]) -> list[Picture]:
    """Return every picture there is something to draw for; `rows` in their order."""
    found = [
        Picture("nmse", "NMSE by method and set", _by_set(rows, "nmse", "NMSE")),
        Picture("queries", "Oracle queries by method and set", _by_set(rows, "oracle_queries", "oracle queries")),
    ]
    if len({row["n_vars"] for row in rows}) > 1:
        found.append(Picture("time", "Seconds against the number of variables", _by_size(rows)))
    if any(row["trace"] for row in rows):
        title = "Convergence: the best error so far, on the data of its round, against evaluations"
        found.append(Picture("convergence", title, _convergence(rows)))
    if len({row["noise"] for row in rows}) > 1:
        found.append(Picture("noise", "NMSE by level of noise", _by_noise(rows)))
    fitted = [row for row in rows if row["optimizer"]]
    if len({row["optimizer"] for row in fitted}) > 1:
        measures = {"NMSE": "nmse", "seconds": "seconds"}
        found.append(Picture("optimizers", "Ways to fit constants", _by_measure(fitted, measures)))
    return [*found, Picture("metrics", "All metrics", _by_measure(rows, _METRICS))]


# --- boxes --------------------------------------------------------------------------------

_SHARES = ("r2", "inv_nmse", "inv_nrmse")
_ERRORS = ("mse", "nmse", "rmse", "nrmse")


def _boxes(axis: Axes, places: dict[str, list[Row]], name: str, labels: Sequence[str]) -> None:
    """Draw boxes of a measure: `places` along the axis, methods side by side; every run is a dot."""
    width = 0.8 / len(labels)
    for x, members in enumerate(places.values()):
        for (method,), runs in grouped(members, "label").items():
            i = labels.index(method)
            values = [_drawn(row, name) for row in runs]
            at = x - 0.4 + width * (i + 0.5)
            axis.boxplot(
                [values], positions=[at], widths=0.8 * width, whis=(0, 100), manage_ticks=False, patch_artist=True,
                boxprops={"facecolor": _colour(i), "alpha": 0.35}, medianprops={"color": _colour(i), "linewidth": 2.5},
                whiskerprops={"color": _colour(i)}, capprops={"color": _colour(i)},
            )  # fmt: skip
            spread = np.linspace(-0.25, 0.25, len(values)) * width if len(values) > 1 else np.zeros(1)
            axis.plot(at + spread, values, ".", color=_colour(i), markersize=3)
    axis.set_xticks(range(len(places)), list(map(plain, places)))
    axis.set_xlim(-0.5, len(places) - 0.5)
    if name not in _SHARES:
        axis.set_yscale("log")
    axis.grid(axis="y", alpha=0.3)


def _colour(i: int) -> str:
    return _COLOURS[i % len(_COLOURS)]


def _drawn(row: Row, name: str) -> float:
    """Return where a run is drawn: errors within what can be told apart, failed runs at the edge."""
    value = number(row, name)
    if name in _SHARES:
        return 0.0 if math.isnan(value) else max(value, 0.0)
    if name in _ERRORS:
        return CEILING if math.isnan(value) else min(max(value, FLOOR), CEILING)
    return 1.0 if math.isnan(value) else max(value, 1e-3)


def _panels(
    rows: Sequence[Row],
    panels: dict[str, list[Row]],
    draw: Callable[[Axes, str, list[Row], list[str]], None],
) -> Figure:
    """Return a figure with a panel for each entry of `panels`, two in a line, and a legend of the methods.

    ``draw(axis, title, rows, labels)`` draws one.
    """
    from matplotlib.patches import Patch

    labels = list(dict.fromkeys(map(label, rows)))
    shown = list(panels.items())[:_MAX_PANELS]
    missing = len(panels) - len(shown)
    columns = 2 if len(shown) > 1 else 1
    lines = -(-len(shown) // columns)
    per_line = 2 * columns  # of the legend
    figure = figure_of(5.1 * columns, 3.2 * lines + 0.25 * (1 - (-len(labels) // per_line)))
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis, (title, members) in zip(axes, shown, strict=False):
        draw(axis, title, members, labels)
        axis.set_title(plain(title), fontsize=10)
    for axis in axes[len(shown) :]:
        axis.set_axis_off()
    if missing:
        figure.suptitle(f"{len(shown)} of {len(panels)} groups are shown", fontsize=9)
    handles = [Patch(facecolor=_colour(i), alpha=0.5, label=plain(name)) for i, name in enumerate(labels)]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(labels), per_line), fontsize=9, frameon=False
    )
    return figure


def _sets(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows by set and noise, with a title for each."""
    return {
        f"{where}, noise {noise:g}" if noise else str(where): members
        for (where, noise), members in grouped(rows, "set", "noise").items()
    }


def _by_set(rows: Sequence[Row], name: str, shown: str) -> Figure:
    def draw(axis: Axes, title: str, members: list[Row], labels: list[str]) -> None:
        _boxes(axis, {str(group): runs for (group,), runs in grouped(members, "group").items()}, name, labels)
        axis.set_ylabel(shown)

    return _panels(rows, _sets(rows), draw)


def _by_noise(rows: Sequence[Row]) -> Figure:
    def draw(axis: Axes, title: str, members: list[Row], labels: list[str]) -> None:
        levels = sorted(grouped(members, "noise").items())
        _boxes(axis, {f"{level:g}": runs for (level,), runs in levels}, "nmse", labels)
        axis.set_xlabel("standard deviation of the noise")
        axis.set_ylabel("NMSE")

    return _panels(rows, {str(where): members for (where,), members in grouped(rows, "set").items()}, draw)


def _by_measure(rows: Sequence[Row], measures: dict[str, str]) -> Figure:
    """Draw a panel for each of `measures` (title: name)."""

    def draw(axis: Axes, title: str, members: list[Row], labels: list[str]) -> None:
        _boxes(axis, {"": members}, measures[title], labels)

    return _panels(rows, {title: list(rows) for title in measures}, draw)


_METRICS = {
    "NMSE": "nmse", "NRMSE": "nrmse", "MSE": "mse", "RMSE": "rmse", "InvNMSE": "inv_nmse", "InvNRMSE": "inv_nrmse",
    "R2": "r2",
}  # fmt: skip


# --- lines --------------------------------------------------------------------------------


def _by_size(rows: Sequence[Row]) -> Figure:
    def draw(axis: Axes, title: str, members: list[Row], labels: list[str]) -> None:
        for (method,), runs in grouped(members, "label").items():
            sizes = sorted((int(n), cost(some, "seconds")) for (n,), some in grouped(runs, "n_vars").items())
            known = [(n, seconds) for n, seconds in sizes if not math.isnan(seconds)]
            axis.plot([n for n, _ in known], [s for _, s in known], "o-", color=_colour(labels.index(method)))
        axis.set_yscale("log")
        axis.set_xticks(sorted({int(row["n_vars"]) for row in members}))
        axis.set_xlabel("number of variables")
        axis.set_ylabel("median seconds")
        axis.grid(alpha=0.3)

    return _panels(rows, _sets(rows), draw)


def _convergence(rows: Sequence[Row]) -> Figure:
    """Draw the best error so far of every run; in vertical search it begins anew with every round."""

    def draw(axis: Axes, title: str, members: list[Row], labels: list[str]) -> None:
        for row in members[:: -(-len(members) // _MAX_CURVES)]:  # evenly, so that no method is left out
            points: list[dict[str, Any]] = row["trace"]
            colour = _colour(labels.index(label(row)))
            x = [max(point["evaluations"], 1) for point in points]
            y = [min(max(point["error"], FLOOR), CEILING) for point in points]
            axis.plot(x, y, drawstyle="steps-post", color=colour, alpha=0.6, linewidth=0.9)
            axis.plot(x[-1:], y[-1:], ".", color=colour, markersize=4)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("evaluations")
        axis.set_ylabel("best error")
        axis.grid(alpha=0.3)

    followed = grouped([row for row in rows if row["trace"]], "set", "group", "noise")
    panels = {
        f"{where} {group}{f', noise {noise:g}' if noise else ''}".strip(): members
        for (where, group, noise), members in followed.items()
    }
    return _panels(rows, panels, draw)
