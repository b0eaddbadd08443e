"""GP on the compiled engine, seeded with what the other steps left: parsimony is the field's description length."""

from __future__ import annotations

import numpy as np

from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.search.contract import Task
from deap_vsr.search.finish import reopened
from deap_vsr.table.field import Field
from deap_vsr.tree import MaskedTree

#: Formulas of the field that GP begins with, and what of its own it offers.
SEEDS, OFFERED = 12, 20
#: Seconds of one population; then it begins anew from the field.
EPOCH = 6.0


def evolve(field: Field, seconds: float | None = None) -> None:
    """Offer what GP makes of the best formulas, again and again until nothing is gained or time is up."""
    rows = field.rows
    budget = rows.budget.part(seconds=seconds)
    while not field.over and budget.used_up() is None:
        before = field.best.price if field.best is not None else np.inf
        # Each epoch has other rows, so that it does not learn some by heart.
        part = rows.part(np.sort(rows.rng.permutation(rows.n_rows)[: min(rows.n_rows, 200)]))
        seeds = [*field.front()[-SEEDS // 2 :], *field.ranked[: SEEDS // 2]]
        candidates: list[MaskedTree] = [reopened(formula.tree) for formula in seeds]
        task = Task(
            candidates if rows.rng.random() < 0.7 else [], lambda rng, part=part: [part.trial],  # type: ignore[misc]
            rows.function_set, rows.columns, rows.X.shape[1], budget.part(seconds=EPOCH), 0.0, rows.rng,
        )  # fmt: skip
        size = max(min(15, field.max_size - max((len(tree) for tree in candidates), default=0)), 5)
        for candidate in GpRegressor(max_size=size).regress(task)[:OFFERED]:
            field.offer(candidate.tree, "gp")
        after = field.best.price if field.best is not None else np.inf
        if not after < before and budget.left("seconds") == np.inf:
            break
