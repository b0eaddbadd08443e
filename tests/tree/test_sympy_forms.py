import math
import random
import subprocess
import sys

import numpy as np
import pytest
import reference
import sympy
from strategies import MODERATE_NUMBERS, random_tree

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree, notation

X1, X2 = sympy.symbols("x1 x2", real=True)


def printed(expression):
    return MaskedTree.from_sympy(expression).to_infix()


def test_tree_to_sympy_and_back_keeps_every_real_finite_value():
    rng = random.Random(17)
    compared = complex_parts = 0
    for k in range(1500):
        tree = random_tree(rng, size=30, numbers=MODERATE_NUMBERS)
        X = np.random.default_rng(k).uniform(-2.0, 2.0, (4, 3))
        points = [(x, *reference.condition(tree, x)) for x in X]
        good = [(x, value, c) for x, value, c, largest in points if c < 1e6 and largest < 1e15]
        if not good:
            continue
        expression = tree.to_sympy()
        if expression.has(sympy.re, sympy.im, sympy.arg):
            complex_parts += 1  # has a test of its own
            continue
        again = MaskedTree.from_sympy(expression)
        for x, value, condition in good:
            compared += 1
            after = reference.condition(again, x)
            # Sympy may have brought the formula to a form with larger cancellations.
            scale = condition if not after[1] < math.inf else max(condition, after[1])
            assert again.evaluate(x[None, :])[0] == pytest.approx(value, rel=1e-12 * scale, abs=1e-280), (
                tree.to_infix(),
                again.to_infix(),
                x,
            )
    assert compared > 3000
    assert complex_parts < 15


def test_real_parts_that_sympy_brings_in_are_read_as_what_they_stand_for():
    # sympy does not know that acos(x1) is real, and makes |exp(acos(x1))| exp(re(acos(x1))).
    tree = MaskedTree.from_infix("abs(exp(arccos(x1)))")
    X = np.array([[0.3], [-0.9]])
    np.testing.assert_allclose(MaskedTree.from_sympy(tree.to_sympy()).evaluate(X), tree.evaluate(X), rtol=1e-13)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (X1, "x1"),
        (sympy.Integer(3), "3"),
        (sympy.Rational(1, 4), "0.25"),
        (sympy.pi, "3.141592653589793"),
        (sympy.E, "2.718281828459045"),
        (X1 + X2, "x1 + x2"),
        (X1 - X2, "x1 - x2"),
        (X1 * X2, "x1*x2"),
        (X1 / X2, "x1/x2"),
        (1 / X1, "inv(x1)"),
        (X1**2, "x1**2"),
        (X1**-2, "inv(x1**2)"),
        (X1**7, "x1**7"),
        (sympy.exp(X1), "exp(x1)"),
        (sympy.asin(X1), "arcsin(x1)"),
        (sympy.acos(X1), "arccos(x1)"),
        (sympy.atan(X1), "arctan(x1)"),
        (sympy.tanh(X1), "tanh(x1)"),
        (sympy.Abs(X1), "abs(x1)"),
        (2**X1, "2**x1"),
        (sympy.Symbol("x3"), "x3"),
    ],
)
def test_sympy_expression_becomes_a_tree(expression, text):
    assert printed(expression) == text


@pytest.mark.parametrize("expression", [sympy.sqrt(X1), X1**0.5, X1 ** sympy.Rational(1, 2)])
def test_square_root_becomes_sqrt(expression):
    assert printed(expression) == "sqrt(x1)"


def test_reciprocal_square_root_uses_sqrt_and_no_power():
    names = {node.name for node in MaskedTree.from_sympy(X2 / sympy.sqrt(1 - X1**2)) if node.arity}
    assert "sqrt" in names
    assert "pow" not in names


def test_sign_of_a_sympy_term_becomes_a_subtraction():
    names = [node.name for node in MaskedTree.from_sympy(X1**2 - 3 * X2) if node.arity]
    assert "sub" in names
    X = np.array([[2.0, 0.5]])
    assert MaskedTree.from_sympy(X1**2 - 3 * X2).evaluate(X)[0] == 2.5


@pytest.mark.parametrize(
    "expression",
    [
        sympy.zoo,
        sympy.oo,
        -sympy.oo,
        sympy.nan,
        sympy.I,
        X1 + sympy.I,
        X1**sympy.I,
        sympy.exp(1000),
        sympy.Integer(10) ** 400,
        sympy.log(-2),
        sympy.Symbol("y"),
        sympy.Symbol("speed") * X1,
        sympy.sign(X1),
        sympy.sec(X1),
        sympy.besselj(1, X1),
        sympy.Piecewise((1, X1 > 0), (2, True)),
        X1 < 3,
        sympy.true,
        sympy.Function("f")(X1),
        sympy.Integral(X1, (X1, 0, X2)),
    ],
)
def test_sympy_expression_outside_the_catalogue_is_refused(expression):
    with pytest.raises(ExpressionError):
        MaskedTree.from_sympy(expression)


def test_tree_becomes_a_sympy_expression_in_real_symbols():
    expression = MaskedTree.from_infix("2*x1**2 + sin(x2)/0.5").to_sympy()
    assert expression == 2 * X1**2 + sympy.sin(X2) / 0.5
    assert expression.free_symbols == {X1, X2}


def test_whole_constants_are_exact_integers_in_sympy():
    assert MaskedTree.from_infix("x1*3").to_sympy() == 3 * X1
    assert MaskedTree.from_infix("0.5*x1").to_sympy().args[0].is_Float


def deep(depth):
    return MaskedTree.from_tokens([("sin", "unary")] * depth + [("x1", "var")])


def test_tree_at_the_depth_limit_converts_and_one_deeper_is_refused():
    tree = deep(notation.MAX_SYMPY_DEPTH)
    assert MaskedTree.from_sympy(tree.to_sympy()) == tree
    with pytest.raises(ExpressionError, match="too deep"):
        deep(notation.MAX_SYMPY_DEPTH + 1).to_sympy()


def test_sympy_expression_too_deep_is_refused():
    expression = X1
    for _ in range(3000):
        expression = sympy.sin(expression, evaluate=False)
    with pytest.raises(ExpressionError, match="too deeply"):
        MaskedTree.from_sympy(expression)


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (6, 6))
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree
try:
    MaskedTree.from_infix({text!r}).to_sympy()
except ExpressionError:
    pass
"""


@pytest.mark.parametrize("text", ["x1 + 10**10**10", "x1*9999999**9999999"])
def test_power_of_whole_numbers_is_not_spelled_out_digit_by_digit(text):
    # As floats these are inf; as exact integers they have 10^8 digits and more.
    run = subprocess.run([sys.executable, "-c", LIMITED.format(text=text)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-300:]
