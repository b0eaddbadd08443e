"""Backward elimination in noise, and fits that are the same."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.engine import Dataset, fit
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Noisy
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.prune import pruned, unlike

USUAL = ("add", "sub", "mul", "div", "exp", "log", "sqrt", "sin", "cos", "n2", "const")
NOISE = 0.05
EVIDENCE = Noisy(NOISE)


def noisy_data(text, n_points=400, n_trials=1, seed=0):
    rng = np.random.default_rng(seed)
    trials = []
    for _ in range(n_trials):
        X = rng.uniform(0.5, 3.0, (n_points, 2))
        trials.append(Trial(X, MaskedTree.from_infix(text).evaluate(X) + NOISE * rng.standard_normal(n_points)))
    return Dataset.of(trials)


def lab(**limits):
    return Lab(CallableOracle(lambda X: X[:, 0], [(0.5, 3.0)] * 2, USUAL), Budget(**limits))


@pytest.mark.parametrize(
    ("truth", "text", "expected"),
    [
        ("2*x1", "C*x1 + C*x2", "C*x1"),
        ("2*x1", "C*x1 + C*sin(C*x2)", "C*x1"),
        ("2*x1", "C*x1*exp(C*x2)", "C*x1"),
        ("x1", "C*x1 + C", "x1"),
        ("2*x1", "C*x1*x2/x2", "C*x1"),
        ("2*x1", "C*log(exp(x1))", "C*x1"),
        ("2*x1 + 3*x2", "C*x1 + C*x2", "C*x1 + C*x2"),
        ("2*x1 + 0.3*sin(x2)", "C*x1 + C*sin(x2)", "C*x1 + C*sin(x2)"),
    ],
)
@pytest.mark.parametrize("n_trials", [1, 3])
def test_what_is_not_worth_its_nodes_goes_and_what_is_stays(truth, text, expected, n_trials):
    data = noisy_data(truth, n_trials=n_trials)
    outcome = fit(MaskedTree.from_infix(text), data)
    shorter = pruned(outcome, data, lab(), EVIDENCE)
    assert shorter.tree.to_infix(skeleton=True) == expected
    assert EVIDENCE.price(shorter, data, tied=False) <= EVIDENCE.price(outcome, data, tied=False)


def test_pruning_ends_with_the_budget():
    data = noisy_data("2*x1")
    outcome = fit(MaskedTree.from_infix("C*x1 + C*x2"), data)
    spent = lab(evaluations=0)
    assert pruned(outcome, data, spent, EVIDENCE).tree is outcome.tree


def test_a_square_below_a_logarithm_stays_where_there_are_negative_numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (400, 1))
    data = Dataset.of([Trial(X, np.log(X[:, 0] ** 2) + NOISE * rng.standard_normal(400))])
    outcome = fit(MaskedTree.from_infix("C*log(x1**2)"), data)
    shorter = pruned(outcome, data, lab(), EVIDENCE)
    assert shorter.tree.to_infix(skeleton=True) == "log(x1**2)"


def test_fits_that_leave_the_same_are_the_same():
    data = noisy_data("2*x1", n_trials=2)
    forms = ["C*x1", "exp(log(C*x1))", "C*x1 + C", "1/(C/x1)"]
    outcomes = [fit(MaskedTree.from_infix(text), data, starts=np.ones((1, text.count("C")))) for text in forms]
    assert [outcome.tree.to_infix(skeleton=True) for outcome in unlike(outcomes, 9)] == ["C*x1", "C*x1 + C"]
    assert len(unlike(outcomes, 1)) == 1


def test_of_many_measurements_a_part_tells_most_of_what_is_shorter_and_all_decide_the_rest(monkeypatch):
    data = noisy_data("2*x1*exp(-0.7*x2) + 0.008*x2", n_points=20_000)
    here, fitted = lab(), []
    plain = Lab.fit

    def counted(self, tree, data, **how):
        fitted.append(len(data.y))
        return plain(self, tree, data, **how)

    monkeypatch.setattr(Lab, "fit", counted)
    outcome = pruned(fit(MaskedTree.from_infix("C*x1*exp(C*x2) + C*x2"), data), data, here, EVIDENCE)
    assert outcome.tree.to_infix(skeleton=True) == "C*x1*exp(C*x2) + C*x2", "2,000 points would not tell"
    assert 0 < fitted.count(20_000) <= 4
    assert fitted.count(2000) > 8
