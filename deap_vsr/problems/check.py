"""Checking problem files: that they load, and that their two formulas agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deap_vsr.errors import EquationError, ExpressionError, short
from deap_vsr.problems.equation import Equation, load_equation
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree


def check_file(path: Path) -> list[str]:
    """Return what is wrong with one file, each line naming it; an empty list if nothing is."""
    try:
        equation = load_equation(path)
    except EquationError as error:
        return [str(error)]
    return [f"{path}: {problem}" for problem in check_equation(equation)]


def check_equation(equation: Equation, n_points: int = 1000, tolerance: float = 1e-9) -> list[str]:
    """Return what is wrong with a loaded problem; an empty list if nothing is.

    The pre-order list and the readable formula must agree on `n_points` random points, and a
    usable problem must be finite there.
    """
    try:
        readable = MaskedTree.from_infix(equation.formula)
        X = draw_inputs(equation.variables, n_points, np.random.default_rng(0))
        listed, read = equation.evaluate(X), readable.evaluate(X)
    except ExpressionError as error:
        return [f"formula: {short(str(error), 300)}"]
    problems = []
    with np.errstate(all="ignore"):
        agree = (np.abs(listed - read) <= tolerance * np.abs(listed)) | (listed == read)
    agree |= np.isnan(listed) & np.isnan(read)
    if not agree.all():
        problems.append(f"formula: differs from the pre-order list on {np.sum(~agree)} of {n_points} points")
    if equation.usable and not np.isfinite(listed).all():
        n_bad = np.sum(~np.isfinite(listed))
        problems.append(f"equation: not finite on {n_bad} of {n_points} points, but marked usable")
    if not equation.usable and not equation.reason:
        problems.append("reason: empty, but the problem is marked as not usable")
    return problems
