"""Tables that people fill in: read whatever spreadsheets make of them, with the row and column of each problem."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from deap_vsr.campaign import cells
from deap_vsr.campaign.cells import CellError
from deap_vsr.campaign.setup import RESERVED, Setup
from deap_vsr.errors import VsrError, short

#: Largest file that is read; a sheet of a thousand rows has some 100,000 bytes.
MAX_BYTES, MAX_CELL = 10_000_000, 2_000
#: So many problems of a sheet are told.
TOLD = 10
#: A knob that is further outside its domain than this many of its ranges was not set so.
FAR = 1.0
#: A file that is no text, by how it begins.
_KINDS = {b"PK\x03\x04": "a workbook of a spreadsheet", b"\xd0\xcf\x11\xe0": "a workbook of a spreadsheet",
          b"%PDF": "a PDF", b"\x1f\x8b": "a compressed file", b"\x89PNG": "a picture"}  # fmt: skip
_DELIMITERS = (",", ";", "\t", "|")

T = TypeVar("T")


class SheetError(VsrError, ValueError):
    """A sheet that cannot be taken: each line of the message names a row and a column. Nothing of it was taken."""


@dataclass(frozen=True)
class Measured:
    """One measurement.

    Attributes
    ----------
    id : of the row that was asked for; empty for one that was not
    x : values as they were really set, (n_vars,)
    y : NaN where it failed
    sigma : its standard error; NaN where that is not known
    n : measurements that it is the mean of
    valid : whether it is a measurement, and not a failure
    """

    id: str
    x: tuple[float, ...]
    y: float
    sigma: float = math.nan
    n: int = 1
    valid: bool = True
    comment: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    def same(self, other: Measured) -> bool:
        """Whether it is the same row told again."""
        return self.cells() == other.cells()

    def cells(self) -> tuple[str, ...]:
        """Return it as the cells of a row, without what is extra."""
        numbers = [shown(value) for value in (*self.x, self.y, self.sigma)]
        return (self.id, *numbers, str(self.n), str(int(self.valid)), cells.harmless(self.comment))


@dataclass
class Table:
    """A table as it stands in a file: its columns by their names, and rows with their number in the file."""

    source: str
    columns: list[str]
    rows: list[tuple[int, dict[str, str]]]
    comma: bool = False
    notes: list[str] = field(default_factory=list)


# --- files to tables ------------------------------------------------------------------------


def read_bytes(path: Path) -> bytes:
    """Return what is in a file that a table is expected in."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SheetError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise SheetError(f"{path}: has more than {MAX_BYTES} bytes, and is no sheet")
    return raw


def table_of(raw: bytes, source: str) -> Table:
    """Return the table in a file's bytes, in whatever encoding and with whatever separator a spreadsheet wrote it."""
    notes: list[str] = []
    text = _decoded(raw, source, notes)
    lines = text.split("\n")
    skipped = 0
    while lines and (not lines[0].strip(' ,;\t"') or re.fullmatch(r"sep=.|#.*", lines[0].strip())):
        if lines[0].lstrip().startswith("#"):
            notes.append(f"row {skipped + 1}: begins with # and was left out")
        lines, skipped = lines[1:], skipped + 1
    if not lines:
        raise SheetError(f"{source}: row 1: is empty, expected the names of the columns")
    delimiter = max(_DELIMITERS, key=lines[0].count)
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[int, list[str]]] = []
    try:
        for cells_of_row in reader:
            found.append((reader.line_num + skipped, cells_of_row))
    except csv.Error as error:
        raise SheetError(f"{source}: row {reader.line_num + skipped}: quotes that do not match ({error})") from None
    header = [cells.plain(cell) for cell in found[0][1]]
    body = [(number, row) for number, row in found[1:] if any(cell.strip() for cell in row)]
    comments = [number for number, row in body if row[0].lstrip().startswith("#")]
    if comments:
        notes.append(f"row {comments[0]}: begins with # and was left out" + _more(len(comments)))
        body = [(number, row) for number, row in body if number not in comments]
    _check_shape(source, header, body)
    columns = [name for name in header if name]
    rows = [
        (number, {name: row[i] if i < len(row) else "" for i, name in enumerate(header) if name})
        for number, row in body
    ]
    values = [cell for _, row in body for cell in row]
    comma = delimiter != "," and not any(map(cells.has_point, values))
    comma = comma or (delimiter == "," and any(map(cells.has_comma, values)) and not any(map(cells.has_point, values)))
    if comma and any(map(cells.has_comma, values)):
        notes.append("commas were read as decimal points")
    return Table(source, columns, rows, comma, notes)


def _check_shape(source: str, header: Sequence[str], body: Sequence[tuple[int, list[str]]]) -> None:
    """Raise for columns without a name, names that are there twice, and cells beyond the last column."""
    for i, name in enumerate(header):
        if name and name in header[:i]:
            raise SheetError(f"{source}: row 1, column {i + 1}: {short(header[i])!r} is there twice")
    for number, row in body:
        for i, cell in enumerate(row):
            if cell.strip() and (i >= len(header) or not header[i]):
                raise SheetError(
                    f"{source}: row {number}, column {i + 1}: found {short(cell)!r} where the first row names no "
                    "column; a decimal comma, or a separator too many?"
                )
            if len(cell) > MAX_CELL:
                raise SheetError(f"{source}: row {number}, column {header[i]}: more than {MAX_CELL} signs")


def _decoded(raw: bytes, source: str, notes: list[str]) -> str:
    kind = next((name for start, name in _KINDS.items() if raw.startswith(start)), None)
    if kind is not None:
        raise SheetError(f"{source}: row 1: is {kind}, expected a table as CSV; save it as CSV")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = raw.decode("utf-16")
        except UnicodeDecodeError as error:
            raise SheetError(f"{source}: row 1: is no UTF-16 text ({error.reason})") from None
    else:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("cp1252", errors="replace")
            notes.append("is no UTF-8 text, and was read as Windows text (cp1252)")
    if "\0" in text:
        row = text[: text.index("\0")].count("\n") + 1
        raise SheetError(f"{source}: row {row}: has bytes of no text, expected a table as CSV")
    return text.replace("\r\n", "\n").replace("\r", "\n")


# --- tables to measurements -----------------------------------------------------------------


def measurements(table: Table, setup: Setup, asked: Mapping[str, Sequence[float]]) -> list[Measured]:
    """Return the measurements of a table, in its order; rows without y, and not said to have failed, are left out.

    Parameters
    ----------
    asked : by id the values that were asked for

    Raises
    ------
    SheetError
        With all that is wrong, a line each.
    """
    found = _columns(table, setup)
    problems: list[str] = []
    rows: list[Measured] = []
    for number, row in table.rows:
        reader = _Row(table, number, {key: row[name] for key, name in found.items()}, problems)
        extra = tuple((name, row[name]) for name in table.columns if name not in found.values() and row[name].strip())
        measured = _measured(reader, setup, asked, extra)
        if measured is not None:
            rows.append(measured)
    if problems:
        told = problems[:TOLD] + ([f"and {len(problems) - TOLD} more"] if len(problems) > TOLD else [])
        raise SheetError("\n".join(told) + "\nnothing of this sheet was taken; mend it and tell it again")
    return rows


def _columns(table: Table, setup: Setup) -> dict[str, str]:
    """Return by what they are the names that the columns of a table have in its file."""
    meant: dict[str, str] = {}
    own = {setup.column(name) for name in RESERVED} | {*setup.names, setup.output}
    known = {"y": setup.output} | {name: name for name in own}
    lowered: dict[str, set[str]] = {}
    for name, key in known.items():
        lowered.setdefault(name.casefold(), set()).add(key)
    for name in table.columns:
        bare = re.sub(r"\s*[\[(][^\])]*[\])]\s*$", "", name).strip()
        similar = lowered.get(bare.casefold(), set())  # t is not T, where there are both
        column = known.get(name) or known.get(bare) or (min(similar) if len(similar) == 1 else None)
        if column is not None and column in meant:
            raise SheetError(f"{table.source}: row 1, column {name}: {column} is there twice, as {meant[column]} too")
        if column is not None:
            meant[column] = name
    listed = ", ".join(short(name, 30) for name in table.columns[:12]) or "nothing"
    if setup.output not in meant:
        raise SheetError(f"{table.source}: row 1, column {setup.output}: is missing; found {listed}")
    missing = [name for name in setup.names if name not in meant]
    if "id" not in meant and missing:
        raise SheetError(
            f"{table.source}: row 1, column {missing[0]}: is missing, and there is no column id; found {listed}"
        )
    return meant


class _Row:
    """Cells of one row; what is wrong with one is added to the problems."""

    def __init__(self, table: Table, line: int, row: Mapping[str, str], problems: list[str]) -> None:
        self.table, self.line, self.row, self.problems = table, line, row, problems
        self.fine = True

    def text(self, key: str) -> str:
        return cells.plain(self.row.get(key, ""))

    def wrong(self, key: str, why: str) -> None:
        self.problems.append(f"{self.table.source}: row {self.line}, column {key}: {why}")
        self.fine = False

    def read(self, key: str, read: Callable[[str], T], empty: T) -> T:
        """Return what a cell says, or `empty` if it is empty or wrong."""
        if not self.text(key):
            return empty
        try:
            return read(self.row[key])
        except CellError as error:
            self.wrong(key, str(error))
            return empty

    def number(self, key: str, empty: float = math.nan) -> float:
        return self.read(key, lambda text: cells.number(text, self.table.comma), empty)


def _measured(
    row: _Row, setup: Setup, asked: Mapping[str, Sequence[float]], extra: tuple[tuple[str, str], ...]
) -> Measured | None:
    """Return the measurement of a row; None if there is none, or something is wrong with it."""
    name = row.text("id")
    name = name[:-2] if re.fullmatch(r"[0-9]+\.0", name) else name
    if name and name not in asked:
        row.wrong("id", f"found {short(name)!r}, which was never asked for; leave id empty for other measurements")
    valid = row.read("valid", cells.flag, True)
    y = row.read(setup.output, lambda text: cells.number(text, row.table.comma), math.nan) if valid else math.nan
    if not row.fine or (valid and math.isnan(y)):
        return None
    x = tuple(_as_set(row, column, setup, asked.get(name)) for column in range(len(setup.variables)))
    sigma = row.number(setup.column("sigma"))
    if sigma < 0:
        row.wrong(setup.column("sigma"), f"found {sigma:g}, expected a number of at least 0")
    n = row.read(setup.column("n"), lambda text: cells.count(text, row.table.comma), 1)
    comment = cells.harmed(row.row.get("comment", "").strip())
    return Measured(name, x, y, sigma, n, valid, comment, extra) if row.fine else None


def _as_set(row: _Row, column: int, setup: Setup, asked: Sequence[float] | None) -> float:
    """Return what a knob was set to: as the row says, or else as it was asked."""
    variable = setup.variables[column]
    value = row.number(variable.name, math.nan if asked is None else asked[column])
    if math.isnan(value) and row.fine:
        row.wrong(variable.name, "found nothing; a row without id needs all variables")
    room = FAR * (variable.high - variable.low)
    if value < variable.low - room or value > variable.high + room:
        row.wrong(variable.name, f"found {value:g}, far outside {variable.low:g} to {variable.high:g}; a typing error?")
    return value


# --- writing ----------------------------------------------------------------------------------


def written(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cells.harmless(name) for name in columns])
    writer.writerows(rows)
    return text.getvalue()


def measured_text(rows: Sequence[Measured], setup: Setup) -> str:
    """Return measurements as the text of ``measured.csv``, extra columns kept."""
    extra = list(dict.fromkeys(name for row in rows for name, _ in row.extra))
    columns = ("id", *setup.names, setup.output, setup.column("sigma"), setup.column("n"), "valid", "comment", *extra)
    lines = [
        [*row.cells(), *(cells.harmless(cells.harmed(dict(row.extra).get(name, ""))) for name in extra)] for row in rows
    ]
    return written(columns, lines)


def frame_table(frame: Any, source: str = "the frame") -> Table:
    """Return the table of a pandas frame, a list of mappings, or a mapping of ids to answers."""
    if hasattr(frame, "to_dict") and hasattr(frame, "columns"):
        records = frame.to_dict("records")
    elif isinstance(frame, Mapping):
        records = [{"id": key, "y": value} for key, value in frame.items()]
    else:
        records = list(frame)
    if not all(isinstance(record, Mapping) for record in records):
        raise SheetError(f"{source}: expected a frame, a list of mappings, or a mapping of ids to answers")
    columns = list(dict.fromkeys(str(name) for record in records for name in record))
    rows = [
        (i, {name: _cell({str(key): value for key, value in record.items()}.get(name)) for name in columns})
        for i, record in enumerate(records, 1)
    ]
    return Table(source, columns, rows)


def _cell(value: Any) -> str:
    """Return a value of a frame as text; what is missing is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return repr(float(value)) if hasattr(value, "__float__") and not isinstance(value, str | int) else str(value)


def shown(value: float) -> str:
    """Return a number in as few digits as tell it; nothing for NaN."""
    return "" if math.isnan(value) else repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _more(count: int) -> str:
    return f", and {count - 1} more" if count > 1 else ""
