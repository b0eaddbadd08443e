from dataclasses import replace

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.engine import Dataset
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.merge import merged, with_one_coefficient
from deap_vsr.search.prune import _with_short_constants, pruned

OPERATORS = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "pow", "const")


def fitted(text):
    return reopened(MaskedTree.from_infix(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.98*exp(-0.01*x1) - -0.99", []),
        ("0.98*exp(-0.01*x1) + -0.99", ["-0.99*(1 - exp(-0.01*x1))"]),
        ("2.0*exp(-0.5*x1) + -2.01*exp(-0.6*x2)", ["-2.01*(exp(-0.6*x2) - exp(-0.5*x1))"]),
        ("1.5/x1 + 1.4", ["1.4*(1 + 1/x1)"]),
        ("3.0*sin(x1) + 30.0", []),
        ("3.0*log(x1 + 2.5) + -2.7", ["-2.7*(1 - log(x1 + 2.5))", "3*log(1 + 0.4*x1)"]),
        ("3.0*log(x1 + 2.5) + 9.0", ["3*log(1 + 0.4*x1)"]),
        ("0.5 + -1.02/(x1*x2 + 2.0)", ["1/(2 + 4/(x1*x2))"]),
        ("0.5 + -1.02/(8.0*x1 + 2.0)", ["1/(2 + 0.5/x1)"]),
        ("0.5 + -2.02/(x1 + 2.0)", []),
        ("0.5 + -1.02/(x1 + x2 + 2.0)", []),
    ],
)
def test_a_constant_less(text, expected):
    tree = fitted(text)
    assert [one.to_infix() for how in (with_one_coefficient, merged) for one in how(tree, OPERATORS)] == expected


def test_nothing_is_merged_where_the_operators_cannot_say_it():
    for how in (with_one_coefficient, merged):
        assert list(how(fitted("2.0*x1 + 2.0"), ("mul", "exp", "const"))) == []
    (tree,) = with_one_coefficient(fitted("2.0*x1 + -2.0"), ("add", "mul", "const"))
    assert "sub" not in [node.name for node in tree]


@pytest.mark.parametrize(
    ("law", "found", "skeleton"),
    [
        (lambda x: 3.0 * (1.0 - np.exp(-0.7 * x)), "3.01 + -2.98*exp(-0.69*x1)", "C*(exp(C*x1) - 1)"),
        (lambda x: 2.0 * np.log(1.0 + 0.4 * x), "2.01*log(x1 + 2.4) + -1.8", "C*log(1 + C*x1)"),
        (lambda x: 2.0 * x**1.5, "2.0*x1**1.501", "C*x1**1.5"),
        (lambda x: x**2 / (1.0 + 0.7 * x**2), "1.43 + -2.0/(x1*x1 + 1.42)", "1/(C + 1/(x1*x1))"),
    ],
)
def test_in_noise_a_formula_loses_the_constant_that_it_has_too_many(law, found, skeleton):
    lab = Lab(CallableOracle(lambda X: law(X[:, 0]), [(0.5, 5.0)], OPERATORS, noise=0.01), rng=np.random.default_rng(1))
    lab.begin()
    data = Dataset.of(lab.trials((0,), 1, 3000))
    outcome = pruned(lab.fit(fitted(found), data), data, lab, lab.evidence)
    assert outcome.tree.to_infix(skeleton=True) == skeleton


def test_of_many_coefficients_two_that_are_about_the_same_by_chance_stay_two():
    """Of four coefficients there are twelve ways for two to be the same, of two there are two."""
    text = "0.6*x1 + 0.7*exp(-x1) + 0.61*sin(x1) + -0.3*x1*x1"
    law = MaskedTree.from_infix(text)
    few = MaskedTree.from_infix("0.6*x1 + 0.605*sin(x1)")
    for tree, expected in ((law, 4), (few, 1)):
        oracle = CallableOracle(tree.evaluate, [(0.5, 5.0)], OPERATORS, noise=0.1)
        lab = Lab(oracle, rng=np.random.default_rng(1))
        lab.begin()
        data = Dataset.of(lab.trials((0,), 1, 400))
        outcome = pruned(lab.fit(reopened(tree), data), data, lab, lab.evidence)
        assert outcome.tree.n_constants == expected


def test_a_constant_that_has_run_away_is_no_short_number():
    lab = Lab(CallableOracle(lambda X: X[:, 0], [(0.5, 5.0)], OPERATORS, noise=0.01), rng=np.random.default_rng(1))
    lab.begin()
    data = Dataset.of(lab.trials((0,), 1, 50))
    outcome = lab.fit(fitted("2.0*exp(3.0*x1)"), data)
    for value in (np.inf, np.nan, 1e308):
        assert list(_with_short_constants(replace(outcome, constants=np.full_like(outcome.constants, value)))) == []


@pytest.mark.parametrize(
    "text",
    [
        "2.0*sin(0.5*x1)*cos(3.0*x2) + 2.1*cos(0.51*x1)*sin(3.0*x2)",
        "2.0*sin(0.5*x1)*cos(3.0*x2) + -2.1*cos(0.51*x1)*sin(3.0*x2)",
        "2.0*sin(0.5*x1)*cos(3.0*x2) - 2.1*cos(0.51*x1)*sin(3.0*x2)",
        "2.0*cos(0.5*x1)*cos(3.0*x2) + 2.1*sin(0.51*x1)*sin(3.0*x2)",
        "2.0*sin(0.5*x1)*sin(3.0*x2) + 2.1*cos(0.51*x1)*cos(3.0*x2)",
        "2.0*sin(0.5*x1)*sin(3.0*x2) - 2.1*cos(0.51*x1)*cos(3.0*x2)",
        "2.0*sin(0.5*x1)*sin(3.0*x2) + -2.1*cos(0.51*x1)*cos(3.0*x2)",
        "x1*cos(0.5*x1)*sin(3.0*x2) + x1*cos(3.0*x2)*sin(0.5*x1)",
        "x1*cos(0.5*x1)*sin(3.0*x2) - x1*cos(3.0*x2)*sin(0.5*x1)",
    ],
)
def test_two_products_of_waves_are_one_wave(text):
    X = np.random.default_rng(0).uniform(0.1, 0.4, (50, 2))
    waves = [tree for tree in merged(fitted(text), OPERATORS) if sum(n.name in ("sin", "cos") for n in tree) == 1]
    assert len(waves) == 1
    assert np.abs(waves[0].evaluate(X) - MaskedTree.from_infix(text).evaluate(X)).max() < 0.12


@pytest.mark.parametrize(
    "text",
    [
        "sin(0.5*x1)*cos(3.0*x2) + cos(0.6*x1)*sin(3.0*x2)",
        "sin(0.5*x1)*cos(3.0*x2) + 2.0*cos(0.5*x1)*sin(3.0*x2)",
        "x1*sin(0.5*x1)*cos(3.0*x2) + cos(0.5*x1)*sin(3.0*x2)",
        "sin(0.5*x1)*cos(3.0*x2) + sin(0.5*x1)*sin(3.0*x2)",
        "sin(0.5*x1) + cos(0.5*x1)*sin(3.0*x2)",
    ],
)
def test_other_products_are_not(text):
    assert all(sum(n.name in ("sin", "cos") for n in tree) > 1 for tree in merged(fitted(text), OPERATORS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.0*cos(4.71 + 3.0*x1)", "2*sin(3*x1)"),
        ("2.0*cos(3.0*x1 + -4.71)", "2*(-1*sin(3*x1))"),
        ("2.0*sin(3.0*x1 + 1.58)", "2*cos(3*x1)"),
        ("2.0*sin(2.0*x1 + 3.15)", "2*(-1*sin(2*x1))"),
        ("2.0*sin(3.0*x1 + 0.01)", "2*sin(3*x1)"),
        ("2.0*sin(3.0*x1 + 1.0)", None),
        ("cos(4.71 + 0.5*x1 + 3.0*x2)", "sin(0.5*x1 + 3*x2)"),
    ],
)
def test_quarters_of_a_turn_are_no_numbers(text, expected):
    X = np.random.default_rng(0).uniform(0.1, 3.0, (50, 2))
    trees = list(merged(fitted(text), OPERATORS))
    assert [tree.to_infix() for tree in trees] == ([] if expected is None else [expected])
    assert all(np.abs(tree.evaluate(X) - MaskedTree.from_infix(text).evaluate(X)).max() < 0.03 for tree in trees)
