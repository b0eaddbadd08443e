import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ALL_OPERATORS, keys, trees

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import Constant, MaskedTree, node_from_name, notation, variable
from deap_vsr.tree.operators import CATALOGUE
from deap_vsr.tree.simplify import canonical


def tokens(text):
    return [name for name, _ in MaskedTree.from_infix(text).to_tokens()]


# --- round trips --------------------------------------------------------------------------


@given(trees())
@settings(max_examples=2000)
def test_prefix_tokens_read_back_as_the_same_tree(tree):
    listed = tree.to_tokens()
    again = MaskedTree.from_tokens(listed)
    assert again.to_tokens() == listed
    # Bit by bit: values are compared as text, so that -0.0 is not 0.0.
    assert [k[:2] for k in keys(again)] == [k[:2] for k in keys(tree)]


@given(trees())
@settings(max_examples=2000)
def test_infix_text_reads_back_as_the_same_tokens(tree):
    again = MaskedTree.from_infix(tree.to_infix())
    assert again.to_tokens() == tree.to_tokens()
    assert [k[:2] for k in keys(again)] == [k[:2] for k in keys(tree)]


@given(trees(names=("pow", "neg", "n2", "n3", "sub", "div"), n_vars=1, numbers=(2.0, -2.0, 3.0, -0.0, 0.5, -1e-9)))
@settings(max_examples=2000)
def test_nested_powers_and_signs_read_back_as_the_same_tokens(tree):
    assert MaskedTree.from_infix(tree.to_infix()).to_tokens() == tree.to_tokens()


@given(st.floats(allow_nan=False), st.sampled_from(ALL_OPERATORS), st.booleans())
@settings(max_examples=2000)
def test_any_number_reads_back_beside_any_operator(value, name, last):
    operands = [Constant(value, fitted=False), variable(1)][: CATALOGUE[name].arity]
    tree = MaskedTree([node_from_name(name), *(reversed(operands) if last else operands)])
    again = MaskedTree.from_infix(tree.to_infix())
    assert keys(again) == keys(tree)


def test_nan_reads_back():
    tree = MaskedTree([node_from_name("add"), variable(1), Constant(math.nan, fitted=False)])
    assert MaskedTree.from_infix(tree.to_infix()).to_tokens() == tree.to_tokens()


@given(st.binary(max_size=40).map(lambda b: b.decode("latin-1")))
@settings(max_examples=1000)
def test_any_text_is_a_formula_or_refused_with_our_error(text):
    try:
        tree = MaskedTree.from_infix(text)
    except ExpressionError:
        return
    assert MaskedTree.from_infix(tree.to_infix()).to_tokens() == tree.to_tokens()


@given(st.text("x12()+-*/., sinC", max_size=25))
@settings(max_examples=2000)
def test_any_text_of_formula_letters_is_read_or_refused(text):
    try:
        tree = MaskedTree.from_infix(text)
    except ExpressionError:
        return
    assert MaskedTree.from_infix(tree.to_infix()).to_tokens() == tree.to_tokens()


# --- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5*x1**2 + sin(x2)", ["add", "mul", "2.5", "n2", "x1", "sin", "x2"]),
        ("x1 - x2 - x3", ["sub", "sub", "x1", "x2", "x3"]),
        ("x1/x2/x3", ["div", "div", "x1", "x2", "x3"]),
        ("x1**x2**x3", ["pow", "x1", "pow", "x2", "x3"]),
        ("-x1**2", ["neg", "n2", "x1"]),
        ("(-x1)**2", ["n2", "neg", "x1"]),
        ("-2", ["-2"]),
        ("-2**2", ["neg", "n2", "2"]),
        ("(-2)**2", ["n2", "-2"]),
        ("x1*-2", ["mul", "x1", "-2"]),
        ("x1 - -2", ["sub", "x1", "-2"]),
        ("--2", ["neg", "-2"]),
        ("+2", ["2"]),
        ("+-2", ["-2"]),
        ("++x1", ["x1"]),
        ("-+x1", ["neg", "x1"]),
        ("neg(2)", ["neg", "2"]),
        ("x1**2", ["n2", "x1"]),
        ("x1**3", ["n3", "x1"]),
        ("x1**4", ["n4", "x1"]),
        ("x1**5", ["n5", "x1"]),
        ("x1**6", ["n6", "x1"]),
        ("x1**8", ["n8", "x1"]),
        ("x1**7", ["pow", "x1", "7"]),
        ("x1**1", ["pow", "x1", "1"]),
        ("x1**0", ["pow", "x1", "0"]),
        ("x1**-2", ["pow", "x1", "-2"]),
        ("x1**2.0", ["pow", "x1", "2"]),
        ("x1**(2)", ["n2", "x1"]),
        ("pow(x1, 2)", ["pow", "x1", "2"]),
        ("inv(x1)", ["inv", "x1"]),
        ("1/x1", ["div", "1", "x1"]),
        ("ln(x1) + Abs(x2)", ["add", "log", "x1", "abs", "x2"]),
        ("add(x1, mul(2, x2))", ["add", "x1", "mul", "2", "x2"]),
        ("  x1  ", ["x1"]),
        ("1e3", ["1000"]),
        ("1_000", ["1000"]),
        ("0x10", ["16"]),
        ("1e400", ["inf"]),
        ("-inf", ["-inf"]),
        ("nan", ["nan"]),
        ("x123456789", ["x123456789"]),
    ],
)
def test_text_is_read_as_python_reads_it(text, expected):
    assert tokens(text) == expected


def test_pi_is_a_literal_and_c_an_open_constant():
    tree = MaskedTree.from_infix("pi*C")
    assert tree[1] == Constant(math.pi, fitted=False)
    assert tree[2] == Constant(1.0)
    assert tree.open_constants == [2]


@pytest.mark.parametrize(
    "text",
    [
        # Python that is no formula
        "x1.real", "x1.__class__", "().__class__.__bases__", "sin.x1", "math.sin(x1)",
        "sin(x1=2)", "sin(x=x1)", "sin(**x1)", "sin(*x1)", "add(*x1, x2)", "add(x1, **x2)", "add(x1, x2, k=1)",
        "x1 < x2", "x1 == x2", "x1 in x2", "x1 is x2", "x1 < x2 < x3", "x1 and x2", "x1 or x2", "not x1", "~x1",
        "lambda: x1", "lambda x1: x1", "[x1 for x1 in x2]", "{x1 for x1 in x2}", "(x1 for x1 in x2)",
        "{x1: x2 for x1 in x2}", "f'{x1}'", "f''", "'x1'", "\"x1\"", "b'x1'", "'sin'(x1)", "1j", "x1 + 2j", "-1j",
        "1e3j", "True", "False", "None", "-True", "-False", "+True", "x1 + True", "x1**True", "sin(-True)", "...",
        "x1[0]", "x1[0:1]", "x1[:]", "(x1 := 2)", "x1 if x2 else x3", "x1,", "x1, x2", "()", "[]", "{}", "[x1]", "{x1}",
        "{x1: x2}", "*x1",
        "x1 // x2", "x1 % x2", "x1 @ x2", "x1 << 2", "x1 >> 2", "x1 & x2", "x1 | x2", "x1 ^ x2", "await x1",
        "(yield x1)", "x1; x2", "x1\nx2", "x1 = 2", "import os", "del x1", "__import__('os')", "print(x1)",
        "eval('x1')", "open('x1')", "sin(x1)(x2)", "x1(x2)", "2(x1)", "(sin)(x1)(x1)", "C(x1)", "pi(x1)",
        # unknown names, wrong arity
        "y", "x", "x0", "x01", "X1", "x1a", "x_1", "e", "E", "sin", "add", "c", "x1234567890", "sinus(x1)",
        "n7(x1)", "const", "sin()", "sin(x1, x2)", "add(x1)", "add(x1, x2, x3)", "pow(x1)", "neg()", "inv(x1, 2)",
        # no text at all, or unfinished
        "", " ", "\n", "(", ")", "x1 +", "* x1", "sin(", "x1 x2", "2x1", "x1 $", "x1\0", "x1 + \ud800", "#", "1..2",
        "0777", "9" * 400, "-" + "9" * 400, "9" * 5000, "x" + "9" * 5000,
    ],
)  # fmt: skip
def test_everything_outside_the_white_list_is_refused(text):
    with pytest.raises(ExpressionError):
        MaskedTree.from_infix(text)


def test_error_says_where_and_what():
    with pytest.raises(ExpressionError, match=r"Attribute at column 6 does not belong"):
        MaskedTree.from_infix("x1 + x2.real")
    with pytest.raises(ExpressionError, match=r"add takes 2 operand\(s\), found 1"):
        MaskedTree.from_infix("add(x1)")
    with pytest.raises(ExpressionError, match="unknown name 'speed'"):
        MaskedTree.from_infix("speed*2")
    with pytest.raises(ExpressionError, match="too long"):
        MaskedTree.from_infix("x1" + " " * notation.MAX_TEXT)


# --- printing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "2.5*x1**2 + sin(x2)", "x1 - (x2 - x3)", "x1 - (x2 + x3)", "x1 + (x2 + x3)", "x1/(x2*x3)", "x1*(x2/x3)",
        "(x1*x2)**2", "-x1", "-(x1 + x2)", "-x1*x2", "x1*-x2", "(-x1)**2", "x1**-x2", "x1**x2**x3", "(x1**x2)**x3",
        "(x1**2)**3", "(-2)**x1", "pow(x1, 2)", "pow(x1, 8)", "x1**7", "neg(2)", "neg(-2)", "-neg(2)", "inv(x1)**2",
        "inv(inv(x1))", "abs(x1)", "x1 - -2", "x1**-0.5", "-2*x1", "-inf", "(-inf)**x1", "-0.0*x1", "1e-300*x1",
        "x1**0.5", "2**x1", "x1 + 1e+16",
    ],
)  # fmt: skip
def test_printed_text_has_no_needless_parentheses(text):
    assert MaskedTree.from_infix(text).to_infix() == text


@given(trees())
@settings(max_examples=500)
def test_a_skeleton_reads_back_with_its_open_constants(tree):
    again = MaskedTree.from_infix(tree.to_infix(skeleton=True))
    assert again.open_constants == tree.open_constants


@pytest.mark.parametrize("write", [MaskedTree.to_infix, MaskedTree.to_latex, MaskedTree.to_sympy, canonical])
def test_an_incomplete_tree_is_refused_everywhere(write):
    with pytest.raises(ExpressionError, match="incomplete"):
        write(MaskedTree(MaskedTree.from_infix("x1 + x2")[:2]))
