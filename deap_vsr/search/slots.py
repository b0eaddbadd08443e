"""Slotwise expansion: every slot is measured as a function of one more variable, and solved on its own.

The freed variables are sampled as one batch, the next one is set to a value, the rest is held, and the open constants
are fitted. Repeated for several values, every slot has a table in one variable, whatever the number of variables is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.errors import NoValuesError
from deap_vsr.lab.oracle import Oracle, Scaled
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.lab.trials import Trial, draw_inputs, sample_trials
from deap_vsr.search.contract import Budget, Candidate, Regressor, Task
from deap_vsr.search.finish import accepted, finished, relative_weights
from deap_vsr.search.freezing import FreezeRule, fits, freeze, rounding_errors
from deap_vsr.search.hall import ranked
from deap_vsr.search.records import Outcome, Progress, Round, SlotTable, what_stopped
from deap_vsr.search.tables import (
    MIN_VALUES,
    Grown,
    Plan,
    Solutions,
    Tables,
    combinations,
    spread_values,
    table_inputs,
)
from deap_vsr.search.ties import factor_ties
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array

#: How hard a search tries, one pass after the other, and what share each may spend of the time and evaluations that are
#: left: something is always left to joint expansion, which has an answer where no form is exact.
PASSES = (("cheap", 1.0), ("most", 0.7), ("all", 0.4))

#: When a skeleton holds in a trial, and a constant is the same in all: rounding and no more.
EXACT = FreezeRule(error=1e-17, spread=1e-19)


@dataclass(frozen=True)
class SlotSettings:
    """Numbers of slotwise expansion.

    A table has ``n_settings`` settings of what is held; ``plans`` says at which values of the new variable, first and
    where that does not do. ``beam`` combinations of forms are tried for a variable, ``max_nodes`` formulas grown in
    all.
    """

    n_settings: int = 3
    plans: tuple[Plan, ...] = (
        Plan(12),
        Plan(28, even=True, spare=3),
        Plan(24, window=0.2, spare=3),
        Plan(24, window=0.04),
    )
    beam: int = 4
    max_nodes: int = 300
    thrifty: bool = False
    """Whether points are so few that variables are freed as they come, and not tried beforehand."""

    @classmethod
    def within(cls, queries: float | None, n_vars: int) -> SlotSettings:
        """Return settings for a run that may ask so many points: small tables where there are few for each variable."""
        if queries is None or queries >= 250 * n_vars:
            return cls()
        few = Plan(8) if queries < 80 * n_vars else Plan(10)
        return cls(n_settings=2, plans=(few, Plan(20, even=True)), thrifty=True)


def search_slotwise(
    oracle: Oracle,
    regressor: Regressor,
    budget: Budget,
    rng: np.random.Generator,
    settings: SlotSettings | None = None,
    progress: Callable[[Progress], None] = lambda news: None,
    order: Sequence[int] | None = None,
) -> Outcome:
    """Find a formula for an `oracle` whose answers are exact, measuring slots.

    ::

        drop the variables that do not matter
        formula <- C
        until nothing is held:
            choose a variable (by default the one whose reduced form is simplest)
            measure every slot at some values of it, at K settings of what is held
            solve each slot that moves on its own; put the answers in
            verify on fresh joint data, freeze, factor out tied slots
            where that fails: next answers, more data, next variable, and back
        refit all constants together, shorten them, verify on fresh and on wider data
    """
    chosen = settings or SlotSettings.within(budget.limits["queries"], len(oracle.variables))
    run = _Slotwise(oracle, regressor, budget, rng, chosen, progress)
    stopped_by = what_stopped(lambda: run.go(order))
    best = run.best()
    if run.scaled is not None:
        best = [(error, run.scaled.back(tree)) for error, tree in best]
    return Outcome(best[0][1] if best else None, best, run.rounds, stopped_by, 0.0)


def simplest_first(oracle: Oracle, regressor: Regressor, budget: Budget, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the variables in the order of their reduced forms, the simplest first; those that do not matter last."""
    run = _Slotwise(oracle, regressor, budget, rng, SlotSettings(), lambda news: None)
    relevant = relevant_variables(oracle, rng)
    start = MaskedTree([Constant(1.0)])
    forms = {column: _simplicity(run.solutions(start, (), column, "cheap")) for column in relevant}
    rest = [column for column in range(len(oracle.variables)) if column not in forms]
    return (*sorted(forms, key=lambda column: (forms[column], column)), *rest)


class _Slotwise:
    """One run: what it was given, and what it has found."""

    def __init__(
        self,
        oracle: Oracle,
        regressor: Regressor,
        budget: Budget,
        rng: np.random.Generator,
        settings: SlotSettings,
        progress: Callable[[Progress], None],
    ) -> None:
        self.oracle, self.regressor, self.budget, self.rng = oracle, regressor, budget, rng
        self.settings, self.progress = settings, progress
        self.variables = oracle.variables
        self.share = budget
        """What this pass may spend."""
        self.scaled: Scaled | None = None
        self.rounds: list[Round] = []
        self.answer: MaskedTree | None = None
        self.partial: list[MaskedTree] = []
        self.nodes = 0
        self.n_relevant = 0
        self.out_of_queries = False
        self.last_error = np.inf
        self.recorded = budget.spent
        """What had been spent when the last round was recorded."""

    def go(self, order: Sequence[int] | None) -> str:
        """Search; returns what stopped it."""
        self.scaled = Scaled.if_needed(self.oracle, self.rng)
        self.oracle = self.scaled or self.oracle
        relevant = relevant_variables(self.oracle, self.rng, max_queries=0.3 * self.budget.queries_left())
        self.n_relevant = len(relevant)
        start = MaskedTree([Constant(1.0)])
        chosen = [column for column in order if column in relevant] if order is not None else relevant
        reorder = order is None and not self.settings.thrifty
        for effort, share in PASSES:
            self.share = self.budget.part(share, ("seconds", "evaluations"))
            for tree in self._grow(start, (), tuple(chosen), effort, reorder):
                self.answer = tree
                return "found"
            if self.out_of_queries:
                return "queries"
            if self.budget.used_up() is not None:
                break
        return self.budget.used_up() or "exhausted"

    def _limit(self) -> str | None:
        if self.out_of_queries:
            return "queries"
        return "exhausted" if self.nodes >= self.settings.max_nodes else self.share.used_up()

    def best(self) -> list[tuple[float, MaskedTree]]:
        """Return the answer, or the partial formulas ranked on uncontrolled data."""
        if self.answer is not None:
            return [(0.0, self.answer)]
        return ranked(self.partial, self.oracle, self.budget, self.rng)

    def _grow(
        self, tree: MaskedTree, freed: tuple[int, ...], held: tuple[int, ...], effort: str, reorder: bool
    ) -> Iterator[MaskedTree]:
        """Yield finished formulas that grow from `tree`, depth first."""
        if not held or not tree.slots:
            final = finished(tree, self.oracle, self.budget, self.rng)
            if final is not None and accepted(final, self.oracle, self.budget, self.rng):
                yield final
            return
        attempts = [(column, self.solutions(tree, freed, column, effort)) for column in held] if reorder else None
        if attempts is not None:
            attempts.sort(key=lambda item: _simplicity(item[1]))
            held = tuple(column for column, _ in attempts)
        for place, column in enumerate(held):
            if self._limit() is not None:
                return
            solutions = attempts[place][1] if attempts is not None else self.solutions(tree, freed, column, effort)
            rest = tuple(other for other in held if other != column)
            grown_any = False
            for grown in combinations(tree, solutions, self.settings.beam) if solutions is not None else ():
                self.nodes += 1
                frozen = self._verified(grown, (*freed, column), rest)
                if frozen is not None:
                    grown_any = True
                    self.partial.append(frozen)
                    yield from self._grow(frozen, (*freed, column), rest, effort, False)
                if self._limit() is not None:
                    return
            if grown_any:  # its forms were right; what failed later will fail with another variable first
                return

    # --- measuring and solving slots ---

    def solutions(self, tree: MaskedTree, freed: tuple[int, ...], column: int, effort: str) -> Solutions | None:
        """Return forms for each slot that moves with `column`; None if one has none."""
        for plan in self.settings.plans if effort != "cheap" else self.settings.plans[:1]:
            tables = self._measure(tree, freed, column, plan)
            if tables is None:
                continue
            forms: dict[int, list[Candidate]] = {}
            for slot in np.flatnonzero(tables.moving()):
                found = self._solve(tables.trials(int(slot)), column, effort)
                if not found:
                    break
                forms[tree.open_constants[int(slot)]] = found
            else:
                return Solutions(tables, forms)
            if self._limit() is not None:
                break
        return None

    def _solve(self, trials: list[Trial], column: int, effort: str) -> list[Candidate]:
        share, operators = self.share.part(0.5), self.oracle.function_set
        task = Task(
            [], lambda rng: trials, operators, (column,), len(self.variables), share, 1e-18, self.rng, effort
        )  # fmt: skip
        return self.regressor.regress(task)

    def _measure(self, tree: MaskedTree, freed: tuple[int, ...], column: int, plan: Plan) -> Tables | None:
        """Fit the open constants at several values of `column`, at several settings of what is held."""
        K, L = self.settings.n_settings + plan.spare, tree.n_constants
        self._tell(freed, column)
        grid = spread_values(self.variables[column], plan, self.rng)
        J, B = len(grid), 1 if len(tree) == 1 else L + 3
        if self.budget.queries_left() < K * J * B:
            self.out_of_queries = True
            return None
        settings = draw_inputs(self.variables, K, self.rng)
        X = table_inputs(self.variables, settings, freed, column, grid, B, self.rng)
        y = self.oracle.evaluate(X.reshape(K * J * B, -1)).reshape(K, J, B)
        self.budget.count(0)
        tame = np.argsort([_decades(y[k]) for k in range(K)], kind="stable")[: self.settings.n_settings]
        X, y, settings, K = X[tame], y[tame], settings[tame], len(tame)
        slots = np.full((K, J, L), np.nan)
        errors = np.zeros((K, J, L))
        if len(tree) == 1:
            slots[np.isfinite(y)] = y[np.isfinite(y)]
            tables = Tables(column, grid, slots, errors, settings).complete()
            return tables if len(tables.grid) >= MIN_VALUES else None
        places = np.argwhere(np.isfinite(y).all(axis=2))
        if not len(places):
            return None
        data = Dataset.of([Trial(X[k, j], y[k, j], weights=relative_weights(y[k, j])) for k, j in places])
        outcome = fit(tree, data, n_starts=2 if plan is self.settings.plans[0] else 4)
        self.budget.count(outcome.evaluations)
        exact = outcome.errors <= np.maximum(EXACT.error, rounding_errors(data))
        good = exact & outcome.determined.all(axis=1)
        for (k, j), fine, row, uncertain in zip(places, good, outcome.constants, outcome.standard_errors, strict=True):
            if fine:
                slots[k, j], errors[k, j] = row, uncertain
        tables = Tables(column, grid, slots, errors, settings).complete()
        return tables if len(tables.grid) >= max(0.6 * J, MIN_VALUES) else None

    def _verified(self, grown: Grown, freed: tuple[int, ...], held: tuple[int, ...]) -> MaskedTree | None:
        """Return the tree frozen by fresh joint data at the settings of the table; None if it does not hold."""
        tree, settings = grown.tree, grown.settings
        n_points = tree.n_constants + 4
        try:
            trials = sample_trials(self.oracle, freed, len(settings), n_points, self.rng, settings)
        except NoValuesError:
            return None
        data = Dataset.of([replace(trial, weights=relative_weights(trial.y)) for trial in trials])
        outcome = fit(tree, data, starts=grown.starts, n_starts=2)
        self.budget.count(outcome.evaluations)
        holds = fits(outcome, data, EXACT)
        self.last_error = float(outcome.errors.max())
        frozen = tree
        if holds:
            frozen = freeze(outcome, data, EXACT)
            frozen = self._tied(frozen, outcome, tree)
        self._record(freed, frozen, outcome, holds, grown.tables)
        if holds:
            self._tell(freed[:-1], freed[-1], frozen)
        return frozen if holds else None

    def _tied(self, frozen: MaskedTree, outcome: Fit, tree: MaskedTree) -> MaskedTree:
        places = {position: i for i, position in enumerate(tree.open_constants)}
        columns = [places[position] for position in frozen.slots]
        return factor_ties(frozen, outcome.constants[:, columns], self.oracle.function_set)

    # --- telling ---

    def _tell(self, freed: tuple[int, ...], column: int, tree: MaskedTree | None = None) -> None:
        now = (*freed, column)
        self.progress(Progress(len(now), max(self.n_relevant, 1), now, self.last_error, self.budget, tree))

    def _record(
        self,
        freed: tuple[int, ...],
        tree: MaskedTree,
        outcome: Fit,
        holds: bool,
        tables: tuple[SlotTable, ...],
    ) -> None:
        before, spent = self.recorded, self.budget.spent
        self.recorded = spent
        self.rounds.append(Round.of(freed, len(self.variables), tree, outcome, holds, before, spent, tables))


def _simplicity(solutions: Solutions | None) -> tuple[int, int]:
    """Order variables by their reduced form: few constants and nodes first, unsolved ones last."""
    if solutions is None:
        return (10**6, 0)
    best = [found[0] for found in solutions.forms.values()]
    return sum(candidate.tree.n_constants for candidate in best), sum(len(candidate.tree) for candidate in best)


def _decades(y: Array) -> float:
    """Return how many decades the values of a setting span; inf where hardly any is finite."""
    size = np.abs(y[np.isfinite(y) & (y != 0)])
    if len(size) < 0.7 * y.size:
        return np.inf
    return float(np.log10(size.max() / np.quantile(size, 0.1)))
