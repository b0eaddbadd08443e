"""Text of others in the terminal: shown as it is, never obeyed."""

from __future__ import annotations

from rich.markup import escape as escape_markup

from deap_vsr.errors import printable


def escape(text: str) -> str:
    """Return text for rich: on one line, without markup, and with escapes for what a terminal would obey."""
    return escape_markup(printable(text))
