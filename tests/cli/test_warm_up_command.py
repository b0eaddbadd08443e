"""`vsr warm-up`: kernels compiled, or read where they are kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deap_vsr import cli
from deap_vsr.engine import warm


def test_it_says_how_long_it_took_and_where_kernels_are_kept():
    said = CliRunner().invoke(cli.app, ["warm-up", "--json"])
    told = json.loads(said.stdout)
    assert said.exit_code == 0
    assert told["compiled"] is warm.compile_kernels()
    assert told["seconds"] >= 0.0
    assert told["folder"] is None or list(Path(told["folder"]).glob("trials.fit_trials*"))


def test_it_says_so_where_kernels_are_kept_nowhere(monkeypatch):
    monkeypatch.setattr(warm, "compile_kernels", lambda: True)
    monkeypatch.setattr(warm, "cache_folder", lambda: None)
    said = CliRunner().invoke(cli.app, ["warm-up"]).stdout
    assert "kernels compiled in 0.0 s" in said
    assert "kept nowhere" in said


@pytest.mark.parametrize(("said", "taken"), [(None, "1"), ("3", "3")])
def test_the_command_does_linear_algebra_by_one_thread_unless_it_is_said(said, taken):
    code = (
        "import os, deap_vsr.cli; from deap_vsr.__main__ import main;"
        "deap_vsr.cli.main = lambda interrupts: print(os.environ['OPENBLAS_NUM_THREADS']); main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if said is None else {"OPENBLAS_NUM_THREADS": said}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == taken
