"""Hooks of the documentation site: pages that stand elsewhere in the repository, and links to them.

A link such as ``../benchmarks/truth.md`` works where the repository is read; here its target is a page of the site.
Programs of ``examples/`` become pages with their text.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
#: Folders and files outside of docs/ whose pages are part of the site, and what they are called in it.
ELSEWHERE = ("benchmarks/*.md", "results/*/tables.md")
RENAMED = {"CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(\]\()\.\./([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand elsewhere, and one for each program of examples/."""
    found = {path.relative_to(ROOT).as_posix(): path for pattern in ELSEWHERE for path in sorted(ROOT.glob(pattern))}
    for place, path in found.items():
        files.append(File.generated(config, place, content=_at_home(path.read_text(encoding="utf-8"))))
    for name, place in RENAMED.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    programs = sorted((ROOT / "examples").glob("*.py"))
    for program in programs:
        text = program.read_text(encoding="utf-8")
        content = f"# {program.name}\n\n```python\n{text}```\n"
        files.append(File.generated(config, f"examples/{program.stem}.md", content=content))
    files.append(File.generated(config, "gallery.md", content=_gallery(programs)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links out of docs/ to the site's own pages; what is no page of the site is left as text."""
    depth = page.file.src_uri.count("/")

    def target(match: re.Match[str]) -> str:
        place = RENAMED.get(match[2], match[2])
        place = re.sub(r"^examples/(\w+)\.py$", r"examples/\1.md", place)
        place = (
            place.rstrip("/") + "/tables.md" if place.rstrip("/").startswith("results/") and "." not in place else place
        )
        return f"{match[1]}{'../' * depth}{place}" if files.get_file_from_path(place) else match[0]

    text = _LINK.sub(target, markdown) if not depth else markdown
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:deap_vsr|cfg_mcts)/[^)]*\)", r"`\1`", text)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Take the roles out that docstrings have before names."""
    return re.sub(r":(?:class|func|meth|attr|mod):(?=<code>)", "", html)


def _at_home(text: str) -> str:
    """Return a page of benchmarks/ or results/ whose links into docs/ go to the site's pages."""
    return text.replace("](../docs/", "](../").replace("](../../docs/", "](../../")


def _first_words(said: str) -> str:
    words = said.strip().split("\n\n")[0].replace("\n", " ").replace("](../docs/", "](")
    return re.sub(r"([*|])", r"\\\1", words)  # formulas have stars


def _gallery(programs: list[Path]) -> str:
    """Return the page that lists what is in examples/, each with the first words of what it says of itself."""
    rows = []
    for program in programs:
        said = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
        rows.append(f"| [{program.name}](examples/{program.stem}.md) | {_first_words(said)} |")
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        first = json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"]
        _, _, said = "".join(first).partition("\n\n")  # behind its title
        rows.append(f"| {notebook.name}, a notebook | {_first_words(said)} |")
    return (
        "# Examples\n\nEach is run by the tests, as it stands in `examples/`.\n\n"
        "| program | what it shows |\n|---|---|\n" + "\n".join(rows) + "\n"
    )
