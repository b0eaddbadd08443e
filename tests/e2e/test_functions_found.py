"""A Python function handed to `discover`: names, workers, outputs, categories, what is asked once."""

import csv
import logging
import math
import random
import threading

import numpy as np
import pytest

import deap_vsr
from deap_vsr import Variable, VsrError, discover
from deap_vsr.lab.domains import inputs_of
from deap_vsr.lab.functions import FunctionOracle
from deap_vsr.result import Results

GAS = {"n": (1, 3), "T": (280, 400), "V": (0.1, 2)}


def gas(n, T, V):
    return 8.314 * n * T / V


def test_a_function_with_names_is_found_in_its_names():
    result = discover(gas, variables=GAS, max_queries=200)
    assert result.status == "found"
    assert set("nTV") <= set(result.formula)
    assert "outside was not asked" in result.reason


def test_limits_let_it_be_asked_outside():
    result = discover(gas, variables=GAS, max_queries=200, limits={"T": (200, 500), "V": (0.05, 4)})
    assert "inside and outside the domain" in result.reason
    with pytest.raises(VsrError, match="limits: T: found"):
        discover(gas, variables=GAS, limits={"T": (300, 500)})
    with pytest.raises(VsrError, match="limits: q is none of the variables n, T, V"):
        discover(gas, variables=GAS, limits={"q": (300, 500)})


def in_random_order(function, seed):
    """Return a function whose answers wait for each other, so that they come in another order each time."""
    order, gate = random.Random(seed), threading.Condition()

    def waiting(**row):
        with gate:
            gate.wait(order.uniform(0.0, 0.002))
        return function(**row)

    return waiting


def test_the_result_is_the_same_for_any_number_of_workers_and_any_order_of_answers():
    alone = discover(gas, variables=GAS, max_queries=100)
    for seed in (1, 2):
        many = discover(in_random_order(gas, seed), variables=GAS, max_queries=100, workers=5)
        assert many.tree == alone.tree
        assert many.oracle_queries == alone.oracle_queries
        assert [r.to_json()["rounds"][-1]["constants"] for r in (many, alone)].count(
            alone.to_json()["rounds"][-1]["constants"]
        ) == 2


def test_every_answer_is_in_the_log_when_the_run_breaks_off(tmp_path):
    log, asked = tmp_path / "points.csv", []

    def breaks(n, T, V):
        if len(asked) == 9:
            raise KeyboardInterrupt
        asked.append((n, T, V))
        return gas(n, T, V)

    first = discover(breaks, variables=GAS, max_queries=100, log=log)
    assert first.stopped_by == "interrupted"
    rows = [tuple(map(float, row[:3])) for row in list(csv.reader(log.read_text().splitlines()))[1:]]
    assert rows == asked
    later = []

    def goes_on(n, T, V):
        later.append((n, T, V))
        return gas(n, T, V)

    again = discover(goes_on, variables=GAS, max_queries=100, log=log)
    assert again.points_read == 9
    assert again.oracle_queries == len(later)
    assert not set(later) & set(asked), "no point is asked twice"
    assert again.tree == discover(gas, variables=GAS, max_queries=100).tree


def test_measurements_from_before_are_compared_with_the_answer(tmp_path):
    log = tmp_path / "points.csv"
    rows = [(n, 300.0 + n, 0.5) for n in (1.25, 1.5, 2.75)]
    text = "n,T,V,y\n" + "".join(f"{n},{T},{V},{gas(n, T, V)!r}\n" for n, T, V in rows)
    log.write_text(text)
    result = discover(gas, variables=GAS, max_queries=100, log=log)
    assert result.status == "found"
    assert "3 points of the log from before agree" in result.reason
    assert result.points_read == 3
    assert len(result.data) == 3 + result.oracle_queries
    log.write_text(text + "2.0,300.0,1.0,7.0\n")
    refuted = discover(gas, variables=GAS, max_queries=100, log=log)
    assert refuted.status == "fits"
    assert "1 of 4 points of the log from before disagree with it, the most at n=2, T=300, V=1" in refuted.reason


def test_another_run_with_the_same_log_takes_what_it_holds(tmp_path):
    log = tmp_path / "points.csv"
    first = discover(gas, variables=GAS, max_queries=100, log=log)
    other = discover(gas, variables=GAS, max_queries=100, log=log, seed=7)
    assert f"{first.oracle_queries} points of the log from before agree" in other.reason
    assert other.points_read == first.oracle_queries


def test_a_function_that_fails_here_and_there_does_not_lose_the_run():
    def fails(n, T, V):
        if V < 0.3:
            raise RuntimeError("no solution")
        return gas(n, T, V)

    result = discover(fails, variables=GAS, max_queries=300)
    assert result.status == "found"
    assert result.failures > 0


def test_settings_that_exclude_each_other_are_not_asked():
    asked = []

    def careful(n, T, V):
        asked.append(T / V)
        return gas(n, T, V)

    result = discover(careful, variables=GAS, max_queries=300, feasible=lambda row: row["T"] / row["V"] < 1000)
    assert result.status == "found"
    assert max(asked) < 1000


def test_several_outputs_share_their_points(tmp_path):
    calls, log = [], tmp_path / "both.csv"

    def both(n, T, V):
        calls.append((n, T, V))
        return {"p": gas(n, T, V), "E": 1.5 * 8.314 * n * T}

    results = discover(both, variables=GAS, outputs=["p", "E"], max_queries=100, log=log)
    assert isinstance(results, Results)
    assert {name: result.status for name, result in results.items()} == {"p": "found", "E": "found"}
    assert "V" not in results["E"].formula
    assert results["p"].names.output == "p"
    assert len(calls) == sum(result.oracle_queries for result in results.values())
    assert len(calls) - len(set(calls)) <= 1, "one point is asked again, as it shows whether there is noise"
    assert results["E"].points_read > 0
    assert log.read_text().splitlines()[0] == "n,T,V,p,E"
    n_calls = len(calls)
    again = discover(both, variables=GAS, outputs=["p", "E"], max_queries=100, log=log)
    assert len(calls) == n_calls, "all is in the log"
    assert [again[name].formula for name in again] == [results[name].formula for name in results]
    assert repr(results).count("\n") == 1
    assert set(results.to_json()) == {"p", "E"}


def test_an_oracle_with_several_outputs_is_left_as_it_is():
    oracle = FunctionOracle(
        lambda T, p: (T * p, T / p), inputs_of({"T": (1, 2), "p": (1, 3)}).variables, ["add", "mul"], outputs=["a", "b"]
    )
    results = discover(oracle, operators=["mul", "div"], max_queries=60)
    assert {name: result.status for name, result in results.items()} == {"a": "found", "b": "found"}
    assert oracle.function_set == ("add", "mul")


def test_a_category_has_a_formula_for_each_word(tmp_path):
    def length(T, material):
        return {"steel": 2.0, "wood": 5.0}[material] * T**2

    results = discover(
        length, variables={"T": (1, 3), "material": ["steel", "wood"]}, max_queries=60, log=tmp_path / "log.csv"
    )
    assert {name: result.formula for name, result in results.items()} == {
        "material=steel": "2*T**2",
        "material=wood": "5*T**2",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log-material-steel.csv", "log-material-wood.csv"]


def test_log_and_integer_variables_and_negative_ranges():
    variables = {"a": (0.001, 10, "log"), "n": (1, 9, "integer"), "z": Variable("z", -2, 2)}
    result = discover(lambda a, n, z: 3 * a * n + z, variables=variables, max_queries=200)
    assert result.status == "found"
    assert result.verdict is None
    X = np.array([[0.5, 2.0, -1.0]])
    np.testing.assert_allclose(result.tree.evaluate(X), [2.0])


def test_noise_is_stated_or_added():
    rng = np.random.default_rng(0)
    noisy = discover(lambda T: 2 * T + rng.normal(0, 0.05), variables={"T": (1, 3)}, noise_sd=0.05, max_queries=500)
    added = discover(lambda T: 2 * T, variables={"T": (1, 3)}, noise=0.05, max_queries=500)
    for result in (noisy, added):
        assert result.noise == pytest.approx(0.05, rel=0.5)
        assert result.formula in ("2*T", "T*2")


# --- what people are told -----------------------------------------------------------------


def test_a_function_without_variables_and_other_problems_are_refused_kindly():
    with pytest.raises(VsrError, match="a function needs variables"):
        discover(gas)
    with pytest.raises(VsrError, match="variables: for a function"):
        discover("feynman-unit/I.39.22", variables=GAS)
    with pytest.raises(VsrError, match="nothing is known of colour"):
        discover(gas, variables=GAS, colour="red")
    with pytest.raises(VsrError, match="outputs: found the text 'p'"):
        discover(gas, variables=GAS, outputs="p")


@pytest.mark.parametrize("table", ["points.csv", np.zeros((3, 2)), {"T": [1, 2]}, [[1, 2]]])
def test_the_owner_of_a_table_is_told_what_to_do(table):
    with pytest.raises(VsrError, match="a table cannot be asked"):
        discover(table)


@pytest.mark.parametrize(
    ("operators", "message"),
    [("add,mul", r"found the text 'add,mul', expected a list such as \['add', 'mul'\]"), ([], "nothing at all"),
     (["const"], "only const"), (["add", "blah"], "unknown operator 'blah'")],
)  # fmt: skip
def test_function_sets_that_are_text_or_empty_are_refused(operators, message):
    with pytest.raises(VsrError, match=message):
        discover(gas, variables=GAS, operators=operators)


def test_a_hint_comes_before_a_run_with_too_few_points(caplog):
    discover(gas, variables=GAS, max_queries=12)
    assert "12 points are few for 3 variable(s)" in caplog.text
    caplog.clear()
    discover(gas, variables=GAS, max_queries=40)
    assert not caplog.text


def test_verbose_shows_the_path_and_leaves_the_logger_as_it_was(capsys):
    logger = logging.getLogger("deap_vsr")
    before = logger.level, list(logger.handlers)
    discover(gas, variables=GAS, max_queries=100, verbose=True)
    shown = capsys.readouterr().err
    assert "n free: y = C1*n" in shown
    assert "found" in shown
    assert (logger.level, list(logger.handlers)) == before
    discover(gas, variables=GAS, max_queries=100)
    assert capsys.readouterr().err == ""


def test_an_operator_may_be_registered_again_with_the_same_function():
    def softplus(x):
        return math.log1p(math.exp(x))

    first = deap_vsr.register_operator("softplus_again", softplus, 1)
    assert deap_vsr.register_operator("softplus_again", softplus, 1) is first

    def cell():  # as a notebook runs a cell twice
        def bump(x):
            return math.exp(-x * x)

        return bump

    assert deap_vsr.register_operator("bump_again", cell(), 1) is deap_vsr.register_operator("bump_again", cell(), 1)
    with pytest.raises(VsrError, match="cannot register 'bump_again'"):
        deap_vsr.register_operator("bump_again", math.exp, 1)
