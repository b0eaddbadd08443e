"""One run in a process of its own: its row, and what becomes of everything that can go wrong."""

import json
import os
import re
import stat
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rows import row_of

from deap_vsr import MaskedTree, load_equation, memory
from deap_vsr.compare import run
from deap_vsr.compare.job import COLUMNS, Job, Problem
from deap_vsr.compare.plan import plan
from deap_vsr.compare.run import VOLATILE, Trace, do, order, run_apart
from deap_vsr.judge.metrics import judge


def order_of(method="gp", **changed):
    planned = plan(["feynman-unit/I.39.22"], methods=[method], max_evaluations=1500)
    (job,) = planned.jobs
    return order(Job(**(vars(job) | changed)), planned.problems[job.problem])


def lasting(row):
    """Return what must be the same in every run of a job."""
    kept = {name: value for name, value in row.items() if name not in VOLATILE}
    rounds = [{k: v for k, v in entry.items() if k != "seconds"} for entry in row["result"]["rounds"]]
    trace = [{k: v for k, v in point.items() if k != "seconds"} for point in row["trace"]]
    return kept | {"rounds": rounds, "trace": trace}


def test_a_run_of_its_own_process_gives_the_row_that_this_process_gives():
    given = order_of("vsr-gp", seed=3)
    apart, here = run_apart(given), do(given)
    assert apart["status"] == "done"
    assert lasting(apart) == lasting(here)
    assert apart["evaluations"] >= 1500
    assert apart["trace"], "the convergence curve"


def test_a_row_holds_what_is_needed_to_repeat_the_run():
    row = do(order_of("vsr", noise=0.01, seed=2))
    assert list(row) == list(COLUMNS)
    assert set(row) == set(row_of())
    for name, value in {"method": "vsr", "noise": 0.01, "seed": 2, "max_evaluations": 1500, "n_vars": 3}.items():
        assert row[name] == value
    assert {"python", "deap-vsr", "numpy", "numba"} <= set(row["versions"])
    assert row["machine"]["cores"] == os.cpu_count()
    assert row["result"]["settings"]
    json.dumps(row, allow_nan=False)


def judged(status, answer, law):
    tree = MaskedTree.from_infix(answer)
    return SimpleNamespace(status=status, tree=tree, verdict=judge(tree, law))


@pytest.mark.parametrize(
    ("answer", "exact", "noisy"),
    [
        ("x1*x2/x3", False, False),  # the law
        ("1.003*x1*x2/x3", True, False),  # its form, with a number that noise has put off
        ("x1*x2", True, True),
        ("x1*x2/x3 + 0.01*x1", True, True),
    ],
)
def test_found_is_false_where_the_judge_says_so(answer, exact, noisy):
    law = load_equation("feynman-unit/I.39.22")
    found = judged("found", answer, law)
    assert run.is_false(found, None) is exact
    assert run.has_right_form(found, law) is not noisy
    assert run.is_false(found, run.has_right_form(found, law)) is noisy
    for status in ("fits", "partial"):
        assert not run.is_false(judged(status, answer, law), None)


def test_no_formula_has_no_form():
    assert not run.has_right_form(SimpleNamespace(tree=None), load_equation("feynman-unit/I.39.22"))


def test_a_run_in_noise_says_whether_its_answer_has_the_law_s_form():
    row = do(order_of("vsr", noise=0.001, noise_of="rms", max_evaluations=20_000))
    assert (row["noise"], row["noise_of"], row["right_form"]) == (0.001, "rms", True)
    assert do(order_of("vsr"))["right_form"] is None


def test_a_run_says_how_its_answer_stands():
    row = do(order_of("vsr"))
    assert (row["standing"], row["false_found"], row["recovered"], row["stopped_by"]) == ("found", False, True, "done")


def test_an_exception_is_a_row_that_says_what_happened():
    nowhere = {
        "num_vars": 1, "var_domains": [[1, 2]], "function_set": ["log", "sub", "const"],
        "equation": [["log", "unary"], ["sub", "binary"], ["-1", "const"], ["x1", "var"]],
    }  # fmt: skip
    given = order_of()
    given["problem"]["text"] = json.dumps(nowhere)
    row = do(given)
    assert (row["status"], row["recovered"], row["nmse"]) == ("failed", False, None)
    assert "the oracle gave 0 finite values" in row["error"]
    assert set(row) == set(row_of(nmse=None))


def test_a_run_that_does_not_end_is_killed_and_a_failure():
    row = run_apart(order_of(max_evaluations=10**9) | {"hang_after": 0.2})
    assert (row["status"], row["error"]) == ("failed", "did not end within 0.2 s and was killed")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -9 $$", r"was killed by signal 9 \(out of memory\?\): $"),
        ("echo something; echo why >&2; exit 3", "ended with code 3: why$"),
    ],
)
def test_a_process_that_dies_is_a_failure_that_says_how(tmp_path, monkeypatch, script, message):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(run, "sys", SimpleNamespace(executable=str(program)))
    row = run_apart(order_of())
    assert row["status"] == "failed"
    assert re.search(message, row["error"])


def test_a_run_ends_with_the_process_that_wants_it():
    code = "import os, sys; from deap_vsr.compare.run import _end_with; _end_with(os.getppid(), int(sys.argv[1]))"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as owner:
        worker = subprocess.Popen([sys.executable, "-c", code, str(owner.pid)])
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(3)
        owner.kill()
    assert worker.wait(30) == 1


def test_limits_in_seconds_decide_when_a_run_hangs():
    problem = Problem("p", "s", "g", 1, "")
    assert order(Job("p", "gp", 0, time_limit=60.0), problem)["hang_after"] == 420
    assert order(Job("p", "gp", 0, max_evaluations=10), problem)["hang_after"] == run.HANG_AFTER
    assert order(Job("p", "gp", 0), problem, 5.0)["hang_after"] == 5.0


def news(round_, best, evaluations):
    return SimpleNamespace(round=round_, best=best, budget=SimpleNamespace(spent={"evaluations": evaluations}))


def test_a_trace_keeps_when_the_error_fell_and_when_a_round_began():
    trace = Trace()
    for entry in [(1, np.inf, 1), (1, 0.5, 2), (1, 0.6, 3), (1, 0.4, 4), (2, 0.9, 5), (2, np.nan, 6), (2, 0.1, 7)]:
        trace(news(*entry))
    assert [(p["round"], p["error"], p["evaluations"]) for p in trace.points] == [
        (1, 0.5, 2), (1, 0.4, 4), (2, 0.9, 5), (2, 0.1, 7),
    ]  # fmt: skip


def test_a_long_trace_is_thinned_and_keeps_its_ends():
    trace = Trace()
    for i in range(5000):
        trace(news(1, 1 / (1 + i), i))
    assert len(trace.points) <= 200
    assert (trace.points[0]["evaluations"], trace.points[-1]["evaluations"]) == (0, 4999)


def test_the_peak_of_memory_can_begin_anew():
    memory.forget_peak()
    before = memory.peak_memory()
    held = np.ones(30_000_000)
    grown = memory.peak_memory()
    assert grown > before + 200
    del held
    memory.forget_peak()
    assert memory.peak_memory() < grown - 150
