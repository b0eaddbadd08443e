"""What a control-variable experiment tells: does the form fit, and which constants are real ones.

An experiment's outcome is a :class:`deap_vsr.engine.fitting.Fit`: K trials at K settings of the controlled
variables, the candidate's constants fitted in each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import draw_inputs
from deap_vsr.tree import Constant, MaskedTree, with_flag
from deap_vsr.tree.operators import Array, Flags

#: How far y, and what a formula gives for it, may be off by rounding, relative to y.
ROUNDING = 8.0 * float(np.finfo(float).eps)
#: The noise of some hundred answers is known to a twentieth or so: what must hold on many points may leave that more.
UNSURE = 1.12


@dataclass(frozen=True)
class FreezeRule:
    """When a candidate fits a trial, and when a constant is the same in all of them.

    Attributes
    ----------
    error : float
        Largest error of a trial that "fits": NMSE, or the plain MSE with ``raw``.
    spread : float
        Largest variance (1/K) of a stand-alone constant over the trials: relative to its mean
        squared, or absolute with ``raw``.
    raw : bool
        The published rule. It calls any small summary constant stand-alone.
    significance : float
        Level of the tests that take the place of both thresholds when there is noise.
    """

    error: float = 1e-12
    spread: float = 1e-12
    raw: bool = False
    significance: float = 1e-4


def fits(outcome: Fit, data: Dataset, rule: FreezeRule, noise: float = 0.0) -> bool:
    """Whether the candidate fits every trial; with noise, whether its residuals are no more than that."""
    if not np.isfinite(outcome.errors).all():
        return False
    residuals = outcome.errors * squares(data)  # squared, per trial
    sizes = np.diff(data.offsets)
    if noise > 0:
        freedom = np.maximum(sizes - outcome.ranks, 1)
        level = rule.significance / len(sizes)
        return bool((residuals / noise**2 <= chdtri(freedom, level)).all())
    if rule.raw:
        return bool((residuals / sizes <= rule.error).all())
    return bool((outcome.errors <= np.maximum(rule.error, rounding_errors(data))).all())


def squares(data: Dataset) -> Array:
    """Return what errors are normalised by, per trial: the weighted squares of y about its mean."""
    from deap_vsr.engine.trials import spread

    parts = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    return np.array([spread(data.y[part], data.weight[part]) ** 2 for part in parts])


def rounding_errors(data: Dataset) -> Array:
    """Return the errors, per trial, that are due to the rounding of y: with y near 1e9 a spread of 1 has few digits."""
    off = (ROUNDING * np.abs(data.y) * data.weight) ** 2
    return np.asarray(np.add.reduceat(np.append(off, 0.0), data.offsets[:-1]) / squares(data))


def moving(outcome: Fit, rule: FreezeRule, noise: float = 0.0) -> Flags:
    """Return for each open constant whether its value moves from trial to trial: a summary constant.

    Constants that the data do not determine count as moving, as nothing is known about them.
    """
    values, errors = outcome.constants, outcome.standard_errors
    known = outcome.determined.all(axis=0)
    with np.errstate(all="ignore"):  # a constant of 1e200 has no square
        mean, variance = values.mean(axis=0), values.var(axis=0)
        if noise > 0:
            weight = 1.0 / errors**2
            centre = (weight * values).sum(axis=0) / weight.sum(axis=0)
            distance = (weight * (values - centre) ** 2).sum(axis=0)
            moves = distance > chdtri(max(len(values) - 1, 1), rule.significance)
        elif rule.raw:
            moves = variance > rule.spread
        else:
            floor = 100.0 * np.where(known, np.square(errors).mean(axis=0), 0.0)
            moves = ~(variance <= np.maximum(rule.spread * mean**2, floor))
    return np.asarray(moves | ~known, dtype=bool)


def freeze(outcome: Fit, data: Dataset, rule: FreezeRule, noise: float = 0.0) -> MaskedTree:
    """Return the candidate with the mask that the experiment gives it.

    If every trial fits, all is frozen but the summary constants; stand-alone ones stay at their mean (in noise, that of
    least variance). Otherwise the mask is left as it was. A tree without mutable nodes passes on unchanged.
    """
    tree = outcome.tree
    if not any(tree.mask) or not fits(outcome, data, rule, noise):
        return tree
    nodes = [with_flag(node, False) for node in tree]
    moves = moving(outcome, rule, noise)
    weights = 1.0 / np.maximum(outcome.standard_errors, 1e-150) ** 2 if noise > 0 else np.ones(outcome.constants.shape)
    for column, position in enumerate(tree.open_constants):
        ret = tree[position].ret
        if moves[column]:
            nodes[position] = Constant(float(outcome.constants[-1, column]), True, True, ret)
        else:
            mean = float(np.average(outcome.constants[:, column], weights=weights[:, column]))
            nodes[position] = Constant(mean, False, False, ret)
    return type(tree)(nodes)


def measure_noise(oracle: Oracle, rng: np.random.Generator, n_points: int = 8, n_repeats: int = 4) -> float:
    """Return the standard deviation of the oracle's noise, by asking again at the same points.

    0 if the answers repeat exactly, or if asking again is no second measurement.
    """
    if not oracle.repeatable:
        return 0.0
    X = np.repeat(draw_inputs(oracle.variables, n_points, rng), n_repeats, axis=0)
    y: Array = oracle.evaluate(X).reshape(n_points, n_repeats)
    known = np.isfinite(y)
    y, known = y[known.sum(axis=1) > 1], known[known.sum(axis=1) > 1]
    if not len(y):
        return 0.0
    unit = float(np.max(np.abs(y[known]))) or 1.0  # squares of 1e200 are none
    counts = known.sum(axis=1)
    means = np.where(known, y / unit, 0.0).sum(axis=1) / counts
    off = np.where(known, y / unit - means[:, None], 0.0)
    return float(np.sqrt((off**2).sum() / (counts - 1).sum())) * unit
