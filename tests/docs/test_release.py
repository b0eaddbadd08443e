"""What is published beside the code: how to cite it, and how an agent is to use it."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

import deap_vsr
from deap_vsr.cli import app

yaml = pytest.importorskip("yaml", reason="comes with mkdocs")
ROOT = Path(__file__).parents[2]


def test_what_is_cited_is_this_version_and_has_what_the_format_asks_for():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["version"] == re.sub(r"\.dev\d+$", "", deap_vsr.__version__)
    for reference in cited["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, flags=re.M)[1] == re.sub(r"\.dev\d+$", "", deap_vsr.__version__)


def test_the_skill_has_a_head_and_names_only_options_that_there_are():
    text = (ROOT / "SKILL.md").read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---")[1])
    assert set(head) == {"name", "description"}
    discover = typer.main.get_command(app).commands["discover"]
    known = {option for parameter in discover.params for option in parameter.opts}
    named = set(re.findall(r"--[a-z][a-z-]*", text))
    assert named
    assert named <= known


@pytest.mark.parametrize("page", ["README.md", "SKILL.md", "docs/adapters.md", "docs/index.md", "docs/reproduce.md"])
def test_every_command_of_vsr_that_a_page_names_is_there(page):
    commands = typer.main.get_command(app).commands
    named = re.findall(
        r"`vsr ([a-z-]+)[^`]*`|^vsr ([a-z-]+) .*$", (ROOT / page).read_text(encoding="utf-8"), flags=re.M
    )
    for one, other in named:
        assert (one or other) in commands, shlex.quote(one or other)
