"""Several outputs of one function: a search for each, over shared points; what one has asked the others know."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from deap_vsr.errors import LogError
from deap_vsr.files import Owned
from deap_vsr.lab.log import Log, read_table
from deap_vsr.lab.oracle import View
from deap_vsr.lab.streams import Answer, Heard, StreamOracle
from deap_vsr.tree.operators import Array, Flags


class Shared:
    """Every answer of a function with several outputs, in memory and, if wanted, in a CSV file.

    Parameters
    ----------
    oracle : with `outputs`
    path : a CSV file, optional: a column for each variable, then one for each output
        What it holds is not asked again; what is answered is added as it comes.
    """

    def __init__(self, oracle: StreamOracle, path: str | Path | None = None) -> None:
        self.oracle = oracle
        self.rows: dict[bytes, list[tuple[float, ...]]] = {}
        self._file: Owned | None = None
        if path is not None:
            columns = (*oracle.names, *oracle.outputs)
            _, rows = read_table(Path(path), [columns], len(oracle.names))
            self._file = Owned(Path(path))
            for row in rows:
                self._keep(np.array(row[: oracle.n_vars]), tuple(row[oracle.n_vars :]))

    def of(self, output: str) -> tuple[View, Log]:
        """Return the oracle of one output, and the log that it is asked with."""
        log = OutputLog(self, self.oracle.outputs.index(output))
        return View(self.oracle, stream=log.stream, output=output, outputs=()), log

    def add(self, x: Array, values: tuple[float, ...]) -> None:
        """Keep an answer, in the file too."""
        self._keep(x, values)
        self._write(",".join(map(repr, [*x.tolist(), *values])) + "\n")

    def _keep(self, x: Array, values: tuple[float, ...]) -> None:
        self.rows.setdefault(x.tobytes(), []).append(values)

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        try:
            self._file.append(line)
        except OSError as error:
            raise LogError(f"{self._file.path}: cannot write the log: {error.strerror}") from None


class OutputLog(Log):
    """The log of one output: it reads what was asked for any of them, each answer once."""

    def __init__(self, shared: Shared, place: int) -> None:
        super().__init__(shared.oracle.names)
        self._shared, self._place = shared, place
        self._taken: Counter[bytes] = Counter()

    def read(self, X: Array) -> tuple[Array, Flags]:
        """Return answers that are there with their standard errors, (n, 2), and for which points, (n,)."""
        answers, found = np.full((len(X), 2), np.nan), np.zeros(len(X), bool)
        for i, x in enumerate(np.ascontiguousarray(X)):
            there = self._shared.rows.get(x.tobytes(), ())
            if self._taken[x.tobytes()] < len(there):
                answers[i, 0], found[i] = there[self._taken[x.tobytes()]][self._place], True
                self._taken[x.tobytes()] += 1
                self.n_read += 1
        return answers, found

    def stream(self, X: Array) -> Iterator[Heard]:
        """Yield this output's answers as they come; all outputs are kept."""
        nothing = (math.nan,) * len(self._shared.oracle.outputs)
        for place, heard in self._shared.oracle.stream(X):
            self._shared.add(X[place], heard.values if isinstance(heard, Answer) else nothing)
            self._taken[X[place].tobytes()] += 1
            yield place, Answer((heard.values[self._place],)) if isinstance(heard, Answer) else heard
