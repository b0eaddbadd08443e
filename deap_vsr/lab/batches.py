"""Batches: how many points are handed to the oracle at once, what fills up the last of them, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.errors import VsrError
from deap_vsr.problems.equation import Variable
from deap_vsr.tree.operators import Array, Indices


class Batches:
    """How points are put into batches, and the points that are wished for.

    Parameters
    ----------
    variables : the inputs; those that cost something to change are changed seldom within a batch
    size : points of a batch at the most; None: no limit
    """

    def __init__(self, variables: Sequence[Variable], size: int | None = None) -> None:
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
            raise VsrError(f"batch is {size!r}, expected a whole number of at least 1, or none")
        self.size = size
        dear = [column for column, variable in enumerate(variables) if variable.cost > 0]
        self.dear = sorted(dear, key=lambda column: -variables[column].cost)
        """Columns of the variables that cost something to change, the dearest first."""
        self._wishes: dict[bytes, Array] = {}

    def cut(self, n_points: int) -> Iterator[slice]:
        """Yield the batches of so many points, one behind the other."""
        size = self.size or n_points
        return (slice(at, min(at + size, n_points)) for at in range(0, n_points, size))

    def order(self, X: Array) -> Indices:
        """Return the order in which points, (n, n_vars), are asked, (n,): dear variables change seldom."""
        if not self.dear:
            return np.arange(len(X))
        return np.lexsort([X[:, column] for column in reversed(self.dear)])

    # --- wishes ---

    def wish(self, X: Array) -> None:
        """Remember points, (n, n_vars), behind those that are wished for already."""
        for point in X:
            self._wishes.setdefault(point.tobytes(), point)

    def forget(self, X: Array | None = None) -> None:
        """Forget the wishes among points, (n, n_vars); without any, all wishes."""
        if X is None:
            self._wishes.clear()
        elif self._wishes:
            for point in X:
                self._wishes.pop(point.tobytes(), None)

    def filled_up(self, X: Array, at_most: float) -> Array:
        """Return points, (n, n_vars), and behind them wishes: what the last batch has room for, and `at_most` so many.

        A wish stays one until it is forgotten.
        """
        if self.size is None or not self._wishes:
            return X
        asked = {point.tobytes() for point in X}
        others = [point for key, point in self._wishes.items() if key not in asked]
        room = int(min(-len(X) % self.size, at_most))
        return np.vstack([X, *others[:room]])
