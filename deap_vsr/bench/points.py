"""Recovery against the number of points that may be asked, exact and in noise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deap_vsr.bench.runs import Job, Json, Progress, all_runs, answer_of, failure_of, median_of
from deap_vsr.errors import VsrError
from deap_vsr.judge.form import right_form
from deap_vsr.lab.oracle import Noise
from deap_vsr.methods import discover
from deap_vsr.plot import figure_of
from deap_vsr.problems.equation import Equation, load_equation
from deap_vsr.problems.laws import laws_suite
from deap_vsr.problems.suites import problem_files
from deap_vsr.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The file of finished runs, a JSON object a line.
RUNS = "points.jsonl"
#: Limits on points; None is no limit.
LIMITS: tuple[int | None, ...] = (20, 30, 50, 100, 200, 300, 1000, 3000)
#: Standard deviations of the noise, as shares of that of y.
NOISE = (0.0, 0.001, 0.01, 0.1)
#: Of lines in the picture, by turns.
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
#: The place that stands for laws drawn anew.
LAWS = "laws"


@dataclass(frozen=True)
class PointsJob(Job):
    """One run: a problem as it is in its file, a limit, a level of noise and a seed."""

    problem: str
    digest: str
    limit: int | None
    noise: float
    seed: int
    time_limit: float


def bench_points(
    problems: Sequence[Equation],
    limits: Sequence[int | None] = LIMITS,
    noise: Sequence[float] = NOISE,
    n_seeds: int = 1,
    time_limit: float = 60.0,
    *,
    n_jobs: int = 1,
    out: Path | None = None,
    tell: Callable[[Progress], None] = lambda news: None,
) -> list[Json]:
    """Run every problem with every limit, level of noise and seed; returns the finished runs, exact ones first.

    Parameters
    ----------
    limits : how many points may be asked, None for any number
    noise : standard deviations of the noise, as shares of that of y
    n_jobs : how many processes
    out : folder in which finished runs are kept; those that it holds are not done again
    """
    jobs = {
        PointsJob(problem.name, _digest(problem), limit, float(level), seed, float(time_limit)): problem
        for level in sorted(noise)
        for limit in sorted(limits, key=_place)
        for seed in range(n_seeds)
        for problem in problems
    }
    return all_runs(PointsJob, jobs, run_one, n_jobs=n_jobs, keep=None if out is None else out / RUNS, tell=tell)


def _place(limit: int | None) -> float:
    """Return where a limit stands among others: no limit is the last."""
    return float("inf") if limit is None else limit


def _digest(problem: Equation) -> str:
    """Return what tells a problem from another of its name: one drawn with another seed, or a file that has changed."""
    told = repr((problem.variables, problem.function_set, problem.tree.to_infix()))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


# --- what was asked for -------------------------------------------------------------------


def problems_of(places: Sequence[str], n_laws: int = 24, laws_seed: int = 0) -> list[Equation]:
    """Return the usable problems of suites, folders and globs, and `n_laws` fresh laws for the word ``laws``."""
    found: list[Equation] = []
    for place in places:
        here = list(laws_suite(n_laws, laws_seed)) if place == LAWS else list(map(load_equation, problem_files(place)))
        if not here:
            raise VsrError(f"{place}: no equation files there; give a folder, a glob, a name from `vsr data list`")
        found += [problem for problem in here if problem.usable]
    if not found:
        raise VsrError(f"{', '.join(places)}: none of the problems is usable")
    return found


def limits_of(text: str) -> tuple[int | None, ...]:
    """Return the limits that a text such as ``30,100,none`` asks for; 0 is no limit as well."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part == "none" or part.isdecimal() for part in parts):
        raise VsrError(f"--limits {text}: expected numbers of points, or none, such as 30,100,none")
    return tuple(None if part == "none" else int(part) or None for part in parts)


def noise_of(text: str) -> tuple[float, ...]:
    """Return the levels of noise that a text such as ``0,0.01`` asks for."""
    try:
        levels = tuple(map(float, text.split(",")))
    except ValueError:
        levels = ()
    if not levels or not all(0 <= level < float("inf") for level in levels):
        raise VsrError(f"--noise {text}: expected shares of the spread of y, such as 0,0.01")
    return levels


# --- one run ------------------------------------------------------------------------------


def run_one(job: PointsJob, law: Equation) -> Json:
    """Do one run; a failure is a run as well."""
    known = asdict(job) | {"n_vars": law.n_vars, "formula": law.formula}
    noise = Noise(job.noise, relative=job.noise > 0)
    try:
        result = discover(law, "vsr", seed=job.seed, time_limit=job.time_limit, max_queries=job.limit, noise=noise)
        return known | judged(result, law, job.noise)
    except Exception as error:
        nothing = {"recovered": False, "right": False, "good": False, "status": None, "found": False, "false": False}
        return known | nothing | failure_of(error)


def judged(result: Result, law: Equation, noise: float) -> Json:
    """Return whether the law was recovered, whether that was said and is false, and what it cost.

    Numbers from noisy answers cannot be exact: in noise an answer is ``good`` if its form is right, else if it is
    recovered. Found is false where the answer is not good.
    """
    recovered = result.verdict is not None and result.verdict.recovered
    right = recovered or (result.tree is not None and right_form(result.tree, law))
    good = right if noise else recovered
    found = result.status == "found"
    return answer_of(result) | {
        "recovered": recovered,
        "right": right,
        "good": good,
        "status": result.status,
        "reason": result.reason,
        "found": found,
        "false": found and not good,
    }


# --- the tables ---------------------------------------------------------------------------


def counted(runs: Sequence[Json]) -> list[Json]:
    """Return one line for each level of noise and limit.

    ``good``, ``found`` and ``false`` are means over seeds of counts of problems; ``points`` is the median over the good
    runs, ``seconds`` over those that did not fail.
    """
    n_seeds = len({run["seed"] for run in runs})
    lines = []
    for noise, limit in dict.fromkeys((run["noise"], run["limit"]) for run in runs):
        mine = [run for run in runs if (run["noise"], run["limit"]) == (noise, limit)]
        line: Json = {"noise": noise, "limit": limit, "problems": len(mine) // n_seeds, "seeds": n_seeds}
        line["failed"] = sum(run["error"] is not None for run in mine)
        line |= {key: sum(run[key] for run in mine) / n_seeds for key in ("good", "found", "false")}
        line["points"] = median_of([run for run in mine if run["good"]], "points")
        line["seconds"] = median_of(mine, "seconds")
        lines.append(line)
    return lines


@dataclass(frozen=True)
class Shown:
    """A table as text: a title, limits as the heads of its columns, and cells by the names of levels of noise."""

    title: str
    heads: tuple[str, ...]
    rows: dict[str, list[str]]

    def markdown(self) -> str:
        """Return it in Markdown."""
        lines = [["limit", *self.heads], ["---", *("---:" for _ in self.heads)]]
        lines += [[name, *cells] for name, cells in self.rows.items()]
        return "\n".join([f"{self.title}:", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def tables(lines: Sequence[Json]) -> list[Shown]:
    """Return what was recovered, with how many points, and what was called found; a row a level, a column a limit."""
    n_problems = lines[0]["problems"]
    mean = ", means over seeds" if lines[0]["seeds"] > 1 else ""
    cells: dict[str, Callable[[Json], str]] = {
        f"recovered (in noise: right form), of {n_problems} problems{mean}": lambda line: _count(line["good"]),
        "points asked, median over these runs": lambda line: _median(line["points"]),
        f"called found, and how many of them falsely{mean}": lambda line: (
            f"{_count(line['found'])}, {_count(line['false'])}"
        ),
    }
    heads = tuple(dict.fromkeys(limit_name(line["limit"]) for line in lines))
    levels = dict.fromkeys(line["noise"] for line in lines)
    return [
        Shown(title, heads, {noise_name(one): [cell(line) for line in lines if line["noise"] == one] for one in levels})
        for title, cell in cells.items()
    ]


def _count(mean: float) -> str:
    return f"{mean:.0f}" if mean == round(mean) else f"{mean:.1f}"


def _median(points: float | None) -> str:
    return "-" if points is None else f"{points:.0f}"


def limit_name(limit: int | None) -> str:
    """Return a limit in words."""
    return "none" if limit is None else str(limit)


def noise_name(level: float) -> str:
    """Return a level of noise in words."""
    return f"noise {100 * level:g}%" if level else "exact"


# --- the picture --------------------------------------------------------------------------


def plot_points(lines: Sequence[Json]) -> Figure:
    """Draw the share that was recovered against the limit, a line for each level of noise; no limit is at the right."""
    limits = dict.fromkeys(line["limit"] for line in lines)
    beyond = 3.0 * max((limit for limit in limits if limit is not None), default=1)
    places = {limit: beyond if limit is None else float(limit) for limit in limits}
    figure = figure_of(7.0, 4.2)
    axis = figure.subplots()
    for level, marker in zip(dict.fromkeys(line["noise"] for line in lines), _MARKERS * len(lines), strict=False):
        mine = [line for line in lines if line["noise"] == level]
        shares = [line["good"] / line["problems"] for line in mine]
        axis.plot([places[line["limit"]] for line in mine], shares, marker=marker, label=noise_name(level), alpha=0.9)
    axis.set_xscale("log")
    axis.set_xticks(list(places.values()), list(map(limit_name, places)))
    axis.minorticks_off()
    axis.set_ylim(-0.03, 1.03)
    axis.yaxis.set_major_formatter("{x:.0%}")
    axis.grid(alpha=0.3)
    axis.set_xlabel("points that may be asked")
    axis.set_ylabel("recovered (in noise: right form)")
    axis.set_title(f"{lines[0]['problems']} problems, noise in shares of the spread of y", loc="left", fontsize=10)
    axis.legend()
    return figure
