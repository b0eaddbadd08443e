"""A cache of fits: the same candidate on the same data is never fitted twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.engine.program import encoder
from deap_vsr.tree import MaskedTree, Node, is_open
from deap_vsr.tree.operators import Array, Indices
from deap_vsr.tree.simplify import canonical_order


class FitCache:
    """Fits by canonical form, data and settings, the least recently used forgotten first.

    Candidates that differ only in the order of commutative operands share an entry; their
    constants are handed back in their own order.

    Parameters
    ----------
    max_bytes : int
        About how much memory the entries may take.
    """

    def __init__(self, max_bytes: int = 64_000_000) -> None:
        self.max_bytes = max_bytes
        self.hits = 0
        self.misses = 0
        self.bytes = 0
        self._fits: OrderedDict[Hashable, Fit] = OrderedDict()

    @property
    def hit_rate(self) -> float:
        """Share of look-ups answered from the cache; 0 before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def __len__(self) -> int:
        return len(self._fits)

    def fit(
        self,
        tree: MaskedTree,
        data: Dataset,
        pset: gp.PrimitiveSetTyped | None,
        settings: Hashable,
        starts: Array | None,
        compute: Callable[[], Fit],
    ) -> Fit:
        """Return the stored fit of `tree`, or the one that `compute` gives; a stored one costs 0 evaluations."""
        order = canonical_order(tree, encoder(pset).vocabulary)
        rank = {position: i for i, position in enumerate(tree.open_constants)}
        mine = [rank[position] for position in order if position in rank]  # canonical -> own order
        given = None if starts is None else np.array(starts, dtype=float, ndmin=2)[:, mine].tobytes()
        form = tuple(_letter(tree[position]) for position in order)
        key = (form, data.token, pset, settings, given)
        stored = self._fits.get(key)
        if stored is not None:
            self.hits += 1
            self._fits.move_to_end(key)
            return _permuted(stored, tree, np.argsort(mine), evaluations=0)
        self.misses += 1
        fit = compute()
        self._fits[key] = _permuted(fit, tree, np.array(mine, dtype=int), fit.evaluations)
        self.bytes += _size(fit)
        while self.bytes > self.max_bytes and self._fits:
            self.bytes -= _size(self._fits.popitem(last=False)[1])
        return fit


_OPEN = object()  # no name that a variable could have


def _letter(node: Node) -> Hashable:
    """What a node is to the cache: open constants are anonymous, literals are not."""
    if node.arity:
        return node.name
    return _OPEN if is_open(node) else node.value


def _size(fit: Fit) -> int:
    """About how many bytes an entry takes: arrays, key, tree and their Python objects."""
    return fit.constants.nbytes * 3 + fit.errors.nbytes * 2 + 160 * len(fit.tree) + 1500


def _permuted(fit: Fit, tree: MaskedTree, order: Indices, evaluations: int) -> Fit:
    return replace(
        fit,
        tree=tree,
        constants=fit.constants[:, order],
        standard_errors=fit.standard_errors[:, order],
        determined=fit.determined[:, order],
        evaluations=evaluations,
    )
