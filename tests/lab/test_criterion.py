"""What a formula costs in noise."""

import numpy as np
import pytest

from deap_vsr import MaskedTree
from deap_vsr.engine import Dataset, fit
from deap_vsr.lab.criterion import criterion, inner_numbers
from deap_vsr.lab.evidence import Noisy
from deap_vsr.lab.trials import Trial

NOISE = 0.05


def noisy_data(text, n_points=400, n_trials=1, seed=0):
    rng = np.random.default_rng(seed)
    trials = []
    for _ in range(n_trials):
        X = rng.uniform(0.5, 3.0, (n_points, 1))
        trials.append(Trial(X, MaskedTree.from_infix(text).evaluate(X) + NOISE * rng.standard_normal(n_points)))
    return Dataset.of(trials)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("C + C*x1 - C*(C/x2)", 0),
        ("C*exp(C*x1)", 1),
        ("C/(C + x1)", 1),
        ("(C*sqrt(x1))**2", 1),
        ("C*sqrt(x1*x1*x1)", 0),
        ("sin(C + exp(C*x1)) + C", 2),
        ("x1/(2*x2)", 1),
        ("x1/(1 - 1*x2)", 0),
    ],
)
def test_inner_numbers_are_those_within_functions_and_below_fraction_lines(text, count):
    assert len(inner_numbers(MaskedTree.from_infix(text))) == count


def test_of_two_forms_of_the_same_law_the_one_that_is_linear_in_its_constant_is_better():
    data = noisy_data("2*x1*sqrt(x1)")
    prices = [
        Noisy(NOISE).price(fit(MaskedTree.from_infix(text), data, starts=np.array([[1.5]])), data, tied=False)
        for text in ("C*sqrt(x1*x1*x1)", "sqrt(C*x1*x1*x1)")
    ]
    assert prices[0] < prices[1]


def test_a_constant_is_worth_its_price_only_if_it_explains_something():
    tree, longer = MaskedTree.from_infix("C*x1"), MaskedTree.from_infix("C*x1 + C")
    assert criterion(100.0, tree, 1, 500) < criterion(99.0, longer, 2, 500)
    assert criterion(100.0, tree, 1, 500) > criterion(60.0, longer, 2, 500)


def test_what_is_left_is_counted_in_units_of_the_noise():
    data = noisy_data("2*x1", n_trials=3)
    left = Noisy(NOISE).left(fit(MaskedTree.from_infix("C*x1"), data), data)
    assert left.shape == (3,)
    np.testing.assert_allclose(left / 399, 1.0, atol=0.3)
