"""Slots measured from one anchor: as few points as a law takes, each of them used for everything.

One point is the anchor; every variable is swept alone through it at a few values. The sweeps show which variables
matter and in which order to free them, and are the table of the first round. A formula with L constants needs L rows of
the freed variables at each value of the next one, and the anchor's own sweep is the first of them: a formula with one
slot costs nothing beyond its sweep. What is still between two values needs no rows at the others.

One setting is enough where answers are exact: a constant is a slot if it moves when a later variable moves, and every
later variable is moved. What has never moved in the end is a number of the law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import qr

from deap_vsr.engine.fitting import Dataset, Fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.lab.anchor import anchor_of
from deap_vsr.lab.evidence import ROUNDING, STILL, STILL_ERRORS
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.precision import digits_shown, stated_precision
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.finish import Finished, finished
from deap_vsr.search.records import State
from deap_vsr.search.slotwise import TABLE_TARGET
from deap_vsr.search.standing import Attack
from deap_vsr.search.tables import NOTHING, Grown, Known, SlotTables, Solutions, Sweep, combinations, spread_values
from deap_vsr.search.ties import factor_ties
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array, Flags

#: Of the time and evaluations that are left, what a pass may spend: the rest is for searches with more points.
SHARE = 0.2
#: With more variables than this, those that matter are looked for in groups first: a sweep of each would cost more.
MANY = 12
#: Values among which those of a sweep are chosen: finer than any sweep.
CANDIDATES = 40
#: A row tells of a constant if it tells at least this share of what the best row does.
TELLS = 1e-3
#: At a random setting a number of so few digits is no accident: it is one of the law's own.
SHORT_DIGITS, SHORT_ROOM = 3, 1e-11
#: Forms of a slot are told apart where they differ by more than this, relative to the spread of its table, by so many
#: more values at the most.
DIFFERENT, MORE = 1e-7, 2
#: With fewer values there is no table; values without an answer are replaced so often.
LEAST_VALUES, RETRIES = 3, 3


@dataclass(frozen=True)
class Anchored:
    """Slots measured at one setting, and solved by a regressor.

    ``passes`` says how hard a slot is tried, and at how many values of a variable, the anchor's own among them: more
    only where fewer did not do. Of the forms of slots at most ``beam`` combinations are tried. ``share`` is the part of
    what is left that the regressor may spend on one slot.
    """

    regressor: Regressor
    passes: tuple[tuple[str, tuple[int, ...]], ...] = (("cheap", (4, 6)),)
    beam: int = 4
    share: float = 0.5
    n_starts: int = 2
    max_nodes: int = 100
    thrifty: ClassVar[bool] = False
    n_orders: ClassVar[int] = 3

    # --- the anchor and its sweeps ---

    @property
    def efforts(self) -> tuple[tuple[str, float], ...]:
        """How hard slots are tried, one pass after the other, and the share of time and evaluations of each."""
        return tuple((effort, SHARE) for effort, _ in self.passes)

    def relevant(self, lab: Lab) -> list[int] | None:
        """Return the columns on which y depends at the anchor, each of them swept; None if answers are not exact."""
        anchor = anchor_of(lab)
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
        swept = _held(X, anchor, [column])
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
        here = _held(everything.X, anchor, freed)
        return Dataset.of([lab.evidence.weighted(Trial(everything.X[here], everything.y[here], tuple(freed)))])

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return a fit that the data determine, with numbers of few digits taken for numbers of the law; else None."""
        if not outcome.determined.all():
            return None
        if any(variable.stepped for variable in lab.variables):
            return outcome  # what is held may be a short number itself
        values = outcome.constants[0]
        fixed: Flags = np.array([_is_short(value) for value in values], bool)
        if not fixed.any():
            return outcome
        literal = _with_literals(outcome.tree, np.array([_short(value) for value in values]), fixed)
        again = lab.fit(literal, data, starts=outcome.constants[:, ~fixed], n_starts=0)
        return again if lab.evidence.fits(again, data) else outcome

    def ended(self, tree: MaskedTree, lab: Lab) -> Finished | None:
        """Return the formula as it is written in the end, if all that was measured, and fresh points, agree with it."""
        final = finished(tree, lab, lab.measured())
        if final is None:
            return None
        attack = Attack(final.tree, lab)
        kept = lab.budget.keep(0)
        attack.run()
        if attack.refuted:
            lab.budget.keep(kept)
            return None
        again = finished(tree, lab, lab.measured()) or final
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
        tried of an effort that takes long.
        """
        counts = dict(self.passes)[effort]
        for attempt, count in enumerate(counts[:1] if brief and effort != "cheap" else counts):
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

        With `checked` there is a row more at each value than there are constants that do not enter linearly: these may
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
        cells = _Cells(state, column, anchor, lab)
        places = _places(lab.variables[column], grid)
        outwards = grid[np.argsort(np.abs(places - places[0]), kind="stable")]
        for nearest in outwards[1 : RETRIES + 1]:  # from there constants are followed
            if cells.look(nearest):
                return cells.tables(grid, outwards, checked)
        return None

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


class _Cells:
    """The open constants of a formula at values of the next variable, from as few rows of the freed ones as do."""

    def __init__(self, state: State, column: int, anchor: Array, lab: Lab) -> None:
        self.freed, self.column, self.anchor, self.lab = state.freed, column, anchor, lab
        self._take(state.tree)

    def _take(self, tree: MaskedTree) -> None:
        """Fit a formula at the anchor's own value of the new variable, to all that is known there."""
        self.tree = tree
        self.at_anchor, self.here, self.errors_here = self._fitted(tree, self._rows(self.anchor[self.column]))

    def _rows(self, value: float) -> Array:
        """Return the rows that are known at a value of the new variable, what is held at the anchor."""
        there = self.anchor.copy()
        there[self.column] = value
        X = self.lab.log.X[self.lab.log.good]
        return np.unique(X[_held(X, there, self.freed)], axis=0)

    def _fitted(self, tree: MaskedTree, rows: Array, starts: Array | None = None) -> tuple[Trial, Array | None, Array]:
        """Return answers at rows, the constants that fit them, None if none do, and how far rounding moves those."""
        lab = self.lab
        trial = Trial(rows, lab.ask(rows), tuple(self.freed))
        nothing = np.full(tree.n_constants, np.nan)
        if not np.isfinite(trial.y).all():
            return trial, None, nothing
        data = Dataset.of([lab.evidence.weighted(trial)])
        outcome = lab.fit(tree, data, starts=np.array([tree.constants]) if starts is None else starts, n_starts=2)
        if not (lab.evidence.fits(outcome, data) and outcome.determined.all()):
            return trial, None, nothing
        return trial, outcome.constants[0], self._uncertain(tree, outcome.constants[0], trial)

    def _jacobian(self, tree: MaskedTree, constants: Array, trial: Trial) -> Array:
        """Return how answers depend on the constants, relative to their own size: (L, n)."""
        data = Dataset.of([trial])
        _, J = residual_model(tree, encoder(self.lab.pset).encode([tree]), data, self.lab.pset)(constants)
        size = np.abs(trial.y)
        return np.asarray(J * spread(data.y, data.weight) / np.maximum(size, 1e-12 * np.max(size, initial=1e-300)))

    def _uncertain(self, tree: MaskedTree, constants: Array, trial: Trial) -> Array:
        """Return how far rounding of the answers may move the constants, (L,)."""
        J = self._jacobian(tree, constants, trial)
        unit = np.maximum(np.linalg.norm(J, axis=1), 1e-300)
        inverse = np.linalg.pinv((J / unit[:, None]).T)  # (L, n)
        return np.asarray(ROUNDING * np.linalg.norm(inverse, axis=1) / unit)

    def look(self, value: float) -> bool:
        """Find out which constants move with the new variable, at one value of it, and tie those that move as one."""
        if self.here is None:
            return False
        while True:
            everything = np.ones(self.tree.n_constants, bool)
            rows = self._answered(everything, value, self.tree.n_constants)
            if rows is None:
                return False
            _, there, errors = self._fitted(self.tree, rows, self.here[None])
            if there is None or self.here is None:
                return False
            floor = np.maximum(
                STILL * np.maximum(np.abs(self.here), np.abs(there)), STILL_ERRORS * np.hypot(errors, self.errors_here)
            )
            self.moving: Flags = np.abs(there - self.here) > floor
            self.first, self.there = value, there
            if self.moving.sum() < 2:
                return bool(self.moving.any())
            both, unsure = np.array([self.here, there]), np.array([self.errors_here, errors])
            tied = self._tied(both, unsure)
            if tied is None:
                return True
            self._take(tied)
            if self.here is None:
                return False

    def _tied(self, constants: Array, errors: Array) -> MaskedTree | None:
        """Return the formula with slots that move as one made one, their ratios open; None if there are none."""
        constants = np.where(self.moving, constants, np.nan)  # what is still is tied to nothing
        tied = factor_ties(self.tree, constants, errors, self.lab.evidence, self.lab.function_set)
        old = set(map(id, self.tree))
        ratios = [isinstance(node, Constant) and id(node) not in old and not _is_short(node.value) for node in tied]
        opened = MaskedTree(
            Constant(node.value, True, True, node.ret) if ratio else node
            for node, ratio in zip(tied, ratios, strict=True)
        )
        return opened if opened.n_constants < len(self.moving) or any(ratios) else None

    def _answered(self, which: Flags, value: float, count: int) -> Array | None:
        """Return rows at a value of the new variable that tell the constants `which` apart, and have answers."""
        useless: set[int] = set()
        for _ in range(RETRIES):
            chosen = self._telling(which, value, count, useless)
            if chosen is None:
                return None
            there = self._at(value)[chosen]
            y = self.lab.ask(there)
            # Where y is nothing, as exp(-1000) is, it tells nothing.
            bad = ~np.isfinite(y) | (np.abs(y) < np.finfo(float).tiny)
            if not bad.any():
                return there
            useless |= {i for i, without in zip(chosen, bad, strict=True) if without}
        return None

    def _at(self, value: float) -> Array:
        """Return the rows that are known at the anchor's value of the new variable, with another value of it."""
        there = self.at_anchor.X.copy()
        there[:, self.column] = value
        return there

    def _telling(self, which: Flags, value: float, count: int, useless: Set[int]) -> list[int] | None:
        """Return `count` rows that tell the constants `which` apart; None if there are none.

        By a pivoted QR decomposition of the Jacobian at the rows that are known at the anchor's value: those that are
        known at `value` too come first, then the others that tell most. Rows beyond as many as there are constants
        are there to check.
        """
        assert self.here is not None
        J = self._jacobian(self.tree, self.here, self.at_anchor)[which]
        J = J / np.maximum(np.linalg.norm(J, axis=1), 1e-300)[:, None]
        _, asked = self.lab.log.known(self._at(value))
        least = TELLS * float(np.max(np.linalg.norm(J, axis=0)))
        chosen: list[int] = []
        for group in (np.flatnonzero(asked), np.arange(J.shape[1])):
            rows = [int(i) for i in group if i not in chosen and i not in useless]
            wanted = min(count, len(J)) - len(chosen)
            if not rows or wanted <= 0:
                continue
            rest = J[:, rows]
            if chosen:
                basis = np.linalg.qr(J[:, chosen])[0]
                rest = rest - basis @ (basis.T @ rest)
            _, R, order = qr(rest, mode="economic", pivoting=True)
            n_good = int(np.sum(np.abs(np.diag(R)) > least))
            chosen += [rows[i] for i in order[: min(n_good, wanted)]]
        if len(chosen) < min(count, len(J)):
            return None
        others = [i for i in np.argsort(~asked, kind="stable") if i not in chosen and i not in useless]
        return chosen + [int(i) for i in others[: count - len(chosen)]]

    def tables(self, grid: Array, outwards: Array, checked: bool) -> SlotTables | None:
        """Return the constants at all values of the grid; they are followed from one to the next, `outwards`."""
        assert self.here is not None
        count = int(self.moving.sum()) + int(checked and not self._is_linear())
        slots, errors = np.tile(self.here, (1, len(grid), 1)), np.tile(self.errors_here, (1, len(grid), 1))
        tree = _with_literals(self.tree, self.here, ~self.moving)
        known = {float(self.anchor[self.column]): self.here[self.moving], float(self.first): self.there[self.moving]}
        for value in outwards[1:]:
            rows = self._answered(self.moving, value, count)
            if rows is None:
                return None
            _, there, unsure = self._fitted(tree, rows, _extrapolated(known, value))
            if there is None:
                return None
            j = int(np.flatnonzero(grid == value)[0])
            slots[0, j, self.moving], errors[0, j, self.moving] = there, unsure
            known[float(value)] = there
        return SlotTables(self.column, grid, slots, errors, self.anchor[None], self.lab.evidence, self.tree)

    def _is_linear(self) -> bool:
        """Whether the formula is linear in the constants that move: its Jacobian is the same at both values."""
        assert self.here is not None
        one, other = (
            self._jacobian(self.tree, constants, self.at_anchor)[self.moving]
            for constants in (self.here, np.where(self.moving, self.there, self.here))
        )
        return bool(np.allclose(one, other, rtol=1e-6, atol=0.0))


def _extrapolated(known: dict[float, Array], value: float) -> Array:
    """Return starts for constants at a value of the variable: a power of it, straight, and the nearest."""
    near, far = sorted(known, key=lambda other: abs(other - value))[:2]
    one, other = known[near], known[far]
    with np.errstate(all="ignore"):
        exponent = np.log(np.abs(other / one)) / np.log(abs(far / near))
        power = one * np.abs(value / near) ** exponent
        straight = one + (other - one) / (far - near) * (value - near)
    starts = [row for row in (power, straight, one) if np.isfinite(row).all()]
    return np.array(starts)


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


def _short(value: float) -> float:
    return float(f"{value:.{SHORT_DIGITS - 1}e}")


def _is_short(value: float) -> bool:
    """Whether a number has few digits, but for rounding."""
    return abs(value - _short(value)) <= SHORT_ROOM * abs(value)


def _at(anchor: Array, column: int, values: Array) -> Array:
    """Return the anchor with a variable at each of the values, (n, n_vars)."""
    X = np.tile(anchor, (len(values), 1))
    X[:, column] = values
    return X


def _held(X: Array, anchor: Array, freed: Sequence[int]) -> Flags:
    """Return which points have everything but `freed` at the anchor."""
    held = [column for column in range(len(anchor)) if column not in freed]
    return np.asarray((X[:, held] == anchor[held]).all(axis=1), dtype=bool)


def _places(variable: Variable, values: Array) -> Array:
    """Return where in its domain values of a variable are, as it is sampled."""
    if variable.sampling == "loguniform":
        return np.asarray(
            np.sign(values) + np.log(np.abs(values) / variable.low) / np.log(variable.high / variable.low)
        )
    return np.asarray(values / (variable.high - variable.low))


def _with_literals(tree: MaskedTree, values: Array, which: Flags) -> MaskedTree:
    """Return the tree with some of its open constants at values that are no longer fitted."""
    nodes = list(tree)
    for position, value, fixed in zip(tree.open_constants, values, which, strict=True):
        if fixed:
            nodes[position] = Constant(float(value), False, False, nodes[position].ret)
    return MaskedTree(nodes)
