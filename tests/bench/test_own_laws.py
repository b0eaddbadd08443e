import runpy
from pathlib import Path

import numpy as np
import pytest

from deap_vsr.tree import variable
from deap_vsr.tree.notation import parse

LAWS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "own_laws.py"))["LAWS"]


def test_there_are_twenty_of_two_to_six_variables():
    assert len({law.name for law in LAWS}) == 20
    assert {len(law.variables) for law in LAWS} == {2, 3, 4, 5, 6}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_formula_to_judge_by_is_what_the_function_computes(law):
    low, high = np.array(list(law.variables.values()), dtype=float).T
    X = np.random.default_rng(0).uniform(low, high, (50, len(low)))
    leaves = {name: variable(i) for i, name in enumerate(law.variables, 1)}
    computed = [law.function(**dict(zip(law.variables, row, strict=True))) for row in X.tolist()]
    np.testing.assert_allclose(parse(law.formula, leaves).evaluate(X), computed, rtol=1e-12)
