"""Slots measured from one anchor: as few points as a law takes, each of them used for everything.

One point is the anchor; every variable is swept alone through it at a few values. The sweeps show which variables
matter and in which order to free them, and are the table of the first round. A formula with L constants needs L rows of
the freed variables at each value of the next one, and the anchor's own sweep is the first of them: a formula with one
slot costs nothing beyond its sweep. What is still between two values needs no rows at the others.

One setting is enough where answers are exact: a constant is a slot if it moves when a later variable moves, and every
later variable is moved. What has never moved in the end is a number of the law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.lab.anchor import anchor_of
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.precision import digits_shown, stated_precision
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.search.cells import RETRIES, Cells, is_held, is_short, short_value, with_literals
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.finish import Finished, finished
from deap_vsr.search.records import State
from deap_vsr.search.slotwise import TABLE_TARGET
from deap_vsr.search.standing import Attack
from deap_vsr.search.tables import NOTHING, Grown, Known, SlotTables, Solutions, Sweep, combinations, spread_values
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Flags

#: Of the time and evaluations that are left, what a pass may spend, and one at another anchor: the rest is for searches
#: with more points, which hard laws need more often than another anchor.
SHARE, SHARE_ELSEWHERE = 0.2, 0.1
#: With more variables than this, those that matter are looked for in groups first: a sweep of each would cost more.
MANY = 12
#: Values among which those of a sweep are chosen: finer than any sweep.
CANDIDATES = 40
#: Forms of a slot are told apart where they differ by more than this, relative to the spread of its table, by so many
#: more values at the most.
DIFFERENT, MORE = 1e-7, 2
#: With fewer values there is no table.
LEAST_VALUES = 3


@dataclass(frozen=True)
class Anchored:
    """Slots measured at one setting, and solved by a regressor.

    ``passes`` says how hard a slot is tried, and at how many values of a variable, the anchor's own among them: more
    only where fewer did not do. Of the forms of slots at most ``beam`` combinations are tried. ``share`` is the part of
    what is left that the regressor may spend on one slot. ``elsewhere`` begins again at another anchor: the first, or a
    value of a sweep, may have been where answers are of another law.
    """

    regressor: Regressor
    passes: tuple[tuple[str, tuple[int, ...]], ...] = (("cheap", (4, 6)),)
    beam: int = 4
    share: float = 0.5
    n_starts: int = 2
    max_nodes: int = 100
    elsewhere: bool = False
    thrifty: ClassVar[bool] = False
    n_orders: ClassVar[int] = 3

    # --- the anchor and its sweeps ---

    @property
    def efforts(self) -> tuple[tuple[str, float], ...]:
        """How hard slots are tried, one pass after the other, and the share of time and evaluations of each."""
        return tuple((effort, SHARE_ELSEWHERE if self.elsewhere else SHARE) for effort, _ in self.passes)

    def relevant(self, lab: Lab) -> list[int] | None:
        """Return the columns on which y depends at the anchor, each of them swept; None if answers are not exact."""
        anchor = anchor_of(lab, self.elsewhere)
        if anchor is None:
            return None
        columns = list(range(lab.n_vars))
        if lab.n_vars > MANY:
            columns = relevant_variables(lab, here=anchor[None])
        counts, left = self.passes[0][1], lab.budget.queries_left()
        if left < (counts[0] - 1) * len(columns):  # fewer values, or the first variables only
            counts = (max(LEAST_VALUES, int(left // max(len(columns), 1)) + 1),)
            columns = columns[: int(left // (counts[0] - 1))]
        longer = [_at(anchor, column, self._values(column, counts[min(1, len(counts) - 1)], lab)) for column in columns]
        sweeps = [sweep[: counts[0]] for sweep in longer]
        for sweep in longer:  # wanted next, where this does not do: a sheet that is measured at a time has room for it
            lab.wish(sweep[counts[0] :])
        if not sweeps:
            return []
        answers = np.split(lab.ask(np.vstack(sweeps)), np.cumsum([len(sweep) for sweep in sweeps])[:-1])
        whole = all(variable.sampling == "integer" for variable in lab.variables)  # then answers may have few digits
        whole = whole or (all(v.stepped for v in lab.variables) and stated_precision(lab.oracle) is not None)
        if not whole and digits_shown(lab.log.y) is not None:
            return None
        if lab.pset is None:
            lab.rescale()
        return [column for column, y in zip(columns, answers, strict=True) if not lab.evidence.same(y, y[:1])]

    def _values(self, column: int, count: int, lab: Lab) -> Array:
        """Return values of a variable, (count,): the anchor's own, others with answers, then far from these."""
        anchor, variable, X = anchor_of(lab), lab.variables[column], lab.log.X
        assert anchor is not None
        swept = is_held(X, anchor, [column])
        values = [anchor[column], *dict.fromkeys(X[swept & lab.log.good & (X[:, column] != anchor[column]), column])]
        places = list(_places(variable, np.append(X[swept, column], anchor[column])))
        others = spread_values(variable, Sweep(CANDIDATES), lab.rng)
        while len(values) < count:
            apart = np.min(np.abs(_places(variable, others)[:, None] - np.array(places)), axis=1)
            furthest = int(np.argmax(apart))
            if not apart[furthest] > 0.0:
                break
            values.append(others[furthest])
            places.append(float(_places(variable, others[furthest : furthest + 1])[0]))
        return np.array(values[:count])

    # --- the round ---

    def expand(
        self, states: Sequence[State], new: tuple[int, ...], lab: Lab, effort: str = "all", known: Known = NOTHING
    ) -> Iterator[list[Grown]]:
        """Yield formulas grown at the slots that move with the new variable, one after the other."""
        for state in states:
            solutions = known.ready or self.solutions(state, new[0], lab, effort)
            if solutions is not None:
                for formula in combinations(solutions.tables.tree or state.tree, state, solutions, self.beam):
                    yield [formula]

    def check(self, grown: Sequence[Grown], freed: Sequence[int], lab: Lab, times: int = 1) -> Dataset | None:
        """Return every measurement at which what is not freed is at the anchor."""
        anchor = anchor_of(lab)
        assert anchor is not None
        everything = lab.measured()
        here = is_held(everything.X, anchor, freed)
        places = np.flatnonzero(lab.log.good)
        if "before" in lab.facts and len(places) == len(here):  # what was measured from the first may be of two laws
            here &= places >= lab.facts["before"]
        return Dataset.of([lab.evidence.weighted(Trial(everything.X[here], everything.y[here], tuple(freed)))])

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return a fit that the data determine, with numbers of few digits taken for numbers of the law; else None."""
        if not outcome.determined.all():
            return None
        if any(variable.stepped for variable in lab.variables):
            return outcome  # what is held may be a short number itself
        values = outcome.constants[0]
        fixed: Flags = np.array([is_short(value) for value in values], bool)
        if not fixed.any():
            return outcome
        literal = with_literals(outcome.tree, np.array([short_value(value) for value in values]), fixed)
        again = lab.fit(literal, data, starts=outcome.constants[:, ~fixed], n_starts=0)
        return again if lab.evidence.fits(again, data) else outcome

    def ended(self, tree: MaskedTree, lab: Lab) -> Finished | None:
        """Return the formula as it is written in the end, if all that was measured, and fresh points, agree with it."""
        known = lab.measured()
        final = finished(tree, lab, known)
        if final is None and "before" in lab.facts:  # some of it may be of a region where the law is another one
            agrees = Attack(tree, lab).off(known) <= 1.0
            final = finished(tree, lab, replace(known, X=known.X[agrees], y=known.y[agrees])) if agrees.any() else None
        if final is None:
            return None
        attack = Attack(final.tree, lab)
        kept = lab.budget.keep(0)
        attack.run()
        if attack.refuted:
            lab.budget.keep(kept)
            return None
        again = finished(tree, lab, lab.measured())
        if again is None or attack.disagree(again.tree):  # beside one answer of 1e11 terms look like rounding
            again = final
        attack.formula = again.tree
        lab.facts["attack"] = attack
        return again

    def ranked(self, trees: Sequence[MaskedTree], lab: Lab) -> list[tuple[float, MaskedTree]]:
        """Return formulas that are not finished, best first, with their errors on what was measured."""
        if not len(lab.measured().y):
            return []
        data = Dataset.of([lab.measured()])
        outcomes = [lab.fit(tree, data, n_starts=1) for tree in (*trees[-20:], State.start().tree)]
        best = sorted(outcomes, key=lambda outcome: float(outcome.errors[0]))
        return [(float(outcome.errors[0]), outcome.trees[0]) for outcome in best]

    # --- measuring and solving ---

    def solutions(self, state: State, column: int, lab: Lab, effort: str, brief: bool = False) -> Solutions | None:
        """Return forms for each slot that moves with `column`, from as few points as do; None if one has none.

        Where several forms hold, one more value is asked at which they differ most. `brief`: only the fewest values are
        tried.
        """
        counts = dict(self.passes)[effort]
        for attempt, count in enumerate(counts[:1] if brief else counts):
            for more in range(MORE + 1):
                tables = self.measure(state, column, count + more, lab, checked=attempt > 0 or effort != "cheap")
                if tables is None:
                    return None
                forms = self._forms(tables, lab, effort)
                if forms is None:
                    break
                value = _disputed(tables, forms, lab) if more < MORE else None
                if value is None:
                    return Solutions(tables, forms)
                lab.ask(_at(tables.held_at[0], column, np.array([value])))
            if lab.budget.used_up() is not None:
                return None
        return None

    def measure(self, state: State, column: int, count: int, lab: Lab, checked: bool = False) -> SlotTables | None:
        """Return the open constants of a formula at several values of `column`, the anchor's own first.

        With `checked` there are rows more at each value than there are constants that do not enter linearly: these may
        have several values that fit as many rows.
        """
        anchor = anchor_of(lab)
        assert anchor is not None
        grid = self._values(column, count, lab)
        for _ in range(RETRIES):  # others in place of those without an answer
            if np.isfinite(lab.ask(_at(anchor, column, grid))).all():
                break
            grid = self._values(column, count, lab)
        sweep = lab.ask(_at(anchor, column, grid))
        grid, sweep = grid[np.isfinite(sweep)], sweep[np.isfinite(sweep)]
        if len(grid) < LEAST_VALUES:
            return None
        if state.empty:
            y = sweep[None, :, None]
            return SlotTables(column, grid, y, np.zeros(y.shape), anchor[None], lab.evidence, state.tree)
        cells = Cells(state, column, anchor, lab, checked)
        places = _places(lab.variables[column], grid)
        outwards = grid[np.argsort(np.abs(places - places[0]), kind="stable")]
        return cells.tables(grid, outwards) if cells.begin(outwards) else None

    def _forms(self, tables: SlotTables, lab: Lab, effort: str) -> dict[int, list[Candidate]] | None:
        """Return forms for each slot that moves, by its position in the tree; None if one has none."""
        assert tables.tree is not None
        forms: dict[int, list[Candidate]] = {}
        for slot in tables.moving():
            found = self._solve(tables, slot, lab, effort)
            if not found:
                return None
            forms[tables.tree.open_constants[slot]] = found
        return forms

    def _solve(self, tables: SlotTables, slot: int, lab: Lab, effort: str) -> list[Candidate]:
        """Return forms that fit the table of a slot, best first."""
        trials = tables.trials(slot)
        task = Task(
            [], lambda rng: trials, lab.function_set, (tables.column,), lab.n_vars,
            lab.budget.part(self.share), TABLE_TARGET, lab.rng, effort, lab.evidence.of_tables(),
        )  # fmt: skip
        return self.regressor.regress(task)


def _disputed(tables: SlotTables, forms: dict[int, list[Candidate]], lab: Lab) -> float | None:
    """Return the value of the variable at which forms of a slot differ most; None if none differ."""
    grid = spread_values(lab.variables[tables.column], Sweep(CANDIDATES), lab.rng)
    X = _at(tables.held_at[0], tables.column, grid)
    most, where = DIFFERENT, None
    for found in forms.values():
        with np.errstate(all="ignore"):
            values = np.array([form.tree.with_constants(form.constants[0]).evaluate(X, lab.pset) for form in found])
            apart = np.ptp(values, axis=0) / max(float(np.ptp(values[0])), 1e-300)
        apart = np.where(np.isfinite(apart), apart, 0.0)
        if apart.max() > most:
            most, where = float(apart.max()), float(grid[int(np.argmax(apart))])
    return where


def _at(anchor: Array, column: int, values: Array) -> Array:
    """Return the anchor with a variable at each of the values, (n, n_vars)."""
    X = np.tile(anchor, (len(values), 1))
    X[:, column] = values
    return X


def _places(variable: Variable, values: Array) -> Array:
    """Return where in its domain values of a variable are, as it is sampled."""
    if variable.sampling == "loguniform":
        return np.asarray(
            np.sign(values) + np.log(np.abs(values) / variable.low) / np.log(variable.high / variable.low)
        )
    return np.asarray(values / (variable.high - variable.low))
