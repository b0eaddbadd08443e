"""Batches: never larger than they may be, filled up with wishes, dear variables changed seldom."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from deap_vsr import CallableOracle, EquationOracle, Variable, VsrError, discover, load_equation
from deap_vsr.errors import EquationError, OutOfTimeError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Noisy
from deap_vsr.lab.lab import Lab
from deap_vsr.problems.equation import format_equation, parse_equation

RNG = np.random.default_rng(5)
POINTS = RNG.uniform(0.5, 3.0, (20, 3))
OTHERS = RNG.uniform(0.5, 3.0, (9, 3))


class Recording:
    """An oracle of x1*x2/x3, and a list of the batches that it was handed."""

    def __init__(self, *costs, **attributes):
        costs = costs or (0.0, 0.0, 0.0)
        self.variables = tuple(Variable(f"x{i + 1}", 0.5, 3.0, cost=cost) for i, cost in enumerate(costs))
        self.handed = []
        self.__dict__.update(attributes)

    def evaluate(self, X):
        self.handed.append(X.copy())
        return law(X)

    @property
    def sizes(self):
        return [len(X) for X in self.handed]

    @property
    def asked(self):
        return np.vstack(self.handed)


def law(X):
    return X[:, 0] * X[:, 1] / X[:, 2]


def laboratory(oracle, batch=None, noise=0.0, log=None, **limits):
    """Return a laboratory that knows the noise already."""
    lab = Lab(oracle, Budget(**limits), batch=batch, log=log)
    lab.know_noise(noise)
    return lab


def grid(*values):
    """Return all combinations of values, in any order."""
    X = np.stack(np.meshgrid(*values), -1).reshape(-1, len(values))
    return np.random.default_rng(0).permutation(X)


def changes(X):
    """Return how often each variable changes, (n_vars,)."""
    return (np.diff(X, axis=0) != 0).sum(axis=0)


# --- their size and number ----------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 6, 7, 20, 50])
def test_no_batch_is_larger_than_it_may_be_and_as_few_as_can_be_are_asked(size):
    oracle = Recording()
    lab = laboratory(oracle, size)
    np.testing.assert_array_equal(lab.ask(POINTS), law(POINTS))
    assert max(oracle.sizes) <= size
    assert len(oracle.sizes) == lab.batches == math.ceil(20 / size)
    np.testing.assert_array_equal(oracle.asked, POINTS)
    np.testing.assert_array_equal(lab.log.X, POINTS)
    assert lab.budget.queries == 20


def test_without_a_limit_a_question_is_a_batch_into_whatever_parts_it_is_cut():
    for oracle in (Recording(), Recording(vectorized=False)):
        lab = laboratory(oracle)
        lab.ask(POINTS)
        assert len(oracle.sizes) > 1
        lab.ask(OTHERS)
        assert lab.batches == 2


def test_points_that_are_not_asked_are_no_batch(tmp_path):
    lab = laboratory(Recording(reachable=lambda X: X[:, 0] < 4.0), log=tmp_path / "log.csv")
    lab.ask(POINTS)
    lab.ask(POINTS)
    lab.ask(POINTS + 9.0)
    lab.ask(np.empty((0, 3)))
    assert lab.batches == 1, "known, out of reach, none"
    again = laboratory(Recording(), log=tmp_path / "log.csv")
    again.ask(POINTS)
    assert (again.batches, again.log.n_read) == (0, 20), "read from the file"
    again.ask(np.vstack([POINTS, OTHERS]))
    assert again.batches == 1


def test_parts_of_a_laboratory_share_the_count():
    lab = laboratory(Recording(), 7, queries=1000)
    lab.part(0.5).part(0.5).ask(POINTS)
    lab.at(Noisy(0.1)).ask(OTHERS)
    assert lab.batches == lab.part(0.1).batches == 3 + 2


def test_an_oracle_that_takes_one_point_at_a_time_is_given_one_point_of_a_batch_at_a_time():
    oracle = Recording(vectorized=False)
    lab = laboratory(oracle, 7)
    lab.ask(POINTS)
    assert set(oracle.sizes) == {1}
    assert lab.batches == 3


def test_the_time_is_looked_at_between_batches(monkeypatch):
    oracle = Recording()
    lab = laboratory(oracle, 7)
    monkeypatch.setattr(lab.budget, "used_up", lambda: "seconds" if len(oracle.sizes) == 2 else None)
    with pytest.raises(OutOfTimeError):
        lab.ask(POINTS)
    assert oracle.sizes == [7, 7]
    assert lab.batches == 2
    np.testing.assert_array_equal(lab.log.X, POINTS[:14])


@pytest.mark.parametrize("batch", [0, -1, 2.5, True, "7"])
def test_a_batch_that_is_no_number_of_points_is_refused_before_there_is_a_log(batch, tmp_path):
    with pytest.raises(VsrError, match="expected a whole number of at least 1"):
        Lab(Recording(), log=tmp_path / "log.csv", batch=batch)
    assert not (tmp_path / "log.csv").exists()


# --- their order --------------------------------------------------------------------------


def test_a_dear_variable_changes_seldom():
    X = grid([1.0, 2.0, 3.0], [0.5, 1.0, 1.5, 2.0], [0.5, 2.5])
    oracle = Recording(0.0, 2.0, 1.0)
    laboratory(oracle, 100).ask(X)
    assert changes(oracle.asked)[1] == 3, "four values"
    assert changes(oracle.asked)[2] == 4 + 3, "two values at each of them, sorted"
    plain = Recording()
    laboratory(plain, 100).ask(X)
    np.testing.assert_array_equal(plain.asked, X, "nothing is dear")


def test_points_stay_in_their_batch():
    X = grid([1.0, 2.0, 3.0], [0.5, 1.0, 1.5, 2.0], [0.5, 2.5])
    oracle = Recording(1.0, 0.0, 0.0)
    laboratory(oracle, 10).ask(X)
    for batch, wanted in zip(oracle.handed, (X[:10], X[10:20], X[20:]), strict=True):
        assert sorted(batch.tolist()) == sorted(wanted.tolist())
        assert (np.diff(batch[:, 0]) >= 0).all()


@pytest.mark.parametrize("costs", [(3.0, 2.0, 1.0), (0.0, 0.0, 0.5), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("batch", [None, 1, 6, 50])
@pytest.mark.parametrize("vectorized", [True, False])
def test_answers_and_the_log_are_in_the_order_of_the_question(costs, batch, vectorized, tmp_path):
    lab = laboratory(Recording(*costs, vectorized=vectorized), batch, log=tmp_path / "log.csv")
    y, _ = lab.answers(POINTS)
    np.testing.assert_array_equal(y, law(POINTS))
    np.testing.assert_array_equal(lab.log.X, POINTS)
    np.testing.assert_array_equal(lab.log.y, law(POINTS))
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "log.csv", delimiter=",", skiprows=1)[:, :3], POINTS)


def test_what_has_come_of_a_batch_is_kept_when_the_rest_does_not(tmp_path):
    def fragile(point):
        if point[0] > 2.0:
            raise KeyboardInterrupt
        return law(point[None])[0]

    variables = [Variable(f"x{i}", 0.5, 3.0, cost=1.0) for i in (1, 2, 3)]
    lab = laboratory(CallableOracle(fragile, variables, vectorized=False), 20, log=tmp_path / "log.csv")
    with pytest.raises(KeyboardInterrupt):
        lab.ask(POINTS)
    come = POINTS[POINTS[:, 0] <= 2.0]
    np.testing.assert_array_equal(lab.log.X, come)
    assert lab.budget.queries == len(come) < 20


@pytest.mark.parametrize("dies_after", [3, 10, 16])
def test_a_run_that_goes_on_from_its_log_has_the_noise_and_the_order_of_an_uninterrupted_one(dies_after, tmp_path):
    variables = [Variable(f"x{i + 1}", 0.5, 3.0, cost=cost) for i, cost in enumerate((1.0, 2.0, 0.0))]

    def run(log, may_ask):
        def mortal(point):
            if oracle.queries > may_ask:
                raise KeyboardInterrupt
            return law(point[None])[0]

        oracle = CallableOracle(mortal, variables, noise=0.1, vectorized=False)
        lab = laboratory(oracle, 6, noise=0.1, log=log)
        lab.ask(POINTS)
        return lab

    whole = run(None, np.inf)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "log.csv", dies_after)
    again = run(tmp_path / "log.csv", np.inf)
    assert again.log.n_read == dies_after
    np.testing.assert_array_equal(again.log.X, whole.log.X)
    np.testing.assert_array_equal(again.log.y, whole.log.y)


def test_an_oracle_that_answers_somewhere_is_not_hopeless():
    def fragile(point):
        if point[1] > 0.5:
            raise ValueError("too hot")
        return point[0]

    variables = [Variable("x1", 0.0, 100.0, cost=1.0), (0.0, 100.0)]
    X = np.column_stack([np.arange(40.0), np.r_[0.0, np.ones(39)]])
    lab = laboratory(CallableOracle(fragile, variables, vectorized=False))
    assert np.isfinite(lab.ask(X)).sum() == 1


# --- wishes -------------------------------------------------------------------------------


def test_wishes_fill_a_batch_up_and_are_not_asked_again_when_they_are_wanted():
    oracle = Recording()
    lab = laboratory(oracle, 8)
    lab.wish(OTHERS)
    np.testing.assert_array_equal(lab.ask(POINTS), law(POINTS))
    assert oracle.sizes == [8, 8, 8]
    np.testing.assert_array_equal(oracle.handed[-1], np.vstack([POINTS[16:], OTHERS[:4]]))
    assert lab.budget.queries == len(lab.log) == 24
    np.testing.assert_array_equal(lab.ask(OTHERS[:4]), law(OTHERS[:4]))
    assert (len(oracle.handed), lab.batches, lab.budget.queries) == (3, 3, 24)


def test_wishes_are_fulfilled_once_and_first_come_first_served():
    oracle = Recording()
    lab = laboratory(oracle, 4)
    lab.wish(OTHERS[:2])
    lab.part(0.5).wish(OTHERS[[1, 0, 2, 3]])
    lab.ask(POINTS[:1])
    np.testing.assert_array_equal(oracle.handed[0], np.vstack([POINTS[:1], OTHERS[:3]]))
    lab.ask(POINTS[1:2])
    np.testing.assert_array_equal(oracle.handed[1], np.vstack([POINTS[1:2], OTHERS[3:4]]))
    lab.ask(POINTS[2:3])
    assert oracle.sizes == [4, 2, 1]


def test_what_is_known_or_asked_for_or_out_of_reach_is_no_wish():
    oracle = Recording(reachable=lambda X: X[:, 0] < 4.0)
    lab = laboratory(oracle, 10)
    lab.ask(POINTS[:10])
    lab.wish(POINTS[:12])
    lab.wish(OTHERS + 9.0)
    lab.ask(POINTS[10:13])
    np.testing.assert_array_equal(oracle.handed[1], POINTS[10:13])
    lab.ask(OTHERS[:1])
    assert oracle.sizes == [10, 3, 1]


def test_wishes_can_be_forgotten():
    oracle = Recording()
    lab = laboratory(oracle, 8)
    lab.wish(OTHERS)
    lab.part(0.5).forget_wishes()
    lab.ask(POINTS[:3])
    assert oracle.sizes == [3]


@pytest.mark.parametrize("limit", [3, 5, 20])
def test_wishes_never_exceed_the_limit_of_queries(limit):
    oracle = Recording()
    lab = laboratory(oracle, 8, queries=limit)
    lab.wish(OTHERS)
    lab.ask(POINTS[:3])
    assert lab.budget.queries == len(oracle.asked) == min(limit, 8)


def test_wishes_leave_points_that_are_kept_for_the_end():
    lab = laboratory(Recording(), 8, queries=10)
    lab.budget.kept = 5
    lab.wish(OTHERS)
    lab.ask(POINTS[:3])
    assert lab.budget.queries == 5


def test_without_a_batch_size_wishes_do_nothing():
    oracle = Recording()
    lab = laboratory(oracle)
    lab.wish(OTHERS)
    lab.ask(POINTS)
    np.testing.assert_array_equal(oracle.asked, POINTS)


def test_wishes_are_not_asked_where_the_oracle_does_not_repeat_itself():
    oracle = Recording()
    lab = laboratory(oracle, 8, noise=0.1)
    lab.wish(OTHERS)
    lab.ask(POINTS[:3])
    assert oracle.sizes == [3]


def test_wishes_are_read_from_the_log_of_a_run_that_goes_on(tmp_path):
    for asked in (8, 0):
        oracle = Recording()
        lab = laboratory(oracle, 8, log=tmp_path / "log.csv")
        lab.wish(OTHERS)
        lab.ask(POINTS[:3])
        assert sum(oracle.sizes) == asked
        np.testing.assert_array_equal(lab.log.X, np.vstack([POINTS[:3], OTHERS[:5]]))
        assert lab.budget.queries == 8


# --- runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [(0.0, 0.0, 0.0), (1.0, 5.0, 2.0)])
def test_a_law_is_found_the_same_whatever_the_size_of_batches(costs):
    results, oracles = [], []
    for batch in (None, 1, 7):
        oracles.append(Recording(*costs))
        results.append(discover(oracles[-1], batch=batch, max_queries=3_000, max_evaluations=100_000))
    assert {result.expression for result in results} == {results[0].expression}
    assert {result.status for result in results} == {"found"}
    assert [result.oracle_queries for result in results] == [len(oracle.asked) for oracle in oracles]
    free, single, seven = results
    assert free.oracle_queries == single.oracle_queries <= seven.oracle_queries, "room is filled up with wishes"
    assert free.batches < seven.batches < single.batches == single.oracle_queries
    assert seven.batches == len(oracles[2].sizes)
    assert max(oracles[2].sizes) == 7


def test_a_result_tells_of_its_batches_where_their_size_was_given():
    oracle = Recording()
    result = discover(oracle, batch=7, max_queries=3_000)
    assert result.to_json()["batches"] == result.batches == len(oracle.sizes)
    assert result.to_json()["settings"]["batch"] == 7
    assert f"{result.oracle_queries} points in {result.batches} batches of at most 7, " in repr(result)
    assert "batches" not in repr(discover(Recording(), max_queries=3_000))


# --- what changing a variable costs, in equation files ------------------------------------


def test_costs_are_written_where_there_are_some_and_read_back():
    equation = load_equation("feynman-unit/I.39.22")
    assert "cost" not in format_equation(equation)
    dear = replace(equation, variables=(replace(equation.variables[0], cost=2.5), *equation.variables[1:]))
    text = format_equation(dear)
    assert text.count('"cost": 2.5') == text.count("cost") == 1
    assert parse_equation(text) == dear
    assert EquationOracle(dear).variables[0].cost == 2.5


@pytest.mark.parametrize("cost", [-1, "dear", None, True, "inf", [1]])
def test_a_cost_that_is_none_is_refused_with_file_and_field(cost):
    fields = json.loads(format_equation(load_equation("feynman-unit/I.39.22")))
    fields["variables"][1]["cost"] = cost
    with pytest.raises(EquationError, match=r"law\.json: variables\[1\]\.cost.*expected a finite number >= 0"):
        parse_equation(json.dumps(fields), "law.json")


@pytest.mark.parametrize("cost", [-0.5, math.inf, math.nan])
def test_a_variable_of_such_a_cost_cannot_be_made(cost):
    with pytest.raises(EquationError, match=r"variable x1: cost.*expected a finite number >= 0"):
        Variable("x1", 0.0, 1.0, cost=cost)
