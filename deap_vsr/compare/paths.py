"""The path of reduced forms of a run as HTML: frozen nodes and slots coloured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from deap_vsr.errors import VsrError
from deap_vsr.result import path_of
from deap_vsr.search.checkpoint import tree_from
from deap_vsr.tree import Node, is_mutable, is_variable
from deap_vsr.tree.notation import infix, short_numbers
from deap_vsr.tree.simplify import without_neutral


def path_html(rounds: Sequence[dict[str, Any]]) -> str:
    """Return the rounds that led to the answer, one by one; `rounds` as in the JSON of a result."""
    if not rounds:
        return ""
    path = path_of([record["freed"] for record in rounds], [record["accepted"] for record in rounds])
    others = len(rounds) - len(path)
    before = f"<p>{others} rounds of other attempts and earlier passes are left out.</p>" if others else ""
    return f'{before}<ol class="path">{"".join(_round(rounds[i]) for i in path)}</ol>'


def _round(record: dict[str, Any]) -> str:
    held = " ".join(record["controlled"]) or "nothing"
    errors = [error for error in record["errors"] if error is not None]
    largest = f"largest error {max(errors):.2g}" if errors else "no error known"
    fit = "" if record["accepted"] else ' <span class="tag bad">does not fit</span>'
    slots = escape(f"{record['slots']} slot{'s' if record['slots'] != 1 else ''}")
    return (
        f'<li><div class="held">free: {escape(" ".join(record["freed"]))}; held: {escape(held)}; {largest}; '
        f'{slots}{fit}</div><div class="formula">y = {_formula(record)}</div></li>'
    )


def _formula(record: dict[str, Any]) -> str:
    """Return the reduced form with its nodes coloured; plain where an operator is not known here."""
    try:
        tree = short_numbers(tree_from(record["nodes"]))
    except (VsrError, LookupError, TypeError, ValueError):
        return escape(str(record["expression"]))
    return infix(without_neutral(tree), mark=_coloured)


def _coloured(node: Node, text: str) -> str:
    """Wrap a sub-tree's text, in which those of its operands are wrapped already: their colours lie on top of its."""
    slot = is_variable(node) and node.value.startswith("C")
    kind = "slot" if slot else "open" if is_mutable(node) else "frozen"
    return f'<span class="{kind}">{text if node.arity else escape(text)}</span>'
