"""Benchmarks with an oracle of their own, tried on stand-ins that keep their interfaces."""

import ast
import json
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from deap_vsr import VsrError, cli, discover
from deap_vsr.adapters import entry_of
from deap_vsr.adapters.entry import GlobalStream, RoundsOracle
from deap_vsr.adapters.srsci import NOISE_KINDS
from deap_vsr.errors import OracleError, OutOfQueriesError
from deap_vsr.problems.equation import Variable

HERE = Path(__file__).parent
SRSCI, NEWTONBENCH = (f"{name}:{HERE / name}" for name in ("srsci", "newtonbench"))


def vsr(monkeypatch, capsys, *arguments):
    """Return the exit code of a command, its output and what it says beside."""
    monkeypatch.setattr(sys, "argv", ["vsr", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as leaving:
        code = leaving.code or 0
    return code, *capsys.readouterr()


# --- SRSci --------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["sine.in", "rows.in"])
def test_an_evaluator_is_asked_as_it_takes_points_whether_rows_or_columns(problem):
    oracle = entry_of(SRSCI, problem, {}).oracle
    assert [(v.name, v.low, v.high) for v in oracle.variables] == [("x1", 0.1, 10.0), ("x2", 0.1, 10.0)]
    assert "sin" in oracle.function_set
    for n in (1, 2, 3):  # also as many points as there are variables
        X = np.linspace(0.2, 9.0, 2 * n).reshape(n, 2)
        np.testing.assert_allclose(oracle.evaluate(X), 0.1 * X[:, 0] + np.sin(X[:, 1]))


def test_the_answer_is_written_in_preorder_as_the_protocol_wants_it(monkeypatch, capsys, tmp_path):
    code, out, _ = vsr(
        monkeypatch, capsys, "discover", "sine.in", "--adapter", SRSCI, "--max-evaluations", 100_000, "--out", tmp_path
    )
    assert code == 0
    assert "found" in out
    tokens = ast.literal_eval((tmp_path / "sine.out").read_text())
    assert sorted(tokens) == sorted([
        ("add", "binary"), ("mul", "binary"), ("0.1", "const"), ("X_1", "var"), ("sin", "unary"), ("X_2", "var"),
    ])  # fmt: skip
    assert "srsci: points to see how it is asked 3" in out


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_its_noise_of_every_kind_comes_from_a_seed_and_leaves_numpy_s_stream_alone(kind):
    X = np.full((200, 2), 0.5)
    before = np.random.get_state()[1].copy()
    one, again, other = (entry_of(SRSCI, "sine.in", {}, 0.3, kind, seed).oracle.evaluate(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert 0.1 < np.std(one) < 0.8


def test_domains_are_the_user_s_where_they_are_given():
    entry = entry_of(SRSCI, "ratio.in", {"x2": Variable("x2", 1, 5)})
    assert [v.bounds for v in entry.oracle.variables] == [(0.1, 10.0), (1, 5), (0.1, 10.0)]
    assert discover(entry.oracle, max_evaluations=100_000).status == "found"


# --- NewtonBench --------------------------------------------------------------------------


def test_an_experiment_has_the_names_and_ranges_in_which_answers_are_examined():
    entry = entry_of(NEWTONBENCH, "m0_square/easy/v0", {})
    assert [(v.name, v.low, v.high, v.sampling) for v in entry.oracle.variables] == [
        ("charge", 1.0, 1000.0, "loguniform"),
        ("size", 1.0, 10.0, "loguniform"),
    ]
    assert (entry.batch, entry.max_queries) == (20, 200)
    np.testing.assert_allclose(entry.oracle.evaluate(np.array([[10.0, 2.0]])), [8.0])


def test_a_law_is_found_within_its_rounds_and_written_as_its_function(monkeypatch, capsys, tmp_path):
    arguments = ("discover", "m0_square/easy/v0", "--adapter", NEWTONBENCH, "--max-evaluations", 100_000)
    code, out, _ = vsr(monkeypatch, capsys, *arguments, "--out", tmp_path, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["status"] == "found"
    assert result["oracle_queries"] <= 200
    figures = result["adapter"]
    assert figures["exact"] == 1.0
    assert figures["rounds"] <= 10
    assert figures["RMSLE"] < 1e-9
    law = runpy.run_path(str(tmp_path / "discovered_law.py"))["discovered_law"]
    assert law(charge=10.0, size=2.0) == pytest.approx(8.0)
    assert "def discovered_law(charge, size):" in (tmp_path / "discovered_law.py").read_text()


def test_rounds_have_an_end_and_the_answer_is_what_there_is():
    entry = entry_of(NEWTONBENCH, "m0_square/hard/v0", {}, noise=0.1)
    entry.oracle.most_rounds = 2
    result = discover(entry.oracle, batch=entry.batch, max_evaluations=20_000)
    assert entry.oracle.rounds == 2
    assert result.oracle_queries <= 40
    assert result.status != "found"
    assert entry.figures(result)["exact"] == 0.0


def test_noise_is_a_share_of_the_answer_and_comes_from_a_seed():
    X = np.full((20, 2), 2.0)
    one, again = (entry_of(NEWTONBENCH, "m0_square/easy/v0", {}, 0.1, seed=3).oracle.evaluate(X) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert 0.02 < np.std(one) / 1.6 < 0.3


def test_too_many_points_in_a_round_and_rounds_beyond_the_last_are_refused():
    oracle = RoundsOracle(lambda X: X[:, 0], [Variable("x1", 0, 1)], ["add"], points=2, rounds=1)
    with pytest.raises(OracleError, match="3 points in one round, expected at most 2"):
        oracle.evaluate(np.zeros((3, 1)))
    oracle.evaluate(np.zeros((2, 1)))
    with pytest.raises(OutOfQueriesError, match="the 1 rounds are used up"):
        oracle.evaluate(np.zeros((1, 1)))


# --- both ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapter", "problem", "more", "message"),
    [
        ("srsci", "sine.in", {}, "expected srsci:FOLDER or newtonbench:FOLDER"),
        ("feynman:folder", "sine.in", {}, "expected srsci:FOLDER or newtonbench:FOLDER"),
        ("srsci:/nowhere", "sine.in", {}, "is no folder"),
        (SRSCI, "other.in", {}, "the evaluator has no problem other.in"),
        (SRSCI, "sine.in", {"kind": "cauchy"}, "expected normal, exponential"),
        (
            SRSCI,
            "sine.in",
            {"domains": {"x3": Variable("x3", 0, 1)}},
            "--domain x3: the problem's variables are",
        ),
        (NEWTONBENCH, "m0_square", {}, "expected module/difficulty/law"),
        (NEWTONBENCH, "m1_other/easy/v0", {}, "there is no m1_other/easy/v0"),
        (NEWTONBENCH, "m0_square/easy/v7", {}, "Invalid law easy v7"),
        (NEWTONBENCH, "m0_square/easy/v0", {"kind": "uniform"}, "NewtonBench has its own"),
        (f"srsci:{HERE / 'newtonbench'}", "sine.in", {}, "there is no file symbolic_equation_evaluator_public.py"),
    ],
)
def test_what_is_not_there_is_named_and_nothing_is_left_behind(adapter, problem, more, message):
    folder, path = os.getcwd(), list(sys.path)
    with pytest.raises(VsrError, match=message):
        entry_of(adapter, problem, more.pop("domains", {}), **more)
    assert (os.getcwd(), sys.path) == (folder, path)


def test_noise_that_is_a_share_of_y_is_for_equation_files(monkeypatch, capsys):
    arguments = ("discover", "sine.in", "--adapter", SRSCI, "--noise", 0.1, "--noise-of", "rms")
    code, _, said = vsr(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "--noise-of is for equation files" in said


def test_a_stream_goes_on_where_it_was():
    stream = GlobalStream(5)
    with stream():
        first = np.random.random(2)
    with stream():
        second = np.random.random(2)
    np.testing.assert_array_equal([*first, *second], np.random.RandomState(5).random_sample(4))


def test_every_law_of_a_copy_is_run_by_number_of_points(monkeypatch, capsys):
    script = runpy.run_path(str(HERE.parents[1] / "benchmarks" / "newtonbench.py"))
    assert script["problems"](HERE / "newtonbench") == ["m0_square/easy/v0", "m0_square/hard/v0"]
    monkeypatch.setattr(sys, "argv", ["newtonbench.py", str(HERE / "newtonbench"), "--limits", "15,40"])
    script["main"]()
    *_, few, more = capsys.readouterr().out.splitlines()
    assert few.startswith("| 15 | 2 |")
    assert more.startswith("| 40 | 2 | 2 | 2 | 0 |")
