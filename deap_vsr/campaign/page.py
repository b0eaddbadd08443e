"""The page of a laboratory: one self-contained file, readable on a phone at the bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

import numpy as np

from deap_vsr.campaign.campaign import Campaign
from deap_vsr.campaign.folder import Asked, State
from deap_vsr.campaign.pictures import Points, picture
from deap_vsr.campaign.replay import Look
from deap_vsr.campaign.sheets import shown
from deap_vsr.campaign.status import Status, noise_text, status_of
from deap_vsr.search.records import SolvedSlot
from deap_vsr.tree.names import Names
from deap_vsr.tree.notation import short_formula
from deap_vsr.tree.simplify import literals

#: Values of a slot's form that its line is drawn through.
DRAWN = 60
#: Slots that are drawn at the most: the last rounds'.
MAX_SLOTS = 8


def page(
    campaign: Campaign, token: str = "", message: str = "", filled: Mapping[str, str] | None = None, bad: bool = False
) -> str:
    """Return the page of a campaign as HTML.

    Parameters
    ----------
    token : with it, the page has a form that takes results, for a server that knows the token
    message : what the last step has to say, a line each; `bad` if it failed
    filled : what was typed into the form before, by the names of its fields
    """
    state = campaign.state
    look = campaign.look(state)
    status = status_of(state, look)
    setup = state.setup
    title = escape(f"{setup.output} ({campaign.folder.resolve().name})")
    body = [
        _head(state, look, status),
        _message(message, bad),
        _sheet(state, token, filled or {}),
        _next(status),
        _section("To look at", "".join(f"<li>{escape(note)}</li>" for note in status.notes), "ul"),
        _path(status),
        _slots(look),
        _rivals(status, setup.output),
        _predicted(state, look),
        _measured(state, look),
        f"<footer>noise: {escape(noise_text(setup))}; seed {setup.seed}; {escape(' '.join(setup.operators))}</footer>",
    ]
    style = files("deap_vsr.campaign").joinpath("page.css").read_text(encoding="utf-8")
    script = files("deap_vsr.campaign").joinpath("page.js").read_text(encoding="utf-8") if token else ""
    allowed = f"; script-src 'nonce-{token}'; connect-src 'self'; form-action 'self'" if token else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:{allowed}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{title}</title><style>{style}</style></head><body>{''.join(body)}"
        + (f'<script nonce="{token}">{script}</script>' if token else "")
        + "</body></html>\n"
    )


def _section(title: str, inner: str, tag: str = "div") -> str:
    return f"<section><h2>{escape(title)}</h2><{tag}>{inner}</{tag.split()[0]}></section>" if inner else ""


def _head(state: State, look: Look, status: Status) -> str:
    """Return the formula so far, how it stands, and what it cost."""
    names = look.result.names
    formula = "no formula yet"
    if status.formula and look.result.tree is not None:
        formula = f"{names.output} = {short_formula(literals(look.result.tree), names)}"
    counted = f"{status.measured} measured, {status.open} open, at most {status.points}; {status.sheets} sheets"
    full = f"<details><summary>all digits</summary><code>{escape(status.formula)}</code></details>"
    return (
        f'<header><span class="badge {escape(status.status)}">{escape(status.status)}</span>'
        f'<h1 class="formula">{escape(formula)}</h1><p>{escape(status.reason)}</p>'
        f'<p class="small">{escape(counted)}</p>'
        f"{full if status.formula else ''}</header>"
    )


def _message(message: str, bad: bool) -> str:
    if not message:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in message.splitlines() if line.strip())
    return f'<section class="{"bad" if bad else "good"}" role="status"><ul>{lines}</ul></section>'


def _next(status: Status) -> str:
    more = f" About {status.needed} more measurements are likely." if status.needed else ""
    return _section("Next", f"{escape(status.decides)}.{escape(more)}", "p")


# --- the sheet ----------------------------------------------------------------------------


def _sheet(state: State, token: str, filled: Mapping[str, str]) -> str:
    """Return the rows that are open: to read, or as a form."""
    if not state.open:
        if not token:
            return _section("Sheet", "nothing is open; <code>vsr lab ask</code> asks for the next sheet", "p")
        ask = f'<form method="post" action="ask">{_hidden(token)}<button>Ask for the next sheet</button></form>'
        return _section("Sheet", f"<p>Nothing is open.</p>{ask}")
    labels = [f"{v.name} [{v.unit}]" if v.unit else v.name for v in state.setup.variables]
    answer = f"{state.setup.output} [{state.setup.unit}]" if state.setup.unit else state.setup.output
    head = "".join(f"<th>{escape(label)}</th>" for label in ("id", *labels, answer, "comment"))
    rows = "".join(_row(row, labels, answer, state, token, filled) for row in state.open)
    table = f'<table class="cards"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    if token:
        table = f'<form method="post" action="tell">{_hidden(token)}{table}<button>Tell</button></form>'
    return _section(f"Sheet {state.open[-1].batch}", table)


def _hidden(token: str) -> str:
    return f'<input type="hidden" name="token" value="{escape(token)}">'


def _row(row: Asked, labels: Sequence[str], answer: str, state: State, token: str, filled: Mapping[str, str]) -> str:
    """Return one row: values as asked (they can be changed to what was really set), the answer, a comment."""
    cells = [f'<th scope="row" data-label="id">{escape(row.id)}</th>']
    for column, (label, value) in enumerate(zip(labels, row.x, strict=True)):
        field = _field(f"x{column}-{row.id}", filled, shown(value), label) if token else escape(shown(value))
        cells.append(f'<td data-label="{escape(label)}">{field}</td>')
    given = _field(f"y-{row.id}", filled, "", f"{answer} of row {row.id}") if token else "&nbsp;"
    cells.append(f'<td class="answer" data-label="{escape(answer)}">{given}</td>')
    note = _field(f"comment-{row.id}", filled, "", "comment", number=False) if token else ""
    if token:
        ticked = " checked" if filled.get(f"failed-{row.id}") else ""
        note += f'<label class="small"><input type="checkbox" name="failed-{escape(row.id)}"{ticked}> failed</label>'
    why = f'<div class="small">{escape(row.why)}</div>'
    cells.append(f'<td data-label="comment">{note}{why}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _field(name: str, filled: Mapping[str, str], value: str, label: str, number: bool = True) -> str:
    value = filled.get(name, value)
    kind = ' inputmode="decimal"' if number else ""
    return (
        f'<input type="text" name="{escape(name)}" value="{escape(value)}" aria-label="{escape(label)}" '
        f'autocomplete="off"{kind}>'
    )


# --- how it grew --------------------------------------------------------------------------


def _path(status: Status) -> str:
    """Return the reduced forms that led to the formula, one below the other."""
    steps = "".join(
        f"<li><div class='small'>free: {escape(free)}; held: {escape(held)}</div>"
        f'<div class="formula">{escape(form)}</div></li>'
        for free, held, form in status.path
    )
    return _section("How the formula grows", steps, "ol")


def _slots(look: Look) -> str:
    """Return pictures of slots, as they were measured, with error bars and the forms that were found."""
    names = look.result.names
    tables = [table for record in look.result.path for table in record.tables][-MAX_SLOTS:]
    pictures = "".join(_slot(table, names) for table in tables)
    return _section("Slots", pictures, "div class=pictures") if pictures else ""


def _slot(table: SolvedSlot, names: Names) -> str:
    settings = [
        Points(table.x, values, None if table.errors is None else table.errors[k])
        for k, values in enumerate(table.values)
    ]
    x = np.linspace(float(table.x.min()), float(table.x.max()), DRAWN)
    X = np.ones((DRAWN, table.column + 1))
    X[:, table.column] = x
    lines = []
    for constants in table.constants:
        with np.errstate(all="ignore"):
            lines.append((x, np.asarray(table.form.with_constants(constants).evaluate(X))))
    form = escape(short_formula(table.form, names))
    shown_form = f'<figcaption class="formula">{form}</figcaption>'
    return f"<figure>{picture(settings, lines, names.label(table.column), 'slot')}{shown_form}</figure>"


def _rivals(status: Status, output: str) -> str:
    return _section(
        "Rivals",
        "".join(f'<li class="formula">{escape(output)} = {escape(rival)}</li>' for rival in status.rivals),
        "ul",
    )


# --- what was measured --------------------------------------------------------------------


def _predicted(state: State, look: Look) -> str:
    """Return a picture of what was measured against what the formula says."""
    rows, tree = state.everything, look.result.tree
    if tree is None or len(rows) < 2:
        return ""
    X, y = np.array([one.x for one in rows]), np.array([one.y for one in rows])
    with np.errstate(all="ignore"):
        said = np.asarray(tree.evaluate(X))
    sigma = np.array([one.sigma if np.isfinite(one.sigma) else state.setup.sigma(one.y) for one in rows])
    told = [f"id {one.id or '-'}: measured {one.y:.6g}, formula {s:.6g}" for one, s in zip(rows, said, strict=True)]
    known = said[np.isfinite(said)]
    if not len(known):
        return ""
    ends = np.array([min(known.min(), y.min()), max(known.max(), y.max())])
    names = look.result.names
    drawn = picture(
        [Points(said, y, sigma, told=told)], [(ends, ends)], f"{names.answer}, formula", f"{names.answer}, measured"
    )
    return _section("Measured against the formula", f"<figure>{drawn}</figure>", "div class=pictures")


def _measured(state: State, look: Look) -> str:
    """Return all that was measured as a table, what the formula says beside it."""
    if not state.measured:
        return ""
    tree, names = look.result.tree, (*state.setup.names, state.setup.output)
    far = {name for name, _, _ in status_of(state, look).off}
    X = np.array([row.x for row in state.measured])
    with np.errstate(all="ignore"):
        said = np.asarray(tree.evaluate(X)) if tree is not None else np.full(len(X), np.nan)
    head = "".join(f"<th>{escape(name)}</th>" for name in ("id", *names, "formula", "comment"))
    rows = []
    for row, value in zip(state.measured, said, strict=True):
        cells = [row.id or "-", *(f"{x:.6g}" for x in row.x), f"{row.y:.6g}" if row.valid else "failed"]
        cells += [f"{value:.5g}" if np.isfinite(value) else "", row.comment]
        mark = ' class="off"' if row.id in far else ""
        rows.append(f"<tr{mark}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    inner = f'<details open><summary>{len(rows)} rows</summary><div class="wide">{table}</div></details>'
    return _section("Measured so far", inner)
