"""The page for laboratories, and its notebook: everything on them runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "laboratory.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


def test_the_commands_of_the_page_run_one_after_the_other(tmp_path):
    for command in "".join(blocks("sh")).splitlines():
        program, *arguments = shlex.split(command)
        assert program == "vsr"
        run = subprocess.run(
            [sys.executable, "-m", "deap_vsr", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
    names = {path.name for path in (tmp_path / "enzyme").iterdir()}
    assert names >= {"lab.json", "asked.csv", "measured.csv", "sheet-1.csv", "report.md", "page.html"}


def test_the_program_of_the_page_finds_the_law(tmp_path):
    (program,) = blocks("python")
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("found")


@pytest.mark.filterwarnings("ignore")  # those of the kernel's own packages
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    notebook = nbformat.read(ROOT / "examples" / "laboratory.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)
