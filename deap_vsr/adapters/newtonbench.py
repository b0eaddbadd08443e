"""NewtonBench: experiments in rounds, ten of up to twenty points, and a Python function out.

A problem is ``module/difficulty/law``, as ``m0_gravity/easy/v0``. Of the user's copy ``modules/<module>/core.py`` is
used: ``run_experiment_for_module(...)`` is the experiment; what ``evaluate_law`` would examine an answer with, ranges
and law, gives domains and figures. Only ``vanilla_equation`` asks for y itself; other systems give time series.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.adapters.entry import Entry, GlobalStream, RoundsOracle, inside, with_domains
from deap_vsr.doors import FUNCTION_SET
from deap_vsr.errors import VsrError
from deap_vsr.judge.metrics import RECOVERY_NMSE
from deap_vsr.problems.equation import Variable
from deap_vsr.result import Result
from deap_vsr.tree.operators import Array

#: The rules: points of a round at the most, and rounds.
POINTS, ROUNDS = 20, 10
SYSTEM = "vanilla_equation"
#: What it wants an answer to be called.
FUNCTION = "discovered_law"
#: Figures to which the ranges of its examination are taken for domains: it draws from them.
_DIGITS = 2


def newtonbench(
    folder: Path, problem: str, domains: Mapping[str, Variable], noise: float, kind: str, seed: int
) -> Entry:
    """Return a problem such as ``m0_gravity/easy/v0``.

    Parameters
    ----------
    folder : the copy, with ``modules/``
    domains : of its variables; those that are not named have the ranges in which answers are examined
    noise : its noise level, a share of each answer
    seed : of the noise, and of its examination
    """
    if kind != "normal":
        raise VsrError(f"--noise-kind {kind}: NewtonBench has its own, normal and a share of each answer")
    module, difficulty, version = _parts(problem)
    stream = GlobalStream(seed)
    with inside(folder), stream():
        try:
            core = import_module(f"modules.{module}.core")
            law, _ = core.get_ground_truth_law(difficulty, version)
        except (ImportError, AttributeError, ValueError) as error:
            raise VsrError(f"there is no {problem} in {folder}: {error}") from None
        names = list(inspect.signature(law).parameters)
        exam = _exam(core, names, difficulty, version)
    examined = [_variable(name, exam.X[:, i]) for i, name in enumerate(names)]
    variables = with_domains(examined, domains)

    def experiment(X: Array) -> Array:
        how = {"noise_level": noise, "difficulty": difficulty, "system": SYSTEM, "law_version": version}
        with stream():
            return np.array([_answer(core.run_experiment_for_module, names, x, how) for x in X.tolist()])

    oracle = RoundsOracle(experiment, variables, FUNCTION_SET, POINTS, ROUNDS, output=FUNCTION)
    return Entry(
        oracle,
        lambda result: (f"{FUNCTION}.py", result.to_python()),
        lambda result: {"rounds": oracle.rounds, **_figures(result, exam)},
        batch=POINTS,
        max_queries=POINTS * ROUNDS,
    )


@dataclass(frozen=True)
class Exam:
    """What it examines answers with: points, (n, n_vars), and what the law says there, (n,)."""

    X: Array
    y: Array


def _parts(problem: str) -> tuple[str, str, str]:
    parts = problem.split("/")
    if len(parts) != 3 or not all(part.isidentifier() for part in parts):
        raise VsrError(f"{problem}: expected module/difficulty/law, such as m0_gravity/easy/v0")
    return parts[0], parts[1], parts[2]


def _answer(run: Callable[..., Any], names: list[str], x: list[float], how: dict[str, Any]) -> float:
    """Return y of one experiment; NaN where it gives none."""
    try:
        return float(run(**dict(zip(names, x, strict=True)), **how))
    except (ValueError, ArithmeticError):
        return float("nan")


def _exam(core: Any, names: list[str], difficulty: str, version: str) -> Exam:
    """Return what `evaluate_law` hands to the judge that all modules share; the judge itself is not asked."""
    kept: dict[str, Any] = {}
    judge = core.shared_evaluate_law
    core.shared_evaluate_law = lambda **given: kept.update(given) or {}
    try:
        core.evaluate_law(f"def {FUNCTION}({', '.join(names)}):\n    return 0.0", "", difficulty, version)
    finally:
        core.shared_evaluate_law = judge
    try:
        data, of = kept["test_data"], kept["parameter_mapping"]
        X = np.column_stack([np.asarray(data[of[name]], dtype=float) for name in names])
        return Exam(X, np.array([float(kept["gt_law"](*x)) for x in X.tolist()]))
    except KeyError as error:
        raise VsrError(f"{core.__name__}.evaluate_law gives its judge no {error}; is this another version?") from None


def _variable(name: str, drawn: Array) -> Variable:
    low, high = (float(f"{value:.{_DIGITS - 1}e}") for value in (drawn.min(), drawn.max()))
    return Variable(name, low, high, "loguniform" if low > 0 else "uniform", symbol=name)


def _figures(result: Result, exam: Exam) -> dict[str, float]:
    """Return RMSLE as it computes it, NMSE, and 1.0 where the law is met everywhere; NaN without a formula."""
    if result.tree is None:
        return {"RMSLE": float("nan"), "NMSE": float("nan"), "exact": 0.0}
    with np.errstate(all="ignore"):
        y = result.tree.evaluate(exam.X)
        good = np.isfinite(y) & np.isfinite(exam.y)
        logs = np.log1p(np.abs(y[good])) - np.log1p(np.abs(exam.y[good]))
        error = float(np.mean((y - exam.y) ** 2) / np.var(exam.y))
    return {"RMSLE": float(np.sqrt(np.mean(logs**2))), "NMSE": error, "exact": float(error <= RECOVERY_NMSE)}
