"""The page for owners of a simulator, and its notebook: everything on them runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "simulator.py").write_text(blocks("python")[0], encoding="utf-8")
    return tmp_path


def test_every_program_of_the_page_runs(folder):
    program = "\n".join(blocks("python")[1:])
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert {"asked.csv", "result.json", "residuals.png", "points.csv"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("command", "".join(blocks("sh")).splitlines())
def test_every_command_of_the_page_runs(folder, command):
    program, *arguments = shlex.split(command)
    assert program == "vsr"
    run = subprocess.run([sys.executable, "-m", "deap_vsr", *arguments], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "found:" in run.stdout


@pytest.mark.filterwarnings("ignore")  # those of the kernel's own packages
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    notebook = nbformat.read(ROOT / "examples" / "simulator.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert sum("image/png" in output.get("data", {}) for output in shown) == 3
