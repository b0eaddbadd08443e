"""The user's names in everything a run shows."""

import csv
import io
import json

import pytest
from rich.console import Console

from deap_vsr import CallableOracle, MaskedTree, Variable, discover
from deap_vsr.plot import plot_path, plot_slots
from deap_vsr.terminal import print_result, progress_line


def gas(X):
    return 8.314 * X[:, 0] * X[:, 1] / X[:, 2]


VARIABLES = [Variable("n", 1, 3), Variable("T", 280, 400, unit="K"), Variable("flow rate", 0.1, 2.0, unit="m3/s")]


@pytest.fixture(scope="module")
def told():
    news = []
    oracle = CallableOracle(gas, VARIABLES)
    oracle.output, oracle.unit = "p", "Pa"
    return discover(oracle, max_queries=500, progress=news.append), news


def test_formula_latex_and_sympy_have_the_names_and_the_expression_has_x1(told):
    result, _ = told
    assert result.status == "found"
    tree = MaskedTree.from_infix(result.expression)
    assert result.names.named(tree).to_infix() == result.formula
    assert {"n", "T", "flow_rate"} <= set(result.formula.replace("*", " ").replace("/", " ").split())
    assert "x1" not in result.formula + result.latex + result.sympy
    assert r"\mathrm{flow}_{\mathrm{rate}}" in result.latex
    assert "p = " in repr(result)


def test_json_has_both_forms(told):
    result, _ = told
    plain = json.loads(json.dumps(result.to_json()))
    assert plain["expression"] == result.expression
    assert plain["formula"] == result.formula
    assert plain["output"] == {"name": "p", "unit": "Pa"}
    assert plain["variables"][2] == {
        "name": "flow rate", "symbol": "flow_rate", "unit": "m3/s", "low": 0.1, "high": 2.0,
    }  # fmt: skip
    assert plain["rounds"][-1]["formula"] == result.names.named(result.rounds[-1].tree).to_infix()
    assert set(plain["rounds"][-1]["freed"]) == {"x1", "x2", "x3"}


def test_the_table_and_progress_have_the_names(told):
    result, news = told
    text = io.StringIO()
    print_result(result, Console(file=text, width=200))
    assert f"p = {result.formula}" in text.getvalue()
    assert "x1" not in text.getvalue()
    assert any("flow_rate" in progress_line(each) for each in news)


def test_pictures_have_names_and_units(told):
    result, _ = told
    titles = [axis.get_title(loc="left") for axis in plot_path(result).axes]
    assert any("free: " in title and "p = " in title for title in titles)
    assert not any("x1" in title for title in titles)
    labels = {axis.get_xlabel() for axis in plot_slots(result).axes}
    assert labels & {"T (K)", "flow rate (m3/s)"} or labels == {""}


def test_a_variable_may_be_called_y_or_sigma(tmp_path):
    log = tmp_path / "points.csv"
    variables = [Variable("y", 1, 3), Variable("sigma", 1, 3)]

    def run():
        return discover(CallableOracle(lambda X: X[:, 0] / X[:, 1], variables), max_queries=100, log=log)

    first, again = run(), run()
    assert first.formula == again.formula == "y/sigma"
    assert first.names.output == "f"
    assert again.oracle_queries == 0
    rows = list(csv.reader(log.read_text().splitlines()))
    assert rows[0] == ["y", "sigma", "y_"]
    assert all(float(row[0]) / float(row[1]) == pytest.approx(float(row[2])) for row in rows[1:])
