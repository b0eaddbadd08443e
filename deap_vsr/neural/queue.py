"""The priority queue of PQT: the best distinct formulas so far, as sequences that can be imitated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Sequences = list[list[int]]


class Queue:
    """At most `size` formulas, best first: (error, key, tokens)."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: list[tuple[float, int, list[int]]] = []

    def __len__(self) -> int:
        return len(self.entries)

    def push(self, error: float, key: int, sequence: Sequence[int]) -> None:
        """Offer a formula; one that is there already, in whatever order its operands are, is no other."""
        if not np.isfinite(error) or any(key == known for _, known, _ in self.entries):
            return
        self.entries = sorted([*self.entries, (error, key, list(sequence))], key=lambda entry: entry[0])[: self.size]

    def draw(self, n: int, rng: np.random.Generator) -> Sequences:
        """Return n of them, each drawn from all."""
        return [self.entries[i][2] for i in rng.integers(len(self.entries), size=n)]

    def state(self) -> list[Any]:
        """Return it in JSON values."""
        return list(self.entries)

    def restore(self, state: Sequence[Any]) -> None:
        """Take over what :meth:`state` returned."""
        self.entries = [(float(error), int(key), [int(token) for token in tokens]) for error, key, tokens in state]
