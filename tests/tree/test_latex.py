import re

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from strategies import MODERATE_NUMBERS, trees

from deap_vsr.tree import MaskedTree


def is_balanced(text):
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


@given(trees())
@settings(max_examples=2000)
def test_braces_and_delimiters_are_balanced(tree):
    text = tree.to_latex()
    assert is_balanced(text)
    # \left and \right nest properly, each with a delimiter behind it.
    depth = 0
    for word in re.findall(r"\\(left[(|]|right[)|])", text):
        depth += 1 if word.startswith("left") else -1
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\left") == len(re.findall(r"\\left[(|]", text))


def group(text, at):
    """Return what stands in the braces that open at `at`, and the position behind them."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[at + 1 : end], end + 1
    raise AssertionError(f"no group at {at} of {text}")


WORDS = {
    r"\left(": "(",
    r"\right)": ")",
    r"\left|": "abs(",
    r"\right|": ")",
    r"\cdot": "*",
    "^": "**",
    r"\sqrt": "sqrt",
}


def as_python(text):
    """Return LaTeX as a reader understands it, written as infix text."""
    result, at = [], 0
    while at < len(text):
        word = re.match(r"\\(?:left|right)[(|)]|\\[a-z]+|x_|.", text[at:])[0]
        at += len(word)
        if word == r"\frac":
            above, at = group(text, at)
            below, at = group(text, at)
            result.append(f"(({as_python(above)})/({as_python(below)}))")
        elif word == "x_":
            index, at = group(text, at)
            result.append(f"x{index}")
        elif word in ("^", r"\sqrt"):
            operand, at = group(text, at)
            result.append(f"{'**' if word == '^' else 'sqrt'}({as_python(operand)})")
        else:
            result.append(WORDS.get(word, word.lstrip("\\")))
    return "".join(result)


@given(trees(numbers=(*MODERATE_NUMBERS, 1.5e-20, -2.5e20), size=30))
@settings(max_examples=1500)
def test_formula_means_what_the_tree_means(tree):
    X = np.random.default_rng(1).uniform(0.1, 2.0, (4, 3))
    read = MaskedTree.from_infix(as_python(tree.to_latex()))
    for x, value in zip(X, read.evaluate(X), strict=True):
        expected, condition, largest = reference.condition(tree, x)
        if condition < 1e6 and largest < 1e100:
            assert value == pytest.approx(expected, rel=1e-12 * condition, abs=1e-280)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x1", "x_{1}"),
        ("x12", "x_{12}"),
        ("2.5", "2.5"),
        ("x1 + x2", "x_{1} + x_{2}"),
        ("x1 - (x2 - x3)", r"x_{1} - \left(x_{2} - x_{3}\right)"),
        ("x1 + (x2 + x3)", "x_{1} + x_{2} + x_{3}"),
        ("x1*x2", r"x_{1} \cdot x_{2}"),
        ("(x1 + 1)*x2", r"\left(x_{1} + 1\right) \cdot x_{2}"),
        ("(x1 + 1)/(x2*x3)", r"\frac{x_{1} + 1}{x_{2} \cdot x_{3}}"),
        ("inv(x1)", r"\frac{1}{x_{1}}"),
        ("x1**2", "x_{1}^{2}"),
        ("x1**-x2", "x_{1}^{-x_{2}}"),
        ("(x1**2)**3", r"\left(x_{1}^{2}\right)^{3}"),
        ("(x1/x2)**2", r"\left(\frac{x_{1}}{x_{2}}\right)^{2}"),
        ("(-x1)**2", r"\left(-x_{1}\right)^{2}"),
        ("sqrt(x1 + 1)", r"\sqrt{x_{1} + 1}"),
        ("sin(x1)", r"\sin\left(x_{1}\right)"),
        ("arcsin(x1)", r"\arcsin\left(x_{1}\right)"),
        ("abs(x1)", r"\left|x_{1}\right|"),
        ("x1 + -2", r"x_{1} + \left(-2\right)"),
        ("x1*-2", r"x_{1} \cdot \left(-2\right)"),
        ("-2*x1", r"-2 \cdot x_{1}"),
        ("1.5e-20", r"1.5 \cdot 10^{-20}"),
        ("1e+30*x1", r"1 \cdot 10^{30} \cdot x_{1}"),
        ("1.5e-20**x1", r"\left(1.5 \cdot 10^{-20}\right)^{x_{1}}"),
        ("inf", r"\infty"),
        ("-inf", r"-\infty"),
    ],
)
def test_formula_is_typeset(text, latex):
    assert MaskedTree.from_infix(text).to_latex() == latex


@pytest.mark.parametrize("text", ["inv(x1)**2", "inv(x1)**x2"])
def test_power_of_a_reciprocal_has_parentheses(text):
    assert MaskedTree.from_infix(text).to_latex().startswith(r"\left(\frac{1}{x_{1}}\right)^")
