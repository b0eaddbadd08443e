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

from deap_vsr.control.equation import Variable
from deap_vsr.errors import ExpressionError
from deap_vsr.notation import MAX_SYMPY_DEPTH
from deap_vsr.tree import MaskedTree

MAX_SYMPY_NODES = 2_000
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
    scales = {v.name: max(abs(v.low), abs(v.high)) for v in variables}
    question = {
        "answer": answer.to_tokens(),
        "truth": truth.to_tokens(),
        "scales": scales,
        "positive": [v.name for v in variables if v.bounds[0] > 0],
        "tolerance": tolerance,
    }
    verdict = _worker.ask(question, time_limit)
    return verdict if isinstance(verdict, bool) else None


class Worker:
    """A child process that answers questions, one JSON line each."""

    def __init__(self, module: str = "deap_vsr._symbolic_worker") -> None:
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, question: dict[str, Any], time_limit: float) -> Any:
        """Return the worker's answer, or None if it takes longer than `time_limit` seconds."""
        with self._lock:
            process = self._running()
            if process is None:
                return None
            if not _send(process, question):
                self.stop()
                return None
            line = _read_line(process, time_limit)
            if line is None:
                self.stop()
                return None
            return json.loads(line)

    def _running(self) -> subprocess.Popen[str] | None:
        """Return the process, started if need be; after a fork the child starts its own."""
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        if _read_line(self._process, START_UP) is None:
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


def _send(process: subprocess.Popen[str], question: dict[str, Any]) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    except OSError:
        return False
    return True


def _read_line(process: subprocess.Popen[str], time_limit: float) -> str | None:
    """Read one line within `time_limit` seconds; None if there is none."""
    lines: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        try:
            lines.append(process.stdout.readline())
        except (OSError, ValueError):
            lines.append("")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(time_limit)
    if reader.is_alive():
        process.kill()  # ends the read as well
        reader.join()
        return None
    return lines[0] or None


_worker = Worker()
atexit.register(_worker.stop)
