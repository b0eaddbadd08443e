import numpy as np
import pytest
from scipy.stats import chi2

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.forms.atoms import atoms_of
from deap_vsr.lab.lab import Lab
from deap_vsr.search.short import rounded, short_in_noise, with_short_numbers
from deap_vsr.search.sums import SumOptions, Sums
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import Constant


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (2.0003, 0.001, 2.0),
        (-1.4996, 0.0007, -1.5),
        (0.99996, 0.001, 1.0),
        (3.1417e-7, 1e-9, None),  # 3.14e-7 has neighbours ten standard errors away
        (299.98, 0.03, 300.0),
        (0.7473, 0.002, None),  # 0.75 is near, but some number of two digits always is
        (2.01, 0.001, None),  # ten standard errors off, and 2.01 has too many digits
        (2.01, 1e-5, 2.01),
        (0.0, 0.1, None),
        (1.2, 0.0, None),
        (1.2, np.inf, None),
    ],
)
def test_a_short_number_is_restored_where_chance_would_hardly_lead_to_it(value, error, expected):
    assert short_in_noise(value, error) == expected


def test_hardly_any_number_without_a_short_one_behind_it_is_restored():
    rng = np.random.default_rng(0)
    values, errors = rng.uniform(0.1, 10.0, 4000), 10.0 ** rng.uniform(-4.0, -1.0, 4000)
    hits = [short_in_noise(float(v), float(e)) is not None for v, e in zip(values, errors, strict=True)]
    assert 0.0 < np.mean(hits) < 0.1


def test_nearly_every_short_number_is_restored():
    rng = np.random.default_rng(1)
    true = rng.integers(1, 10, 2000) * 10.0 ** rng.integers(-3, 3, 2000)
    errors = 0.001 * 10.0 ** np.floor(np.log10(true))
    measured = true + errors * rng.standard_normal(2000)
    hits = [
        short_in_noise(float(v), float(e)) == pytest.approx(t, rel=1e-12)
        for v, e, t in zip(measured, errors, true, strict=True)
    ]
    assert np.mean(hits) > 0.97


@pytest.mark.parametrize(("value", "error"), [(0.7472983471, 0.002), (-123.456789, 0.5), (3.3e-9, 1e-10), (0.02, 0.5)])
def test_only_digits_far_below_the_standard_error_are_lost(value, error):
    short = rounded(value, error)
    assert abs(short - value) <= 0.1 * error
    assert len(repr(short)) <= len(repr(value))
    assert rounded(value, np.inf) == rounded(value, 0.0) == value


def regression(true, n_points=2000, noise=0.1, seed=0, mixing=0.0):
    """Columns, y, coefficients by least squares, and their standard errors."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((len(true), n_points))
    A[1:] += mixing * A[0]
    y = np.array(true) @ A + noise * rng.standard_normal(n_points)
    fitted = np.linalg.lstsq(A.T, y, rcond=None)[0]
    return A, y, fitted, noise * np.sqrt(np.diag(np.linalg.inv(A @ A.T)))


@pytest.mark.parametrize("seed", range(5))
def test_short_coefficients_come_back_and_the_others_stay_within_their_errors(seed):
    A, y, fitted, errors = regression([2.0, -1.0, 0.7473], seed=seed)
    errors = np.maximum(errors, 0.002)
    found = with_short_numbers(A, y, 0.1, fitted, errors)
    assert list(found[:2]) == [2.0, -1.0]
    assert abs(found[2] - 0.7473) < 5.0 * errors[2]
    grown = (np.sum((y - found @ A) ** 2) - np.sum((y - fitted @ A) ** 2)) / 0.1**2
    assert grown <= chi2.isf(0.01, 2)


def test_a_restored_coefficient_moves_those_that_depend_on_it():
    A, y, fitted, errors = regression([2.0, 0.74731], mixing=1.0, n_points=400, seed=3)
    found = with_short_numbers(A, y, 0.1, fitted, errors)
    assert found[0] == 2.0
    beside = np.linalg.lstsq(A[1:].T, y - 2.0 * A[0], rcond=None)[0][0]
    assert abs(found[1] - beside) <= 0.1 * errors[1]
    assert abs(found[1] - fitted[1]) > 2.0 * abs(found[1] - beside)


def test_numbers_that_are_short_each_but_not_together_are_not_all_restored():
    # Two columns nearly alike: their difference is known far better than either, and the true one is not short.
    rng = np.random.default_rng(0)
    first = rng.standard_normal(4000)
    A = np.array([first, first + 0.05 * rng.standard_normal(4000)])
    y = np.array([3.03, 4.02]) @ A + 0.1 * rng.standard_normal(4000)
    fitted = np.linalg.lstsq(A.T, y, rcond=None)[0]
    errors = 0.1 * np.sqrt(np.diag(np.linalg.inv(A @ A.T)))
    assert short_in_noise(fitted[0], 0.02) == 3.0
    assert short_in_noise(fitted[1], 0.02) == 4.0
    found = with_short_numbers(A, y, 0.1, fitted, np.full(2, 0.02))
    assert (found == [3.0, 4.0]).sum() < 2
    assert np.sum((y - found @ A) ** 2) <= np.sum((y - fitted @ A) ** 2) + 0.1**2 * chi2.isf(0.01, 1)
    assert (errors > 0.02).all()


def search(law, n_vars, function_set=("add", "sub", "mul", "sin", "cos", "const"), seed=0):
    oracle = CallableOracle(law, [(0.5, 3.0)] * n_vars, function_set, noise=0.1, seed=seed)
    lab = Lab(oracle, rng=np.random.default_rng(seed))
    lab.know_noise(0.1)
    return vertical(lab, Sums(atoms_of, SumOptions(n_points=150, last_points=1200)), None)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_formula_of_a_noisy_search_has_short_numbers_and_the_errors_they_were_measured_with(seed):
    outcome = search(lambda X: 2.0 * np.sin(X[:, 0]) + X[:, 1], 2, seed=seed)
    assert outcome.stopped_by == "found"
    numbers = [node.value for node in outcome.tree if isinstance(node, Constant)]
    assert numbers == [2.0]
    assert len(outcome.standard_errors) == 1
    assert 0.0 < outcome.standard_errors[0] < 0.02
    X = np.random.default_rng(5).uniform(0.5, 3.0, (50, 2))
    np.testing.assert_allclose(outcome.tree.evaluate(X), 2.0 * np.sin(X[:, 0]) + X[:, 1], rtol=1e-12)


def test_numbers_that_are_not_short_keep_what_was_measured():
    outcome = search(lambda X: 2.0437 * np.sin(X[:, 0]) * X[:, 1], 2)
    (number,) = [node.value for node in outcome.tree if isinstance(node, Constant)]
    assert abs(number - 2.0437) < 5.0 * outcome.standard_errors[0]
    assert outcome.tree.to_infix() == MaskedTree.from_infix(outcome.tree.to_infix()).to_infix()
    assert len(repr(number)) <= 8
