"""Other packages' methods: the same problems, limits and judge."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import ClassVar

import pytest
import sympy

from deap_vsr import MaskedTree, VsrError, load_equation
from deap_vsr.compare import external
from deap_vsr.compare.external import ADAPTERS, discover_external
from deap_vsr.compare.plan import plan

LAW = "feynman-unit/I.39.22"


def found_by(method, **changed):
    if find_spec(ADAPTERS[method].package) is None:
        pytest.skip(f"{method} is not installed")
    limits = {"time_limit": None, "max_evaluations": 3000, "max_queries": 200}
    return discover_external(load_equation(LAW), method, **({"seed": 1, "noise": 0.0} | limits | changed))


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
    result = discover_external(
        law, "gplearn", seed=0, noise=0.01, time_limit=None, max_evaluations=1000, max_queries=100
    )
    assert {node.name for node in result.tree if node.arity} <= {*law.function_set, "abs"}


def test_gplearn_s_roots_and_logarithms_are_those_of_magnitudes():
    functions = pytest.importorskip("gplearn.functions", reason="gplearn is not installed")
    program = [functions._function_map["sub"], functions._function_map["sqrt"], 0, functions._function_map["log"], 1]
    tree = MaskedTree(external._gplearn_nodes(program)).checked()
    assert tree.to_infix() == "sqrt(abs(x1)) - log(abs(x2))"


def test_a_package_that_is_absent_is_a_clear_error_before_anything_runs(monkeypatch):
    monkeypatch.setattr(external, "find_spec", lambda name: None)
    for method in ADAPTERS:
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
    monkeypatch.setattr(external.Adapter, "check", lambda self: None)
    monkeypatch.setattr(external, "version", lambda package: "0")
    result = discover_external(
        load_equation(LAW), "pysr", seed=4, noise=0.0, time_limit=7.0, max_evaluations=500, max_queries=50
    )
    assert result.verdict.recovered
    assert result.oracle_queries == 50
    given = _StandIn.given
    assert (given["timeout_in_seconds"], given["max_evals"], given["random_state"]) == (7.0, 500, 4)
    assert given["binary_operators"] == ["+", "-", "*", "/"]


def test_pysr_needs_julia(monkeypatch):
    monkeypatch.setattr(external, "find_spec", lambda name: object())
    monkeypatch.setattr(external.shutil, "which", lambda name: None)
    with pytest.raises(VsrError, match="method pysr needs julia"):
        plan([LAW], methods=["pysr"])
