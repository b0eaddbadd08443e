"""How a campaign stands as text: for a terminal, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from deap_vsr.campaign.folder import Asked, State
from deap_vsr.campaign.sheets import shown
from deap_vsr.campaign.status import Status, noise_text
from deap_vsr.result import Result


def lines_of(status: Status, output: str) -> list[str]:
    """Return how a campaign stands, in a few lines."""
    head = f"{output} = {status.formula}" if status.formula else "no formula yet"
    lines = [f"{status.status}: {head}", f"  {status.reason}"]
    lines += [f"  nearly as well: {output} = {rival}" for rival in status.rivals]
    failed = f", {status.failed} failed" if status.failed else ""
    asked = f"{status.measured} measured, {status.asked} asked in {status.sheets} sheets{failed}"
    lines.append(f"{asked}; {status.open} open; at most {status.points}")
    lines.append(f"next: {status.decides}" + (f"; about {status.needed} more measurements" if status.needed else ""))
    return lines + [f"note: {note}" for note in status.notes]


def rows_of(rows: Sequence[Asked], names: Sequence[str]) -> list[list[str]]:
    """Return a sheet as cells: id, the variables, why."""
    return [[row.id, *(shown(value) for value in row.x), row.why] for row in rows]


def markdown(state: State, status: Status, result: Result) -> str:
    """Return a report of all that there is, as Markdown."""
    setup = state.setup
    unit = f" [{setup.unit}]" if setup.unit else ""
    lines = [
        f"# {_text(setup.output)}{_text(unit)}",
        "",
        f"**{status.status}**: `{setup.output} = {status.formula or '?'}`",
        "",
        f"{_text(status.reason)}. {status.measured} measured, {status.open} open, at most {status.points}.",
        "",
        f"Next: {_text(status.decides)}.",
        "",
        "| variable | unit | from | to | step or digits |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {_text(v.name)} | {_text(v.unit)} | {v.low:g} | {v.high:g} | {v.step or f'{v.digits} digits'} |"
        for v in setup.variables
    ]
    lines += ["", f"Noise: {noise_text(setup)}. Operators: {', '.join(setup.operators)}.", ""]
    if status.rivals:
        lines += ["## Rivals", "", *(f"- `{rival}`" for rival in status.rivals), ""]
    if status.path:
        lines += ["## How it grew", "", "| free | held | reduced form |", "|---|---|---|"]
        lines += [f"| {_text(free)} | {_text(held)} | `{form}` |" for free, held, form in status.path]
        lines.append("")
    if result.standard_errors:
        lines += ["Standard errors of its numbers: " + ", ".join(f"{e:.2g}" for e in result.standard_errors) + ".", ""]
    if status.notes:
        lines += ["## To look at", "", *(f"- {_text(note)}" for note in status.notes), ""]
    lines += [
        "## Measurements",
        "",
        f"| id | {' | '.join(map(_text, setup.names))} | {_text(setup.output)} | comment |",
    ]
    lines.append("|---" * (len(setup.names) + 3) + "|")
    lines += [
        f"| {row.id} | {' | '.join(shown(x) for x in row.x)} | {shown(row.y) or 'failed'} | {_text(row.comment)} |"
        for row in state.measured
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a text that Markdown, and the HTML in it, do not obey."""
    for sign, harmless in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "'"), ("\n", " ")):
        value = value.replace(sign, harmless)
    return value
