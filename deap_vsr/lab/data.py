"""The measurements of a run, to hand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.errors import VsrError
from deap_vsr.lab.log import Log, header_line
from deap_vsr.tree.operators import Array, Flags


@dataclass(frozen=True, eq=False)
class Data:
    """Every measurement of a run, in order: X (n, n_vars), y (n,), its standard errors sigma (n,), NaN where unknown.

    NaN and inf among y are points without an answer. ``names`` are those of the columns, the answer's last.
    """

    X: Array = field(default_factory=lambda: np.empty((0, 0)))
    y: Array = field(default_factory=lambda: np.empty(0))
    sigma: Array = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, log: Log, names: Sequence[str]) -> Data:
        """Return those of a log."""
        return cls(log.X.copy(), log.y.copy(), log.sigma.copy(), tuple(names))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"<Data: {len(self)} points of {', '.join(self.names[:-1])}>"

    @property
    def good(self) -> Flags:
        """Which points have an answer."""
        return np.isfinite(self.y)

    @property
    def columns(self) -> dict[str, Array]:
        """The columns by name; standard errors as sigma, where there are any."""
        found = dict(zip(self.names, [*self.X.T, self.y], strict=True))
        if np.isfinite(self.sigma).any():
            found["sigma"] = self.sigma
        return found

    def frame(self) -> Any:
        """Return a pandas DataFrame; needs pandas."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise VsrError("a frame needs pandas: pip install pandas; columns, X and y do without") from None
        return pandas.DataFrame(self.columns)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file with a line of names."""
        columns = self.columns
        rows = [",".join(map(repr, row)) + "\n" for row in np.column_stack(list(columns.values())).tolist()]
        try:
            Path(path).write_text(header_line(list(columns)) + "".join(rows), encoding="utf-8")
        except OSError as error:
            raise VsrError(f"{path}: cannot write: {error.strerror}") from None
