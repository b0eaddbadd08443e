"""Which rows of the freed variables are asked for a table in noise: those that tell most of the open constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Indices

#: Rows are chosen from so many times as many. By hand.
CHOICE = 12


def telling_rows(tree: MaskedTree, setting: Array, freed: Sequence[int], count: int, lab: Lab) -> Array:
    """Return points, (count, n_vars) or fewer, at a setting of all but `freed` that tell most of a formula's constants.

    Of many points those of the largest volume of the Jacobian, by pivoted QR decompositions, one after the other.
    """
    X = np.tile(setting, (CHOICE * count, 1))
    X[:, freed] = lab.draw(len(X))[:, freed]
    with np.errstate(all="ignore"):
        y = tree.evaluate(X, lab.pset)
        good = np.isfinite(y)
        data = Dataset.of([Trial(X[good], y[good])])
    if good.sum() <= count:
        return X[:0]
    lab.budget.count(1)
    _, J = residual_model(tree, encoder(lab.pset).encode([tree]), data, lab.pset)(np.array(tree.constants))
    J = J / lab.evidence.sigma(data.y)
    if not np.isfinite(J).all():
        return X[:0]
    J /= np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
    left = np.arange(J.shape[1])
    chosen: list[int] = []
    while len(chosen) < count:
        first = pivots(J[:, left], min(len(J), count - len(chosen)))
        chosen += left[first].tolist()
        left = np.delete(left, first)
    return np.asarray(X[good][chosen])


def pivots(J: Array, count: int) -> Indices:
    """Return the first `count` columns that a pivoted QR decomposition takes: each the longest beside those before it.

    That of LAPACK asks all processors for what one does in less time: busy ones take a hundred times as long.
    """
    rest = J.copy()
    chosen: list[int] = []
    for _ in range(count):
        size = np.einsum("ij,ij->j", rest, rest)
        size[chosen] = -1.0
        longest = int(np.argmax(size))
        chosen.append(longest)
        direction = rest[:, longest] / max(np.sqrt(size[longest]), 1e-300)
        rest -= np.outer(direction, direction @ rest)
    return np.array(chosen)
