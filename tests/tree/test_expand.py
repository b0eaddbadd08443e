import numpy as np
import pytest
from hypothesis import assume, given, settings
from strategies import MODERATE_NUMBERS, trees

from deap_vsr.tree import MaskedTree
from deap_vsr.tree.expand import expand

OPERATORS = ("add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "sin", "exp", "const")
WITH_COS = (*OPERATORS, "cos")
X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x1 + C)*(C - C*inv(x1))", "C + C*inv(x1) + C*x1"),
        ("x1*x2*inv(x1)", "x2"),
        ("C*(C*x1 + C*x2) + C*x1", "C*x1 + C*x2"),
        ("inv(inv(C*x1))", "C*x1"),
        ("C/(C + C*x1)", "C*inv(C + x1)"),
        ("sin(C)*x1", "C*x1"),
        ("(x1 + C)**2", "C + C*x1 + x1**2"),
        ("x1 - x1", "0"),
        ("2*x1*3 + x1", "7*x1"),
    ],
)
def test_formulas_become_sums_of_terms_with_one_constant_each(text, expected):
    found = expand(MaskedTree.from_infix(text), OPERATORS)
    skeleton = [token if kind != "const" else "C" for token, kind in found.to_tokens()]
    wanted = [token if kind != "const" else "C" for token, kind in MaskedTree.from_infix(expected).to_tokens()]
    assert skeleton == wanted
    assert found.n_constants == MaskedTree.from_infix(expected).n_constants


@given(
    trees(names=("add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "sin", "exp"), numbers=MODERATE_NUMBERS, size=25)
)
@settings(max_examples=800)
def test_values_stay_the_same(tree):
    found = expand(tree, OPERATORS)
    assume(found is not None)
    before, after = tree.evaluate(X), found.evaluate(X)
    good = np.isfinite(before) & np.isfinite(after) & (np.abs(before) > 1e-6) & (np.abs(before) < 1e6)
    # Cancellation among terms is rare; where it happens, values differ by rounding of the terms.
    assert np.median(np.abs(after - before)[good] / np.abs(before)[good]) < 1e-6 if good.any() else True


@given(trees(names=("add", "mul", "sin"), numbers=MODERATE_NUMBERS, size=25))
@settings(max_examples=300)
def test_only_allowed_operators_are_used(tree):
    found = expand(tree, ("add", "mul", "sin", "const"))
    assert found is None or {node.name for node in found if node.arity} <= {"add", "mul", "sin"}


def test_what_cannot_be_had_is_none():
    assert expand(MaskedTree.from_infix("inv(x1)*x2"), ("add", "mul", "const")) is None
    assert expand(MaskedTree.from_infix("x2/(x1 - x1)"), OPERATORS) is None
    assert expand(MaskedTree.from_infix("exp(1000)*x1"), OPERATORS) is None
    sums = "*".join(f"(C + x{i} + C*sin(x{i}) + C*exp(x{i}))" for i in (1, 2, 3, 1))
    assert expand(MaskedTree.from_infix(sums), OPERATORS) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sin(x1 + C)", "C*cos(x1) + C*sin(x1)"),
        ("cos(x1 + C)", "C*cos(x1) + C*sin(x1)"),
        ("C*sin(x1 - C)", "C*cos(x1) + C*sin(x1)"),
        ("sin(2*x1*x2 + C)", "C*cos(2*x1*x2) + C*sin(2*x1*x2)"),
        ("sin(x1 + C) + cos(x1 + C)", "C*cos(x1) + C*sin(x1)"),
        ("exp(x1 + C)", "C*exp(x1)"),
        ("exp(C*x1 + C)", "C*exp(C*x1)"),
        ("C*exp(C - x2) + exp(C)", "C + C*exp(-1*x2)"),
        # The frequency is fitted: it would have to be so twice.
        ("sin(C*x1 + C)", "sin(C + C*x1)"),
        ("cos(sin(C*x1) + C)", "cos(C + sin(C*x1))"),
        # Not fitted: a number of the formula.
        ("sin(x1 + 2)", "sin(2 + x1)"),
        ("exp(x1 + 2)", "exp(2 + x1)"),
        ("sin(-x1)", "-1*sin(x1)"),
        ("cos(-x1)", "cos(x1)"),
        ("sin(-2*x1)", "-1*sin(2*x1)"),
        ("sin(-x1 - x2)", "-1*sin(x1 + x2)"),
        ("sin(x2 - x1)", "sin(-1*x1 + x2)"),
        ("sin(C - x1)", "C*cos(x1) + C*sin(x1)"),
    ],
)
def test_fitted_offsets_and_signs_come_out_of_functions(text, expected):
    tree = MaskedTree.from_infix(text)
    tree = tree.with_constants(np.linspace(0.3, 1.9, tree.n_constants))
    found = expand(tree, WITH_COS)
    assert found.to_infix(skeleton=True) == expected
    np.testing.assert_allclose(found.evaluate(X), tree.evaluate(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("text", "missing"), [("sin(x1 + C)", "cos"), ("cos(x1 + C)", "sin")])
def test_a_fitted_offset_stays_where_the_other_function_is_not_in_the_set(text, missing):
    tree = MaskedTree.from_infix(text)
    found = expand(tree, [name for name in WITH_COS if name != missing])
    assert found.to_infix(skeleton=True) == text.replace("x1 + C", "C + x1")
    np.testing.assert_allclose(found.evaluate(X), tree.evaluate(X), rtol=1e-14)


@given(trees(names=("add", "sub", "mul", "neg", "sin", "cos", "exp"), numbers=MODERATE_NUMBERS, size=25, masked=False))
@settings(max_examples=500)
def test_values_stay_the_same_where_offsets_come_out(tree):
    found = expand(tree, WITH_COS)
    assume(found is not None)
    assert {node.name for node in found if node.arity} <= set(WITH_COS)
    before, after = tree.evaluate(X), found.evaluate(X)
    good = np.isfinite(before) & np.isfinite(after) & (np.abs(before) > 1e-6) & (np.abs(before) < 1e6)
    assume(good.any())
    # Cancellation among terms is rare; where it happens, values differ by rounding of the terms.
    assert np.median(np.abs(after - before)[good] / np.abs(before)[good]) < 1e-6
