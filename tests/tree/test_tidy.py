import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr import MaskedTree
from deap_vsr.tree.tidy import with_squares, without_inverses

USUAL = ("add", "sub", "mul", "div", "n2", "sqrt", "exp", "const")
NO_SUB = ("add", "mul", "div", "n2", "sqrt", "exp", "const")
NO_N2 = ("add", "sub", "mul", "div", "sqrt", "exp", "const")


def test_open_constants_are_not_touched():
    squares = MaskedTree.from_infix("x1**2 + C*x1*x2 + x2**2").with_constants([-2.0])
    assert with_squares(squares, USUAL).to_infix() == squares.to_infix()


def squares(text, function_set=USUAL):
    return with_squares(MaskedTree.from_infix(text), function_set).to_infix()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1**2 + -2*x1*x2 + x2**2", "(x1 - x2)**2"),
        ("x1**2 - 2*x2*x1 + x2**2", "(x1 - x2)**2"),
        ("x1*x1 + 2*(x1*x2) + x2*x2", "(x1 + x2)**2"),
        ("-0.5*x2**2 + x2*x1 + -0.5*x1**2", "-0.5*(x2 - x1)**2"),
        ("x1**2 + 6*x1*x2 + 9*x2**2", "(x1 + 3*x2)**2"),
        ("x3 + exp(x1)**2 + 2*exp(x1)*x2 + x2**2", "x3 + (exp(x1) + x2)**2"),
        (
            "x4**2 + -2*x4*x3 + x3**2 + x2**2 + -2*x2*x1 + x1**2",
            "(x4 - x3)**2 + (x2 - x1)**2",
        ),
    ],
)
def test_squares_are_completed(text, expected):
    assert squares(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x1**2 + -2.1*x1*x2 + x2**2",
        "x1**2 + -2*x1*x2 - x2**2",
        "x1**2 + 2*x1*x3 + x2**2",
        "2*x1**2 + 4.898979485566356*x1*x2 + 3*x2**2",  # a square of numbers that are longer than these
        "x1*x2 + x2**2",
        "x1 + x2",
    ],
)
def test_what_is_no_square_stays_as_it_is(text):
    assert squares(text) == MaskedTree.from_infix(text).to_infix()


def test_only_operators_of_the_set_are_used_for_squares():
    assert squares("x1*x1 + -2*x1*x2 + x2*x2", NO_N2) == "(x1 - x2)*(x1 - x2)"
    assert squares("x1**2 + -2*x1*x2 + x2**2", NO_SUB) == "(x1 + -1*x2)**2"
    assert squares("x1**2 - 2*x1*x2 + x2**2", ("sub", "mul", "n2")) == "x1**2 - 2*x1*x2 + x2**2"


NUMBERS = st.sampled_from([-2.5, -1.0, -0.5, 0.25, 1.0, 2.0, 3.0])
LEAVES = st.sampled_from(["x1", "x2", "x3"]) | NUMBERS.map(str)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | inner.map(lambda text: f"({text})**2")
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_values_stay_the_same_and_nothing_grows(text):
    tree = MaskedTree.from_infix(text)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 3))
    tidy = with_squares(tree, USUAL).checked()
    assert len(tidy) <= len(tree)
    before, after = tree.evaluate(X), tidy.evaluate(X)
    fine = np.isfinite(before)
    scale = np.max(np.abs(before[fine]), initial=1.0)
    np.testing.assert_allclose(after[fine], before[fine], rtol=1e-6, atol=1e-9 * scale)


# --- functions that undo each other -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log(exp(x1))", "x1"),
        ("exp(log(x1 + 2))", "x1 + 2"),
        ("sqrt(x1)**2", "x1"),
        ("log(sqrt(x1))", "0.5*log(x1)"),
        ("log(sqrt(exp(x1)))", "0.5*x1"),
        ("sqrt(exp(x1))", "exp(0.5*x1)"),
        ("log(exp(x1)**2)", "2*x1"),
        ("log((x1 + x2)**3)", "3*log(x1 + x2)"),
        ("sin(log(exp(exp(log(x1)))))", "sin(x1)"),
        ("x2/exp(C*x1)", "x2*exp(C*x1)"),
        ("inv(exp(C/x1))", "exp(C/x1)"),
        ("x2/exp(2*x1)", "x2/exp(2*x1)"),
        ("x2/exp(x1)", "x2/exp(x1)"),
        ("exp(x1)/x2", "exp(x1)/x2"),
        ("sqrt(x1**2)", "sqrt(x1**2)"),
    ],
)
def test_functions_that_undo_each_other_go(text, expected):
    tree = MaskedTree.from_infix(text)
    tree = tree.with_constants([0.7] * tree.n_constants)
    plain = without_inverses(tree, USUAL)
    shown = "-0.7" if text != expected and "C" in text else "0.7"
    assert plain.to_infix() == expected.replace("C", shown)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 2))
    np.testing.assert_allclose(plain.evaluate(X), tree.evaluate(X), rtol=1e-12)


def test_a_factor_that_comes_out_is_an_open_constant():
    assert without_inverses(MaskedTree.from_infix("log(sqrt(x1))"), USUAL).n_constants == 1


def test_without_products_no_factor_comes_out():
    tree = MaskedTree.from_infix("log(sqrt(x1)) + sqrt(exp(x1))")
    assert without_inverses(tree, ("add", "log", "sqrt", "exp")).to_infix() == tree.to_infix()
