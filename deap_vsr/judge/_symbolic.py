"""Asking sympy, in a process of its own that is ended when its time is up.

``sympy.simplify`` can hang, and a hanging thread cannot be ended; a process can. The worker is
started once and asked again until it overruns. Formulas travel as prefix tokens in JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from deap_vsr.errors import ExpressionError
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.notation import MAX_SYMPY_DEPTH

MAX_SYMPY_NODES = 2_000
#: Points at which formulas are compared to 60 digits.
N_POINTS = 120
#: Seconds allowed for starting Python and importing sympy, on top of the time limit.
START_UP = 60.0


def same(
    answer: MaskedTree, truth: MaskedTree, variables: Sequence[Variable], tolerance: float, time_limit: float
) -> bool | None:
    """Whether two formulas are the same, constants within `tolerance` relative.

    Returns None where sympy cannot decide within `time_limit` seconds.
    """
    for tree in (answer, truth):
        if tree.height > MAX_SYMPY_DEPTH or len(tree) > MAX_SYMPY_NODES:
            raise ExpressionError(f"a tree of {len(tree)} nodes, {tree.height} deep, is too much for sympy")
    points = draw_inputs(variables, N_POINTS, np.random.default_rng(0)).tolist()
    question = {
        "answer": answer.to_tokens(),
        "truth": truth.to_tokens(),
        "points": points,
        "positive": [v.name for v in variables if v.bounds[0] > 0],
        "tolerance": tolerance,
    }
    verdict = _worker.ask(question, time_limit)
    return verdict if isinstance(verdict, bool) else None


class Worker:
    """A child process that answers questions, one JSON line each."""

    def __init__(self, module: str = "deap_vsr.judge._symbolic_worker") -> None:
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, question: dict[str, Any], time_limit: float) -> Any:
        """Return the worker's answer, or None if it has none within `time_limit` seconds."""
        with self._lock:
            try:
                process = self._running()
                line = None if process is None else _exchange(process, json.dumps(question) + "\n", time_limit)
                return None if line is None else json.loads(line)
            except ValueError:  # not JSON: a worker in disorder
                self.stop()
                return None
            except BaseException:  # Ctrl-C, say: the answer on its way must not meet the next question
                self.stop()
                raise
            finally:
                if self._process is not None and self._process.poll() is not None:
                    self.stop()

    def _running(self) -> subprocess.Popen[str] | None:
        """Return the process, started if need be; after a fork the child starts its own."""
        if self._process is not None and self._owner == os.getpid():
            if self._process.poll() is None:
                return self._process
            self.stop()
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        if _exchange(self._process, "", START_UP) is None:
            self.stop()
            return None
        return self._process

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                _close(pipe)
        self._process = None


def _close(pipe: IO[str] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        pass  # the other end is gone, which is what we wanted


def _exchange(process: subprocess.Popen[str], text: str, time_limit: float) -> str | None:
    """Send `text` and read one line, both within `time_limit` seconds; None, and an end to it, if not."""
    lines: list[str] = []

    def exchange() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(text)
            process.stdin.flush()
            lines.append(process.stdout.readline())
        except (OSError, ValueError):
            pass  # the process is gone: no line

    # In a thread, as both a full pipe and a silent worker would wait for ever.
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(time_limit)
    if thread.is_alive() or not lines or not lines[0]:
        process.kill()  # ends the thread's waiting as well
        process.wait()
        thread.join()
        return None
    return lines[0]


_worker = Worker()
atexit.register(_worker.stop)
