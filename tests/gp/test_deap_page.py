"""The recipes of docs/deap.md run as they stand, one after the other, in a script of the kind they are for."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from deap import algorithms, creator

import deap_vsr as vsr

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "deap.md").read_text(), re.DOTALL)


def small(block):
    """Return a recipe with few generations and individuals."""
    return block.replace(" 40,", " 2,").replace("60, 120", "12, 12").replace("(60)", "(12)").replace(" 20,", " 2,")


@pytest.fixture
def script(monkeypatch):
    """Return the names of the example; the classes that it makes go afterwards, and those of others come back."""
    for name in ("FitnessMin", "Individual"):
        monkeypatch.delattr(creator, name, raising=False)
    before = set(vars(creator))
    yield runpy.run_path(str(ROOT / "examples" / "symbreg_vertical.py"))
    for name in set(vars(creator)) - before:
        delattr(creator, name)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_recipe_runs(number, script, tmp_path):
    steps = np.linspace(1, 5, 4)
    X = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    names = {name: script[name] for name in ("toolbox", "pset", "law", "creator", "tools")}
    names |= {"vsr": vsr, "np": np, "algorithms": algorithms, "X": X, "y": script["law"](X)}
    names |= {
        "population": script["toolbox"].population(n=12),
        "oracle": vsr.CallableOracle(script["law"], [(1, 5)] * 3),
    }
    path = tmp_path / f"recipe_{number}.py"
    path.write_text(small(BLOCKS[number]))
    names = runpy.run_path(str(path), init_globals=names)
    if "evaluate" in names:
        assert names["evaluate"](names["population"][0])[0] >= 0
    assert len(names["population"]) >= 1


def test_the_page_shows_the_lines_in_which_the_two_examples_differ():
    page = (ROOT / "docs" / "deap.md").read_text()
    shown = re.search(r"```diff\n(.*?)```", page, re.DOTALL)[1].splitlines()
    for sign, name in (("-", "symbreg_plain.py"), ("+", "symbreg_vertical.py")):
        lines = (ROOT / "examples" / name).read_text().splitlines()
        assert [line[1:] for line in shown if line.startswith(sign) and line[1:] not in lines] == []
