"""Goodness of fit, group statistics, and the judge of recovery.

The judge knows the hidden formula. It never takes part in a search; it is asked once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from deap_vsr.errors import ExpressionError, VsrError
from deap_vsr.judge import _symbolic, digits
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree, is_number
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import CATALOGUE, Array
from deap_vsr.tree.simplify import canonical, literals, structural_hash, with_sums

#: Points, seed and threshold of the judge: recovered means NMSE <= 1e-12 and the same formula.
TEST_POINTS = 10_000
TEST_SEED = 20_231
RECOVERY_NMSE = 1e-12
CONSTANT_TOLERANCE = 1e-6
#: Where sympy cannot decide formulas are compared on ranges so many times as wide as well.
STRETCHES = (8.0, 64.0, 512.0)
#: Ranges in logarithms are no wider than so many decades on each side of 1: products of their values are finite.
DECADES = 60.0


# --- metrics: y and prediction of shape (n_points,) ---------------------------------------


def mse(y: Array, prediction: Array) -> float:
    """Mean squared error; inf if the prediction is not finite everywhere, NaN if y is not or is empty."""
    unit, error, _ = _mean_squares(y, prediction)
    return error * unit * unit


def rmse(y: Array, prediction: Array) -> float:
    """Root of the MSE."""
    unit, error, _ = _mean_squares(y, prediction)
    return float(np.sqrt(error)) * unit


def nmse(y: Array, prediction: Array) -> float:
    """MSE over the variance of y; for constant y, 0 if the fit is exact and inf if not."""
    _, error, variance = _mean_squares(y, prediction)
    if variance == 0:
        return 0.0 if error == 0 else float("inf")
    return error / variance


def nrmse(y: Array, prediction: Array) -> float:
    """Root of the NMSE."""
    return float(np.sqrt(nmse(y, prediction)))


def _mean_squares(y: Array, prediction: Array) -> tuple[float, float, float]:
    """Return a unit (a power of two near the residual), and MSE and variance of y in its square.

    In such units squares of 1e-200 do not vanish and those of 1e+200 do not overflow.
    """
    y, prediction = np.asarray(y, dtype=float), np.asarray(prediction, dtype=float)
    if y.shape != prediction.shape or y.ndim != 1:
        raise VsrError(f"y has shape {y.shape}, the prediction {prediction.shape}, expected (n_points,) for both")
    if not len(y) or not np.isfinite(y).all():
        return 1.0, float("nan"), float("nan")
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(y / 4 - prediction / 4)))
        if not np.isfinite(largest):
            return 1.0, float("inf"), 1.0
        unit = float(2.0 ** np.clip(np.frexp(largest)[1], -1000, 1000)) if largest else 1.0
        error = float(np.mean((y / unit - prediction / unit) ** 2))
        if np.min(y) == np.max(y):
            return unit, error, 0.0
        largest_y = float(np.max(np.abs(y)))
        centred = y / largest_y - np.mean(y / largest_y)
        ratio = largest_y / unit
        return unit, error, float(np.mean((centred * ratio) ** 2))


def inv_nmse(y: Array, prediction: Array) -> float:
    """1 / (1 + NMSE), from 0 to 1."""
    return 1.0 / (1.0 + nmse(y, prediction))


def inv_nrmse(y: Array, prediction: Array) -> float:
    """1 / (1 + NRMSE), from 0 to 1."""
    return 1.0 / (1.0 + nrmse(y, prediction))


def r2(y: Array, prediction: Array) -> float:
    """Coefficient of determination, 1 - NMSE."""
    return 1.0 - nmse(y, prediction)


METRICS: dict[str, Callable[[Array, Array], float]] = {
    "mse": mse,
    "nmse": nmse,
    "rmse": rmse,
    "nrmse": nrmse,
    "inv_nmse": inv_nmse,
    "inv_nrmse": inv_nrmse,
    "r2": r2,
}


def all_metrics(y: Array, prediction: Array) -> dict[str, float]:
    """Return every metric by name."""
    return {name: metric(y, prediction) for name, metric in METRICS.items()}


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles of a group."""

    lower: float
    median: float
    upper: float


def quartiles(values: Iterable[float], worst: float = np.inf) -> Quartiles:
    """Return the quartiles of `values`; NaN, a failed run, counts as `worst` (for R2 that is -inf)."""
    data = np.array(list(values), dtype=float)
    if not len(data):
        nan = float("nan")
        return Quartiles(nan, nan, nan)
    data = np.sort(np.where(np.isnan(data), worst, data))
    return Quartiles(*(_quantile(data, share) for share in (0.25, 0.5, 0.75)))


def _quantile(ordered: Array, share: float) -> float:
    """Linear interpolation that stands infinities (numpy's gives NaN between two of them)."""
    at = share * (len(ordered) - 1)
    low, high = float(ordered[int(np.floor(at))]), float(ordered[int(np.ceil(at))])
    if low == high or np.isinf(low):
        return low
    part = at - np.floor(at)
    return low * (1.0 - part) + high * part if part else low


def accuracy(r2_values: Iterable[float], tau: float = 0.999) -> float:
    """Return the share of a group with R2 >= tau; the paper calls this recovery."""
    values = list(r2_values)
    return sum(value >= tau for value in values) / len(values) if values else float("nan")


# --- the judge ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What the judge says of an answer.

    Attributes
    ----------
    recovered : bool
        NMSE <= 1e-12 on 10,000 fresh noiseless points *and* the same formula.
    recovered_by : "symbolic", "numeric" or None
        Whether the formulas were shown equal, or agreed on ranges stretched twofold where
        sympy could not decide.
    same_form : bool
        Equal in canonical form with anonymous constants, differences being sums of negative terms.
    metrics : dict
        Every metric on the test points.
    """

    recovered: bool
    recovered_by: str | None
    same_form: bool
    metrics: dict[str, float]


def judge(answer: MaskedTree, equation: Equation, time_limit: float = 10.0) -> Verdict:
    """Compare an answer with the hidden formula of `equation`.

    Parameters
    ----------
    time_limit : float
        Seconds that sympy may take, in a process of its own that is ended after them.
    """
    X, y = report_points(equation)
    metrics = all_metrics(y, answer.evaluate(X))
    same_form = structural_hash(with_sums(answer)) == structural_hash(with_sums(equation.tree))
    fits = metrics["nmse"] <= RECOVERY_NMSE
    if not fits or equation.judge == "fit":
        return Verdict(fits, "numeric" if fits else None, same_form, metrics)
    how = _same_formula(answer, equation, same_form, time_limit)
    return Verdict(how is not None, how, same_form, metrics)


def report_points(equation: Equation) -> tuple[Array, Array]:
    """Return the 10,000 points (X, y) of the report, noiseless, with a seed of their own."""
    return _finite_points(equation, equation.variables, TEST_SEED)


def _finite_points(equation: Equation, variables: tuple[Variable, ...], seed: int) -> tuple[Array, Array]:
    X = draw_inputs(variables, TEST_POINTS, np.random.default_rng(seed))
    y = equation.evaluate(X)
    good = np.isfinite(y)
    return X[good], y[good]


def _same_formula(answer: MaskedTree, equation: Equation, same_form: bool, time_limit: float) -> str | None:
    if same_form and _constants_agree(answer, equation.tree):
        return "symbolic"
    if _same_terms(answer, equation.tree):
        return "symbolic"
    try:
        decided = _symbolic.same(answer, equation.tree, equation.variables, CONSTANT_TOLERANCE, time_limit)
    except ExpressionError:  # too deep or too large for sympy
        decided = None
    if decided is None:
        return "numeric" if _agree_when_stretched(answer, equation) else None
    return "symbolic" if decided else None


def _constants_agree(answer: MaskedTree, truth: MaskedTree) -> bool:
    """Whether two trees of one canonical structure have the same constants, position by position."""
    pairs = zip(canonical(with_sums(answer)), canonical(with_sums(truth)), strict=True)
    numbers = [(a.value, b.value) for a, b in pairs if is_number(a)]
    return all(abs(a - b) <= CONSTANT_TOLERANCE * abs(b) for a, b in numbers)


def _same_terms(answer: MaskedTree, truth: MaskedTree) -> bool:
    """Whether both, multiplied out, are the same sum of terms: what sympy would find as well, after some seconds."""
    sums = [expand(literals(tree), tuple(CATALOGUE)) for tree in (answer, truth)]
    if sums[0] is None or sums[1] is None or structural_hash(sums[0]) != structural_hash(sums[1]):
        return False
    return _constants_agree(sums[0], sums[1])


def _agree_when_stretched(answer: MaskedTree, equation: Equation) -> bool:
    """Whether the formulas agree on ranges stretched twofold, and to the last digits on wider ones still.

    A series that was cut off agrees to six digits where it was fitted, and on a small domain to all of them; far
    outside it does not, whatever constants it has, while a formula that is the same does wherever both have values.
    """
    X, y = _finite_points(equation, tuple(_stretched(variable, 2.0) for variable in equation.variables), TEST_SEED + 1)
    if not len(y) or not nmse(y, answer.evaluate(X)) <= RECOVERY_NMSE:
        return False
    for times in STRETCHES:
        X, y = _finite_points(equation, tuple(_stretched(v, times) for v in equation.variables), TEST_SEED + 2)
        if len(y) >= digits.ENOUGH and not digits.agree(answer, equation.tree, X):
            return False
    return True


def _stretched(variable: Variable, times: float) -> Variable:
    """Return the variable with so many times its range: in logarithms for loguniform, else about the middle."""
    if variable.sampling == "loguniform":
        low, high = float(np.log10(variable.low)), float(np.log10(variable.high))
        grow = (high - low) * (times - 1.0) / 2.0
        low = 10.0 ** max(low - grow, min(low, -DECADES))
        high = 10.0 ** min(high + grow, max(high, DECADES))
    elif variable.sign == "as_range":
        half = (variable.high - variable.low) * (times - 1.0) / 2.0
        low, high = variable.low - half, variable.high + half
    else:
        low = variable.low / times
        high = low + times * (variable.high - variable.low)
    return variable.with_range(low, high)
