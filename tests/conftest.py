"""What tests share: small problems, a fresh interpreter, the same examples in every run of hypothesis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from deap_vsr.problems.equation import Equation, parse_equation

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # Of a shell's job in the background; commands that tests start would not hear Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)


settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")


@pytest.fixture
def document() -> dict[str, Any]:
    """A small problem in our own format: y = x1 + 0.25*x2."""
    return {
        "num_vars": 2,
        "var_domains": [[0.1, 10], [0.1, 10]],
        "function_set": ["add", "mul", "const"],
        "equation": [["add", "binary"], ["x1", "var"], ["mul", "binary"], ["0.25", "const"], ["x2", "var"]],
        "name": "small",
        "variables": [
            {"name": "x1", "symbol": "T", "low": 0.1, "high": 10, "sampling": "loguniform", "sign": "positive"},
            {"name": "x2", "symbol": "p", "low": 0.1, "high": 10, "sampling": "uniform", "sign": "both"},
        ],
    }


@pytest.fixture
def make_equation(document: dict[str, Any]) -> Callable[..., Equation]:
    """Return a function that loads the small problem with some keys changed."""

    def make(**changes: Any) -> Equation:
        return parse_equation(json.dumps(document | changes), "small.json")

    return make


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Return a function that runs a script in a fresh interpreter and gives what it prints."""

    def run(script: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
