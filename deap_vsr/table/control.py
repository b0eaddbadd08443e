"""Control that is already in the rows: sweeps of one column are trials, and what moves between them a smaller table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.lab.evidence import Evidence, Exact, Noisy
from deap_vsr.lab.table import TableOracle
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.table.field import Field
from deap_vsr.table.index import separable
from deap_vsr.table.powers import power_laws
from deap_vsr.table.rows import Rows
from deap_vsr.table.sums import sums
from deap_vsr.tree import Constant, MaskedTree, Node
from deap_vsr.tree.operators import Array

#: Sweeps of a column that are solved together, the fewest rows of one, and the fewest settings of a slot's table.
SWEEPS, POINTS, SETTINGS = 40, 5, 4
#: Evaluations for the form of a sweep, and for the table of a slot.
EVALUATIONS = 60_000
#: A slot that moves by less, relative to its size, stands still.
STILL = 1e-8


def controlled(field: Field) -> None:
    """Offer formulas that grow from sweeps: the form of one column, then each of its slots over the held ones."""
    rows = field.rows
    columns = list(rows.columns)
    if not columns:
        return
    table = TableOracle(rows.X, rows.y, function_set=rows.function_set, weights=rows.weights, min_points=POINTS)
    swept = sorted(columns, key=lambda column: -table.control([column]).n_rows)
    for column in [c for c in swept if len(table.control([c])) >= SETTINGS][:3]:
        trials = table.trials([column], SWEEPS)
        for candidate in _forms(trials, column, table, rows):
            for nodes in _grown(candidate, trials, column, rows):
                field.offer(nodes, "control")
                if field.over:
                    return


def _forms(trials: Sequence[Trial], column: int, table: TableOracle, rows: Rows) -> list[Candidate]:
    """Return forms of one column that fit every sweep."""
    noise = table.tolerance or 0.0
    evidence: Evidence = Exact()
    if noise > 0.0:
        evidence = Noisy(1.0)
        trials = [Trial(t.X, t.y, t.free, np.full(len(t.y), 1.0 / noise**2)) for t in trials]
    budget = rows.budget.part(evaluations=EVALUATIONS)
    task = Task(
        [], lambda rng: list(trials), rows.function_set, (column,), rows.X.shape[1], budget, 0.0, rows.rng, "most",
        evidence,
    )  # fmt: skip
    return FormsRegressor().regress(task)


def _grown(candidate: Candidate, trials: Sequence[Trial], column: int, rows: Rows) -> list[list[Node]]:
    """Return a form with each slot that moves a formula of the held columns; nothing where one has none."""
    tree, held = candidate.tree, [c for c in rows.columns if c != column]
    settings = np.array([trial.X[0] for trial in trials])
    slots: list[Sequence[Node]] = []
    for values in candidate.constants.T:
        if np.ptp(values) <= STILL * float(np.max(np.abs(values))):
            slots.append([Constant(float(values.mean()))])
            continue
        solved = _slot(settings, values, held, rows)
        if solved is None:
            return []
        slots.append(solved)
    nodes: list[Node] = list(tree)
    for position, slot in sorted(zip(tree.open_constants, slots, strict=True), key=lambda item: -item[0]):
        nodes[position : position + 1] = slot
    return [nodes]


def _slot(settings: Array, values: Array, held: Sequence[int], rows: Rows) -> MaskedTree | None:
    """Return a formula for a slot's values (K,) at settings (K, n_vars), by the same steps as for rows."""
    budget = rows.budget.part(evaluations=EVALUATIONS)
    inner = Field(Rows.of(settings, values, rows.function_set, None, held, budget, rows.rng))
    for step in (power_laws, separable, sums):
        step(inner)
        if inner.over:
            break
    return None if inner.best is None else inner.best.fit.trees[0]
