"""Write results.md: what came out of every comparison of results/, as `vsr report` has it.

``make results`` makes the reports anew, and then this page with its pictures; the tests compare the page with the runs.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from deap_vsr.compare.claims import in_words
from deap_vsr.compare.paper import SUITES
from deap_vsr.compare.report import how_bounded, how_far
from deap_vsr.compare.statistics import ordered
from deap_vsr.compare.store import read_rows, read_settings
from deap_vsr.compare.tables import claim_table, median_tables, recovery
from deap_vsr.compare.writers import markdown, to_markdown

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
#: Comparisons that are none of the paper's suites, and what they are called.
TITLES = {"smallest": "The two smallest sets"}

#: A table of recovery with more lines is left to the comparison's own page.
_MAX_LINES = 30
_INTRODUCTION = """# Results

Every section is one comparison: the command that made it, what came out, and in how many cells the paper's claim,
vertical ahead of horizontal, holds. The page is written from the runs (`make results`), also from those of a comparison
that is not finished, and says so then. Times and memory are those of the machine that is named, beside other work.
"""


def folders() -> list[Path]:
    """Return the folders of results/ that hold runs, by name."""
    return sorted(path.parent for path in (ROOT / "results").glob("*/runs.jsonl"))


def page() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *map(section, folders())])


def section(folder: Path) -> str:
    """Return what is said of one comparison."""
    settings = read_settings(folder)
    rows = ordered(read_rows(folder), settings["methods"])
    lengthy = recovery(rows)
    tables = [claim_table(rows), *median_tables(rows), *([lengthy] if len(lengthy.rows) <= _MAX_LINES else [])]
    parts = [
        f"## {_title(folder, settings)}",
        f"```sh\n{command(folder, settings)}\n```",
        how_bounded(settings) + how_far(settings, rows),
        *map(markdown, in_words(rows)),
        *("#" + to_markdown(table).rstrip() for table in tables if table.rows),
        f"![NMSE by method and set](pictures/{picture(folder).name})",
        _machine(rows),
        f"All tables: [results/{folder.name}](../results/{folder.name}/tables.md).",
    ]
    return "\n\n".join(parts) + "\n"


def command(folder: Path, settings: dict[str, Any]) -> str:
    """Return the command that made a comparison."""
    own = not any(suite in SUITES for suite in settings["suites"])  # the paper's suites bring these
    options = {
        "--methods": ",".join(settings["methods"]),
        "--seeds": len(settings["seeds"]) if len(settings["seeds"]) > 1 else None,
        "--noise": ",".join(f"{level:g}" for level in settings["noise"]) if own and any(settings["noise"]) else None,
        "--noise-of": settings["noise_of"],
        "--optimizers": ",".join(filter(None, settings["optimizers"])) if own else None,
        "--preset": settings["preset"],
        **{f"--{name.replace('_', '-')}": settings[name] for name in ("time_limit", "max_evaluations", "max_queries")},
        "--out": f"results/{folder.name}",
    }
    given = [
        part
        for name, value in options.items()
        if value
        for part in (name, f"{value:g}" if isinstance(value, float) else str(value))
    ]
    lines = [
        shlex.join(["vsr", "compare", *settings["suites"]]),
        *map(shlex.join, zip(given[::2], given[1::2], strict=True)),
    ]
    return " \\\n    ".join(lines)


def picture(folder: Path) -> Path:
    """Return where the page has the box plot of a comparison."""
    return ROOT / "docs" / "pictures" / f"results_{folder.name}.png"


def _title(folder: Path, settings: dict[str, Any]) -> str:
    suite = settings["suites"][0]
    return f"{suite}: {SUITES[suite].what}" if suite in SUITES else TITLES.get(folder.name, folder.name)


def _machine(rows: list[dict[str, Any]]) -> str:
    machines = {f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows}
    versions = {", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in rows}
    return f"Machine: {'; '.join(sorted(machines))}. Versions: {'; '.join(sorted(versions))}."


if __name__ == "__main__":
    for each in folders():
        drawn = each / "pictures" / "nmse.png"
        if drawn.exists():
            picture(each).write_bytes(drawn.read_bytes())
    PAGE.write_text(page(), encoding="utf-8")
