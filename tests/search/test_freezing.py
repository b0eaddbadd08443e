"""The freeze rule, and the faults that silently turn vertical search into plain search."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, Trial, sample_trials
from deap_vsr.engine import Dataset, fit
from deap_vsr.lab.evidence import Exact, Noisy
from deap_vsr.lab.lab import Lab
from deap_vsr.search import identify
from deap_vsr.search.freezing import freeze
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
    frozen = freeze(outcome, data, Exact())
    assert frozen.slots == frozen.open_constants
    assert len(frozen.slots) == 2
    assert sum(frozen.mask) == 2
    alone = [node for node in frozen if isinstance(node, Constant) and not node.fitted]
    assert [node.value for node in alone] == pytest.approx([2.5])
    assert not alone[0].mutable
    moving = [value for value in outcome.constants[-1] if abs(value - 2.5) > 1e-6]
    assert [frozen[i].value for i in frozen.slots] == moving, "a slot starts where it was in the last trial"


def test_a_candidate_that_does_not_fit_keeps_its_mask():
    outcome, data = experiment(law, "C*x1 + C", [0])
    assert not Exact().fits(outcome, data)
    masked = outcome.tree.with_mask([0, 1, 1, 0, 1])
    assert freeze(fit(masked, data), data, Exact()).mask == [0, 1, 1, 0, 1]


def test_a_tree_without_mutable_nodes_passes_unchanged():
    _, data = experiment(law, "x1", [0])
    tree = MaskedTree.from_infix("x1 + 2").with_mask([0, 0, 0])
    assert freeze(fit(tree, data), data, Exact()) is not None
    assert freeze(fit(tree, data), data, Exact()) == tree


def test_constants_that_the_data_cannot_determine_stay_open():
    outcome, data = experiment(lambda X: 3 * X[:, 0], "C*C*x1", [0])
    assert len(freeze(outcome, data, Exact()).slots) == 2


def test_in_noise_what_stands_alone_is_frozen_at_the_mean_of_least_variance():
    rng = np.random.default_rng(0)
    wide, narrow = rng.uniform(0.5, 3.0, (400, 3)), rng.uniform(0.5, 0.51, (6, 3))
    noise = 0.1 * rng.standard_normal(406)
    data = Dataset.of(
        [Trial(x, 2.5 * x[:, 0] + e) for x, e in zip((wide, narrow), np.split(noise, [400]), strict=True)]
    )
    outcome = fit(MaskedTree.from_infix("C*x1"), data)
    frozen = freeze(outcome, data, Noisy(0.1))
    assert not frozen.slots
    (number,) = [node.value for node in frozen if isinstance(node, Constant)]
    first, second = outcome.constants[:, 0]
    assert abs(number - first) < 0.1 * abs(second - first)


def test_in_noise_a_candidate_that_leaves_more_keeps_its_mask():
    outcome, data = experiment(law, "C*x1 + C", [0], noise=0.01)
    assert freeze(outcome, data, Noisy(0.01)) is outcome.tree
    outcome, data = experiment(law, "C*x1 + C*sin(x1) + C", [0], noise=0.01)
    assert len(freeze(outcome, data, Noisy(0.01)).slots) == 1


def test_phases_come_out_where_a_frequency_is_a_whole_number_in_all_trials():
    rng = np.random.default_rng(0)
    trials = []
    for phase in (0.3, 1.1, 2.0):
        X = rng.uniform(0.5, 6.0, (40, 1))
        trials.append(Trial(X, 1.5 * np.cos(phase + X[:, 0])))
    data = Dataset.of(trials)
    outcome = fit(MaskedTree.from_infix("C*cos(C + C*x1)"), data, starts=[[1.4, 0.4, 1.01]])
    assert (outcome.errors < 1e-20).all()
    lab = Lab(CallableOracle(law, DOMAINS, ("add", "mul", "sin", "cos", "const")))
    found = identify.identified(outcome, data, lab)
    assert lab.budget.evaluations > 0
    assert found.tree.to_infix(skeleton=True) == "C*cos(x1) + C*sin(x1)"


def test_a_large_constant_is_no_whole_number_for_being_near_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 6.0, (40, 1))
    data = Dataset.of([Trial(X, 5e9 * X[:, 0] + 0.4 * X[:, 0])])
    outcome = fit(MaskedTree.from_infix("C*x1"), data)
    assert identify._with_whole_numbers(outcome).n_constants == 1
