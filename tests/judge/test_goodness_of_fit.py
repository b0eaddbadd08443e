import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr import VsrError, metrics
from deap_vsr.judge.metrics import Quartiles, accuracy, all_metrics, quartiles

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 6))
samples = st.integers(2, 12).flatmap(
    lambda n: st.tuples(st.lists(numbers, min_size=n, max_size=n), st.lists(numbers, min_size=n, max_size=n))
)


def exact(y, prediction):
    """Return MSE and variance of y as fractions, without rounding."""
    y, prediction = [Fraction(float(v)) for v in y], [Fraction(float(v)) for v in prediction]
    mean = sum(y) / len(y)
    mse = sum((a - b) ** 2 for a, b in zip(y, prediction, strict=True)) / len(y)
    return mse, sum((a - mean) ** 2 for a in y) / len(y)


def root(fraction):
    """Return the root of a fraction that may be far out of a float's range."""
    if not fraction:
        return 0.0
    exponent = (fraction.numerator.bit_length() - fraction.denominator.bit_length()) // 2 * 2
    return math.ldexp(math.sqrt(fraction / Fraction(2) ** exponent), exponent // 2)


# --- formulas -----------------------------------------------------------------------------


@given(samples)
@settings(max_examples=1000)
def test_every_metric_is_its_formula(sample):
    y, prediction = map(np.array, sample)
    mse, variance = exact(y, prediction)
    found = all_metrics(y, prediction)
    assert list(found) == ["mse", "nmse", "rmse", "nrmse", "inv_nmse", "inv_nrmse", "r2"]
    assert found["mse"] == pytest.approx(float(mse), rel=1e-12, abs=0)
    assert found["rmse"] == pytest.approx(root(mse), rel=1e-12, abs=0)
    if variance:
        # The variance of numbers that agree in many digits cannot be had from rounded differences.
        spread = float(variance) / max(float(max(abs(v) for v in y)) ** 2, 1e-300)
        nmse, rel = float(mse / variance), 1e-12 + 1e-15 / spread
        assert found["nmse"] == pytest.approx(nmse, rel=rel, abs=0)
        assert found["nrmse"] == pytest.approx(math.sqrt(nmse), rel=rel, abs=0)
        assert found["inv_nmse"] == pytest.approx(1 / (1 + nmse), rel=rel, abs=0)
        assert found["inv_nrmse"] == pytest.approx(1 / (1 + math.sqrt(nmse)), rel=rel, abs=0)
        assert found["r2"] == pytest.approx(1 - nmse, rel=rel, abs=rel)


def test_values_by_hand():
    y, prediction = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 6.0])
    found = all_metrics(y, prediction)
    assert found["mse"] == 1.0
    assert found["nmse"] == pytest.approx(1 / 1.25)
    assert found["r2"] == pytest.approx(0.2)
    assert found["inv_nmse"] == pytest.approx(1 / 1.8)
    assert found["inv_nrmse"] == pytest.approx(1 / (1 + math.sqrt(0.8)))


def test_exact_prediction_scores_best():
    y = np.linspace(-3, 5, 40)
    assert all_metrics(y, y.copy()) == {
        "mse": 0.0, "nmse": 0.0, "rmse": 0.0, "nrmse": 0.0, "inv_nmse": 1.0, "inv_nrmse": 1.0, "r2": 1.0,
    }  # fmt: skip


def test_mean_as_prediction_has_nmse_one():
    y = np.random.default_rng(0).normal(size=100)
    assert metrics.nmse(y, np.full(100, y.mean())) == pytest.approx(1.0)
    assert metrics.r2(y, np.full(100, y.mean())) == pytest.approx(0.0, abs=1e-12)


def test_lists_and_whole_numbers_are_taken():
    assert metrics.mse([1, 2], [1, 4]) == 2.0
    assert metrics.nmse([1, 2], [1, 4]) == 8.0


# --- extreme scales -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1.0, 1e150, 1e200, 1e300])
def test_normalised_metrics_do_not_depend_on_the_scale(scale):
    rng = np.random.default_rng(2)
    y, noise = rng.uniform(1, 2, 50), rng.normal(0, 0.1, 50)
    plain = all_metrics(y, y + noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = all_metrics(y * scale, (y + noise) * scale)
    for name in ("nmse", "nrmse", "inv_nmse", "inv_nrmse", "r2"):
        assert scaled[name] == pytest.approx(plain[name], rel=1e-9, abs=0), name


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1.0, 1e150, 1e200, 1e300])
def test_rmse_has_the_scale_of_the_residual(scale):
    rng = np.random.default_rng(3)
    y, prediction = rng.uniform(1, 2, 20) * scale, rng.uniform(1, 2, 20) * scale
    assert metrics.rmse(y, prediction) == pytest.approx(root(exact(y, prediction)[0]), rel=1e-9, abs=0)


@pytest.mark.parametrize(("scale", "expected"), [(1e-120, 2e-240), (1e-200, 0.0), (1e150, 2e300), (1e200, math.inf)])
def test_mse_is_right_wherever_a_float_can_hold_it(scale, expected):
    y = np.array([1.0, 2.0]) * scale
    prediction = np.array([1.0, 4.0]) * scale
    assert metrics.mse(y, prediction) == pytest.approx(expected, rel=1e-12, abs=0)


def test_tiny_error_on_a_large_offset_is_seen():
    y = 1e9 + np.linspace(0, 1, 100)
    assert metrics.nmse(y, y + 0.1) == pytest.approx(0.01 / np.var(np.linspace(0, 1, 100)), rel=1e-4)


@pytest.mark.parametrize("value", [1.0, 0.0, 0.1, -0.1, 3.3, 1e-5, 1e200])
def test_constant_y_gives_zero_for_an_exact_fit_and_inf_for_any_other(value):
    for n in (1, 3, 7, 10, 1000):  # the mean of n equal numbers may differ from them in the last digit
        y = np.full(n, value)
        assert metrics.nmse(y, y) == 0.0
        assert metrics.r2(y, y) == 1.0
        other = y + (abs(value) * 0.01 or 1.0)
        assert metrics.nmse(y, other) == math.inf
        assert metrics.r2(y, other) == -math.inf
        assert metrics.inv_nmse(y, other) == 0.0


# --- non-finite values --------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_prediction_that_is_not_finite_everywhere_scores_worst(bad):
    y = np.linspace(0, 1, 10)
    prediction = y.copy()
    prediction[3] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = all_metrics(y, prediction)
    assert found == {
        "mse": math.inf, "nmse": math.inf, "rmse": math.inf, "nrmse": math.inf, "inv_nmse": 0.0, "inv_nrmse": 0.0,
        "r2": -math.inf,
    }  # fmt: skip


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_y_that_is_not_finite_gives_nan_or_worst_without_warning(bad):
    y = np.array([1.0, bad, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = all_metrics(y, np.ones(3))
    assert not any(found[name] <= 1 for name in ("mse", "nmse", "rmse", "nrmse"))
    assert not any(found[name] > 0 for name in ("inv_nmse", "inv_nrmse", "r2"))


def test_prediction_near_the_largest_float_is_no_warning():
    y = np.array([1.7e308, -1.7e308])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.mse(y, -y) == math.inf
        assert not metrics.nmse(y, -y) <= 1e-12


def test_y_near_the_largest_float_has_a_spread():
    y = np.array([1.0, 1.2, 1.5, 1.7]) * 1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.nmse(y, y) == 0.0
        assert metrics.nmse(y, y[::-1]) == pytest.approx(metrics.nmse(y / 1e308, y[::-1] / 1e308))


def test_no_points_at_all_are_no_perfect_fit():
    empty = np.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = all_metrics(empty, empty)
    assert not found["nmse"] <= 1e-12
    assert not found["r2"] > 0


# --- groups -------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=30))
@settings(max_examples=500)
def test_quartiles_are_numpys_linear_ones(values):
    found = quartiles(values)
    expected = np.quantile(values, [0.25, 0.5, 0.75])
    np.testing.assert_allclose([found.lower, found.median, found.upper], expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], Quartiles(5.0, 5.0, 5.0)),
        ([1, 2, 3, 4, 5], Quartiles(2.0, 3.0, 4.0)),
        ([1, 2, 3, math.inf, math.inf], Quartiles(2.0, 3.0, math.inf)),
        ([1, math.inf], Quartiles(math.inf, math.inf, math.inf)),
        ([math.inf] * 3, Quartiles(math.inf, math.inf, math.inf)),
        ([1, 2, math.nan], Quartiles(1.5, 2.0, math.inf)),
        ([0, 1, math.inf, math.inf], Quartiles(0.75, math.inf, math.inf)),
        ([-math.inf] * 4, Quartiles(-math.inf, -math.inf, -math.inf)),
        ([-math.inf, 1, 2, 3, 4], Quartiles(1.0, 2.0, 3.0)),
        ([-math.inf, -math.inf, 2, 3, 4], Quartiles(-math.inf, 2.0, 3.0)),
        ([-math.inf, 1], Quartiles(-math.inf, -math.inf, -math.inf)),
        ([-math.inf, 1, 2, 3], Quartiles(-math.inf, 1.5, 2.25)),
        ((v for v in (3, 1, 2)), Quartiles(1.5, 2.0, 2.5)),
    ],
)
def test_quartiles_stand_infinities(values, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quartiles(values) == expected


def test_quartiles_and_accuracy_of_nothing_are_nan():
    assert all(math.isnan(value) for value in (quartiles([]).lower, quartiles([]).median, quartiles([]).upper))
    assert math.isnan(accuracy([]))


def test_accuracy_is_the_share_that_reaches_tau():
    assert accuracy([1.0, 0.999, 0.9989, -math.inf, math.nan]) == 0.4
    assert accuracy([0.5, 0.7], tau=0.6) == 0.5
    assert accuracy(iter([1.0])) == 1.0


def test_a_failed_run_is_the_worst_of_its_group():
    assert metrics.quartiles([1.0, math.nan, 0.5], worst=-math.inf).lower == -math.inf
    assert metrics.quartiles([1.0, math.nan, 0.5]).upper == math.inf


def test_values_of_another_shape_are_refused_not_broadcast():
    with pytest.raises(VsrError, match="shape"):
        metrics.nmse(np.ones((5, 1)), np.ones(5))
