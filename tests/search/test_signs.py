import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.signs import Turn, symmetries, turns, with_one_branch, with_one_sign

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5*sin(0.3 + 0.7*x1)", [Turn(1, np.pi, (0,))]),
        ("x2*cos(0.3 + 0.7*x1)", [Turn(0, 2.0 * np.pi)]),
        ("2.5*tan(0.3 + 0.7*x1)", [Turn(1, np.pi)]),
        ("2.5*cos(0.7*x1)", []),
        ("2.5*exp(0.3 + 0.7*x1)", []),
        ("2.5*sin(0.3 + 0.7*x1)*cos(0.2 + x2)", [Turn(1, np.pi, (0,)), Turn(3, np.pi, (0,))]),
    ],
)
def test_constants_that_are_phases(text, expected):
    assert turns(reopened(MaskedTree.from_infix(text)), X, LAB) == expected


def test_turns_go_on_from_cell_to_cell_and_settings_begin_alike():
    j = np.arange(9)
    smooth = np.stack([np.full(9, 2.0), 0.4 + 0.9 * j, np.full(9, 0.7)], axis=1)  # C*cos(C + C*x)
    half, whole, sign = smooth.copy(), smooth.copy(), smooth.copy()
    half[1::2, 0] *= -1.0
    half[1::2, 1] -= np.pi
    whole[:, 1] -= 2.0 * np.pi * (j // 3)
    sign[2::3, 1:] *= -1.0
    half[0], half[0, 0] = smooth[0] + [0.0, 3.0 * np.pi, 0.0], -2.0
    sets, phases = [[1, 2]], [Turn(1, np.pi, (0,))]
    for row in with_one_branch(np.array([smooth, half, whole, sign]), sets, phases):
        np.testing.assert_allclose(row, smooth, atol=1e-12)


def test_without_phases_only_signs_are_followed():
    slots = np.array([[[1.0], [np.nan], [-1.2], [1.3]]])
    np.testing.assert_allclose(with_one_branch(slots, [[0]], [])[0, :, 0], [1.0, np.nan, 1.2, 1.3])
