"""Control-variable experiments: sampling trials with some variables free and the rest held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.errors import NoValuesError, OracleError
from deap_vsr.lab.oracle import Oracle, with_errors
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree.operators import Array

#: How often a setting, or the points missing in a trial, are drawn again before giving up: a region of a tenth of the
#: domain is found by then, nearly always.
MAX_REDRAWS = 30


@dataclass(frozen=True)
class Trial:
    """One batch of data: controlled variables held at one setting, free ones sampled.

    Attributes
    ----------
    X : array of shape (n_points, n_vars), all columns, controlled ones constant
    y : array of shape (n_points,), finite
    free : columns that vary, from 0
    weights : array of shape (n_points,) or None
    dropped : int
        Points asked for whose y was not finite; others were drawn in their place.
    """

    X: Array
    y: Array
    free: tuple[int, ...] = ()
    weights: Array | None = None
    dropped: int = 0


def sample_trials(
    oracle: Oracle,
    free: Iterable[int],
    n_trials: int,
    n_points: int,
    rng: np.random.Generator,
    settings: Array | None = None,
) -> list[Trial]:
    """Sample trials of an oracle, as :func:`draw_trials` does; standard errors of points become weights."""

    def ask(X: Array) -> tuple[Array, Array | None]:
        y, sigma = with_errors(oracle.evaluate(X))
        return np.asarray(y, dtype=float), None if sigma is None else 1.0 / np.asarray(sigma, dtype=float) ** 2

    return draw_trials(oracle.variables, ask, free, n_trials, n_points, rng, settings)


def draw_trials(
    variables: Sequence[Variable],
    ask: Callable[[Array], tuple[Array, Array | None]],
    free: Iterable[int],
    n_trials: int,
    n_points: int,
    rng: np.random.Generator,
    settings: Array | None = None,
) -> list[Trial]:
    """Draw `n_trials` trials, each with controlled variables at a setting of its own.

    Points whose y is not finite are dropped, counted and drawn again.

    Parameters
    ----------
    ask : X of shape (n_points, n_vars) -> y of shape (n_points,), and their weights or None
    free : columns (from 0) that vary within a trial; the others are controlled
    settings : array of shape (n_trials, n_vars), optional
        Values of the controlled variables; by default each trial draws its own.

    Raises
    ------
    OracleError
        If the oracle does not give enough finite values.
    """
    columns = tuple(sorted(set(free)))
    n_vars = len(variables)
    if any(not 0 <= column < n_vars for column in columns):
        raise OracleError(f"free columns {columns} are not all within 0..{n_vars - 1}")
    if settings is not None and np.shape(settings) != (n_trials, n_vars):
        raise OracleError(f"settings have shape {np.shape(settings)}, expected ({n_trials}, {n_vars})")
    return [
        _draw_trial(
            variables, ask, columns, n_points, rng, None if settings is None else np.asarray(settings[k], dtype=float)
        )
        for k in range(n_trials)
    ]


def _draw_trial(
    variables: Sequence[Variable],
    ask: Callable[[Array], tuple[Array, Array | None]],
    free: tuple[int, ...],
    n_points: int,
    rng: np.random.Generator,
    fixed: Array | None,
) -> Trial:
    """Draw one trial; a setting at which nothing is finite is drawn anew unless it is given."""
    n_vars = len(variables)
    X: Array = np.empty((0, n_vars))
    y, weights = np.empty((2, 0))
    weighted = False
    dropped = n_finite = n_none = 0
    setting = fixed
    for _ in range(MAX_REDRAWS):
        if setting is None:
            setting = draw_inputs(variables, 1, rng)[0]
        points = np.tile(setting, (n_points - len(y), 1))
        points[:, free] = draw_inputs([variables[column] for column in free], len(points), rng)
        answer, known = ask(points)
        good = np.isfinite(answer)
        dropped += int(np.sum(~good))
        n_finite, n_none = n_finite + int(np.sum(good)), n_none + int(np.sum(~good))
        X, y = np.vstack([X, points[good]]), np.append(y, answer[good])
        weighted = known is not None
        weights = np.append(weights, known[good] if known is not None else np.ones(int(good.sum())))
        if len(y) == n_points:
            return Trial(X, y, free, weights if weighted else None, dropped)
        # Hardly anything is finite here: another setting, if there is one.
        if len(y) < max(1, n_points // 2) and fixed is None and len(free) < n_vars:
            dropped += len(y)
            setting, X, y, weights = None, X[:0], y[:0], weights[:0]
    held = ", ".join(f"{variables[c].name}={points[0, c]:g}" for c in range(n_vars) if c not in free) or "nothing"
    last = ", ".join(f"{v.name}={value:g}" for v, value in zip(variables, points[0], strict=True))
    raise NoValuesError(
        f"the oracle gave {n_finite} finite values for {n_finite + n_none} points in {MAX_REDRAWS} tries, never the "
        f"{n_points} wanted at one setting (controlled: {held[:200]}); the last point tried was {last[:200]}: "
        f"y={answer[0]}"
    )
