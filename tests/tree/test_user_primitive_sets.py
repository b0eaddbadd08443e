"""Evaluation under a user's own DEAP primitive sets, compared with gp.compile point by point."""

import functools
import math
import operator
import random

import numpy as np
import pytest
from deap import gp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import masked_at_random

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree, is_open, notation

seeds = st.integers(0, 2**32 - 1)
POINTS = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [-2.5, 3.0], [0.3, -0.7]])


def protected_div(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def numpy_protected_div(left, right):
    """The protected division of DEAP's numpy example."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.divide(left, right)
        if isinstance(x, np.ndarray):
            x[np.isinf(x)] = 1
            x[np.isnan(x)] = 1
        elif np.isinf(x) or np.isnan(x):
            x = 1
    return x


def array_protected_div(left, right):
    return numpy_protected_div(left, right)


array_protected_div.takes_arrays = True


def if_then_else(condition, yes, no):
    return yes if condition else no


def median(a, b, c):
    return sorted((a, b, c))[1]


def tutorial_set(division=protected_div):
    pset = gp.PrimitiveSet("MAIN", 2)
    pset.addPrimitive(operator.add, 2)
    pset.addPrimitive(operator.sub, 2)
    pset.addPrimitive(operator.mul, 2)
    pset.addPrimitive(division, 2, name="div")
    pset.addPrimitive(operator.neg, 1)
    pset.addPrimitive(math.cos, 1)
    pset.addPrimitive(math.sin, 1, name="sine")
    pset.addPrimitive(median, 3)
    pset.addPrimitive(max, 2, name="larger")
    pset.addEphemeralConstant("user_rand101", functools.partial(random.randint, -1, 1))
    pset.addTerminal(3.25)
    pset.addTerminal(9.81, name="gravity")
    pset.renameArguments(ARG0="height", ARG1="x1")  # x1 is the second column here
    return pset


def spam_set():
    """Floats and booleans, as in DEAP's spam example."""
    pset = gp.PrimitiveSetTyped("SPAM", [float, float], bool, "IN")
    pset.addPrimitive(operator.and_, [bool, bool], bool)
    pset.addPrimitive(operator.or_, [bool, bool], bool)
    pset.addPrimitive(operator.not_, [bool], bool)
    pset.addPrimitive(operator.add, [float, float], float)
    pset.addPrimitive(operator.mul, [float, float], float)
    pset.addPrimitive(protected_div, [float, float], float)
    pset.addPrimitive(operator.lt, [float, float], bool)
    pset.addPrimitive(operator.eq, [float, float], bool)
    pset.addPrimitive(if_then_else, [bool, float, float], float)
    pset.addEphemeralConstant("user_rand100", functools.partial(random.uniform, 0, 100), float)
    pset.addTerminal(False, bool)
    pset.addTerminal(True, bool)
    return pset


def compiled_values(tree, pset, points=POINTS):
    function = gp.compile(tree, pset)
    return np.array([float(function(*map(float, x))) for x in points])


TUTORIAL, NUMPY, ARRAYS, SPAM = (
    tutorial_set(),
    tutorial_set(numpy_protected_div),
    tutorial_set(array_protected_div),
    spam_set(),
)


@pytest.mark.parametrize("pset", [TUTORIAL, NUMPY, ARRAYS], ids=["tutorial", "numpy example", "takes arrays"])
@given(seeds)
@settings(max_examples=700)
def test_values_are_those_of_gp_compile(pset, seed):
    random.seed(seed)
    tree = masked_at_random(gp.genHalfAndHalf(pset, 0, 4), random.Random(seed))
    np.testing.assert_allclose(tree.evaluate(POINTS, pset), compiled_values(tree, pset), rtol=1e-13, atol=1e-13)


@given(seeds)
@settings(max_examples=700)
def test_values_of_a_set_with_booleans_are_those_of_gp_compile(seed):
    random.seed(seed)
    tree = masked_at_random(gp.genHalfAndHalf(SPAM, 1, 4), random.Random(seed))
    np.testing.assert_array_equal(tree.evaluate(POINTS, SPAM), compiled_values(tree, SPAM))


def test_protected_division_gives_one_at_zero():
    tree = MaskedTree.from_string("div(height, x1)", TUTORIAL)
    np.testing.assert_array_equal(tree.evaluate(POINTS, TUTORIAL)[:3], [0.0, 1.0, 1.0])


def test_users_division_is_not_ours_even_under_its_name():
    tree = MaskedTree.from_string("div(1, 0)", TUTORIAL)
    assert tree.evaluate(POINTS, TUTORIAL).tolist() == [1.0] * 5
    assert math.isinf(tree.evaluate(POINTS)[0])  # without the set, div is the catalogue's


def test_named_terminal_is_its_value_and_argument_its_column():
    tree = MaskedTree.from_string("sub(mul(gravity, x1), height)", TUTORIAL)
    np.testing.assert_allclose(tree.evaluate(POINTS, TUTORIAL), 9.81 * POINTS[:, 1] - POINTS[:, 0])


def test_literals_stay_literals_and_ephemerals_are_open():
    random.seed(0)
    add, ephemeral = TUTORIAL.mapping["add"], TUTORIAL.mapping["user_rand101"]()
    tree = MaskedTree([add, TUTORIAL.mapping["3.25"], add, ephemeral, TUTORIAL.mapping["gravity"]])
    assert [is_open(node) for node in tree] == [False, False, False, True, False]
    fitted = tree.with_constants([0.5])
    np.testing.assert_allclose(fitted.evaluate(POINTS, TUTORIAL), 3.25 + 0.5 + 9.81)
    assert gp.compile(fitted, TUTORIAL)(0.0, 0.0) == 3.25 + (0.5 + 9.81)


def test_masked_and_fitted_trees_compile_and_evaluate_alike():
    random.seed(4)
    rng = random.Random(4)
    for _ in range(100):
        tree = masked_at_random(gp.genFull(TUTORIAL, 1, 4), rng)
        tree = tree.with_constants([rng.uniform(-5, 5) for _ in tree.constants])
        np.testing.assert_allclose(
            tree.evaluate(POINTS, TUTORIAL), compiled_values(tree, TUTORIAL), rtol=1e-12, atol=1e-12
        )


def test_known_functions_are_recognised_behind_other_names():
    tree = MaskedTree.from_string("sine(height)", TUTORIAL)
    np.testing.assert_array_equal(tree.evaluate(POINTS, TUTORIAL), np.sin(POINTS[:, 0]))


def test_node_that_the_set_does_not_have_is_refused():
    with pytest.raises(ExpressionError, match="not in the primitive set 'MAIN'"):
        MaskedTree.from_infix("tanh(x1)").evaluate(POINTS, TUTORIAL)
    with pytest.raises(ExpressionError, match="neither a variable nor a number"):
        MaskedTree.from_infix("x2").evaluate(POINTS, TUTORIAL)


def test_terminal_that_is_a_function_is_refused():
    pset = gp.PrimitiveSet("ANT", 0)
    pset.addTerminal(print, name="walk")
    with pytest.raises(ExpressionError, match="neither a variable nor a number"):
        MaskedTree([pset.mapping["walk"]]).evaluate(POINTS, pset)


def test_argument_without_a_column_is_refused():
    with pytest.raises(ExpressionError, match="columns"):
        MaskedTree.from_string("x1", TUTORIAL).evaluate(POINTS[:, :1], TUTORIAL)


def test_users_tree_is_printed_with_its_own_names():
    tree = MaskedTree.from_string("add(mul(gravity, x1), div(height, median(x1, 2, 3.25)))", TUTORIAL)
    assert notation.infix(tree, TUTORIAL) == "gravity*x1 + div(height, median(x1, 2, 3.25))"
    assert notation.latex(tree, TUTORIAL) == (
        r"\mathrm{gravity} \cdot x_{1} + \operatorname{div}\left(\mathrm{height}, "
        r"\operatorname{median}\left(x_{1}, 2, 3.25\right)\right)"
    )
    assert tree.to_tokens()[3:5] == [("x1", "var"), ("div", "binary")]
    assert ("median", "3-ary") in tree.to_tokens()


def test_trees_over_an_own_set_are_printed_with_its_names():
    tree = MaskedTree([TUTORIAL.mapping["larger"], TUTORIAL.mapping["height"], TUTORIAL.mapping["x1"]])
    assert tree.to_infix(TUTORIAL) == "larger(height, x1)"
    assert "operatorname{larger}" in tree.to_latex(TUTORIAL)


def test_a_protected_division_keeps_its_name_and_is_a_division_to_sympy():
    tree = MaskedTree([TUTORIAL.mapping["div"], TUTORIAL.mapping["height"], TUTORIAL.mapping["x1"]])
    assert tree.to_infix(TUTORIAL) == "div(height, x1)"
    assert str(tree.to_sympy(TUTORIAL)) == "height/x1"
