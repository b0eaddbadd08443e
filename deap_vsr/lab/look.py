"""A first look at answers: how precise they are, where the oracle does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from deap_vsr.lab.precision import Precision, digits_shown, noise_shown, stated_precision
from deap_vsr.lab.trials import MAX_REDRAWS
from deap_vsr.tree.operators import Array

if TYPE_CHECKING:
    from deap_vsr.lab.lab import Lab
    from deap_vsr.problems.equation import Variable

#: Points, and answers at each, of the first look at noise, and of a closer one, which takes more where more points
#: may be asked than the number before it.
FIRST = (4, 2)
CLOSER = ((0, (4, 4)), (150, (8, 4)), (400, (12, 5)), (1_500, (20, 8)), (8_000, (40, 8)))
#: Points that are asked once more at the end, and the level of the test that answers have drifted; how many standard
#: errors larger than it seems the noise may be.
N_DRIFT, DRIFT_LEVEL, UNSURE = 8, 1e-4, 2.0
#: An answer so many standard deviations off the others at its point is an outlier.
OUTLYING = 8.0
#: Neighbours are within such a share of a variable's range.
HAIR = 3e-4
#: Points with neighbours, and how many each, of the first look at roughness, and of a closer one.
NEIGHBOURS, CLOSER_NEIGHBOURS = (2, 8), (32, 10)
#: So near a smooth function is a polynomial of this degree, but for rounding, also where it has ten waves in its range.
DEGREE = 5
#: Less roughness than this, relative to y, is rounding, which functions of large numbers enlarge.
FLOOR = 3e-14


def look(lab: Lab, plain: bool = False) -> Precision:
    """Return how precise answers are: as stated, by asking again, or, unless `plain`, by neighbours and digits."""
    told = lab.log.sigma[np.isfinite(lab.log.sigma)]
    stated = stated_precision(lab.oracle)
    if stated is not None:
        return stated
    if len(told):
        return Precision(float(np.median(told)), repeats=False, known_by="standard errors")
    repeatable = getattr(lab.oracle, "repeatable", True)
    if repeatable and any(noise_shown(replicates(lab, *FIRST))):
        left = lab.budget.queries_left()
        again = replicates(lab, *[size for at_least, size in CLOSER if left > at_least][-1])
        freedom = len(again) * (again.shape[1] - 1)
        precision = Precision(*_in_units(noise_shown(again), lab), repeats=False, freedom=freedom)
        _leave_out(lab, precision, again.shape[1])
        lab.facts["repeated"] = _repeated(lab, again)
        return precision
    if plain or all(variable.sampling == "integer" for variable in lab.variables):
        return Precision()
    if any(variable.stepped for variable in lab.variables):  # there are no neighbours a hair apart
        return digits_shown(lab.log.y) or Precision()
    return digits_shown(lab.log.y) or _roughness(lab)


def _leave_out(lab: Lab, precision: Precision, n_repeats: int) -> None:
    """Leave answers out that are far off the others at the same point, of the replicates that end the log."""
    n = len(lab.log) // n_repeats * n_repeats
    X, y = lab.log.X[-n:].reshape(-1, n_repeats, lab.n_vars), lab.log.y[-n:].reshape(-1, n_repeats)
    same = (X[:, :1] == X).all(axis=(1, 2)) & (np.isfinite(y).sum(axis=1) > 2)
    X, y = X[same], y[same]
    with np.errstate(all="ignore"):
        middle = np.nanmedian(np.where(np.isfinite(y), y, np.nan), axis=1, keepdims=True)
        off = np.abs(y - middle) / np.maximum(precision.sigma(middle[:, 0]), np.finfo(float).tiny)[:, None]
    bad = off > OUTLYING
    lab.log.leave_out(X[bad], y[bad])


def _repeated(lab: Lab, y: Array) -> tuple[Array, Array]:
    """Return points that were asked several times, (n, n_vars), and the middle of their answers, (n,)."""
    X = lab.log.X[-y.size :: y.shape[1]].copy()
    known = np.isfinite(y).sum(axis=1) > y.shape[1] // 2
    return X[known], np.array([float(np.median(row[np.isfinite(row)])) for row in y[known]])


def drift(lab: Lab) -> float | None:
    """Return how far answers to the same questions are off now, in standard deviations; None if that is chance.

    Some of the points that were asked again and again at the beginning are asked once more.
    """
    if "repeated" not in lab.facts:
        return None
    X, before = (part[:N_DRIFT] for part in lab.facts["repeated"])
    times = np.array([np.sum((point == lab.log.X).all(axis=1)) for point in X])
    # The middle of n answers has some 1.5/n of their variance, and noise is known to 1/sqrt(2 n) by so many in all.
    unsure = np.sqrt(1.0 + 1.5 / times) * (1.0 + UNSURE / np.sqrt(2.0 * max(np.sum(times - 1), 1)))
    off = (lab.ask(X, again=True) - before) / lab.evidence.sigma(before) / unsure
    off = off[np.isfinite(off)]
    return float(np.mean(off)) if len(off) and np.sum(off**2) > chdtri(len(off), DRIFT_LEVEL) else None


def replicates(lab: Lab, n_points: int, n_repeats: int) -> Array:
    """Return answers at the same points, (n, n_repeats), drawn again until half of those wanted are finite."""
    y = np.empty((0, n_repeats))
    for _ in range(MAX_REDRAWS):
        X = np.repeat(lab.draw(n_points), n_repeats, axis=0)
        y = np.vstack([y, lab.ask(X, again=True).reshape(n_points, n_repeats)])
        enough = (np.isfinite(y).sum(axis=1) > 1).sum() >= max(n_points // 2, 1)
        if enough or lab.budget.queries_left() < len(X):
            break
    return y


def _roughness(lab: Lab) -> Precision:
    """Return the error of answers that are the same when asked again, but not for neighbours a hair apart."""
    if lab.budget.queries_left() < 4 * np.prod(NEIGHBOURS):
        return Precision()
    y, places = _neighbours(lab, *NEIGHBOURS)
    parts = noise_shown(y, DEGREE, places)
    size = np.max(np.abs(y[np.isfinite(y)]), initial=0.0)
    if parts[0] + parts[1] * size <= FLOOR * size:
        return Precision()
    if lab.budget.queries_left() >= 4 * np.prod(CLOSER_NEIGHBOURS):
        y, places = _neighbours(lab, *CLOSER_NEIGHBOURS)
        parts = noise_shown(y, DEGREE, places)
    return Precision(*_in_units(parts, lab), known_by="neighbours")


def _neighbours(lab: Lab, n_points: int, n_neighbours: int) -> tuple[Array, Array]:
    """Return answers at neighbours of points, (n_points, n_neighbours), and where on a line these are, in order."""
    X = lab.draw(n_points)
    places = np.sort(lab.rng.uniform(0.0, 1.0, (n_points, n_neighbours)), axis=1)
    at = X[:, None, :] + _hairs(X, lab)[:, None, :] * places[:, :, None]
    return lab.ask(at.reshape(-1, lab.n_vars)).reshape(n_points, n_neighbours), places


def neighbours_of(X: Array, lab: Lab) -> Array:
    """Return points within a hair of others, (n, n_vars)."""
    return X + _hairs(X, lab) * lab.rng.uniform(0.1, 1.0, (len(X), 1))


def _hairs(X: Array, lab: Lab) -> Array:
    return np.column_stack([_hair(variable, X[:, i]) for i, variable in enumerate(lab.variables)])


def _hair(variable: Variable, x: Array) -> Array:
    """Return a step of a hair for values of a variable, towards the middle of its range; none for whole numbers."""
    if variable.stepped:
        return np.zeros(len(x))
    inwards = np.where(np.abs(x) < 0.5 * (variable.low + variable.high), 1.0, -1.0)
    if variable.sampling == "loguniform":
        return HAIR * x * inwards
    signs = np.where(x < 0.0, -1.0, 1.0) if variable.sign == "both" else 1.0
    if variable.sign != "both":
        inwards = np.where(x < 0.5 * (variable.low + variable.high), 1.0, -1.0)
    return HAIR * (variable.high - variable.low) * inwards * signs


def _in_units(parts: tuple[float, float], lab: Lab) -> tuple[float, float]:
    """Return the two parts of the noise, of which the first was measured in units of the laboratory."""
    return parts[0] * lab.scale, parts[1]
