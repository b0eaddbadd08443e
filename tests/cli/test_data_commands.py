"""`vsr data list|show|check|make`: exit codes, what is printed, and JSON for machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import deap_vsr
from deap_vsr import cli
from deap_vsr.problems import suites
from deap_vsr.problems.equation import load_equation

PROBLEM = "feynman/I.39.22"


def vsr(*arguments: str) -> Result:
    """Run a command in this process; only errors in the input are let through."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], catch_exceptions=False)


def good(*arguments: Any) -> str:
    result = vsr(*map(str, arguments))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def as_json(*arguments: Any) -> Any:
    return json.loads(good(*arguments, "--json"))


def shell(*arguments: Any, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, in a process of its own."""
    command = [sys.executable, "-m", "deap_vsr", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture
def run_main(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the entry point and gives exit code, output and error output."""

    def run(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["vsr", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        printed = capsys.readouterr()
        code = caught.value.code
        return (code if isinstance(code, int) else 0), printed.out, printed.err

    return run


def bytes_under(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder with one good file, one that does not load and one whose formulas differ."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    text = (suites.data_root() / f"{PROBLEM}.json").read_text(encoding="utf-8")
    (folder / "a_good.json").write_text(text, encoding="utf-8")
    (folder / "b_truncated.json").write_text(text[:300], encoding="utf-8")
    (folder / "c_differs.json").write_text(text.replace('"formula": "x1', '"formula": "x2'), encoding="utf-8")
    return folder


# --- version and help ---------------------------------------------------------------------


def test_the_version_is_printed() -> None:
    assert good("--version") == f"vsr {deap_vsr.__version__}\n"


@pytest.mark.parametrize("command", [[], ["data"], *(["data", name] for name in ("list", "show", "check", "make"))])
def test_every_command_has_help(command: list[str]) -> None:
    assert "Usage" in good(*command, "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["data", "nothing"],
        ["data", "show"],
        ["data", "show", PROBLEM, "--points", "-1"],
        ["data", "show", PROBLEM, "--noise", "nan"],
    ],
)
def test_a_wrong_command_line_exits_with_2(arguments: list[str]) -> None:
    assert vsr(*arguments).exit_code == 2


# --- list ---------------------------------------------------------------------------------


def test_list_shows_the_suites() -> None:
    report = as_json("data", "list")
    assert report["problems"] == sum(report["suites"].values()) == 673
    assert report["suites"]["feynman"] == 120
    assert report["suites"]["trigonometric/sincosinv/6-6-10"] == 10
    text = good("data", "list")
    assert "673 problems" in text
    assert "livermore2/Vars7" in text


def test_list_shows_the_problems_of_a_suite() -> None:
    problems = as_json("data", "list", "trigonometric/inv/2-1-1")["problems"]
    assert [problem["name"] for problem in problems] == [f"trigonometric/inv/2-1-1/prog_{i}" for i in range(10)]
    first = load_equation(problems[0]["name"])
    assert problems[0] == {
        "name": first.name,
        "group": "(2,1,1)",
        "num_vars": 2,
        "function_set": list(first.function_set),
        "formula": first.formula,
        "usable": True,
        "reason": "",
        "judge": "full",
    }
    assert "(2,1,1)" in good("data", "list", "trigonometric/inv/2-1-1")


def test_list_shows_the_problems_of_a_folder_file_and_pattern() -> None:
    folder = suites.data_root() / "feynman"
    assert len(as_json("data", "list", folder)["problems"]) == 120
    assert len(as_json("data", "list", folder / "I.39.22.json")["problems"]) == 1
    assert len(as_json("data", "list", folder / "I.39.*.json")["problems"]) == 3
    assert len(as_json("data", "list", "feynman/I.39.*.json")["problems"]) == 3


def test_list_marks_what_is_not_usable() -> None:
    problems = as_json("data", "list", "feynman")["problems"] + as_json("data", "list", "livermore2")["problems"]
    problems += as_json("data", "list", "feynman-unit")["problems"]
    (name,) = [problem["name"] for problem in problems if not problem["usable"]]
    assert "usable" in good("data", "list", name)


# --- show ---------------------------------------------------------------------------------


def test_show_prints_the_problem_and_some_data() -> None:
    text = good("data", "show", PROBLEM, "--points", "4")
    equation = load_equation(PROBLEM)
    for expected in (PROBLEM, f"y = {equation.formula}", "operators: add, sub, mul, div, const", "4 points"):
        assert expected in text
    for variable in equation.variables:
        assert variable.name in text
        assert variable.sampling in text


def test_show_for_machines_holds_the_whole_problem() -> None:
    shown = as_json("data", "show", PROBLEM)
    equation = load_equation(PROBLEM)
    assert shown["name"] == PROBLEM
    assert shown["formula"] == equation.formula
    assert [tuple(token) for token in shown["equation"]] == equation.tree.to_tokens()
    assert shown["variables"] == [vars(variable) for variable in equation.variables]
    assert shown["latex"] == equation.tree.to_latex()
    assert len(shown["data"]["X"]) == len(shown["data"]["y"]) == 5
    assert shown["data"]["dropped"] == 0


def test_show_holds_the_variables_that_are_not_free() -> None:
    rows = as_json("data", "show", PROBLEM, "--free", "x3", "--points", "6")["data"]["X"]
    x1, x2, x3 = (set(column) for column in zip(*rows, strict=True))
    assert (len(x1), len(x2), len(x3)) == (1, 1, 6)
    assert "x1, x2 held" in good("data", "show", PROBLEM, "--free", "x3")


def test_show_takes_several_free_variables_with_blanks() -> None:
    rows = as_json("data", "show", PROBLEM, "--free", "x1, x3")["data"]["X"]
    assert [len(set(column)) for column in zip(*rows, strict=True)] == [5, 1, 5]


def test_show_without_points_asks_the_oracle_nothing() -> None:
    assert as_json("data", "show", PROBLEM, "--points", "0")["data"] is None
    assert "points" not in good("data", "show", PROBLEM, "--points", "0")


def test_show_draws_by_its_seed_and_adds_noise_to_y_alone() -> None:
    plain, again, other, noisy = (
        as_json("data", "show", "feynman-unit/I.39.22", *options)["data"]
        for options in ([], [], ["--seed", "1"], ["--noise", "0.5"])
    )
    assert plain == again
    assert plain["X"] != other["X"]
    assert plain["X"] == noisy["X"]
    assert all(a != b for a, b in zip(plain["y"], noisy["y"], strict=True))


def test_show_works_for_a_problem_that_is_not_usable() -> None:
    names = [name for name in suites.problem_names() if not load_equation(name).usable]
    for name in names:
        assert "not usable: " in good("data", "show", name)


def test_show_prints_brackets_in_names_as_they_are(tmp_path: Path) -> None:
    fields = json.loads((suites.data_root() / f"{PROBLEM}.json").read_text(encoding="utf-8"))
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(fields | {"name": "[red]odd[/red]", "group": "[/]", "reason": "[bold]"}))
    text = good("data", "show", path)
    assert "[red]odd[/red]" in text
    assert "[/]" in text
    assert "note: [bold]" in text


# --- check --------------------------------------------------------------------------------


def test_check_of_the_data_folder_finds_673_files_and_no_errors_in_under_20_seconds() -> None:
    start = time.monotonic()
    done = shell("data", "check", "data", "--json", cwd=suites.data_root().parent)
    seconds = time.monotonic() - start
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"files": 673, "errors": []}
    assert done.stderr == ""
    assert seconds < 20


def test_check_finds_the_data_folder_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "check_file", lambda path: [])
    result = CliRunner().invoke(cli.app, ["data", "check", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"files": 673, "errors": []}


def test_check_for_people_counts_files_and_errors() -> None:
    result = vsr("data", "check", "trigonometric/inv/2-1-1")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "10 files, 0 errors"


def test_check_of_broken_files_exits_with_2_and_lists_them(broken: Path) -> None:
    result = vsr("data", "check", str(broken), "--json")
    assert result.exit_code == 2
    report = json.loads(result.stdout)
    assert report["files"] == 3
    truncated, differs = report["errors"]
    assert truncated.startswith(f"{broken / 'b_truncated.json'}: found ")
    assert differs.startswith(f"{broken / 'c_differs.json'}: formula: differs from the pre-order list on 1000")


def test_check_of_broken_files_for_people_has_one_line_for_each_fault(broken: Path) -> None:
    result = vsr("data", "check", str(broken))
    assert result.exit_code == 2
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert [("b_truncated" in line, "c_differs" in line) for line in lines[:2]] == [(True, False), (False, True)]
    assert lines[2:] == ["3 files, 2 errors"]


def test_check_of_one_broken_file_exits_with_2(broken: Path) -> None:
    assert vsr("data", "check", str(broken / "b_truncated.json")).exit_code == 2
    assert vsr("data", "check", str(broken / "a_good.json")).exit_code == 0


# --- make ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--suite", "trigonometric", "--config", "2-1-1,8-8-12", "--programs", "2", "--seed", "7"], 12),
        (["--suite", "trigonometric", "--sets", "sincos", "--config", "5-5-5", "--variables", "50"], 10),
        (["--suite", "feynman"], 120),
        (["--suite", "laws", "--programs", "14", "--seed", "7"], 14),
    ],
)
def test_make_twice_gives_the_same_bytes(options: list[str], count: int, tmp_path: Path) -> None:
    for name in ("one", "two"):
        report = as_json("data", "make", tmp_path / name, *options)
        assert report == {"files": count, "out": str(tmp_path / name)}
    one, two = bytes_under(tmp_path / "one"), bytes_under(tmp_path / "two")
    assert len(one) == count
    assert one == two
    assert vsr("data", "check", str(tmp_path / "one")).exit_code == 0


def test_make_over_older_files_gives_the_same_bytes(tmp_path: Path) -> None:
    options = ["--suite", "trigonometric", "--sets", "inv", "--config", "2-1-1"]
    good("data", "make", tmp_path, *options)
    first = bytes_under(tmp_path)
    good("data", "make", tmp_path, *options)
    assert bytes_under(tmp_path) == first


def test_make_without_options_writes_the_data_folder(tmp_path: Path) -> None:
    assert good("data", "make", tmp_path / "data").split()[:3] == ["673", "files", "written"]
    kept = {name: content for name, content in bytes_under(suites.data_root()).items() if name.endswith(".json")}
    assert bytes_under(tmp_path / "data") == kept


def test_make_with_another_seed_gives_other_programs(tmp_path: Path) -> None:
    options = ["--suite", "trigonometric", "--sets", "inv", "--config", "2-1-1", "--programs", "3"]
    for seed in ("1", "2"):
        good("data", "make", tmp_path / seed, *options, "--seed", seed)
    one, two = bytes_under(tmp_path / "1"), bytes_under(tmp_path / "2")
    assert sorted(one) == sorted(two)
    assert all(one[name] != two[name] for name in one)


# --- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["data", "list", "nothing"], "nothing: no equation files there"),
        (["data", "list", "/nothing/*.json"], "no equation files there"),
        (["data", "list", "**nothing"], "no equation files there"),
        (["data", "list", "n" * 5000], "no equation files there"),
        (["data", "check", "nothing"], "no equation files there"),
        (["data", "show", "feynman/I.39.2"], "did you mean feynman/I.39.22"),
        (["data", "show", "n" * 5000], "vsr data list"),
        (["data", "show", "two\nlines"], "vsr data list"),
        (["data", "show", "[/red]"], "[/red]: found neither"),
        (["data", "show", PROBLEM, "--free", "x9"], "x9 not among the variables x1..x3"),
        (["data", "show", PROBLEM, "--free", "T"], "T not among the variables"),
        (["data", "show", PROBLEM, "--noise", "inf"], "inf"),
        (["data", "make", "out", "--suite", "nothing"], "--suite nothing: expected all, trigonometric"),
        (["data", "make", "out", "--suite", "trigonometric", "--sets", "tan"], "unknown trigonometric set 'tan'"),
        (["data", "make", "out", "--suite", "trigonometric", "--config", "5-5"], "--config 5-5: expected m-s-p"),
        (["data", "make", "out", "--suite", "trigonometric", "--config", "a-b-c"], "expected m-s-p such as 8-8-12"),
        (["data", "make", "out", "--suite", "trigonometric", "--config", "1-1-1²"], "expected m-s-p such as 8-8-12"),
        (["data", "make", "out", "--suite", "trigonometric", "--config", "2-3-1"], "at most m single"),
        (["data", "make", "out", "--suite", "trigonometric", "--variables", "2000"], "2000 variables in all"),
        (["data", "make", "out", "--suite", "laws", "--config", "2-1-1"], "--config and --variables are for"),
        (["data", "make", "a_file/out", "--suite", "feynman"], "cannot write"),
    ],
    ids=lambda value: " ".join(value)[:40].replace("\n", " ") if isinstance(value, list) else "",
)
def test_bad_input_exits_with_2_and_one_line(
    arguments: list[str],
    said: str,
    run_main: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_file").touch()
    code, out, err = run_main(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert said in err
    assert os.listdir() == ["a_file"], "nothing was written"


@pytest.mark.parametrize("command", ["list", "show"])
def test_a_broken_file_exits_with_2_and_one_line(
    command: str, broken: Path, run_main: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = run_main("data", command, broken / "b_truncated.json")
    assert code == 2
    assert out == ""
    assert err.startswith(f"error: {broken / 'b_truncated.json'}: found ")
    assert err.count("\n") == 1


def test_a_hostile_file_cannot_speak_to_the_terminal(
    tmp_path: Path, run_main: Callable[..., tuple[int, str, str]]
) -> None:
    fields = json.loads((suites.data_root() / f"{PROBLEM}.json").read_text(encoding="utf-8"))
    path = tmp_path / "hostile.json"
    for operator in ("\x1b]0;owned\x07", "\ud800"):
        path.write_text(json.dumps(fields | {"equation": [[operator, "unary"], ["x1", "var"]]}))
        code, _, err = run_main("data", "show", path)
        assert code == 2
        assert err.removesuffix("\n").isprintable()


def test_bad_input_in_a_process_of_its_own_leaves_no_traceback(tmp_path: Path) -> None:
    done = shell("data", "show", "feynman/I.39.2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "did you mean feynman/I.39.22" in done.stderr


def test_an_interrupt_exits_with_130(
    run_main: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(path: Path) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "check_file", interrupt)
    assert run_main("data", "check", "feynman", "--json")[0] == 130


def test_a_reader_that_has_gone_is_no_failure() -> None:
    command = [sys.executable, "-m", "deap_vsr", "data", "list", "feynman", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (0, -signal.SIGPIPE)
