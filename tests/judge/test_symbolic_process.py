"""The process that sympy runs in: ended when it overruns, replaced when it dies."""

import gc
import json
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from deap_vsr.errors import ExpressionError
from deap_vsr.judge import _symbolic
from deap_vsr.judge._symbolic import Worker, same
from deap_vsr.judge.metrics import judge
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.tree import MaskedTree

X1 = (Variable("x1", 0.5, 3.0),)

READY = """
import json, os, pathlib, sys, threading
here = pathlib.Path(__file__).parent
with (here / "pids").open("a") as file:
    print(os.getpid(), file=file)
print("ready", flush=True)
"""
HANG = "threading.Event().wait(60)"  # not for ever: a failing test must leave nothing behind
HANGING = READY + HANG
ANSWERS = "for line in sys.stdin:\n    print(json.dumps(json.loads(line)['echo']), flush=True)\n"
ECHO = READY + ANSWERS
# Does something unusual in its first life, and echoes from the second on.
FIRST_LIFE = READY + "if len((here / 'pids').read_text().split()) == 1:\n    {}\n    sys.exit()\n" + ANSWERS


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that makes a worker of Python source text."""
    workers = []

    def make(source):
        (tmp_path / "made_up_worker.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        workers.append(Worker("made_up_worker"))
        return workers[-1]

    yield make
    for worker in workers:
        worker.stop()


def pids(tmp_path):
    return [int(line) for line in (tmp_path / "pids").read_text().split()]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_answers_come_from_one_process(module, tmp_path):
    worker = module(ECHO)
    assert [worker.ask({"echo": value}, 30.0) for value in (True, False, None, 3)] == [True, False, None, 3]
    assert len(pids(tmp_path)) == 1


def test_hanging_worker_is_killed_and_gives_none(module, tmp_path):
    worker = module(HANGING)
    assert worker.ask({"echo": True}, 0.2) is None
    (pid,) = pids(tmp_path)
    assert not is_running(pid)


def test_question_after_a_hanging_one_gets_its_answer(module):
    worker = module(FIRST_LIFE.format(HANG))
    assert worker.ask({"echo": "first"}, 0.2) is None
    assert worker.ask({"echo": "second"}, 30.0) == "second"


@pytest.mark.parametrize(
    "deed",
    [
        "sys.stdin.readline()",
        "os._exit(3)",
        "sys.stdin.readline(); os.kill(os.getpid(), 9)",
        "sys.stdin.readline(); sys.stdout.write('tru'); sys.stdout.flush()",
        "sys.stdin.readline(); print('no JSON', flush=True); sys.stdin.readline()",
    ],
    ids=["exits", "exits unasked", "killed", "dies while answering", "talks nonsense"],
)
def test_worker_that_dies_or_fails_gives_none_and_the_next_question_works(module, deed):
    worker = module(FIRST_LIFE.format(deed))
    assert worker.ask({"echo": "first"}, 30.0) is None
    assert worker.ask({"echo": "second"}, 30.0) == "second"


def test_worker_that_dies_between_questions_is_replaced_and_leaks_nothing(module, tmp_path):
    worker = module(ECHO)
    assert worker.ask({"echo": 1}, 30.0) == 1
    worker._process.kill()
    worker._process.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert worker.ask({"echo": 2}, 30.0) == 2
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []
    assert len(pids(tmp_path)) == 2


def test_worker_that_never_gets_ready_gives_none(module, monkeypatch):
    monkeypatch.setattr(_symbolic, "START_UP", 0.2)
    assert module(f"import threading; {HANG}").ask({"echo": 1}, 30.0) is None
    monkeypatch.setattr(_symbolic, "START_UP", 30.0)
    assert module("raise SystemExit(1)").ask({"echo": 1}, 30.0) is None
    assert module("syntax error").ask({"echo": 1}, 30.0) is None


def test_worker_that_does_not_listen_is_ended_and_gives_none(module, tmp_path):
    worker = module(READY.replace('print("ready"', 'os.close(0)\nprint("ready"') + HANG)
    assert worker.ask({"echo": 1}, 30.0) is None
    assert not is_running(pids(tmp_path)[0])


def test_interrupted_question_does_not_answer_the_next_one(module, monkeypatch):
    worker = module(ECHO)
    assert worker.ask({"echo": "warm"}, 30.0) == "warm"

    def interrupted(thread, timeout=None):
        patch.undo()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)  # where the answer is waited for
        with pytest.raises(KeyboardInterrupt):
            worker.ask({"echo": "interrupted"}, 30.0)
    assert worker.ask({"echo": "next"}, 30.0) == "next"


def test_stopping_ends_the_process_and_may_be_repeated(module, tmp_path):
    worker = module(ECHO)
    worker.stop()
    worker.ask({"echo": 1}, 30.0)
    worker.stop()
    worker.stop()
    assert not is_running(pids(tmp_path)[0])


LARGE_QUESTION = """
from deap_vsr.judge._symbolic import Worker
worker = Worker("made_up_worker")
print(worker.ask({"echo": "x" * 1_000_000}, 0.2))
"""


def test_large_question_to_a_hanging_worker_is_given_up_too(module):
    module(HANGING)
    # More than a pipe holds, to a worker that does not read.
    run = subprocess.run([sys.executable, "-c", LARGE_QUESTION], capture_output=True, text=True, timeout=15)
    assert run.stdout.strip() == "None"


FORKED = """
import os
from deap_vsr.judge._symbolic import Worker
worker = Worker("made_up_worker")
print(worker.ask({"echo": "before"}, 30.0), flush=True)
child = os.fork()
if child == 0:
    print(worker.ask({"echo": "child"}, 30.0), flush=True)
    worker.stop()
    os._exit(0)
os.waitpid(child, 0)
print(worker.ask({"echo": "after"}, 30.0), flush=True)
worker.stop()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_starts_a_worker_of_its_own(module, tmp_path):
    module(ECHO)
    run = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == ["before", "child", "after"], run.stderr
    assert len(pids(tmp_path)) == 2
    assert not any(map(is_running, pids(tmp_path)))


# --- through the judge --------------------------------------------------------------------


def test_sympy_decides_in_the_real_process():
    trees = [MaskedTree.from_infix(text) for text in ("x1 + x1", "2*x1", "3*x1", "sin(x1)")]
    assert same(trees[0], trees[1], X1, 1e-6, 30.0) is True
    assert same(trees[0], trees[2], X1, 1e-6, 30.0) is False
    assert same(trees[0], trees[3], X1, 1e-6, 30.0) is False


def test_question_names_positive_variables_and_is_plain_json(monkeypatch):
    asked = []
    monkeypatch.setattr(_symbolic._worker, "ask", lambda question, limit: asked.append((question, limit)) or "odd")
    variables = (
        Variable("x1", 0.5, 3.0),
        Variable("x2", -4.0, 2.0, sign="as_range"),
        Variable("x3", 1.0, 9.0, sign="both"),
        Variable("x4", 0.0, 9.0),
        Variable("x5", 0.5, 9.0, sampling="integer"),
    )
    answer, truth = MaskedTree.from_infix("x1 + 2"), MaskedTree.from_infix("x2")
    assert same(answer, truth, variables, 1e-6, 7.0) is None  # what is no decision is none
    ((question, limit),) = asked
    assert limit == 7.0
    points = np.array(question["points"])
    assert points.shape == (_symbolic.N_POINTS, 5)
    for column, variable in zip(points.T, variables, strict=True):
        low, high = variable.bounds
        assert ((column >= low) & (column <= high)).all()
    assert question["positive"] == ["x1", "x5"]
    assert json.loads(json.dumps(question))["truth"] == [["x2", "var"]]


def test_trees_too_deep_or_too_large_are_refused():
    small = MaskedTree.from_infix("x1")
    deep = MaskedTree.from_tokens([("sin", "unary")] * 200 + [("x1", "var")])
    for pair in ((small, deep), (deep, small)):
        with pytest.raises(ExpressionError, match="200 deep"):
            same(*pair, X1, 1e-6, 1.0)


def test_judge_falls_back_on_numbers_when_sympy_hangs(module, monkeypatch, tmp_path):
    monkeypatch.setattr(_symbolic, "_worker", module(HANGING))
    truth = MaskedTree.from_infix("2*log(x1)")
    equation = Equation("hang", X1, ("mul", "log", "const"), truth, "2*log(x1)")
    found = judge(MaskedTree.from_infix("log(x1*x1)"), equation, time_limit=0.2)
    assert (found.recovered, found.recovered_by) == (True, "numeric")
    assert not is_running(pids(tmp_path)[0])
