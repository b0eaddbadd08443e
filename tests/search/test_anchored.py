import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, discover
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.lab.anchor import anchor_of
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.problems.equation import Variable
from deap_vsr.search.anchored import Anchored
from deap_vsr.search.records import State
from deap_vsr.search.standing import Attack
from deap_vsr.search.vertical import vertical

BROAD = ["add", "sub", "mul", "div", "n2", "sqrt", "exp", "log", "sin", "cos", "const"]


class Counting(CallableOracle):
    """An oracle that remembers what it was asked."""

    def __init__(self, law, domains, operators=BROAD, **how):
        tree = MaskedTree.from_infix(law) if isinstance(law, str) else None
        super().__init__(law if tree is None else tree.evaluate, domains, operators, **how)
        self.asked = []

    def evaluate(self, X):
        self.asked.append(np.array(X))
        return super().evaluate(X)

    @property
    def points(self):
        return np.vstack(self.asked)


def lab_of(law, n_vars, queries=None, seed=0, domain=(0.5, 3.0), **how):
    oracle = Counting(law, [domain] * n_vars, **how)
    return Lab(oracle, Budget(evaluations=300_000, queries=queries), np.random.default_rng(seed)), oracle


def search(law, n_vars, **how):
    lab, oracle = lab_of(law, n_vars, **how)
    return vertical(lab, Anchored(FormsRegressor()), None), lab, oracle


@pytest.mark.parametrize("n_vars", [1, 2, 3, 5])
def test_a_product_of_powers_takes_its_sweeps_and_what_it_is_attacked_with(n_vars):
    law = "*".join(["1.7", *(f"x{i + 1}**2" if i % 2 else f"x{i + 1}" for i in range(n_vars))])
    found, lab, oracle = search(law, n_vars)
    assert found.stopped_by == "found"
    assert len(oracle.points) == lab.budget.queries == 3 * n_vars + 2 + 8 + 2 * n_vars, "the anchor is asked twice"


def test_before_the_attack_one_variable_differs_from_the_anchor_where_there_is_one_slot():
    found, lab, oracle = search("2.5*x1*sqrt(x2)/x3", 3)
    assert found.stopped_by == "found"
    anchor = lab.facts["anchor"]
    changed = (oracle.points[:11] != anchor).sum(axis=1)
    assert sorted(changed) == [0, 0] + [1] * 9


@pytest.mark.parametrize(
    ("law", "n_vars", "most"),
    [
        ("x1*x2 + 1.3*x3*x4", 4, 45),
        ("x1/(x2 + 0.7*x3)", 3, 40),
        ("2.1*x1*exp(-0.8*x2*x3)", 3, 45),
        ("sqrt(x1**2 + 2.3*x2**2)*x3", 3, 40),
        ("(x1 + x2)*(x3 + 1.9*x4)", 4, 60),
        ("1.2*log(1 + 0.4*x1*x2) - 0.6*x3", 3, 70),
        ("x1*(1 - cos(0.9*x2))/x3", 3, 70),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_laws_are_found_with_few_points(law, n_vars, most, seed):
    result = discover(Counting(law, [(0.5, 3.0)] * n_vars), seed=seed, max_queries=400, max_evaluations=60_000_000)
    X = np.random.default_rng(1).uniform(0.5, 3.0, (500, n_vars))
    np.testing.assert_allclose(result.tree.evaluate(X), MaskedTree.from_infix(law).evaluate(X), rtol=1e-8)
    assert result.status == "found"
    assert result.oracle_queries <= most


def test_no_point_is_asked_twice_but_the_anchor():
    _, lab, oracle = search("x1*x2 + 1.3*x3*x4", 4)
    points, counts = np.unique(oracle.points, axis=0, return_counts=True)
    twice = points[counts > 1]
    np.testing.assert_array_equal(twice, [lab.facts["anchor"]])


def test_variables_that_do_not_matter_cost_a_sweep_each():
    found, _lab, oracle = search("2.5*x1*x3", 4)
    assert found.stopped_by == "found"
    assert len(oracle.points) == 2 + 3 * 4 + 8 + 2 * 2, "attacked with two points for each variable of the formula"


def test_of_many_variables_those_that_matter_are_found_in_groups():
    found, _lab, oracle = search(lambda X: 2.5 * X[:, 7] * X[:, 91] + X[:, 55], 120)
    assert found.stopped_by == "found"
    assert len(oracle.points) < 90


def test_noise_shows_at_the_anchor_and_ends_the_search():
    found, _lab, oracle = search("x1*x2", 2, noise=0.01)
    assert found.stopped_by == "exhausted"
    assert len(oracle.points) == 2


def test_rounded_answers_are_left_to_searches_in_noise():
    found, lab, _ = search(lambda X: np.round(X[:, 0] * X[:, 1], 3), 2)
    assert found.stopped_by == "exhausted"
    assert lab.budget.queries == 2 + 2 * 3


def test_presumed_exactness_is_looked_at_before_other_searches():
    lab, _ = lab_of("x1*x2", 2)
    assert anchor_of(lab) is not None
    assert lab.repeats
    before = lab.budget.queries
    lab.begin()
    assert lab.budget.queries > before, "repeats and neighbours"
    lab.begin()
    assert lab.evidence.certain


def test_constants_that_are_still_need_rows_at_one_value_only():
    lab, _oracle = lab_of("x1*x2 + 1.3*x3", 3)
    expansion = Anchored(FormsRegressor())
    assert expansion.relevant(lab) == [0, 1, 2]
    anchor = anchor_of(lab)
    value = MaskedTree.from_infix("C*x1 + C").with_constants([anchor[1], 1.3 * anchor[2]])
    asked = lab.budget.queries
    tables = expansion.measure(State(value, (0,)), 1, 4, lab)
    assert tables is not None
    assert tables.moving() == [0]
    assert lab.budget.queries == asked + 1, "two constants, two rows, of which the sweep is one"
    np.testing.assert_allclose(tables.slots[0, :, 0], tables.grid, rtol=1e-9)


def test_slots_that_move_as_one_become_one():
    lab, _ = lab_of("(x1 + 0.3719731*x2)*x3", 3)
    expansion = Anchored(FormsRegressor())
    expansion.relevant(lab)
    anchor = anchor_of(lab)
    lab.ask(np.array([[1.1, 2.2, anchor[2]]]))
    formula = MaskedTree.from_infix("C*x1 + C*x2").with_constants([anchor[2], 0.3719731 * anchor[2]])
    tables = expansion.measure(State(formula, (0, 1)), 2, 4, lab)
    assert tables is not None
    assert len(tables.moving()) == 1
    assert sorted(tables.tree.constants) == pytest.approx(sorted([anchor[2], 0.3719731]))


def test_a_formula_that_fresh_points_refute_is_not_the_answer_and_its_points_are_kept():
    def stepped(X):
        return X[:, 0] * X[:, 1] * np.where(X[:, 0] * X[:, 1] > 2.0, 1.5, 1.0)

    for seed in range(4):
        found, _lab, _ = search(stepped, 2, seed=seed)
        assert found.stopped_by == "exhausted" or found.tree.to_infix() != "x1*x2"
        assert found.tree is not None, "the best so far"


def test_an_attack_is_made_once():
    lab, oracle = lab_of("x1*x2", 2)
    lab.ask(lab.draw(5))
    attack = Attack(MaskedTree.from_infix("x1*x2"), lab)
    attack.run()
    asked = len(oracle.points)
    attack.run()
    assert len(oracle.points) == asked


@pytest.mark.parametrize("queries", [1, 2, 5, 9, 12, 16, 20, 30])
def test_whatever_the_limit_there_is_an_answer_and_no_point_too_many(queries):
    oracle = Counting("1.7*x1*x2/x3", [(0.5, 3.0)] * 3)
    result = discover(oracle, max_queries=queries)
    assert len(oracle.points) <= queries
    assert result.tree is not None
    assert (result.status == "found") == (queries >= 20)


def test_with_fewer_points_than_an_attack_takes_a_formula_fits_only():
    result = discover(Counting("1.7*x1*x2/x3", [(0.5, 3.0)] * 3), max_queries=15)
    assert result.status == "fits"
    assert "only 4 fresh points" in result.reason


def test_whole_numbers_that_are_held_are_not_taken_for_numbers_of_the_law():
    variables = [Variable("x1", 0.5, 3.0), Variable("x2", 1, 30, "integer")]
    result = discover(Counting("x1*x2", variables), max_queries=500)
    assert result.status == "found"
    X = np.array([[1.5, 7.0], [2.5, 21.0]])
    np.testing.assert_allclose(result.tree.evaluate(X), X[:, 0] * X[:, 1], rtol=1e-9)


def test_values_without_an_answer_are_replaced():
    result = discover(Counting(lambda X: np.sqrt(X[:, 0] - 1.0) * X[:, 1], [(0.0, 3.0), (0.5, 3.0)]), max_queries=400)
    assert result.status == "found"
    X = np.array([[2.0, 1.0], [2.7, 2.0]])
    np.testing.assert_allclose(result.tree.evaluate(X), np.sqrt(X[:, 0] - 1.0) * X[:, 1], rtol=1e-9)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_answers_whose_squares_are_no_numbers_are_asked_for_in_other_units(scale):
    result = discover(Counting(lambda X: scale * X[:, 0] * X[:, 1], [(0.5, 3.0)] * 2), max_queries=200)
    assert result.status == "found"
    X = np.array([[2.0, 1.0], [2.7, 2.0]])
    np.testing.assert_allclose(result.tree.evaluate(X), scale * X[:, 0] * X[:, 1], rtol=1e-9)


def test_what_an_oracle_says_of_its_answers_is_believed_before_anything_is_swept():
    found, lab, _ = search("x1*x2", 2, tolerance=1e-6)
    assert found.stopped_by == "exhausted"
    assert lab.budget.queries <= 3, "those that tell the size of y"


def test_answers_with_standard_errors_are_no_exact_ones():
    class Told(Counting):
        def evaluate(self, X):
            return super().evaluate(X), np.full(len(X), 0.01)

    lab = Lab(Told("x1*x2", [(0.5, 3.0)] * 2), Budget(queries=100), np.random.default_rng(0))
    assert anchor_of(lab) is None
    assert lab.budget.queries == 1


def test_where_the_first_anchor_or_its_sweeps_meet_another_law_it_begins_elsewhere():
    def stepped(X):
        return np.log(1.0 + 3.0 * X[:, 0] * X[:, 1]) * np.where((X[:, 0] > 1.5) & (X[:, 0] < 1.75), 1.5, 1.0)

    oracle = CallableOracle(stepped, [(0.5, 3.0)] * 2, BROAD)
    result = discover(oracle, seed=4, max_evaluations=2_000_000)
    assert result.status == "found"
    assert result.standing.search == "anchored"
    assert result.expression == "log(1 + 3*x2*x1)"
    assert "but where x1 is from 1.5 to 1.75" in result.reason
    assert result.share > 0.1
    met = (result.data.X[:, 0] > 1.5) & (result.data.X[:, 0] < 1.75)
    assert met.sum() > 10, "of the first sweeps, or of where it ends"
    assert result.oracle_queries < 150


class Remembering:
    """Forms, and of which variable there were tables of how many values."""

    def __init__(self):
        self.asked = []

    def regress(self, task):
        (trial,) = task.draw(task.rng)
        self.asked.append((task.columns[0], len(trial.y)))
        return FormsRegressor().regress(task)


def test_of_a_variable_without_a_form_only_the_fewest_values_are_tried_while_another_has_one():
    lab, _ = lab_of(lambda X: X[:, 0] * np.floor(1.0 + 3.0 * X[:, 1]), 2, operators=["add", "mul", "const"])
    regressor = Remembering()
    vertical(lab, Anchored(regressor, passes=(("quick", (6, 9, 14)),)), None)
    assert regressor.asked[:2] == [(0, 6), (1, 6)]
    assert regressor.asked[2:5] == [(1, 6), (1, 9), (1, 14)], "x1 is free, and the slot is what x2 makes of it"


@pytest.mark.parametrize(
    ("law", "n_vars"),
    [
        ("x3 - 0.8*cos(x1**3*x2 + 1.7*x1*x2 + x2*x4)", 4),
        ("sqrt(x1)*sin(x2*(x3 - x4)**2 + 1.3)", 4),
        ("x1 + cos(x2**2*x3*x1 + 2.3*x3)/x4", 4),
        ("sin((1.21*x1 + x4*(x3 + x2)*x1**2)/exp(x5))", 5),
    ],
)
def test_a_phase_of_many_radians_is_followed_through_several_variables(law, n_vars):
    # None but the second is found before: from value to value phases may turn by hundreds of radians.
    ranges = [Variable(f"x{i + 1}", 0.2, 8.0, sampling="loguniform") for i in range(n_vars)]
    tree = MaskedTree.from_infix(law)
    result = discover(CallableOracle(tree.evaluate, ranges, BROAD), max_evaluations=20_000_000)
    assert result.status == "found"
    assert result.oracle_queries < 1000
    X = np.random.default_rng(3).uniform(0.3, 4.0, (500, n_vars))
    np.testing.assert_allclose(result.tree.evaluate(X), tree.evaluate(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_small_beside_one_answer_is_not_lost_when_all_is_fitted_again(seed):
    # Fails before: sqrt(x3*x6) and others went for rounding beside y of 1e11, and what was left was called found.
    assert discover("livermore2/Vars6/Vars6-19", seed=seed, max_evaluations=20_000_000).verdict.recovered
