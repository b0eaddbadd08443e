import numpy as np
import pytest
from one_variable import ALGEBRA, fit_error, make_table, operators_of

from deap_vsr.forms.rationals import rational_functions
from deap_vsr.forms.table import Target

POWERS = (*ALGEBRA, "n2", "n3", "n4")
EXACT = 1e-20


def forms_of(table):
    return [form for forms, _ in rational_functions(Target.plain(table)) for form in forms]


def with_eight_numbers(x, a):
    return ((x - 3.0) ** 3 - (x - 3.0) + a) / ((x - 2.0) ** 4 + 10.0)


@pytest.mark.parametrize("function_set", [ALGEBRA, POWERS])
def test_a_ratio_with_all_its_powers_is_found_at_all_settings(function_set):
    table = make_table(with_eight_numbers, [(7.1,), (1.0,)], function_set, low=0.05, high=6.05, n_points=14)
    (form,) = forms_of(table)
    assert form.starts.shape == (2, 8)
    assert fit_error(form, table) < EXACT
    assert operators_of(form) <= set(function_set)


def test_powers_that_are_not_there_are_left_out_and_a_polynomial_has_no_denominator():
    table = make_table(lambda x, a: a + x - x**4, [(2.0,)], POWERS, n_points=10)
    (form,) = forms_of(table)
    assert form.starts.shape == (1, 3)
    assert "div" not in operators_of(form)


@pytest.mark.parametrize("law", [np.exp, np.sin, np.sqrt, np.log, np.tanh, lambda x: x**3 / np.expm1(x), np.cosh])
@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (1.0, 5.0), (0.1, 6.0), (5.0, 5.5)])
@pytest.mark.parametrize("n_points", [10, 14, 28])
def test_what_a_ratio_only_approximates_is_never_taken_for_one(law, low, high, n_points):
    table = make_table(lambda x, a: a * law(x), [(2.0,)], POWERS, low=low, high=high, n_points=n_points)
    assert forms_of(table) == []


def test_fewer_values_than_coefficients_tell_nothing():
    table = make_table(with_eight_numbers, [(7.1,)], POWERS, low=0.05, high=6.05, n_points=9)
    assert forms_of(table) == []


def test_noise_and_sets_without_a_fraction_have_none():
    noisy = make_table(lambda x, a: a / (1.0 + x), [(1.0,)], POWERS, noise=0.01)
    assert forms_of(noisy) == []
    assert forms_of(make_table(lambda x, a: a / (1.0 + x), [(1.0,)], ("add", "mul", "const"))) == []
