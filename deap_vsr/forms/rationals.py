"""Rational functions with all their terms: z = P/Q, both of any degree up to four.

Sparse sums and ratios choose a few terms among many; ((x - 3)**3 + 2)/((x - 2)**4 + 10) has eight. With every power
there is nothing to choose, and P - z Q = 0 is one null vector. What approximates comes closer with every degree by
about the same factor; a law is there at once, with nothing left but rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from deap_vsr.engine.linear import null_vector
from deap_vsr.forms.atoms import Nodes
from deap_vsr.forms.ratios import ratio_nodes
from deap_vsr.forms.sums import NEGLIGIBLE, sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import node_from_name, variable
from deap_vsr.tree.operators import Array, Flags

#: Degrees of P and Q at most: the powers that have an operator of their own, and that laws have.
MOST = 4
#: Values beyond the coefficients, that check them.
SPARE = 2
#: By so many times the tolerance any of a degree less must be off, and by so little the law itself. Of exp, sin, tanh,
#: roots and logarithms on ranges of 1..2 to 0..6, at 9 to 28 values, none was off by more than 500 a degree before it
#: came within the tolerance; a law of seven coefficients on 1..2 was off by 6e4 there, and by 1e-4 in the end.
DROP, WITHIN = 1e4, 0.1
#: How often the null vector is weighted anew by the denominator: then residuals are those of P/Q.
WEIGHED = 3


@dataclass(frozen=True, eq=False)
class _Fitted:
    """P and Q at each setting, (K, p + 1) and (K, q + 1), by powers of x; how far they are off, in tolerances."""

    above: Array
    below: Array
    off: float


def rational_functions(target: Target) -> Iterator[Step]:
    """Yield, in one step, P/Q of the lowest degrees that leave nothing but rounding, where those below leave much."""
    table = target.table
    if not table.evidence.certain or not {"add", "mul"} <= table.allowed or not table.allowed & {"div", "inv"}:
        return
    tried, before = 0, np.inf
    for total in range(1, min(2 * MOST, table.n_points - 1 - SPARE) + 1):
        degrees = [(p, total - p) for p in range(total + 1) if max(p, total - p) <= MOST]
        fitted = [_fitted(target, p, q) for p, q in degrees]
        tried += len(fitted) * len(target.z)
        least = min(one.off for one in fitted)
        if least <= 1.0:
            good = [one for one in fitted if one.off <= WITHIN] if before >= DROP else []
            forms = [_form(one, target) for one in good]
            yield [form for form in forms if form is not None], tried
            return
        before = least
    yield [], tried


def _fitted(target: Target, p: int, q: int) -> _Fitted:
    """Return P and Q of these degrees."""
    rows, off = [], 0.0
    for x, z, tolerance in zip(target.table.x, target.z, target.tolerance, strict=True):
        middle, half = 0.5 * (x.max() + x.min()), 0.5 * max(float(np.ptp(x)), 1e-300)
        powers = np.polynomial.chebyshev.chebvander((x - middle) / half, max(p, q))
        size = np.abs(z).max() or 1.0
        A = np.hstack([powers[:, : p + 1], -powers[:, : q + 1] * (z / size)[:, None]])
        weight = size / tolerance
        below = np.ones(len(x))
        for _ in range(WEIGHED):
            with np.errstate(all="ignore"):
                scaled = A * (weight / np.abs(below))[:, None]
            if not np.isfinite(scaled).all():
                return _Fitted(np.empty(0), np.empty(0), np.inf)
            v = null_vector(scaled)
            below = powers[:, : q + 1] @ v[p + 1 :]
        with np.errstate(all="ignore"):
            left = (powers[:, : p + 1] @ v[: p + 1] / below - z / size) * weight
        off = max(off, float(np.sqrt(np.mean(left**2)))) if np.isfinite(left).all() else np.inf
        rows.append((size * _in_powers(v[: p + 1], middle, half), _in_powers(v[p + 1 :], middle, half)))
    return _Fitted(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), off)


def _in_powers(coefficients: Array, middle: float, half: float) -> Array:
    """Return Chebyshev coefficients of (x - middle)/half as those of powers of x, as many."""
    inner = Polynomial([-middle / half, 1.0 / half])
    powers = Polynomial(np.polynomial.chebyshev.cheb2poly(coefficients))(inner).coef
    return np.asarray(np.pad(powers, (0, len(coefficients) - len(powers))))


def _form(fitted: _Fitted, target: Target) -> Form | None:
    """Return P/(1 + Q) without terms that are rounding; None if the denominator has no number."""
    x = np.abs(target.table.x).max(axis=1, keepdims=True)
    above, below = (_needed(part, x) for part in (fitted.above, fitted.below))
    if not below[0] or not above.any():
        return None
    scaled = fitted.above / fitted.below[:, :1], fitted.below / fitted.below[:, :1]
    powers: list[Nodes | None] = [None, *(_power(k, target.table.allowed) for k in range(1, MOST + 1))]
    written = []
    for row_above, row_below in zip(*scaled, strict=True):
        P = sum_nodes([powers[i] for i in np.flatnonzero(above)], row_above[above], target)
        places = 1 + np.flatnonzero(below[1:])
        Q = sum_nodes([powers[i] for i in places], row_below[places], target) if len(places) else ()
        if P is None or Q is None:
            return None
        written.append(target.wrap(ratio_nodes(P, Q, target) if Q else P))
    return Form.of(written, len(written[0]) + target.cost, pruned=not (above.all() and below.all()))


def _needed(coefficients: Array, reach: Array) -> Flags:
    """Return which terms are no rounding beside the largest one."""
    sizes = np.abs(coefficients) * reach ** np.arange(coefficients.shape[1])
    return np.asarray((sizes > NEGLIGIBLE * sizes.max(axis=1, keepdims=True)).any(axis=0), dtype=bool)


def _power(k: int, allowed: frozenset[str]) -> Nodes:
    """Return x**k."""
    if k == 1:
        return (variable(1),)
    if f"n{k}" in allowed:
        return (node_from_name(f"n{k}"), variable(1))
    return (node_from_name("mul"), variable(1), *_power(k - 1, allowed))
