"""Knobs that cannot be set to every value: points are on their grid before anybody sees them."""

import numpy as np
import pytest

from deap_vsr import EquationError, Variable
from deap_vsr.problems.sampling import draw_inputs, on_grid
from deap_vsr.search.tables import Sweep, spread_values


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        (Variable("a", 0.1, 2.0, step=0.1), 0.3141, 0.3),
        (Variable("a", 0.1, 2.0, step=0.1), 0.01, 0.1),
        (Variable("a", 0.15, 2.0, step=0.1), 0.15, 0.2),
        (Variable("a", -2.0, 2.0, step=0.5), -0.6, -0.5),
        (Variable("a", 1.0, 2.0, sign="both", step=0.5), -1.4, -1.5),
        (Variable("a", 0.1, 2.0, digits=3), 0.31415, 0.314),
        (Variable("a", 0.12345, 2.0, digits=2), 0.12345, 0.12345),
        (Variable("a", 0.1, 2.0), 0.31415926, 0.31415926),
    ],
)
def test_a_value_is_put_on_the_grid_within_the_domain(variable, value, expected):
    assert on_grid(variable, np.array([value])).tolist() == [expected]


def test_everything_that_is_drawn_or_swept_is_on_the_grid():
    stepped, rough = Variable("a", 1.0, 3.0, step=0.25), Variable("b", 0.01, 100.0, "loguniform", digits=2)
    X = draw_inputs([stepped, rough], 200, np.random.default_rng(0))
    assert set(X[:, 0]) <= set(np.arange(1.0, 3.01, 0.25))
    assert all(float(f"{value:.1e}") == value for value in X[:, 1])
    values = spread_values(stepped, Sweep(40), np.random.default_rng(0))
    assert values.tolist() == np.arange(1.0, 3.01, 0.25).tolist(), "each once, in order"


@pytest.mark.parametrize("wrong", [{"step": -1.0}, {"step": 5.0}, {"step": np.nan}, {"digits": -1}, {"digits": 99}])
def test_a_grid_that_is_none_is_refused(wrong):
    with pytest.raises(EquationError, match=next(iter(wrong))):
        Variable("a", 1.0, 3.0, **wrong)
