"""Formulas as code: what it computes is what the tree computes, in Python, numpy and C."""

import ctypes
import math
import shutil
import subprocess

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from strategies import MODERATE_NUMBERS, trees

from deap_vsr import ExpressionError, register_operator
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.code import c_code, numpy_code, python_code
from deap_vsr.tree.names import Names

NAMES = Names(("T", "lambda", "flow rate"), ("K", "", ""), "p", "Pa")
EVERY = (
    "2.5*x1**2 - x2**3 + x1**4 - x2**5 + x1**6 - x2**8 + inv(x3) + sqrt(x1)*exp(-x2)/log(x3 + 5) + sin(x1)*cos(x2)"
    " + tan(x1/9) + arcsin(x1/9) + arccos(x2/9) + arctan(x3) + sinh(x1)*cosh(x2) - tanh(x3) + abs(x1 - 4) + x1**x2"
    " - (x1 - (x2 - x3)) - x1/(x2/x3) - -x1 + (-2)*x2 + x1**1.5"
)
X = np.random.default_rng(0).uniform(0.5, 3.0, (20, 3))


def function(code, name="p"):
    """Return the function that source defines; the source is ours."""
    scope = {}
    exec(code, scope)  # noqa: S102
    return scope[name]


def test_python_and_numpy_compute_every_operator():
    tree = MaskedTree.from_infix(EVERY)
    expected = tree.evaluate(X)
    plain, arrays = function(python_code(tree, NAMES)), function(numpy_code(tree, NAMES))
    np.testing.assert_allclose([plain(*row) for row in X.tolist()], expected, rtol=1e-12)
    np.testing.assert_allclose(arrays(*X.T), expected, rtol=1e-12)
    np.testing.assert_allclose(plain(T=1.0, lambda_=2.0, flow_rate=3.0), arrays(T=1.0, lambda_=2.0, flow_rate=3.0))


@given(trees(numbers=(*MODERATE_NUMBERS, -3.0, 1e-20), size=25))
@settings(max_examples=300)
def test_numpy_code_means_what_the_tree_means(tree):
    with np.errstate(all="ignore"):
        computed = np.broadcast_to(function(numpy_code(tree, NAMES))(*map(np.array, X.T)), len(X))
    for x, value in zip(X[:4], computed, strict=False):
        expected, condition, largest = reference.condition(tree, x)
        if condition < 1e6 and largest < 1e100:
            assert value == pytest.approx(expected, rel=1e-12 * condition, abs=1e-280)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize(
    "names", [NAMES, Names(("int", "µ", "gamma"), output="y1"), Names(("p", "q", "é"), output="Δ")]
)
def test_c_is_compiled_without_a_warning_and_computes_the_same(tmp_path, names):
    tree = MaskedTree.from_infix(EVERY)
    source, library = tmp_path / "formula.c", tmp_path / "formula.so"
    source.write_text(c_code(tree, names), encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    name = source.read_text().split("double ")[1].split("(")[0]
    compiled = getattr(ctypes.CDLL(str(library)), name)
    compiled.restype, compiled.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    np.testing.assert_allclose([compiled(*row) for row in X.tolist()], tree.evaluate(X), rtol=1e-12)


def test_whole_numbers_are_no_integers_in_c():
    assert "1.0/T" in c_code(MaskedTree.from_infix("1/x1"), NAMES)


def test_names_cannot_break_out_of_a_comment():
    names = Names(("a*/ int main", '"""b'), output="y")
    assert c_code(MaskedTree.from_infix("x1"), names).count("*/") == 1
    assert python_code(MaskedTree.from_infix("x1"), names).count('"""') == 2


def test_an_operator_of_ones_own_has_no_code():
    register_operator("softened", lambda x: math.sqrt(1 + x * x), 1)
    with pytest.raises(ExpressionError, match="softened is an operator of your own"):
        python_code(MaskedTree.from_infix("softened(x1)"), NAMES)
