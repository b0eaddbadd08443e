"""The freeze rule, and the faults that silently turn vertical search into plain search."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, Noise, Trial, sample_trials
from deap_vsr.engine import Dataset, fit
from deap_vsr.search import identify
from deap_vsr.search.freezing import FreezeRule, fits, freeze, measure_noise, moving, rounding_errors
from deap_vsr.tree import Constant

DOMAINS = [(0.5, 3.0)] * 3


def experiment(function, text, free, n_trials=5, n_points=40, noise=0.0, seed=0):
    oracle = CallableOracle(function, DOMAINS, noise=noise, seed=seed)
    data = Dataset.of(sample_trials(oracle, free, n_trials, n_points, np.random.default_rng(seed)))
    return fit(MaskedTree.from_infix(text), data), data


def law(X):
    return 2.5 * X[:, 0] + X[:, 1] * np.sin(X[:, 0]) + 1e-4 * X[:, 2]


def test_summary_constants_are_the_only_mutable_nodes_and_others_are_frozen_at_their_value():
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    frozen = freeze(outcome, data, FreezeRule())
    assert frozen.slots == frozen.open_constants
    assert len(frozen.slots) == 2
    assert sum(frozen.mask) == 2
    alone = [node for node in frozen if isinstance(node, Constant) and not node.fitted]
    assert [node.value for node in alone] == pytest.approx([2.5])
    assert not alone[0].mutable


def test_a_small_summary_constant_is_not_taken_for_a_stand_alone_one():
    # 1e-4 * x3 has a variance of 1e-9: below any raw threshold that is of use.
    outcome, _ = experiment(law, "C*x1 + C*sin(x1) + C", [0])
    assert moving(outcome, FreezeRule()).tolist() == [False, True, True]
    assert moving(outcome, FreezeRule(raw=True, spread=1e-3)).tolist() == [False, True, False]


def test_nothing_looks_like_a_summary_constant_unless_each_trial_has_its_own_setting():
    oracle = CallableOracle(law, DOMAINS)
    rng = np.random.default_rng(0)
    settings = np.tile(rng.uniform(0.5, 3, (1, 3)), (5, 1))
    tree = MaskedTree.from_infix("C*x1 + C*sin(x1) + C")
    same = fit(tree, Dataset.of(sample_trials(oracle, [0], 5, 40, rng, settings=settings)))
    assert not moving(same, FreezeRule()).any()
    own = fit(tree, Dataset.of(sample_trials(oracle, [0], 5, 40, rng)))
    assert moving(own, FreezeRule()).sum() == 2


def test_the_variance_is_over_trials_not_over_the_constants_of_one():
    outcome, _ = experiment(lambda X: 100 * X[:, 0] + 0.01, "C*x1 + C", [0])
    assert np.var(outcome.constants[0]) > 1
    assert not moving(outcome, FreezeRule()).any()


def test_a_candidate_that_does_not_fit_keeps_its_mask():
    outcome, data = experiment(law, "C*x1 + C", [0])
    assert not fits(outcome, data, FreezeRule())
    masked = outcome.tree.with_mask([0, 1, 1, 0, 1])
    assert freeze(fit(masked, data), data, FreezeRule()).mask == [0, 1, 1, 0, 1]


def test_a_tree_without_mutable_nodes_passes_unchanged():
    _, data = experiment(law, "x1", [0])
    tree = MaskedTree.from_infix("x1 + 2").with_mask([0, 0, 0])
    assert freeze(fit(tree, data), data, FreezeRule()) is not None
    assert freeze(fit(tree, data), data, FreezeRule()) == tree


def test_constants_that_the_data_cannot_determine_stay_open():
    outcome, data = experiment(lambda X: 3 * X[:, 0], "C*C*x1", [0])
    assert len(freeze(outcome, data, FreezeRule()).slots) == 2


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_rule_does_not_depend_on_the_scale_of_y(scale):
    outcome, data = experiment(lambda X: scale * law(X), "C*x1 + C*sin(x1) + C", [0])
    assert moving(outcome, FreezeRule()).tolist() == [False, True, True]
    assert fits(outcome, data, FreezeRule())
    wrong, data = experiment(lambda X: scale * law(X), "C*x1 + C", [0])
    assert not fits(wrong, data, FreezeRule())


def test_the_raw_rule_is_that_of_the_paper():
    outcome, data = experiment(lambda X: 1e-4 * X[:, 0] * X[:, 1], "C", [0])
    assert fits(outcome, data, FreezeRule(error=1e-6, raw=True))  # an MSE of 1e-8 "fits", whatever the law
    assert not fits(outcome, data, FreezeRule(error=1e-6))


@pytest.mark.parametrize("seed", range(5))
def test_with_noise_both_rules_are_statistical_tests(seed):
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0], noise=0.01, n_points=200, seed=seed)
    assert not fits(outcome, data, FreezeRule())
    assert fits(outcome, data, FreezeRule(), noise=0.01)
    # The third one moves by 1e-4, which noise of 0.01 hides.
    assert moving(outcome, FreezeRule(), noise=0.01).tolist() == [False, True, False]
    wrong, data = experiment(law, "C*x1 + C", [0], noise=0.01, n_points=200, seed=seed)
    assert not fits(wrong, data, FreezeRule(), noise=0.01)


def test_noise_is_measured_by_asking_again():
    rng = np.random.default_rng(0)
    assert measure_noise(CallableOracle(law, DOMAINS), rng) == 0.0
    noisy = CallableOracle(law, DOMAINS, noise=Noise(0.2, "laplace"))
    assert measure_noise(noisy, rng, n_points=100) == pytest.approx(0.2, rel=0.15)
    assert noisy.queries == 400
    assert measure_noise(CallableOracle(law, DOMAINS, noise=0.2, repeatable=False), rng) == 0.0
    assert measure_noise(CallableOracle(lambda X: X[:, 0] * np.nan, DOMAINS), rng) == 0.0


def test_an_outcome_that_is_not_finite_does_not_fit():
    outcome, data = experiment(law, "log(-x1)*C", [0])
    assert not fits(outcome, data, FreezeRule())
    assert not fits(outcome, data, FreezeRule(), noise=1.0)


def test_an_exact_candidate_fits_beside_a_large_offset_in_which_digits_are_lost():
    rng = np.random.default_rng(0)
    exact = FreezeRule(error=1e-18)
    x = rng.uniform(0.5, 3.0, (40, 1))
    for offset in (1.0, 1e9):
        data = Dataset.of([Trial(x, offset + 0.37 * x[:, 0])])
        assert fits(fit(MaskedTree.from_infix("C + C*x1"), data), data, exact)
        assert not fits(fit(MaskedTree.from_infix("C + C*x1*x1"), data), data, exact)


def test_errors_of_rounding_are_those_of_each_trial():
    x = np.linspace(0.0, 1.0, 5)[:, None]
    data = Dataset.of([Trial(x, 1.0 + x[:, 0]), Trial(x, 1e8 + x[:, 0])])
    small, large = rounding_errors(data)
    assert small < 1e-28
    assert large == pytest.approx(small * 1e16 * 5 / np.sum((1.0 + x) ** 2), rel=0.01)


def test_phases_come_out_where_a_frequency_is_a_whole_number_in_all_trials():
    rng = np.random.default_rng(0)
    trials = []
    for phase in (0.3, 1.1, 2.0):
        X = rng.uniform(0.5, 6.0, (40, 1))
        trials.append(Trial(X, 1.5 * np.cos(phase + X[:, 0])))
    data = Dataset.of(trials)
    outcome = fit(MaskedTree.from_infix("C*cos(C + C*x1)"), data, starts=[[1.4, 0.4, 1.01]])
    assert (outcome.errors < 1e-20).all()
    found, _ = identify.identified(outcome, data, ("add", "mul", "sin", "cos", "const"), FreezeRule())
    assert found.tree.to_infix(skeleton=True) == "C*cos(x1) + C*sin(x1)"


def test_a_large_constant_is_no_whole_number_for_being_near_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 6.0, (40, 1))
    data = Dataset.of([Trial(X, 5e9 * X[:, 0] + 0.4 * X[:, 0])])
    outcome = fit(MaskedTree.from_infix("C*x1"), data)
    assert identify._with_whole_numbers(outcome).n_constants == 1
