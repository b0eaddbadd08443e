"""Tables of slots: where they are measured, what they hold, and formulas with forms in their slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.lab.evidence import Evidence
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import draw_inputs, on_grid
from deap_vsr.search.checkpoint import Json
from deap_vsr.search.contract import Candidate
from deap_vsr.search.records import SolvedSlot, State
from deap_vsr.tree import MaskedTree, is_open
from deap_vsr.tree.operators import Array

#: Fewer values of a variable are no table: one more than forms of four constants.
MIN_VALUES = 5


@dataclass(frozen=True)
class Sweep:
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
class SlotTables:
    """What was measured: values of the new variable (J,), slots and standard errors (K, J, L), settings (K, m).

    ``tree`` is the formula that the slots are of, where it is not the one that was to grow.
    """

    column: int
    grid: Array
    slots: Array
    errors: Array
    held_at: Array
    evidence: Evidence
    tree: MaskedTree | None = None

    def complete(self) -> SlotTables:
        """Return the tables without the values at which a setting has none."""
        good = np.isfinite(self.slots).all(axis=(0, 2))
        return replace(self, grid=self.grid[good], slots=self.slots[:, good], errors=self.errors[:, good])

    def moving(self) -> list[int]:
        """Return the slots that depend on the new variable."""
        return [int(slot) for slot in np.flatnonzero(self.evidence.table_moves(self.slots, self.errors))]

    def trials(self, slot: int) -> list[Trial]:
        """Return the table of one slot as trials in which the new variable varies; weights are 1/tolerance**2."""
        trials = []
        for values, errors, held_at in zip(self.slots, self.errors, self.held_at, strict=True):
            y = values[:, slot]
            good = np.isfinite(y)
            X = np.tile(held_at, (int(good.sum()), 1))
            X[:, self.column] = self.grid[good]
            tolerance = self.evidence.table_tolerance(y[good], errors[good, slot])
            trials.append(Trial(X, y[good], (self.column,), 1.0 / tolerance**2))
        return trials


@dataclass(frozen=True, eq=False)
class Solutions:
    """Tables of one variable, and for each slot that moves, by its position in the tree, forms that fit its table."""

    tables: SlotTables
    forms: dict[int, list[Candidate]]


@dataclass(frozen=True, eq=False)
class Known:
    """What an expansion is told beside: what is there already, and whom to tell.

    Attributes
    ----------
    held_at : settings of what is held, (K, m); default: drawn anew
    ready : forms of slots that have been found before
    target, tell, resume : see :class:`deap_vsr.search.contract.Task`
    """

    held_at: Array | None = None
    ready: Solutions | None = None
    target: float = 0.0
    tell: Callable[[float, MaskedTree, Callable[[], Json]], None] = lambda error, tree, state: None
    resume: Json | None = None


NOTHING = Known()


@dataclass(frozen=True, eq=False)
class Grown:
    """A formula that a round has grown: from which, starts for its constants (n, L), and how.

    ``held_at`` (K, m) are the settings at which it was measured, and is to be verified; None: any. ``solved`` are the
    slots that were measured; ``data`` what it is to be judged by, where that is measured already.
    """

    tree: MaskedTree
    parent: State
    starts: Array
    held_at: Array | None = None
    solved: tuple[SolvedSlot, ...] = ()
    data: Dataset | None = None


def combinations(tree: MaskedTree, parent: State, solutions: Solutions, count: int) -> Iterator[Grown]:
    """Yield the tree, that of `parent` or one like it, with forms in its slots, the simplest first, `count` at most."""
    forms, measured = solutions.forms, solutions.tables
    means = measured.slots.mean(axis=1)  # (n_settings, n_slots)
    for choice in islice(_choices([len(found) for found in forms.values()], not measured.evidence.certain), count):
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
        solved = [
            SolvedSlot(
                measured.column,
                measured.grid,
                measured.slots[:, :, (slot := tree.open_constants.index(position))],
                candidate.tree,
                candidate.constants,
                None if measured.evidence.certain else measured.errors[:, :, slot],
            )
            for position, candidate in chosen.items()
        ]
        yield Grown(MaskedTree(nodes), parent, np.array(starts).T, measured.held_at, tuple(solved))


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
    held_at: Array,
    freed: Sequence[int],
    column: int,
    grid: Array,
    n_points: int,
    rng: np.random.Generator,
) -> Array:
    """Return the points of a table, (K, J, n_points, m): at each setting one batch of the freed variables, repeated."""
    K, J = len(held_at), len(grid)
    X = np.repeat(held_at, J * n_points, axis=0).reshape(K, J, n_points, -1)
    for k in range(K):
        X[k, :, :, freed] = draw_inputs(variables, n_points, rng)[:, freed].T[:, None, :]
    X[:, :, :, column] = grid[None, :, None]
    return X


def spread_values(variable: Variable, sweep: Sweep, rng: np.random.Generator) -> Array:
    """Return values of a variable spread over its domain, in order; fewer for a variable of few whole numbers."""
    count = sweep.n_values
    places = (np.arange(count) + rng.uniform(0.2, 0.8, count)) / count
    if sweep.window < 1.0:
        places = rng.uniform(0.0, 1.0 - sweep.window) + sweep.window * places
    if variable.sampling == "integer":
        first, last = int(np.ceil(variable.low)), int(np.ceil(variable.high)) - 1
        return np.unique(np.round(first + places * (last - first)))
    if variable.sampling == "loguniform" and not sweep.even:
        values = variable.low * (variable.high / variable.low) ** places
    else:
        values = variable.low + places * (variable.high - variable.low)
    if variable.sign == "both":
        values = np.where(np.arange(count) % 2 == 0, values, -values)
    return np.unique(on_grid(variable, values)) if variable.stepped else np.sort(values)
