"""Which variables matter at all, by changing many at once: most of a thousand are ruled out with a few points."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import draw_inputs
from deap_vsr.tree.operators import Array

#: With noise, so few variables are not tested.
KEPT_IN_NOISE = 12


def relevant_variables(
    oracle: Oracle, rng: np.random.Generator, noise: float = 0.0, n_pairs: int = 3, max_queries: float = np.inf
) -> list[int]:
    """Return the columns on which y depends; with too few queries, those that were not ruled out.

    Each of `n_pairs` random points is asked again with the variables of a group taken from another point. A group
    whose change never changes y is ruled out; the others are halved. With noise it takes more pairs and a chi-squared
    test, and what is ruled out may matter a little: few variables are all kept.
    """
    if noise > 0 and len(oracle.variables) <= KEPT_IN_NOISE:
        return list(range(len(oracle.variables)))
    n_pairs = n_pairs if noise == 0 else 16 * n_pairs
    last = oracle.queries + max_queries
    here, y = _finite_points(oracle, rng, n_pairs)
    there = draw_inputs(oracle.variables, len(here), rng)
    result: list[int] = []
    groups = [list(range(len(oracle.variables)))]
    while groups:
        group = groups.pop()
        if oracle.queries + len(y) > last:
            result += group
            continue
        moved = here.copy()
        moved[:, group] = there[:, group]
        with np.errstate(all="ignore"):
            change = np.abs(oracle.evaluate(moved) - y)
        if noise > 0:
            unchanged = np.sum(change**2) <= 2.0 * noise**2 * chdtri(len(y), 1e-3)
        else:
            unchanged = (change <= 1e-13 * np.abs(y)).all()
        if unchanged:
            continue
        if len(group) == 1:
            result.append(group[0])
        else:
            half = len(group) // 2
            groups += [group[half:], group[:half]]
    return sorted(result)


def _finite_points(oracle: Oracle, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Draw points whose y is finite; as many as can be had with a few tries."""
    X: Array = np.empty((0, len(oracle.variables)))
    y: Array = np.empty(0)
    for _ in range(30):
        more = draw_inputs(oracle.variables, count - len(y), rng)
        answer = oracle.evaluate(more)
        good = np.isfinite(answer)
        X, y = np.vstack([X, more[good]]), np.append(y, answer[good])
        if len(y) == count:
            break
    return X, y
