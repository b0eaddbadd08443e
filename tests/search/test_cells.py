import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, discover
from deap_vsr.search.cells import _extrapolated, _predicted, arguments_of_waves, has_shift

SINE = ("add", "sub", "mul", "div", "n2", "sin", "const")


@pytest.mark.parametrize(
    ("text", "arguments", "shifted"),
    [
        ("C + C*sin(C*x1)", ["C*x1"], [False]),
        ("C*sin(C*x1 + C)", ["C*x1 + C"], [True]),
        ("sin(x1 - (x2 + C))*cos(C)", ["x1 - (x2 + C)", "C"], [True, True]),
        ("C*exp(C*x1)", [], []),
    ],
)
def test_what_oscillates_is_known_by_its_arguments(text, arguments, shifted):
    found = arguments_of_waves(MaskedTree.from_infix(text))
    assert [argument.to_infix(skeleton=True) for argument in found] == arguments
    assert [has_shift(argument) for argument in found] == shifted


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("law", "domains", "most"),
    [
        ("x1*sin(x2*x3)", [(1, 5), (10, 60), (0.5, 4)], 160),
        ("x4*sin(x1*x2*x3/2)**2", [(1, 5)] * 4, 160),
        ("x1*sin(x2*x3 + x4) + x5**2", [(0.5, 3), (0.5, 4), (0, 3), (0, 3), (0.5, 2)], 300),
        ("x1 + x2*sin(x3*x4**2)", [(1, 3), (1, 3), (3, 9), (1, 3)], 200),
    ],
)
def test_fast_waves_and_phases_are_followed_from_value_to_value(law, domains, most, seed):
    oracle = CallableOracle(MaskedTree.from_infix(law).evaluate, [tuple(map(float, d)) for d in domains], SINE)
    result = discover(oracle, seed=seed, max_evaluations=30_000_000)
    assert result.status == "found"
    assert result.oracle_queries < most


def test_constants_are_predicted_by_polynomials_through_what_is_known():
    known = {x: np.array([x**3 - 2.0 * x, 5.0]) for x in (1.0, 1.1, 1.3, 1.7, 2.5)}
    all_of_them, one_less = _predicted(known, 4.0)
    np.testing.assert_allclose(all_of_them, [56.0, 5.0])
    np.testing.assert_allclose(one_less, [56.0, 5.0])
    with_two = _predicted(dict(list(known.items())[:2]), 1.2)
    line = -1.0 + 2.0 * (1.1**3 - 2.2 + 1.0)
    np.testing.assert_allclose(with_two, [[line, 5.0], [1.1**3 - 2.2, 5.0]])


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0), (2.0, -2.0)])
def test_a_power_is_no_start_where_there_is_none(values):
    # ZeroDivisionError before: a whole number may be 0.
    known = {value: np.array([3.0 + value]) for value in values}
    starts = _extrapolated(known, 2.0)
    assert np.isfinite(starts).all()
    assert [5.0] in np.round(starts, 9).tolist()
