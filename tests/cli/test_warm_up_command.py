"""`vsr warm-up`: kernels compiled, or read where they are kept."""

import json
from pathlib import Path

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
