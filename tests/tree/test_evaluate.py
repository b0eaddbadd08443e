import math
import random
import warnings

import mpmath
import numpy as np
import pytest
import reference
import sympy
from deap import gp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MODERATE_NUMBERS, decode, random_tree, trees

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import Constant, MaskedTree, node_from_name, variable

POINTS = np.random.default_rng(7).uniform(-3, 3, (6, 3))
ODD_POINTS = np.array(
    [
        [0.0, -0.0, 1.0],
        [math.inf, -math.inf, math.nan],
        [1e308, -1e308, 5e-324],
        [1e-200, 1e200, -1e-200],
        [-1.0, 1.0, 0.5],
    ]
)


@given(trees())
@settings(max_examples=2000)
def test_values_are_those_of_an_independent_evaluator(tree):
    np.testing.assert_array_equal(tree.evaluate(POINTS), reference.evaluate(tree, POINTS))


@given(trees())
@settings(max_examples=2000)
def test_values_at_odd_points_are_numpys_without_warning(tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = tree.evaluate(ODD_POINTS)
    np.testing.assert_array_equal(values, reference.evaluate(tree, ODD_POINTS))


@given(trees(), st.integers(0, 5))
@settings(max_examples=1000)
def test_result_has_one_value_per_point_and_inputs_stay_as_they_are(tree, n_points):
    X = POINTS[:n_points].copy()
    values = tree.evaluate(X)
    assert values.shape == (n_points,)
    assert values.dtype == float
    values[:] = 99.0  # the result is no view of X
    np.testing.assert_array_equal(X, POINTS[:n_points])


@given(trees(), st.randoms(use_true_random=False))
@settings(max_examples=1000)
def test_mask_does_not_change_values(tree, rng):
    mask = [rng.random() < 0.5 for _ in tree]
    np.testing.assert_array_equal(tree.with_mask(mask).evaluate(POINTS), tree.evaluate(POINTS))


def test_values_agree_with_sympy_in_fifty_digits_as_far_as_the_condition_allows():
    rng = random.Random(2024)
    well, ill, worst = 0, 0, 0.0
    for k in range(1500):
        tree = random_tree(rng, size=36, numbers=MODERATE_NUMBERS)
        points = np.random.default_rng(k).uniform(-2.5, 2.5, (3, 3))
        judged = [(x, *reference.condition(tree, x)) for x in points]
        ill += sum(math.isfinite(value) and not condition <= 1e6 for _, value, condition, _ in judged)
        good = [(x, c) for x, value, c, largest in judged if c <= 1e6 and largest < 1e15 and math.isfinite(value)]
        if not good:
            continue
        exact = _fifty_digits(tree)
        values = tree.evaluate(np.array([x for x, _ in good]))
        for (x, condition), value in zip(good, values, strict=True):
            with mpmath.workdps(50):
                error = abs(exact(*x) - mpmath.mpf(float(value)))
                bound = 1e-12 * condition * abs(mpmath.mpf(float(value))) + mpmath.mpf("1e-290")
                assert error <= bound, (tree.to_infix(), x, condition)
                worst = max(worst, float(error / bound))
            well += 1
    assert well > 2500
    assert ill < well / 4  # few points are too ill-conditioned to be judged
    assert worst < 0.1  # the bound is no tight squeeze


def _fifty_digits(tree):
    """Return the tree's sympy form as a function of three numbers, evaluated with 50 digits."""
    expression = tree.to_sympy()
    function = sympy.lambdify(sympy.symbols("x1 x2 x3", real=True), expression, modules="mpmath")

    def call(*x):
        return mpmath.mpmathify(function(*(mpmath.mpf(float(number)) for number in x)))

    return call


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("x1/x2", [1, 0], math.inf),
        ("x1/x2", [0, 0], math.nan),
        ("log(x1)", [-1, 0], math.nan),
        ("log(x1)", [0, 0], -math.inf),
        ("sqrt(x1)", [-1, 0], math.nan),
        ("exp(x1)", [1000, 0], math.inf),
        ("x1**x2", [-8, 1 / 3], math.nan),
        ("1/(x1 - x1)", [3, 0], math.inf),
        ("2 + 3*4", [0, 0], 14.0),
        ("log(-1) + x1", [1, 0], math.nan),
        ("x2", [1, 5], 5.0),
    ],
)
def test_single_values(text, x, expected):
    value = MaskedTree.from_infix(text).evaluate(np.array([x]))
    np.testing.assert_array_equal(value, [expected])


def test_inputs_may_be_whole_numbers_or_lists():
    tree = MaskedTree.from_infix("(x1 + x2)**8/2")
    np.testing.assert_array_equal(tree.evaluate([[1000, 0], [1, 1]]), [5e23, 128.0])
    np.testing.assert_array_equal(tree.evaluate(np.array([[1000, 0]])), [5e23])


def test_more_columns_than_needed_are_allowed_and_fewer_refused():
    tree = MaskedTree.from_infix("x1 + x3")
    assert tree.evaluate(np.ones((2, 9))).tolist() == [2.0, 2.0]
    with pytest.raises(ExpressionError, match="uses x3, X has only 2 columns"):
        tree.evaluate(np.ones((2, 2)))


@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 3)])
def test_inputs_of_another_shape_are_refused(shape):
    with pytest.raises(ExpressionError, match="expected"):
        MaskedTree.from_infix("x1").evaluate(np.ones(shape))


@given(trees(size=20))
@settings(max_examples=200)
def test_incomplete_and_overlong_trees_are_refused(tree):
    for broken in (MaskedTree(tree[:-1]), MaskedTree([*tree, variable(1)]), MaskedTree([])):
        with pytest.raises(ExpressionError):
            broken.evaluate(POINTS)


@pytest.mark.parametrize(
    "node",
    [
        gp.Terminal("speed", True, object),
        gp.Terminal("x0", True, object),
        gp.Terminal(None, False, object),
        gp.Terminal([1], False, object),
    ],
)
def test_leaf_that_is_neither_variable_nor_number_is_refused(node):
    with pytest.raises(ExpressionError):
        MaskedTree([node]).evaluate(POINTS)


def test_unknown_operator_is_refused():
    with pytest.raises(ExpressionError, match="unknown operator 'cube_root'"):
        MaskedTree([gp.Primitive("cube_root", [object], object), variable(1)]).evaluate(POINTS)


def test_node_with_the_wrong_number_of_operands_is_refused_every_time():
    good = MaskedTree([node_from_name("tanh"), variable(1)])
    bad = MaskedTree([gp.Primitive("tanh", [object, object], object), variable(1), variable(2)])
    X = POINTS.copy()
    for _ in range(2):
        with pytest.raises(ExpressionError, match="takes 1 operands"):
            bad.evaluate(X)  # numpy would take the second operand for the place of the result
        good.evaluate(X)  # after which the operator is known
    np.testing.assert_array_equal(X, POINTS)


def test_literal_of_a_users_set_is_a_number_without_the_set():
    tree = MaskedTree([node_from_name("add"), gp.Terminal(3, False, object), Constant(0.5)])
    assert tree.evaluate(np.ones((1, 0))).tolist() == [3.5]


def test_decoded_trees_use_every_operator_and_every_kind_of_constant():
    rng = random.Random(1)
    nodes = [node for _ in range(300) for node in decode(rng.randbytes(60))]
    assert {node.name for node in nodes if node.arity} == set(reference.FUNCTIONS)
    kinds = {(node.fitted, node.mutable) for node in nodes if isinstance(node, Constant)}
    assert len(kinds) == 4
