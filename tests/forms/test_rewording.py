import numpy as np
import pytest
from one_variable import make_trials

from deap_vsr import MaskedTree, Trial, fit
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.rewording import reworded
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Exact
from deap_vsr.search.contract import Task

USUAL = frozenset({"add", "sub", "mul", "div", "n2", "sqrt", "pow", "exp", "log", "const"})


def words(text, constants, allowed=USUAL):
    tree = MaskedTree.from_infix(text)
    return list(reworded(tree, np.atleast_2d(np.array(constants, dtype=float)), frozenset(allowed)))


@pytest.mark.parametrize(
    ("text", "constants", "expected"),
    [
        ("C*(C + x1)**C", [2.0, 4.0, -1.5], "C*(1 + C*x1)**C"),
        ("C + C*log(C - x1**2)", [1.0, 2.0, 9.0], "C + C*log(1 + C*x1**2)"),
        ("C*sqrt(x1 + C)", [2.0, 4.0], "C*sqrt(1 + C*x1)"),
        ("x1*(C*log(x1))**2", [3.0], "x1*(C*log(x1)**2)"),
    ],
)
def test_a_function_of_a_number_and_more_can_be_said_with_a_pure_number_and_a_factor_comes_out_of_a_power(
    text, constants, expected
):
    (found,) = words(text, constants)
    tree, starts, _ = found
    assert tree.to_infix(skeleton=True) == expected
    x = np.linspace(0.5, 2.0, 12)[:, None]
    y = MaskedTree.from_infix(text).with_constants(constants).evaluate(x)
    assert fit(tree, [Trial(x, y)], starts=starts, n_starts=0).error < 1e-20


def test_powers_come_first_and_roots_do_not():
    assert [first for _, _, first in words("C*(C + x1)**C", [2.0, 4.0, -1.5])] == [True]
    assert [first for _, _, first in words("(C*x1)**2", [2.0])] == [True]
    assert [first for _, _, first in words("C*sqrt(C + x1)", [2.0, 4.0])] == [False]


def test_an_exponential_is_a_power_where_there_is_no_logarithm():
    allowed = USUAL - {"log"}
    ((tree, starts, _),) = words("C*exp(C/x1)", [2.0, 0.7], allowed)
    assert tree.to_infix(skeleton=True) == "C*C**(1/x1)"
    np.testing.assert_allclose(starts[0, 1], np.exp(0.7))
    assert words("C*exp(C/x1)", [2.0, 0.7]) == []


@pytest.mark.parametrize(("text", "constants"), [("C + C*x1", [1.0, 2.0]), ("C*sqrt(C + C*x1)", [1.0, 2.0, 3.0])])
def test_what_has_no_other_words_is_left_alone(text, constants):
    assert words(text, constants) == []


def test_both_are_returned_and_hold():
    trials = make_trials(lambda x, a, b: a * (1.0 + b * x) ** -1.7, [(7.0, 1.3), (2.0, 0.4)], n_points=20)
    function_set = ("add", "sub", "mul", "div", "pow", "const")
    task = Task(
        [], lambda rng: trials, function_set, (0,), 1, Budget(), 1e-18, np.random.default_rng(0), "quick", Exact()
    )
    texts = [candidate.tree.to_infix(skeleton=True) for candidate in FormsRegressor().regress(task)]
    assert texts[0] == "C*(1 + C*x1)**C"
    assert "C*(C + x1)**C" in texts
