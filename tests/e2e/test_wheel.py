import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, so that no build folder is left in the checkout.
    source = folder / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "deap_vsr", "cfg_mcts", "data"):
        (source / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_both_packages_the_data_and_nothing_else_at_the_top(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"deap_vsr", "cfg_mcts"}
    assert sum(name.startswith("deap_vsr/data/") and name.endswith(".json") for name in names) == 673
    assert {"deap_vsr/data/sources/problems.csv", "deap_vsr/data/sources/paper_tables.csv"} <= set(names)
    assert {"deap_vsr/compare/report.css", "deap_vsr/compare/report.js"} <= set(names)
    assert "deap_vsr/py.typed" in names


def test_problems_load_by_name_from_the_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import deap_vsr; from deap_vsr.problems import suites;"
        "print(deap_vsr.load_equation('feynman/I.39.22').formula, len(suites.problem_names()), suites.data_root())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split()[-2:] == ["673", str(tmp_path / "site" / "deap_vsr" / "data")]
