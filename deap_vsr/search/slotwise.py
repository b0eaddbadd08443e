"""Slotwise expansion: every slot is measured as a function of one more variable, and solved on its own.

The freed variables are sampled as one batch, the next one is set to a value, the rest is held, and the open constants
are fitted. Repeated for several values, every slot has a table in one variable, whatever the number of variables is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.evidence import FreezeRule, squares
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.relevance import relevant_variables, settings_that_show
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.finish import Finished, accepted, finish, reopened
from deap_vsr.search.hall import ranked
from deap_vsr.search.prune import pruned, unlike
from deap_vsr.search.records import State
from deap_vsr.search.rows import telling_rows
from deap_vsr.search.signs import symmetries, turns, with_one_branch
from deap_vsr.search.slot_options import PLENTY, SlotOptions
from deap_vsr.search.tables import (
    MIN_VALUES,
    NOTHING,
    Grown,
    Known,
    SlotTables,
    Solutions,
    Sweep,
    combinations,
    spread_values,
    table_inputs,
)
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Flags

#: When a skeleton holds in a trial, and a constant is the same in all, where answers are exact: rounding and no more.
#: At 1e-12 polynomials pass for functions.
EXACT = FreezeRule(error=1e-17, spread=1e-19)
#: The error at which the exact table of a slot is solved: rounding, and some decades.
TABLE_TARGET = 1e-18
#: Of a table, so many values must have been measured at all settings: half a domain without values is no table.
COMPLETE = 0.6
#: What a node costs while a formula grows in noise: what is dropped for its length does not come back. A
#: tenth of its price in the end.
IDLE = 0.5
#: How hard an exact search tries, one pass after the other, and what share each may spend of the time and evaluations
#: that are left: something is always left to joint expansion, which has an answer where no form is exact.
PASSES = (("cheap", 1.0), ("most", 0.7), ("all", 0.4))
#: Where no variable can be seen, so many times as many settings are probed: 48 where all but one are free, and with
#: 8 x4 of x2**3/(1 - 0.01*x1**2*x3/x4), of 280 to 380, was left out in noise of 1 % of the reading.
CLOSELY = 6
#: Of the forms that a regressor has for a noisy table, so many are looked at for what they can do without.
MAX_FORMS = 10
#: The table by which a variable is tried alone in noise, and of how many times as many settings those are taken at
#: which it is seen best; of the time and evaluations that are left all of this may take so much.
ALONE, PROBED_ALONE, ALONE_SHARE = Sweep(12, n_points=6), 8, 0.2
#: Points that are kept in noise for checking the answer, inside the domain and outside.
KEPT = 16

#: How simple a reduced form is that was not found: less than any other.
UNSOLVED = (10**6, 0)

#: What was asked for a table: values of the new variable (J,), settings (K, m), points (K, J, B, m), answers (K, J, B)
#: and their weights, and whether the slot is y itself.
Asked = tuple[Array, Array, Array, Array, Array | None, bool]


@dataclass(frozen=True)
class Slotwise:
    """Slots measured one by one, and solved by a regressor."""

    regressor: Regressor
    options: SlotOptions
    n_orders: ClassVar[int] = 1
    """With how many variables it is worth its while to begin, one after the other, where what holds leads nowhere."""

    @property
    def n_starts(self) -> int:
        """Starts, beside the known ones, for fitting what has grown."""
        return self.options.n_starts

    @property
    def max_nodes(self) -> int:
        """Formulas grown in all."""
        return self.options.max_nodes

    @property
    def thrifty(self) -> bool:
        """Whether variables are freed as they come, and not tried beforehand."""
        return self.options.thrifty

    @property
    def efforts(self) -> tuple[tuple[str, float], ...]:
        """How hard slots are tried, one pass after the other, and the share of time and evaluations of each."""
        return PASSES

    def relevant(self, lab: Lab) -> list[int] | None:
        """Return the columns on which y depends."""
        return relevant_variables(lab, max_queries=0.3 * lab.budget.queries_left())

    def ended(self, tree: MaskedTree, lab: Lab) -> Finished | None:
        """Return the formula as it is written in the end, if it holds on fresh data, and outside; else None."""
        final = finish(tree, lab)
        return final if final is not None and accepted(final.tree, lab) else None

    def ranked(self, trees: Sequence[MaskedTree], lab: Lab) -> list[tuple[float, MaskedTree]]:
        """Return formulas that are not finished, best first, with their errors on fresh uncontrolled data."""
        return ranked(trees, lab)

    def expand(
        self,
        states: Sequence[State],
        new: tuple[int, ...],
        lab: Lab,
        effort: str = "all",
        known: Known = NOTHING,
    ) -> Iterator[list[Grown]]:
        """Yield formulas grown at the slots that move with the new variable, those to be compared together.

        Exact answers tell of each whether it is right: one after the other. In noise all that can be had from as many
        points are compared on the same data.
        """
        (column,) = new
        if not lab.evidence.certain:
            for number, sweep in enumerate(self.options.sweeps):
                grown: list[Grown] = []
                # What was frozen at a measured value may have been a little off, or one that moves a little.
                trees = [state.tree if number == 0 else reopened(state.tree) for state in states]
                L = min(max(tree.n_constants for tree in trees), trees[0].n_constants + 1)
                alone = all(len(tree) == 1 for tree in trees)
                freed = states[0].freed
                together = self._asked(L, alone, freed, column, sweep, lab, known.held_at, trees[0])
                for state, tree in zip(states, trees, strict=True):
                    found = self._solved(tree, state.freed, column, sweep, lab, "most", known.held_at, together)
                    grown += combinations(tree, state, found, self.options.beam) if found is not None else ()
                    if lab.budget.used_up() is not None:
                        return
                yield grown
            return
        for state in states:
            solutions = known.ready or self.solutions(state, column, lab, effort)
            for formula in combinations(state.tree, state, solutions, self.options.beam) if solutions else ():
                yield [formula]

    def held_at(self, column: int, n_held: int, lab: Lab, closely: bool = False) -> Array | None:
        """Return settings at which `column` can be seen in noise; None if there are none.

        Looking `closely` more settings are probed, where points are plenty.
        """
        # Where nothing is held, all settings are one.
        count = self.options.n_settings if n_held else 1
        if closely and lab.budget.queries_left() < PLENTY:
            return None
        if not self.options.shared:
            n_probed = self.options.n_probed * (CLOSELY if closely else 1)
            return settings_that_show(lab, column, count, n_probed=n_probed)
        setting: Array | None = lab.facts.get("setting")
        if setting is None:
            setting = settings_that_show(lab, column, 1, n_probed=self.options.n_probed)
            if setting is not None:
                lab.facts["setting"] = setting
        return setting

    def simplest_first(self, columns: Sequence[int], lab: Lab) -> list[int]:
        """Return variables in noise in the order in which they are freed: those of the simplest reduced forms first.

        What is found first is known from few data; of a simple form little can be mistaken.
        """
        simple = self.alone(columns, lab)
        return sorted(columns, key=lambda column: simple.get(column, simplicity(None)))

    def alone(self, columns: Sequence[int], lab: Lab) -> dict[int, tuple[int, int]]:
        """Return how simple the reduced forms are of variables that can be seen in noise, each tried alone once."""
        if not self.options.n_tried or len(columns) < 2:
            return {}
        start, lab = State.start(), lab.part(ALONE_SHARE, ("seconds", "evaluations"))
        simple: dict[int, tuple[int, int]] = lab.facts.setdefault("alone", {})
        for column in columns:
            if column in simple or lab.budget.used_up() is not None:
                continue
            try:
                held_at = settings_that_show(lab, column, self.options.n_tried, n_probed=PROBED_ALONE)
                if held_at is not None:
                    simple[column] = simplicity(self._solved(start.tree, (), column, ALONE, lab, "cheap", held_at))
            except OutOfQueriesError:  # of this part: a slow oracle may take all its seconds
                break
        return simple

    def check(self, grown: Sequence[Grown], freed: Sequence[int], lab: Lab, times: int = 1) -> Dataset | None:
        """Return fresh joint data at the settings of the tables, enough for the most constants, if there are some."""
        held_at = grown[0].held_at
        assert held_at is not None
        largest = max(formula.tree.n_constants for formula in grown)
        n_points = min(times, self.options.more) * (self.options.points + self.options.points_a_constant * largest)
        if not lab.evidence.certain:
            n_points = int(min(n_points, max(_a_round(lab, len(freed)) / 3 / len(held_at), 2 * largest + 4)))
            n_points = int(min(n_points, (lab.budget.queries_left() - KEPT) / len(held_at)))
            if n_points < largest + 1:
                raise OutOfQueriesError("fewer points are left than it takes to check a formula")
        try:
            trials = lab.trials(freed, len(held_at), n_points, held_at)
        except NoValuesError:
            return None
        if self.options.shared:  # and all that was measured there before
            trials = [_at_setting(held_at[0], freed, lab)]
        return Dataset.of([lab.evidence.weighted(trial) for trial in trials])

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return a fit that holds, in noise without what does nothing; None if the data do not determine it."""
        if lab.evidence.certain:
            return outcome
        # Only what does nothing: with all data, in the end, it will be seen what is worth its nodes.
        outcome = pruned(outcome, data, lab, lab.evidence, IDLE)
        return outcome if outcome.determined.all() else None

    # --- measuring and solving ---

    def solutions(self, state: State, column: int, lab: Lab, effort: str, brief: bool = False) -> Solutions | None:
        """Return forms for each slot that moves with `column`, from as few points as do; None if one has none.

        `brief`: only from the first sweep, as where little effort is made.
        """
        for sweep in self.options.sweeps[:1] if brief or effort == "cheap" else self.options.sweeps:
            solutions = self._solved(state.tree, state.freed, column, sweep, lab, effort, None)
            if solutions is not None:
                return solutions
            if lab.budget.used_up() is not None:
                break
        return None

    def _solved(
        self,
        tree: MaskedTree,
        freed: Sequence[int],
        column: int,
        sweep: Sweep,
        lab: Lab,
        effort: str,
        held_at: Array | None,
        asked: Asked | None = None,
    ) -> Solutions | None:
        tables = self.measure(tree, freed, column, sweep, lab, held_at, asked)
        if tables is None:
            return None
        forms: dict[int, list[Candidate]] = {}
        for slot in tables.moving():
            found = self._solve(tables, slot, lab, effort)
            if not found:
                return None
            forms[tree.open_constants[slot]] = found
        return Solutions(tables, forms)

    def measure(
        self,
        tree: MaskedTree,
        freed: Sequence[int],
        column: int,
        sweep: Sweep,
        lab: Lab,
        held_at: Array | None = None,
        asked: Asked | None = None,
    ) -> SlotTables | None:
        """Fit the open constants at several values of `column`, at several settings of what is held.

        What was `asked` for another formula is not asked again.
        """
        if asked is None:
            asked = self._asked(tree.n_constants, len(tree) == 1, freed, column, sweep, lab, held_at, tree)
        grid, at, X, y, weights, alone = asked
        (K, J, B), L = y.shape, tree.n_constants
        lab.budget.count(0)
        if held_at is None:
            tame = np.argsort([_decades(y[k]) for k in range(K)], kind="stable")[: self.options.n_settings]
            X, y, at, K = X[tame], y[tame], at[tame], len(tame)
            weights = None if weights is None else weights[tame]
        if alone:
            slots = np.where(np.isfinite(y), y, np.nan)
            errors = lab.evidence.sigma(y.ravel()).reshape(y.shape)
            tables = SlotTables(column, grid, slots, errors, at, lab.evidence).complete()
            return tables if len(tables.grid) >= MIN_VALUES else None
        slots, errors = np.full((2, K, J, L), np.nan)
        finite = np.isfinite(y)
        places = np.argwhere(finite.sum(axis=2) >= np.minimum(L + 2, B))  # what is missing may be missing
        if not len(places):
            return None
        data = Dataset.of([lab.evidence.weighted(_cell(X, y, weights, finite, k, j)) for k, j in places])
        outcome = lab.fit(tree, data, n_starts=2 if sweep.n_points or sweep is self.options.sweeps[0] else 4)
        known = lab.evidence.standard_errors(outcome, data)
        good = lab.evidence.fitting(outcome, data) & outcome.determined.all(axis=1) & np.isfinite(known).all(axis=1)
        if not lab.evidence.certain:  # as many points as constants leave nothing, and tell no errors
            good &= (known > 0.0).all(axis=1)
        for (k, j), fine, row, uncertain in zip(places, good, outcome.constants, known, strict=True):
            if fine:
                slots[k, j], errors[k, j] = row, uncertain
        points = X.reshape(-1, X.shape[-1])
        slots = with_one_branch(slots, symmetries(tree, points, lab), turns(tree, points, lab))
        tables = SlotTables(column, grid, slots, errors, at, lab.evidence).complete()
        return tables if len(tables.grid) >= max(COMPLETE * J, MIN_VALUES) else None

    def _asked(
        self,
        L: int,
        empty: bool,
        freed: Sequence[int],
        column: int,
        sweep: Sweep,
        lab: Lab,
        held_at: Array | None,
        tree: MaskedTree,
    ) -> Asked:
        """Ask the points of a table for L constants: K settings, J values of `column`, B points each.

        In noise two thirds of the points are those that tell most of the constants of `tree`.
        """
        grid = spread_values(lab.variables[column], sweep, lab.rng)
        K = self.options.n_settings + sweep.spare if held_at is None else len(held_at)
        J = len(grid)
        alone = empty and (lab.repeats or not sweep.n_points)  # the slot is y, and asking again tells nothing
        B = 1 if alone else max(sweep.n_points * L, L + 1) if sweep.n_points else L + 3
        if not lab.evidence.certain:  # a table takes no more than half of what a round may ask
            B = int(min(B, max(_a_round(lab, len(freed) + 1) / 2 / (K * J), L + 1)))
        kept = 0 if lab.evidence.certain else KEPT
        if lab.budget.queries_left() < K * J * B + kept:
            raise OutOfQueriesError(f"a table of {K * J * B} points is more than may be asked")
        at = lab.draw(K) if held_at is None else held_at
        X = table_inputs(lab.variables, at, freed, column, grid, B, lab.rng)
        if not lab.evidence.certain and freed and tree.n_constants:
            for k in range(K):
                rows = telling_rows(tree, X[k, J // 2, 0], freed, 2 * B // 3, lab)
                X[k, :, : len(rows), freed] = rows[:, freed].T[:, None, :]
        y, weights = lab.answers(X.reshape(K * J * B, -1))
        return grid, at, X, y.reshape(K, J, B), None if weights is None else weights.reshape(K, J, B), alone

    def _solve(self, tables: SlotTables, slot: int, lab: Lab, effort: str) -> list[Candidate]:
        """Return forms that fit the table of a slot, best first."""
        trials, evidence = tables.trials(slot), lab.evidence.of_tables()
        data = Dataset.of(trials)
        limit = evidence.table_limits(len(tables.grid), 1)[0]
        target = TABLE_TARGET if evidence.certain else float(np.mean(limit / squares(data)))
        task = Task(
            [], lambda rng: trials, lab.function_set, (tables.column,), lab.n_vars,
            lab.budget.part(self.options.share), target, lab.rng, effort, evidence,
        )  # fmt: skip
        found = self.regressor.regress(task)
        if evidence.certain:
            return found
        outcomes = []
        for form in found[:MAX_FORMS]:
            if (form.errors * squares(data) <= limit).all() and form.tree.n_constants < len(tables.grid):
                outcome = lab.fit(form.tree, data, starts=form.constants, n_starts=0)
                outcomes.append(pruned(outcome, data, lab, evidence, IDLE))
        outcomes.sort(key=lambda outcome: evidence.price(outcome, data, tied=False))
        return [Candidate.of(outcome) for outcome in unlike(outcomes, self.options.n_forms)]


def _a_round(lab: Lab, n_freed: int) -> float:
    """Return how many points a round may ask, of which `n_freed` variables vary: as much is left for each to come."""
    n_vars = len(lab.facts.get("relevant", range(lab.n_vars)))
    return lab.budget.queries_left() / (max(n_vars - n_freed, 0) + 2)


def simplicity(solutions: Solutions | None) -> tuple[int, int]:
    """Order variables by their reduced form: few constants and nodes first, unsolved ones last."""
    if solutions is None:
        return UNSOLVED
    best = [found[0] for found in solutions.forms.values()]
    return sum(candidate.tree.n_constants for candidate in best), sum(len(candidate.tree) for candidate in best)


def _at_setting(setting: Array, freed: Sequence[int], lab: Lab) -> Trial:
    """Return all that was measured where everything but `freed` is at a setting, (n_vars,)."""
    X, y, good = lab.log.X, lab.log.y, lab.log.good
    held = [column for column in range(lab.n_vars) if column not in freed]
    here = good & (X[:, held] == setting[held]).all(axis=1)
    y, weights = lab.weighted(y[here] / lab.scale, lab.log.sigma[here] / lab.scale)
    return Trial(X[here], y, tuple(freed), weights)


def _cell(X: Array, y: Array, weights: Array | None, finite: Flags, k: int, j: int) -> Trial:
    """Return what was answered at one value of the variable, at one setting."""
    good = finite[k, j]
    return Trial(X[k, j][good], y[k, j][good], weights=None if weights is None else weights[k, j][good])


def _decades(y: Array) -> float:
    """Return how many decades the values of a setting span; inf where hardly any is finite."""
    size = np.abs(y[np.isfinite(y) & (y != 0)])
    if len(size) < 0.7 * y.size:
        return np.inf
    return float(np.log10(size.max() / np.quantile(size, 0.1)))
