"""Linear algebra that never fails."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, discover
from deap_vsr.engine.linear import null_vector, solved


def test_a_solution_is_that_of_least_squares():
    A = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(solved(A, A @ [1.0, 2.0, 3.0]), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(solved(A, A @ np.eye(3)), np.eye(3), atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["A", "z"])
def test_where_numbers_are_not_finite_there_is_no_solution(value, where):
    A, z = np.ones((4, 2)), np.ones(4)
    (A if where == "A" else z)[(1,) * (2 if where == "A" else 1)] = value
    assert np.isnan(solved(A, z)).tolist() == [True, True]


def test_what_does_not_converge_has_no_solution(monkeypatch):
    def fail(*arguments, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "lstsq", fail)
    monkeypatch.setattr(np.linalg, "svd", fail)
    assert np.isnan(solved(np.eye(2), np.ones((2, 3)))).tolist() == [[True] * 3] * 2
    assert np.isnan(null_vector(np.eye(2))).tolist() == [True, True]


def test_a_null_vector_is_what_a_matrix_makes_least_of():
    np.testing.assert_allclose(np.abs(null_vector(np.array([[1.0, -1.0], [2.0, -2.0]]))), np.sqrt([0.5, 0.5]))


def test_a_slow_wave_is_found():
    # Fails before with LinAlgError, as a quotient by a function of it overflowed.
    operators = ("add", "sub", "mul", "div", "inv", "n2", "n3", "n4", "sqrt", "exp", "log", "sin", "cos", "const")
    ranges = [(1.0, 5.0), (280.0, 380.0)]
    oracle = CallableOracle(lambda X: 0.6 * X[:, 0] * np.cos(0.02 * X[:, 1] + 1.2), ranges, operators)
    assert discover(oracle, max_queries=300).status == "found"
