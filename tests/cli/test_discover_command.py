"""`vsr discover`: files it writes, options that go together, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deap_vsr import MaskedTree, cli
from deap_vsr.lab.budget import Budget
from deap_vsr.search.records import Progress
from deap_vsr.terminal import progress_line

#: Found within a second: y = x1*x2/x3.
LAW = "feynman-unit/I.39.22"
#: Not found within any time that a test has.
HARD = "trigonometric/sincosinv/6-6-10/prog_0"
SMALL = ("--method", "vsr-gp", "--max-evaluations", "2000")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the entry point and gives exit code, output and error output."""

    def run_main(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["vsr", "discover", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        printed = capsys.readouterr()
        code = caught.value.code
        return (code if isinstance(code, int) else 0), printed.out, printed.err

    return run_main


# --- --out --------------------------------------------------------------------------------


def test_out_writes_the_result_the_formula_and_the_path(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    code, out, err = run(LAW, *SMALL, "--out", folder, "--json")
    assert (code, err) == (0, "")
    assert sorted(os.listdir(folder)) == ["formula.tex", "path.png", "result.json"]
    printed = json.loads(out)
    written = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert list(written) == list(printed)
    assert written == printed
    assert (folder / "formula.tex").read_text(encoding="utf-8") == printed["latex"] + "\n"
    assert "x_{1}" in printed["latex"]


def test_the_picture_of_the_path_is_a_png_that_can_be_read(run: Run, tmp_path: Path) -> None:
    from matplotlib.image import imread

    assert run(LAW, *SMALL, "--out", tmp_path)[0] == 0
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = imread(tmp_path / "path.png")
    assert pixels.ndim == 3
    assert min(pixels.shape[:2]) > 200
    assert pixels[..., :3].std() > 0.05, "something is drawn"


def test_out_says_what_it_wrote(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(LAW, *SMALL, "--out", tmp_path)
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("written: ")] == [
        f"written: {tmp_path / name}" for name in ("result.json", "formula.tex", "path.png")
    ]


def test_out_without_matplotlib_leaves_out_the_picture(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deap_vsr.plot.find_spec", lambda name: None)
    code, out, err = run(LAW, *SMALL, "--out", tmp_path)
    assert (code, err) == (0, "")
    assert sorted(os.listdir(tmp_path)) == ["formula.tex", "result.json"]
    assert "path.png" not in out


def test_out_that_is_a_file_is_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a_file").touch()
    code, _, err = run(LAW, *SMALL, "--out", tmp_path / "a_file")
    assert code == 2
    assert err == f"error: {tmp_path / 'a_file'}: cannot write: File exists\n"


def test_out_overwrites_what_an_earlier_run_left(run: Run, tmp_path: Path) -> None:
    for seed in (1, 2):
        assert run(LAW, *SMALL, "--seed", seed, "--out", tmp_path)[0] == 0
    assert json.loads((tmp_path / "result.json").read_text())["seed"] == 2


# --- options that go together -------------------------------------------------------------


def test_resume_without_checkpoint_is_bad_input(run: Run) -> None:
    assert run(LAW, "--resume") == (2, "", "error: --resume needs --checkpoint, the file to go on from\n")


def test_joint_expansion_is_the_vertical_method_s_own(run: Run) -> None:
    results = []
    for options in ([], ["--expansion", "joint"]):
        code, out, _ = run(LAW, *SMALL, "--json", *options)
        assert code == 0
        results.append(json.loads(out))
        assert results[-1]["expansion"] == "joint"
    assert results[0]["expression"] == results[1]["expression"] != ""


@pytest.mark.parametrize(
    ("method", "expansion", "message"),
    [
        ("gp", "joint", "error: method gp has no expansion 'joint'"),
        ("gp", "slotwise", "error: method gp has no expansion 'slotwise'"),
        ("vsr-gp", "sideways", "error: method vsr-gp has no expansion 'sideways'"),
    ],
)
def test_an_expansion_that_a_method_does_not_have_is_bad_input(
    run: Run, method: str, expansion: str, message: str
) -> None:
    code, out, err = run(LAW, *SMALL, "--method", method, "--expansion", expansion)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", ["", "{}", "no checkpoint"])
def test_a_file_that_is_no_checkpoint_is_bad_input(run: Run, content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    code, out, err = run(LAW, *SMALL, "--checkpoint", path, "--resume")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {path}: this is no checkpoint")
    assert err.count("\n") == 1


def test_a_checkpoint_that_cannot_be_written_is_bad_input(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "run.json"
    code, out, err = run(LAW, *SMALL, "--checkpoint", path)
    assert (code, out) == (2, "")
    assert err == f"error: {path}: cannot write the checkpoint: No such file or directory\n"


def test_a_finished_run_can_be_resumed_and_ends_alike(run: Run, tmp_path: Path) -> None:
    expressions = []
    for _ in range(2):
        code, out, err = run(LAW, *SMALL, "--checkpoint", tmp_path / "run.json", "--resume", "--json")
        assert (code, err) == (0, "")
        expressions.append(json.loads(out)["expression"])
    assert expressions[0] == expressions[1] != ""


def test_the_options_have_help() -> None:
    result = CliRunner().invoke(cli.app, ["discover", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for option in ("--checkpoint", "--resume", "--out", "--expansion"):
        assert option in result.output


# --- progress -----------------------------------------------------------------------------


def news(n_free: int, **limits: Any) -> Progress:
    budget = Budget(**limits)
    budget.count(1234)
    budget.count_queries(56)
    return Progress(2, 3, tuple(range(n_free)), 0.0125, budget)


def test_the_line_of_progress_says_round_free_variables_error_and_cost() -> None:
    line = progress_line(news(2))
    assert line == "round 2/3, free: x1 x2; best error 0.013; 1234 evaluations, 56 queries"
    assert re.search(r"56 queries, (99|100) s left$", progress_line(news(2, seconds=100.0)))


def test_the_line_of_progress_is_short_also_for_many_variables() -> None:
    assert "free: x5 x6 x7 x8 x9 x10 x11 x12 and 4 more;" in progress_line(news(12))


# --- Ctrl-C -------------------------------------------------------------------------------


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """Run the command as a user does, press Ctrl-C once its progress shows evaluations; code, output, the terminal."""
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "deap_vsr", "discover", HARD, "--time-limit", "120", *arguments]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while not re.search(rb"[1-9]\d{3,} evaluations", shown):
                shown += os.read(terminal, 4096)  # ends with an error if the process does
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(terminal)
    return process.returncode, out, shown.decode(errors="replace")


def test_ctrl_c_exits_with_130_and_prints_the_best_so_far() -> None:
    code, out, shown = interrupted("--method", "gp", "--json")
    assert code == 130
    assert "round 1/1, free: x1 x2 x3 x4 x5 x6" in shown
    result = json.loads(out)
    assert result["stopped_by"] == "interrupted"
    assert result["evaluations"] >= 1000
    # Thousands of candidates had been fitted: the best of them is the best so far. Fails at e01ddd8: it is empty.
    assert result["expression"] != ""
    MaskedTree.from_infix(result["expression"])
    assert set(result["metrics"]) == {"mse", "nmse", "rmse", "nrmse", "inv_nmse", "inv_nrmse", "r2"}
