"""What answers tell: what fits, what moves, exactly and in noise."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, Trial, sample_trials
from deap_vsr.engine import Dataset, fit
from deap_vsr.lab.evidence import Exact, FreezeRule, Noisy, rounding_errors

DOMAINS = [(0.5, 3.0)] * 3


def experiment(function, text, free, n_trials=5, n_points=40, noise=0.0, seed=0):
    oracle = CallableOracle(function, DOMAINS, noise=noise, seed=seed)
    data = Dataset.of(sample_trials(oracle, free, n_trials, n_points, np.random.default_rng(seed)))
    return fit(MaskedTree.from_infix(text), data), data


def law(X):
    return 2.5 * X[:, 0] + X[:, 1] * np.sin(X[:, 0]) + 1e-4 * X[:, 2]


def test_a_small_summary_constant_is_not_taken_for_a_stand_alone_one():
    # 1e-4 * x3 has a variance of 1e-9: below any raw threshold that is of use.
    outcome, _ = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    assert Exact().moves(outcome).tolist() == [False, True, True]
    assert Exact(FreezeRule(raw=True, spread=1e-3)).moves(outcome).tolist() == [False, True, False]


def test_nothing_looks_like_a_summary_constant_unless_each_trial_has_its_own_setting():
    oracle = CallableOracle(law, DOMAINS)
    rng = np.random.default_rng(0)
    settings = np.tile(rng.uniform(0.5, 3, (1, 3)), (5, 1))
    tree = MaskedTree.from_infix("C*x1 + C*sin(x1) + C")
    same = fit(tree, Dataset.of(sample_trials(oracle, [0], 5, 40, rng, settings=settings)))
    assert not Exact().moves(same).any()
    own = fit(tree, Dataset.of(sample_trials(oracle, [0], 5, 40, rng)))
    assert Exact().moves(own).sum() == 2


def test_the_variance_is_over_trials_not_over_the_constants_of_one():
    outcome, _ = experiment(lambda X: 100 * X[:, 0] + 0.01, "C*x1 + C", [0])
    assert np.var(outcome.constants[0]) > 1
    assert not Exact().moves(outcome).any()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_rule_does_not_depend_on_the_scale_of_y(scale):
    outcome, data = experiment(lambda X: scale * law(X), "C*x1 + C*sin(x1) + C", [0])
    assert Exact().moves(outcome).tolist() == [False, True, True]
    assert Exact().fits(outcome, data)
    wrong, data = experiment(lambda X: scale * law(X), "C*x1 + C", [0])
    assert not Exact().fits(wrong, data)


def test_the_raw_rule_is_that_of_the_paper():
    outcome, data = experiment(lambda X: 1e-4 * X[:, 0] * X[:, 1], "C", [0])
    assert Exact(FreezeRule(error=1e-6, raw=True)).fits(outcome, data)  # an MSE of 1e-8 "fits", whatever the law
    assert not Exact(FreezeRule(error=1e-6)).fits(outcome, data)


@pytest.mark.parametrize("seed", range(5))
def test_with_noise_both_rules_are_statistical_tests(seed):
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0], noise=0.01, n_points=200, seed=seed)
    assert not Exact().fits(outcome, data)
    assert Noisy(0.01).fits(outcome, data)
    # The third one moves by 1e-4, which noise of 0.01 hides.
    assert Noisy(0.01).moves(outcome).tolist() == [False, True, False]
    wrong, data = experiment(law, "C*x1 + C", [0], noise=0.01, n_points=200, seed=seed)
    assert not Noisy(0.01).fits(wrong, data)


def test_an_outcome_that_is_not_finite_does_not_fit():
    outcome, data = experiment(law, "log(-x1)*C", [0])
    assert not Exact().fits(outcome, data)
    assert not Noisy(1.0).fits(outcome, data)


def test_an_exact_candidate_fits_beside_a_large_offset_in_which_digits_are_lost():
    rng = np.random.default_rng(0)
    exact = Exact(FreezeRule(error=1e-18))
    x = rng.uniform(0.5, 3.0, (40, 1))
    for offset in (1.0, 1e9):
        data = Dataset.of([Trial(x, offset + 0.37 * x[:, 0])])
        assert exact.fits(fit(MaskedTree.from_infix("C + C*x1"), data), data)
        assert not exact.fits(fit(MaskedTree.from_infix("C + C*x1*x1"), data), data)


def test_errors_of_rounding_are_those_of_each_trial():
    x = np.linspace(0.0, 1.0, 5)[:, None]
    data = Dataset.of([Trial(x, 1.0 + x[:, 0]), Trial(x, 1e8 + x[:, 0])])
    small, large = rounding_errors(data)
    assert small < 1e-28
    assert large == pytest.approx(small * 1e16 * 5 / np.sum((1.0 + x) ** 2), rel=0.01)


def test_evidence_may_be_judged_by_another_rule():
    rule = FreezeRule(error=1e-6, significance=0.01)
    assert Exact().at(rule) == Exact(rule)
    assert Noisy(0.1).at(rule) == Noisy(0.1, rule)
    assert (Exact(rule).noise, Noisy(0.1, rule).noise) == (0.0, 0.1)


def test_what_fits_in_each_trial_is_told_of_each():
    x = np.linspace(0.5, 3.0, 30)[:, None]
    bent = Trial(x, x[:, 0] ** 2)
    straight = Trial(x, 3.0 * x[:, 0])
    data = Dataset.of([straight, bent, straight])
    outcome = fit(MaskedTree.from_infix("C*x1"), data)
    assert Exact().fitting(outcome, data).tolist() == [True, False, True]
    assert Noisy(0.01).fitting(outcome, data).tolist() == [True, False, True]
    assert not Exact().fits(outcome, data)
    assert not Noisy(0.01).fits(outcome, data)


def test_what_is_left_over_the_noise_is_one_where_a_formula_holds():
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0], noise=0.01, n_points=200)
    assert Noisy(0.01).excess(outcome, data) == pytest.approx(1.0, abs=0.2)
    assert Noisy(0.005).excess(outcome, data) == pytest.approx(4.0, abs=0.8)
    assert Exact().excess(outcome, data) == np.inf
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    assert Exact().excess(outcome, data) == 1.0


def test_as_many_trials_share_the_level_of_one_test():
    falsely = 0
    for seed in range(40):
        outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0], 50, 10, noise=0.01, seed=seed)
        falsely += not Noisy(0.01, FreezeRule(significance=0.05), unsure=1.0).fits(outcome, data)
    assert 0 < falsely < 8, "one in twenty, not one for nearly every fifty trials"


def test_exact_values_have_a_plain_mean_and_noisy_ones_that_of_least_variance():
    values, errors = np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 8.0]]), np.array([[1.0, 1.0], [1.0, 1.0], [1e9, 1.0]])
    np.testing.assert_allclose(Exact().mean(values, errors), [3.0, 6.0])
    np.testing.assert_allclose(Noisy(0.1).mean(values, errors), [1.5, 6.0])
    np.testing.assert_allclose(Noisy(0.1).mean(values, 0.0 * errors), [3.0, 6.0])


def test_standard_errors_in_noise_are_those_of_the_noise_that_is_known():
    covered = []
    for seed in range(30):
        outcome, data = experiment(lambda X: 2.0 * X[:, 0], "C*x1", [0], 5, 4, noise=0.1, seed=seed)
        errors = Noisy(0.1).standard_errors(outcome, data)
        size = np.sqrt([np.sum(data.trial(k).columns[0] ** 2) for k in range(5)])
        np.testing.assert_allclose(errors[:, 0], 0.1 / size, rtol=1e-6)
        covered.append(np.abs(outcome.constants - 2.0) <= 2.0 * errors)
    assert 0.9 < np.mean(covered) < 1.0
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    assert Exact().standard_errors(outcome, data) is outcome.standard_errors


def test_exact_fits_are_ordered_by_error_as_far_as_it_matters_and_noisy_ones_by_price():
    short, data = experiment(lambda X: 2.0 * X[:, 0], "C*x1", [0])
    long = fit(MaskedTree.from_infix("C*x1 + C*sin(x1)"), data)
    wrong = fit(MaskedTree.from_infix("C"), data)
    for evidence in (Exact(), Noisy(0.1)):
        assert evidence.order(short, data) < evidence.order(long, data) < evidence.order(wrong, data)


def test_the_price_is_of_what_is_left_the_constants_and_the_length():
    outcome, data = experiment(lambda X: 2.0 * X[:, 0] + X[:, 1], "C*x1 + C", [0], noise=0.1)
    evidence = Noisy(0.1)
    left = float(evidence.left(outcome, data).sum())
    assert left == pytest.approx(200 - 10, rel=0.3)
    assert evidence.moves(outcome).tolist() == [False, True]
    constants = {True: 1 + 5, False: 2 * 5}
    for tied, n_constants in constants.items():
        expected = left + n_constants * np.log(200) + 5 * 2.0 * np.log(8.0)
        assert evidence.price(outcome, data, tied=tied) == pytest.approx(expected)
    assert evidence.price(outcome, data, node=0.0) == pytest.approx(left + 6 * np.log(200))
    nothing, data = experiment(law, "log(-x1)*C", [0])
    assert evidence.price(nothing, data) == np.inf


# --- ratios -------------------------------------------------------------------------------


def test_the_ratio_of_exact_slots_is_told_where_it_is_the_same():
    below = np.array([1.0, 2.0, 5.0])
    nothing = np.zeros(3)
    assert Exact().ratio(3.0 * below, nothing, below, nothing) == pytest.approx(3.0)
    assert Exact().ratio(below**2, nothing, below, nothing) is None
    assert Exact().ratio(nothing, nothing, below, nothing) is None
    assert Exact().ratio(below, nothing, nothing, nothing) is None


def test_the_ratio_of_noisy_slots_is_told_where_they_are_known_well():
    below = np.array([1.0, 2.0, 5.0])
    assert Noisy(1.0).ratio(3.0 * below, 0.01 * below, below, 0.001 * below) == pytest.approx(3.0)
    assert Noisy(1.0).ratio(3.0 * below, 0.1 * below, below, 0.001 * below) is None
    assert Noisy(1.0).ratio(below**2, 0.01 * below, below, 0.001 * below) is None
    assert Noisy(1.0).ratio(3.0 * below[:1], 0.01 * below[:1], below[:1], 0.001 * below[:1]) is None


# --- tables -------------------------------------------------------------------------------


def test_slots_that_move_along_their_tables_are_told():
    grid = np.linspace(1.0, 2.0, 12)
    slots = np.array([[np.full(12, k), k * grid, np.full(12, 5.0)] for k in (1.0, 2.0, 3.0)]).transpose(0, 2, 1)
    errors = np.zeros(slots.shape)
    assert Exact().table_moves(slots, errors).tolist() == [False, True, False]
    assert Exact().table_moves(slots, errors + 0.2).tolist() == [False, False, False], "within their errors"
    noise = 0.01 * np.random.default_rng(0).standard_normal(slots.shape)
    assert Noisy(1.0).table_moves(slots + noise, errors + 0.01).tolist() == [False, True, False]
    assert Exact().table_moves(slots + noise, errors).tolist() == [True, True, True]


def test_the_tolerance_of_a_table_is_rounding_or_the_errors():
    values = np.array([1.0, 2.0, 3.0])
    tolerance = Exact().table_tolerance(values, np.zeros(3))
    assert (tolerance > 0).all()
    assert (tolerance < 1e-10).all()
    np.testing.assert_allclose(Exact().table_tolerance(values, np.full(3, 1e-3)), 1e-2, rtol=1e-6)
    np.testing.assert_array_equal(Noisy(0.1).table_tolerance(values, np.array([0.1, 0.2, 0.0]))[:2], [0.1, 0.2])
    for evidence in (Exact(), Noisy(0.1)):
        weights = 1.0 / evidence.table_tolerance(np.zeros(3), np.zeros(3)) ** 2
        assert np.isfinite(weights).all()
        assert (weights > 0).all()


def test_the_limits_of_a_table_are_its_points_or_what_chance_allows():
    np.testing.assert_array_equal(Exact().table_limits(12, 3), [12.0, 12.0, 12.0])
    limits = Noisy(0.1).table_limits(12, 3)
    assert (np.diff(limits) < 0).all(), "fewer degrees of freedom leave less"
    left = np.random.default_rng(0).chisquare(11, 100_000)
    assert np.mean(left > limits[0]) == pytest.approx(1e-3, rel=0.5)
    assert Exact().of_tables() == Exact()
    assert Noisy(0.1).of_tables() == Noisy(1.0)


# --- weights ------------------------------------------------------------------------------


def _relative(y):
    return Exact().weighted(Trial(np.zeros((len(y), 1)), y)).weights


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_values_of_one_sign_that_span_decades_count_relative_to_their_size(sign):
    y = sign * np.array([1.0, 10.0, 1e4])
    np.testing.assert_allclose(_relative(y) * y**2, [1e8, 1e8, 1e8])


@pytest.mark.parametrize("y", [[1.0, 10.0], [1.0, 999.0], [-1.0, 1e5], [0.0, 1e5], [1e-5, 0.0, 1e5], [], [2.0], [0.0]])
def test_values_of_both_signs_with_zero_or_of_one_size_count_alike(y):
    assert _relative(np.array(y)) is None


def test_the_smallest_of_many_decades_do_not_get_weights_without_end():
    weights = _relative(np.array([1e-200, 1e-30, 1.0, 1e3]))
    assert np.isfinite(weights).all()
    assert weights.max() == pytest.approx(1e24)


def test_noisy_values_count_alike_unless_their_noise_depends_on_them():
    y = np.array([1.0, 10.0, 1e4, np.nan])
    assert Noisy(0.1).weights(y) is None
    growing = Noisy(0.1, model=lambda y: 0.01 * np.abs(y))
    np.testing.assert_allclose(growing.sigma(y), [0.01, 0.1, 100.0, 0.1])
    np.testing.assert_allclose(growing.weights(y), [100.0, 1.0, 1e-6, 1.0])
    np.testing.assert_allclose(growing.tolerance(y), 4.5 * growing.sigma(y))
    assert growing.sigma(np.zeros(1)) == pytest.approx(1e-4)  # nothing decides alone


def test_a_mean_of_what_the_data_do_not_determine_is_none_without_a_warning():
    mean = Noisy(0.1).mean(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, np.inf], [1.0, np.inf]]))
    assert mean[0] == 2.0
    assert np.isnan(mean[1])


# --- what decides, number by number -------------------------------------------------------


def test_a_zero_among_exact_answers_is_no_sign_of_theirs():
    zero, negative = np.array([0.0, 1.0, 2.0]), np.array([-3.0, -1.0, -2.0])
    np.testing.assert_allclose(Exact().tolerance(zero), 1e-7 * zero + 1e-9)
    np.testing.assert_allclose(Exact().tolerance(-zero), 1e-7 * zero + 1e-9)
    np.testing.assert_allclose(Exact().tolerance(negative), -1e-7 * negative + 2e-13, rtol=1e-12)
    assert Exact().tolerance(np.zeros(0)).shape == (0,)


def test_noisy_ratios_that_scatter_to_both_sides_are_not_the_same():
    below, off = np.array([1.0, 2.0, 5.0, 4.0]), 1.0 + 0.1 * np.array([1.0, -1.0, 1.0, -1.0])
    assert Noisy(1.0).ratio(3.0 * off * below, 0.01 * below, below, 0.001 * below) is None


def test_what_is_followed_in_noise_is_not_much_dearer_than_the_best():
    assert Noisy(1.0).near((50.0, 9.0), (10.0, 1.0))
    assert not Noisy(1.0).near((50.5, 1.0), (10.0, 1.0))
    assert Exact().near((1e9, 9.0), (10.0, 1.0))


def test_answers_are_the_same_but_for_rounding_or_noise():
    y = np.array([1.0, -2.0, 300.0])
    assert Exact().same(y, y * (1.0 + 5e-14))
    assert not Exact().same(y, y * (1.0 + np.array([0.0, 2e-13, 0.0])))
    assert Exact(jitter=1e-6).same(y, y * (1.0 - 7e-6))
    assert not Exact(jitter=1e-6).same(y, y * (1.0 - 9e-6))
    assert Noisy(0.1).same(y, y + 0.1)
    assert not Noisy(0.1).same(y, y + np.array([0.0, 0.0, 0.6]))
    assert not Noisy(0.1).same(y, y - np.array([0.6, -0.6, 0.0]))
    assert Noisy(0.1).same(np.array([np.nan, 1.0]), np.array([1.0, 1.1]))
    assert Noisy(0.1).same(np.array([np.nan]), np.array([1.0]))


def test_what_is_left_in_noise_is_counted_in_units_of_it():
    outcome, data = experiment(law, "C*x1 + C", [0], noise=0.01)
    evidence, y, n = Noisy(0.02), np.split(data.y, data.offsets[1:-1]), np.diff(data.offsets)
    squares = np.array([np.sum((part - part.mean()) ** 2) for part in y])
    left = outcome.errors * squares / 0.02**2
    np.testing.assert_allclose(evidence.left(outcome, data), left, rtol=1e-9)
    np.testing.assert_array_equal(evidence.freedom(outcome, data), n - 2)
    assert evidence.excess(outcome, data) == pytest.approx(left.sum() / (n - 2).sum())
    assert evidence.target(data) == pytest.approx(np.mean(0.02**2 * n / squares))
    np.testing.assert_allclose(
        evidence.standard_errors(outcome, data), outcome.standard_errors / np.sqrt(left / (n - 2))[:, None]
    )
    assert Exact().excess(outcome, data) == np.inf


def test_the_published_rule_asks_for_the_plain_mean_of_squares():
    outcome, data = experiment(law, "C*x1 + C", [0])
    y, n = np.split(data.y, data.offsets[1:-1]), np.diff(data.offsets)
    squares = np.array([np.sum((part - part.mean()) ** 2) for part in y])
    raw = Exact(FreezeRule(error=1e-3, raw=True))
    np.testing.assert_allclose(raw.left(outcome, data), outcome.errors * squares / n / 1e-3, rtol=1e-9)


def test_exact_formulas_in_order_are_alike_below_what_matters_and_then_short():
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    assert Exact().fits(outcome, data)
    assert Exact().order(outcome, data) == (1e-12, float(len(outcome.tree)))
    assert Exact().price(outcome, data) < np.inf
    failed, data = experiment(law, "C*x1 + C", [0])
    assert Exact().order(failed, data) == (failed.error, float(len(failed.tree)))
    assert Exact().price(failed, data) == np.inf
