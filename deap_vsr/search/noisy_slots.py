"""Slotwise expansion in noise: slots are measured with standard errors, and forms are chosen by a criterion.

Nothing is exact here. A slot's table has standard errors; a form fits if what it leaves is no more than they explain;
several forms do, and the joint data of the round decide among their combinations. A few formulas go on to the next
round. In the end all measurements of the run are fitted together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.lab.trials import Trial, draw_inputs, sample_trials
from deap_vsr.search.contract import Budget, Candidate, Regressor, Task
from deap_vsr.search.criterion import criterion, left_in_noise, price_in_noise, pruned, unlike
from deap_vsr.search.finish import reopened
from deap_vsr.search.freezing import UNSURE, FreezeRule, fits, freeze, moving, squares
from deap_vsr.search.hall import ranked
from deap_vsr.search.noisy_finish import finished_in_noise
from deap_vsr.search.records import Outcome, Progress, Round, what_stopped
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
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array

#: Level of the test that a form fits the table of a slot.
SIGNIFICANCE = 1e-3
#: A formula that is so much worse than the best by the criterion is not followed.
FOLLOWED = 40.0
#: What a node costs while a formula grows: what is dropped for its length does not come back.
IDLE = 0.5
#: Of the time and evaluations; the rest is left to joint expansion.
SHARE = 0.7


@dataclass(frozen=True)
class NoisySlotSettings:
    """Numbers of slotwise expansion in noise.

    A table has ``n_settings`` settings of what is held, out of ``n_probed`` times as many; each of ``plans`` has more
    points than the one before. Of a slot ``n_forms`` forms are kept, and ``beam`` combinations of them are verified for
    a formula, with ``joint_points`` and ``points_a_constant``; ``width`` formulas go on. The last fit takes
    ``last_points`` more, the check of the answer ``check_points``.
    """

    n_settings: int = 3
    n_probed: int = 8
    plans: tuple[Plan, ...] = (Plan(12, n_points=6), Plan(16, n_points=25), Plan(24, n_points=100))
    n_forms: int = 6
    beam: int = 20
    width: int = 3
    joint_points: int = 150
    points_a_constant: int = 15
    last_points: int = 2000
    check_points: int = 100


def search_noisy_slots(
    oracle: Oracle,
    regressor: Regressor,
    budget: Budget,
    rng: np.random.Generator,
    noise: float,
    settings: NoisySlotSettings | None = None,
    progress: Callable[[Progress], None] = lambda news: None,
    order: Sequence[int] | None = None,
) -> Outcome:
    """Find a formula for an `oracle` whose answers have `noise`, measuring slots.

    ::

        formulas <- {C}
        for each variable that matters:
            measure every slot at some values of it, at K settings of what is held
            solve each slot that moves on its own, by several forms; put the answers in
            fit all combinations to the same joint data; those that fit, best first by the criterion, go on, frozen
            where none fits: more points, all constants open again, another variable first
        fit all measurements together; drop what is not significant, restore short numbers, verify on fresh data
    """
    run = _NoisySlots(oracle, regressor, budget, rng, noise, settings or NoisySlotSettings(), progress)
    stopped_by = what_stopped(lambda: run.go(order))
    best = [(run.error, run.answer)] if run.answer is not None else ranked(run.formulas[::-1], oracle, budget, rng)
    return Outcome(best[0][1] if best else None, best, run.rounds, stopped_by, noise, run.standard_errors)


class _NoisySlots:
    """One run: what it was given, all that was measured, and the formulas it follows."""

    def __init__(
        self,
        oracle: Oracle,
        regressor: Regressor,
        budget: Budget,
        rng: np.random.Generator,
        noise: float,
        settings: NoisySlotSettings,
        progress: Callable[[Progress], None],
    ) -> None:
        self.oracle, self.regressor, self.budget, self.rng = oracle, regressor, budget, rng
        self.share = budget.part(SHARE, ("seconds", "evaluations"))
        self.noise, self.settings, self.progress = noise, settings, progress
        self.tested = UNSURE * noise
        """The noise as it may be: what leaves no more is taken to fit."""
        self.rule = FreezeRule()
        self.rounds: list[Round] = []
        self.origins: dict[int, tuple[Round, MaskedTree | None]] = {}
        """For each formula the round it came from, and the formula it grew from."""
        self.formulas = [MaskedTree([Constant(1.0)])]
        self.measured: list[Trial] = []
        self.answer: MaskedTree | None = None
        self.standard_errors: tuple[float, ...] | None = None
        self.error = np.inf
        self.n_rounds = 0
        self.recorded = budget.spent

    def go(self, order: Sequence[int] | None) -> str:
        """Search; returns what stopped it."""
        relevant = relevant_variables(self.oracle, self.rng, self.noise, max_queries=0.2 * self.budget.queries_left())
        waiting = [column for column in order if column in relevant] if order is not None else relevant
        self.n_rounds = len(waiting)
        freed: tuple[int, ...] = ()
        while waiting:
            unseen = []
            for column in waiting:
                found = self._round(freed, column, waiting)
                if found is None:
                    unseen.append(column)
                if found or self.share.used_up() is not None:
                    break
            if unseen == waiting:  # nothing that is left matters
                break
            if not found:
                return self.budget.used_up() or "exhausted"
            self.formulas, freed = found, (*freed, column)
            waiting = [other for other in waiting if other != column]
        return self._finish()

    def _afford(self, n_points: int) -> None:
        """Stop the search if so many points may not be asked."""
        if self.budget.queries_left() < n_points:
            raise OutOfQueriesError(f"{n_points} points more than the limit allows")

    def _round(self, freed: tuple[int, ...], column: int, held: Sequence[int]) -> list[MaskedTree] | None:
        """Return formulas that hold with `column` freed too, best first, frozen; None if it cannot be seen in noise."""
        now = (*freed, column)
        self.progress(Progress(len(now), self.n_rounds, now, self.error, self.budget))
        K = self.settings.n_settings if len(held) > 1 else 1  # at the end nothing is held, and all settings are one
        settings = self._settings(column, K)
        if settings is None:
            return None
        for number, plan in enumerate(self.settings.plans):
            grown: list[Grown] = []
            for tree in self.formulas:
                # What was frozen at a measured value may have been a little off, or one that moves a little.
                skeleton = tree if number == 0 else reopened(tree)
                solutions = self._solutions(skeleton, freed, column, plan, settings)
                if solutions is not None:
                    found = combinations(skeleton, solutions, self.settings.beam)
                    grown += [replace(candidate, parent=tree) for candidate in found]
                if self.share.used_up() is not None:
                    return []
            kept = self._verified(grown, now, settings)
            if kept:
                self.progress(Progress(len(now), self.n_rounds, now, self.error, self.budget, kept[0]))
                return kept
        return []

    # --- measuring and solving slots ---

    def _settings(self, column: int, count: int) -> Array | None:
        """Return settings at which `column` can be seen in the noise, as well as at few others; None if there are none.

        Where y is large at few settings only, the table of most others would be noise. The very best are left out:
        they may be beside a pole.
        """
        n_tried, n_values = self.settings.n_probed * count, 3
        self._afford(n_tried * n_values)
        settings = draw_inputs(self.oracle.variables, n_tried, self.rng)
        X = np.repeat(settings, n_values, axis=0)
        X[:, column] = draw_inputs(self.oracle.variables, len(X), self.rng)[:, column]
        y = self.oracle.evaluate(X).reshape(n_tried, n_values)
        self.share.count(0)
        with np.errstate(all="ignore"):
            seen = np.where(np.isfinite(y).all(axis=1), y.var(axis=1, ddof=1) / self.noise**2, 0.0)
        best = np.argsort(-seen, kind="stable")
        n_seen = int(np.sum(seen > chdtri(n_values - 1, 1e-4 / n_tried) / (n_values - 1)))
        if not n_seen:
            return None
        left_out = min(max(n_tried // 12, 1), max(n_seen - count, 0))
        return np.asarray(settings[best[left_out : left_out + count]])

    def _solutions(
        self, tree: MaskedTree, freed: tuple[int, ...], column: int, plan: Plan, settings: Array
    ) -> Solutions | None:
        """Return forms for each slot that moves with `column`; None if one has none."""
        tables = self._measure(tree, freed, column, plan, settings)
        if tables is None:
            return None
        forms: dict[int, list[Candidate]] = {}
        for slot in np.flatnonzero(tables.moving()):
            found = self._solve(tables.trials(int(slot)), column)
            if not found:
                return None
            forms[tree.open_constants[int(slot)]] = found
        return Solutions(tables, forms)

    def _measure(
        self, tree: MaskedTree, freed: tuple[int, ...], column: int, plan: Plan, settings: Array
    ) -> Tables | None:
        """Fit the open constants at several values of `column`, at several settings of what is held."""
        K, L = len(settings), tree.n_constants
        grid = spread_values(self.oracle.variables[column], plan, self.rng)
        J, B = len(grid), plan.n_points * max(L, 1)
        self._afford(K * J * B)
        X = table_inputs(self.oracle.variables, settings, freed, column, grid, B, self.rng)
        y = self.oracle.evaluate(X.reshape(K * J * B, -1)).reshape(K, J, B)
        self.share.count(0)
        slots, errors = np.full((2, K, J, L), np.nan)
        places = np.argwhere(np.isfinite(y).all(axis=2))
        if not len(places):
            return None
        trials = [Trial(X[k, j], y[k, j]) for k, j in places]
        self.measured += trials
        data = Dataset.of(trials)
        outcome = fit(tree, data, n_starts=2)
        self.share.count(outcome.evaluations)
        left = left_in_noise(outcome, data, self.noise)
        freedom = np.maximum(B - outcome.ranks, 1)
        good = outcome.determined.all(axis=1) & (left <= UNSURE**2 * chdtri(freedom, self.rule.significance))
        # Standard errors for the noise that is known, not for what happens to be left of a few points.
        with np.errstate(all="ignore"):
            known = outcome.standard_errors / np.sqrt(left / freedom)[:, None]
        for (k, j), fine, row, uncertain in zip(places, good, outcome.constants, known, strict=True):
            if fine and (np.isfinite(uncertain) & (uncertain > 0)).all():
                slots[k, j], errors[k, j] = row, uncertain
        tables = Tables(column, grid, slots, errors, settings, noisy=True).complete()
        return tables if len(tables.grid) >= max(0.6 * J, MIN_VALUES) else None

    def _solve(self, trials: list[Trial], column: int) -> list[Candidate]:
        """Return forms that fit the table of a slot, best first by the criterion."""
        data = Dataset.of(trials)
        J = int(np.diff(data.offsets).min())
        limit = chdtri(max(J - 1, 1), SIGNIFICANCE)
        task = Task(
            [], lambda rng: trials, self.oracle.function_set, (column,), len(self.oracle.variables),
            self.share.part(0.15), float(np.mean(limit / squares(data))), self.rng, "most",
        )  # fmt: skip
        found = []
        for candidate in self.regressor.regress(task)[:20]:
            if (candidate.errors * squares(data) <= limit).all() and candidate.tree.n_constants < J:
                outcome = fit(candidate.tree, data, starts=candidate.constants, n_starts=0)
                found.append(pruned(outcome, data, 1.0, self.oracle.function_set, self.share, IDLE))
        found.sort(key=lambda outcome: price_in_noise(outcome, data, 1.0))
        return [Candidate.of(outcome) for outcome in unlike(found, self.settings.n_forms)]

    def _verified(self, grown: list[Grown], freed: tuple[int, ...], settings: Array) -> list[MaskedTree]:
        """Return what holds on joint data that are the same for all, frozen, best first by the criterion.

        Where more hold than can be followed, more data decide.
        """
        candidates = grown
        kept: list[MaskedTree] = []
        for times in (1, 4):
            data = self._joint(candidates, freed, settings, times) if candidates else None
            if data is None:
                return []
            found = self._ranked(candidates, data, freed)
            near = [item for item in found if item[0] <= found[0][0] + FOLLOWED]
            best = unlike([outcome for _, outcome, _ in near], len(near))
            if len(best) <= self.settings.width or self.share.used_up() is not None or times > 1:
                for outcome in best[: self.settings.width]:
                    kept.append(freeze(outcome, data, self.rule, self.tested))
                    grew = next(candidate for _, other, candidate in near if other is outcome)
                    self._record(freed, kept[-1], outcome, True, grew)
                self.error = float(best[0].errors.max()) if best else np.inf
                break
            candidates = [candidate for _, _, candidate in near]
        return kept

    def _joint(self, grown: list[Grown], freed: tuple[int, ...], settings: Array, times: int) -> Dataset | None:
        """Return fresh joint data, enough for the most constants; None if there are none."""
        largest = max(candidate.tree.n_constants for candidate in grown)
        n_points = times * (self.settings.joint_points + self.settings.points_a_constant * largest)
        self._afford(n_points * len(settings))
        try:
            trials = sample_trials(self.oracle, freed, len(settings), n_points, self.rng, settings)
        except NoValuesError:
            return None
        self.measured += trials
        return Dataset.of(trials)

    def _ranked(self, grown: list[Grown], data: Dataset, freed: tuple[int, ...]) -> list[tuple[float, Fit, Grown]]:
        """Return what holds on the data, without what is not worth its nodes, best first by the criterion."""
        found = []
        for candidate in grown:
            outcome = fit(candidate.tree, data, starts=candidate.starts, n_starts=1)
            self.share.count(outcome.evaluations)
            if not fits(outcome, data, self.rule, self.tested):
                self._record(freed, outcome.tree, outcome, False, candidate)
                continue
            # Only what does nothing: with all data, in the end, it will be seen what is worth its nodes.
            outcome = pruned(outcome, data, self.noise, self.oracle.function_set, self.share, IDLE)
            if outcome.determined.all():
                found.append((self._price(outcome, data), outcome, candidate))
            if self.share.used_up() is not None:
                break
        return sorted(found, key=lambda item: item[0])

    def _price(self, outcome: Fit, data: Dataset) -> float:
        """Return the criterion of a fit; a constant that is the same at all settings is one constant."""
        moves = moving(outcome, self.rule, self.noise)
        n_fitted = data.n_trials * int(moves.sum()) + int((~moves).sum())
        left = float(left_in_noise(outcome, data, self.noise).sum())
        return criterion(left, outcome.tree, n_fitted, len(data.y))

    # --- the end ---

    def _finish(self) -> str:
        """Fit everything that was measured together; returns what stopped the search."""
        everything = range(len(self.oracle.variables))
        wanted = self.settings.last_points + self.settings.check_points
        share = min(1.0, max(self.budget.queries_left(), 0.0) / wanted)
        n_last, n_check = (int(share * n) for n in (self.settings.last_points, self.settings.check_points))
        with suppress(NoValuesError):
            self.measured += sample_trials(self.oracle, everything, 1, n_last, self.rng) if n_last else []
        if not self.measured:
            return "queries"
        X, y = (np.concatenate([getattr(trial, name) for trial in self.measured]) for name in ("X", "y"))
        data = Dataset.of([Trial(X, y)])
        found = [
            finished_in_noise(tree, data, self.oracle.function_set, self.noise, self.share) for tree in self.formulas
        ]
        best = min(found, key=lambda item: item.price)
        self.answer, self.standard_errors = best.tree, best.standard_errors
        self._lead_to(self.formulas[found.index(best)])
        together = fit(best.tree, data)
        self.share.count(together.evaluations)
        self.error = float(together.errors[0])
        if n_check < 3:
            return "queries"
        holds = fits(together, data, self.rule, self.tested)
        with suppress(NoValuesError):
            check = Dataset.of(sample_trials(self.oracle, everything, 1, n_check, self.rng))
            fresh = fit(best.tree, check)
            self.share.count(fresh.evaluations)
            self.error = float(fresh.errors[0])
            holds = holds and fits(fresh, check, self.rule, self.tested)
        return "found" if holds else self.budget.used_up() or "exhausted"

    def _lead_to(self, tree: MaskedTree) -> None:
        """Put the rounds that led to a formula behind the others."""
        chain: list[Round] = []
        parent: MaskedTree | None = tree
        while parent is not None and id(parent) in self.origins:
            record, parent = self.origins[id(parent)]
            chain.insert(0, record)
        kept = {id(record) for record in chain}
        self.rounds = [record for record in self.rounds if id(record) not in kept] + chain

    def _record(self, freed: tuple[int, ...], tree: MaskedTree, outcome: Fit, holds: bool, grown: Grown) -> None:
        before, spent = self.recorded, self.budget.spent
        self.recorded = spent
        n_vars = len(self.oracle.variables)
        record = Round.of(freed, n_vars, tree, outcome, holds, before, spent, grown.tables)
        self.rounds.append(record)
        self.origins[id(record.tree)] = (record, grown.parent)
