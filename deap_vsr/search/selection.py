"""Which columns belong to a sum: forward, backward and by exchange, by the Bayesian information criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from deap_vsr.engine.linear import solved
from deap_vsr.tree.operators import Array

#: More terms are not looked for: twice as many as the largest benchmark programs have.
MAX_TERMS = 60


def select(
    blocks: Sequence[tuple[Array, Array]],
    noise: float,
    allowed: Sequence[bool],
    start: Sequence[int],
    stop: Callable[[], bool] = lambda: False,
    max_terms: int = MAX_TERMS,
    surcharge: Array | float = 0.0,
) -> tuple[list[int], float]:
    """Return which columns belong to a sum that has coefficients of its own in each block, and the criterion it has.

    Forward by the largest gain, exchanging and dropping what others make superfluous, until the Bayesian information
    criterion is no longer lowered. `start` says what is in from the beginning, `allowed` what may come in; more terms
    than a fifth of the points of a block, or than `max_terms`, explain nothing. `stop` ends it early. A column has the
    same price as any other, and its `surcharge`.
    """
    n_blocks = len(blocks)
    n_candidates = len(blocks[0][0])
    grams = []
    for A, y in blocks:
        units = np.linalg.norm(A, axis=1)
        units[units == 0] = np.inf
        scaled = A / units[:, None] / noise
        grams.append((scaled @ scaled.T, scaled @ (y / noise), float(y @ y) / noise**2))
    usable = np.all([np.diag(G) > 0 for G, _, _ in grams], axis=0) & np.asarray(allowed)
    total = sum(len(y) for _, y in blocks)
    # A term costs one constant a block; that it was chosen among many costs as well.
    price = n_blocks * np.log(total / n_blocks) + 2.0 * np.log(max(n_candidates, 2))
    prices = price + np.broadcast_to(surcharge, n_candidates)
    most = min(max_terms, max(min(len(y) for _, y in blocks) // 5, 2))
    chosen = [i for i in start if usable[i]]
    for _ in range(3 * most):
        if stop():
            break
        gains = np.where(usable, _gains(grams, chosen) - prices, -np.inf)
        best = int(np.argmax(gains))
        moved = False
        if gains[best] > 0.0 and len(chosen) < most:
            chosen.append(best)
            moved = True
        # What has become superfluous goes, and what another column does better is exchanged.
        while chosen:
            losses = _losses(grams, chosen) - prices[chosen]
            worst = int(np.argmin(losses))
            if losses[worst] >= 0.0:
                break
            moved = moved or chosen[worst] != best
            del chosen[worst]
        for place, i in enumerate(list(chosen)):
            others = [j for j in chosen if j != i]
            now = _left(grams, chosen) + prices[i]
            better = np.where(usable, _gains(grams, others) - prices, -np.inf)
            other = int(np.argmax(better))
            if other not in chosen and _left(grams, others) - better[other] < now - 1e-6:
                chosen[place] = other
                moved = True
        if not moved:
            break
    return chosen, _left(grams, chosen) + float(np.sum(prices[chosen]))


def _left(grams: Sequence[tuple[Array, Array, float]], chosen: Sequence[int]) -> float:
    """Return the sum of squares, in units of the noise, that the chosen columns leave in all blocks."""
    total = 0.0
    for G, b, yy in grams:
        total += yy
        if len(chosen):
            index = np.array(chosen)
            total -= float(b[index] @ _solved(G[np.ix_(index, index)], b[index]))
    return total


def _losses(grams: Sequence[tuple[Array, Array, float]], chosen: Sequence[int]) -> Array:
    """Return for each chosen column by how much what is left would grow without it."""
    losses = np.zeros(len(chosen))
    for G, b, _ in grams:
        index = np.array(chosen)
        inverse = _solved(G[np.ix_(index, index)], np.eye(len(index)))
        with np.errstate(all="ignore"):
            losses += np.nan_to_num((inverse @ b[index]) ** 2 / np.diag(inverse))
    return losses


def _solved(G: Array, right: Array) -> Array:
    """Return the solution of G x = right for a matrix of products of columns, also where some depend on others."""
    try:
        return np.asarray(cho_solve(cho_factor(G), right))
    except np.linalg.LinAlgError:
        return solved(G, right, 1e-12)


def _gains(grams: Sequence[tuple[Array, Array, float]], chosen: Sequence[int]) -> Array:
    """Return for every column by how much it would lower what is left."""
    gains = np.zeros(len(grams[0][1]))
    for G, b, _ in grams:
        if not len(chosen):
            slope, square = b, np.diag(G)
        else:
            index = np.array(chosen)
            projection = _solved(G[np.ix_(index, index)], np.column_stack([b[index], G[index]]))
            slope = b - G[:, index] @ projection[:, 0]
            square = np.diag(G) - np.einsum("ij,ji->i", G[:, index], projection[:, 1:])
        good = square > 1e-7 * np.diag(G)
        gains[good] += slope[good] ** 2 / square[good]
    gains[list(chosen)] = 0.0
    return gains
