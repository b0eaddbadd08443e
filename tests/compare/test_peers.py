"""Other packages' methods: the same problems, limits and judge."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import ClassVar

import pytest
import sympy

from deap_vsr import MaskedTree, VsrError, discover, load_equation, peers
from deap_vsr.compare.plan import plan
from deap_vsr.peers import PEERS

LAW = "feynman-unit/I.39.22"


def found_by(method, **changed):
    if find_spec(PEERS[method].package) is None:
        pytest.skip(f"{method} is not installed")
    limits = {"time_limit": None, "max_evaluations": 3000, "max_queries": 200}
    return discover(LAW, method, **({"seed": 1} | limits | changed))


@pytest.mark.parametrize("method", ["gplearn", "pyoperon"])
def test_a_method_gets_a_sample_keeps_to_the_limits_and_meets_the_judge(method):
    result = found_by(method)
    assert (result.method, result.oracle_queries, result.settings["points"]) == (method, 200, 200)
    assert result.evaluations <= 3100
    assert result.verdict.metrics["nmse"] < 0.5
    assert result.to_json()["metrics"]["nmse"] == result.verdict.metrics["nmse"]
    assert {node.name for node in result.tree if node.arity} <= {"add", "sub", "mul", "div"}


@pytest.mark.parametrize("method", ["gplearn", "pyoperon"])
def test_the_same_seed_gives_the_same_formula(method):
    assert found_by(method, max_evaluations=1000).expression == found_by(method, max_evaluations=1000).expression


def test_every_operator_that_gplearn_can_have_is_read_back():
    pytest.importorskip("gplearn", reason="gplearn is not installed")
    law = load_equation("feynman-unit/I.6.20")
    result = discover(law, "gplearn", noise=0.01, max_evaluations=1000, max_queries=100)
    assert {node.name for node in result.tree if node.arity} <= {*law.function_set, "abs"}


def test_gplearn_s_roots_and_logarithms_are_those_of_magnitudes():
    functions = pytest.importorskip("gplearn.functions", reason="gplearn is not installed")
    program = [functions._function_map["sub"], functions._function_map["sqrt"], 0, functions._function_map["log"], 1]
    tree = MaskedTree(peers._gplearn_nodes(program)).checked()
    assert tree.to_infix() == "sqrt(abs(x1)) - log(abs(x2))"


def test_a_package_that_is_absent_is_a_clear_error_before_anything_runs(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    for method in PEERS:
        with pytest.raises(VsrError, match=rf"pip install {method}, or deap-vsr\[peers\]"):
            plan([LAW], methods=[method])


class _StandIn:
    """Takes what PySR takes, remembers it, and answers as it does: a sympy expression in the names it was given."""

    given: ClassVar[dict] = {}

    def __init__(self, **options):
        self.given.clear()
        self.given.update(options)

    def fit(self, X, y, variable_names):
        self.names = variable_names
        assert X.shape == (len(y), len(variable_names))

    def sympy(self):
        a, b, c = sympy.symbols(self.names)
        return 1.0 * a * b / c


def test_pysr_is_given_the_limits_and_its_formula_is_judged(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysr", SimpleNamespace(PySRRegressor=_StandIn))
    monkeypatch.setattr(peers.Peer, "check", lambda self: None)
    monkeypatch.setattr(peers, "version", lambda package: "0")
    result = discover(LAW, "pysr", seed=4, time_limit=7.0, max_evaluations=500, max_queries=50)
    assert result.verdict.recovered
    assert result.oracle_queries == 50
    given = _StandIn.given
    assert (given["timeout_in_seconds"], given["max_evals"]) == (7.0, 500)
    seed = given["random_state"]
    discover(LAW, "pysr", seed=4, time_limit=7.0, max_evaluations=500, max_queries=50)
    assert given["random_state"] == seed
    assert given["binary_operators"] == ["+", "-", "*", "/"]


def test_pysr_needs_julia(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: object())
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    with pytest.raises(VsrError, match="method pysr needs julia"):
        plan([LAW], methods=["pysr"])
