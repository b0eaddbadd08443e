import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.engine import Dataset
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.leading import leading, without_logarithms
from deap_vsr.search.prune import pruned

OPERATORS = ("add", "sub", "mul", "div", "n2", "exp", "cos", "const")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(2*x1) - cos(1/x2)", ["2*x1 + (1/x2)**2"]),
        ("3/(exp(x1) - 1)", ["3/x1"]),
        ("1 - cos(x1)", ["x1**2"]),
        ("exp(x1) - exp(x2)", ["x1 - x2"]),
        ("exp(x1) - 2", []),
        ("exp(x1) + cos(x2)", []),
        ("1 - x1", []),
    ],
)
def test_what_functions_add_to_one_first(text, expected):
    assert [tree.to_infix() for tree in leading(MaskedTree.from_infix(text), OPERATORS)] == expected


def test_without_a_square_there_is_a_product():
    (tree,) = leading(MaskedTree.from_infix("1 - cos(x1)"), ("add", "sub", "mul"))
    assert tree.to_infix() == "x1*x1"
    assert list(leading(MaskedTree.from_infix("1 - cos(x1)"), ("add", "mul"))) == []


def test_in_noise_functions_that_nearly_cancel_give_way_to_their_leading_terms():
    def law(X):
        return 1.7 / (1.0 / X[:, 0] ** 2 + 1e-4 * X[:, 1])

    oracle = CallableOracle(law, [(100.0, 400.0), (1.0, 5.0)], OPERATORS, noise=10.0)
    lab = Lab(oracle, rng=np.random.default_rng(1))
    lab.begin()
    data = Dataset.of(lab.trials((0, 1), 1, 2000))
    found = reopened(MaskedTree.from_infix("0.85/(exp(0.00005*x2) - cos(1/x1))"))
    outcome = pruned(lab.fit(found, data), data, lab, lab.evidence)
    assert not {"exp", "cos"} & {node.name for node in outcome.tree}


def test_a_logarithm_of_one_and_something_small_goes_in_the_end():
    tree = MaskedTree.from_infix("2.5/log(1 + x1/x2) + log(x1) + log(x2 + 1.0)")
    found = [other.to_infix() for other in without_logarithms(tree)]
    assert found == ["2.5/(x1/x2) + log(x1) + log(x2 + 1)", "2.5/log(1 + x1/x2) + log(x1) + x2"]
