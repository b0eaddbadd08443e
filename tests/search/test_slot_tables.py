"""Tables of slots: values of the new variable, what moves, what a regressor is given, combinations of forms."""

from dataclasses import replace

import numpy as np
import pytest

from deap_vsr import Variable
from deap_vsr.lab.evidence import Exact, Noisy
from deap_vsr.search.tables import SlotTables, Sweep, _choices, spread_values

# --- values of the new variable -----------------------------------------------------------


VARIABLES = [
    Variable("x1", 0.5, 3.0),
    Variable("x1", 0.0, 1.0),
    Variable("x1", -2.0, 5.0, "uniform", "as_range"),
    Variable("x1", 0.1, 10.0, "uniform", "both"),
    Variable("x1", 1e-6, 1e6, "loguniform"),
    Variable("x1", 1e-3, 1e3, "loguniform", "both"),
    Variable("x1", 1.0, 9.0, "integer"),
    Variable("x1", 0.5, 100.2, "integer"),
    Variable("x1", -3.0, 4.0, "integer", "as_range"),
]
SWEEPS = [
    Sweep(12),
    Sweep(28, even=True),
    Sweep(24, window=0.2),
    Sweep(24, window=0.04),
    Sweep(20, even=True, window=0.5),
]


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda v: f"{v.sampling} {v.sign} {v.low:g} {v.high:g}")
@pytest.mark.parametrize("sweep", SWEEPS, ids=repr)
def test_values_are_within_the_domain_in_order_and_as_many_as_planned(variable, sweep):
    for seed in range(20):
        values = spread_values(variable, sweep, np.random.default_rng(seed))
        assert (np.diff(values) > 0).all()
        low, high = variable.bounds
        assert ((values >= low) & (values <= high)).all()
        if variable.sign == "both":
            assert (np.abs(values) >= variable.low).all()
        if variable.sampling == "integer":
            np.testing.assert_array_equal(values, np.round(values))
            assert 1 <= len(values) <= sweep.n_values
        else:
            assert len(values) == sweep.n_values


def test_values_are_spread_as_the_variable_is_sampled_or_evenly():
    decades = Variable("x1", 1e-6, 1e6, "loguniform")
    values = spread_values(decades, Sweep(12), np.random.default_rng(0))
    np.testing.assert_array_equal(np.floor(np.log10(values)), np.arange(-6.0, 6.0))
    even = spread_values(decades, Sweep(12, even=True), np.random.default_rng(0))
    np.testing.assert_allclose(even / 1e6, np.arange(12) / 12, atol=1 / 12)
    assert (even > 1e3).all()


def test_a_window_is_a_share_of_the_domain_and_not_always_the_same():
    places = []
    for seed in range(30):
        values = spread_values(Variable("x1", 10.0, 20.0), Sweep(24, window=0.04), np.random.default_rng(seed))
        assert 0.3 < np.ptp(values) < 0.4
        places.append(values[0])
    assert min(places) < 12.0
    assert max(places) > 17.0


def test_both_signs_are_among_the_values():
    for sampling in ("uniform", "loguniform"):
        values = spread_values(Variable("x1", 0.1, 10.0, sampling, "both"), Sweep(12), np.random.default_rng(0))
        assert (values < 0).sum() == 6


def test_every_whole_number_of_a_small_domain_is_taken():
    for seed in range(20):
        values = spread_values(Variable("x1", 1.0, 9.0, "integer"), Sweep(28), np.random.default_rng(seed))
        assert values.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


# --- tables -------------------------------------------------------------------------------


def table(*columns, errors=0.0):
    """Return tables at three settings of x3, and 6 values of x2; a column is a function of (x2, x3)."""
    grid = np.linspace(1.0, 2.0, 6)
    settings = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 5.0]])
    slots = np.array([[[column(x, s[2]) for column in columns] for x in grid] for s in settings], dtype=float)
    return SlotTables(1, grid, slots, np.broadcast_to(float(errors), slots.shape), settings, Exact())


def test_slots_that_depend_on_the_new_variable_move_and_others_do_not():
    measured = table(
        lambda x, s: x * s,
        lambda x, s: s,
        lambda x, s: 7.0 * (1 + 1e-13 * x),
        lambda x, s: 7.0 * (1 + 1e-6 * x),
        lambda x, s: 0.0,
        lambda x, s: x if s == 5.0 else 2.0,
        lambda x, s: 1e-200 * x,
        lambda x, s: -1e200 * x,
    )
    assert measured.moving() == [0, 3, 5, 6, 7]


def test_what_is_within_the_standard_errors_does_not_move():
    moves = [table(lambda x, s: 7.0 + 1e-4 * x, errors=error).moving() for error in (1e-7, 1e-3)]
    assert moves == [[0], []]


def test_the_table_of_a_slot_is_trials_in_which_only_the_new_variable_varies():
    measured = table(lambda x, s: s, lambda x, s: x * s)
    trials = measured.trials(1)
    assert len(trials) == 3
    for trial, setting in zip(trials, measured.held_at, strict=True):
        assert trial.free == (1,)
        np.testing.assert_array_equal(trial.X[:, 1], measured.grid)
        np.testing.assert_array_equal(trial.X[:, [0, 2]], np.tile(setting[[0, 2]], (6, 1)))
        np.testing.assert_allclose(trial.y, measured.grid * setting[2])
        assert (trial.weights > 0).all()


def test_values_that_are_missing_are_left_out_and_uncertain_ones_count_less():
    measured = table(lambda x, s: x * s)
    measured.slots[0, 2, 0] = np.nan
    errors = measured.errors.copy()
    errors[1, 3, 0] = 0.1
    first, second, third = replace(measured, errors=errors).trials(0)
    assert [len(trial.y) for trial in (first, second, third)] == [5, 6, 6]
    assert np.isfinite(first.y).all()
    assert second.weights[3] < 1e-6 * second.weights[2]
    assert np.ptp(third.weights) == 0


# --- tables in noise -------------------------------------------------------------------------


def noisy_table(function, sigma, n_settings=3, n_values=12, seed=0):
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.5, 3.0, n_values)
    slots = np.array([[[function(x)] for x in grid] for _ in range(n_settings)])
    slots += sigma * rng.standard_normal(slots.shape)
    return SlotTables(1, grid, slots, np.full(slots.shape, sigma), np.ones((n_settings, 2)), Noisy(sigma))


def test_in_noise_a_slot_moves_if_its_standard_errors_do_not_explain_it():
    moved = [noisy_table(lambda x: 2.0, 0.1, seed=seed).moving() == [0] for seed in range(200)]
    assert np.mean(moved) < 0.02
    assert all(noisy_table(lambda x: 2.0 + 0.3 * x, 0.1, seed=seed).moving() == [0] for seed in range(50))


def test_the_weights_of_a_noisy_table_are_inverse_variances():
    (first, *_) = noisy_table(lambda x: x, 0.1).trials(0)
    np.testing.assert_allclose(first.weights, 100.0)


def test_combinations_in_noise_take_other_forms_in_several_slots_at_once():
    assert list(_choices([3, 2], False)) == [(0, 0), (1, 0), (0, 1), (2, 0)]
    assert list(_choices([3, 2], True)) == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1)]
    assert list(_choices([], True)) == list(_choices([], False)) == [()]
