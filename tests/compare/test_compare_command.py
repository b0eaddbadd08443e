"""`vsr compare` and `vsr report` as a user runs them: killed, interrupted, gone on with."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from test_run import lasting

from deap_vsr import VsrError, cli
from deap_vsr.compare.commands import duration
from deap_vsr.compare.job import Job
from deap_vsr.compare.parallel import run_locally
from deap_vsr.compare.store import read_rows
from deap_vsr.compare.tables import VOLATILE_COLUMNS
from deap_vsr.problems import suites

SIX = ["compare", "trigonometric/inv/2-1-1/prog_[0-2].json", "--methods", "gp,vsr", "--max-evaluations", "3000"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the entry point and gives exit code, output and error output."""

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["vsr", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        printed = capsys.readouterr()
        return caught.value.code or 0, printed.out, printed.err

    return run_main


def started(*arguments):
    """Start the command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "deap_vsr", *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def read_until(process, beginning):
    """Read what the command says up to a line; a command that ends before, or is silent for long, is an error."""
    guard = threading.Timer(120, process.kill)
    guard.start()
    try:
        for line in process.stderr:
            if line.startswith(beginning):
                return
    finally:
        guard.cancel()
    raise AssertionError(f"it ended without {beginning}")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A comparison that nobody interrupted, two runs at a time."""
    folder = tmp_path_factory.mktemp("comparison") / "new"
    with started(*SIX, "--jobs", 2, "--out", folder) as process:
        said = process.communicate(timeout=200)[1]
    assert process.returncode == 0
    return folder, said


def lasting_tables(folder):
    found = {}
    for path in sorted((folder / "tables").iterdir()):
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        kept = [i for i, name in enumerate(lines[0]) if name.partition(":")[0] not in VOLATILE_COLUMNS]
        found[path.name] = [[line[i] for i in kept] for line in lines]
    return found


def sorted_rows(folder):
    return sorted(map(lasting, read_rows(folder)), key=lambda row: (row["problem"], row["method"]))


def test_every_run_has_a_line_with_the_time_left(finished):
    _, said = finished
    lines = said.splitlines()
    assert lines[0] == "6 runs: 3 problems, methods gp, vsr"
    assert [line.split()[0] for line in lines[1:]] == [f"{n}/6" for n in range(1, 7)]
    assert all(line.endswith(" left") and "NMSE" in line for line in lines[1:])


def test_killed_five_times_and_resumed_it_ends_as_if_nothing_had_happened(finished, tmp_path):
    folder = tmp_path / "killed"
    rng = random.Random(7)
    for kill in range(5):
        with started(*SIX, "--jobs", 1, "--out", folder, *["--resume"] * (kill > 0)) as process:
            read_until(process, f"{kill + 1}/6")
            with suppress(subprocess.TimeoutExpired):  # somewhere in the next run
                process.communicate(timeout=rng.uniform(0.0, 0.5))
            # The whole group, or the process alone, whose runs then end by themselves.
            (os.killpg if kill % 2 else os.kill)(process.pid, signal.SIGKILL)
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert len(read_rows(folder)) == kill + 1
    with started(*SIX, "--jobs", 1, "--out", folder, "--resume") as process:
        process.communicate(timeout=200)
    assert process.returncode == 0
    assert sorted_rows(folder) == sorted_rows(finished[0])
    assert lasting_tables(folder) == lasting_tables(finished[0])


def in_session(session):
    """Return the processes of a session that are at work."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
            found += [stat.parent.name] if int(its_session) == session and state not in "ZX" else []
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_processes_of_a_comparison_that_is_killed_end_too(tmp_path):
    # Fails at 7ff2e9b: those of the pool stayed for five minutes.
    with started(*SIX, "--jobs", 2, "--out", tmp_path) as process:
        read_until(process, "1/6")
        process.kill()
        process.communicate(timeout=60)
    until = time.monotonic() + 60.0
    while in_session(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert in_session(process.pid) == []


def test_ctrl_c_exits_with_130_and_leaves_a_folder_to_go_on_with(tmp_path):
    with started(*SIX, "--jobs", 2, "--out", tmp_path) as process:
        read_until(process, "1/6")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.communicate(timeout=100)[1]
    assert process.returncode == 130
    assert f"interrupted; finished runs are in {tmp_path}: go on with the same command and --resume" in said
    assert "Traceback" not in said
    rows = read_rows(tmp_path)
    assert 1 <= len(rows) < 6
    assert all(row["status"] == "done" for row in rows)


def test_what_is_finished_is_not_run_again_and_machines_get_one_object(finished, run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished[0], folder)
    before = (folder / "runs.jsonl").read_bytes()
    code, out, err = run(*SIX, "--out", folder, "--resume", "--json")
    assert code == 0
    assert len(err.splitlines()) == 1
    assert (folder / "runs.jsonl").read_bytes() == before
    found = json.loads(out)
    assert (found["runs"], found["failed"], found["out"]) == (6, 0, str(folder))
    assert [line["method"] for line in found["table"]] == ["gp", "vsr"]
    assert found["table"][1]["recovered"] == 1.0
    assert str(folder / "report.html") in found["files"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "holds a comparison already; go on with --resume, or give another --out"),
        (["--resume", "--seeds", 2], "holds another comparison: seeds is [0] there and [0, 1] here"),
    ],
)
def test_runs_of_another_comparison_are_bad_input(finished, run, more, message):
    code, out, err = run(*SIX, *more, "--out", finished[0])
    assert (code, out) == (2, "")
    assert message in err


def test_failures_are_shown_and_counted_and_never_fatal(run, tmp_path):
    problems = tmp_path / "problems"
    problems.mkdir()
    law = suites.problem_files("feynman-unit/I.39.22")[0].read_text()
    (problems / "good.json").write_text(law)
    nowhere = {
        "num_vars": 1, "var_domains": [[1, 2]], "function_set": ["log", "sub", "const"],
        "equation": [["log", "unary"], ["sub", "binary"], ["-1", "const"], ["x1", "var"]],
    }  # fmt: skip
    (problems / "bad.json").write_text(json.dumps(nowhere))
    code, out, err = run("compare", problems, "--methods", "gp", "--max-evaluations", 500, "--out", tmp_path / "out")
    assert code == 0
    assert "bad.json gp, seed 0: FAILED: the oracle gave 0 finite values" in err
    assert all(", 1 failed, " in line for line in err.splitlines()[1:])
    assert "2 runs, 1 failed" in out
    assert f"report: {tmp_path / 'out' / 'report.html'}" in out


def test_report_writes_the_files_anew(finished, run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished[0], folder)
    (folder / "report.html").unlink()
    shutil.rmtree(folder / "tables")
    code, out, _ = run("report", folder)
    assert code == 0
    assert f"written: {folder / 'report.html'}" in out
    assert lasting_tables(folder) == lasting_tables(finished[0])
    assert str(folder / "tables.md") in json.loads(run("report", folder, "--json")[1])["files"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "nowhere"], "nowhere: no equation files there"),
        (["compare", "feynman-unit/I.39.22", "--noise", "much"], "--noise much: expected numbers such as 0,0.1"),
        (["compare", "feynman-unit/I.39.22", "--methods", "magic"], "unknown method 'magic'"),
        (["report", "nowhere"], "is this a folder of `vsr compare`?"),
    ],
)
def test_bad_input_ends_with_one_line_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def pool_that_is_lost(when, calls):
    """Return a stand-in for joblib's pool; a process of it is killed where ``when(calls)`` says so."""

    def pool(**options):
        def run_all(given):
            for _, (order, _owner), _ in given:
                calls.append(order["job"]["problem"])
                if when(calls):
                    raise TerminatedWorkerError
                yield order["job"]

        return run_all

    return pool


ORDERS = [{"job": vars(Job(str(n), "gp", 0))} for n in range(4)]


def test_runs_of_a_pool_whose_process_is_killed_are_done_by_another_pool(monkeypatch):
    calls = []
    monkeypatch.setattr("joblib.Parallel", pool_that_is_lost(lambda calls: len(calls) == 2, calls))
    assert [row["problem"] for row in run_locally(ORDERS, 2)] == ["0", "1", "2", "3"]
    assert calls == ["0", "1", "1", "2", "3"]


def test_a_pool_that_is_lost_again_and_again_is_given_up(monkeypatch):
    calls = []
    monkeypatch.setattr("joblib.Parallel", pool_that_is_lost(lambda calls: len(calls) > 1, calls))
    with pytest.raises(VsrError, match="is there memory for so many --jobs"):
        list(run_locally(ORDERS, 2))
    assert calls == ["0", "1", "1", "1"]


def test_durations_are_words():
    assert [duration(seconds) for seconds in (5.4, 99, 120, 6000)] == ["5 s", "99 s", "2 min", "1.7 h"]
