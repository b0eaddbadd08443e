"""Least squares on large dictionaries of parts: every single one, every pair, then more terms by a beam.

The compiled walk through subsets (:mod:`deap_vsr.engine.subsets`) is for the few atoms of one variable; here are
thousands of parts of several, and products of matrices do all pairs of them at once. What is found is a proposal: sums
of squares by way of correlations are good to some 12 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.lab.criterion import NODE
from deap_vsr.tree.operators import Array

#: What is left, relative to what there was, cannot be told from nothing below this.
NOTHING = 1e-13
#: A part that keeps less than this share of its square depends on those chosen.
DEPENDENT = 1e-9
#: Pairs are looked through in blocks of so many parts.
BLOCK = 512


@dataclass(frozen=True)
class Subset:
    """Parts that were chosen, and the score of their sum: a description length, doubled; less is better."""

    parts: tuple[int, ...]
    score: float


class Linear:
    """A dictionary of parts A (n_parts, n_rows) for a target z (n_rows,), always beside a `block` (n_fixed, n_rows).

    Rows are weighted by `root` (n_rows,), the roots of their weights. ``costs`` (n_parts,) are in nodes.
    """

    def __init__(
        self, A: Array, z: Array, costs: Sequence[float], block: Array | None = None, root: Array | None = None
    ) -> None:
        root = np.ones(len(z)) if root is None else root
        self.n = len(z)
        self.costs = NODE * np.asarray(costs, dtype=float) + float(np.log(max(self.n, 2)))
        self.z = z * root
        known = np.asarray(np.isfinite(A).all(axis=1, keepdims=True), dtype=bool)
        A = np.where(known, A, 0.0)
        self.A = A * root
        self.Q = np.empty((self.n, 0))
        if block is not None and len(block):
            self.Q = orthogonal((block * root).T)
            self.z = self.z - self.Q @ (self.Q.T @ self.z)
            self.A = self.A - (self.A @ self.Q) @ self.Q.T
        before = np.linalg.norm(A * root, axis=1)
        size = np.linalg.norm(self.A, axis=1)
        with np.errstate(all="ignore"):
            self.usable = np.isfinite(size) & (size > DEPENDENT * before)
            self.A = np.where(self.usable[:, None], self.A / size[:, None], 0.0)
        self.total = float(self.z @ self.z) or 1.0
        self.along = self.A @ self.z / np.sqrt(self.total)

    def score(self, left: Array, cost: Array | float) -> Array:
        """Return the description length, doubled, of what is left, as a share."""
        return np.asarray(self.n * np.log(np.maximum(left, NOTHING)) + cost)

    def singles(self, keep: int) -> list[Subset]:
        """Return the best parts alone."""
        scores = np.where(self.usable, self.score(1.0 - self.along**2, self.costs), np.inf)
        order = np.argsort(scores, kind="stable")[:keep]
        return [Subset((int(i),), float(scores[i])) for i in order if np.isfinite(scores[i])]

    def pairs(self, keep: int, among: Sequence[int] | None = None) -> list[Subset]:
        """Return the best pairs of parts, of all or `among` some."""
        index = np.flatnonzero(self.usable) if among is None else np.array([i for i in among if self.usable[i]], int)
        A, c, costs = self.A[index], self.along[index], self.costs[index]
        found: list[tuple[float, int, int]] = []
        for begin in range(0, len(index), BLOCK):
            rows = slice(begin, min(begin + BLOCK, len(index)))
            G = A[rows] @ A[rows.start :].T
            first, second = c[rows, None], c[None, rows.start :]
            with np.errstate(all="ignore"):
                alone = 1.0 - G**2
                explained = (first**2 + second**2 - 2.0 * first * second * G) / alone
                scores = self.score(1.0 - explained, costs[rows, None] + costs[None, rows.start :])
            scores[~(alone > 1e-7)] = np.inf
            scores[np.tril_indices(G.shape[0], 0, G.shape[1])] = np.inf
            flat = scores.ravel()
            best = np.argpartition(flat, min(keep, flat.size - 1))[:keep]
            found += [
                (float(flat[i]), int(index[rows.start + i // G.shape[1]]), int(index[rows.start + i % G.shape[1]]))
                for i in best
                if np.isfinite(flat[i])
            ]
        found.sort()
        return [Subset((a, b), score) for score, a, b in found[:keep]]

    def longer(self, subset: Subset, keep: int) -> list[Subset]:
        """Return the best ways to add one part to a subset."""
        chosen = list(subset.parts)
        Q = orthogonal(self.A[chosen].T)
        rest = self.z - Q @ (Q.T @ self.z)
        B = self.A - (self.A @ Q) @ Q.T
        square = np.einsum("ij,ij->i", B, B)
        with np.errstate(all="ignore"):
            gain = (B @ rest) ** 2 / square
        left = (float(rest @ rest) - gain) / self.total
        scores = self.score(left, self.costs + float(self.costs[chosen].sum()))
        scores[~self.usable | ~(square > 1e-8)] = np.inf
        scores[chosen] = np.inf
        order = np.argsort(scores, kind="stable")[:keep]
        return [Subset((*subset.parts, int(i)), float(scores[i])) for i in order if np.isfinite(scores[i])]

    def beam(self, begin: Sequence[Subset], max_terms: int, width: int) -> list[Subset]:
        """Return the best subsets of each size from those given up to `max_terms`, best of each size first."""
        level, found = list(begin)[:width], list(begin)[:width]
        size = len(level[0].parts) if level else max_terms
        while level and size < max_terms:
            grown: dict[frozenset[int], Subset] = {}
            for subset in level:
                for longer in self.longer(subset, 4):
                    grown.setdefault(frozenset(longer.parts), longer)
            level = sorted(grown.values(), key=lambda item: item.score)[:width]
            found += level[: max(width // 3, 2)]
            size += 1
            best = min(item.score for item in found)
            if not level or level[0].score > best + 12.0 * NODE or self._nothing(level[0]):
                break
        return found

    def _nothing(self, subset: Subset) -> bool:
        """Whether a subset leaves nothing."""
        left = subset.score - float(self.costs[list(subset.parts)].sum())
        return left <= self.n * float(np.log(10.0 * NOTHING))


def orthogonal(A: Array) -> Array:
    """Return an orthonormal basis of the columns of A (n_rows, n_columns), without those that depend on others."""
    size = np.linalg.norm(A, axis=0)
    good = np.isfinite(size) & (size > 0)
    Q, R = np.linalg.qr(A[:, good] / size[good])
    kept = np.abs(np.diag(R)) > 1e-10
    return np.asarray(Q[:, kept])
