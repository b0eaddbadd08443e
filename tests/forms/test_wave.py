"""Waves whose phase has two terms, and waves with an atom beside."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, discover
from deap_vsr.forms.table import Table, Target
from deap_vsr.forms.wave import waves_of_two_terms

OPERATORS = ("add", "sub", "mul", "div", "n2", "sqrt", "sin", "cos", "const")


def found(law, operators=OPERATORS):
    tree = MaskedTree.from_infix(law)
    result = discover(CallableOracle(tree.evaluate, [(0.2, 6.0)], operators), max_evaluations=30_000_000)
    X = np.linspace(0.3, 5.9, 300)[:, None]
    off = np.max(np.abs(result.tree.evaluate(X) - tree.evaluate(X)))
    return result, off


@pytest.mark.parametrize(
    "law",
    [
        "2.1*sin(1.3*x1 + 0.7*x1**2) - 0.3",
        "1.7*cos(3.3*x1 - 0.7*x1**2 + 0.3)",
        "cos(2.3*sqrt(x1) + 1.9*x1 + 0.4) + 1.5",
        "2.1*sin(1.3*x1 + 0.7) - 0.6*x1",
        "0.9*sin(2.6*x1 + 0.7) + 1.4/x1 - 0.8",
    ],
)
def test_it_is_found(law):
    result, off = found(law)
    assert result.status == "found"
    assert off < 1e-9


@pytest.mark.parametrize("wave", ["sin", "cos"])
def test_one_of_the_two_functions_is_enough(wave):
    result, off = found("sin(1.3*x1 + 0.7*x1**2)", ("add", "sub", "mul", "n2", wave, "const"))
    assert result.status == "found"
    assert off < 1e-9


@pytest.mark.parametrize(("count", "steps"), [(8, 0), (9, 10)])
def test_of_few_values_nothing_is_proposed(count, steps):
    x = np.linspace(0.5, 5.0, count)[None]
    table = Table(
        x, np.sin(x + 0.3 * x**2), np.full_like(x, 1e-10), ("add", "mul", "n2", "sqrt", "inv", "sin", "const")
    )
    assert len(list(waves_of_two_terms(Target.plain(table)))) == steps
