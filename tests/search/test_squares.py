"""Roots of squares are what they are the squares of."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, discover
from deap_vsr.lab.lab import Lab
from deap_vsr.search.squares import without_roots_of_squares

OPERATORS = ("add", "sub", "mul", "n2", "sqrt", "sin", "cos", "const")


@pytest.mark.parametrize(
    ("text", "operators", "expected"),
    [
        ("2*sqrt(x1**2 + 6*x1*x2 + 9*x2**2)", OPERATORS, "2*(x1 + 3*x2)"),
        ("cos(sqrt(4 - 4*x1 + x1**2))", OPERATORS, "cos(2 - x1)"),
        ("sqrt(x1**2 - 20*x1 + 100)", OPERATORS, "10 - x1"),
        ("sqrt(x1**2 - 4*x1 + 4)", OPERATORS, None),
        ("sqrt(x1**2 - 4*x1 + 4)", (*OPERATORS, "abs"), "abs(x1 - 2)"),
        ("sqrt(x1**2 + x2**2)", OPERATORS, None),
        ("sqrt(x1**2 + 6*x1*x2 + 9.1*x2**2)", OPERATORS, None),
        ("sqrt(x1)", OPERATORS, None),
    ],
)
def test_a_sum_stands_in_the_place_of_the_root_of_its_square(text, operators, expected):
    tree = MaskedTree.from_infix(text)
    X = np.random.default_rng(0).uniform(0.5, 5.0, (60, 2))
    lab = Lab(CallableOracle(tree.evaluate, [(0.5, 5.0)] * 2, operators))
    found = list(without_roots_of_squares(tree, X, lab))
    assert bool(found) == (expected is not None)
    for other in found:
        np.testing.assert_allclose(other.evaluate(X), tree.evaluate(X), rtol=1e-6, atol=1e-6)
    if expected is not None:
        wanted = MaskedTree.from_infix(expected)
        np.testing.assert_allclose(wanted.evaluate(X), tree.evaluate(X), rtol=1e-9)
        assert not any(node.name == "sqrt" for node in found[0])


def test_a_phase_is_written_as_the_sum_that_it_is():
    # Fails before: -cos(sqrt(22.2 - 2.05*x3 + 0.047*x3**2 + (0.0039*x3 - 0.084)*x1 + 7.9e-05*x1**2))*x2**2.
    law = MaskedTree.from_infix("x2**2*sin(0.0089*x1 + 0.217*x3)")
    ranges = [(280.0, 380.0), (1.0, 5.0), (0.5, 4.0)]
    result = discover(CallableOracle(law.evaluate, ranges, OPERATORS), max_evaluations=20_000_000)
    assert result.status == "found"
    assert not any(node.name == "sqrt" for node in result.tree)
