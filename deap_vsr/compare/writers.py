"""A table as Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
import re
from html import escape

from deap_vsr.compare.tables import Cell, Table
from deap_vsr.errors import printable

#: What a formula of a spreadsheet begins with.
_FORMULA = ("=", "+", "-", "@", "|", "%")
_ARROWS = {"<": "▼", "=": "=", ">": "▲", "": ""}
_LATEX_ARROWS = {"<": r"$\downarrow$", "=": "$=$", ">": r"$\uparrow$", "": ""}
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "▼": r"$\downarrow$", "▲": r"$\uparrow$",
}  # fmt: skip


def to_markdown(table: Table) -> str:
    """Return the table in Markdown."""
    lines = [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
    lines.append("| " + " | ".join(map(markdown, table.columns)) + " |")
    lines.append("|" + "---|" * len(table.columns))
    lines += ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def markdown(text: str) -> str:
    """Return text as it is in Markdown, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#!&])", r"\\\1", printable(text))


def _markdown_cell(cell: Cell) -> str:
    shown = f"**{markdown(cell.text)}**" if cell.best else markdown(cell.text)
    return " ".join(filter(None, (shown, _ARROWS[cell.sign], f"({markdown(cell.paper)})" if cell.paper else "")))


def to_latex(table: Table) -> str:
    """Return the table in LaTeX, without any package."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{_latex(table.title)}. {_latex(table.note)}}}".replace(". }", ".}"),
        rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}",
        r"\hline",
        " & ".join(map(_latex, table.columns)) + r" \\",
        r"\hline",
        *(" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(text))


def _latex_cell(cell: Cell) -> str:
    shown = rf"\textbf{{{_latex(cell.text)}}}" if cell.best else _latex(cell.text)
    return " ".join(filter(None, (shown, _LATEX_ARROWS[cell.sign], f"({_latex(cell.paper)})" if cell.paper else "")))


def to_csv(table: Table) -> str:
    """Return the table as CSV, numbers in full; a column with the paper's figures has a second one for them."""
    beside = [any(row[i].paper for row in table.rows) for i in range(len(table.columns))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    header: list[str] = []
    for name, has in zip(table.columns, beside, strict=True):
        shown = str(_plain_text(name))
        header += [shown, f"{shown}: paper", f"{shown}: difference"] if has else [shown]
    writer.writerow(header)
    for row in table.rows:
        line: list[object] = []
        for cell, has in zip(row, beside, strict=True):
            value = "" if cell.value is None else _plain_text(cell.value)
            line += [value, _plain_text(cell.paper), _plain_text(cell.sign)] if has else [value]
        writer.writerow(line)
    return file.getvalue()


def _plain_text(value: float | int | str) -> float | int | str:
    """Return an entry of a CSV file; before what a spreadsheet would take for a formula there is an apostrophe."""
    if isinstance(value, str) and value not in ("-inf", "=") and value.lstrip()[:1] in _FORMULA:
        return "'" + printable(value)
    return printable(value) if isinstance(value, str) else value


def to_html(table: Table) -> str:
    """Return the table in HTML; its columns can be sorted by the report's script."""
    kinds = [_kind(cell) for cell in table.rows[0]] if table.rows else [""] * len(table.columns)
    head = "".join(
        f'<th scope="col"{kind}><button type="button">{escape(name)}</button></th>'
        for name, kind in zip(table.columns, kinds, strict=True)
    )
    body = "\n".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in table.rows)
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<section id="{escape(table.name)}"><h2>{escape(table.title)}</h2>{note}\n<div class="wide"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div></section>"
    )


def _html_cell(cell: Cell) -> str:
    shown = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    if cell.link:
        shown = f'<a href="#{escape(cell.link)}">{shown}</a>'
    if cell.paper:
        kind = "better" if cell.better else "worse" if cell.sign in ("<", ">") else "same"
        sign = f'<span class="{kind}">{_ARROWS[cell.sign]}</span> ' if cell.sign else ""
        shown += f" <small>{sign}({escape(cell.paper)})</small>"
    return f'<td{_kind(cell)} data-value="{escape("" if cell.value is None else str(cell.value))}">{shown}</td>'


def _kind(cell: Cell) -> str:
    number = isinstance(cell.value, int | float) or cell.value in (None, "inf", "-inf")
    return ' class="number"' if number else ""
