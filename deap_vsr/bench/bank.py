"""A bank of fitting problems: random skeletons of five families with known constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deap_vsr.lab.trials import Trial
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

N_VARS = 2
FAMILIES = ("linear", "rational", "sin/cos", "exponential", "product of sums")


@dataclass(frozen=True)
class FitProblem:
    """A skeleton, data made with constants that are known, and start values."""

    family: str
    tree: MaskedTree
    trial: Trial
    starts: Array


def fit_bank(size: int = 200, n_points: int = 256, n_starts: int = 4, seed: int = 0) -> list[FitProblem]:
    """Return `size` problems, the five families by turns; each can be fitted exactly."""
    rng = np.random.default_rng(seed)
    makers: tuple[Callable[[np.random.Generator], str], ...] = (_linear, _rational, _waves, _exponential, _product)
    problems: list[FitProblem] = []
    while len(problems) < size:
        family = len(problems) % len(FAMILIES)
        tree = MaskedTree.from_infix(makers[family](rng))
        constants = rng.choice([-1.0, 1.0], tree.n_constants) * rng.uniform(0.3, 3.0, tree.n_constants)
        X = rng.uniform(0.2, 5.0, (n_points, N_VARS))
        y = tree.with_constants(constants).evaluate(X)
        if not np.isfinite(y).all() or np.std(y) < 1e-6 or np.max(np.abs(y)) > 1e6:
            continue  # a pole on a data point, say: drawn again
        starts = rng.choice([-1.0, 1.0], (n_starts, len(constants))) * rng.uniform(0.3, 3.0, (n_starts, len(constants)))
        problems.append(FitProblem(FAMILIES[family], tree, Trial(X, y, tuple(range(N_VARS))), starts))
    return problems


def _variable(rng: np.random.Generator) -> str:
    return f"x{rng.integers(1, N_VARS + 1)}"


def _linear(rng: np.random.Generator) -> str:
    terms = ["x1", "x2", "sin(x1)", "cos(x2)", "x1*x2", "x1**2", "sqrt(x2)", "inv(x1)", "sqrt(x1*x2)", "log(x1)"]
    chosen = rng.choice(terms, int(rng.integers(2, 6)), replace=False)
    return " + ".join(["C", *(f"C*{term}" for term in chosen)])


def _rational(rng: np.random.Generator) -> str:
    a, b = _variable(rng), _variable(rng)
    above = f"C + C*{a}" if rng.random() < 0.5 else f"C*{a}"
    below = f"{b} + C" if rng.random() < 0.5 else f"1 + C*{b}**2"
    return f"({above})/({below})"


def _waves(rng: np.random.Generator) -> str:
    wave = rng.choice(["sin", "cos"])
    text = f"C*{wave}(C*{_variable(rng)} + C)"
    return text + (f" + C*{_variable(rng)}" if rng.random() < 0.5 else " + C")


def _exponential(rng: np.random.Generator) -> str:
    text = f"C*exp(C*{_variable(rng)})"
    return text + (f" + C*{_variable(rng)}" if rng.random() < 0.5 else " + C")


def _product(rng: np.random.Generator) -> str:
    return f"(C*x1 + C)*({_variable(rng)} + C)" if rng.random() < 0.5 else "C*(x1 + C)*(x2 + C)"
