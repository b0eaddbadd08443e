"""The tables of a comparison, in the layout of the paper's, its figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from deap_vsr.compare import statistics
from deap_vsr.compare.claims import claims
from deap_vsr.compare.paper import NAMES, OTHER_DRAWS, Published, compared, published
from deap_vsr.compare.statistics import TIE, Row, grouped, label
from deap_vsr.problems.suites import natural

#: Columns in which two comparisons of the same settings may differ.
VOLATILE_COLUMNS = ("seconds", "memory (MB)", "minutes")


@dataclass(frozen=True)
class Cell:
    """An entry: what is shown, what it is sorted by, and the paper's figure beside it.

    `sign` is "<", "=" or ">": ours against the paper's; `better` whether that speaks for ours. `link` is a place in
    the report.
    """

    text: str
    value: float | int | str | None = None
    best: bool = False
    paper: str = ""
    sign: str = ""
    better: bool = False
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table: a short name for files, a title, what to know about it, columns and rows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def all_tables(rows: Sequence[Row]) -> list[Table]:
    """Return every table there is something to put into; `rows` in their order."""
    counted = claim_table(rows)
    return [
        overview(rows), *median_tables(rows), *([counted] if counted.rows else []), recovery(rows),
        quartile_table(rows), metric_table(rows), pairs(rows),
    ]  # fmt: skip


def overview(rows: Sequence[Row]) -> Table:
    """Return what came out and what it cost, for each group and method."""
    lines = []
    for (where, group, noise, method), runs in grouped(rows, "set", "group", "noise", "label").items():
        failed = sum(row["status"] == "failed" for row in runs)
        lines.append((
            text(where), text(group), real(noise), text(method), whole(len(runs)), whole(failed),
            error(statistics.summary(runs, "nmse").median), share(statistics.recovered(runs)),
            share(statistics.right_form(runs)), whole(statistics.called_found(runs)),
            whole(statistics.false_found(runs)),
            real(statistics.cost(runs, "seconds")), whole(statistics.cost(runs, "evaluations")),
            whole(statistics.cost(runs, "oracle_queries")), real(statistics.cost(runs, "peak_memory_mb")),
        ))  # fmt: skip
    columns = (
        "set", "group", "noise", "method", "runs", "failed", "median NMSE", "recovered", "right form", "found",
        "false found", "seconds", "evaluations", "queries", "memory (MB)",
    )  # fmt: skip
    note = (
        "Recovered: NMSE of at most 1e-12 on 10,000 noiseless points and the same formula. Found: runs that call "
        "their formula so; false found: those of them that are not recovered, in noise those without the law's form. "
        "Costs are medians; memory is the peak of the learning phase above the start, in a process of its own."
    )
    table = Table("overview", "Results and costs", columns, tuple(lines), note)
    if all(row["right_form"] is None for row in rows):  # without noise there is none but recovered
        return _without(table, "right form")
    return replace(table, note=f"{note} Right form: in noise, the law but for the values of its numbers.")


def _without(table: Table, column: str) -> Table:
    at = table.columns.index(column)
    rows = tuple(row[:at] + row[at + 1 :] for row in table.rows)
    return replace(table, columns=table.columns[:at] + table.columns[at + 1 :], rows=rows)


def median_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the median NMSE in the paper's layout: methods down, groups across; a table a family of sets."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row["set"].split("/")[0], []).append(row)
    return [_median_table(family, runs) for family, runs in families.items()]


def _median_table(family: str, rows: Sequence[Row]) -> Table:
    groups = sorted({row["group"] for row in rows}, key=natural)
    lines: list[tuple[Cell, ...]] = []
    known = False
    for (where, noise), runs in grouped(rows, "set", "noise").items():
        labels = list(grouped(runs, "label"))
        medians = {
            key: statistics.summary(members, "nmse").median for key, members in grouped(runs, "label", "group").items()
        }
        best = {group: min(max(medians.get((*name, group), math.inf), TIE) for name in labels) for group in groups}
        figures = {} if _is_share(runs) else _figures(where, noise, "nmse")
        known = known or bool(figures)
        for (method,) in labels:
            cells = []
            for group in groups:
                ours = medians.get((method, group), math.nan)
                beside = figures.get((group, NAMES.get(method, "")))
                cells.append(error(ours, best=max(ours, TIE) == best[group], paper=beside))
            lines.append((text(where), real(noise), text(method), *cells))
        for method in dict.fromkeys(name for _, name in figures):
            if method not in [NAMES.get(name) for (name,) in labels]:
                row = [figures.get((group, method)) for group in groups]
                cells = [Cell("", None, paper=found.text if found else "") for found in row]
                lines.append((text(where), real(noise), text(f"{method} (paper only)"), *cells))
    note = "Medians over problems and seeds; a failed run counts as the worst. Bold: the best of ours; ties below 1e-6."
    columns = ("set", "noise", "method", *(group or "all" for group in groups))
    name = f"nmse-{family.strip('./').replace('/', '-') or 'folder'}"
    return Table(name, f"Median NMSE: {family}", columns, tuple(lines), f"{note} {_legend()}" if known else note)


def claim_table(rows: Sequence[Row]) -> Table:
    """Return in how many cells a vertical method is no worse than its horizontal half, and each than the paper."""
    lines = tuple(
        (
            text(claim.method), text(claim.other), whole(claim.n_cells), whole(claim.no_worse), real(claim.points),
            text("; ".join(claim.behind)),
        )
        for claim in claims(rows)
    )  # fmt: skip
    columns = ("method", "against", "cells", "no worse", "points, times", "worse in")
    note = (
        "A cell is a group of a set at a level of noise. No worse: the median NMSE over the runs that both have is no "
        "larger; below 1e-6 they are equal. Points: how many times as many were asked, the median over those runs. "
        "Against the paper, whose programs are other draws, any difference counts."
    )
    return Table("claims", "In how many cells", columns, lines, note)


def recovery(rows: Sequence[Row]) -> Table:
    """Return recovery, time and memory in the layout of the paper's fourth table."""
    lines = []
    known = False
    for (where, group, noise, method), runs in grouped(rows, "set", "group", "noise", "label").items():
        name = NAMES.get(method, "")
        paper = {
            measure: None if _is_share(runs) else published().get((where, group, noise, measure, name))
            for measure in ("accuracy", "minutes", "peak_memory_mb")
        }
        known = known or any(paper.values())
        lines.append((
            text(where), text(group), real(noise), text(method),
            share(statistics.accurate(runs), paper["accuracy"]), share(statistics.recovered(runs)),
            real(statistics.cost(runs, "seconds") / 60, paper["minutes"]),
            real(statistics.cost(runs, "peak_memory_mb"), paper["peak_memory_mb"]),
        ))  # fmt: skip
    columns = ("set", "group", "noise", "method", "R2 >= 0.999", "recovered", "minutes", "memory (MB)")
    note = (
        "The paper calls a share of R2 >= 0.999 recovery; ours asks for the formula itself. Minutes and memory are "
        "medians over runs, the paper's are what it prints as total time and peak memory, on another machine."
    )
    return Table(
        "recovery", "Recovery, time and memory", columns, tuple(lines), f"{note} {_legend()}" if known else note
    )


def quartile_table(rows: Sequence[Row]) -> Table:
    """Return the quartiles of the NMSE."""
    lines = []
    for (where, group, noise, method), runs in grouped(rows, "set", "group", "noise", "label").items():
        found = statistics.summary(runs, "nmse")
        cells = (error(found.lower), error(found.median), error(found.upper))
        lines.append((text(where), text(group), real(noise), text(method), whole(len(runs)), *cells))
    columns = ("set", "group", "noise", "method", "runs", "25 %", "50 %", "75 %")
    return Table("quartiles", "Quartiles of the NMSE", columns, tuple(lines))


def metric_table(rows: Sequence[Row]) -> Table:
    """Return the median of every metric."""
    names = {
        "mse": "MSE", "nmse": "NMSE", "rmse": "RMSE", "nrmse": "NRMSE", "inv_nmse": "InvNMSE", "inv_nrmse": "InvNRMSE",
        "r2": "R2",
    }  # fmt: skip
    lines = []
    for (where, group, noise, method), runs in grouped(rows, "set", "group", "noise", "label").items():
        show: list[Cell] = [
            (error if name in ("mse", "nmse", "rmse", "nrmse") else real)(statistics.summary(runs, name).median)
            for name in names
        ]
        lines.append((text(where), text(group), real(noise), text(method), *show, share(statistics.accurate(runs))))
    columns = ("set", "group", "noise", "method", *names.values(), "accuracy")
    note = "Medians on 10,000 noiseless points. Accuracy is the share of runs with R2 >= 0.999."
    return Table("metrics", "All metrics", columns, tuple(lines), note)


def pairs(rows: Sequence[Row]) -> Table:
    """Return every two methods against each other, run by run."""
    lines = []
    everywhere = {"all": list(rows)} | {where: runs for (where,), runs in grouped(rows, "set").items()}
    if len(everywhere) == 2:
        del everywhere["all"]
    for where, chosen in everywhere.items():
        for (noise,), runs in grouped(chosen, "noise").items():
            for first, second in combinations(dict.fromkeys(map(label, runs)), 2):
                found = statistics.paired(runs, first, second)
                lines.append((
                    text(where), real(noise), text(first), text(second), whole(found.wins), whole(found.ties),
                    whole(found.losses), whole(found.n_problems), whole(found.n_untied), real(found.p_value),
                ))  # fmt: skip
    columns = ("set", "noise", "first", "second", "first wins", "ties", "first loses", "problems", "untied", "p")
    note = (
        "NMSE of the same problem and seed; both below 1e-6 is a tie, a failed run loses. p: Wilcoxon's signed-rank "
        "test, two-sided, on the logarithms, over the untied problems (the median over seeds, which are not "
        "independent); not corrected for the number of pairs."
    )
    return Table("pairs", "Methods against each other", columns, tuple(lines), note)


def _is_share(rows: Sequence[Row]) -> bool:
    """Whether the noise of these runs is a share of the size of y; the paper's never is."""
    return any(row["noise_of"] for row in rows)


def _figures(where: str, noise: float, measure: str) -> dict[tuple[str, str], Published]:
    """Return the paper's figures of a set by (group, the paper's name of the method)."""
    return {
        (group, method): found
        for (its, group, level, kind, method), found in published().items()
        if (its, level, kind) == (where, noise, measure)
    }


def _legend() -> str:
    return (
        "In brackets the paper's figure; ▼ ours is less than half of it, ▲ more than twice, = neither; costs, on "
        "another machine and within other limits, have no sign. " + OTHER_DRAWS
    )


# --- cells --------------------------------------------------------------------------------


def text(value: str) -> Cell:
    """Return a cell of text."""
    return Cell(value, value)


def whole(value: float) -> Cell:
    """Return a cell of a whole number; empty for NaN."""
    return Cell("", None) if math.isnan(value) else Cell(f"{value:,.0f}", value)


def real(value: float, paper: Published | None = None) -> Cell:
    """Return a cell of a number to three digits; empty for NaN.

    It has no sign beside the paper's: costs on another machine, within other limits, are not compared.
    """
    shown = Cell("", None) if math.isnan(value) else Cell(f"{value:.3g}", value if math.isfinite(value) else str(value))
    return replace(shown, paper=paper.text if paper else "")


def share(value: float, paper: Published | None = None) -> Cell:
    """Return a cell of a percentage."""
    return _beside(f"{value:.0%}", value, paper, lambda sign: sign == ">")


def error(value: float, best: bool = False, paper: Published | None = None) -> Cell:
    """Return a cell of an error, as the paper prints them: those below 1e-6 are alike."""
    return _beside("<1e-6" if value < TIE else f"{value:.2g}", value, paper, lambda sign: sign == "<", best)


def _beside(shown: str, value: float, paper: Published | None, good: Callable[[str], bool], best: bool = False) -> Cell:
    beside = paper.text if paper else ""
    if math.isnan(value):
        return Cell("", None, paper=beside)
    sign = compared(value, paper) if paper else ""
    return Cell(shown, value if math.isfinite(value) else str(value), best, beside, sign, good(sign))
