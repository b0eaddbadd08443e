"""Few points in noise: all formulas share tables at one setting, and little is called found."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, Relative, discover
from deap_vsr.lab.evidence import Noisy
from deap_vsr.search.slot_options import FEW, SlotOptions


def asked(law, n_vars, seed=0):
    rng = np.random.default_rng(seed)

    def read(X):
        return law(X.T) * (1.0 + 0.01 * rng.standard_normal(len(X)))

    return CallableOracle(
        read, [(0.5, 4.0)] * n_vars, ("add", "sub", "mul", "div", "n2", "const"), noise_sd=Relative(0.01)
    )


def test_one_setting_is_taken_where_points_are_few_and_several_where_they_are_not():
    assert SlotOptions.in_noise(200, 4).shared
    assert SlotOptions.in_noise(200, 4).n_settings == 1
    assert not SlotOptions.in_noise(FEW * 5, 4).shared
    assert not SlotOptions.in_noise().shared


def test_a_product_of_four_variables_is_found_with_200_noisy_points():
    result = discover(
        asked(lambda x: 0.39 * x[0] * x[1] ** 2 / (x[2] * x[3]), 4), max_queries=200, max_evaluations=2_000_000
    )
    assert result.oracle_queries <= 200
    X = np.random.default_rng(5).uniform(0.5, 4.0, (50, 4))
    x = X.T
    assert result.tree.evaluate(X) == pytest.approx(0.39 * x[0] * x[1] ** 2 / (x[2] * x[3]), rel=0.02)
    assert result.status == "found"


def test_a_formula_with_several_fitted_numbers_is_not_called_found_from_few_points():
    result = discover(asked(lambda x: 3.4 * x[0] * x[1] / (0.8 + x[1]), 2), max_queries=200, max_evaluations=2_000_000)
    assert result.status == "fits"
    assert "from so few points" in result.reason


def test_a_formula_that_leaves_a_variable_out_is_not_called_found_from_few_points():
    result = discover(
        asked(lambda x: x[0] / np.sqrt(1.0 - x[1] ** 2 / 10000.0), 2), max_queries=200, max_evaluations=2_000_000
    )
    assert result.expression == "x1"
    assert result.status == "fits"
    assert result.reason == "so few points in noise do not tell whether x2 may matter a little"


def test_every_constant_may_be_a_slot_where_there_is_one_setting():
    class Outcome:
        constants = np.array([[1.0, 2.0]])
        standard_errors = np.array([[0.1, 0.1]])
        determined = np.ones((1, 2), bool)

    assert not Noisy(0.1).moves(Outcome()).any()
    assert Noisy(0.1, one_setting=True).moves(Outcome()).all()
