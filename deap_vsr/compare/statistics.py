"""Numbers over rows: groups, medians, and methods against each other run by run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

from deap_vsr.judge.metrics import Quartiles, accuracy, quartiles
from deap_vsr.problems.suites import natural

Row = dict[str, Any]

#: Errors below count as equal, here as in the paper's tables.
TIE = 1e-6
#: What a failed run counts as, by measure; +inf if it is not here.
_WORST = {"r2": -math.inf, "inv_nmse": 0.0, "inv_nrmse": 0.0}


def label(row: Row) -> str:
    """Return the name under which a row is compared: its method, and how constants were fitted if that was asked."""
    return f"{row['method']} [{row['optimizer']}]" if row["optimizer"] else str(row["method"])


def number(row: Row, name: str) -> float:
    """Return an entry of a row; NaN where there is none."""
    return math.nan if row[name] is None else float(row[name])


def ordered(rows: Iterable[Row], methods: Sequence[str]) -> list[Row]:
    """Return the rows in an order that does not depend on which was finished first; methods as in `methods`."""

    def place(row: Row) -> tuple[Any, ...]:
        method = methods.index(row["method"]) if row["method"] in methods else len(methods)
        where = (natural(row["set"]), natural(row["group"]), row["noise"], method, natural(row["optimizer"] or ""))
        return (*where, natural(row["problem"]), row["seed"])

    return sorted(rows, key=place)


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by what they have under `names`, in the order in which they come; "label" is the method's."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(label(row) if name == "label" else row[name] for name in names), []).append(row)
    return groups


def summary(rows: Sequence[Row], name: str) -> Quartiles:
    """Return median and quartiles of a measure of a group; a failed run counts as the worst."""
    return quartiles([number(row, name) for row in rows], _WORST.get(name, math.inf))


def cost(rows: Sequence[Row], name: str) -> float:
    """Return the median of a cost (seconds, queries, ...) over the runs that have one; NaN if none has."""
    values = [float(row[name]) for row in rows if row[name] is not None]
    return float(np.median(values)) if values else math.nan


def recovered(rows: Sequence[Row]) -> float:
    """Return the share of a group whose formula was recovered, as the judge says."""
    return sum(bool(row["recovered"]) for row in rows) / len(rows)


def right_form(rows: Sequence[Row]) -> float:
    """Return the share of a group that has the law's form in noise; NaN if that is not known of any."""
    known = [bool(row["right_form"]) for row in rows if row["right_form"] is not None]
    return sum(known) / len(known) if known else math.nan


def called_found(rows: Sequence[Row]) -> float:
    """Return how many formulas of a group are called found; NaN if that is not known of any."""
    known = [row for row in rows if row["false_found"] is not None]
    return sum(row["standing"] == "found" for row in known) if known else math.nan


def false_found(rows: Sequence[Row]) -> float:
    """Return how many of them are called found wrongly; NaN if that is not known of any."""
    known = [row["false_found"] for row in rows if row["false_found"] is not None]
    return sum(map(bool, known)) if known else math.nan


def accurate(rows: Sequence[Row]) -> float:
    """Return the share of a group with R2 >= 0.999, which the paper calls recovery."""
    return accuracy(number(row, "r2") for row in rows)


#: Up to so many problems p-values are exact.
MAX_EXACT = 200


@dataclass(frozen=True)
class Paired:
    """Two methods on the same problems with the same seeds: the first wins, is equal, loses.

    `p_value` is that of Wilcoxon's signed-rank test, two-sided, over the `n_untied` of `n_problems` problems that tell
    the methods apart (seeds of one problem are not independent: their median counts); 1 if none does. It is not
    corrected for the number of pairs that are looked at.
    """

    wins: int
    ties: int
    losses: int
    n_problems: int
    n_untied: int
    p_value: float


def paired(rows: Iterable[Row], first: str, second: str) -> Paired:
    """Compare the NMSE of two labels over the runs that both have."""
    errors: dict[str, dict[tuple[Any, ...], float]] = {first: {}, second: {}}
    for row in rows:
        if label(row) in errors:
            nmse = number(row, "nmse")
            floored = math.inf if math.isnan(nmse) else max(nmse, TIE)
            errors[label(row)][row["problem"], row["noise"], row["seed"]] = floored
    common = [key for key in errors[first] if key in errors[second]]
    pairs = [(errors[first][key], errors[second][key]) for key in common]
    differences: dict[tuple[Any, ...], list[float]] = {}
    for key, (one, other) in zip(common, pairs, strict=True):
        # In powers of ten: a test on plain differences would only see the problems with the largest errors.
        step = math.log10(min(one, 1e12)) - math.log10(min(other, 1e12))
        differences.setdefault(key[:2], []).append(step)
    medians = [float(np.median(steps)) for steps in differences.values()]
    return Paired(
        sum(one < other for one, other in pairs),
        sum(one == other for one, other in pairs),
        sum(one > other for one, other in pairs),
        len(differences),
        sum(step != 0 for step in medians),
        _signed_rank([step for step in medians if step != 0]),
    )


def _signed_rank(differences: list[float]) -> float:
    """Return the p-value for differences that are not 0: exactly, but for many."""
    n = len(differences)
    if not n:
        return 1.0
    ranks = rankdata(np.abs(differences))
    low = min(float(ranks[np.array(differences) > 0].sum()), float(ranks[np.array(differences) < 0].sum()))
    if n > MAX_EXACT:
        return float(wilcoxon(differences, method="approx").pvalue)
    # How many of the 2^n ways to put signs before the ranks have as small a sum: ranks of ties are halves.
    ways = np.zeros(int(2 * ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in (2 * ranks).astype(int):
        ways[rank:] += ways[:-rank].copy()
    return float(min(1.0, 2.0 * ways[: int(2 * low) + 1].sum() / 2.0**n))
