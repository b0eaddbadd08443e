"""GP on the compiled engine, seeded with what the other steps left: parsimony is the field's description length.

An epoch is a few populations that know nothing of each other, on rows and with seeds of their own: islands. They may
run in processes side by side; what comes out is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Task
from deap_vsr.search.finish import reopened
from deap_vsr.table.field import Field
from deap_vsr.table.rows import Rows
from deap_vsr.tree import MaskedTree

#: Formulas of the field that GP begins with, and what of its own it offers.
SEEDS, OFFERED = 12, 20
#: Islands of an epoch, evaluations of one, and rows that it sees: other ones each, so that none are learnt by heart.
ISLANDS, EVALUATIONS, SEEN = 4, 30_000, 200
#: Epochs in a row that gain nothing, after which it ends.
PATIENCE = 4


@dataclass(frozen=True, eq=False)
class Island:
    """A population to be: its rows, what it begins with, its limits and its seed. It can be sent to another process."""

    trial: Trial
    seeds: Sequence[MaskedTree]
    function_set: tuple[str, ...]
    columns: tuple[int, ...]
    max_size: int
    seed: int

    def grown(self, evaluations: float, seconds: float) -> tuple[list[MaskedTree], int]:
        """Return its best formulas, and what they cost in evaluations."""
        budget = Budget(None if seconds == np.inf else seconds, int(evaluations))
        task = Task(
            self.seeds, lambda rng: [self.trial], self.function_set, self.columns, self.trial.X.shape[1], budget, 0.0,
            np.random.default_rng(self.seed),
        )  # fmt: skip
        found = GpRegressor(max_size=self.max_size).regress(task)
        return [candidate.tree for candidate in found[:OFFERED]], budget.evaluations


def evolve(field: Field, epochs: int | None = None, evaluations: int = EVALUATIONS) -> None:
    """Offer what GP makes of the best formulas, epoch after epoch until nothing is gained or a limit is reached."""
    budget, idle, epoch = field.rows.budget, 0, 0
    while not field.over and idle < PATIENCE and epoch != epochs:
        before = field.best.price if field.best is not None else np.inf
        islands = [_island(field, seeded=number > 0) for number in range(ISLANDS)]
        share = min(evaluations, budget.left("evaluations") / ISLANDS)
        grown = Parallel(n_jobs=field.n_jobs)(
            delayed(island.grown)(share, max(budget.left("seconds"), 0.0)) for island in islands
        )
        for trees, spent in grown:
            budget.count(spent)
            for tree in trees:
                field.offer(tree, "gp")
        after = field.best.price if field.best is not None else np.inf
        idle, epoch = 0 if after < before else idle + 1, epoch + 1


def _island(field: Field, seeded: bool) -> Island:
    """Return an island that begins with the field's formulas if it is seeded, else with random ones."""
    rows: Rows = field.rows
    part = rows.part(np.sort(rows.rng.permutation(rows.n_rows)[: min(rows.n_rows, SEEN)]))
    seeds = [*field.front()[-SEEDS // 2 :], *field.ranked[: SEEDS // 2]] if seeded else []
    trees = [reopened(formula.tree) for formula in seeds]
    size = max(min(15, field.max_size - max((len(tree) for tree in trees), default=0)), 5)
    return Island(part.trial, trees, rows.function_set, rows.columns, size, int(rows.rng.integers(2**31)))
