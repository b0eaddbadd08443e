"""docs/results.md says what the runs of results/ say."""

import runpy
import shlex
from pathlib import Path

import pytest

from deap_vsr.compare.store import read_settings

ROOT = Path(__file__).parents[2]
RESULTS = runpy.run_path(str(ROOT / "docs" / "results.py"))
FOLDERS = RESULTS["folders"]()


def test_the_page_is_what_the_runs_say():
    assert RESULTS["PAGE"].read_text(encoding="utf-8") == RESULTS["page"]()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_section_has_its_picture_and_two_sentences(folder):
    assert RESULTS["picture"](folder).is_file()
    text = RESULTS["section"](folder)
    assert "The median NMSE is no worse" in text
    assert "Points asked, the median" in text


def test_the_command_of_a_section_is_the_one_that_made_it():
    folder = ROOT / "results" / "smallest"
    words = shlex.split(RESULTS["command"](folder, read_settings(folder)).replace("\\\n", " "))
    assert words[:4] == ["vsr", "compare", "trigonometric/inv/2-1-1", "trigonometric/inv/3-2-2"]
    assert dict(zip(words[4::2], words[5::2], strict=True)) == {
        "--methods": "gp,vsr-gp,mcts,vsr-mcts,vsr", "--max-evaluations": "20000", "--out": "results/smallest",
    }  # fmt: skip


def test_a_suite_of_the_paper_brings_its_noise_and_optimizers():
    settings = read_settings(ROOT / "results" / "smallest") | {
        "suites": ["paper:table3"], "noise": [0.1], "seeds": [0, 1], "time_limit": 10.0, "max_evaluations": None,
    }  # fmt: skip
    words = " ".join(RESULTS["command"](ROOT / "results" / "table3", settings).replace("\\\n", " ").split())
    assert words.startswith("vsr compare paper:table3 --methods")
    assert "--noise" not in words
    assert "--seeds 2 --time-limit 10 --out results/table3" in words
