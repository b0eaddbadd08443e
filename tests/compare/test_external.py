"""Other packages' methods: the same problems, limits and judge."""

from importlib.util import find_spec

import pytest

from deap_vsr import VsrError, load_equation
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
def test_a_method_gets_a_table_keeps_to_the_limits_and_meets_the_judge(method):
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
    assert {node.name for node in result.tree if node.arity} <= set(law.function_set)


def test_a_package_that_is_absent_is_a_clear_error_before_anything_runs(monkeypatch):
    monkeypatch.setattr(external, "find_spec", lambda name: None)
    for method in ADAPTERS:
        with pytest.raises(VsrError, match=rf"pip install {method}, or deap-vsr\[peers\]"):
            plan([LAW], methods=[method])


def test_pysr_needs_julia(monkeypatch):
    monkeypatch.setattr(external, "find_spec", lambda name: object())
    monkeypatch.setattr(external.shutil, "which", lambda name: None)
    with pytest.raises(VsrError, match="method pysr needs julia"):
        plan([LAW], methods=["pysr"])
