import math
import random

import numpy as np
import pytest

from deap_vsr import metrics
from deap_vsr.errors import ExpressionError
from deap_vsr.judge import _symbolic
from deap_vsr.judge.metrics import RECOVERY_NMSE, TEST_POINTS, judge, report_points
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.tree import MaskedTree, node_from_name

BOX = [(0.5, 3.0)] * 3


def equation(formula, domains=BOX, judge="full", sampling="uniform"):
    variables = tuple(
        Variable(f"x{i}", low, high, sampling, "as_range" if low < 0 else "positive")
        for i, (low, high) in enumerate(domains, 1)
    )
    tree = MaskedTree.from_infix(formula)
    return Equation("made up", variables, ("add",), tree, formula, judge=judge)


def verdict(answer, formula, domains=BOX, time_limit=10.0, **options):
    return judge(MaskedTree.from_infix(answer), equation(formula, domains, **options), time_limit)


def horner(coefficients):
    """Return the text of c0 + c1 x1 + c2 x1^2 + ..."""
    text = repr(float(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        text = f"{float(coefficient)!r} + x1*({text})"
    return text


# --- the same formula ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        # order only
        ("x3 + x2*x1", "x1*x2 + x3"),
        ("sin(x2*2 + x1) + x3", "x3 + sin(x1 + 2*x2)"),
        # polynomials and rational functions
        ("(x1 + x2)**2", "x1**2 + 2*x1*x2 + x2**2"),
        ("(x1 + 1)*(x2 - 2)*x3", "x1*x2*x3 - 2*x1*x3 + x2*x3 - 2*x3"),
        ("x1/x2 + 1", "(x1 + x2)/x2"),
        ("1/(1/x1 + 1/x2)", "x1*x2/(x1 + x2)"),
        ("(x1**2 - x2**2)/(x1 - x2)", "x1 + x2"),
        ("x1*inv(x2)*2", "2*x1/x2"),
        ("0.5*x1*x2**2 + 9.81*x1*x3", "x1*(x2**2/2 + 9.81*x3)"),
        ("x1/(x2/x3)", "x1*x3/x2"),
        ("x1**-2", "1/x1**2"),
        # roots
        ("sqrt(x1*x2)", "sqrt(x1)*sqrt(x2)"),
        ("sqrt(x1**2*x2)", "x1*sqrt(x2)"),
        ("x1**1.5", "x1*sqrt(x1)"),
        ("sqrt(sqrt(x1))", "x1**0.25"),
        ("x1/sqrt(x2)", "x1*x2**-0.5"),
        # exp and log
        ("exp(x1 + x2)", "exp(x1)*exp(x2)"),
        ("exp(x1)/exp(x2)", "exp(x1 - x2)"),
        ("exp(x1)**2", "exp(2*x1)"),
        ("log(x1*x2)", "log(x1) + log(x2)"),
        ("log(x1/x2)", "log(x1) - log(x2)"),
        ("log(x1**3)", "3*log(x1)"),
        ("exp(2*log(x1))", "x1**2"),
        # trigonometric
        ("sin(x1)**2 + cos(x1)**2 + x2", "1 + x2"),
        ("2*sin(x1)*cos(x1)", "sin(2*x1)"),
        ("sin(x1)*cos(x2) + cos(x1)*sin(x2)", "sin(x1 + x2)"),
        ("sin(x1)/cos(x1)", "tan(x1)"),
        ("1 - 2*sin(x1)**2", "cos(2*x1)"),
        ("(exp(x1) - exp(-x1))/2", "sinh(x1)"),
        ("-sin(-x1)", "sin(x1)"),
    ],
)
def test_equal_formula_written_otherwise_is_recovered_symbolically(answer, formula):
    found = verdict(answer, formula)
    assert (found.recovered, found.recovered_by) == (True, "symbolic")
    assert found.metrics["nmse"] <= RECOVERY_NMSE


def test_absolute_value_is_the_root_of_the_square_on_both_sides_of_zero():
    assert verdict("abs(x1)*x2", "sqrt(x1**2)*x2", [(-2, 2), (1, 2)]).recovered_by == "symbolic"


LONG = " + ".join(f"{0.1 * i:g}*x{i}*sin(x{j})" for i in (1, 2, 3) for j in (1, 2, 3))


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("x1*(x2 - 0.5*sin(x3)) + 2", "2 + x1*x2 - 0.5*x1*sin(x3)"),
        ("(x1 + x2)*(x1 - x2)/x3", "x1**2*inv(x3) - x2**2/x3"),
        ("(0.1*x1 + 0.2*x2 + 0.3*x3)*(sin(x1) + sin(x2) + sin(x3))", LONG),
    ],
)
def test_what_is_the_same_sum_of_terms_is_decided_without_sympy(answer, formula, monkeypatch):
    monkeypatch.setattr(_symbolic, "same", lambda *args: pytest.fail("sympy was asked"))
    assert verdict(answer, formula).recovered_by == "symbolic"


@pytest.mark.parametrize("factor", ["0.50000051", "0.49999949"])
def test_terms_whose_constants_differ_by_more_than_a_millionth_are_not_the_same(factor, monkeypatch):
    monkeypatch.setattr(_symbolic, "same", lambda *args: False)
    assert not verdict(f"x1*(x2 - {factor}*sin(x3)) + 2", "2 + x1*x2 - 0.5*x1*sin(x3)").recovered
    monkeypatch.setattr(_symbolic, "same", lambda *args: pytest.fail("sympy was asked"))
    assert verdict("x1*(x2 - 0.50000049*sin(x3)) + 2", "2 + x1*x2 - 0.5*x1*sin(x3)").recovered


@pytest.mark.parametrize(
    ("answer", "formula", "domains"),
    [
        ("sin(x1 + 1.5707963267948966)", "cos(x1)", [(0.5, 3.0)]),
        ("2*arctan(x1)", "arcsin(2*x1/(1 + x1**2))", [(0.1, 0.4)]),
    ],
)
def test_equal_formula_that_sympy_cannot_decide_is_recovered_numerically(answer, formula, domains):
    found = verdict(answer, formula, domains)
    assert (found.recovered, found.recovered_by, found.same_form) == (True, "numeric", False)


def test_same_form_ignores_constants_and_order_and_nothing_else():
    assert verdict("x2*7 + sin(x1)", "sin(x1) + 2*x2").same_form
    assert not verdict("7*x2 + sin(x1)", "sin(x1) + x2").same_form
    assert not verdict("x1 + x1", "2*x1").same_form


def test_equation_too_deep_for_sympy_is_compared_numerically():
    signs = MaskedTree.from_tokens([("abs", "unary")] * 300 + [("x1", "var")])
    found = judge(signs, equation("x1"))
    assert (found.recovered, found.recovered_by) == (True, "numeric")


def test_formula_too_large_for_sympy_is_compared_numerically():
    answer = MaskedTree([node_from_name("abs"), *_balanced("add", 1101)])
    assert len(answer) > _symbolic.MAX_SYMPY_NODES
    found = judge(answer, equation("1101*x1"))
    assert (found.recovered, found.recovered_by) == (True, "numeric")


def _balanced(name, leaves):
    """Return a shallow tree of that many leaves x1."""

    def part(n):
        return [("x1", "var")] if n == 1 else [(name, "binary"), *part(n // 2), *part(n - n // 2)]

    return MaskedTree.from_tokens(part(leaves))


# --- constants ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("2.0000001*x1", "2*x1"),
        ("2.0000001*sin(x1) + x2", "2*sin(x1) + x2"),
        ("sin(3.00000001*x1)", "sin(3*x1)"),
        ("x1*x2*4.00000001 + x2", "x2*(1 + 4*x1)"),
        ("(1.00000001*x1 + 2)/(x2 + 3.00000001)", "(x1 + 2)/(x2 + 3)"),
        ("x1 + 1.00000001e-7*x2", "x1 + 1e-7*x2"),
        ("x1 + 1.00000001e-7*sin(x2)", "x1 + 1e-7*sin(x2)"),
        ("exp(1.00000001*x1)*exp(x2)", "exp(1.00000002*x1 + x2)"),
        ("sin(3.0000000001*x1) + sin(2.0000000001*x1)", "sin(2*x1) + sin(3*x1)"),
    ],
)
def test_constants_within_a_millionth_are_the_same(answer, formula):
    found = verdict(answer, formula)
    assert (found.recovered, found.recovered_by) == (True, "symbolic")


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("0.9999999999999*sin(x1)", "sin(x1)"),
        ("1e-17 + sin(x1)", "sin(x1)"),
        ("x1 + 1e-18*x2", "x1"),
        ("1.0000000000000002*x1 - 1e-17", "x1"),
        ("sin(1.0000000000001*x1)", "sin(x1)"),
        ("sin(x1)**2.0000000000001", "sin(x1)**2"),
    ],
)
def test_fitted_constant_that_is_almost_one_or_zero_does_not_spoil_the_formula(answer, formula):
    assert verdict(answer, formula).recovered


def test_many_look_alike_terms_are_recovered_in_any_order():
    factors = [0.5, 0.9, 1.3, 1.7, 2.1, 2.6, 3.0]
    truth = " + ".join(f"sin({c}*x1)" for c in factors)
    random.Random(3).shuffle(factors)
    answer = " + ".join(f"sin({c * (1 + 1e-10)!r}*x1)" for c in factors)
    assert verdict(answer, truth).recovered


@pytest.mark.parametrize(
    ("answer", "formula"),
    [("2.00001*x1", "2*x1"), ("sin(3.0001*x1)", "sin(3*x1)"), ("x1 + 1.001", "x1 + 1"), ("2*x1", "2*x2")],
)
def test_constants_or_variables_that_do_not_fit_are_refused(answer, formula):
    found = verdict(answer, formula)
    assert (found.recovered, found.recovered_by) == (False, None)
    assert found.metrics["nmse"] > RECOVERY_NMSE


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("x1 + 1.001e-7*x2", "x1 + 1e-7*x2"),
        ("x1 + 1.001e-7*sin(x2)", "x1 + 1e-7*sin(x2)"),
        ("sin(x1) + 1.001e-7*x2", "sin(x1) + 1e-7*x2"),
        ("x1", "x1 + 1e-9*x2"),
        ("x1 + 1e-9*x2", "x1"),
        ("x1", "x1 + 1e-7*sin(x2)"),
        ("exp(x1)", "exp(x1) + 1e-8*x2"),
    ],
)
def test_term_too_small_for_the_error_is_still_part_of_the_formula(answer, formula):
    found = verdict(answer, formula)
    assert found.metrics["nmse"] <= RECOVERY_NMSE
    assert (found.recovered, found.recovered_by) == (False, None)


# --- surrogates ---------------------------------------------------------------------------

TAYLOR_EXP = [1 / math.factorial(k) for k in range(14)]
SERIES_ROOT = [1, 0, 1 / 2, 0, 3 / 8, 0, 5 / 16, 0, 35 / 128, 0, 63 / 256, 0, 231 / 1024]


def fitted(function, low, high, degree):
    """Return the coefficients of the polynomial that interpolates at Chebyshev's points."""
    series = np.polynomial.Chebyshev.interpolate(function, degree, [low, high])
    return series.convert(kind=np.polynomial.Polynomial).coef


def pade_exp(order):
    factors = [1.0]
    for k in range(order):
        factors.append(factors[-1] * (order - k) / ((2 * order - k) * (k + 1)))
    return f"({horner(factors)})/({horner([c * (-1) ** k for k, c in enumerate(factors)])})"


SURROGATES = {
    "Taylor exp": (horner(TAYLOR_EXP[:10]), "exp(x1)", (-1, 1)),
    "Taylor exp, better": (horner(TAYLOR_EXP), "exp(x1)", (-1, 1)),
    "Taylor exp, narrow": (horner(TAYLOR_EXP[:9]), "exp(x1)", (0.1, 0.2)),
    "Pade exp": (pade_exp(5), "exp(x1)", (-2, 2)),
    "Pade exp, narrow": (pade_exp(4), "exp(x1)", (0.1, 0.6)),
    "polynomial for 1/sqrt(1 - x^2)": (
        horner(fitted(lambda x: 1 / np.sqrt(1 - x * x), 0.1, 0.5, 14)),
        "1/sqrt(1 - x1**2)",
        (0.1, 0.5),
    ),
    "series for 1/sqrt(1 - x^2), narrow": (horner(SERIES_ROOT), "1/sqrt(1 - x1**2)", (0.01, 0.1)),
    "series for 1/(1 - x^2), narrow": ("1 + x1**2 + x1**4 + x1**6 + x1**8", "1/(1 - x1**2)", (0.01, 0.05)),
    "polynomial for sin": (horner(fitted(np.sin, 0.2, 1.2, 11)), "sin(x1)", (0.2, 1.2)),
    "polynomial for log": (horner(fitted(np.log, 1.0, 2.0, 16)), "log(x1)", (1.0, 2.0)),
}


@pytest.mark.parametrize("name", SURROGATES)
def test_surrogate_that_fits_is_another_formula(name):
    answer, formula, domain = SURROGATES[name]
    found = verdict(answer, formula, [domain], time_limit=3.0)
    assert found.metrics["nmse"] <= RECOVERY_NMSE  # or it would be no surrogate
    assert (found.recovered, found.recovered_by, found.same_form) == (False, None, False)


# --- other verdicts -----------------------------------------------------------------------


def test_equation_judged_by_fit_is_recovered_by_the_numbers_alone(monkeypatch):
    def never(*arguments):
        raise AssertionError("sympy was asked")

    monkeypatch.setattr(_symbolic, "same", never)
    assert verdict("x1 + 1e-9*x2", "x1", judge="fit").recovered_by == "numeric"
    found = verdict("x1 + x2", "x1", judge="fit")
    assert (found.recovered, found.recovered_by) == (False, None)


def test_sympy_is_not_asked_about_answers_that_do_not_fit(monkeypatch):
    def never(*arguments):
        raise AssertionError("sympy was asked")

    monkeypatch.setattr(_symbolic, "same", never)
    assert not verdict("x1 + x2", "x1*x2").recovered


def test_answer_that_is_not_finite_where_the_truth_is_is_refused():
    found = verdict("x1*x2/x2", "x1", [(-3, 3), (-1, 1)])
    assert found.recovered  # x2 is never exactly 0 among the points
    found = verdict("x1 + 0*log(x2)", "x1", [(-3, 3), (-1, 1)])
    assert not found.recovered
    assert found.metrics["nmse"] == math.inf


def test_answer_with_a_variable_that_the_equation_has_not_is_refused():
    with pytest.raises(ExpressionError, match="x4"):
        verdict("x1 + x4", "x1")


@pytest.mark.parametrize(("decision", "expected"), [(True, "symbolic"), (False, None), (None, "numeric")])
def test_verdict_follows_sympys_decision(monkeypatch, decision, expected):
    asked = []

    def same(answer, truth, variables, tolerance, time_limit):
        asked.append((answer.to_infix(), truth.to_infix(), tolerance, time_limit))
        return decision

    monkeypatch.setattr(_symbolic, "same", same)
    found = judge(MaskedTree.from_infix("log(x1*x1)"), equation("2*log(x1)"), time_limit=3.5)
    assert (found.recovered, found.recovered_by) == (expected is not None, expected)
    assert asked == [("log(x1*x1)", "2*log(x1)", 1e-6, 3.5)]


def test_undecided_answer_is_refused_where_it_fails_on_stretched_ranges(monkeypatch):
    monkeypatch.setattr(_symbolic, "same", lambda *arguments: None)
    # Equal for x1 <= 3 only; the stretched range ends at 5.25.
    found = verdict("x1", "3 - abs(x1 - 3)", [(0.5, 3.0)])
    assert found.metrics["nmse"] <= RECOVERY_NMSE
    assert (found.recovered, found.recovered_by) == (False, None)


# --- the points of the report -------------------------------------------------------------


def test_report_uses_ten_thousand_points_of_its_own():
    problem = equation("x1*x2")
    state = random.getstate()
    X, y = report_points(problem)
    assert X.shape == (10_000, 3)
    assert TEST_POINTS == 10_000
    again = report_points(problem)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, X[:, 0] * X[:, 1])
    assert random.getstate() == state
    assert X.min() >= 0.5
    assert X.max() <= 3.0


def test_points_where_the_truth_is_not_finite_are_left_out():
    X, y = report_points(equation("log(x1)", [(-1, 1)]))
    assert np.isfinite(y).all()
    assert 4_000 < len(y) < 6_000
    assert (X[:, 0] > 0).all()


@pytest.mark.parametrize(
    ("variable", "low", "high"),
    [
        (Variable("x1", 1, 3), 0.5, 4.5),
        (Variable("x1", 0, 2), 0.0, 4.0),
        (Variable("x1", -1, 3, sign="as_range"), -3.0, 5.0),
        (Variable("x1", 1, 3, sign="both"), 0.5, 4.5),
        (Variable("x1", 1, 100, "loguniform"), 0.1, 1000.0),
        (Variable("x1", 1, 5, "integer"), 0.5, 8.5),
    ],
)
def test_stretched_range_is_twice_as_wide_and_keeps_the_sign(variable, low, high):
    stretched = metrics._stretched(variable, 2.0)
    assert (stretched.low, stretched.high) == pytest.approx((low, high))
    assert (stretched.name, stretched.sampling, stretched.sign) == (variable.name, variable.sampling, variable.sign)
    if variable.sampling == "loguniform":
        assert math.log(high / low) == pytest.approx(2 * math.log(variable.high / variable.low))
    else:
        assert high - low == 2 * (variable.high - variable.low)


def test_a_wide_range_in_logarithms_is_stretched_as_far_as_numbers_go():
    # (1e60)**(511 / 2) is no number.
    stretched = metrics._stretched(Variable("x1", 1e-30, 1e30, "loguniform"), 512.0)
    assert 0.0 < stretched.low < 1e-50
    assert 1e50 < stretched.high < math.inf


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ("0.5 + -0.3*sin(x1) + 2*x1*x2", True),
        ("0.5 - 0.3*sin(x1) + 2*x1*x2", True),
        ("2*x1*x2 - (0.3*sin(x1) - 0.5)", False),
        ("2*x1*x2 - 0.3*sin(x1) - -0.5", True),
        ("2*x1*x2 + 0.5 + -(0.3*sin(x1))", True),
        ("0.5 - 0.3*sin(x2) + 2*x1*x2", False),
        ("0.5 - 0.3*x1 + 2*x1*x2", False),
    ],
)
def test_a_difference_is_of_the_same_form_as_a_sum_with_a_negative_number(answer, same):
    law = equation("0.5 + -0.3*sin(x1) + 2*x1*x2")
    verdict = judge(MaskedTree.from_infix(answer), law)
    assert verdict.same_form == same


@pytest.mark.parametrize("width", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n_terms", [3, 5, 8])
def test_a_series_that_was_cut_off_is_not_recovered_where_sympy_cannot_decide(n_terms, width, monkeypatch):
    # Fails at 95877ac: on ranges stretched twofold it agrees to six digits.
    monkeypatch.setattr(metrics._symbolic, "same", lambda *given: None)
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in range(n_terms)]
    series = " + ".join(f"{term!r}*{'*'.join(['x1'] * (2 * k + 1))}" for k, term in enumerate(terms))
    assert not verdict(series, "sin(x1)", [(0.0, width)]).recovered


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("sin(x1)*cos(x2)", "0.5*sin(x1 + x2) + 0.5*sin(x1 - x2)"),
        ("sqrt(x1*x1 + x2*x2)", "x1*sqrt(1 + x2*x2/x1/x1)"),
        ("3.1*exp(-0.7*x1) + 2*x2", "2.0000001*x2 + 3.1000001/exp(0.70000001*x1)"),
    ],
)
def test_the_same_formula_in_other_words_is_recovered_where_sympy_cannot_decide(answer, formula, monkeypatch):
    monkeypatch.setattr(metrics._symbolic, "same", lambda *given: None)
    assert verdict(answer, formula, [(0.1, 5.0), (0.1, 5.0)]).recovered_by == "numeric"


def test_ranges_of_logarithms_are_stretched_without_overflow():
    law = equation("x1/sqrt(1 + x2*x2)", [(0.1, 10.0)] * 2, sampling="loguniform")
    assert metrics._agree_when_stretched(MaskedTree.from_infix("sqrt(x1*x1/(1 + x2*x2))"), law)
    assert not metrics._agree_when_stretched(MaskedTree.from_infix("x1/x2"), law)


@pytest.mark.parametrize(
    ("answer", "formula", "same"),
    [
        ("x2/(1 + sin(x1 + 4.71238898038469))", "0.5*x2/sin(0.5*x1)**2", True),
        ("x2*cos(x1 - 210.48670779051614)", "0 - x2*cos(x1)", True),
        ("x2*cos(x1 - 210.4867077905)", "0 - x2*cos(x1)", True),  # a constant that is good to twelve digits
        ("x2*sin(x1)", "x2*sin(x1) + 1e-9*x2*x1*x1*x1", False),
        ("x2*(1 + 0.5*x1*x1)", "x2/sqrt(1 - x1*x1)", False),
    ],
)
def test_where_sines_have_lost_their_digits_far_outside_nothing_is_compared(answer, formula, same):
    # Fails at b56aa63: of a sine of 1e20 there are no digits that could be the same.
    low, high = (0.1, 10.0) if same else (1e-4, 1e-3)
    law = equation(formula, [(low, high), (0.1, 10.0)], sampling="loguniform")
    assert metrics._agree_when_stretched(MaskedTree.from_infix(answer), law) == same
