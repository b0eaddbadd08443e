"""One-variable data at K settings, and the targets that stages look for a sum for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.engine.program import evaluate
from deap_vsr.forms.atoms import Atom, Nodes, atoms_of
from deap_vsr.lab.evidence import Evidence, Exact, squares
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import Constant, Node
from deap_vsr.tree.operators import Array


@dataclass(frozen=True, eq=False)
class Table:
    """What is known of a function of one variable: x, y and tolerance, each (n_settings, n_points).

    What fits is what the evidence says: in noise the tolerance is a standard error, else the largest error of an exact
    form.
    """

    x: Array
    y: Array
    tolerance: Array
    function_set: tuple[str, ...]
    evidence: Evidence = field(default_factory=Exact)
    left: Callable[[], float] = field(default=lambda: math.inf, repr=False)
    """Returns how many evaluations are left: a step need not begin with more."""
    _values: dict[int, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        trials: Sequence[Trial],
        column: int,
        function_set: tuple[str, ...],
        evidence: Evidence | None = None,
        left: Callable[[], float] = lambda: math.inf,
    ) -> Table:
        """Make one of trials in which `column` varies; weights are 1 / tolerance**2."""
        size = min(len(trial.y) for trial in trials)
        x = np.array([trial.X[:size, column] for trial in trials])
        y = np.array([trial.y[:size] for trial in trials])
        rows = []
        for trial, row in zip(trials, y, strict=True):
            if trial.weights is not None:
                rows.append(1.0 / np.sqrt(trial.weights[:size]))
            else:
                rows.append(Exact().table_tolerance(row, np.zeros(size)))
        return cls(x, y, np.array(rows), function_set, evidence or Exact(), left)

    def in_operators(self, function_set: tuple[str, ...]) -> Table:
        """Return the same data, for forms in other operators."""
        return self if function_set == self.function_set else replace(self, function_set=function_set, _values={})

    @property
    def n_points(self) -> int:
        """Points at each setting."""
        return int(self.y.shape[1])

    @property
    def allowed(self) -> frozenset[str]:
        """The operators a form may use."""
        return frozenset(self.function_set)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of the function set."""
        return atoms_of(self.function_set)

    def values(self, count: int) -> Array:
        """Return the values of the first `count` atoms, (n_atoms, n_settings, n_points); NaN for one of no use."""
        atoms = self.atoms[:count]
        if len(atoms) not in self._values:
            out = evaluate([atom.nodes for atom in atoms], self.x.reshape(-1, 1)).reshape(len(atoms), *self.x.shape)
            with np.errstate(all="ignore"):
                useless = ~(np.abs(out) < 1e60).all(axis=(1, 2)) | (np.abs(out).max(axis=(1, 2)) < 1e-60)
            out[useless] = np.nan
            self._values[len(atoms)] = out
        return self._values[len(atoms)]

    def limits(self, max_size: int) -> Array:
        """Return for each number of fitted constants the largest sum of squares, in tolerances, of what fits."""
        return self.evidence.table_limits(self.n_points, max_size)

    def dataset(self) -> Dataset:
        """Return the table as trials in x1 alone, weighted by its tolerance."""
        settings = zip(self.x, self.y, self.tolerance, strict=True)
        return Dataset.of([Trial(x[:, None], y, (0,), 1.0 / t**2) for x, y, t in settings])

    def holds(self, outcome: Fit, data: Dataset, room: float = 4.0) -> bool:
        """Whether the squares of the weighted residuals are within the tolerance, `room` times over, in each trial."""
        if not np.isfinite(outcome.errors).all():
            return False
        limit = self.limits(outcome.tree.n_constants + 1)[max(outcome.tree.n_constants - 1, 0)]
        with np.errstate(over="ignore"):
            return bool((outcome.errors * squares(data) <= (room if self.evidence.certain else 1.0) * limit).all())


@dataclass(frozen=True, eq=False)
class Target:
    """Something to find a sum for: y itself, or y with an outer operator undone.

    ``wrap`` turns the nodes of a sum for z into nodes for y; ``cost`` is what that adds.
    """

    table: Table
    z: Array
    tolerance: Array
    wrap: Callable[[Sequence[Node]], Nodes]
    cost: int = 0

    @classmethod
    def plain(cls, table: Table) -> Target:
        """Return y itself."""
        return cls(table, table.y, table.tolerance, tuple)


@dataclass(frozen=True, eq=False)
class Form:
    """A form that was found: its nodes in x1 and open constants, where those start (rows), its cost.

    Rows of starts are those of the settings, or any others: each is tried, in each setting, until one does.

    ``pruned`` if terms of the size of rounding were left out, so that it is a little beyond the tolerance.
    """

    nodes: Nodes
    starts: Array
    cost: int
    pruned: bool = False
    elsewhere: Callable[[], list[Nodes]] | None = None
    """Where the starts are those of the first setting only: returns the nodes with starts for the others."""

    @classmethod
    def of(
        cls,
        written: Sequence[Nodes],
        cost: int,
        pruned: bool = False,
        elsewhere: Callable[[], list[Nodes]] | None = None,
    ) -> Form:
        """Make one of the nodes written for each setting, which differ in their constants."""
        return cls(written[0], starts_of(written), cost, pruned, elsewhere)


#: One step of a stage: the forms that it proposes, and how many it has tried to come to them.
Step = tuple[list[Form], int]


def starts_of(written: Sequence[Nodes]) -> Array:
    """Return the values of the open constants, one row for each tree."""
    rows = [[node.value for node in nodes if isinstance(node, Constant) and node.fitted] for nodes in written]
    return np.array(rows, dtype=float)
