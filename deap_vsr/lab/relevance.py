"""Which variables matter at all, by changing many at once: most of a thousand are ruled out with a few points."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.tree.operators import Array

#: In noise a group of variables is tried at so many times as many points.
PAIRS_IN_NOISE = 16
#: With noise, so few variables are not tested: a round of each costs less than what may be lost.
KEPT_IN_NOISE = 12


def relevant_variables(lab: Lab, n_pairs: int = 3, max_queries: float = np.inf, here: Array | None = None) -> list[int]:
    """Return the columns on which y depends; with too few queries, those that were not ruled out.

    Each of `n_pairs` random points is asked again with the variables of a group taken from another point. A group
    whose change never changes y is ruled out; the others are halved. With noise it takes more pairs and a chi-squared
    test, and what is ruled out may matter a little: few variables are all kept.

    With `here` (n, n_vars) these points are taken: what does not matter there may matter elsewhere, and the answer is
    not kept for later.
    """
    evidence = lab.evidence
    if here is None and "relevant" in lab.facts:
        return list(lab.facts["relevant"])
    if not evidence.certain and lab.n_vars <= KEPT_IN_NOISE:
        return list(range(lab.n_vars))
    n_pairs = n_pairs if evidence.certain else PAIRS_IN_NOISE * n_pairs
    last = lab.budget.queries + max_queries
    keep = here is None
    here, y = _finite_points(lab, n_pairs) if here is None else (here, lab.ask(here))
    there = lab.draw(len(here))
    result: list[int] = []
    groups = [list(range(lab.n_vars))]
    while groups:
        group = groups.pop()
        if lab.budget.queries + len(y) > last:
            result += group
            continue
        moved = here.copy()
        moved[:, group] = there[:, group]
        if evidence.same(y, lab.ask(moved)):
            continue
        if len(group) == 1:
            result.append(group[0])
        else:
            half = len(group) // 2
            groups += [group[half:], group[:half]]
    if keep:
        lab.facts["relevant"] = sorted(result)
    return sorted(result)


def settings_that_show(lab: Lab, column: int, count: int, n_probed: int = 8, n_values: int = 3) -> Array | None:
    """Return `count` settings, (count, n_vars), at which `column` can be seen in the noise; None if there are none.

    Where y is large at few settings only, the table of most others would be noise. Of `n_probed` times as many those
    where y moves most are taken; the very best are left out: they may be beside a pole.
    """
    n_tried = n_probed * count
    if lab.budget.queries_left() < n_tried * n_values:
        raise OutOfQueriesError(f"{n_tried * n_values} points are more than may be asked")
    settings = lab.draw(n_tried)
    known = _large(lab, n_tried // 2)
    settings[: len(known)] = known
    X = np.repeat(settings, n_values, axis=0)
    X[:, column] = lab.draw(len(X))[:, column]
    y = lab.ask(X).reshape(n_tried, n_values)
    with np.errstate(all="ignore"):
        noise = lab.evidence.sigma(y.ravel()).reshape(y.shape)
        seen = np.where(np.isfinite(y).all(axis=1), y.var(axis=1, ddof=1) / np.mean(noise**2, axis=1), 0.0)
    best = np.argsort(-seen, kind="stable")
    n_seen = int(np.sum(seen > chdtri(n_values - 1, 1e-4 / n_tried) / (n_values - 1)))
    if not n_seen:
        return None
    left_out = min(max(n_tried // 12, 1), max(n_seen - count, 0))
    return np.asarray(settings[best[left_out : left_out + count]])


def _large(lab: Lab, count: int) -> Array:
    """Return known points at which y is furthest from its median, in units of its noise; the very furthest are not.

    No two have a value of any variable in common: what is held at one value shows nothing that moves with it.
    """
    known = lab.measured()
    if len(known.y) < 4 * count:
        return known.X[:0]
    sigma = lab.evidence.sigma(known.y) if known.weights is None else lab.evidence.noise / np.sqrt(known.weights)
    away = np.abs(known.y - np.median(known.y)) / sigma
    order = np.argsort(-away, kind="stable")[len(known.y) // 100 :]
    chosen: list[Array] = []
    low, high = np.array([variable.bounds for variable in lab.variables]).T
    inside = ((low <= known.X) & (high >= known.X)).all(axis=1)
    for point in known.X[order[inside[order]]]:
        if len(chosen) == count:
            break
        if not any((point == other).any() for other in chosen):
            chosen.append(point)
    return np.array(chosen).reshape(-1, lab.n_vars)


def _finite_points(lab: Lab, count: int) -> tuple[Array, Array]:
    """Draw points whose y is finite; as many as can be had with a few tries."""
    X: Array = np.empty((0, lab.n_vars))
    y: Array = np.empty(0)
    for _ in range(30):
        more = lab.draw(count - len(y))
        answer = lab.ask(more)
        good = np.isfinite(answer)
        X, y = np.vstack([X, more[good]]), np.append(y, answer[good])
        if len(y) == count:
            break
    return X, y
