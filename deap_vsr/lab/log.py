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
from deap_vsr.files import read_text, write_atomically
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
        self._columns = (*self.names, "y")
        self._left_out: list[int] = []
        self._path = None if path is None else Path(path)
        if self._path is not None:
            self._open(self._path)

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
        """Which answers are finite, and not left out."""
        good: Flags = np.isfinite(self.y)
        good[self._left_out] = False
        return good

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
        if self._path is not None and np.any(asked):
            self._write(self._path, np.column_stack([X, answers])[asked])

    # --- the file ---

    def _open(self, path: Path) -> None:
        """Read what is there, or begin the file."""
        header = _line(self._columns)
        try:
            text = read_text(path) if path.exists() else ""
            whole, _, torn = text.rpartition("\n")
            if not whole and header.startswith(torn):  # nothing but, at most, a part of its first line
                path.write_text(header, encoding="utf-8")
                return
            rows = list(csv.reader(whole.split("\n")))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise LogError(f"{path}: cannot be used as a log: {why}") from None
        if rows[0] == [*self.names, "y", "sigma"]:
            self._columns = (*self.names, "y", "sigma")
        elif rows[0] != [*self.names, "y"]:
            found = (whole or torn).split("\n")[0]
            raise LogError(f"{path}: line 1 is {short(found)!r}, expected {header.rstrip()!r}")
        for number, row in enumerate(rows[1:], 2):
            point, answer = self._parsed(path, number, row)
            self._unread.setdefault(point, deque()).append(answer)
        if torn:  # the run was killed while it wrote this line
            path.write_text(whole + "\n", encoding="utf-8")

    def _parsed(self, path: Path, number: int, row: Sequence[str]) -> tuple[bytes, tuple[float, float]]:
        if len(row) != len(self._columns):
            raise LogError(f"{path}: line {number} has {len(row)} values, expected {len(self._columns)}")
        values = []
        for name, text in zip(self._columns, row, strict=True):
            try:
                values.append(math.nan if name == "sigma" and not text else float(text))
            except ValueError:
                raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a number") from None
            if name in self.names and not math.isfinite(values[-1]):
                raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a finite number")
        n_vars = len(self.names)
        return np.array(values[:n_vars]).tobytes(), (
            values[n_vars],
            values[-1] if len(values) > n_vars + 1 else math.nan,
        )

    def _write(self, path: Path, rows: Array) -> None:
        try:
            if "sigma" not in self._columns and np.isfinite(rows[:, -1]).any():
                self._columns += ("sigma",)
                _, *lines = path.read_text(encoding="utf-8").splitlines()
                write_atomically(path, _line(self._columns) + "".join(f"{line},\n" for line in lines))
            text = "".join(self._row(row) for row in rows.tolist())
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise LogError(f"{path}: cannot write the log: {error.strerror}") from None

    def _row(self, values: Sequence[float]) -> str:
        *known, sigma = map(repr, values)
        return ",".join([*known, "" if sigma == "nan" else sigma][: len(self._columns)]) + "\n"


def _keys(X: Array) -> Iterator[bytes]:
    """Yield what a point is known by."""
    return map(np.ndarray.tobytes, np.ascontiguousarray(X))


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
