import copy
import functools
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import operators
from deap_vsr.tree.operators import CATALOGUE

NAMES = [
    "add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "n4", "n5", "n6", "n8", "pow", "sqrt", "exp", "log", "sin",
    "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "abs",
]  # fmt: skip

# Points where the operator is smooth and its value representable.
DOMAINS = {
    "div": [(-50, 50), (0.01, 50)],
    "inv": [(0.01, 50)],
    "pow": [(0.01, 10), (-5, 5)],
    "sqrt": [(1e-3, 1e3)],
    "log": [(1e-3, 1e3)],
    "tan": [(-1.4, 1.4)],
    "arcsin": [(-0.99, 0.99)],
    "arccos": [(-0.99, 0.99)],
    "sinh": [(-20, 20)],
    "cosh": [(-20, 20)],
    "exp": [(-50, 50)],
    "tanh": [(-3, 3)],
    "abs": [(0.01, 50)],
}


def protected_div(left, right):
    """The protected division of DEAP's tutorial."""
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def python_root(x):
    return x**0.5  # complex for x < 0


def numpy_root(x):
    return np.emath.sqrt(x)  # numpy's complex for x < 0


def refuses_negative(x):
    if x < 0:
        raise ValueError("math domain error")
    return 2 * x


def broken(x):
    raise KeyError(x)


def wants_text(x):
    return x + "1"


class Recorder:
    """A function that remembers what it was called with."""

    def __init__(self, takes_arrays=None):
        self.seen = []
        if takes_arrays is not None:
            self.takes_arrays = takes_arrays

    def __call__(self, x):
        self.seen.append(x)
        return x * 2


class Spy(np.ndarray):
    """An array that remembers which ufuncs it was handed to."""

    calls = []  # noqa: RUF012

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.calls.append((ufunc, [np.shape(array) for array in inputs]))
        return getattr(ufunc, method)(*(np.asarray(array) for array in inputs), **options)


# --- the catalogue ------------------------------------------------------------------------


def test_catalogue_holds_every_operator_of_the_design():
    assert list(CATALOGUE) == NAMES


def test_opcodes_are_the_positions_in_the_catalogue():
    assert [entry.opcode for entry in CATALOGUE.values()] == list(range(len(NAMES)))
    assert all(entry.known for entry in CATALOGUE.values())


def test_binary_operators_are_those_with_two_operands():
    assert {name for name, entry in CATALOGUE.items() if entry.arity == 2} == {"add", "sub", "mul", "div", "pow"}
    assert {entry.arity for entry in CATALOGUE.values()} == {1, 2}


def test_only_add_and_mul_are_commutative():
    assert {name for name, entry in CATALOGUE.items() if entry.commutative} == {"add", "mul"}


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("+", "add"), ("plus", "add"), ("-", "sub"), ("minus", "sub"), ("subtract", "sub"), ("*", "mul"),
        ("times", "mul"), ("multiply", "mul"), ("/", "div"), ("divide", "div"), ("truediv", "div"),
        ("reciprocal", "inv"), ("negative", "neg"), ("sqr", "n2"), ("square", "n2"), ("pow2", "n2"), ("cube", "n3"),
        ("pow3", "n3"), ("pow4", "n4"), ("pow5", "n5"), ("pow6", "n6"), ("pow8", "n8"), ("**", "pow"), ("^", "pow"),
        ("power", "pow"), ("ln", "log"), ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("Abs", "abs"),
        ("fabs", "abs"),
    ],
)  # fmt: skip
def test_alias_resolves(alias, name):
    assert operators.get(alias) is CATALOGUE[name]


def test_no_alias_belongs_to_two_operators():
    spellings = [alias for entry in CATALOGUE.values() for alias in (entry.name, *entry.aliases)]
    assert len(spellings) == len(set(spellings))


def test_no_function_is_the_twin_of_two_operators():
    twins = [id(twin) for entry in CATALOGUE.values() for twin in set(entry.twins)]
    assert len(twins) == len(set(twins))


@pytest.mark.parametrize("name", ["", "sine", "SIN", "n7", "n1", "const", "x1", None, 3, ["sin"], {}])
def test_unknown_operator_is_refused(name):
    with pytest.raises(ExpressionError, match="unknown operator"):
        operators.get(name)


def test_function_set_is_normalised_in_order_without_repeats():
    names = operators.normalise_function_set(["+", "const", "ln", "add", "log", "const", "square"])
    assert names == ("add", "const", "log", "n2")


def test_function_set_with_an_unknown_name_is_refused():
    with pytest.raises(ExpressionError, match="nonsense"):
        operators.normalise_function_set(["add", "nonsense"])


def test_repr_names_the_operator():
    assert repr(CATALOGUE["sin"]) == "Operator('sin')"


# --- values and derivatives ---------------------------------------------------------------


@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 6, 8])
@given(x=st.floats(-1e30, 1e30))
def test_integer_power_is_the_power(exponent, x):
    assert float(CATALOGUE[f"n{exponent}"](x)) == pytest.approx(math.pow(x, exponent), rel=1e-15, abs=1e-320)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=200)
def test_derivative_agrees_with_the_complex_step(name, data):
    entry = CATALOGUE[name]
    box = DOMAINS.get(name, [(-10, 10)] * 2)
    point = [np.float64(data.draw(st.floats(*box[i]))) for i in range(entry.arity)]
    exact = entry.derivative(entry(*point), *point)
    assert len(exact) == entry.arity
    for i in range(entry.arity):
        if name == "abs":  # not analytic
            step = 1e-6 * point[i]
            numeric = (entry(point[i] + step) - entry(point[i] - step)) / (2 * step)
        else:
            shifted = [np.complex128(p) + (1e-100j if j == i else 0) for j, p in enumerate(point)]
            numeric = entry.function(*shifted).imag / 1e-100
        np.testing.assert_allclose(exact[i], numeric, rtol=1e-8, atol=1e-9 * float(np.abs(entry(*point))) + 1e-12)


@given(x=st.floats(0.1, 20))
def test_derivative_of_abs_is_the_sign(x):
    entry = CATALOGUE["abs"]
    assert entry.derivative(x, np.float64(-x)) == (-1.0,)
    assert entry.derivative(x, np.float64(x)) == (1.0,)


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if entry.inverse])
def test_an_inverse_undoes_its_operator_on_the_principal_branch(name):
    x = np.linspace(0.05, 0.95, 19)
    entry = CATALOGUE[name]
    np.testing.assert_allclose(entry.inverse(entry.function(x)), x, rtol=1e-9)


@pytest.mark.parametrize("name", ["sqrt", "exp", "n2", "n4", "cosh"])
def test_what_an_operator_never_gives_has_no_inverse(name):
    with np.errstate(all="ignore"):
        assert np.isnan(CATALOGUE[name].inverse(np.array([-1.5, -0.3]))).all()


@pytest.mark.parametrize("name", NAMES)
def test_derivative_of_arrays_is_that_of_their_elements(name):
    entry = CATALOGUE[name]
    box = DOMAINS.get(name, [(-10, 10)] * 2)
    rng = np.random.default_rng(3)
    points = [rng.uniform(*box[i], 7) for i in range(entry.arity)]
    whole = entry.derivative(entry(*points), *points)
    for k in range(7):
        single = [p[k] for p in points]
        one = entry.derivative(entry(*single), *single)
        for i in range(entry.arity):
            np.testing.assert_allclose(np.broadcast_to(whole[i], 7)[k], one[i], rtol=1e-13)


# --- out of domain ------------------------------------------------------------------------

OUTSIDE = [
    ("div", (1, 0), math.inf),
    ("div", (-1, 0), -math.inf),
    ("div", (0, 0), math.nan),
    ("inv", (0,), math.inf),
    ("inv", (-0.0,), -math.inf),
    ("sqrt", (-1,), math.nan),
    ("log", (0,), -math.inf),
    ("log", (-1,), math.nan),
    ("arcsin", (2,), math.nan),
    ("arccos", (-2,), math.nan),
    ("exp", (1000,), math.inf),
    ("sinh", (1000,), math.inf),
    ("sinh", (-1000,), -math.inf),
    ("cosh", (-1000,), math.inf),
    ("pow", (-8, 1 / 3), math.nan),
    ("pow", (0, -1), math.inf),
    ("pow", (10, 400), math.inf),
    ("n2", (1e200,), math.inf),
    ("n3", (-1e200,), -math.inf),
    ("n4", (1e200,), math.inf),
    ("n5", (-1e100,), -math.inf),
    ("n6", (1e100,), math.inf),
    ("n8", (1e100,), math.inf),
    ("add", (1e308, 1e308), math.inf),
    ("add", (math.inf, -math.inf), math.nan),
    ("sub", (-1e308, 1e308), -math.inf),
    ("mul", (1e200, -1e200), -math.inf),
    ("mul", (0, math.inf), math.nan),
    ("sin", (math.inf,), math.nan),
    ("cos", (-math.inf,), math.nan),
    ("tan", (math.inf,), math.nan),
    ("abs", (-math.inf,), math.inf),
    ("neg", (math.inf,), -math.inf),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), OUTSIDE)
def test_out_of_domain_is_inf_or_nan_without_warning(name, arguments, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for convert in (lambda a: a, float, np.float64, lambda a: np.array([a, a]), lambda a: np.array([[float(a)]])):
            value = CATALOGUE[name](*(convert(a) for a in arguments))
            np.testing.assert_array_equal(value, np.full(np.shape(value), expected))


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_swallows_nan_and_inf_silently(name):
    entry = CATALOGUE[name]
    odd = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308, 5e-324])
    values = entry(*[odd] * entry.arity)
    assert values.shape == odd.shape
    assert math.isnan(values[0])


@pytest.mark.parametrize("name", NAMES)
@given(numbers=st.lists(st.integers(-1000, 1000), min_size=2, max_size=2))
def test_whole_numbers_give_the_same_as_floats(name, numbers):
    entry = CATALOGUE[name]
    arguments = numbers[: entry.arity]
    expected = entry(*map(float, arguments))
    for convert in (int, np.int64, lambda a: np.array([a])):
        value = entry(*map(convert, arguments))
        np.testing.assert_allclose(np.ravel(value).astype(float), [expected], rtol=1e-14)


def test_square_root_of_a_python_int_beyond_64_bits_is_a_float():
    assert float(CATALOGUE["sqrt"](10**30)) == 1e15


# --- pickling -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_catalogue_operator_survives_pickle_and_copy_as_itself(name):
    entry = CATALOGUE[name]
    assert pickle.loads(pickle.dumps(entry)) is entry
    assert copy.deepcopy(entry) is entry
    assert copy.copy(entry) is entry


def test_foreign_operator_survives_pickle_with_its_function():
    entry = pickle.loads(pickle.dumps(operators.foreign("div", protected_div, 2)))
    assert (entry.name, entry.arity, entry.known, entry.derivative) == ("div", 2, False, None)
    np.testing.assert_array_equal(entry(np.array([1.0, 6.0]), np.array([0.0, 3.0])), [1.0, 2.0])


# --- recognition --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arity", "name"),
    [
        (operator.add, 2, "add"), (np.add, 2, "add"), (operator.sub, 2, "sub"), (np.subtract, 2, "sub"),
        (operator.mul, 2, "mul"), (np.multiply, 2, "mul"), (operator.truediv, 2, "div"), (np.divide, 2, "div"),
        (np.true_divide, 2, "div"), (operator.neg, 1, "neg"), (np.negative, 1, "neg"), (np.reciprocal, 1, "inv"),
        (np.square, 1, "n2"), (operator.pow, 2, "pow"), (math.pow, 2, "pow"), (np.power, 2, "pow"),
        (np.float_power, 2, "pow"), (math.sqrt, 1, "sqrt"), (np.sqrt, 1, "sqrt"), (math.exp, 1, "exp"),
        (np.exp, 1, "exp"), (math.log, 1, "log"), (np.log, 1, "log"), (math.sin, 1, "sin"), (np.sin, 1, "sin"),
        (math.cos, 1, "cos"), (np.cos, 1, "cos"), (math.tan, 1, "tan"), (np.tan, 1, "tan"), (math.asin, 1, "arcsin"),
        (np.arcsin, 1, "arcsin"), (math.acos, 1, "arccos"), (np.arccos, 1, "arccos"), (math.atan, 1, "arctan"),
        (np.arctan, 1, "arctan"), (math.sinh, 1, "sinh"), (np.sinh, 1, "sinh"), (math.cosh, 1, "cosh"),
        (np.cosh, 1, "cosh"), (math.tanh, 1, "tanh"), (np.tanh, 1, "tanh"), (abs, 1, "abs"), (np.abs, 1, "abs"),
        (math.fabs, 1, "abs"), (np.fabs, 1, "abs"),
    ],
)  # fmt: skip
def test_function_object_is_recognised_under_any_name(function, arity, name):
    assert operators.from_function("whatever", function, arity) is CATALOGUE[name]


@pytest.mark.parametrize("name", NAMES)
def test_operator_object_is_recognised_as_itself(name):
    entry = CATALOGUE[name]
    assert operators.from_function("other", entry, entry.arity) is entry


@pytest.mark.parametrize("name", ["div", "add", "sin", "log"])
def test_own_function_with_a_catalogue_name_is_what_it_does(name):
    entry = operators.from_function(name, protected_div, 2)
    assert entry is not CATALOGUE[name]
    assert entry.name == "div_or_1"
    assert float(entry(1.0, 0.0)) == 1.0


def test_known_function_with_another_arity_is_foreign():
    entry = operators.from_function("log", math.log, 2)
    assert not entry.known
    assert float(entry(8.0, 2.0)) == pytest.approx(3.0)


# --- foreign functions --------------------------------------------------------------------


def test_protected_division_is_protected_in_arrays_too():
    entry = operators.from_function("protectedDiv", protected_div, 2)
    value = entry(np.array([1.0, 4.0, 0.0, -3.0]), np.array([0.0, 2.0, 0.0, 0.0]))
    assert value.dtype == float
    np.testing.assert_array_equal(value, [1.0, 2.0, 1.0, 1.0])


def test_protected_division_broadcasts_a_constant_operand():
    entry = operators.from_function("protectedDiv", protected_div, 2)
    np.testing.assert_array_equal(entry(np.float64(6.0), np.array([0.0, 2.0])), [1.0, 3.0])
    np.testing.assert_array_equal(entry(np.empty(0), np.empty(0)), np.empty(0))


def test_foreign_function_is_called_with_python_floats():
    function = Recorder(takes_arrays=False)
    entry = operators.foreign("twice", function, 1)
    np.testing.assert_array_equal(entry(np.array([1.0, 2.5])), [2.0, 5.0])
    assert function.seen == [1.0, 2.5]
    assert {type(x) for x in function.seen} == {float}


def test_function_marked_takes_arrays_gets_the_whole_array():
    function = Recorder(takes_arrays=True)
    points = np.array([1.0, 2.5])
    np.testing.assert_array_equal(operators.foreign("twice", function, 1)(points), [2.0, 5.0])
    assert len(function.seen) == 1
    assert function.seen[0] is points


def test_function_marked_takes_arrays_false_is_called_per_scalar():
    function = Recorder(takes_arrays=False)
    operators.foreign("twice", function, 1)(np.array([1.0, 2.5]))
    assert function.seen == [1.0, 2.5]


def test_unknown_numpy_ufunc_gets_the_whole_array():
    entry = operators.from_function("atan2", np.arctan2, 2)
    assert not entry.known
    Spy.calls.clear()
    entry(np.ones(3).view(Spy), np.ones(3).view(Spy))
    assert (np.arctan2, [(3,), (3,)]) in Spy.calls
    np.testing.assert_allclose(entry(np.array([1.0, -1.0]), np.array([0.0, 0.0])), [math.pi / 2, -math.pi / 2])


@pytest.mark.parametrize("function", [np.greater, np.frompyfunc(operator.gt, 2, 1)], ids=["greater", "frompyfunc"])
def test_unknown_ufunc_gives_floats_whatever_its_own_type(function):
    entry = operators.from_function("greater", function, 2)
    value = entry(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    # As booleans, 1 + 1 would be 1 and 1 - 1 an exception.
    np.testing.assert_array_equal(CATALOGUE["add"](value, value), [0.0, 2.0])
    np.testing.assert_array_equal(CATALOGUE["sub"](value, value), [0.0, 0.0])
    np.testing.assert_array_equal(CATALOGUE["cos"](value - value), [1.0, 1.0])


@pytest.mark.parametrize("function", [math.sqrt, refuses_negative, python_root, numpy_root])
def test_exception_or_complex_result_out_of_domain_is_nan(function):
    value = operators.foreign("f", function, 1)(np.array([-1.0, 4.0]))
    assert math.isnan(value[0])
    assert math.isfinite(value[1])


def test_overflow_in_a_foreign_function_is_nan():
    assert math.isnan(operators.foreign("f", functools.partial(math.pow, 10.0), 1)(400.0))


@pytest.mark.parametrize(("function", "error"), [(broken, KeyError), (wants_text, TypeError)])
def test_programming_errors_in_a_foreign_function_are_not_hidden(function, error):
    with pytest.raises(error):
        operators.foreign("f", function, 1)(np.array([1.0]))


def test_foreign_operator_prints_as_a_call():
    import sympy

    entry = operators.foreign("f", protected_div, 2)
    assert entry.infix.format("a", "b") == "f(a, b)"
    assert entry.latex.format("a", "b") == r"\operatorname{f}\left(a, b\right)"
    x, y = sympy.symbols("x y")
    assert entry.sympy(sympy, x, y) == sympy.Function("f")(x, y)


@pytest.mark.parametrize("name", NAMES)
def test_sympy_form_has_the_same_value(name):
    import sympy

    entry = CATALOGUE[name]
    point = [0.625, 1.75][: entry.arity]
    symbols = sympy.symbols("a b")[: entry.arity]
    expression = entry.sympy(sympy, *symbols)
    value = expression.subs(dict(zip(symbols, map(sympy.Float, point), strict=True)))
    assert float(value) == pytest.approx(float(entry(*point)), rel=1e-14)
