from pathlib import Path

import numpy as np
import pytest

from deap_vsr import CallableOracle, VsrError, discover
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import View
from deap_vsr.problems.equation import Variable
from deap_vsr.search.finish import wider

GAS = "feynman-unit/I.39.22"
USUAL = ["add", "sub", "mul", "div", "exp", "sqrt", "const"]


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("method", ["vsr", "vsr-gp", "gp"])
@pytest.mark.parametrize("limit", [0, 5, 20, 50, 200, 700])
def test_no_point_beyond_the_limit_is_asked(method, limit, noise):
    result = discover(GAS, method, max_queries=limit, max_evaluations=20_000, noise=noise)
    assert result.oracle_queries <= limit
    assert result.stopped_by in ("queries", "done", "evaluations", "exhausted")


def test_the_order_is_looked_for_within_the_limit_too():
    assert discover(GAS, "vsr-gp", schedule="auto", max_queries=20).oracle_queries <= 20


def test_a_laboratory_asks_up_to_its_limit_and_nothing_beyond():
    asked = CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)])
    lab = Lab(asked, Budget(queries=3))
    lab.ask(np.zeros((3, 1)))
    with pytest.raises(OutOfQueriesError, match="1 points are wanted, 0 may be asked"):
        lab.ask(np.zeros((1, 1)))
    assert asked.queries == lab.budget.queries == 3


def test_a_view_is_the_other_oracle_but_for_what_was_changed():
    asked = CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)], USUAL)
    view = View(asked, function_set=("add",))
    assert view.function_set == ("add",)
    assert view.variables is asked.variables
    view.evaluate(np.zeros((2, 1)))
    assert asked.queries == 2


@pytest.mark.parametrize("scale", [1e307, 1e150, 1e-150, 1e-200])
def test_laws_beyond_the_squares_of_floats_are_found_with_one_number_in_front(scale):
    result = discover(
        CallableOracle(lambda X: scale * X[:, 0] * X[:, 1] / X[:, 2], [(1.0, 4.0)] * 3, USUAL), time_limit=20
    )
    X = np.random.default_rng(3).uniform(1, 4, (20, 3))
    np.testing.assert_allclose(result.tree.evaluate(X), scale * X[:, 0] * X[:, 1] / X[:, 2], rtol=1e-9)
    assert sum(not node.arity and not isinstance(node.value, str) for node in result.tree) == 1


def test_usual_values_are_not_scaled():
    lab = Lab(CallableOracle(lambda X: X[:, 0], [(1.0, 2.0)], USUAL))
    lab.begin()
    assert lab.scale == 1.0


@pytest.mark.parametrize(
    "law", [lambda X: np.maximum(X[:, 0] - 0.5, 0) * X[:, 1], lambda X: np.floor(3 * X[:, 0]) * X[:, 1]]
)
def test_slots_that_are_nothing_at_a_setting_are_no_error(law):
    result = discover(CallableOracle(law, [(0.0, 1.0)] * 2, USUAL), max_evaluations=200_000, max_queries=3_000)
    assert result.stopped_by in ("evaluations", "queries", "exhausted")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "at least 0"),
        ({"time_limit": -1.0}, "at least 0"),
        ({"max_queries": -5}, "at least 0"),
        ({"batch": 0}, "batch is 0, expected a whole number of at least 1"),
        ({"batch": 2.5}, "batch is 2.5, expected a whole number of at least 1"),
        ({"method": "gp", "schedule": "x1,x2,x3"}, "it has no schedule"),
        ({"operators": ["const"]}, "only const"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(VsrError, match=message):
        discover(GAS, **options)


def test_a_problem_is_a_name_a_path_an_equation_or_an_oracle():
    with pytest.raises(VsrError, match="not a int"):
        discover(3)
    with pytest.raises(VsrError, match="noise is for equation files"):
        discover(CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)]), noise=0.1)
    path = Path(__file__).parents[2] / "data" / "feynman-unit" / "I.39.22.json"
    assert discover(path, max_queries=2_000).verdict.recovered


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("method", ["vsr", "vsr-gp", "gp", "mcts", "vsr-mcts"])
@pytest.mark.parametrize("limit", [1, 100, 3000])
def test_evaluations_are_kept_to_their_limit(method, limit, noise):
    # Fails at 95877ac: a limit of 1 gave 202 to 455 evaluations, and vsr-mcts never ended. Beyond 5 % the last
    # formula is verified in each of five trials; in noise the terms of a sum are selected at once.
    result = discover("trigonometric/inv/3-2-2/prog_0", method, max_evaluations=limit, noise=noise)
    assert result.evaluations <= max(1.05 * limit, limit + (300 if method == "vsr" else 130))


def test_a_part_of_a_budget_is_something_however_small():
    part = Budget(evaluations=1, queries=10).part(0.25)
    assert (part.limits["evaluations"], part.limits["queries"]) == (1, 2)
    assert Budget(evaluations=0).part(0.5).limits["evaluations"] == 0


@pytest.mark.parametrize("method", ["vsr", "gp", "vsr-gp", "mcts", "vsr-mcts"])
def test_without_an_operator_variables_and_constants_are_what_can_be_said(method):
    # Fails at 95877ac: IndexError of DEAP's generator.
    oracle = CallableOracle(lambda X: X[:, 1], [(1.0, 2.0), (1.0, 2.0)], ["const"])
    assert discover(oracle, method, max_evaluations=500).expression == "x2"


@pytest.mark.parametrize("method", ["vsr", "gp", "vsr-gp", "mcts", "vsr-mcts"])
def test_the_largest_numbers_are_no_error_and_nothing_is_warned_of(method):
    # Fails at 95877ac: OverflowError, or a warning of numpy's (an error in these tests).
    oracle = CallableOracle(lambda X: 1.5e308 * np.sin(X[:, 0]) + X[:, 1], [(1.0, 2.0)] * 2, USUAL)
    assert discover(oracle, method, max_evaluations=500, max_queries=500).status in ("found", "fits", "partial")


def test_a_domain_that_cannot_be_widened_is_left_as_it_is():
    # Fails at 95877ac: EquationError of a domain that nobody gave.
    wide = Variable("x1", 1e-300, 1e7, "loguniform", "both")
    assert wider(wide, (-1e7, 1e7)).low > 0
    assert wide.with_range(0.0, 1e7) is wide
    assert wide.with_range(1.0, 2.0).low == 1.0


def test_answers_that_are_missing_now_and_then_are_no_noise():
    rng = np.random.default_rng(3)

    def law(X):
        return np.where(rng.uniform(size=len(X)) < 0.02, np.nan, 2.5 * X[:, 0] * X[:, 1] / (X[:, 2] + 0.7))

    result = discover(CallableOracle(law, [(1.0, 4.0)] * 3, USUAL), max_queries=5_000, max_evaluations=400_000)
    assert (result.status, result.noise) == ("found", 0.0)
    x = np.array([[1.5, 2.5, 3.5]])
    np.testing.assert_allclose(result.predict(x), 2.5 * 1.5 * 2.5 / 4.2, rtol=1e-9)
