"""Control-variable experiments: what is held, what is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from deap_vsr.errors import OracleError
from deap_vsr.lab.oracle import CallableOracle, EquationOracle
from deap_vsr.lab.trials import MAX_REDRAWS, Trial, sample_trials
from deap_vsr.problems.equation import load_equation

BOX = [(0.0, 10.0)] * 4


def total(X: Any) -> Any:
    return X.sum(axis=1)


def trials_of(
    function: Any, free: Sequence[int], n_trials: int, n_points: int, seed: int = 0, **options: Any
) -> tuple[list[Trial], CallableOracle]:
    oracle = CallableOracle(function, BOX)
    return sample_trials(oracle, free, n_trials, n_points, np.random.default_rng(seed), **options), oracle


# --- trials -------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [(0,), (2,), (0, 3), (1, 2, 3), (0, 1, 2, 3)])
def test_controlled_columns_are_constant_in_a_trial_and_differ_between_trials(free: tuple[int, ...]) -> None:
    trials, oracle = trials_of(total, free, 5, 20)
    held = [column for column in range(4) if column not in free]
    assert len(trials) == 5
    for trial in trials:
        assert trial.free == free
        assert trial.X.shape == (20, 4)
        assert (trial.X[:, held] == trial.X[0, held]).all()
        for column in free:
            assert len(set(trial.X[:, column])) == 20
        np.testing.assert_array_equal(trial.y, total(trial.X))
        assert (trial.dropped, trial.weights) == (0, None)
    for column in range(4):
        assert len({trial.X[0, column] for trial in trials}) == 5
    assert oracle.queries == 100


def test_controlled_values_are_drawn_from_the_domain_of_their_variable() -> None:
    trials, _ = trials_of(total, [0], 400, 1)
    settings_seen = np.array([trial.X[0, 1:] for trial in trials])
    assert settings_seen.min() < 0.5
    assert settings_seen.max() > 9.5
    assert np.mean(settings_seen) == pytest.approx(5, abs=0.4)


def test_with_nothing_free_all_points_of_a_trial_are_the_same_measurement_repeated() -> None:
    oracle = CallableOracle(total, BOX, noise=0.1)
    (trial,) = sample_trials(oracle, [], 1, 6, np.random.default_rng(0))
    assert len(np.unique(trial.X, axis=0)) == 1
    assert len(set(trial.y)) == 6
    assert trial.free == ()


def test_free_columns_may_come_in_any_order_and_twice() -> None:
    (trial,), _ = trials_of(total, (3, 1, 3), 1, 5)
    assert trial.free == (1, 3)
    expected, _ = trials_of(total, (1, 3), 1, 5)
    np.testing.assert_array_equal(trial.X, expected[0].X)


def test_given_settings_are_kept() -> None:
    values = np.arange(12.0).reshape(3, 4) / 2
    trials, _ = trials_of(total, [1], 3, 7, settings=values)
    for setting, trial in zip(values, trials, strict=True):
        np.testing.assert_array_equal(trial.X[:, [0, 2, 3]], np.tile(setting[[0, 2, 3]], (7, 1)))
        assert len(set(trial.X[:, 1])) == 7
    np.testing.assert_array_equal(values, np.arange(12.0).reshape(3, 4) / 2)


def test_given_settings_may_be_lists() -> None:
    (trial,), _ = trials_of(total, [0], 1, 3, settings=[[1, 2, 3, 4]])
    np.testing.assert_array_equal(trial.X[:, 1:], [[2, 3, 4]] * 3)


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (4,), (3, 4, 1)])
def test_settings_in_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(OracleError, match=r"settings have shape .*, expected \(3, 4\)"):
        trials_of(total, [0], 3, 5, settings=np.ones(shape))


@pytest.mark.parametrize("free", [(4,), (-1,), (0, 9)])
def test_free_columns_that_do_not_exist_are_refused(free: tuple[int, ...]) -> None:
    with pytest.raises(OracleError, match=r"are not all within 0\.\.3"):
        trials_of(total, free, 1, 5)


def test_no_trials_and_no_points_cost_no_queries() -> None:
    none, oracle = trials_of(total, [0], 0, 5)
    assert none == []
    empty, oracle = trials_of(total, [0], 2, 0)
    assert [trial.X.shape for trial in empty] == [(0, 4)] * 2
    assert oracle.queries == 0


def test_the_seed_fixes_the_trials() -> None:
    first, second, other = (trials_of(total, [0, 2], 3, 5, seed)[0] for seed in (1, 1, 2))
    for one, two, three in zip(first, second, other, strict=True):
        np.testing.assert_array_equal(one.X, two.X)
        np.testing.assert_array_equal(one.y, two.y)
        assert (one.X != three.X).all()


def test_noise_does_not_move_the_points() -> None:
    quiet = sample_trials(CallableOracle(total, BOX), [0], 2, 5, np.random.default_rng(0))
    noisy = sample_trials(CallableOracle(total, BOX, noise=1.0), [0], 2, 5, np.random.default_rng(0))
    for one, two in zip(quiet, noisy, strict=True):
        np.testing.assert_array_equal(one.X, two.X)
        assert (one.y != two.y).all()


# --- points that are not finite -----------------------------------------------------------


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_dropped_counted_and_drawn_again(hole: float) -> None:
    trials, oracle = trials_of(lambda X: np.where(X[:, 0] < 5, hole, total(X)), [0], 4, 50)
    for trial in trials:
        assert trial.X.shape == (50, 4)
        assert np.isfinite(trial.y).all()
        assert (trial.X[:, 0] >= 5).all()
        assert trial.dropped > 0
        assert len(np.unique(trial.X[:, 1:], axis=0)) == 1, "the setting stays"
        np.testing.assert_array_equal(trial.y, total(trial.X))
    assert oracle.queries == sum(50 + trial.dropped for trial in trials)


def test_a_setting_at_which_nothing_is_finite_is_drawn_anew() -> None:
    trials, oracle = trials_of(lambda X: np.where(X[:, 3] < 7, np.nan, total(X)), [0], 20, 10)
    assert all((trial.X[:, 3] >= 7).all() for trial in trials)
    assert all(len(np.unique(trial.X[:, 1:], axis=0)) == 1 for trial in trials)
    assert len({trial.X[0, 3] for trial in trials}) == 20
    assert sum(trial.dropped for trial in trials) > 0
    assert oracle.queries == sum(10 + trial.dropped for trial in trials)


def test_a_setting_at_which_almost_nothing_is_finite_does_not_end_the_experiment() -> None:
    trials, oracle = trials_of(lambda X: np.sqrt(X[:, 0] - X[:, 1]), [0], 100, 20)
    for trial in trials:
        assert np.isfinite(trial.y).all()
        assert (trial.X[:, 0] >= trial.X[:, 1]).all()
        assert len(np.unique(trial.X[:, 1:], axis=0)) == 1, "one setting in a trial"
    assert oracle.queries == sum(20 + trial.dropped for trial in trials)


def test_a_given_setting_is_never_replaced() -> None:
    values = np.array([[1.0, 1.0, 1.0, 2.0]])
    with pytest.raises(OracleError, match=r"controlled: x2=1, x3=1, x4=2\)"):
        trials_of(lambda X: np.where(X[:, 3] < 7, np.nan, total(X)), [0], 1, 10, settings=values)


@pytest.mark.parametrize("hole", [np.nan, np.inf])
@pytest.mark.parametrize("free", [(0,), (0, 1, 2, 3), ()])
def test_an_oracle_that_is_never_finite_is_a_clear_error(hole: float, free: tuple[int, ...]) -> None:
    oracle = CallableOracle(lambda X: np.full(len(X), hole), BOX)
    with pytest.raises(OracleError) as caught:
        sample_trials(oracle, free, 2, 10, np.random.default_rng(0))
    message = str(caught.value)
    assert "gave 0 finite values for 300 points" in message
    assert f"{oracle.queries} points" in message
    assert f"y={hole}" in message
    for name in ("x1", "x2", "x3", "x4"):
        assert f"{name}=" in message, "the point tried is named"
    assert "\n" not in message


def test_an_oracle_that_is_never_finite_is_not_asked_for_ever() -> None:
    oracle = CallableOracle(lambda X: np.full(len(X), np.nan), BOX)
    with pytest.raises(OracleError):
        sample_trials(oracle, [0], 1, 10, np.random.default_rng(0))
    assert oracle.queries <= 100 * MAX_REDRAWS * 10


def test_a_point_of_many_variables_is_named_briefly() -> None:
    oracle = CallableOracle(lambda X: np.full(len(X), np.nan), [(0, 1)] * 1000)
    with pytest.raises(OracleError, match="finite values") as caught:
        sample_trials(oracle, [0], 1, 2, np.random.default_rng(0))
    assert len(str(caught.value)) < 1000


def test_every_usable_problem_gives_trials_without_a_redraw() -> None:
    for name in (
        "feynman/I.6.20",
        "feynman-unit/II.6.15a",
        "livermore2/Vars7/Vars7-1",
        "trigonometric/inv/4-4-6/prog_0",
    ):
        oracle = EquationOracle(load_equation(name))
        trials = sample_trials(oracle, [0], 5, 30, np.random.default_rng(0))
        assert [trial.dropped for trial in trials] == [0] * 5
        assert oracle.queries == 150


def test_a_single_point_is_drawn_at_another_setting_where_nothing_is_finite() -> None:
    oracle = CallableOracle(lambda X: np.where(X[:, 1] > 0.5, X[:, 0], np.nan), [(0.0, 1.0)] * 2)
    trials = sample_trials(oracle, [0], 20, 1, np.random.default_rng(0))
    assert all(trial.X[0, 1] > 0.5 for trial in trials)
