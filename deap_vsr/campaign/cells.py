"""One cell of a table that people have typed, or a spreadsheet has written: a number, or why it is none."""

from __future__ import annotations

import math
import re

from deap_vsr.errors import short

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]{1,4})?")
#: 1,234 may be a number with a decimal comma, or one with a comma between thousands.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([,.' ][0-9]{3})+([.,][0-9]*)?")
_DATE = re.compile(
    r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(\s.*)?|[0-9]{1,2}[-. ]*[A-Za-z]{3,9}[-. ]*[0-9]{0,4}|"
    r"[A-Za-z]{3,9}[-. ][0-9]{1,4}|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
)
_MONTH = re.compile(r"(jan|feb|m[aä]r|apr|ma[iy]|ju[nl]|aug|sep|o[ck]t|nov|de[cz])", re.I)
#: What a program would do if it took a cell for a formula.
_OBEYED = ("=", "+", "-", "@", "\t", "\r")
_YES, _NO = ("1", "1.0", "true", "yes", "y", "ok"), ("0", "0.0", "false", "no", "n", "failed", "fail")


class CellError(ValueError):
    """A cell that is no number; the message says why, and what to do."""


def plain(text: str) -> str:
    """Return a cell without what spreadsheets put around a value: blanks of all kinds, quotes, ``="..."``."""
    text = text.replace("\u00a0", " ").replace("\u202f", " ").replace("\ufeff", "").strip()
    if text.startswith('="') and text.endswith('"') and len(text) > 2:
        text = text[2:-1].strip()
    return text[1:].strip() if text.startswith("'") else text


def number(text: str, comma: bool) -> float:
    """Return the number in a cell; with `comma`, the file writes commas for points.

    Raises
    ------
    CellError
        Where it is none, or might be two different ones.
    """
    given = text
    text = plain(text).replace("\u2212", "-").replace("\u2013", "-")
    if _NUMBER.fullmatch(text):
        value = float(text)
    elif comma and _COMMA.fullmatch(text):
        value = float(text.replace(",", "."))
    else:
        raise CellError(_why(text, given))
    if not math.isfinite(value):
        raise CellError(f"found {short(given)}, which is too large a number")
    return value


def has_point(text: str) -> bool:
    """Whether a cell is a number with a decimal point."""
    return bool(_NUMBER.fullmatch(plain(text))) and "." in text


def has_comma(text: str) -> bool:
    """Whether a cell is a number, if commas are decimal ones."""
    return bool(_COMMA.fullmatch(plain(text)))


def flag(text: str) -> bool:
    """Return whether a cell says yes; an empty one does."""
    word = plain(text).lower()
    if not word or word in _YES:
        return True
    if word in _NO:
        return False
    raise CellError(f"found {short(text)!r}, expected 1 for a measurement, 0 for one that failed")


def count(text: str, comma: bool) -> int:
    """Return a whole number of at least 1."""
    value = number(text, comma)
    if value < 1 or value != int(value):
        raise CellError(f"found {short(text)}, expected a whole number of at least 1")
    return int(value)


def harmless(text: str) -> str:
    """Return a text for a cell that no spreadsheet takes for a formula, on one line."""
    text = " ".join(text.split())
    return f"'{text}" if text.startswith(_OBEYED) and not _NUMBER.fullmatch(text) else text


def harmed(text: str) -> str:
    """Return the text that :func:`harmless` was given, but for blanks."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_OBEYED) else text


def _why(text: str, given: str) -> str:
    """Return why a cell is no number, and what to do."""
    found = f"found {short(given)!r}"
    if not text:
        return "found nothing, expected a number"
    if text.startswith("#"):
        return f"{found}, an error of the spreadsheet; expected a number"
    if text.startswith(("=", "@")):
        return f"{found}, a formula of the spreadsheet; save the values, not the formulas"
    if _COMMA.fullmatch(text):
        return f"{found}, where a comma may mean two things; write a decimal point"
    if _THOUSANDS.fullmatch(text):
        return f"{found}, with separators between thousands; write the digits only"
    if _DATE.fullmatch(text) and (_MONTH.search(text) or not re.search("[A-Za-z]", text)):
        return f"{found}, which looks like a date or time: a spreadsheet may have made it of a number"
    if text.endswith("%"):
        return f"{found}; expected a number without %"
    if text[0] in "<>~≈≤≥":
        return f"{found}, a bound; expected a number: leave the cell empty, put 0 into valid, and this into comment"
    if "±" in text or "+/-" in text or "+-" in text:
        return f"{found}; expected a number: what stands behind ± goes into the column sigma"
    if text.lower().lstrip("+-") in ("", "nan", "inf", "infinity", "n/a", "na", "none", "null"):
        return f"{found}; leave the cell empty where nothing was measured, and put 0 into valid where it failed"
    if re.fullmatch(r"[+-]?[0-9]+\s*/\s*[0-9]+", text):
        return f"{found}, a fraction; expected a number"
    if re.match(r"[+-]?[0-9.]+\s*[^0-9.,eE\s]", text):
        return f"{found}; expected a number alone, without a unit or other text"
    return f"{found}, expected a number; text goes into the column comment"
