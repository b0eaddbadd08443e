"""What answers tell: how many points are needed, what fits, what moves, what a formula costs.

Exact answers and noisy ones are two cases of one thing. A search asks its lab's evidence, and never whether there is
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.engine.trials import spread
from deap_vsr.lab.criterion import NODE, criterion
from deap_vsr.lab.trials import Trial
from deap_vsr.tree.operators import Array, Flags

#: How far y, and what a formula gives for it, may be off by rounding, relative to y: a few operations' worth.
ROUNDING = 8.0 * float(np.finfo(float).eps)
#: A jitter, known by a few repeats, is at most so many times as large at a point.
JITTERS = 8.0
#: The noise of some hundred answers is known to a twentieth or so (1/sqrt(2 n)): what must hold on many points may
#: leave that more.
UNSURE = 1.12
#: How far a form may be off the exact table of a slot, relative to its spread, and to its values: some digits above
#: the rounding of fits; looser, polynomials pass for functions.
TABLE_SPREAD, TABLE_ROUNDING = 1e-11, 2e-14
#: An exact slot that moves by less, relative to its size or to its standard error, does not move: a decade above what
#: tables may be off.
STILL, STILL_ERRORS = 1e-10, 30.0
#: Exact answers are the same if they differ by no more, relative to their size: rounding, and some decades.
SAME = 1e-13
#: Level of the tests that answers differ, that a slot moves along a table, and that a form fits it: one table in a
#: thousand is misjudged.
TABLE_LEVEL = 1e-3
#: Exact ratios that differ by no more are the same: half the digits, as slots lose some to their fits.
SAME_RATIO = 1e-8
#: In noise two slots are told to be tied only where their ratio is known to this share at each setting: others would
#: coincide by chance; and at this level of the test that their ratio is the same.
TIE_ERROR, TIE_LEVEL = 0.02, 0.05
#: Smallest standard error: its square, and the inverse of that, are finite.
TINY = 1e-150
#: Where exact y of one sign spans so much, its errors count relative to it: three decades.
DECADES = 1e3
#: How far an exact formula may be off, relative to y and to its median: half the digits, as outside more are lost.
RELATIVE, OF_MEDIAN = 1e-7, 1e-9
#: How many standard deviations of the noise, known to a tenth, a point may be off: nearly all are within 4.
WITHIN = 4.5
#: No answer counts as known much better than the others, in standard deviations: it would decide alone.
LEAST = 1e-3
#: A formula whose price in noise is so much above the best one's is not followed: a Bayes factor of exp(-20).
FOLLOWED = 40.0


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


@dataclass(frozen=True)
class Exact:
    """Answers that are exact but for rounding, or for a ``jitter`` of their last digits, relative to their size."""

    rule: FreezeRule = field(default_factory=FreezeRule)
    jitter: float = 0.0
    noise: ClassVar[float] = 0.0
    certain: ClassVar[bool] = True
    """Whether a formula that holds is right, so that it is followed to its end; else several are, side by side."""

    @property
    def rounding(self) -> float:
        """How far answers may be off, relative to their size."""
        return max(ROUNDING, JITTERS * self.jitter)

    def at(self, rule: FreezeRule) -> Exact:
        """Return the same evidence, judged by another rule."""
        return replace(self, rule=rule)

    def at_one_setting(self) -> Exact:
        """Return the evidence where all is measured at one setting: the same, as one trial says nothing here."""
        return self

    def fitting(self, outcome: Fit, data: Dataset) -> Flags:
        """Return in which trials a fit holds."""
        return np.asarray(self.left(outcome, data) <= 1.0, dtype=bool)

    def left(self, outcome: Fit, data: Dataset) -> Array:
        """Return the error of each trial, in units of what it may be."""
        if self.rule.raw:
            return np.asarray(outcome.errors * squares(data) / np.diff(data.offsets) / self.rule.error)
        return np.asarray(outcome.errors / np.maximum(self.rule.error, rounding_errors(data, self.rounding)))

    def fits(self, outcome: Fit, data: Dataset) -> bool:
        """Whether a fit holds in every trial."""
        return bool(np.isfinite(outcome.errors).all() and self.fitting(outcome, data).all())

    def excess(self, outcome: Fit, data: Dataset) -> float:
        """Return how much more is left than may be: infinitely more, if anything is."""
        return 1.0 if self.fits(outcome, data) else np.inf

    def moves(self, outcome: Fit) -> Flags:
        """Return for each open constant whether its value moves from trial to trial: a summary constant.

        Constants that the data do not determine count as moving, as nothing is known about them; so do all of one
        trial.
        """
        values, known = outcome.constants, outcome.determined.all(axis=0)
        with np.errstate(all="ignore"):  # a constant of 1e200 has no square
            mean, variance = values.mean(axis=0), values.var(axis=0)
            if self.rule.raw:
                moves = variance > self.rule.spread
            elif len(values) == 1:
                moves = np.ones(values.shape[1], bool)
            else:
                floor = 100.0 * np.where(known, np.square(outcome.standard_errors).mean(axis=0), 0.0)
                moves = ~(variance <= np.maximum(self.rule.spread * mean**2, floor))
        return np.asarray(moves | ~known, dtype=bool)

    def mean(self, values: Array, errors: Array) -> Array:
        """Return the mean over the trials: (K, L) -> (L,)."""
        return np.asarray(values.mean(axis=0))

    def ratio(self, above: Array, above_errors: Array, below: Array, below_errors: Array) -> float | None:
        """Return the ratio of two slots, (K,) each, if it is the same at all settings; else None."""
        with np.errstate(all="ignore"):
            ratios = above / below
            mean = float(np.mean(ratios))
            same = np.isfinite(ratios).all() and mean != 0 and np.ptp(ratios) <= SAME_RATIO * abs(mean)
        if len(ratios) < 2:  # of one setting nothing is known
            return None
        return mean if same else None

    def standard_errors(self, outcome: Fit, data: Dataset) -> Array:
        """Return the standard errors of the constants, (K, L)."""
        return outcome.standard_errors

    def weights(self, y: Array) -> Array | None:
        """Return None: all answers are as good."""
        return None

    def weighted(self, trial: Trial) -> Trial:
        """Return a trial in which errors count relative to y, where y of one sign spans some decades.

        Least squares would not see the small ones, and what only they tell would be lost to rounding.
        """
        size = np.abs(trial.y)
        one_sign = len(size) and ((trial.y > 0).all() or (trial.y < 0).all())
        if not one_sign or size.max() < DECADES * size.min():
            return trial
        return replace(trial, weights=(size.max() / np.maximum(size, 1e-12 * size.max())) ** 2)

    def sigma(self, y: Array) -> Array:
        """Return the standard deviation of the noise of each answer: none."""
        return np.zeros(len(y))

    def tolerance(self, y: Array, weights: Array | None = None) -> Array:
        """Return how far a formula that is right may be off each answer: the last digits.

        Where y has one sign it has no zeros about which digits are lost, and small values count as large ones do.
        """
        one_sign = len(y) > 0 and ((y > 0).all() or (y < 0).all())
        median = np.median(np.abs(y)) if len(y) else 0.0
        return np.asarray(RELATIVE * np.abs(y) + (SAME if one_sign else OF_MEDIAN) * median)

    def same(self, y: Array, other: Array) -> bool:
        """Whether answers, (n,) each, are the same but for rounding."""
        with np.errstate(all="ignore"):
            return bool((np.abs(other - y) <= max(SAME, self.rounding) * np.abs(y)).all())

    def target(self, data: Dataset) -> float:
        """Return the normalised error at which a formula for `data` has nothing left to explain."""
        return self.rule.error

    def price(self, outcome: Fit, data: Dataset, node: float = NODE, tied: bool = True) -> float:
        """Return the description length of a fit, doubled, as :meth:`Noisy.price`; inf if it does not hold."""
        if not self.fits(outcome, data):
            return np.inf
        return criterion(0.0, outcome.tree, _n_fitted(outcome, self.moves(outcome), tied), len(data.y), node)

    def order(self, outcome: Fit, data: Dataset) -> tuple[float, float]:
        """Return by what fits are put in order: the error, as far as it matters, then the length."""
        return max(outcome.error, self.rule.error), float(len(outcome.tree))

    def near(self, order: tuple[float, float], best: tuple[float, float]) -> bool:
        """Whether a fit that holds is to be followed beside the best: all are."""
        return True

    # --- tables of slots ---

    def of_tables(self) -> Exact:
        """Return the evidence of tables whose weights are inverse squares of their tolerance."""
        return Exact(jitter=self.jitter)

    def table_tolerance(self, values: Array, errors: Array) -> Array:
        """Return how far a form may be off a slot's values, (J,), that have standard errors."""
        rounding = max(TABLE_ROUNDING, self.rounding)
        off = TABLE_SPREAD * np.ptp(values) + rounding * np.max(np.abs(values), initial=0.0)
        return np.asarray(off + 10.0 * np.maximum(errors, TINY) + TINY)

    def table_moves(self, slots: Array, errors: Array) -> Flags:
        """Return which slots move along their tables, (K, J, L) -> (L,)."""
        with np.errstate(all="ignore"):
            width, size = np.ptp(slots, axis=1), np.max(np.abs(slots), axis=1)
            floor = np.maximum(STILL * size, STILL_ERRORS * errors.max(axis=1))
        return np.asarray((width > floor).any(axis=0), dtype=bool)

    def table_limits(self, n_points: int, max_size: int) -> Array:
        """Return for 1, 2, ... fitted constants the largest sum of squares, in tolerances, of a form that fits."""
        return np.full(max_size, float(n_points))


@dataclass(frozen=True)
class Noisy:
    """Answers with noise: what fits is a chi-squared test of the residuals.

    ``noise`` is the standard deviation of an answer of weight 1. Where it depends on the answer, ``model`` returns it
    for each: y (n,) -> (n,).
    """

    noise: float
    rule: FreezeRule = field(default_factory=FreezeRule)
    unsure: float = UNSURE
    model: Callable[[Array], Array] | None = None
    one_setting: bool = False
    """Whether all is measured at one setting."""
    certain: ClassVar[bool] = False

    def at(self, rule: FreezeRule) -> Noisy:
        """Return the same evidence, judged by another rule."""
        return replace(self, rule=rule)

    def at_one_setting(self) -> Noisy:
        """Return the evidence where all is measured at one setting: then every constant may move with what is held."""
        return replace(self, one_setting=True)

    def left(self, outcome: Fit, data: Dataset) -> Array:
        """Return the residual chi-squared of each trial: the sum of squares in units of the noise."""
        return np.asarray(outcome.errors * squares(data) / self.noise**2)

    def freedom(self, outcome: Fit, data: Dataset) -> Array:
        """Return the degrees of freedom that are left in each trial, at least 1."""
        return np.asarray(np.maximum(np.diff(data.offsets) - outcome.ranks, 1))

    def fitting(self, outcome: Fit, data: Dataset, n_tests: int = 1) -> Flags:
        """Return in which trials what is left is no more than the noise; `n_tests` such tests share the level."""
        limit = self.unsure**2 * chdtri(self.freedom(outcome, data), self.rule.significance / n_tests)
        return np.asarray(self.left(outcome, data) <= limit, dtype=bool)

    def fits(self, outcome: Fit, data: Dataset) -> bool:
        """Whether what is left is no more than the noise in every trial."""
        return bool(np.isfinite(outcome.errors).all() and self.fitting(outcome, data, data.n_trials).all())

    def excess(self, outcome: Fit, data: Dataset) -> float:
        """Return what is left over the noise: residual chi-squared over its degrees of freedom."""
        return float(self.left(outcome, data).sum() / self.freedom(outcome, data).sum())

    def moves(self, outcome: Fit) -> Flags:
        """Return for each open constant whether its value moves from trial to trial, as :meth:`Exact.moves`."""
        known = outcome.determined.all(axis=0)
        if self.one_setting and len(outcome.constants) == 1:
            return np.ones(outcome.constants.shape[1], bool)
        with np.errstate(all="ignore"):
            weight = 1.0 / outcome.standard_errors**2
            distance = (weight * (outcome.constants - self.mean(outcome.constants, outcome.standard_errors)) ** 2).sum(
                0
            )
            moves = distance > chdtri(max(len(outcome.constants) - 1, 1), self.rule.significance)
        return np.asarray(moves | ~known, dtype=bool)

    def mean(self, values: Array, errors: Array) -> Array:
        """Return the mean of least variance over the trials: (K, L) -> (L,)."""
        with np.errstate(all="ignore"):  # of what the data do not determine there is none
            weight = 1.0 / np.maximum(errors, TINY) ** 2
            return np.asarray((weight * values).sum(axis=0) / weight.sum(axis=0))

    def ratio(self, above: Array, above_errors: Array, below: Array, below_errors: Array) -> float | None:
        """Return the ratio of two slots, (K,) each, if it is the same at all settings; None if not, or not known."""
        with np.errstate(all="ignore"):
            ratios = above / below
            unsure = np.hypot(above_errors / above, below_errors / below)
            errors = np.abs(ratios) * unsure
            mean = float(self.mean(ratios, errors))
            distance = float(np.sum(((ratios - mean) / errors) ** 2))
        known = len(ratios) > 1 and np.isfinite(errors).all() and (unsure <= TIE_ERROR).all()
        return mean if known and distance <= chdtri(len(ratios) - 1, TIE_LEVEL) else None

    def standard_errors(self, outcome: Fit, data: Dataset) -> Array:
        """Return the standard errors of the constants, (K, L): for the noise that is known.

        Not for what happens to be left of a few points.
        """
        with np.errstate(all="ignore"):
            left = self.left(outcome, data) / self.freedom(outcome, data)
            return np.asarray(outcome.standard_errors / np.sqrt(left)[:, None])

    def weights(self, y: Array) -> Array | None:
        """Return inverse variances of answers; None where all have the same noise."""
        return None if self.model is None else (self.noise / self.sigma(y)) ** 2

    def weighted(self, trial: Trial) -> Trial:
        """Return the trial itself: answers have the weights that they came with."""
        return trial

    def price(self, outcome: Fit, data: Dataset, node: float = NODE, tied: bool = True) -> float:
        """Return the description length of a fit, doubled; inf if it is not finite.

        With `tied`, a constant that is the same in all trials is one constant; else each trial has its own.
        """
        n_fitted = _n_fitted(outcome, self.moves(outcome), tied)
        price = criterion(float(self.left(outcome, data).sum()), outcome.tree, n_fitted, len(data.y), node)
        return price if np.isfinite(price) else np.inf

    def sigma(self, y: Array) -> Array:
        """Return the standard deviation of the noise of each answer; where there is no answer, the usual one."""
        if self.model is None:
            return np.full(len(y), self.noise)
        sd = self.model(np.where(np.isfinite(y), y, 0.0))
        return np.where(np.isfinite(y), np.maximum(sd, LEAST * self.noise), self.noise)

    def tolerance(self, y: Array, weights: Array | None = None) -> Array:
        """Return how far a formula that is right may be off each answer, of its weight if that is known."""
        return WITHIN * (self.sigma(y) if weights is None else self.noise / np.sqrt(weights))

    def same(self, y: Array, other: Array) -> bool:
        """Whether answers, (n,) each, are the same but for noise; those that are not finite do not count."""
        with np.errstate(all="ignore"):
            distance = ((other - y) / self.sigma(y)) ** 2
        known = np.isfinite(distance)
        return bool(np.sum(distance[known]) <= 2.0 * chdtri(max(int(known.sum()), 1), TABLE_LEVEL))

    def target(self, data: Dataset) -> float:
        """Return the normalised error at which a formula for `data` has nothing left to explain: that of the noise."""
        return float(np.mean(self.noise**2 * np.diff(data.offsets) / squares(data)))

    def order(self, outcome: Fit, data: Dataset) -> tuple[float, float]:
        """Return by what fits are put in order: the price, then the length."""
        return self.price(outcome, data), float(len(outcome.tree))

    def near(self, order: tuple[float, float], best: tuple[float, float]) -> bool:
        """Whether a fit that holds is to be followed beside the best: its price is not much higher."""
        return order[0] <= best[0] + FOLLOWED

    # --- tables of slots ---

    def of_tables(self) -> Noisy:
        """Return the evidence of tables whose weights are inverse variances."""
        return Noisy(1.0)

    def table_tolerance(self, values: Array, errors: Array) -> Array:
        """Return the standard errors of a slot's values."""
        return np.asarray(np.maximum(errors, TINY))

    def table_moves(self, slots: Array, errors: Array) -> Flags:
        """Return which slots move along their tables, (K, J, L) -> (L,), by a chi-squared test."""
        weight = 1.0 / np.maximum(errors, TINY) ** 2
        mean = (weight * slots).sum(axis=1) / weight.sum(axis=1)
        distance = (weight * (slots - mean[:, None]) ** 2).sum(axis=(0, 1))
        return np.asarray(distance > chdtri(len(slots) * (slots.shape[1] - 1), TABLE_LEVEL), dtype=bool)

    def table_limits(self, n_points: int, max_size: int) -> Array:
        """Return for 1, 2, ... fitted constants the largest chi-squared of a form that fits."""
        sizes = np.arange(1, max_size + 1)
        return np.asarray(chdtri(np.maximum(n_points - sizes, 1), TABLE_LEVEL), dtype=float)


Evidence = Exact | Noisy


def _n_fitted(outcome: Fit, moving: Flags, tied: bool) -> int:
    """Return how many numbers were fitted; with `tied`, a constant that is the same in all trials is one number."""
    if not tied:
        return int(outcome.constants.size)
    return len(outcome.constants) * int(moving.sum()) + int((~moving).sum())


def squares(data: Dataset) -> Array:
    """Return what errors are normalised by, per trial: the weighted squares of y about its mean."""
    parts = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    with np.errstate(over="ignore"):
        return np.array([spread(data.y[part], data.weight[part]) for part in parts]) ** 2


def rounding_errors(data: Dataset, rounding: float = ROUNDING) -> Array:
    """Return the errors, per trial, that are due to the rounding of y: with y near 1e9 a spread of 1 has few digits."""
    with np.errstate(all="ignore"):
        off = (rounding * np.abs(data.y) * data.weight) ** 2
        return np.asarray(np.add.reduceat(np.append(off, 0.0), data.offsets[:-1]) / squares(data))
