"""How precise answers are: what an oracle says of itself, or what repeats, neighbours a hair apart, and digits show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from deap_vsr.errors import OracleError
from deap_vsr.lab.evidence import UNSURE, Evidence, Exact, FreezeRule, Noisy
from deap_vsr.lab.oracle import Digits
from deap_vsr.tree.operators import Array, Flags

#: Answers that are off by no more, relative to their size, count as exact: some digits above rounding, and a decade
#: below what polynomials leave that pass for functions.
JITTER = 1e-12
#: Answers with so many digits are not rounded: doubles have 16, and hardly any of them ends in zeros.
MAX_DIGITS = 9
#: That noise grows with y is believed where it makes the replicates likelier by so many nats.
LIKELIER = 7.0
#: How many standard errors the noise may be off, that few replicates tell: one run in a hundred has more.
DOUBT = 2.5
#: Replicates that are so unlikely hold an outlier, and tell nothing of the noise.
OUTLIER = 1e-6
#: Ratios of the two parts of the noise, relative to the median of |y|: a grid, as the likelihood is flat.
RATIOS = tuple(np.geomspace(0.03, 30.0, 13))


@dataclass(frozen=True)
class Precision:
    """How far answers are off: a part that is the same for all, one that grows with y, and rounding to digits.

    Beyond these three parts ``stated`` may be any function of y. ``repeats`` says whether the oracle gives the same
    answer each time; ``known_by`` how all this is known. ``noise`` is what is typical (:meth:`at`), ``jitter`` that
    relative to the size of answers.
    """

    absolute: float = 0.0
    relative: float = 0.0
    digits: int = 0
    repeats: bool = True
    known_by: str = "repeats"
    noise: float = 0.0
    jitter: float = 0.0
    freedom: int = 0
    """Degrees of freedom of the replicates that it is known by; 0: enough."""
    stated: Callable[[Array], Array] | None = None

    def sigma(self, y: Array) -> Array:
        """Return the standard deviation of each answer, (n,) -> (n,)."""
        parts = [np.full(len(y), self.absolute), self.relative * np.abs(y)]
        if self.digits:
            parts.append(Digits(self.digits)(y) / np.sqrt(12.0))
        if self.stated is not None:
            parts.append(self.stated(y))
        return np.asarray(np.hypot.reduce(parts))  # squares of 1e200 are none

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all answers."""
        return self.relative == 0.0 and not self.digits and self.stated is None

    def at(self, y: Array) -> Precision:
        """Return it with what is typical of answers y (n,)."""
        y = y[np.isfinite(y)]
        if not len(y):
            y = np.ones(1)
        size = float(np.median(np.abs(y)))
        noise = float(np.median(self.sigma(y)))
        return replace(self, noise=noise, jitter=noise / size if size > 0.0 else 0.0)

    def evidence(self, scale: float, rule: FreezeRule) -> Evidence:
        """Return what answers of this precision, in units of `scale`, tell."""
        if self.noise == 0.0 or self.jitter <= JITTER:
            return Exact(rule, self.jitter)
        model = None if self.is_constant else lambda y: self.sigma(y * scale) / scale
        unsure = max(UNSURE, 1.0 + DOUBT / np.sqrt(2.0 * self.freedom)) if self.freedom else UNSURE
        return Noisy(self.noise / scale, rule, unsure=float(unsure), model=model)

    def state(self) -> dict[str, Any]:
        """Return it in JSON values; what is stated as a function is stated again when a run goes on."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "stated"}


def stated_precision(oracle: Any) -> Precision | None:
    """Return what an oracle says of itself: `tolerance`, `noise_sd`, `resolution`; None if it says nothing."""
    noise, tolerance, resolution = (getattr(oracle, name, None) for name in ("noise_sd", "tolerance", "resolution"))
    if noise is None and tolerance is None and resolution is None:
        return None
    sizes = [(noise, 1.0), (tolerance, 1.0), (resolution, 1.0 / np.sqrt(12.0))]
    numbers = [(float(size), unit) for size, unit in sizes if size is not None and not callable(size)]
    functions = [(size, unit) for size, unit in sizes if callable(size)]
    for size, _ in numbers:
        if not (np.isfinite(size) and size >= 0.0):
            raise OracleError(f"noise_sd, tolerance and resolution are numbers of at least 0, not {size!r}")
    absolute = math.hypot(*(size * unit for size, unit in numbers))
    repeats = noise is None or (not callable(noise) and float(noise) == 0.0)

    def others(y: Array) -> Array:
        parts = [np.asarray(function(y), dtype=float) * unit for function, unit in functions]
        return np.asarray(np.hypot.reduce(parts))

    return Precision(absolute, repeats=repeats, known_by="statement", stated=others if functions else None)


def digits_shown(y: Array) -> Precision | None:
    """Return the rounding of answers at points in general position, if they are rounded; None if not.

    It is to places, the same for all, if the largest answer has digits down to the last place that any has; else to
    significant digits.
    """
    y = y[np.isfinite(y) & (y != 0.0)]
    if len(np.unique(y)) < min(len(y), 4) or len(y) < 4:
        return None
    for digits in range(1, MAX_DIGITS + 1):
        if all(float(f"{value:.{digits - 1}e}") == value for value in y):
            places = digits - 1 - int(np.floor(np.log10(np.max(np.abs(y)))))
            to_places = all(round(value, places) == value for value in y.tolist())
            one_decade = np.ptp(np.floor(np.log10(np.abs(y)))) == 0  # then it may be either, and both are believed
            absolute = 10.0**-places / np.sqrt(12.0) if to_places else 0.0
            return Precision(absolute, digits=digits if one_decade or not to_places else 0, known_by="digits")
    return None


def spread_of_replicates(y: Array, degree: int = 0, places: Array | None = None) -> tuple[Array, Array, Array]:
    """Return mean, variance and degrees of freedom of replicates, (n, n_repeats); NaN and inf do not count.

    Neighbours a hair apart, at `places` (n, n_repeats) on a line, are replicates once a polynomial of `degree` is taken
    out.
    """
    means, variances, freedom = [], [], []
    for row, places_of in zip(y, np.zeros(y.shape) if places is None else places, strict=True):
        good = np.isfinite(row)
        values = row[good]
        free = len(values) - 1 - degree
        if free < 1:
            continue
        left = np.zeros(len(values))
        if np.ptp(values) > 0.0:  # the mean of equal ones may be off
            about = values - values.mean()
            left = about - _polynomial(places_of[good], about, degree) if degree else about
        means.append(float(np.mean(values)))
        variances.append(float(np.sum(left**2)) / free)
        freedom.append(free)
    return np.array(means), np.array(variances), np.array(freedom, dtype=float)


def _polynomial(x: Array, y: Array, degree: int) -> Array:
    """Return the values of the polynomial of `degree` that is nearest to y (n,)."""
    fitted = np.polynomial.Polynomial.fit(x, y, degree)
    return np.asarray(fitted(x))


def noise_shown(y: Array, degree: int = 0, places: Array | None = None) -> tuple[float, float]:
    """Return the two parts of the noise that replicates, (n, n_repeats), show: of all answers, and relative to y.

    By medians, so that some outliers do not matter. That it grows with y is believed where that is clearly likelier.
    """
    unit = float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0)) or 1.0  # squares of 1e200 are none
    means, variances, freedom = spread_of_replicates(y / unit, degree, places)
    if not len(means) or not np.any(variances):
        return 0.0, 0.0
    size = float(np.median(np.abs(means)))
    flat = _scaled(np.ones(len(means)), variances, freedom)
    best, parts = _log_likelihood(flat * np.ones(len(means)), variances, freedom) + LIKELIER, (np.sqrt(flat), 0.0)
    for ratio in (*RATIOS, np.inf) if size > 0.0 else ():
        shape = (means / size) ** 2 if ratio == np.inf else 1.0 + (ratio * means / size) ** 2
        if not (shape > 0.0).all():
            continue
        level = _scaled(shape, variances, freedom)
        likely = _log_likelihood(level * shape, variances, freedom)
        if likely > best:
            root = float(np.sqrt(level))
            best, parts = likely, (0.0, root / size) if ratio == np.inf else (root, root * ratio / size)
    return float(parts[0]) * unit, float(parts[1])


def _scaled(shape: Array, variances: Array, freedom: Array) -> float:
    """Return by what a shape of the variance is to be multiplied: a median, then the mean without outliers."""
    typical = float(np.median(variances / shape / (chdtri(freedom, 0.5) / freedom)))
    if typical == 0.0:  # most answers repeat exactly
        return float(np.sum(freedom * variances / shape) / np.sum(freedom))
    usual = _usual(typical * shape, variances, freedom)
    return float(np.sum((freedom * variances / shape)[usual]) / np.sum(freedom[usual]))


def _usual(expected: Array, variances: Array, freedom: Array) -> Flags:
    """Return which variances are no larger than chance makes them: the others hold outliers."""
    return np.asarray(variances * freedom <= expected * chdtri(freedom, OUTLIER), dtype=bool)


def _log_likelihood(expected: Array, variances: Array, freedom: Array) -> float:
    """Return the logarithm of how likely variances are.

    One that holds an outlier is as likely as the largest usual one, whatever is expected: a model gains nothing by
    expecting less where it calls answers outliers.
    """
    with np.errstate(all="ignore"):
        expected = np.maximum(expected, variances * freedom / chdtri(freedom, OUTLIER))
        return float(np.sum(-0.5 * freedom * (np.log(expected) + variances / expected)))


def outlying(y: Array, sigma: Array, predicted: Array, level: float) -> Flags:
    """Return which answers are off by more than noise makes them, one in 1 / `level` by chance."""
    with np.errstate(all="ignore"):
        return np.asarray(~(((y - predicted) / sigma) ** 2 <= chdtri(1, level)), dtype=bool)
