import json
import re
import subprocess
import sys

import numpy as np
import pytest

from deap_vsr import CallableOracle, VsrError, discover

KEYS = [
    "equation",
    "method",
    "expansion",
    "schedule",
    "seed",
    "noise",
    "budget",
    "settings",
    "version",
    "expression",
    "formula",
    "output",
    "variables",
    "sympy",
    "latex",
    "standard_errors",
    "constants",
    "covariance",
    "n_constants",
    "metrics",
    "recovered",
    "recovered_by",
    "same_form",
    "seconds",
    "evaluations",
    "oracle_queries",
    "batches",
    "points_read",
    "failures",
    "status",
    "reason",
    "survived",
    "share",
    "outside",
    "found_by",
    "lead",
    "rivals",
    "error",
    "outliers",
    "peak_memory_mb",
    "stopped_by",
    "rounds",
]


def vsr(*arguments):
    return subprocess.run([sys.executable, "-m", "deap_vsr", *arguments], capture_output=True, text=True)


def test_the_ideal_gas_law_is_found_along_boyle_gay_lussac_avogadro():
    run = vsr("discover", "feynman-unit/I.39.22", "--schedule", "x3,x2,x1", "--json", "--max-evaluations", "300000")
    assert run.returncode == 0
    result = json.loads(run.stdout)
    assert list(result) == KEYS
    assert result["recovered"] is True
    assert result["stopped_by"] == "done"
    assert [r["freed"] for r in result["rounds"][-3:]] == [["x3"], ["x3", "x2"], ["x3", "x2", "x1"]]
    assert [r["slots"] for r in result["rounds"][-3:]] == [1, 1, 0]
    assert set(result["rounds"][0]) == {
        "freed", "controlled", "expression", "formula", "nodes", "errors", "constants", "slots", "accepted", "queries",
        "seconds",
    }  # fmt: skip


def test_the_terminal_shows_formula_path_and_cost():
    run = vsr("discover", "feynman-unit/I.39.22", "--max-evaluations", "300000")
    assert run.returncode == 0
    for words in ("the path of reduced forms", "y = ", "LaTeX", "recovered: yes", "oracle queries"):
        assert words in run.stdout


def test_the_terminal_tells_of_batches_where_their_size_was_given():
    run = vsr("discover", "feynman-unit/I.39.22", "--max-queries", "5000", "--batch", "7")
    assert re.search(r" \d+ oracle queries in \d+ batches of at most 7, ", run.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "magic"], "unknown method 'magic'"),
        (["--schedule", "x1,x2"], "expected each of x1, x2, x3 once"),
        (["--preset", "mine"], "unknown preset"),
        (["--operators", "add,sinus"], "unknown operator 'sinus'"),
        (["--optimizer", "ADAM", "--max-evaluations", "10"], "unknown optimizer 'ADAM'"),
        (["--batch", "0"], "batch is 0, expected a whole number of at least 1"),
        (["--verify", "much"], "verify is 'much', expected a number of points of at least 1, or thorough"),
        (["--verify", "0"], "verify is 0, expected a number of points of at least 1, or thorough"),
        (["--verify", "2.5"], "verify is '2.5', expected a number"),
        (["--verify", "20", "--method", "vsr-gp", "--preset", "paper"], "verify: answers of the published settings"),
    ],
)
def test_bad_options_end_with_one_line_and_exit_code_2(arguments, message):
    run = vsr("discover", "feynman-unit/I.39.22", *arguments)
    assert run.returncode == 2
    assert message in run.stderr.replace("\n", " ")
    assert "Traceback" not in run.stderr


def test_more_points_to_verify_with_leave_less_of_the_domain_in_doubt():
    results = []
    for points in ([], ["--verify", "100"], ["--verify", "thorough"]):
        run = vsr("discover", "feynman-unit/I.39.22", "--max-queries", "5000", "--json", *points)
        assert run.returncode == 0
        results.append(json.loads(run.stdout))
    assert [result["status"] for result in results] == ["found"] * 3
    by_default, hundred, thorough = results
    assert [result["survived"] for result in results] == [11, 75, 225], "a quarter of the points are outside"
    assert by_default["share"] > hundred["share"] > thorough["share"] == 3 / thorough["survived"]
    assert thorough["oracle_queries"] > hundred["oracle_queries"] > by_default["oracle_queries"]


def test_the_terminal_says_how_an_answer_stands():
    found = vsr("discover", "feynman-unit/I.39.22", "--max-queries", "5000").stdout
    assert re.search(
        r"\nfound: \d+ fresh points did not refute it.*; it may be wrong in at most about [\d.]+% of the", found
    )
    assert "\nstopped by: done; " in found
    partial = vsr("discover", "trigonometric/sincosinv/6-6-10/prog_0", "--max-queries", "30").stdout
    assert "\npartial: the points were used up before a formula held\n" in partial
    assert "\nstopped by: queries; " in partial


@pytest.mark.parametrize("verify", [0, -1, 2.5, True, "many"])
def test_points_to_verify_with_are_checked_before_anything_is_asked(verify):
    oracle = CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)])
    with pytest.raises(VsrError, match="expected a number of points of at least 1, or thorough"):
        discover(oracle, verify=verify)
    assert oracle.queries == 0


@pytest.mark.parametrize("method", ["vsr-gp", "gp"])
def test_the_same_seed_gives_the_same_result_for_runs_bounded_by_counts(method):
    results = [
        discover("trigonometric/inv/2-1-1/prog_1", method, seed=3, max_evaluations=15_000, max_queries=3_000).to_json()
        for _ in range(2)
    ]
    for result in results:
        del result["seconds"], result["peak_memory_mb"]
        for record in result["rounds"]:
            del record["seconds"]
    assert results[0] == results[1]
    assert results[0]["evaluations"] < 20_000  # a generation is not cut short


def test_a_formula_is_found_for_a_function_of_one_s_own():
    oracle = CallableOracle(
        lambda X: 3 * X[:, 0] - X[:, 0] * X[:, 1], [(1.0, 5.0), (0.5, 2.0)], ["add", "sub", "mul", "const"]
    )
    result = discover(oracle, schedule="auto", max_evaluations=300_000)
    assert result.stopped_by == "done"
    assert result.verdict is None
    point = np.array([[7.0, 0.1]])
    np.testing.assert_allclose(result.tree.evaluate(point), 3 * 7 - 0.7, rtol=1e-9)
    assert result.to_json()["recovered"] is None
    assert result.oracle_queries == oracle.queries


def test_noise_is_measured_and_taken_into_account():
    result = discover("trigonometric/inv/2-1-1/prog_1", noise=0.01, seed=1, max_evaluations=60_000, max_queries=6_000)
    assert result.noise == pytest.approx(0.01, rel=0.5)
    assert result.verdict.metrics["nmse"] < 1e-2


def test_the_paper_s_preset_runs_with_its_optimiser():
    result = discover("feynman-unit/I.39.22", "vsr-gp", preset="paper", max_evaluations=20_000)
    assert result.settings["optimizer"] == "BFGS"
    assert result.settings["rule"]["raw"] is True
    assert result.tree is not None


def test_a_problem_without_finite_values_is_a_clear_error():
    oracle = CallableOracle(lambda X: X[:, 0] * np.nan, [(0.0, 1.0)])
    with pytest.raises(VsrError, match="finite values"):
        discover(oracle, max_evaluations=100)


@pytest.mark.parametrize("method", ["vsr-gp", "gp"])
@pytest.mark.parametrize("hook", ["progress", "tick"])
def test_an_interrupt_in_the_first_round_returns_the_best_so_far(method, hook):
    calls = []

    def interrupt(*news):
        calls.append(news)
        if len(calls) == {"progress": 4, "tick": 300}[hook]:  # in the middle of a population that has been fitted
            raise KeyboardInterrupt

    result = discover("trigonometric/sincosinv/6-6-10/prog_0", method, max_evaluations=100_000, **{hook: interrupt})
    assert result.stopped_by == "interrupted"
    assert len(result.rounds) <= 1
    assert 300 <= result.evaluations < 10_000
    assert result.tree is not None  # fails at e01ddd8: the candidates of an unfinished round are lost
