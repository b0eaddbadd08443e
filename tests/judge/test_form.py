"""The form of an answer: the law whatever its numbers, without idle terms, factors and constants."""

import numpy as np
import pytest

from deap_vsr.judge.form import right_form, with_open_numbers, without_one
from deap_vsr.judge.metrics import nmse
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.problems.laws import laws_suite
from deap_vsr.tree import MaskedTree


def equation(formula, domains=((0.5, 3.0),) * 3):
    variables = tuple(Variable(f"x{i}", low, high) for i, (low, high) in enumerate(domains, 1))
    return Equation("made up", variables, ("add",), MaskedTree.from_infix(formula), formula)


def is_right(answer, formula, **options):
    return right_form(MaskedTree.from_infix(answer), equation(formula, **options))


# --- right --------------------------------------------------------------------------------


def test_a_law_has_its_own_form_also_with_other_numbers():
    rng = np.random.default_rng(0)
    for law in laws_suite(30, seed=2):
        assert right_form(law.tree, law), law.formula
        opened = with_open_numbers(law.tree)
        shaken = np.array(opened.constants) * (1.0 + 0.03 * rng.standard_normal(opened.n_constants))
        assert right_form(opened.with_constants(shaken), law), law.formula


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("x3 + x2*x1", "x1*x2 + x3"),
        ("2.49*x1/(x2 + 0.71)", "2.5*x1/(x2 + 0.7)"),
        ("x1/(0.4*x2 + 0.28)", "2.5*x1/(x2 + 0.7)"),
        ("3.4*x1/(1.4*x2 + 1.1)", "2.5*x1/(x2 + 0.7)"),  # one constant more than it needs
        ("x1*exp(0.9 - 0.7*x2)", "2.5*x1*exp(-0.7*x2)"),
        ("2.5*x1/exp(0.7*x2)", "2.5*x1*exp(-0.7*x2)"),
        ("x1**2 - 2*x1*x2 + x2**2", "(x1 - x2)**2"),
        ("1.2*sin(0.8*x1) + 0.9*cos(0.8*x1)", "1.5*sin(0.8*x1 + 0.6)"),
        ("2*log(0.9*x1)", "log(x1**2) - 0.2"),
        ("x1**1.98*x2", "x1**2*x2"),
        ("sqrt(x1)*sqrt(x2)", "sqrt(x1*x2)"),
        ("-1*(x2 - x1)", "x1 - x2"),
    ],
)
def test_an_equivalent_form_is_right_whatever_its_numbers(answer, formula):
    assert is_right(answer, formula)


def test_numbers_that_were_fitted_are_opened_as_well():
    answer = MaskedTree.from_infix("C*x1 + C").with_constants([2.4, 0.6])
    assert right_form(answer, equation("2.5*x1 + 0.7"))


def test_y_that_hardly_varies_is_judged_by_its_last_digits():
    assert is_right("1000000000.1 + 0.001*sin(x1)", "1000000000 + 0.001*sin(x1)")
    assert not is_right("1000000000.1 + 0.001*x1", "1000000000 + 0.001*sin(x1)")


# --- not right ----------------------------------------------------------------------------


def test_a_polynomial_that_passes_for_a_law_is_not_right():
    law = equation("2*exp(-0.7*x1) + 3*exp(-0.2*x1) + 1.5*exp(-1.3*x1)", [(0.5, 3.0)])
    x = np.linspace(0.5, 3.0, 200)
    y = law.evaluate(x[:, None])
    powers = np.polynomial.Polynomial.fit(x, y, 6).convert().coef
    text = repr(float(powers[-1]))
    for value in reversed(powers[:-1]):
        text = f"{float(value)!r} + x1*({text})"
    answer = MaskedTree.from_infix(text)
    assert nmse(y, answer.evaluate(x[:, None])) < 1e-9
    assert with_open_numbers(answer).n_constants == with_open_numbers(law.tree).n_constants + 1
    assert not right_form(answer, law)


@pytest.mark.parametrize(
    "answer",
    [
        "2.5*x1*exp(-0.7*x2) + 1e-9*x3",
        "2.5*x1*exp(-0.7*x2) + 1e-9",
        "2.5*x1*exp(-0.7*x2) - 1e-9",
        "2.5*x1*exp(-0.7*x2)*exp(1e-9*x3)",
        "2.5*x1*exp(-0.7*x2)/exp(1e-9*x3)",
        "2.5*x1*exp(-0.7*x2 + 1e-9*x3)",
        "2.5*(x1 - 1e-9)*exp(-0.7*x2)",
        "1.2*x1*exp(-0.7*x2) + 1.3*x1*exp(-0.7*x2)",
        "exp(1e-9*x3)/(0.4*exp(0.7*x2)/x1)",
    ],
)
def test_an_idle_term_or_factor_is_not_right(answer):
    assert not is_right(answer, "2.5*x1*exp(-0.7*x2)")


@pytest.mark.parametrize(
    "answer",
    ["0.5*x1*exp(0.69 - 0.7*x2)", "x1**1.0001*exp(-0.7*x2**1.0001)", "1.3*x1*exp(-0.7*x2)/(0.9*x3)*(1.1*x3)"],
)
def test_more_constants_than_the_law_and_one_are_not_right(answer):
    assert not is_right(answer, "x1*exp(-0.7*x2)")


@pytest.mark.parametrize(
    "answer", ["2.5*x1*exp(-0.7*x3)", "2.5*x1/(1 + 0.7*x2)", "2.5*x1", "7", "log(-1)", "2.5*x1*exp(-0.7*x2)*x3"]
)
def test_another_formula_is_not_right(answer):
    assert not is_right(answer, "2.5*x1*exp(-0.7*x2)")


# --- parts --------------------------------------------------------------------------------


def test_every_term_and_factor_goes_once():
    texts = [tree.to_infix() for tree in without_one(MaskedTree.from_infix("x1/x2 - 3*sin(x3)"))]
    assert texts == ["-1*(3*sin(x3))", "x1/x2", "1/x2 - 3*sin(x3)", "x1 - 3*sin(x3)", "x1/x2 - 3"]


def test_one_and_minus_one_stay_as_they_are():
    assert with_open_numbers(MaskedTree.from_infix("-1*x1/(1 + 2*x2)")).n_constants == 1
