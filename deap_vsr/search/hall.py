"""The hall: the best expressions over all rounds, ranked on uncontrolled data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.search.checkpoint import Json, data_from, tree_from, tree_state
from deap_vsr.search.schema import HallState
from deap_vsr.tree import MaskedTree, Vocabulary
from deap_vsr.tree.simplify import literals, structural_hash


class Hall:
    """The best expressions over all rounds, distinct formulas, ranked on uncontrolled data.

    `data` holds two batches: constants are fitted on the first, and the worse of the errors on both counts. A pole
    between the points of the first does not pass for a good fit.
    """

    def __init__(self, size: int, data: Dataset, lab: Lab) -> None:
        self.size, self.lab = size, lab
        self.all, self.data, self.check = data, data.trial(0), data.trial(1)
        self._vocabulary = Vocabulary(lab.pset)
        self.best: list[tuple[float, MaskedTree]] = []
        self._hashes: dict[str, float] = {}

    def state(self) -> Json:
        """Return it in JSON values."""
        data = {"X": self.all.columns.T, "y": self.all.y, "offsets": self.all.offsets}
        return {"data": data, "best": [(error, tree_state(tree)) for error, tree in self.best], "hashes": self._hashes}

    @classmethod
    def restored(cls, size: int, state: HallState, lab: Lab) -> Hall:
        """Return what :meth:`state` wrote."""
        hall = cls(size, data_from(state["data"], lab.n_vars), lab)
        hall.best = [(error, tree_from(tree, lab.pset)) for error, tree in state["best"]]
        hall._hashes = state["hashes"]
        return hall

    def offer(self, tree: MaskedTree) -> float:
        """Fit `tree` on the uncontrolled batch and keep it if it is good enough; returns its error."""
        outcome = self.lab.fit(tree, self.data, n_starts=1)
        fitted = outcome.trees[0]
        error = float(max(outcome.errors[0], self.lab.fit(literals(fitted), self.check).errors.max()))
        if not np.isfinite(error):
            return error
        key = structural_hash(fitted, self._vocabulary)
        if error < self._hashes.get(key, np.inf):
            self._hashes[key] = error
            self.best = [entry for entry in self.best if structural_hash(entry[1], self._vocabulary) != key]
            self.best.append((error, fitted))
            self.best.sort(key=lambda entry: (entry[0], len(entry[1])))
            del self.best[self.size :]
        return error


def ranked(trees: Sequence[MaskedTree], lab: Lab, n_points: int = 64) -> list[tuple[float, MaskedTree]]:
    """Return formulas that are not finished with their errors on uncontrolled data, best first; few of many."""
    if not trees:
        return []
    size = int(min(n_points, lab.budget.queries_left() // 2))
    if size < 4:
        return [(np.inf, trees[-1])]
    try:
        batch = lab.trials(range(lab.n_vars), 2, size)
    except (NoValuesError, OutOfQueriesError, KeyboardInterrupt):
        return [(np.inf, trees[-1])]
    hall = Hall(10, Dataset.of(batch), lab)
    for tree in trees[-20:]:
        hall.offer(tree)
    return hall.best
