"""Cost against the number of variables: vsr, and GP beside it, on three families of problems that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deap_vsr.judge.metrics import nmse
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import CallableOracle, EquationOracle
from deap_vsr.methods import discover
from deap_vsr.plot import figure_of
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.generate import trigonometric_program
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Recovered means, here: no larger error on fresh points.
RECOVERED = 1e-18


@dataclass(frozen=True)
class Family:
    """Problems by their size: what the size counts, the sizes, and an oracle for a size and a number."""

    name: str
    what: str
    sizes: tuple[int, ...]
    oracle: Callable[[int, int], CallableOracle]


def _trigonometric(m: int, number: int) -> CallableOracle:
    pairs = min(2 * m - 2, m * (m - 1) // 2)
    return EquationOracle(trigonometric_program("sincosinv", (m, m, pairs), number, seed=1))


def _distractors(n: int, number: int) -> CallableOracle:
    return EquationOracle(trigonometric_program("sincosinv", (5, 5, 5), number, seed=1, n_vars=n))


def _brackets(m: int, number: int) -> CallableOracle:
    law = MaskedTree.from_infix("*".join(f"(x{2 * i + 1} + x{2 * i + 2})" for i in range(m)))
    domain = [Variable(f"x{i + 1}", 0.5, 3.0, "uniform", "positive", "") for i in range(2 * m)]
    return CallableOracle(law.evaluate, domain, ("add", "sub", "mul", "div", "const"), seed=number)


FAMILIES = (
    Family("sums of terms", "variables", (2, 3, 4, 5, 6, 8, 10), _trigonometric),
    Family("products of brackets (x1 + x2)*(x3 + x4)*...", "brackets", tuple(range(1, 11)), _brackets),
    Family("5 variables that matter among", "variables", (5, 10, 50, 200, 1000), _distractors),
)


def bench_scaling(
    n_programs: int = 3,
    gp_seconds: float = 10.0,
    max_size: int = 10**9,
    progress: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Run every family; returns one row for each family, method and size, medians over the programs.

    GP gets `gp_seconds` a problem and is left out of sizes beyond the first two that it fails.
    """
    return [row for family in FAMILIES for row in _rows(family, n_programs, gp_seconds, max_size, progress)]


def _rows(
    family: Family, n_programs: int, gp_seconds: float, max_size: int, progress: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    for method, seconds in (("vsr", 60.0), ("gp", gp_seconds)):
        failed = 0
        for size in family.sizes:
            if size > max_size or failed == 2:
                continue
            progress(f"{family.name}: {size} {family.what}, {method}")
            runs = [_run(family.oracle(size, number), method, number, seconds) for number in range(n_programs)]
            row: dict[str, Any] = {"family": family.name, "what": family.what, "size": size, "method": method}
            for i, key in enumerate(("recovered", "seconds", "evaluations", "queries")):
                values = [run[i] for run in runs]
                row[key] = float(np.mean(values) if key == "recovered" else np.median(values))
            failed += row["recovered"] == 0
            yield row


def _run(oracle: CallableOracle, method: str, seed: int, seconds: float) -> tuple[bool, float, int, int]:
    result = discover(oracle, method, seed=seed, time_limit=seconds)
    if result.stopped_by == "interrupted":
        raise KeyboardInterrupt
    queries = result.oracle_queries
    X = draw_inputs(oracle.variables, 1000, np.random.default_rng(4711))
    hit = result.tree is not None and nmse(Lab(oracle).ask(X), result.tree.evaluate(X)) <= RECOVERED
    return hit, result.seconds, result.evaluations, queries


def growth(rows: list[dict[str, Any]], family: str, key: str) -> float:
    """Return the exponent p of cost ~ size**p for vsr, by least squares on logarithms."""
    points = [(row["size"], row[key]) for row in rows if row["family"] == family and row["method"] == "vsr"]
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0]) if len(points) > 1 else float("nan")


def plot_scaling(rows: list[dict[str, Any]]) -> Figure:
    """Draw seconds, evaluations and queries against the size, a row for each family."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    figure = figure_of(11.0, 3.0 * len(families))
    axes = figure.subplots(len(families), 3, squeeze=False)
    for line, family in zip(axes, families, strict=True):
        for axis, key in zip(line, ("seconds", "evaluations", "queries"), strict=True):
            for method, marker in (("vsr", "o"), ("gp", "x")):
                mine = [row for row in rows if row["family"] == family and row["method"] == method]
                axis.plot([row["size"] for row in mine], [row[key] for row in mine], marker=marker, label=method)
                for row in mine:
                    if row["recovered"] < 1:
                        axis.annotate(f"{row['recovered']:.0%}", (row["size"], row[key]), fontsize=8)
            sizes = sorted({row["size"] for row in rows if row["family"] == family})
            axis.set_xscale("log")
            axis.set_xticks(sizes, [str(size) for size in sizes])
            axis.minorticks_off()
            axis.set_yscale("log")
            axis.set_xlabel(next(row["what"] for row in rows if row["family"] == family))
            axis.set_ylabel(key)
        line[0].set_title(family, loc="left", fontsize=10)
        line[0].legend()
    figure.suptitle("cost against size; numbers are shares recovered where not all were", fontsize=10)
    return figure
