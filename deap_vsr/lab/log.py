"""The log of a run: every measurement in order, in memory and, if wanted, in a file.

The file is CSV: a column for each variable, then y, and its standard error sigma where the oracle gives one. A run
with the same log goes on by replay: it asks the same points again, and those that the file has an answer for are not
asked.
"""

from __future__ import annotations

import csv
import io
import math
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from deap_vsr.errors import LogError, short
from deap_vsr.files import Owned, read_text
from deap_vsr.tree.operators import Array, Flags

#: So many points are remembered one by one, to be known when they are wanted again; a dearer oracle gives fewer. Some
#: 15 MB.
REMEMBERED = 100_000


class Log:
    """Every measurement of a run.

    Parameters
    ----------
    names : of the variables
    path : a CSV file, optional
        What it holds is there to be replayed; what is measured is added as it comes.

    Attributes
    ----------
    n_read : int
        Points whose answer was read from the file.
    """

    def __init__(self, names: Sequence[str], path: str | Path | None = None) -> None:
        self.names = tuple(names)
        self.n_read = 0
        self._rows = np.empty((0, len(self.names) + 2))
        self._size = 0
        self._unread: dict[bytes, deque[tuple[float, float]]] = {}
        self._known: dict[bytes, tuple[float, float]] = {}
        answer, error = (_free(name, self.names) for name in ("y", "sigma"))
        self._columns: tuple[str, ...] = (*self.names, answer)
        self._with_errors = (*self.names, answer, error)
        self._left_out: list[int] = []
        self._aside: list[int] = []
        self._file = None if path is None else self._opened(Path(path))

    def __len__(self) -> int:
        return self._size

    @property
    def X(self) -> Array:
        """Points asked, (n, n_vars), in order."""
        return self._rows[: self._size, :-2]

    @property
    def y(self) -> Array:
        """Answers, (n,), NaN and inf among them."""
        return self._rows[: self._size, -2]

    @property
    def sigma(self) -> Array:
        """Standard errors of the answers, (n,), NaN where the oracle gave none."""
        return self._rows[: self._size, -1]

    @property
    def outliers(self) -> tuple[Array, Array]:
        """Points and answers that are left out, (n, n_vars) and (n,)."""
        return self.X[self._left_out], self.y[self._left_out]

    @property
    def good(self) -> Flags:
        """Which answers are finite, and neither left out nor set aside."""
        good: Flags = np.isfinite(self.y)
        good[self._left_out + self._aside] = False
        return good

    def set_aside(self, which: Flags) -> None:
        """Set answers aside, (n,), that are right, and of something else than the others are of."""
        self._aside = np.flatnonzero(which).tolist()

    def leave_out(self, X: Array, y: Array) -> None:
        """Leave answers out that are no measurements of what is measured: outliers."""
        for point, answer in zip(X, y, strict=True):
            same = np.isclose(self.y, answer, rtol=1e-12, atol=0.0) & (point == self.X).all(axis=1)
            self._left_out += [int(i) for i in np.flatnonzero(same) if i not in self._left_out]

    def known(self, X: Array, repeats: bool = True) -> tuple[Array, Flags]:
        """Return answers that were given before with their standard errors, (n, 2), and for which points, (n,).

        Without `repeats` the oracle gives another answer each time, and none is known.
        """
        answers, found = np.full((len(X), 2), np.nan), np.zeros(len(X), bool)
        if repeats and self._known:
            for i, point in enumerate(_keys(X)):
                if point in self._known:
                    answers[i], found[i] = self._known[point], True
        return answers, found

    def read(self, X: Array) -> tuple[Array, Flags]:
        """Return answers that the file holds with their standard errors, (n, 2), and for which points, (n,).

        Each is taken once, in the order in which they were measured.
        """
        answers, found = np.full((len(X), 2), np.nan), np.zeros(len(X), bool)
        if self._unread:
            for i, point in enumerate(_keys(X)):
                waiting = self._unread.get(point)
                if waiting:
                    answers[i], found[i] = waiting.popleft(), True
                    self.n_read += 1
                    if not waiting:
                        del self._unread[point]
        return answers, found

    def take_rest(self) -> int:
        """Keep what the file holds beside all that was asked for, behind it; returns how many points those are."""
        rest = [(np.frombuffer(point), answer) for point, waiting in self._unread.items() for answer in waiting]
        self._unread.clear()
        if rest:
            answers = np.array([answer for _, answer in rest])
            self.add(np.array([point for point, _ in rest]), answers[:, 0], np.zeros(len(rest), bool), answers[:, 1])
            self.n_read += len(rest)
        return len(rest)

    def add(self, X: Array, y: Array, asked: Flags, sigma: Array | None = None) -> None:
        """Keep measurements, with their standard errors if known; of those `asked` now, the file is told too."""
        answers = np.column_stack([y, np.full(len(y), np.nan) if sigma is None else sigma])
        needed = self._size + len(y)
        if needed > len(self._rows):
            grown = np.empty((max(needed, 2 * len(self._rows), 256), self._rows.shape[1]))
            grown[: self._size] = self._rows[: self._size]
            self._rows = grown
        self._rows[self._size : needed, :-2], self._rows[self._size : needed, -2:] = X, answers
        self._size = needed
        if len(self._known) < REMEMBERED:
            self._known.update(zip(_keys(X), map(tuple, answers.tolist()), strict=True))
        if np.any(asked):
            self.write(X[asked], answers[asked])

    def write(self, X: Array, answers: Array) -> None:
        """Write measurements with their standard errors, (n, 2), to the file, if there is one."""
        if self._file is not None:
            self._write(self._file, np.column_stack([X, answers]))

    # --- the file ---

    def _opened(self, path: Path) -> Owned:
        """Read what is there, or begin the file."""
        self._columns, rows = read_table(path, [self._columns, self._with_errors], len(self.names), optional=True)
        for row in rows:
            point = np.array(row[: len(self.names)]).tobytes()
            sigma = row[-1] if self._columns == self._with_errors else math.nan
            self._unread.setdefault(point, deque()).append((row[len(self.names)], sigma))
        return Owned(path)

    def _write(self, file: Owned, rows: Array) -> None:
        try:
            if self._columns != self._with_errors and np.isfinite(rows[:, -1]).any():
                self._columns = self._with_errors
                _, *lines = file.path.read_text(encoding="utf-8").splitlines()
                file.replace(header_line(self._columns) + "".join(f"{line},\n" for line in lines))
            file.append("".join(self._row(row) for row in rows.tolist()))
        except OSError as error:
            raise LogError(f"{file.path}: cannot write the log: {error.strerror}") from None

    def _row(self, values: Sequence[float]) -> str:
        *known, sigma = map(repr, values)
        return ",".join([*known, "" if sigma == "nan" else sigma][: len(self._columns)]) + "\n"


def _free(name: str, names: Sequence[str]) -> str:
    """Return what a column is called that is no variable's: `name`, with a _ behind it where a variable has it."""
    while name in names:
        name += "_"
    return name


def read_table(
    path: Path, allowed: Sequence[tuple[str, ...]], n_vars: int, optional: bool = False
) -> tuple[tuple[str, ...], list[list[float]]]:
    """Return the columns of a file of measurements, one of those `allowed`, and its rows; a new file is begun.

    The first `n_vars` columns are finite numbers. A last line that was torn is dropped. With `optional` the last column
    may be empty, where there are more columns than in the first of those allowed.

    Raises
    ------
    LogError
        Naming the file, the line and the column.
    """
    header = header_line(allowed[0])
    try:
        text = read_text(path) if path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        if not whole and header.startswith(torn):  # nothing but, at most, a part of its first line
            path.write_text(header, encoding="utf-8")
            return allowed[0], []
        lines = list(csv.reader(whole.split("\n")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LogError(f"{path}: cannot be used as a log: {why}") from None
    columns = next((columns for columns in allowed if lines[0] == list(columns)), None)
    if columns is None:
        found = (whole or torn).split("\n")[0]
        raise LogError(f"{path}: line 1 is {short(found)!r}, expected {header.rstrip()!r}")
    may_be_empty = len(columns) - 1 if optional and columns != allowed[0] else -1
    rows = [_numbers(path, number, line, columns, n_vars, may_be_empty) for number, line in enumerate(lines[1:], 2)]
    if torn:  # the run was killed while it wrote this line
        path.write_text(whole + "\n", encoding="utf-8")
    return columns, rows


def _numbers(
    path: Path, number: int, line: Sequence[str], columns: Sequence[str], n_vars: int, may_be_empty: int
) -> list[float]:
    if len(line) != len(columns):
        raise LogError(f"{path}: line {number} has {len(line)} values, expected {len(columns)}")
    values = []
    for place, (name, text) in enumerate(zip(columns, line, strict=True)):
        try:
            values.append(math.nan if place == may_be_empty and not text else float(text))
        except ValueError:
            raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a number") from None
        if place < n_vars and not math.isfinite(values[-1]):
            raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a finite number")
    return values


def _keys(X: Array) -> Iterator[bytes]:
    """Yield what a point is known by."""
    return map(np.ndarray.tobytes, np.ascontiguousarray(X))


def header_line(cells: Sequence[str]) -> str:
    """Return the first line of a file of measurements."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
