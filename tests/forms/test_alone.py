import numpy as np
import pytest
from one_variable import USUAL, fit_error, make_table, make_trials, skeleton

from deap_vsr.forms.alone import functions_alone
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.stage import Stage
from deap_vsr.forms.table import Target
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Exact
from deap_vsr.search.contract import Task

EXACT = 1e-20


def forms_of(table):
    return [form for forms, _ in functions_alone(Target.plain(table)) for form in forms]


def solved(trials, function_set=USUAL):
    """What the regressor makes of these forms, fitted at every setting."""
    task = Task(
        [], lambda rng: trials, function_set, (0,), 1, Budget(), 1e-18, np.random.default_rng(0), "quick", Exact()
    )
    return FormsRegressor(stages=(Stage("alone", functions_alone),)).regress(task)


def heat(x, a, theta):
    u = theta * x
    return a * u**2 * np.exp(u) / (np.exp(u) - 1.0) ** 2


@pytest.mark.parametrize("n_points", [9, 14])
def test_a_function_and_its_inverse_that_share_a_constant_are_found_behind_a_factor(n_points):
    found = solved(make_trials(heat, [(7.0, 1.3), (2.0, 1.9)], low=0.4, high=4.0, n_points=n_points))
    assert "exp(C*x1)" in found[0].tree.to_infix(skeleton=True)
    assert found[0].constants.shape == (2, 5)


@pytest.mark.parametrize(
    ("law", "function_set", "expected"),
    [
        (lambda x, a, b: a * np.tanh(b * x) / x, ("mul", "div", "add", "tanh", "const"), "1/x1*(C*tanh(C*x1)"),
        (lambda x, a, b: a - 2.0 * np.exp(b * x), USUAL, "C*exp(C*x1) + C"),
        (lambda x, a, b: a + 3.0 * np.sin(40.0 * b * x + 1.0), ("add", "mul", "sin", "const"), "C*sin(C*x1 + C) + C"),
        (lambda x, a, b: 3.0 * np.sin(b * x + a), ("add", "mul", "cos", "const"), "C*cos(C*x1 + C) + C"),
        (lambda x, a, b: np.sqrt(a + np.cosh(b * x)), USUAL, "sqrt(C*exp(C*x1) + C/exp(C*x1) + C)"),
    ],
)
def test_one_inner_constant_and_nothing_beside_is_found_from_few_values(law, function_set, expected):
    table = make_table(law, [(1.7, 1.3)], function_set, n_points=9)
    good = [skeleton(form) for form in forms_of(table) if fit_error(form, table) < EXACT]
    assert any(expected in text for text in good)


def test_a_table_that_no_such_function_fits_gives_nothing_that_fits():
    table = make_table(lambda x, a: np.sqrt(a + x**3) + np.log(x), [(1.2,)], n_points=12)
    assert all(fit_error(form, table) > EXACT for form in forms_of(table))


def test_targets_of_any_size_overflow_nothing(recwarn):
    table = make_table(lambda x, a: a * np.exp(200.0 * x), [(1.0,)], n_points=9)
    forms_of(table)
    assert not recwarn.list
