"""The log of a run: every measurement in order, in memory and, if wanted, in a file.

The file is CSV: a column for each variable, then y. A run with the same log goes on by replay: it asks the same points
again, and those that the file has an answer for are not asked.
"""

from __future__ import annotations

import csv
import math
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deap_vsr.errors import LogError, short
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
        self._rows = np.empty((0, len(self.names) + 1))
        self._size = 0
        self._unread: dict[bytes, deque[float]] = {}
        self._known: dict[bytes, float] = {}
        self._path = None if path is None else Path(path)
        if self._path is not None:
            self._open(self._path)

    def __len__(self) -> int:
        return self._size

    @property
    def X(self) -> Array:
        """Points asked, (n, n_vars), in order."""
        return self._rows[: self._size, :-1]

    @property
    def y(self) -> Array:
        """Answers, (n,), NaN and inf among them."""
        return self._rows[: self._size, -1]

    def recall(self, X: Array, repeats: bool) -> tuple[Array, Flags]:
        """Return answers that are known without asking, and for which points there are some: both (n,).

        What the file holds is taken once for each time it was measured. With `repeats` the oracle gives the same
        answer each time, and one that it has given will do.
        """
        answers, found = np.full(len(X), np.nan), np.zeros(len(X), bool)
        if not self._unread and not (repeats and self._known):
            return answers, found
        for i, point in enumerate(map(np.ndarray.tobytes, np.ascontiguousarray(X))):
            waiting = self._unread.get(point)
            if waiting:
                answers[i], found[i] = waiting.popleft(), True
                self.n_read += 1
                if not waiting:
                    del self._unread[point]
            elif repeats and point in self._known:
                answers[i], found[i] = self._known[point], True
        return answers, found

    def add(self, X: Array, y: Array, asked: Sequence[bool] | Array) -> None:
        """Keep measurements; of those that were `asked` now, the file is told too."""
        needed = self._size + len(y)
        if needed > len(self._rows):
            grown = np.empty((max(needed, 2 * len(self._rows), 256), self._rows.shape[1]))
            grown[: self._size] = self._rows[: self._size]
            self._rows = grown
        self._rows[self._size : needed, :-1], self._rows[self._size : needed, -1] = X, y
        self._size = needed
        if len(self._known) < REMEMBERED:
            self._known.update(zip(map(np.ndarray.tobytes, np.ascontiguousarray(X)), y.tolist(), strict=True))
        if self._path is not None and np.any(asked):
            self._write(self._path, np.column_stack([X, y])[np.asarray(asked, dtype=bool)])

    # --- the file ---

    def _open(self, path: Path) -> None:
        """Read what is there, or begin the file."""
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if not text:
                path.write_text(",".join([*self.names, "y"]) + "\n", encoding="utf-8")
                return
        except (OSError, UnicodeDecodeError) as error:
            raise LogError(f"{path}: cannot be used as a log: {error}") from None
        whole, _, torn = text.rpartition("\n")
        rows = list(csv.reader(whole.splitlines()))
        if not rows or rows[0] != [*self.names, "y"]:
            found = ",".join(rows[0]) if rows else ""
            raise LogError(f"{path}: line 1 is {short(found)!r}, expected {','.join([*self.names, 'y'])!r}")
        for number, row in enumerate(rows[1:], 2):
            point, answer = self._parsed(path, number, row)
            self._unread.setdefault(point, deque()).append(answer)
        if torn:  # the run was killed while it wrote this line
            path.write_text(whole + "\n", encoding="utf-8")

    def _parsed(self, path: Path, number: int, row: Sequence[str]) -> tuple[bytes, float]:
        if len(row) != len(self.names) + 1:
            raise LogError(f"{path}: line {number} has {len(row)} values, expected {len(self.names) + 1}")
        values = []
        for name, text in zip((*self.names, "y"), row, strict=True):
            try:
                values.append(float(text))
            except ValueError:
                raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a number") from None
            if name != "y" and not math.isfinite(values[-1]):
                raise LogError(f"{path}: line {number}: {name} is {short(text)!r}, expected a finite number")
        return np.array(values[:-1]).tobytes(), values[-1]

    def _write(self, path: Path, rows: Array) -> None:
        text = "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise LogError(f"{path}: cannot write the log: {error.strerror}") from None
