import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.signs import symmetries, with_one_sign

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
LAB = Lab(CallableOracle(lambda X: X[:, 0], [(0.5, 2.0)] * 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5*sin(0.7*x1)", [[0, 1]]),
        ("2.5*cos(0.7*x1)", [[1]]),
        ("(0.3 + 0.7*x1)**2*x2", [[0, 1]]),
        ("2.5*exp(0.7*x1)", []),
        ("log(x1 - 30.0)", []),
        ("x1*x2", []),
    ],
)
def test_constants_whose_signs_can_be_changed_together(text, expected):
    tree = reopened(MaskedTree.from_infix(text))
    assert symmetries(tree, X, LAB) == expected


def test_signs_go_on_from_cell_to_cell():
    smooth = np.stack([np.linspace(1.0, 3.0, 9), np.linspace(0.2, 0.9, 9), np.linspace(-1.0, 1.0, 9)], axis=1)
    jumping = smooth * np.where(np.arange(9) % 3 == 1, -1.0, 1.0)[:, None]
    slots = np.array([jumping, -jumping])
    one, other = with_one_sign(slots, [[0, 1]])
    np.testing.assert_allclose(one[:, :2], smooth[:, :2])
    np.testing.assert_allclose(other[:, :2], -smooth[:, :2])
    np.testing.assert_array_equal(one[:, 2], jumping[:, 2])
    assert not np.array_equal(slots[0], one), "what is given stays as it is"


def test_a_cell_without_values_is_passed_over():
    slots = np.array([[[1.0], [np.nan], [-1.2], [1.3]]])
    np.testing.assert_allclose(with_one_sign(slots, [[0]])[0, :, 0], [1.0, np.nan, 1.2, 1.3])


@pytest.mark.parametrize("text", ["2.0*x1 + 0.0", "2.0 + 3.0*exp(-40.0*x1)"])
def test_the_sign_of_what_does_nothing_is_none(text):
    far = X + 1.0
    assert symmetries(reopened(MaskedTree.from_infix(text)), far, LAB) == []
