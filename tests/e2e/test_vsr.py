"""The method vsr as a whole: discover() without options, its JSON, noise, options it refuses, and the judge."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from test_discover import KEYS
from typer.testing import CliRunner

from deap_vsr import (
    CallableOracle,
    EquationOracle,
    Variable,
    VsrError,
    cli,
    discover,
    load_equation,
    methods,
    register_operator,
)
from deap_vsr import result as results
from deap_vsr.judge import metrics
from deap_vsr.search import sequence
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import operators

GAS = "feynman-unit/I.39.22"
RATIONAL = ("add", "sub", "mul", "div", "const")
DOMAIN = (0.5, 3.0)


def oracle(law, variables, function_set=RATIONAL, **options):
    variables = [DOMAIN] * variables if isinstance(variables, int) else variables
    return CallableOracle(lambda X: law(X.T), variables, function_set, **options)


@pytest.fixture
def searched(monkeypatch):
    """Return a list of the searches that begin: how they expand formulas, and how many points were asked before."""
    seen = []

    def spied(lab, expansion, *rest):
        seen.append((type(expansion).__name__, lab.budget.queries))
        return vertical(lab, expansion, *rest)

    for module in (methods, sequence):
        monkeypatch.setattr(module, "vertical", spied)
    return seen


# --- the default ---------------------------------------------------------------------------


def test_vsr_is_the_default_and_its_json_tells_all():
    result = discover(GAS, max_queries=10_000)
    told = json.loads(json.dumps(result.to_json()))
    assert list(told) == KEYS
    assert (told["method"], told["expansion"], told["seed"], told["noise"]) == ("vsr", "slotwise", 0, 0.0)
    assert told["equation"] == GAS
    assert told["budget"] == {"seconds": None, "evaluations": None, "queries": 10_000}
    assert told["stopped_by"] == "done"
    assert told["recovered"] is True
    assert told["standard_errors"] == [], "there is no number in it"
    assert told["oracle_queries"] == result.oracle_queries > 0
    assert told["evaluations"] > 0
    slotwise = told["settings"]["slotwise"]
    assert slotwise["n_settings"] == 3
    assert slotwise["thrifty"] is False
    assert [sweep["n_values"] for sweep in slotwise["sweeps"]] == [12, 28, 24, 24]
    assert told["settings"]["preset"] is None


def test_the_schedule_is_the_order_in_which_variables_were_freed():
    law = oracle(lambda x: np.sin(x[0]) * x[2] + x[2] * x[3] * x[3], 4, (*RATIONAL, "sin"))
    result = discover(law, max_queries=10_000)
    assert result.stopped_by == "done"
    freed = result.rounds[-1].freed
    assert freed[0] == 2
    assert result.schedule == tuple((column,) for column in (*freed, 1)), "x2 does not matter and comes last"
    told = result.to_json()
    assert told["schedule"][0] == ["x3"]
    assert told["rounds"][-1]["freed"] == [group[0] for group in told["schedule"][:3]]
    assert told["rounds"][0]["controlled"] == ["x1", "x2", "x4"]
    assert [record["accepted"] for record in told["rounds"]] == [True] * len(told["rounds"])


@pytest.mark.parametrize(
    ("schedule", "order"), [("x3,x1,x2", (2, 0, 1)), ("numeric", (0, 1, 2)), (["x2", "x3", "x1"], (1, 2, 0))]
)
def test_a_schedule_that_is_given_is_followed(schedule, order):
    result = discover(GAS, schedule=schedule, max_queries=10_000)
    assert result.schedule == tuple((column,) for column in order)
    assert [record.freed for record in result.rounds] == [order[:1], order[:2], order]
    assert result.verdict.recovered


def test_few_queries_make_a_thrifty_search_that_keeps_to_them():
    result = discover(GAS, max_queries=400)
    assert result.settings["slotwise"]["thrifty"] is True
    assert result.stopped_by == "done"
    assert result.oracle_queries <= 400


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "name", ["trigonometric/sincosinv/6-6-10/prog_1", "feynman-unit/I.6.20b", "livermore2/Vars4/Vars4-2"]
)
def test_laws_of_the_suites_are_recovered(name, seed):
    result = discover(name, seed=seed, max_queries=20_000)
    assert result.stopped_by == "done"
    assert result.verdict.recovered
    assert result.verdict.metrics["nmse"] < 1e-20
    used = {node.name for node in result.tree if node.arity}
    assert used <= set(load_equation(name).function_set)


def bound_share(x):
    """A ligand that two others compete for: the smaller root of a quadratic."""
    total = x[0] + x[1] + x[2]
    return 0.5 * (total - np.sqrt(total**2 - 4.0 * x[0] * x[1]))


@pytest.mark.parametrize(
    ("law", "n_vars"),
    [
        (bound_share, 3),
        (lambda x: x[1] * x[0] + np.sqrt(0.5 + 1.5 * x[0] + x[1] * x[0] ** 2), 2),
        (lambda x: np.exp(1.3 * np.sin(1.7 * x[0])), 1),
    ],
)
def test_roots_and_functions_of_functions_are_found(law, n_vars):
    function_set = (*RATIONAL, "n2", "sqrt", "exp", "sin")
    result = discover(oracle(law, n_vars, function_set), max_queries=10_000)
    assert result.stopped_by == "done"
    X = np.random.default_rng(1).uniform(*DOMAIN, (200, n_vars))
    np.testing.assert_allclose(result.tree.evaluate(X), law(X.T), rtol=1e-9)


def test_the_same_seed_gives_the_same_result():
    results = [discover("feynman-unit/I.6.20b", seed=3, max_queries=20_000).to_json() for _ in range(2)]
    for result in results:
        del result["seconds"], result["peak_memory_mb"]
        for record in result["rounds"]:
            del record["seconds"]
    assert results[0] == results[1]


def test_every_point_asked_is_in_the_report():
    points = []

    def law(x):
        points.append(x.shape[1])
        return x[0] * x[1] + 0.5

    asked = oracle(law, 2)
    result = discover(asked, max_queries=5_000)
    assert result.oracle_queries == asked.queries == sum(points)
    assert result.verdict is None


# --- noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_in_noise_the_formula_comes_with_standard_errors(seed):
    result = discover("trigonometric/inv/3-2-2/prog_0", seed=seed, noise=0.1, max_queries=10_000)
    assert result.verdict.metrics["nmse"] < 1e-5
    assert result.oracle_queries <= 10_000
    assert result.noise == pytest.approx(0.1, rel=0.3)
    told = json.loads(json.dumps(result.to_json()))
    assert len(told["standard_errors"]) == told["n_constants"]
    assert all(0 < error < 0.1 for error in told["standard_errors"])
    assert told["expansion"] == "slotwise"
    assert [len(record.freed) for record in result.path] == [1, 2, 3]


def noisy_decay(noise=0.02, n_vars=3):
    functions = ("add", "sub", "mul", "div", "exp", "sin", "const")
    return oracle(lambda x: 2.0 * x[0] * np.exp(-0.5 * x[2]), n_vars, functions, noise=noise)


def test_in_noise_a_law_that_is_no_sum_is_found_and_not_a_sum_that_approximates_it():
    result = discover(noisy_decay(), max_evaluations=20_000_000)
    assert result.stopped_by == "done"
    assert sorted(abs(n.value) for n in result.tree if not n.arity and not isinstance(n.value, str)) == [0.5, 2.0]
    assert len(result.standard_errors) == 2
    assert result.noise == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize("method", ["vsr-gp", "vsr-mcts"])
def test_in_noise_any_regressor_solves_slots(method, searched):
    result = discover(noisy_decay(), method, expansion="slotwise", max_evaluations=2_000_000)
    assert (result.method, result.expansion, result.stopped_by) == (method, "slotwise", "done")
    assert [expansion for expansion, _ in searched] == ["Anchored", "Slotwise"], "joint expansion was not needed"
    X = np.random.default_rng(3).uniform(0.5, 3.0, (2000, 3))
    off = result.tree.evaluate(X) - 2.0 * X[:, 0] * np.exp(-0.5 * X[:, 2])
    assert np.mean(off**2) < 0.2 * 0.02**2
    assert result.standard_errors is not None


def test_a_short_law_in_noise_is_found_by_slots_alone(searched):
    result = discover(oracle(lambda x: 2.0 * x[0] * x[1] + 0.5, 2, noise=0.02), max_queries=8_000)
    assert result.stopped_by == "done"
    assert result.expression in ("0.5 + 2*x1*x2", "0.5 + 2*x2*x1", "2*x1*x2 + 0.5")
    assert [expansion for expansion, _ in searched] == ["Anchored", "Slotwise"], "no sum was looked for"


# A real bug: a sum that did not hold had no error, and anything took its place.
def test_in_noise_a_sum_that_is_nearly_right_is_not_given_up_for_something_worse():
    functions = ("add", "sub", "mul", "exp", "sin", "const")
    law = oracle(lambda x: np.exp(np.sin(x[0] * x[1])) + 3 * x[2] * x[3], 4, functions, noise=0.05)
    result = discover(law, max_queries=6_000, max_evaluations=300_000)
    X = np.random.default_rng(3).uniform(*DOMAIN, (2000, 4))
    truth = np.exp(np.sin(X[:, 0] * X[:, 1])) + 3 * X[:, 2] * X[:, 3]
    assert np.mean((result.tree.evaluate(X) - truth) ** 2) < 0.2 * np.var(truth)


def test_answers_that_are_sometimes_missing_are_no_noise_of_zero():
    rng = np.random.default_rng(0)

    def flaky(x):
        y = 2.0 * x[0] + 0.05 * rng.standard_normal(x.shape[1])
        y[rng.random(x.shape[1]) < 0.35] = np.nan
        return y

    result = discover(oracle(flaky, 1), max_queries=6_000)
    assert result.noise == pytest.approx(0.05, rel=0.3)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_noise_whose_square_is_no_number_is_measured_in_other_units(scale):
    result = discover(oracle(lambda x: scale * x[0], 1, noise=0.01 * scale), max_queries=6_000)
    assert result.noise == pytest.approx(0.01 * scale, rel=0.3)
    assert result.stopped_by == "done"
    X = np.array([[1.0], [2.5]])
    np.testing.assert_allclose(result.tree.evaluate(X), scale * X[:, 0], rtol=0.01)


def test_without_sums_slots_are_measured_in_noise():
    law = oracle(lambda x: 2.5 * x[0] / x[1], 2, ("mul", "div", "const"), noise=0.02)
    result = discover(law, max_evaluations=5_000_000)
    assert result.stopped_by == "done"
    assert result.sympy == "2.5*x1/x2"
    assert len(result.standard_errors) == 1


def test_points_that_are_too_few_for_a_table_in_noise_are_left_to_joint_expansion(searched):
    law = oracle(lambda x: np.sin(x[0] * x[1]) * x[1], 2, ("add", "mul", "const"), noise=0.02)
    result = discover(law, "vsr-gp", expansion="slotwise", max_queries=6_000, max_evaluations=30_000)
    assert [expansion for expansion, _ in searched] == ["Anchored", "Slotwise", "Joint"]
    assert searched[2][1] <= 6_000 - 500
    assert result.oracle_queries <= 6_000
    assert result.tree is not None


# A real bug: which variables matter is asked without a look at the limit, in noise 96 points for each that does.
def test_in_noise_many_variables_do_not_exceed_the_queries():
    asked = oracle(lambda x: x.sum(axis=0), 20, noise=0.01)
    result = discover(asked, max_queries=300)
    assert result.oracle_queries <= 300


# --- options -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "paper"}, "method vsr has no preset; vsr-gp and .* have"),
        ({"optimizer": "BFGS"}, "method vsr has no optimizer; vsr-gp and .* have"),
        ({"expansion": "joint"}, "method vsr has no expansion 'joint'; it has slotwise"),
        ({"checkpoint": "run.json"}, "method vsr has no checkpoint; vsr-gp and .* have"),
        ({"checkpoint": Path("run.json"), "resume": True}, "method vsr has no checkpoint; vsr-gp and .* have"),
        ({"schedule": "x1,x2"}, "schedule x1, x2: expected each of x1, x2, x3 once"),
    ],
)
def test_what_vsr_does_not_have_is_refused_before_anything_is_asked(options, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(EquationOracle, "evaluate", lambda self, X: pytest.fail("asked"))
    with pytest.raises(VsrError, match=message):
        discover(GAS, **options)
    assert list(tmp_path.iterdir()) == []


def test_gp_solves_slots_with_the_option_of_the_command():
    options = ["--method", "vsr-gp", "--expansion", "slotwise", "--max-evaluations", "100000", "--json"]
    run = CliRunner().invoke(cli.app, ["discover", GAS, *options])
    assert run.exit_code == 0
    told = json.loads(run.stdout)
    assert (told["method"], told["expansion"]) == ("vsr-gp", "slotwise")
    assert told["recovered"] is True
    assert "slotwise" in told["settings"]
    assert told["rounds"][-1]["controlled"] == []


def test_gp_with_slots_does_not_use_the_forms(monkeypatch):
    monkeypatch.setattr(methods.FormsRegressor, "regress", lambda self, task: pytest.fail("forms were used"))
    result = discover(GAS, "vsr-gp", expansion="slotwise", max_evaluations=100_000)
    assert result.verdict.recovered


# --- the way back to joint expansion -------------------------------------------------------


def test_what_the_forms_do_not_reach_is_left_to_joint_expansion():
    asked = oracle(lambda x: np.sin(3 * x[0]) * x[1], 2, ("add", "mul", "const"))
    result = discover(asked, max_evaluations=15_000)
    assert result.stopped_by == "evaluations"
    assert result.tree is not None
    assert result.schedule == ((1,), (0,)), "the order in which slotwise expansion got on is kept"
    assert result.oracle_queries == asked.queries
    slots = [record for record in result.rounds if record.tables]
    joint = result.rounds[len(slots) :]
    assert [record.freed for record in slots] == [(1,)] * len(slots)
    assert all(record.accepted for record in slots)
    assert joint[0].freed == (1,)
    assert (1, 0) in [record.freed for record in joint]
    assert not any(record.tables for record in joint)
    assert all(record.queries >= 200 for record in joint), "trials of forty points"


def test_a_law_of_few_whole_numbers_is_found_by_joint_expansion():
    whole = [Variable("x1", 1, 5, "integer"), Variable("x2", 1, 5, "integer")]
    result = discover(oracle(lambda x: x[0] * x[1], whole), max_evaluations=50_000)
    assert result.stopped_by == "done"
    X = np.array([[7.0, 11.0], [2.0, 0.5]])
    np.testing.assert_allclose(result.tree.evaluate(X), [77.0, 1.0], rtol=1e-9)


def test_what_is_found_is_not_searched_again(searched):
    assert discover(GAS, max_queries=10_000).stopped_by == "done"
    assert discover(GAS, max_queries=10).stopped_by == "queries"
    assert [expansion for expansion, _ in searched] == ["Anchored", "Anchored"]


# --- interrupts and errors -----------------------------------------------------------------


def test_an_interrupt_returns_the_best_so_far():
    news = []

    def progress(told):
        news.append(told.freed)
        if len(told.freed) == 3:
            raise KeyboardInterrupt

    result = discover(GAS, progress=progress, max_queries=10_000)
    assert result.stopped_by == "interrupted"
    assert result.tree is not None
    assert result.verdict is not None
    assert news[0] == (0,)


# A real bug: where y has no finite value at any common value of the new variable, the table is empty and a bare
# ValueError ("zero-size array to reduction operation") comes out of discover.
def test_a_law_without_values_in_half_of_its_domain_is_no_crash():
    asked = oracle(lambda x: np.sqrt(x[0] - x[1]) * x[2], 3, (*RATIONAL, "sqrt"))
    result = discover(asked, max_queries=5_000, max_evaluations=100_000)
    assert result.stopped_by in ("done", "queries", "evaluations")


# --- operators -----------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch):
    """Return a function that registers an operator for the time of a test."""
    monkeypatch.setattr(operators, "_ALIASES", dict(operators._ALIASES))
    return register_operator


def test_an_operator_of_one_s_own_is_found_in_a_law(own):
    def bump(x):
        return 1.0 / (1.0 + x * x)

    bump.takes_arrays = True
    own("bump_vsr", bump, 1)
    result = discover(
        oracle(lambda x: x[0] * bump(x[1]) + x[2], 3, ("add", "mul", "bump_vsr", "const")), max_queries=5_000
    )
    assert result.stopped_by == "done"
    assert "bump_vsr(x2)" in result.expression
    X = np.array([[2.0, 3.0, 4.0]])
    np.testing.assert_allclose(result.tree.evaluate(X), [4.2], rtol=1e-12)


def test_an_operator_that_takes_numbers_only_will_do(own):
    def bend(x):
        return math.log1p(math.exp(x))

    own("bend_vsr", bend, 1)
    law = np.vectorize(bend)
    result = discover(oracle(lambda x: x[1] * law(x[0]), 2, ("mul", "bend_vsr", "const")), max_queries=5_000)
    assert result.stopped_by == "done"
    assert {node.name for node in result.tree if node.arity} == {"mul", "bend_vsr"}


def test_the_operators_of_an_equation_can_be_replaced():
    result = discover(GAS, operators=["add", "mul", "const"], max_evaluations=3_000)
    assert not result.verdict.recovered
    assert {node.name for node in result.tree if node.arity} <= {"add", "mul"}


# A real bug: `operators` is silently ignored where the problem is an oracle and not an equation.
def test_the_operators_of_an_oracle_can_be_replaced():
    asked = oracle(lambda x: np.sin(x[0]) * x[1], 2, (*RATIONAL, "sin"))
    result = discover(asked, operators=RATIONAL, max_queries=2_000, max_evaluations=5_000)
    assert {node.name for node in result.tree or [] if node.arity} <= set(RATIONAL)


# --- the judge -----------------------------------------------------------------------------


@pytest.fixture
def events(monkeypatch):
    """Return a list of what happens: searches that end, the judge, and the points of the report."""
    seen = []

    def spied(function, name=None):
        def call(*arguments, **options):
            outcome = function(*arguments, **options)
            seen.append(name or type(arguments[1]).__name__)
            return outcome

        return call

    for module in (methods, sequence):
        monkeypatch.setattr(module, "vertical", spied(vertical))
    monkeypatch.setattr(results, "judge", spied(results.judge, "judge"))
    monkeypatch.setattr(metrics, "report_points", spied(metrics.report_points, "report_points"))
    return seen


@pytest.mark.parametrize(
    ("name", "options", "searches"),
    [
        (GAS, {"max_queries": 10_000}, ["Anchored"]),
        (GAS, {"operators": ["add", "const"], "max_evaluations": 3_000}, [*4 * ["Anchored"], "Slotwise", "Joint"]),
        ("trigonometric/inv/2-1-1/prog_1", {"noise": 0.1, "max_queries": 6_000}, ["Anchored", "Sums", "Slotwise"]),
        (GAS, {"method": "vsr-gp", "max_evaluations": 2_000}, ["Joint"]),
    ],
)
def test_the_judge_and_the_points_of_the_report_come_once_when_the_search_has_ended(events, name, options, searches):
    result = discover(name, **options)
    assert result.verdict is not None
    assert events == [*searches, "report_points", "judge"]


def test_one_point_is_an_answer_too():
    result = discover("trigonometric/sincosinv/6-6-10/prog_1", max_queries=1)
    assert result.status == "partial"
    assert len(result.tree) == 1


def test_without_an_answer_there_is_nothing_to_judge(events):
    result = discover("trigonometric/sincosinv/6-6-10/prog_1", max_queries=0)
    assert result.tree is None
    assert result.to_json()["recovered"] is None
    assert "judge" not in events


def test_the_search_asks_nothing_but_the_oracle(monkeypatch):
    """The hidden formula is evaluated by the oracle, point for point, and by nobody else before the judge."""
    law = load_equation(GAS)
    evaluated = []
    hidden = type(law).evaluate
    monkeypatch.setattr(type(law), "evaluate", lambda self, X: (evaluated.append(len(X)), hidden(self, X))[1])
    monkeypatch.setattr(results, "judge", lambda tree, equation: None)
    result = discover(law, max_queries=10_000)
    assert result.stopped_by == "done"
    assert sum(evaluated) == result.oracle_queries
