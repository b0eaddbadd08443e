"""The report of a comparison: tables, pictures, and one HTML page that can be mailed, as nothing in it is elsewhere."""

from __future__ import annotations

import base64
import io
import math
import shlex
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from deap_vsr.compare.claims import in_words
from deap_vsr.compare.job import parts_of
from deap_vsr.compare.paths import path_html
from deap_vsr.compare.pictures import Picture, all_pictures
from deap_vsr.compare.statistics import Row, called_found, false_found, label, ordered
from deap_vsr.compare.store import read_rows, read_settings
from deap_vsr.compare.tables import Cell, Table, all_tables, error, real, text, whole
from deap_vsr.compare.writers import markdown, to_csv, to_html, to_latex, to_markdown
from deap_vsr.errors import VsrError, printable
from deap_vsr.plot import FROZEN, OPEN, SLOT, have_matplotlib
from deap_vsr.terminal import make_folder

#: Characters of a formula, and of a reason, in the table of runs; the run itself has all of it.
_MAX_TEXT = 60


def write_report(folder: Path) -> list[Path]:
    """Write report.html, tables.md, tables.tex, tables/*.csv, pictures/*.png; returns the paths, the report first."""
    settings = read_settings(folder)
    rows = ordered(read_rows(folder), settings.get("methods", []))
    if not rows:
        raise VsrError(f"{folder}: no run is finished yet")
    tables = all_tables(rows)
    pictures = [(picture, _png(picture)) for picture in all_pictures(rows)] if have_matplotlib() else []
    statement, title = f"{how_bounded(settings)}{how_far(settings, rows)}", _title(settings)
    words = "\n\n".join([statement, *map(markdown, in_words(rows))])
    content: dict[str, bytes] = {
        "report.html": page(settings, rows, tables, pictures).encode(),
        "tables.md": "\n".join([f"# {markdown(title)}\n\n{words}\n", *map(to_markdown, tables)]).encode(),
        "tables.tex": "\n".join([f"% {printable(title)}\n% {statement}\n", *map(to_latex, tables)]).encode(),
    }
    content |= {f"tables/{table.name}.csv": to_csv(table).encode() for table in tables}
    content |= {f"pictures/{picture.name}.png": drawn for picture, drawn in pictures}
    for name in ("tables", "pictures") if pictures else ("tables",):
        make_folder(folder / name)
    try:
        for name, data in content.items():
            (folder / name).write_bytes(data)
    except OSError as problem:
        raise VsrError(f"{folder}: cannot write: {problem.strerror}") from None
    return [folder / name for name in content]


def how_bounded(settings: Row) -> str:
    """Return what the limits of every run were, whether the same command gives the same tables, and what noise is."""
    return _bounds(settings) + (
        " Levels of noise are shares of the root mean square of y over its domain." if settings["noise_of"] else ""
    )


def _bounds(settings: Row) -> str:
    names = {"time_limit": "s", "max_evaluations": "evaluations", "max_queries": "oracle queries"}
    limits = " or ".join(f"{settings[key]:,g} {unit}" for key, unit in names.items() if settings.get(key))
    if settings.get("time_limit"):
        return (
            f"Every run had the same limit: {limits}. Runs bounded by seconds are not reproducible: how far they get "
            "depends on the machine and what else it does."
        )
    return (
        f"Every run had the same limit: {limits}. Runs bounded by counts are reproducible: the same command gives the "
        "same tables, but for time and memory."
    )


def page(settings: Row, rows: list[Row], tables: list[Table], pictures: list[tuple[Picture, bytes]]) -> str:
    """Return the HTML page."""
    here = files("deap_vsr.compare")
    style = here.joinpath("report.css").read_text(encoding="utf-8")
    style += f".frozen {{ background: {FROZEN}; }} .slot {{ background: {SLOT}; }} .open {{ background: {OPEN}; }}"
    script = here.joinpath("report.js").read_text(encoding="utf-8")
    title = escape(_title(settings))
    sections = [*tables, _runs_table(rows)]
    links = [(table.name, table.title) for table in sections] + [("pictures", "Pictures"), ("paths", "Paths")]
    # The policy keeps the page from loading or sending anything, whatever text a file brought in.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header><h1>{title}</h1>
{_facts(settings, rows)}
<p class="note">{escape(how_bounded(settings) + how_far(settings, rows))}</p>
{"".join(f"<p>{escape(sentence)}</p>" for sentence in in_words(rows))}
<nav>{"".join(f'<a href="#{escape(name)}">{escape(shown)}</a>' for name, shown in links)}</nav></header>
<main>
{chr(10).join(map(to_html, tables))}
{_pictures(pictures)}
{to_html(sections[-1])}
{_paths(rows)}
{_settings(settings, rows)}
</main>
<footer>Made by deap_vsr {escape(str(settings.get("version", "")))}. Click on the head of a column to sort by it.</footer>
<script>
{script}
</script>
</body>
</html>
"""  # noqa: E501


def how_far(settings: Row, rows: list[Row]) -> str:
    """Return how much of a comparison is there, if it is not all."""
    return f" {len(rows)} of {settings['runs']} runs are finished." if len(rows) < settings["runs"] else ""


def _title(settings: Row) -> str:
    return f"Comparison of {', '.join(settings['methods'])} on {', '.join(settings['suites'])}"


def _facts(settings: Row, rows: list[Row]) -> str:
    failed = sum(row["status"] == "failed" for row in rows)
    facts: dict[str, Any] = {
        "runs finished": len(rows) if len(rows) == settings["runs"] else f"{len(rows)} of {settings['runs']}",
        "failed": failed,
        "recovered": f"{sum(bool(row['recovered']) for row in rows)}",
        "found": _count(called_found(rows)),
        "found falsely": _count(false_found(rows)),
        "problems": len({row["problem"] for row in rows}),
        "seeds": len({row["seed"] for row in rows}),
    }
    return (
        '<div class="facts">'
        + "".join(f"<div><b>{escape(str(value))}</b><span>{name}</span></div>" for name, value in facts.items())
        + "</div>"
    )


def _count(value: float) -> str:
    return "not known" if math.isnan(value) else f"{value:.0f}"


def _png(picture: Picture) -> bytes:
    file = io.BytesIO()
    picture.figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return file.getvalue()


def _pictures(pictures: list[tuple[Picture, bytes]]) -> str:
    if not pictures:
        inside = "<p>Pictures need matplotlib: pip install matplotlib, or deap-vsr[plot], and vsr report again.</p>"
    else:
        inside = "\n".join(
            f'<figure><div class="wide"><img{_width(picture)} alt="{escape(picture.title)}" '
            f'src="data:image/png;base64,{base64.b64encode(data).decode()}"></div>'
            f"<figcaption>{escape(picture.title)}</figcaption></figure>"
            for picture, data in pictures
        )
    return f'<section id="pictures"><h2>Pictures</h2>\n<div class="figures">{inside}</div></section>'


def _width(picture: Picture) -> str:
    """Return a mark for pictures of two panels in a line, which a phone would make too small to read."""
    return ' class="double"' if picture.figure.get_figwidth() > 6 else ""


# --- runs ---------------------------------------------------------------------------------


def _runs_table(rows: list[Row]) -> Table:
    lines = []
    for n, row in enumerate(rows):
        costs = (row[name] for name in ("seconds", "evaluations", "oracle_queries"))
        seconds, evaluations, queries = (float("nan") if value is None else value for value in costs)
        end = row["stopped_by"] if row["status"] == "done" else "failed"
        end = "done" if end == "found" else end  # the word of earlier versions
        lines.append((
            Cell(row["problem"], row["problem"], link=f"run-{n}"), real(row["noise"]), text(label(row)),
            whole(row["seed"]), text(end), error(float("inf") if row["nmse"] is None else row["nmse"]),
            text("yes" if row["recovered"] else "no"), text(_standing(row)), real(seconds), whole(evaluations),
            whole(queries), _shortened(row["expression"] or ""), _shortened(_told(row, "reason", "")),
        ))  # fmt: skip
    columns = (
        "problem", "noise", "method", "seed", "stopped by", "NMSE", "recovered", "status", "seconds", "evaluations",
        "queries", "formula", "reason",
    )  # fmt: skip
    return Table("runs", "Every run", columns, tuple(lines))


def _shortened(words: str) -> Cell:
    return Cell(words if len(words) <= _MAX_TEXT else words[: _MAX_TEXT - 4] + " ...", words)


def _told(row: Row, name: str, default: Any) -> Any:
    """Return an entry of the result of a run; runs that failed, and those of earlier versions, have not all of them."""
    return (row["result"] or {}).get(name) or default


def _standing(row: Row) -> str:
    """Return how the answer of a run stands; nothing where that is not known."""
    return "found, falsely" if row["false_found"] else row["standing"] or ""


def _paths(rows: list[Row]) -> str:
    legend = (
        '<p class="formula"><span class="frozen">frozen</span> <span class="slot">slot</span> '
        '<span class="open">may still change</span></p>'
        "<p>Every run with its formula, how to repeat it, and its path: the reduced forms as variables were freed. "
        "Frozen parts are kept by later rounds; slots are where they may grow.</p>"
    )
    return (
        '<section id="paths"><h2>Paths</h2>\n'
        + legend
        + "\n".join(_run(n, row) for n, row in enumerate(rows))
        + "</section>"
    )


def _run(n: int, row: Row) -> str:
    noise = f", noise {row['noise']:g}" if row["noise"] else ""
    title = escape(f"{row['problem']}, {label(row)}, seed {row['seed']}{noise}")
    if row["status"] == "failed":
        tag, what = '<span class="tag bad">failed</span>', f"<p>{escape(str(row['error']))}</p>"
    else:
        tag = (
            '<span class="tag good">recovered</span>' if row["recovered"] else '<span class="tag">not recovered</span>'
        )
        if row["standing"]:
            tag += f' <span class="tag{" bad" if row["false_found"] else ""}">{escape(_standing(row))}</span>'
        shown = f"y = {row['expression']}" if row["expression"] else "no formula was found"
        what = f'<p class="formula">{escape(shown)}</p>{_stands(row)}{path_html(_told(row, "rounds", []))}'
    command = f"<p>Again: <code>{escape(command_of(row))}</code></p>" if command_of(row) else ""
    return f'<details id="run-{n}"><summary>{title} {tag}</summary><div class="inside">{what}{command}</div></details>'


def _stands(row: Row) -> str:
    """Return how the answer of a run stands, why, and its rivals."""
    if not row["standing"]:
        return ""
    share = _told(row, "share", 1.0)
    doubt = f"; it may be wrong in at most about {share:.1%} of the domain" if row["standing"] == "found" else ""
    rivals = [
        f'<li>{rival["behind"] or 0.0:.1f} nats behind: <span class="formula">{escape(rival["expression"])}</span></li>'
        for rival in _told(row, "rivals", [])
    ]
    shown = f"<p>Rivals that the data do not refute:</p><ul>{''.join(rivals)}</ul>" if rivals else ""
    return f"<p><b>{escape(_standing(row))}</b>: {escape(_told(row, 'reason', '') + doubt)}</p>{shown}"


def command_of(row: Row) -> str:
    """Return the command that repeats a run; empty for a method that there is not."""
    from deap_vsr.methods import METHODS

    method, expansion, grammar = parts_of(row["method"])
    if method not in METHODS and ":" not in method:
        return ""
    options = {
        "--method": method, "--expansion": expansion, "--grammar": grammar, "--seed": row["seed"] or "",
        "--noise": row["noise"] or "",
        "--noise-of": row["noise_of"], "--preset": row["preset"], "--optimizer": row["optimizer"],
        "--time-limit": row["time_limit"],
        "--max-evaluations": row["max_evaluations"], "--max-queries": row["max_queries"],
    }  # fmt: skip
    given = [part for name, value in options.items() if value for part in (name, str(value))]
    return shlex.join(["vsr", "discover", row["problem"], *given])


def _settings(settings: Row, rows: list[Row]) -> str:
    shown = {key: value for key, value in settings.items() if key != "problems" and value not in (None, [], [None])}
    machines = sorted({f"{row['machine']['processor']}, {row['machine']['cores']} cores, {row['machine']['system']}"
                       for row in rows})  # fmt: skip
    versions = sorted({", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in rows})
    lines = [*(f"{key}: {_words(value)}" for key, value in shown.items()), *(f"machine: {m}" for m in machines),
             *(f"versions: {v}" for v in versions)]  # fmt: skip
    return (
        '<section id="settings"><h2>Settings</h2><ul>'
        + "".join(f"<li>{escape(line)}</li>" for line in lines)
        + "</ul></section>"
    )


def _words(value: Any) -> str:
    return (
        ", ".join("the method's own" if item is None else str(item) for item in value)
        if isinstance(value, list)
        else str(value)
    )
