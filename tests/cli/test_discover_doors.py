"""`vsr discover` with a function of one's own, and with a program."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deap_vsr import cli

Run = Callable[..., tuple[int, str, str]]

GAS = ("--domain", "n=1:3", "--domain", "T[K]=280:400", "--domain", "V=0.1:2:log")
SIM = """
def gas(n, T, V):
    return 8.314 * n * T / V

def both(n, T, V):
    return {"p": gas(n, T, V), "E": 12.471 * n * T}

def cold(row):
    return row["T"] < 350
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Return a function that runs the entry point beside a module `sim_of_tests.py`."""
    (tmp_path / "sim_of_tests.py").write_text(SIM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run_main(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["vsr", "discover", *map(str, arguments), "--max-queries", "200"])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        printed = capsys.readouterr()
        code = caught.value.code
        return (code if isinstance(code, int) else 0), printed.out, printed.err

    return run_main


@pytest.mark.parametrize("function", ["sim_of_tests:gas", "sim_of_tests.py:gas"])
def test_a_function_of_a_module_or_a_file(run: Run, function: str) -> None:
    code, out, _ = run(function, *GAS, "--output", "p", "--operators", "add,mul,div,const", "--workers", 2, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["status"] == "found"
    assert result["output"]["name"] == "p"
    assert result["variables"][1]["unit"] == "K"
    assert {"n", "T", "V"} <= set(result["formula"])


def test_several_outputs_are_printed_and_written_one_by_one(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("sim_of_tests:both", *GAS, "--output", "p", "--output", "E", "--out", tmp_path / "results")
    assert code == 0
    assert "p = " in out
    assert "E = " in out
    assert {path.parent.name for path in (tmp_path / "results").glob("*/result.json")} == {"p", "E"}


def test_limits_and_feasible_settings(run: Run) -> None:
    options = ("--limit", "T=200:500", "--feasible", "sim_of_tests:cold")
    code, out, _ = run("sim_of_tests:gas", *GAS, *options, "--json")
    assert code == 0
    assert json.loads(out)["status"] == "found"


@pytest.mark.parametrize("form", ["point", "batch"])
def test_a_program(run: Run, tmp_path: Path, form: str) -> None:
    sim = tmp_path / "sim.awk"
    body = "{{ print 8.314 * $1 * $2 / $3 }}" if form == "batch" else "BEGIN {{ print 8.314 * {n} * {T} / {V} }}"
    awk = "awk -v OFMT=%.17g" + (" -F, " if form == "batch" else " ")
    header = "NR > 1 " if form == "batch" else ""
    sim.write_text("")
    code, out, _ = run(
        "--command", f"{awk}'{header}{body}'", *GAS, "--log", tmp_path / "points.csv", "--timeout", 30, "--json"
    )
    assert code == 0
    result = json.loads(out)
    assert result["status"] == "found"
    assert (tmp_path / "points.csv").read_text().startswith("n,T,V,y\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to ask"),
        (["sim_of_tests:gas"], "needs its variables"),
        (["sim_of_tests:nothing", *GAS], "has no attribute 'nothing'"),
        (["no_such_module:f", *GAS], "No module named 'no_such_module'"),
        (["nowhere.py:f", *GAS], "there is no file nowhere.py"),
        (["sim_of_tests:gas", "--domain", "T=1"], "--domain T=1"),
        (["sim_of_tests:gas", *GAS, "--domain", "n=2:3"], "there twice"),
        (["sim_of_tests:gas", "--domain", "T=1:2"], "the function takes n, T, V, the variables are T"),
        (["feynman-unit/I.39.22", "--domain", "T=1:2"], "for functions and programs"),
        (["--command", "echo {T}"], "needs its variables"),
        (["--command", "echo {q}", "--domain", "T=1:2"], "has {q}, which is no variable"),
        (["--command", "echo {T}", "--domain", "T=1:2", "--domain", "k=a,b"], "categories are for functions"),
        (["sim_of_tests:gas", "--command", "echo 1", *GAS], "expected one of them"),
        (["points.csv"], "there is no such table"),
    ],
)
def test_what_cannot_be_is_told_with_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err.replace("\n", " ")


def test_a_killed_run_asks_nothing_that_its_log_has() -> None:
    external = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "external.py"))
    told = external["killed"](kills=1, workers=4, seconds=0.02, points=60)
    assert told["asked_again_though_in_log"] == 0
    assert told["points_read"] >= told["in_log_at_each_kill"][-1] >= 4
