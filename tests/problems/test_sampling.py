"""How inputs are drawn: within their bounds, each by its own variable, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr.problems.equation import Variable, load_equation
from deap_vsr.problems.sampling import draw_inputs


def drawn(variable: Variable, n_points: int = 5000) -> np.ndarray[Any, np.dtype[np.float64]]:
    return draw_inputs([variable], n_points, np.random.default_rng(0))[:, 0]


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(["uniform", "loguniform", "integer"]),
    st.sampled_from(["positive", "both", "as_range"]),
    st.floats(-1e9, 1e9),
    st.floats(1.5, 1e9),
    st.integers(0, 2**32),
)
def test_values_lie_within_the_bounds_of_their_variable(
    sampling: str, sign: str, low: float, width: float, seed: int
) -> None:
    if sampling == "loguniform" and sign == "as_range":
        sign = "both"
    low = low if sign == "as_range" else max(abs(low), 1e-9)
    variable = Variable("x1", low, low + width, sampling, sign)
    values = draw_inputs([variable], 200, np.random.default_rng(seed))
    assert values.shape == (200, 1)
    least, largest = variable.bounds
    assert ((least <= values) & (values <= largest)).all()
    if sign == "both":
        magnitude = Variable("x1", low, low + width, sampling).bounds
        assert ((magnitude[0] <= np.abs(values)) & (np.abs(values) <= magnitude[1])).all()
    if sampling == "integer":
        np.testing.assert_array_equal(values, np.round(values))


def test_uniform_values_spread_evenly() -> None:
    values = drawn(Variable("x1", 2, 6))
    assert np.mean(values) == pytest.approx(4, abs=0.1)
    assert np.std(values) == pytest.approx(4 / np.sqrt(12), rel=0.05)


def test_loguniform_values_spread_evenly_in_their_logarithm() -> None:
    logarithms = np.log10(drawn(Variable("x1", 0.1, 10, "loguniform")))
    assert np.mean(logarithms) == pytest.approx(0, abs=0.05)
    assert np.std(logarithms) == pytest.approx(2 / np.sqrt(12), rel=0.05)


@pytest.mark.parametrize(
    ("low", "high", "values"), [(1, 5, {1, 2, 3, 4}), (0.5, 3.5, {1, 2, 3}), (-2, 1, {-2, -1, 0}), (3, 4, {3})]
)
def test_integers_take_every_whole_value_but_the_upper_bound(low: float, high: float, values: set[int]) -> None:
    found = drawn(Variable("x1", low, high, "integer", "as_range" if low < 0 else "positive"))
    assert set(found) == values
    assert min(np.unique(found, return_counts=True)[1]) > 5000 / len(values) * 0.85


@pytest.mark.parametrize("sampling", ["uniform", "loguniform", "integer"])
def test_signed_values_take_both_signs_equally_often_and_leave_the_gap_free(sampling: str) -> None:
    values = drawn(Variable("x1", 1, 5, sampling, "both"))
    assert np.mean(values < 0) == pytest.approx(0.5, abs=0.03)
    assert (np.abs(values) >= 1).all()
    unsigned = drawn(Variable("x1", 1, 5, sampling))
    assert np.mean(np.abs(values)) == pytest.approx(np.mean(unsigned), rel=0.05)


def test_a_range_below_zero_is_drawn_as_it_is() -> None:
    values = drawn(Variable("x1", -3, 1, "uniform", "as_range"))
    assert np.mean(values) == pytest.approx(-1, abs=0.1)
    assert values.min() < -2.9
    assert values.max() > 0.9


def test_columns_are_drawn_each_by_its_own_variable_and_independently() -> None:
    variables = [Variable("x1", 0, 1), Variable("x2", 1, 3, "integer"), Variable("x3", 10, 20, "loguniform", "both")]
    X = draw_inputs(variables, 4000, np.random.default_rng(0))
    assert X.shape == (4000, 3)
    for column, variable in enumerate(variables):
        assert variable.bounds[0] <= X[:, column].min() <= X[:, column].max() <= variable.bounds[1]
    assert np.abs(np.corrcoef(X.T) - np.eye(3)).max() < 0.06


def test_no_points_and_no_variables_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    assert draw_inputs([Variable("x1", 0, 1)], 0, rng).shape == (0, 1)
    assert draw_inputs([], 3, rng).shape == (3, 0)


def test_the_seed_fixes_what_is_drawn() -> None:
    variables = load_equation("feynman/I.6.20").variables
    one, two, other = (draw_inputs(variables, 10, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).all()
