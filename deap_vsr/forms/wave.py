"""A wave whose phase has two terms: C*sin(C*g + C*h + C) + C, where g and h are atoms of x.

In one variable such is what a wave of several variables looks like wherever the variable is there twice. At each pair
of a grid of the two inner constants the rest is linear: sine, cosine and 1. Levenberg-Marquardt goes on from the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Function, Nodes
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, node_from_name
from deap_vsr.tree.operators import Array

#: Terms of a phase are atoms without waves among so many of the first; from fewer values than these nothing is told, as
#: there are five numbers.
N_TERMS, LEAST_VALUES = 6, 9
#: Radians that a term may run through over the values, an even grid: near enough for Levenberg-Marquardt.
RADIANS = np.arange(0.5, 40.0, 0.5)
#: Of each pair of terms so many of the best places of the grid are starts.
MOST_STARTS = 12


def waves_of_two_terms(target: Target) -> Iterator[Step]:
    """Yield, for each two terms of a phase, the forms at the best pairs of inner constants."""
    table = target.table
    waves = sorted({"sin", "cos"} & table.allowed)
    if not {"add", "mul"} <= table.allowed or not waves or len(table.x[0]) < LEAST_VALUES:
        return
    terms = [
        (atom.nodes, values[0])
        for atom, values in zip(table.atoms, table.values(N_TERMS), strict=False)
        if np.isfinite(values).all() and np.ptp(values[0]) > 0.0 and not {n.name for n in atom.nodes} & {"sin", "cos"}
    ]
    z = target.z[0] / (np.max(np.abs(target.z[0])) or 1.0)
    for (first, g), (second, h) in combinations(terms, 2):
        count = 2 * len(RADIANS) ** 2
        if table.left() < count:
            return
        one, other = RADIANS / np.ptp(g), np.concatenate([-RADIANS[::-1], RADIANS]) / np.ptp(h)
        left = _left(np.multiply.outer(one, g), np.multiply.outer(other, h), z)
        best = np.argsort(left, axis=None, kind="stable")[:MOST_STARTS]
        written = []
        for i, j in zip(*np.unravel_index(best, left.shape), strict=True):
            nodes = _written(waves[0], (first, second), (float(one[i]), float(other[j])), (g, h), target)
            if nodes is not None:
                written.append(nodes)
        yield [Form.of(written, len(written[0]) + target.cost)] if written else [], count


def _left(first: Array, second: Array, z: Array) -> Array:
    """Return what sine, cosine and 1 leave of z, (n_points,), at all phases: (n_first, n_second)."""
    z = z - z.mean()
    phase = first[:, None] + second[None]  # (n_first, n_second, n_points)
    sine, cosine = np.sin(phase), np.cos(phase)
    sine -= sine.mean(axis=-1, keepdims=True)
    cosine -= cosine.mean(axis=-1, keepdims=True)
    ss, cc, sc = np.sum(sine**2, axis=-1), np.sum(cosine**2, axis=-1), np.sum(sine * cosine, axis=-1)
    sz, cz = sine @ z, cosine @ z
    with np.errstate(all="ignore"):
        explained = (sz**2 * cc - 2.0 * sz * cz * sc + cz**2 * ss) / (ss * cc - sc**2)
    return np.where(np.isfinite(explained), float(z @ z) - explained, np.inf)


def _written(
    wave: str, terms: tuple[Nodes, Nodes], thetas: tuple[float, float], values: tuple[Array, Array], target: Target
) -> Nodes | None:
    """Return the nodes at a pair of inner constants, with the phase and the numbers outside that fit there."""
    allowed = target.table.allowed
    phase = thetas[0] * values[0] + thetas[1] * values[1]
    A = np.column_stack([np.sin(phase), np.cos(phase), np.ones(len(phase))]) / target.tolerance[0][:, None]
    a, b, level = solved(A, target.z[0] / target.tolerance[0], 1e-12)
    if not np.isfinite([a, b, level]).all():
        return None
    shift = np.arctan2(b, a) if wave == "sin" else np.arctan2(-a, b)
    argument: Nodes = (Constant(float(shift)),)
    for nodes, theta in zip(terms, thetas, strict=True):
        argument = (node_from_name("add"), *argument, node_from_name("mul"), Constant(theta), *nodes)
    nodes_of_sum = sum_nodes([Function(wave).of(argument, allowed), None], np.array([np.hypot(a, b), level]), target)
    return None if nodes_of_sum is None else target.wrap(nodes_of_sum)
