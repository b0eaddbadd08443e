"""A campaign: ask for the next sheet, tell what was measured, and see how things stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import deap_vsr
from deap_vsr.campaign import folder as files
from deap_vsr.campaign import sheets
from deap_vsr.campaign.folder import OPEN, REPEAT, Asked, State
from deap_vsr.campaign.replay import Look, look
from deap_vsr.campaign.setup import FILE, Setup, SetupError, entries_of, read_setup, setup_of
from deap_vsr.campaign.sheets import Measured, Table
from deap_vsr.campaign.status import Status, status_of
from deap_vsr.campaign.why import reasons
from deap_vsr.errors import VsrError, short
from deap_vsr.lab.batches import Batches
from deap_vsr.problems.sampling import on_grid
from deap_vsr.result import Result
from deap_vsr.tree.operators import Array

#: Why the row is asked that tells whether the instrument drifts.
CONTROL = "a repeat of the first row: does the instrument drift?"


@dataclass(frozen=True)
class Sheet:
    """Rows to measure; iterating gives a mapping for each, with `id`, the variables, and `why`.

    Attributes
    ----------
    number : of the sheet, from 1; 0 where nothing is asked
    rows : that are open
    reason : where there are none, why
    path : a CSV file to fill in
    """

    number: int
    rows: tuple[Asked, ...]
    names: tuple[str, ...]
    reason: str = ""
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield {"id": row.id, **dict(zip(self.names, row.x, strict=True)), "why": row.why}

    def frame(self) -> Any:
        """Return it as a pandas frame, to which a column with what was measured is added."""
        import pandas

        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class Told:
    """What became of a sheet that was told: rows that were taken, and what a person should know."""

    taken: int
    notes: tuple[str, ...] = ()


class Campaign:
    """An experiment in a folder: a search that people measure for.

    State is replay: the search runs again over what was measured, until it needs a point that was not, and that is the
    next sheet. There is no clock in it, so that the same folder always asks the same.

    Parameters
    ----------
    folder : path
        Where ``lab.json``, ``asked.csv`` and ``measured.csv`` are, or will be.
    variables : mapping of names to (low, high), or to fields; sequence of Variable; optional
        For a new folder. Fields are low, high, unit, step or digits, cost (dear to change), tolerance (how far off its
        set point a knob may be), sampling (uniform, loguniform or integer).
    options : output, unit, operators, noise, sheet, points, seed
        For a new folder, see :class:`deap_vsr.campaign.setup.Setup`. ``noise`` is a standard deviation, a share such as
        ``"1 %"``, ``"exact"``, or None: then it is found out by repeats.

    Examples
    --------
    >>> campaign = Campaign("enzyme", {"E": (0.1, 2), "S": (0.1, 5)}, output="v", noise="1 %")  # doctest: +SKIP
    >>> sheet = campaign.ask().frame()  # doctest: +SKIP
    >>> campaign.tell(sheet.assign(v=measured))  # doctest: +SKIP
    """

    def __init__(
        self, folder: str | Path, variables: Mapping[str, Any] | Sequence[Any] | None = None, **options: Any
    ) -> None:
        self.folder = Path(folder)
        self._seen: tuple[Any, Look] | None = None
        if variables is None:
            if options:
                raise SetupError(f"{', '.join(options)}: only a new folder takes options, and it needs variables")
            read_setup(self.folder)
        else:
            self._create(variables, options)

    def _create(self, variables: Mapping[str, Any] | Sequence[Any], options: dict[str, Any]) -> None:
        """Make the folder, or see that it is about the same."""
        known = ("output", "unit", "operators", "noise", "sheet", "points", "seed", "evaluations")
        for name in options:
            if name not in known:
                raise SetupError(f"{short(name)}: found an unknown option, expected {', '.join(known)}")
        output = {"name": options.pop("output", "y"), "unit": options.pop("unit", "")}
        if "operators" in options and not isinstance(options["operators"], str):
            options["operators"] = list(options["operators"])
        document = {"variables": entries_of(variables), "output": output, **options}
        setup = replace(setup_of(document, "variables"), version=deap_vsr.__version__)
        if (self.folder / FILE).exists():
            if replace(read_setup(self.folder), version=setup.version) != setup:
                raise SetupError(
                    f"{self.folder / FILE}: is there already, and says otherwise; open it without variables"
                )
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"{self.folder}: cannot be made: {error.strerror}") from None
        files.write(self.folder / FILE, setup.text())

    # --- what there is ---

    @property
    def state(self) -> State:
        """All that the folder says now."""
        return files.load(self.folder)

    @property
    def setup(self) -> Setup:
        """What the experiment is about."""
        return read_setup(self.folder)

    def look(self, state: State | None = None) -> Look:
        """Return how things stand: the search over all that was measured."""
        state = self.state if state is None else state
        if self._seen is None or self._seen[0] != _key(state):
            self._seen = (_key(state), look(state.setup, state.answers, state.before))
        return self._seen[1]

    @property
    def result(self) -> Result:
        """What the search has so far."""
        return self.look().result

    def status(self) -> Status:
        """Return how things stand, in words and numbers."""
        state = self.state
        return status_of(state, self.look(state))

    # --- ask and tell ---

    def ask(self, n: int | None = None) -> Sheet:
        """Return the next sheet, of at most `n` rows; the same one until what it asks for was told.

        Parameters
        ----------
        n : rows; default: as the folder says
        """
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise VsrError(f"n is {n!r}, expected a whole number of at least 1")
        with files.locked(self.folder):
            state = self.state
            if state.open:
                return self._sheet(state, state.open)
            points, reason = self._next(state, n or state.setup.sheet)
            if not len(points):
                return Sheet(0, (), state.setup.names, reason)
            rows = self._rows(state, points, n or state.setup.sheet)
            state = replace(state, asked=(*state.asked, *rows))
            files.save_asked(self.folder, state)
            return self._sheet(state, rows)

    def want(self, points: Any, why: str) -> Sheet:
        """Ask for points of one's own, (n, n_vars), beside those of the search; their answers are data from before."""
        with files.locked(self.folder):
            state = self.state
            settable = zip(state.setup.variables, np.asarray(points, dtype=float).T, strict=True)
            X = np.column_stack([on_grid(variable, column) for variable, column in settable])
            batch, first = _next_numbers(state)
            rows = [Asked(f"{REPEAT}{first + i}", batch, why, tuple(x)) for i, x in enumerate(X.tolist())]
            state = replace(state, asked=(*state.asked, *rows))
            files.save_asked(self.folder, state)
            return self._sheet(state, rows)

    def _sheet(self, state: State, rows: Sequence[Asked]) -> Sheet:
        """Return rows as a sheet, with a file to fill in."""
        number = rows[-1].batch
        path = self.folder / f"sheet-{number}.csv"
        if not path.exists() or not path.stat().st_size:  # what somebody has written into it stays
            files.write(path, files.sheet_text(state, rows))
        return Sheet(number, tuple(rows), state.setup.names, path=path)

    def _next(self, state: State, n: int) -> tuple[Array, str]:
        """Return the points of the next sheet, (n, n_vars), and, if there are none, why."""
        seen = self.look(state)
        left = state.setup.points - len(state.asked)
        if left < 1 and len(seen.needed):
            return seen.needed[:0], f"all {state.setup.points} measurements of {FILE} were asked; raise points to go on"
        needed = seen.needed
        if 0 < len(needed) < n and not state.answers:
            # What comes next does not depend on the first answer.
            needed = look(state.setup, [], state.before, guess=True).needed
        return needed[: min(n, left)], f"the search has ended: {seen.result.status}, {seen.result.reason}"

    def _rows(self, state: State, points: Array, n: int) -> list[Asked]:
        """Return rows for points, dear knobs changing seldom, and one to tell drift by where there is room."""
        earlier = np.array([row.x for row in state.asked]).reshape(-1, len(state.setup.variables))
        formula = self._seen is not None and self._seen[1].result.tree is not None and bool(state.answers)
        why, control = reasons(points, earlier, state.setup, formula), -1
        if (
            len(points) < n
            and len(earlier)
            and state.setup.noise != 0.0
            and len(state.asked) + len(points) < (state.setup.points)
        ):
            points, why, control = np.vstack([points, earlier[:1]]), [*why, CONTROL], len(points)
        order = Batches(state.setup.variables).order(points)
        batch, first = _next_numbers(state)
        return [
            Asked(f"{REPEAT if place == control else ''}{first + i}", batch, why[place], tuple(points[place].tolist()))
            for i, place in enumerate(order)
        ]

    def tell(self, sheet: Any, replace_told: bool = False) -> Told:
        """Take what was measured: any part of a sheet, rows that were not asked for, repeats, failures.

        Parameters
        ----------
        sheet : path of a CSV file; pandas frame; list of mappings; mapping of ids to answers
            Columns are `id`, the variables as they were really set (default: as asked), what was measured, and if
            wanted `sigma` (its standard error), `n` (measurements it is the mean of), `valid` (0: it failed),
            `comment`. Others are kept. Rows without an answer stay open.
        replace_told : whether earlier measurements of the same rows are wrong; they are kept as such

        Raises
        ------
        SheetError
            With the row and column of each problem; then nothing of the sheet is taken.
        """
        with files.locked(self.folder):
            state = self.state
            table = _table(sheet)
            rows = sheets.measurements(table, state.setup, {row.id: row.x for row in state.asked})
            rows, notes = _assigned(rows, state)
            told = list(state.measured)
            if replace_told:
                told = [_withdrawn(row) if row.id and any(row.id == new.id for new in rows) else row for row in told]
            fresh: list[Measured] = []
            for row in rows:
                if any(row.same(other) for other in told):
                    notes.append(f"{_called(row)}: was told before, and is taken once")
                else:
                    fresh.append(row)
                    told.append(row)
            after = replace(state, measured=tuple(told))
            notes += _notes(fresh, after, state)
            if fresh or replace_told:
                files.save_measured(self.folder, after)
            return Told(len(fresh), (*table.notes, *notes))


def _key(state: State) -> tuple[Any, ...]:
    return (state.setup.text(), state.asked, tuple(row.cells() for row in state.measured))


def _next_numbers(state: State) -> tuple[int, int]:
    """Return the number of the next sheet, and that of its first row."""
    batch = max((row.batch for row in state.asked), default=0)
    return batch + 1, max((int(row.id.lstrip(REPEAT)) for row in state.asked), default=0) + 1


def _table(sheet: Any) -> Table:
    if isinstance(sheet, str | Path):
        return sheets.table_of(sheets.read_bytes(Path(sheet)), str(sheet))
    return sheet if isinstance(sheet, Table) else sheets.frame_table(sheet)


def _assigned(rows: Sequence[Measured], state: State) -> tuple[list[Measured], list[str]]:
    """Return rows, those without an id that are at a point that is open with its id."""
    waiting = {row.x: row.id for row in state.open}
    for row in rows:
        if row.id:
            waiting = {point: name for point, name in waiting.items() if name != row.id}
    found, notes = [], []
    for row in rows:
        if row.id or row.x not in waiting:
            found.append(row)
            continue
        found.append(replace(row, id=waiting.pop(row.x)))
        notes.append(f"{_called(found[-1])}: a row without id, found by its values")
    return found, notes


def _withdrawn(row: Measured) -> Measured:
    return (
        replace(row, valid=False, comment=f"{row.comment} (withdrawn; y was {row.y:g})".strip()) if row.valid else row
    )


def _notes(fresh: Sequence[Measured], after: State, before: State) -> list[str]:
    """Return what a person should know of rows that were taken."""
    notes = []
    points = {row.id: row.x for row in after.asked}
    for row in fresh:
        if row.id and row.valid:
            for column in after.missed(row, points[row.id]):
                notes.append(
                    f"{_called(row)}: {after.setup.names[column]} was set to {row.x[column]:g} where "
                    f"{points[row.id][column]:g} was asked: kept as a row of its own, and {row.id} stays open"
                )
        earlier = [other for other in before.measured if other.id == row.id and other.valid] if row.id else []
        if earlier and row.valid:
            notes.append(f"{_called(row)}: measured before ({earlier[-1].y:g}); taken as a repeat")
    ids = [row.id for row in fresh if row.id]
    notes += [f"id {name}: is there twice; taken as repeats" for name in dict.fromkeys(ids) if ids.count(name) > 1]
    outside = [row for row in fresh if not row.id]
    if outside:
        notes.append(f"{len(outside)} rows that were not asked for are taken as data")
    still = [row.id for row in after.asked if after.status(row) == OPEN]
    if still:
        notes.append(f"still open: {', '.join(still[:20])}{' ...' if len(still) > 20 else ''}")
    return notes


def _called(row: Measured) -> str:
    values = ", ".join(f"{value:g}" for value in row.x)
    return f"id {row.id}" if row.id else f"the row at {values}"
