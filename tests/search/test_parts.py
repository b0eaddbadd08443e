import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.engine import Dataset
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.parts import gather, parts_of, resolved, table_of

OPERATORS = ("add", "sub", "mul", "div", "exp", "log", "sqrt", "const")
NOISE = 0.002


def law(X):
    return 6.0 * np.log(1.0 + 0.4 * X[:, 0]) / X[:, 1]


def measured(n_points=1500):
    lab = Lab(CallableOracle(law, [(2.0, 20.0), (2.0, 8.0)], OPERATORS, noise=NOISE), rng=np.random.default_rng(2))
    lab.begin()
    lab.trials((0, 1), 1, n_points)
    return lab, Dataset.of([lab.measured()])


@pytest.mark.parametrize(
    ("text", "column", "parts"),
    [
        ("(2.0*x1 + 3.0*log(x1))*x2", 0, ["2*x1 + 3*log(x1)"]),
        ("x1*(x2*exp(2.0*x1))", 0, ["x1*exp(2*x1)"]),
        ("x1 + (x2 + (3.0*log(x1) + 4.0))", 0, ["x1 + 3*log(x1) + 4"]),
        ("2.0*x1*x2", 0, []),
        ("exp(3.0*x1 + 2.0*x2)*x1", 1, []),
        ("exp(3.0*x1/(1.0 + 2.0*x2))", 1, ["1 + 2*x2"]),
    ],
)
def test_parts_of_one_variable(text, column, parts):
    tree = MaskedTree.from_infix(text)
    gathered = MaskedTree(gather(tree, column))
    X = np.random.default_rng(0).uniform(1.0, 2.0, (5, 2))
    np.testing.assert_allclose(gathered.evaluate(X), tree.evaluate(X))
    assert [MaskedTree(gathered[place]).to_infix() for place in parts_of(gathered, column)] == parts


def test_all_answers_measure_a_part_whatever_stands_in_its_place():
    lab, data = measured()
    standing = MaskedTree.from_infix("(3.0 + 0.7*x1)/x2")
    (place,) = parts_of(standing, 0)
    trial = table_of(standing, place, 0, data, lab)
    right = 6.0 * np.log(1.0 + 0.4 * trial.X[:, 0])
    off = (trial.y - right) * np.sqrt(trial.weights)
    assert np.median(np.abs(off)) < 2.0
    assert np.abs(off).max() < 10.0  # but for how much it bends within a value's share of the range
    assert len(trial.y) > 20
    assert (1.0 / np.sqrt(trial.weights)).max() < 0.05


def test_what_stood_in_for_a_law_goes():
    lab, data = measured()
    standing = MaskedTree.from_infix("(5.7*log(x1) - 4.4 + 9.3/x1 + 0.004*x1)/x2")
    found = resolved(standing, data, lab, FormsRegressor())
    assert found.best.tree.n_constants == 2
    X = data.columns.T
    assert np.sqrt(np.mean((found.best.trees[0].evaluate(X) - law(X)) ** 2)) < 0.1 * NOISE
    before = lab.evidence.price(lab.fit(reopened(standing), data, n_starts=0), data, tied=False)
    assert found.price < before
    assert [price for price, _ in found.others] == sorted(price for price, _ in found.others)


def test_nothing_is_asked_and_a_law_stays():
    lab, data = measured()
    queries = lab.budget.queries
    found = resolved(MaskedTree.from_infix("6.0*log(1.0 + 0.4*x1)/x2"), data, lab, FormsRegressor())
    assert found.best.tree.to_infix(skeleton=True) == "C*log(1 + C*x1)/x2"
    assert lab.budget.queries == queries
    assert found.whole


def test_a_limit_on_time_or_evaluations_cuts_it_short_and_one_on_points_does_not():
    lab, data = measured()
    standing = MaskedTree.from_infix("6.0*log(1.0 + 0.4*x1)/x2")
    assert not resolved(standing, data, lab.part(names=(), evaluations=1), FormsRegressor()).whole
    found = resolved(standing, data, lab.part(names=(), queries=0), FormsRegressor())
    assert found.whole
    assert found.others, "what came up while it was looked for"
