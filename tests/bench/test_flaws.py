"""Flawed oracles: each has the flaw that its row names, and no other."""

import numpy as np
import pytest

from deap_vsr.bench.flaws import INEXPRESSIBLE, ROWS, place_of, spread
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.laws import LEAST_EFFECT, effects, law, laws_suite
from deap_vsr.problems.sampling import draw_inputs

LAW = law("decays", 0, seed=1)
SPREAD = spread(LAW)


def asked(name, n_points=4000, seed=0, of=LAW):
    """Return a case, points, its answers and those of the law."""
    case = ROWS[name].make(of, seed)
    X = draw_inputs(case.oracle.variables, n_points, np.random.default_rng(1))
    return case, X, case.oracle.evaluate(X), of.evaluate(X[:, : of.n_vars])


@pytest.mark.parametrize("name", ROWS)
def test_every_oracle_knows_its_law_and_answers_the_same_for_a_seed(name):
    case, X, y, _ = asked(name, 500)
    again = ROWS[name].make(LAW, 0).oracle.evaluate(X)
    np.testing.assert_array_equal(y, again)
    assert case.law is (None if name == "inexpressible" else LAW)
    assert case.oracle.function_set == LAW.function_set
    assert (case.wrong_share > 0) == name.startswith("step")


def test_an_exact_oracle_answers_as_the_law():
    _, _, y, truth = asked("exact")
    np.testing.assert_array_equal(y, truth)


@pytest.mark.parametrize(("name", "size"), [("noise 0.1%", 0.001), ("noise 1%", 0.01), ("noise 1%, 300 points", 0.01)])
def test_noise_is_a_share_of_the_spread_and_new_for_every_answer(name, size):
    case, X, y, truth = asked(name)
    assert np.std(y - truth) == pytest.approx(size * SPREAD, rel=0.05)
    assert not (case.oracle.evaluate(X) == y).any()
    assert not (asked(name, seed=1)[2] == y).any()


def test_rows_with_few_points_have_a_limit():
    assert {row.name: row.max_queries for row in ROWS.values() if row.max_queries} == {
        "noise 1%, 300 points": 300,
        "noise 1%, 1000 points": 1000,
    }


@pytest.mark.parametrize("batch", [1, 7, 30, 4000])
def test_the_thirtieth_answer_is_an_outlier_however_it_is_asked(batch):
    case = ROWS["noise 1%, one outlier"].make(LAW, 0)
    X = draw_inputs(LAW.variables, 210, np.random.default_rng(1))
    y = np.concatenate([case.oracle.evaluate(X[i : i + batch]) for i in range(0, len(X), batch)])
    off = (y - LAW.evaluate(X)) / SPREAD
    assert np.flatnonzero(np.abs(off) > 1).tolist() == [29]
    assert off[29] == pytest.approx(50, abs=0.1)


def test_three_percent_are_missing_at_random():
    case, X, y, truth = asked("noise 1%, 3% missing", 20_000)
    missing = np.isnan(y)
    assert np.mean(missing) == pytest.approx(0.03, abs=0.005)
    assert np.mean(missing & np.isnan(case.oracle.evaluate(X))) < 0.003, "not the same ones again"
    assert np.std((y - truth)[~missing]) == pytest.approx(0.01 * SPREAD, rel=0.05)


def test_the_error_of_a_solver_looks_like_noise_and_is_the_same_again():
    case, X, y, truth = asked("solver error 1e-6")
    error = y / truth - 1
    assert np.max(np.abs(error)) <= 1.001e-6
    assert np.std(error) == pytest.approx(1e-6 / np.sqrt(2), rel=0.05)
    np.testing.assert_array_equal(case.oracle.evaluate(X), y)
    near = X + 1e-4 * (np.mean(X, axis=0) - X)
    beside = case.oracle.evaluate(near) / LAW.evaluate(near) - 1
    assert abs(np.corrcoef(error, beside)[0, 1]) < 0.1


@pytest.mark.parametrize(("name", "size"), [("noise 1% of the reading", 0.01), ("jitter 1e-14", 1e-14)])
def test_noise_of_the_reading_is_a_share_of_each_answer(name, size):
    case, X, y, truth = asked(name)
    assert np.std((y - truth) / truth) == pytest.approx(size, rel=0.05)
    for part in np.array_split(np.argsort(np.abs(truth)), 4):
        assert np.std(((y - truth) / truth)[part]) == pytest.approx(size, rel=0.2)
    assert np.mean(case.oracle.evaluate(X) == y) < 0.1


def test_answers_are_rounded_to_four_digits():
    _, _, y, truth = asked("rounded to 4 digits")
    assert all(value == float(f"{value:.4g}") for value in y)
    assert 2e-4 < np.max(np.abs(y / truth - 1)) <= 5e-4


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_a_step_is_an_interval_of_one_variable_with_its_share_of_the_domain(share):
    columns = set()
    for seed in range(8):
        case, X, y, truth = asked(f"step {100 * share:g}%", 20_000, seed)
        off = y != truth
        assert np.mean(off) == pytest.approx(share, rel=0.2)
        np.testing.assert_allclose(y[off], 1.5 * truth[off], rtol=1e-15)
        assert case.wrong_share == share
        (column,) = [i for i in range(LAW.n_vars) if off[_between(X[:, i], X[off, i])].all()]
        columns.add(column)
    assert len(columns) > 1


def _between(x, edges):
    return (np.min(edges) <= x) & (x <= np.max(edges))


@pytest.mark.parametrize("sampling", ["uniform", "loguniform"])
def test_the_place_of_a_value_is_the_share_of_smaller_ones(sampling):
    variable = Variable("x1", 0.1, 10.0, sampling)
    x = draw_inputs([variable], 20_000, np.random.default_rng(0))[:, 0]
    for share in (0.1, 0.5, 0.9):
        assert np.mean(place_of(variable, x) < share) == pytest.approx(share, abs=0.02)


def test_what_cannot_be_said_is_a_law_times_a_function_of_one_more_variable():
    drawn = set()
    for seed in range(12):
        case, X, y, truth = asked("inexpressible", seed=seed)
        assert case.oracle.n_vars == LAW.n_vars + 1
        noise = np.std(y) * 0.01
        errors = [np.std(y - truth * function(X[:, -1])) for function, _, _ in INEXPRESSIBLE]
        (kind,) = [i for i, error in enumerate(errors) if error == pytest.approx(noise, rel=0.1)]
        low, high = INEXPRESSIBLE[kind][1:]
        assert case.oracle.variables[-1].bounds == (low, high)
        drawn.add(kind)
    assert drawn == set(range(len(INEXPRESSIBLE)))


def test_a_variable_of_whole_numbers_is_one_or_two_or_zero_too_and_matters():
    kinds = set()
    for one in laws_suite(12, seed=1):
        case, X, y, truth = asked("whole numbers", 400, of=one)
        (column,) = [i for i, variable in enumerate(case.oracle.variables) if variable.sampling == "integer"]
        kinds.add(case.oracle.variables[column].bounds)
        np.testing.assert_array_equal(y, truth)
        assert np.isfinite(y).all()
        assert effects(one, X[:200], X[200:])[column] > 0.8 * LEAST_EFFECT
        X[:, column] = 1.5
        assert np.isnan(case.oracle.evaluate(X)).all(), "and nothing in between"
    assert kinds == {(0.0, 2.0), (1.0, 2.0)}
