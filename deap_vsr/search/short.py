"""Short numbers: 2.0003 with a standard error of 0.001 is 2, where the data do not object.

Any number is near one of few digits, if few are enough. So a short number is believed only where its neighbours of as
many digits are many standard errors away: chance would hardly have led so close to it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.linear import solved
from deap_vsr.tree.operators import Array

#: A short number is within so many standard errors (99 % of those that are meant are), and its neighbours are so many
#: apart: by chance one in ten numbers is as near.
WITHIN, APART = 2.5, 50.0
#: Where answers are exact, a short number is within so many standard errors: these are rounding, and no measure
#: of it. By trial: more does no harm, as the formula must still fit.
ROOM = 20.0
#: Level of the test that short numbers fit as well as those that were fitted.
SIGNIFICANCE = 0.01


def short_number(value: float, error: float) -> float:
    """Return the number of fewest digits within the uncertainty of `value`; itself if that takes more than 10."""
    room = max(ROOM * error, 1e-11 * abs(value)) if np.isfinite(error) else 1e-11 * abs(value)
    for digits in range(1, 11):
        candidate = float(f"{value:.{digits - 1}e}")
        if abs(candidate - value) <= room:
            return candidate
    return float(value)


def short_in_noise(value: float, error: float) -> float | None:
    """Return the number of fewest digits that is believed to be meant by `value`; None if there is none."""
    if not (np.isfinite(value) and np.isfinite(error) and value != 0.0 and error > 0.0):
        return None
    for digits in range(1, 17):
        candidate = float(f"{value:.{digits - 1}e}")
        if 10.0 ** (np.floor(np.log10(abs(candidate))) - digits + 1) < APART * error:
            return None
        if abs(candidate - value) <= WITHIN * error:
            return candidate
    return None


def rounded(value: float, error: float) -> float:
    """Return `value` without the digits that mean nothing: to a tenth of its standard error or finer."""
    if not (np.isfinite(error) and error > 0.0):
        return value
    return float(f"{value:.{max(int(np.ceil(np.log10(max(abs(value) / error, 1.0)))) + 1, 1)}e}")


def with_short_numbers(A: Array, y: Array, noise: float, coefficients: Array, errors: Array) -> Array:
    """Return the coefficients of a sum with short numbers restored, and without digits that mean nothing.

    All at once, or, where what is left grows by more than chance allows, one after the other, the most convincing
    first. The other coefficients are fitted anew beside them.

    Parameters
    ----------
    A : array of shape (n_terms, n_points)
    coefficients, errors : arrays of shape (n_terms,)
        As fitted, with their standard errors.
    """
    short = {i: short_in_noise(float(v), float(errors[i])) for i, v in enumerate(coefficients)}
    believed = {i: number for i, number in short.items() if number is not None}
    least = float(np.sum((y - coefficients @ A) ** 2))

    def beside(fixed: dict[int, float]) -> Array | None:
        """Return all coefficients, some of them fixed; None if that is significantly worse."""
        values = coefficients.copy()
        values[list(fixed)] = list(fixed.values())
        others = [i for i in range(len(values)) if i not in fixed]
        if others:
            units = np.linalg.norm(A[others], axis=1)
            rest = y - values[list(fixed)] @ A[list(fixed)]
            solution = solved((A[others] / units[:, None]).T, rest) / units
            if not np.isfinite(solution).all():
                return None
            values[others] = [rounded(float(v), float(errors[i])) for i, v in zip(others, solution, strict=True)]
        grown = (float(np.sum((y - values @ A) ** 2)) - least) / noise**2
        return values if grown <= chdtri(max(len(fixed), 1), SIGNIFICANCE) else None

    together = beside(believed)
    if together is not None:
        return together
    best, fixed = coefficients, dict[int, float]()
    for i in sorted(believed, key=lambda i: float(errors[i] / abs(coefficients[i]))):
        more = beside({**fixed, i: believed[i]})
        if more is not None:
            best, fixed = more, {**fixed, i: believed[i]}
    return best
