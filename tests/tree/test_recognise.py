"""A user's own functions are known by what they do."""

import math
import operator
import pickle
import random

import numpy as np
import pytest
from deap import gp

from deap_vsr.tree import operators
from deap_vsr.tree.guarded import every_opcode, guarded
from deap_vsr.tree.operators import CATALOGUE
from deap_vsr.tree.recognise import Own, takes_arrays
from deap_vsr.tree.translate import known_operators


def division_with_try(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def division_with_if(left, right):
    if right == 0:
        return 0.0
    return left / right


def division_that_keeps_the_dividend(left, right):
    return left if right == 0 else left / right


def division_with_where(left, right):
    return np.where(np.abs(right) > 0.001, np.divide(left, right), 1.0)


def division_below(left, right):
    return 1.0 if abs(right) < 1e-6 else left / right


def division_of_finite_quotients(left, right):
    quotient = np.divide(left, right)
    if isinstance(quotient, np.ndarray):
        quotient[~np.isfinite(quotient)] = 1
    elif not np.isfinite(quotient):
        quotient = 1
    return quotient


def division_of_arrays_alone(left, right):
    quotient = np.divide(left, right)
    quotient[~np.isfinite(quotient)] = 0
    return quotient


def log_of_abs(x):
    return math.log(abs(x)) if x != 0 else 0


def log_with_except(x):
    try:
        return math.log(x)
    except ValueError:
        return 1


def log_with_where(x):
    return np.where(np.abs(x) > 0.001, np.log(np.abs(x)), 0.0)


def sqrt_of_abs(x):
    return math.sqrt(abs(x))


def sqrt_or_nothing(x):
    return 0.0 if x < 0 else x**0.5


def inverse_with_where(x):
    return np.where(np.abs(x) > 0.001, 1.0 / np.where(x == 0, 1, x), 0.0)


RECOGNISED = [
    (division_with_try, 2, "div_or_1"),
    (division_with_if, 2, "div_or_0"),
    (division_that_keeps_the_dividend, 2, "div_or_left"),
    (division_with_where, 2, "div_or_1_to_0.001"),
    (division_below, 2, "div_or_1_below_1e-06"),
    (division_of_finite_quotients, 2, "div_finite_or_1"),
    (division_of_arrays_alone, 2, "div_finite_or_0"),
    (log_of_abs, 1, "log_abs_or_0"),
    (log_with_except, 1, "log_or_1"),
    (log_with_where, 1, "log_abs_or_0_to_0.001"),
    (sqrt_of_abs, 1, "sqrt_abs"),
    (sqrt_or_nothing, 1, "sqrt_or_0"),
    (inverse_with_where, 1, "inv_or_0_to_0.001"),
    (lambda a, b: a + b, 2, "add"),
    (lambda x: x**2, 1, "n2"),
]
OTHERS = [
    (lambda a, b: a / math.sqrt(1 + b * b), 2),
    (lambda a, b: 2.0 if b == 0 else a / b, 2),
    (lambda x: math.log(abs(x) + 1), 1),
    (lambda x: random.random(), 1),
    (lambda x: 1 / 0, 1),
    (max, 2),
]


@pytest.mark.parametrize(("function", "arity", "name"), RECOGNISED)
def test_a_function_is_known_by_its_values_under_any_name(function, arity, name):
    found = operators.from_function("sin", function, arity)
    assert found.known
    assert found.name == name


@pytest.mark.parametrize(("function", "arity", "name"), RECOGNISED)
def test_what_is_recognised_has_the_function_s_own_values(function, arity, name):
    found = operators.from_function("own", function, arity)
    rng = np.random.default_rng(0)
    values = np.concatenate([[0.0, -0.0, 1e-7, 1e-3, -1e-3], rng.uniform(-3, 3, 95)])
    points = (values,) if arity == 1 else (rng.permutation(values), values)
    with np.errstate(all="ignore"):
        expected = [_called(function, *point) for point in zip(*points, strict=True)]
    np.testing.assert_allclose(found(*points), expected, rtol=1e-14)


def _called(function, *point):
    try:
        return float(function(*map(float, point)))
    except TypeError:
        return float(function(*(np.array([number]) for number in point))[0])


@pytest.mark.parametrize(("function", "arity"), OTHERS)
def test_what_does_something_else_is_called_as_it_is(function, arity):
    found = operators.from_function("own", function, arity)
    assert not found.known


def test_looking_at_a_function_leaves_the_random_streams_alone():
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    operators.from_function("noise", lambda x: x + random.random() + np.random.rand(), 1)  # noqa: NPY002
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_arrays_and_numbers_are_told_apart_by_their_values():
    assert takes_arrays(division_with_where, 2)
    assert takes_arrays(lambda x: np.log1p(np.abs(x)), 1)
    assert not takes_arrays(division_with_try, 2)  # arrays raise nothing
    assert not takes_arrays(lambda x: x if x > 0 else 0.0, 1)


def test_a_function_that_changes_its_operands_is_given_numbers():
    def changing(x):
        if isinstance(x, np.ndarray):
            x[x == 0] = 1e-6
        return 3.0 * x + 1.0

    assert not takes_arrays(changing, 1)


def test_a_recognition_is_taken_back():
    own = operators.from_function("pdiv", Own(division_with_try), 2)
    assert not own.known
    np.testing.assert_array_equal(own(np.array([1.0, 3.0]), np.array([0.0, 2.0])), [1.0, 1.5])
    assert pickle.loads(pickle.dumps(Own(division_with_try)))(1.0, 0.0) == 1


def test_guarded_operators_are_offered_to_nobody():
    for arity in (1, 2):
        for opcode in every_opcode(arity):
            name = guarded(opcode).name
            assert name not in CATALOGUE
            with pytest.raises(ValueError, match="unknown operator"):
                operators.get(name)


def test_a_guarded_operator_survives_a_pickle_with_the_name_it_is_printed_under():
    found = operators.from_function("pdiv", division_with_where, 2)
    again = pickle.loads(pickle.dumps(found))
    assert (again.name, again.opcode, again.infix) == (found.name, found.opcode, "pdiv({0}, {1})")


def test_a_guarded_operator_stands_for_the_plain_one_where_the_set_has_not_both():
    pset = gp.PrimitiveSet("GUARDED", 1)
    pset.addPrimitive(division_with_try, 2, name="pdiv")
    pset.addPrimitive(log_of_abs, 1, name="plog")
    assert {name: primitive.name for name, primitive in known_operators(pset).items()} == {"div": "pdiv", "log": "plog"}
    pset.addPrimitive(operator.truediv, 2, name="div")
    assert known_operators(pset)["div"].name == "div"
