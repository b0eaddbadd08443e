"""Which variables matter: exactly those, with few points, and with noise no more than can be told."""

import math

import numpy as np
import pytest

from deap_vsr import CallableOracle, Variable
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.relevance import KEPT_IN_NOISE, relevant_variables, settings_that_show

DOMAIN = (0.5, 3.0)


def oracle(law, n_vars, **options):
    return CallableOracle(lambda X: law(X.T), [DOMAIN] * n_vars, **options)


def relevant(asked, seed=0, noise=0.0, **options):
    """Return the variables that matter; `noise` is known beforehand."""
    lab = Lab(asked, rng=np.random.default_rng(seed))
    lab.know_noise(noise)
    return relevant_variables(lab, **options)


def product(columns):
    """A law in which each of `columns` matters in a way of its own."""
    return lambda x: math.prod(1.0 + (i + 1) * x[column] for i, column in enumerate(columns))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("n_vars", "columns"),
    [
        (1, [0]),
        (3, [0, 2]),
        (3, [0, 1, 2]),
        (50, [0]),
        (50, [49]),
        (50, [3, 17, 18, 41]),
        (1000, [0, 499, 500, 999]),
        (1000, [123]),
        (1000, [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987]),
    ],
)
def test_exactly_the_variables_that_matter_are_found_with_few_points(n_vars, columns, seed):
    asked = oracle(product(columns), n_vars)
    assert relevant(asked, seed) == columns
    assert asked.queries <= 6 + 8 * len(columns) * math.log2(n_vars)


@pytest.mark.parametrize("n_vars", [1, 50, 1000])
def test_where_none_matters_none_is_found_with_six_points(n_vars):
    asked = oracle(lambda x: 0 * x[0] + 2.5, n_vars)
    assert relevant(asked) == []
    assert asked.queries == 6


def test_a_variable_that_matters_by_a_billionth_matters():
    asked = oracle(lambda x: x[3] + 1e-9 * x[17], 20)
    assert relevant(asked) == [3, 17]


@pytest.mark.parametrize(
    "law",
    [
        lambda x: x[2] * x[30],
        lambda x: np.sin(x[2]) ** x[30],
        lambda x: 1e250 * x[2] / x[30],
        lambda x: 1e-250 * (x[2] + x[30]),
        lambda x: np.maximum(x[2], x[30]),
    ],
)
def test_the_size_and_form_of_the_law_do_not_matter(law):
    for seed in range(3):
        assert relevant(oracle(law, 40), seed) == [2, 30]


@pytest.mark.parametrize("seed", range(5))
def test_regions_without_values_do_not_make_a_variable_matter(seed):
    def law(x):
        with np.errstate(all="ignore"):
            return np.sqrt(x[4] - x[21]) * x[30]

    asked = oracle(law, 60)
    assert relevant(asked, seed) == [4, 21, 30]
    assert asked.queries <= 3 * 30 + 8 * 3 * math.log2(60)


def test_infinite_values_are_no_points_to_start_from():
    def law(x):
        return np.where(x[0] < 2.0, np.inf, x[5])

    assert relevant(oracle(law, 8)) == [0, 5]


def test_an_oracle_without_finite_values_ends_with_nothing_and_is_not_asked_for_ever():
    asked = oracle(lambda x: x[0] * np.nan, 5)
    assert relevant(asked) == []
    assert asked.queries <= 100


def test_integer_and_signed_variables_are_moved_within_their_domains():
    variables = [Variable("x1", 1, 4, "integer"), Variable("x2", 0.1, 9.0, "loguniform", "both"), Variable("x3", 0, 1)]
    points = []

    def law(X):
        points.append(X.copy())
        return X[:, 0] * X[:, 1]

    asked = CallableOracle(law, variables)
    assert relevant(asked, 2, n_pairs=6) == [0, 1]
    X = np.vstack(points)
    assert asked.queries == len(X)
    assert set(X[:, 0]) <= {1.0, 2.0, 3.0}
    assert (np.abs(X[:, 1]) >= 0.1).all()


def test_the_same_seed_asks_the_same_points():
    points = []
    for _ in range(2):
        asked = oracle(lambda x: (points.append(x.copy()), x[7] * x[1])[1], 30)
        relevant(asked, 3)
    half = len(points) // 2
    for first, second in zip(points[:half], points[half:], strict=True):
        np.testing.assert_array_equal(first, second)


# --- noise --------------------------------------------------------------------------------


def test_in_noise_few_variables_are_all_kept_and_nothing_is_asked():
    asked = oracle(lambda x: x[0], KEPT_IN_NOISE, noise=0.1)
    assert relevant(asked, noise=0.1) == list(range(KEPT_IN_NOISE))
    assert asked.queries == 0


def test_without_noise_few_variables_are_tested():
    assert relevant(oracle(lambda x: x[0], KEPT_IN_NOISE)) == [0]


@pytest.mark.parametrize("seed", range(4))
def test_in_noise_many_variables_are_tested_against_it(seed):
    asked = oracle(lambda x: x[10] * x[20] + 2 * x[60], 100, noise=0.1, seed=seed)
    found = relevant(asked, seed, noise=0.1)
    assert {10, 20, 60} <= set(found)
    assert len(found) <= 5, "few others pass a test at one in a thousand"
    assert asked.queries < 48 * (2 + 2 * 5 * math.log2(100))


def test_in_noise_a_variable_that_matters_much_less_is_ruled_out():
    asked = oracle(lambda x: x[10] + 1e-4 * x[20], 50, noise=0.1)
    assert relevant(asked, 1, noise=0.1) == [10]


# --- the laboratory -----------------------------------------------------------------------


def test_what_is_found_is_a_fact_for_all_parts_and_asked_once():
    asked = oracle(product([1, 4]), 6)
    lab = Lab(asked, rng=np.random.default_rng(0))
    lab.know_noise(0.0)
    assert relevant_variables(lab.part(0.5)) == [1, 4]
    before = asked.queries
    assert relevant_variables(lab) == relevant_variables(lab.part(0.1)) == [1, 4]
    assert asked.queries == lab.budget.queries == before


def test_with_too_few_queries_what_was_not_ruled_out_is_kept():
    asked = oracle(product([40]), 64)
    found = relevant(asked, max_queries=12)
    assert 40 in found
    assert 1 < len(found) < 64
    assert asked.queries <= 12
    assert relevant(oracle(product([40]), 64), max_queries=0) == list(range(64))


@pytest.mark.parametrize("seed", range(3))
def test_in_noise_settings_are_those_at_which_a_variable_can_be_seen(seed):
    asked = oracle(lambda x: np.where(x[1] > 2.5, 5.0 * x[0], 0.0), 2, noise=0.1, seed=seed)
    lab = Lab(asked, rng=np.random.default_rng(seed))
    lab.know_noise(0.1)
    settings = settings_that_show(lab, 0, 3)
    assert settings.shape == (3, 2)
    assert (settings[:, 1] > 2.5).all()
    assert asked.queries == lab.budget.queries == 3 * 8 * 3


def test_in_noise_a_variable_that_cannot_be_seen_has_no_settings():
    lab = Lab(oracle(lambda x: x[1], 2, noise=0.1), rng=np.random.default_rng(0))
    lab.know_noise(0.1)
    assert settings_that_show(lab, 0, 3) is None


def test_settings_are_not_looked_for_with_fewer_points_than_that_takes():
    asked = oracle(lambda x: x[0], 2, noise=0.1)
    lab = Lab(asked, Budget(queries=71))
    lab.know_noise(0.1)
    with pytest.raises(OutOfQueriesError):
        settings_that_show(lab, 0, 3)
    assert asked.queries == 0
