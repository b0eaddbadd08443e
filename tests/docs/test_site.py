"""The documentation: its site has no broken link and fetches nothing, and every command of the tutorial runs."""

import re
import shlex
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


class References(HTMLParser):
    """What a page refers to, and which of it is loaded with the page; the places on it that can be referred to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        loaded = found.get("src") or (found.get("href") if tag == "link" and found.get("rel") == "stylesheet" else None)
        if loaded:
            self.loaded.append(loaded)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the pages of the site, by their path."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})
    assert made.returncode == 0, made.stderr
    return {path: References(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_every_link_within_the_site_leads_somewhere(site):
    broken = []
    for page, found in site.items():
        if page.name == "404.html":  # its links are of a server's root
            continue
        for link in [*found.links, *found.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchored = target in site and parts.fragment and unquote(parts.fragment) not in site[target].places
            if not target.exists() or (anchored and parts.fragment != "__top"):
                broken.append(f"{page.name}: {link}")
    assert len(site) > 20
    assert not broken


def test_the_gallery_has_every_example(site):
    (gallery,) = [path for path in site if path.name == "gallery.html"]
    text = gallery.read_text(encoding="utf-8")
    assert not [path.name for path in (ROOT / "examples").iterdir() if path.is_file() and path.name not in text]


def test_pages_load_nothing_from_elsewhere(site):
    assert not [link for found in site.values() for link in found.loaded if urlsplit(link).netloc]


def test_links_between_files_of_the_repository_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    broken = [
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not urlsplit(link).scheme and not (page.parent / link).exists() and link != "gallery.md"
    ]
    assert not broken


def blocks(page, language):
    """Return the code of a page in a language, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_everything_in_the_tutorial_runs(tmp_path, capsys):
    begun = time.perf_counter()
    commands = [line for block in blocks(DOCS / "tutorial.md", "sh") for line in block.splitlines()]
    assert len(commands) > 4
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "vsr"
        run = subprocess.run(
            [sys.executable, "-m", "deap_vsr", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{command}: {run.stderr}"
    for program in blocks(DOCS / "tutorial.md", "python"):
        run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    assert (tmp_path / "points.csv").exists()
    assert (tmp_path / "my-first-comparison" / "report.html").exists()
    with capsys.disabled():
        print(f" the tutorial took {time.perf_counter() - begun:.0f} s ", end="")
