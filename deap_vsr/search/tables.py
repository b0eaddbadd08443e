"""Tables of slots: where they are measured, what they hold, and formulas with forms in their slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy.special import chdtri

from deap_vsr.lab.trials import Trial, draw_inputs
from deap_vsr.problems.equation import Variable
from deap_vsr.search.contract import Candidate
from deap_vsr.search.records import SlotTable
from deap_vsr.tree import MaskedTree, is_open
from deap_vsr.tree.operators import Array, Flags

#: Fewer values of a variable are no table.
MIN_VALUES = 5
#: Level of the test that a slot moves, in noise.
MOVES = 1e-3


@dataclass(frozen=True)
class Plan:
    """How a table is measured: at how many values of the new variable, and where in its domain.

    Values are spread as the variable is sampled, or evenly, over the domain or a window, a share of it.
    Of ``spare`` more settings than wanted, those at which y spans the fewest decades are taken. At each value a slot
    takes ``n_points`` in noise; exact answers need no more than there are slots, and a few.
    """

    n_values: int
    even: bool = False
    window: float = 1.0
    spare: int = 0
    n_points: int = 0


@dataclass(frozen=True, eq=False)
class Tables:
    """What was measured: values of the new variable (J,), slots and standard errors (K, J, L), settings (K, m).

    With ``noisy`` the standard errors are those of measurements; else they are rounding.
    """

    column: int
    grid: Array
    slots: Array
    errors: Array
    settings: Array
    noisy: bool = False

    def complete(self) -> Tables:
        """Return the tables without the values at which a setting has none."""
        good = np.isfinite(self.slots).all(axis=(0, 2))
        return replace(self, grid=self.grid[good], slots=self.slots[:, good], errors=self.errors[:, good])

    def moving(self) -> Flags:
        """Return for each slot whether it depends on the new variable."""
        if self.noisy:
            weight = 1.0 / np.maximum(self.errors, 1e-150) ** 2
            mean = (weight * self.slots).sum(axis=1) / weight.sum(axis=1)
            distance = (weight * (self.slots - mean[:, None]) ** 2).sum(axis=(0, 1))
            return np.asarray(distance > chdtri(len(self.slots) * (len(self.grid) - 1), MOVES), dtype=bool)
        with np.errstate(all="ignore"):
            spread = np.ptp(self.slots, axis=1)
            size = np.max(np.abs(self.slots), axis=1)
            floor = np.maximum(1e-10 * size, 30.0 * self.errors.max(axis=1))
        return np.asarray((spread > floor).any(axis=0), dtype=bool)

    def trials(self, slot: int) -> list[Trial]:
        """Return the table of one slot as trials in which the new variable varies.

        Weights are 1/tolerance**2; of noisy tables 1/error**2.
        """
        trials = []
        for k in range(len(self.slots)):
            y = self.slots[k, :, slot]
            good = np.isfinite(y)
            X = np.tile(self.settings[k], (int(good.sum()), 1))
            X[:, self.column] = self.grid[good]
            largest = np.max(np.abs(y[good]), initial=0.0)
            tolerance = np.maximum(self.errors[k, good, slot], 1e-150)
            if not self.noisy:
                tolerance = 1e-11 * np.ptp(y[good]) + 2e-14 * largest + 10.0 * tolerance + 1e-150
            trials.append(Trial(X, y[good], (self.column,), 1.0 / tolerance**2))
        return trials


@dataclass(frozen=True, eq=False)
class Solutions:
    """Tables of one variable, and for each slot that moves, by its position in the tree, forms that fit its table."""

    tables: Tables
    forms: dict[int, list[Candidate]]


@dataclass(frozen=True, eq=False)
class Grown:
    """A formula with forms in its slots: starts for its constants (K, L), settings (K, m), tables it came from.

    ``parent`` is the formula it grew from, where several are followed.
    """

    tree: MaskedTree
    starts: Array
    settings: Array
    tables: tuple[SlotTable, ...]
    parent: MaskedTree | None = None


def combinations(tree: MaskedTree, solutions: Solutions, count: int) -> Iterator[Grown]:
    """Yield the tree with forms in its slots, the simplest first, `count` at most."""
    forms, measured = solutions.forms, solutions.tables
    means = measured.slots.mean(axis=1)  # (n_settings, n_slots)
    for choice in islice(_choices([len(found) for found in forms.values()], measured.noisy), count):
        chosen = {place: found[i] for (place, found), i in zip(forms.items(), choice, strict=True)}
        nodes: list[object] = []
        starts: list[Array] = []
        slot = 0
        for position, node in enumerate(tree):
            if position in chosen:
                nodes += chosen[position].tree
                starts += list(chosen[position].constants.T)
            else:
                nodes.append(node)
                if is_open(node):
                    starts.append(means[:, slot])
            slot += is_open(node)
        tables = [
            SlotTable(
                measured.column,
                measured.grid,
                measured.slots[:, :, (slot := tree.open_constants.index(position))],
                candidate.tree,
                candidate.constants,
                measured.errors[:, :, slot] if measured.noisy else None,
            )
            for position, candidate in chosen.items()
        ]
        yield Grown(MaskedTree(nodes), np.array(starts).T, measured.settings, tuple(tables))


def _choices(counts: Sequence[int], several: bool) -> Iterator[tuple[int, ...]]:
    """Yield which form each slot gets: the first everywhere, then another one in one slot after the other.

    With `several` slots get others at once, in the order of how far down their lists these are together: in noise the
    first form of a list is not much more likely than the next.
    """
    first = (0,) * len(counts)
    yield first
    if not several:
        for other in range(1, max(counts, default=1)):
            for i, n in enumerate(counts):
                if other < n:
                    yield (*first[:i], other, *first[i + 1 :])
        return
    level = [first]
    while level:
        further = [(*c[:i], c[i] + 1, *c[i + 1 :]) for c in level for i, n in enumerate(counts) if c[i] + 1 < n]
        level = list(dict.fromkeys(further))
        yield from level


def table_inputs(
    variables: Sequence[Variable],
    settings: Array,
    freed: Sequence[int],
    column: int,
    grid: Array,
    n_points: int,
    rng: np.random.Generator,
) -> Array:
    """Return the points of a table, (K, J, n_points, m): at each setting one batch of the freed variables, repeated."""
    K, J = len(settings), len(grid)
    X = np.repeat(settings, J * n_points, axis=0).reshape(K, J, n_points, -1)
    for k in range(K):
        X[k, :, :, freed] = draw_inputs(variables, n_points, rng)[:, freed].T[:, None, :]
    X[:, :, :, column] = grid[None, :, None]
    return X


def spread_values(variable: Variable, plan: Plan, rng: np.random.Generator) -> Array:
    """Return values of a variable spread over its domain, in order; fewer for a variable of few whole numbers."""
    count = plan.n_values
    places = (np.arange(count) + rng.uniform(0.2, 0.8, count)) / count
    if plan.window < 1.0:
        places = rng.uniform(0.0, 1.0 - plan.window) + plan.window * places
    if variable.sampling == "integer":
        first, last = int(np.ceil(variable.low)), int(np.ceil(variable.high)) - 1
        return np.unique(np.round(first + places * (last - first)))
    if variable.sampling == "loguniform" and not plan.even:
        values = variable.low * (variable.high / variable.low) ** places
    else:
        values = variable.low + places * (variable.high - variable.low)
    if variable.sign == "both":
        values = np.where(np.arange(count) % 2 == 0, values, -values)
    return np.sort(values)
