import difflib
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deap_vsr import EquationOracle, discover, load_equation

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


def test_the_noisy_law_is_found_with_its_constant():
    result = runpy.run_path(str(EXAMPLES / "noisy_lab.py"))["main"]()
    assert result.stopped_by == "done"
    (number,) = [n.value for n in result.tree if not n.arity and not isinstance(n.value, str) and abs(n.value) != 1]
    assert abs(number) == pytest.approx(1.25, abs=4 * result.standard_errors[0])


def test_the_reading_edition_is_short_and_gives_the_package_s_answer():
    assert len((EXAMPLES / "vsr_plain.py").read_text().splitlines()) < 200
    law = load_equation("feynman-unit/I.39.22")
    plain = runpy.run_path(str(EXAMPLES / "vsr_plain.py"))
    found, path = plain["vertical"](EquationOracle(law), order=[2, 1, 0], seed=0)
    assert [form.to_infix(skeleton=True) for form in path[:2]] == ["C/x3", "C*x2/x3"]
    package = discover(law, "vsr-gp", schedule="x3,x2,x1", max_evaluations=300_000)
    X = np.random.default_rng(0).uniform(0.1, 10, (50, 3))
    np.testing.assert_allclose(found.evaluate(X), package.tree.evaluate(X), rtol=1e-9)
    assert [len(record.tree.slots) for record in package.rounds[-3:]] == [len(form.slots) for form in path]
