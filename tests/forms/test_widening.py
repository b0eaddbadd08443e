import numpy as np
import pytest

from deap_vsr import CallableOracle, discover
from deap_vsr.errors import UnknownOperatorError
from deap_vsr.forms.atoms import atoms_of
from deap_vsr.forms.stage import STAGES
from deap_vsr.forms.widening import atoms_in_noise, lean, rare, widened
from deap_vsr.tree import operators
from deap_vsr.tree.operators import named_set, normalise_function_set

SCIENCE = named_set("science")
SMALL = ("add", "mul", "tanh", "arctan", "const")


def test_science_has_twenty_operators_and_constants():
    assert len(SCIENCE) == 21
    assert set(SCIENCE) - {"const"} <= set(operators.CATALOGUE)


def test_a_set_is_named_alone_or_in_a_list():
    assert normalise_function_set("science") == SCIENCE
    assert normalise_function_set(["inv", "science"]) == ("inv", *SCIENCE)
    with pytest.raises(UnknownOperatorError, match="science"):
        normalise_function_set("alchemy")


def test_an_oracle_without_operators_has_those_of_science():
    assert CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)]).function_set == SCIENCE
    assert CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)], "science").function_set == SCIENCE


def test_small_sets_are_tried_as_they_are():
    assert lean(SMALL) == SMALL
    assert widened(STAGES, SMALL) == [(stage, SMALL) for stage in STAGES]


def test_of_many_operators_the_core_comes_first_and_every_one_is_tried():
    order = widened(STAGES, SCIENCE)
    assert order[0] == (STAGES[0], lean(SCIENCE))
    assert "tanh" not in lean(SCIENCE)
    for stage in STAGES:
        sets = [names for one, names in order if one is stage]
        assert sets[0] == lean(SCIENCE)
        assert set().union(*sets) == set(SCIENCE)


def test_operators_of_ones_own_belong_to_the_core():
    operators.register("my_bump", np.sinc, 1)
    many = (*SCIENCE, "my_bump")
    assert "my_bump" in lean(many)
    assert "my_bump" in rare(many)


def test_sums_in_noise_have_the_atoms_of_the_core():
    assert atoms_in_noise(SCIENCE) == atoms_of(lean(SCIENCE))
    assert atoms_in_noise(SMALL) == atoms_of(SMALL)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda X: X[:, 0] * np.arctan(X[:, 1]), "arctan(x2)*x1"),
        (lambda X: X[:, 0] * np.exp(-X[:, 1] / X[:, 0]), "x1*exp(-x2/x1)"),
    ],
)
def test_with_many_operators_laws_of_the_core_and_others_are_found(law, expected):
    result = discover(CallableOracle(law, [(0.5, 2.0), (0.5, 3.0)]), max_evaluations=2_000_000)
    assert result.status == "found"
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
    np.testing.assert_allclose(result.tree.evaluate(X), law(X), rtol=1e-9)
    assert len(result.expression) <= len(expected) + 4
