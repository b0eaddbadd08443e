"""Methods of one's own behind `discover` and in comparisons."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deap_vsr import CallableOracle, Variable, VsrError, discover
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.methods import METHODS, OURS, Method, Options, method_of
from deap_vsr.search.records import Found
from deap_vsr.tree import MaskedTree

EXAMPLES = Path(__file__).parents[2] / "examples"


def oracle():
    return CallableOracle(lambda X: 2.0 * X[:, 0] * X[:, 1], [(1, 3)] * 2, ["add", "mul", "const"])


@pytest.mark.parametrize("name", ["neural-vsr", "gp-like", "vsr"])
@pytest.mark.parametrize("vertical", [True, False])
def test_a_method_is_vertical_because_it_says_so_and_not_by_its_name(name, vertical):
    expansions = ("joint",) if vertical else ()
    method = Method(name, lambda options: GpRegressor(), vertical=vertical, expansions=expansions)
    result = discover(oracle(), method, max_evaluations=20_000)
    assert result.method == name
    assert result.stopped_by == "done"
    assert result.schedule == (((0,), (1,)) if vertical else ((0, 1),))
    assert [record.freed for record in result.path] == ([(0,), (0, 1)] if vertical else [(0, 1)])


def test_a_bare_regressor_is_a_method():
    result = discover(oracle(), GpRegressor(), max_evaluations=20_000)
    assert (result.method, result.expansion, result.stopped_by) == ("GpRegressor", "joint", "done")
    slotwise = discover(oracle(), GpRegressor(), expansion="slotwise", max_evaluations=20_000)
    assert (slotwise.expansion, slotwise.stopped_by) == ("slotwise", "done")


def test_options_that_a_method_does_not_take_are_refused():
    method = Method("mine", lambda options: GpRegressor(), expansions=("slotwise",))
    for options, message in (
        ({"expansion": "joint"}, "method mine has no expansion 'joint'; it has slotwise"),
        ({"preset": "paper"}, "method mine has no preset"),
        ({"optimizer": "BFGS"}, "method mine has no optimizer"),
        ({"grammar": "coefficients"}, "method mine has no grammar; vsr-mcts and mcts have"),
        ({"checkpoint": "F"}, "method mine has no checkpoint"),
    ):
        with pytest.raises(VsrError, match=message):
            method.check(Options(**options))


def test_a_method_that_needs_no_round_of_ours_is_given_the_laboratory():
    class Guess:
        def check(self):
            pass

        def __call__(self, lab):
            lab.trials(range(lab.n_vars), 1, 7)
            return Found(MaskedTree.from_infix("2*x1*x2"), [], [], "found", 0.0), {"guesses": 1}

    result = discover(oracle(), Method("guess", vertical=False, expansions=(), search=Guess()))
    assert (result.expression, result.oracle_queries, result.settings) == ("2*x1*x2", 7, {"guesses": 1})


def test_an_oracle_needs_variables_and_evaluate_only():
    class Bare:
        variables = (Variable("x1", 1.0, 3.0, "uniform", "positive", "a"), Variable("x2", 1.0, 3.0, "uniform"))

        def evaluate(self, X):
            return X[:, 0] + X[:, 1]

    result = discover(Bare())
    assert sorted(result.expression) == sorted("x1 + x2")
    assert result.stopped_by == "done"


def test_a_method_of_a_module_is_found_beside_the_script(monkeypatch, tmp_path):
    (tmp_path / "my_methods.py").write_text(
        "from deap_vsr.gp.regressor import GpRegressor\n"
        "from deap_vsr.methods import Method\n"
        "METHOD = Method('mine', lambda options: GpRegressor())\n"
    )
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    assert method_of("my_methods:METHOD").name == "my_methods:METHOD"
    assert isinstance(method_of("my_methods:GpRegressor").make(Options()), GpRegressor)
    assert sys.path == path
    for name, message in (
        ("my_methods:NONE", "has no attribute 'NONE'"),
        ("no_such_module:METHOD", "No module named"),
        ("magic", "unknown method 'magic'; known are vsr, vsr-gp"),
    ):
        with pytest.raises(VsrError, match=message):
            method_of(name)


def test_a_method_of_one_s_own_is_compared_with_ours(tmp_path):
    command = [sys.executable, "-m", "deap_vsr", "compare", "trigonometric/inv/2-1-1/prog_[0-1].json", "--methods"]
    command += ["own_method:METHOD,vsr", "--max-evaluations", "5000", "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()]
    assert {row["method"] for row in rows} == {"own_method:METHOD", "vsr"}
    assert all(row["status"] == "done" and row["recovered"] for row in rows)


def test_other_packages_are_methods_as_ours_are():
    policies = {prefix + name for prefix in ("", "vsr-") for name in ("dsr", "pqt", "vpg", "gpmeld")}
    assert set(METHODS) - set(OURS) == {"gplearn", "pyoperon", "pysr"} | policies
    assert all(METHODS[name].search is None and METHODS[name].make is not None for name in OURS)
