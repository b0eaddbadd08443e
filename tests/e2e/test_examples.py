import difflib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_every_example_runs(name):
    run = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_vertical_search_is_at_most_ten_lines_away_from_a_plain_script():
    plain, vertical = (
        (EXAMPLES / name).read_text().splitlines() for name in ("symbreg_plain.py", "symbreg_vertical.py")
    )
    changed = [line for line in difflib.ndiff(plain, vertical) if line[:2] == "+ " and line[2:].strip()]
    assert len(changed) <= 10
    removed = [line for line in difflib.ndiff(plain, vertical) if line[:2] == "- " and line[2:].strip()]
    assert len(removed) <= 10


def test_the_vertical_script_finds_the_law_that_the_plain_one_only_approaches():
    vertical = runpy.run_path(str(EXAMPLES / "symbreg_vertical.py"))
    assert vertical["main"](seed=0).fitness.values[0] < 1e-20
