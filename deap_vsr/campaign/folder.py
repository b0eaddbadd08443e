"""The folder of a campaign: what was asked and measured, kept so that a kill at any moment loses nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from deap_vsr.campaign import cells, sheets
from deap_vsr.campaign.replay import Answer, answer
from deap_vsr.campaign.setup import FILE, Setup, read_setup
from deap_vsr.campaign.sheets import Measured, SheetError
from deap_vsr.errors import VsrError
from deap_vsr.files import write_atomically

ASKED, MEASURED = "asked.csv", "measured.csv"
#: What the ids of rows begin with that the search did not ask for: repeats, to tell drift by.
REPEAT = "r"
OPEN, DONE, FAILED = "open", "measured", "failed"


@dataclass(frozen=True)
class Asked:
    """One row that was asked for: its id, the sheet it is of, why, and the point."""

    id: str
    batch: int
    why: str
    x: tuple[float, ...]


@dataclass(frozen=True)
class State:
    """All that a folder says: setup, rows that were asked for, and rows that were measured, in order."""

    setup: Setup
    asked: tuple[Asked, ...] = ()
    measured: tuple[Measured, ...] = ()

    @cached_property
    def rows(self) -> dict[str, list[Measured]]:
        """By id the measurements of a row that was asked for, but those whose knobs were not set as asked."""
        found: dict[str, list[Measured]] = {row.id: [] for row in self.asked}
        points = {row.id: row.x for row in self.asked}
        for row in self.measured:
            if row.id and not (row.valid and self.missed(row, points[row.id])):
                found[row.id].append(row)
        return found

    def missed(self, row: Measured, asked: Sequence[float]) -> list[int]:
        """Return the columns of the knobs that are further off than they may be."""
        return [
            column
            for column, (x, point, room) in enumerate(zip(row.x, asked, self.setup.tolerances, strict=True))
            if abs(x - point) > room + 1e-9 * abs(point)
        ]

    def status(self, row: Asked) -> str:
        """Return whether a row is open, measured, or has failed."""
        rows = self.rows[row.id]
        return OPEN if not rows else DONE if any(one.valid for one in rows) else FAILED

    @cached_property
    def open(self) -> tuple[Asked, ...]:
        """Rows that wait to be measured."""
        return tuple(row for row in self.asked if self.status(row) == OPEN)

    @cached_property
    def answers(self) -> list[Answer]:
        """What was measured of the rows that were asked for, in the order in which they were asked."""
        return [
            answer(row.id, row.x, self.rows[row.id], self.setup, row.batch)
            for row in self.asked
            if self.rows[row.id] and not row.id.startswith(REPEAT)
        ]

    @cached_property
    def repeats(self) -> list[Answer]:
        """What was measured of the rows that tell drift."""
        return [
            answer(row.id, row.x, self.rows[row.id], self.setup, row.batch)
            for row in self.asked
            if self.rows[row.id] and row.id.startswith(REPEAT)
        ]

    @cached_property
    def before(self) -> list[Answer]:
        """What was measured beside: rows that were not asked for, or whose knobs were not set as asked."""
        used = {id(row) for rows in self.rows.values() for row in rows}
        others = [row for row in self.measured if id(row) not in used and row.valid]
        return [*self.repeats, *(answer("", None, [row], self.setup) for row in others)]

    @property
    def everything(self) -> list[Answer]:
        """All answers that there are."""
        return [one for one in (*self.answers, *self.before) if np.isfinite(one.y)]


def load(folder: Path) -> State:
    """Return what a folder says; VsrError names the file, the row and the column of what is wrong with it."""
    setup = read_setup(folder)
    asked = _read_asked(folder / ASKED, setup)
    path = folder / MEASURED
    if not path.exists():
        return State(setup, asked)
    table = sheets.table_of(sheets.read_bytes(path), str(path))
    return State(setup, asked, tuple(sheets.measurements(table, setup, {row.id: row.x for row in asked})))


def save_asked(folder: Path, state: State) -> None:
    """Write ``asked.csv``."""
    columns = ("id", "batch", "why", *state.setup.names, "status")
    rows = [
        [row.id, str(row.batch), cells.harmless(row.why), *map(sheets.shown, row.x), state.status(row)]
        for row in state.asked
    ]
    write(folder / ASKED, sheets.written(columns, rows))


def save_measured(folder: Path, state: State) -> None:
    """Write ``measured.csv``, then what is open now."""
    write(folder / MEASURED, sheets.measured_text(state.measured, state.setup))
    save_asked(folder, state)


def sheet_text(state: State, rows: Sequence[Asked]) -> str:
    """Return a sheet to fill in."""
    columns = ("id", "why", *state.setup.names, state.setup.output, "sigma", "valid", "comment")
    return sheets.written(
        columns, [[row.id, cells.harmless(row.why), *map(sheets.shown, row.x), "", "", "", ""] for row in rows]
    )


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_atomically(path, text)
    except OSError as error:
        raise VsrError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from changing a folder meanwhile; a process that is killed keeps nobody out."""
    try:
        handle = os.open(folder / FILE, os.O_RDONLY)
    except OSError:
        read_setup(folder)  # says what is wrong
        raise
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read_asked(path: Path, setup: Setup) -> tuple[Asked, ...]:
    if not path.exists():
        return ()
    table = sheets.table_of(sheets.read_bytes(path), str(path))
    wanted = ("id", "batch", *setup.names)
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise SheetError(f"{path}: row 1, column {missing[0]}: is missing; this file is the program's own")
    rows: dict[str, Asked] = {}
    for number, row in table.rows:
        name = cells.plain(row["id"])
        try:
            point = tuple(cells.number(row[column], table.comma) for column in setup.names)
            batch = cells.count(row["batch"], table.comma)
        except cells.CellError as error:
            raise SheetError(f"{path}: row {number}: {error}; this file is the program's own") from None
        if not name or name in rows:
            raise SheetError(f"{path}: row {number}, column id: {name or 'nothing'}, expected an id of its own")
        rows[name] = Asked(name, batch, cells.harmed(row.get("why", "")), point)
    return tuple(rows.values())
