"""Vertical search: where the algorithm is. Depth first where answers are exact, a beam where they are noisy.

Both are short loops over the same round (:mod:`deap_vsr.search.round`); joint search, with its pool and hall, is in
:mod:`deap_vsr.search.pool`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from deap_vsr.engine.fitting import Dataset
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.outliers import without_outliers
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.search.anchored import Anchored
from deap_vsr.search.checkpoint import Checkpoint, DamagedError
from deap_vsr.search.contract import Regressor
from deap_vsr.search.finish import Finished, accepted, finished_in_noise, reopened
from deap_vsr.search.hall import ranked
from deap_vsr.search.joint import Joint
from deap_vsr.search.parts import resolved
from deap_vsr.search.pool import PoolSearch, Schedule, check_schedule
from deap_vsr.search.records import Found, Journal, Progress, State, ending, what_stopped
from deap_vsr.search.round import free
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import EXACT, Slotwise, simplicity
from deap_vsr.search.sums import Sums
from deap_vsr.search.tables import Known, Solutions
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import structural_hash

Tell = Callable[[Progress], None]

#: Formulas that a beam follows. By hand; benchmarks/sensitivity.py shows what others would do.
WIDTH = 3
#: Of the time and evaluations that are left, in noise; the rest is left to the searches that follow: to sums, and to
#: slots once more, a quarter each.
SHARE, SUMS_SHARE = 0.5, 0.4
#: Where a round leaves so many times the variance of the noise, the law is no sum of products of simple atoms; then so
#: many points are enough for the last fit, and the rest is left to other searches.
HOPELESS, FEW_POINTS = 2.0, 400
#: Points for the last fit in noise (about half of what a search of six variables asks), and to check the answer by,
#: as many inside the domain as outside.
#: With fewer than the last number nothing is called found.
LAST_POINTS, CHECK_POINTS, MIN_CHECKED = 2000, 100, 8

#: Of the time and evaluations that are left then, for solving parts of the answer anew, and how many at the most: some
#: ten seconds. A formula of more constants is no law that one could tell by its parts: fits of it take long.
RESOLVED_SHARE, RESOLVED, MOST_RESOLVED = 0.5, 4_000_000, 8
#: Of what comes up then so many are kept as rivals: twice what is fitted of the others.
MOST_RIVALS = 12
#: The last fit is made again without outliers, so often at the most.
MAX_LOOKS = 3


def vertical(
    lab: Lab,
    expansion: Joint | Slotwise | Anchored | Sums,
    schedule: Schedule | None,
    tell: Tell = lambda news: None,
    checkpoint: Checkpoint | None = None,
) -> Found:
    """Find a formula, freeing variables one by one.

    ::

        drop the variables that do not matter
        formula <- C
        until nothing is held:
            free a variable: expand, verify on fresh joint data, freeze, factor out tied slots
            where that fails: next answers, more data, next variable, and back
        refit all constants together, shorten them, verify on fresh and on wider data

    Parameters
    ----------
    schedule : groups of columns, from 0, in the order in which they are freed
        None: the simplest reduced form first; joint: as they come.
    """
    if isinstance(expansion, Joint):
        numeric = tuple((column,) for column in range(lab.n_vars))
        return _pool(lab, expansion, numeric if schedule is None else schedule, tell, checkpoint)
    search: DepthFirst | Beam
    if isinstance(expansion, Anchored) or (isinstance(expansion, Slotwise) and lab.evidence.certain):
        search = DepthFirst(lab, expansion, tell)
    else:
        search = Beam(lab, expansion, tell)
    order = None if schedule is None else [column for group in schedule for column in group]
    return search.found(what_stopped(lambda: search.go(order)))


class DepthFirst:
    """Slotwise search where answers are exact: a formula that holds is right, and is followed to its end."""

    def __init__(self, lab: Lab, expansion: Slotwise | Anchored, tell: Tell) -> None:
        self.lab, self.expansion = lab.at(lab.evidence.at(EXACT)), expansion
        self.journal = Journal(lab, tell)
        self.answer: Finished | None = None
        self.partial: list[MaskedTree] = []
        self.nodes = 0

    def go(self, order: Sequence[int] | None) -> str:
        """Search, trying harder in each pass; returns what stopped it."""
        relevant = self.expansion.relevant(self.lab)
        if relevant is None:
            return "exhausted"
        self.journal.n_rounds = max(len(relevant), 1)
        waiting = relevant if order is None else [column for column in order if column in relevant]
        simplest_first = order is None and not self.expansion.thrifty
        for effort, share in self.expansion.efforts:
            lab = self.lab.part(share, ("seconds", "evaluations"))
            self.answer = next(self._grow(State.start(), waiting, lab, effort, simplest_first), None)
            if self.answer is not None:
                return "found"
            if self.lab.budget.used_up() is not None:
                break
        return self.lab.budget.used_up() or "exhausted"

    def _grow(
        self, state: State, waiting: Sequence[int], lab: Lab, effort: str, simplest_first: bool
    ) -> Iterator[Finished]:
        """Yield finished formulas that grow from `state`."""
        if not waiting or not state.tree.slots:
            final = self.expansion.ended(state.tree, lab)
            if final is not None:
                yield final
            return
        ready: dict[int, Solutions | None] = {}
        if simplest_first:  # a hard one comes last, and then it may be easy
            brief = effort == "quick"
            ready = {column: self._solutions(state, column, lab, effort, brief) for column in waiting}
            waiting = sorted(waiting, key=lambda column: simplicity(ready[column]))
        n_right = 0
        for column in waiting:
            if self._over(lab):
                return
            solutions = ready.get(column)
            if solutions is None and (column not in ready or effort == "quick"):
                solutions = self._solutions(state, column, lab, effort)
            rest = [other for other in waiting if other != column]
            right = False
            known = Known(ready=solutions)
            for states in free([state], (column,), self.expansion, lab, effort, known) if solutions else ():
                self.nodes += 1
                for grown in map(self._record, states):
                    if grown.holds:
                        right = True
                        yield from self._grow(grown, rest, lab, effort, False)
                if self._over(lab):
                    return
            n_right += right
            if n_right >= (self.expansion.n_orders if state.empty else 1):
                return  # what failed later will fail with another variable first

    def _solutions(self, state: State, column: int, lab: Lab, effort: str, brief: bool = False) -> Solutions | None:
        self.journal.tell((*state.freed, column))
        return self.expansion.solutions(state, column, lab, effort, brief)

    def _record(self, state: State) -> State:
        self.journal.best = state.error
        if state.holds:
            self.partial.append(state.tree)
            self.journal.tell(state.freed, state.tree)
        return self.journal.record(state)

    def _over(self, lab: Lab) -> bool:
        return self.nodes >= self.expansion.max_nodes or lab.budget.used_up() is not None

    def found(self, stopped_by: str) -> Found:
        """Return the answer, or the formulas on their way, ranked on uncontrolled data."""
        if self.answer is not None:
            best, errors = [(0.0, self.answer.tree)], self.answer.standard_errors
        else:
            best, errors = self.expansion.ranked(self.partial, self.lab), None
        return Found.of(best, self.journal, stopped_by, errors)


class Beam:
    """Search in noise: a few formulas that the data do not tell apart are followed, and in the end all data decide."""

    def __init__(self, lab: Lab, expansion: Slotwise | Sums, tell: Tell) -> None:
        if isinstance(expansion, Slotwise) and expansion.options.shared:
            lab = lab.at(lab.evidence.at_one_setting())
        self.expansion, self.evidence = expansion, lab.evidence
        self.sums = isinstance(expansion, Sums)
        self.whole = lab
        self.lab = lab.part(SUMS_SHARE if self.sums else SHARE, ("seconds", "evaluations"))
        self.journal = Journal(lab, tell)
        self.states = [State.start()]
        self.twins: list[State] = []  # tried where the shorter formulas that say the same lead nowhere
        self.columns: list[int] = []
        self.hopeless = False
        self.answer: Finished | None = None

    def go(self, order: Sequence[int] | None) -> str:
        """Search; returns what stopped it."""
        if isinstance(self.expansion, Sums) and not self.expansion.can_be_written(self.lab):
            self.states = []
            return "exhausted"
        share = 0.3 if self.sums else 0.2
        relevant = relevant_variables(self.lab, max_queries=share * self.lab.budget.queries_left())
        self.columns = relevant if order is None else [column for column in order if column in relevant]
        self.journal.n_rounds = len(self.columns)
        if isinstance(self.expansion, Sums):
            queries, n_rounds = self.lab.budget.queries_left(), len(self.columns)
            options = self.expansion.options.within(queries, n_rounds, 2 * CHECK_POINTS)
            self.expansion = replace(self.expansion, options=options)
        waiting = list(self.columns)
        if isinstance(self.expansion, Slotwise) and order is None:
            waiting = self.expansion.simplest_first(waiting, self.lab)
        while waiting:
            column, states = self._next(waiting)
            if column is not None and not states and self.twins and self.lab.budget.used_up() is None:
                self.states, self.twins = self.twins, []
                column, states = self._next(waiting)
            if column is None:  # nothing that is left can be seen
                break
            if not states:
                self.hopeless = True
                break
            self.states = [state for state in states if not state.twin]
            self.twins = [state for state in states if state.twin][:WIDTH]
            waiting.remove(column)
        if self.hopeless and not self.sums:
            return self.whole.budget.used_up() or "exhausted"
        return self._finish()

    def _next(self, waiting: Sequence[int]) -> tuple[int | None, list[State]]:
        """Return the next variable and what came of freeing it; no variable, if none can be seen in the noise.

        Where none can be seen at some settings more are looked at: what matters little may matter at few of them.
        """
        column, states = self._seen(waiting)
        return (column, states) if column is not None else self._seen(waiting, closely=True)

    def _seen(self, waiting: Sequence[int], closely: bool = False) -> tuple[int | None, list[State]]:
        """Return the first variable that can be seen and leads somewhere, or the last of those that can be seen."""
        last: int | None = None
        for column in waiting:
            self.journal.tell((*self.states[0].freed, column))
            held_at = self.expansion.held_at(column, len(waiting) - 1, self.lab, closely)
            if held_at is None:
                continue
            last = column
            known = Known(held_at=held_at)
            for states in free(self.states, (column,), self.expansion, self.lab, known=known, width=WIDTH):
                recorded = [self.journal.record(state) for state in sorted(states, key=lambda state: state.holds)]
                follow = [state for state in recorded if state.holds or (self.sums and state.excess <= HOPELESS)]
                if follow:
                    self.journal.best = follow[0].error
                    self.journal.tell(follow[0].freed, follow[0].tree)
                    return column, follow
                if self.sums and recorded:  # the law is no sum; the last look begins with what comes closest
                    self.states = recorded
                if self.lab.budget.used_up() is not None:
                    return column, []
            if self.sums or self.lab.budget.used_up() is not None:
                break
        return last, []

    def _finish(self) -> str:
        """Fit everything that was measured together; returns what stopped the search."""
        lab, evidence, expansion = self.lab, self.evidence, self.expansion
        last_points = expansion.options.last_points if isinstance(expansion, Sums) else LAST_POINTS
        last_points = min(last_points, FEW_POINTS) if self.hopeless else last_points
        left = max(lab.budget.queries_left(), 0.0)
        share = min(1.0, left / (last_points + 2 * CHECK_POINTS))
        n_check = max(int(share * CHECK_POINTS), int(min(MIN_CHECKED, left / 2)))
        n_last = int(min(share * last_points, left - 2 * n_check))
        everything = range(lab.n_vars)
        with suppress(NoValuesError):
            if n_last:
                lab.trials(everything, 1, n_last)
        if not len(lab.measured().y):
            return "queries"
        formulas = self._formulas(lab)
        data = Dataset.of([lab.measured()])
        best = min(formulas, key=lambda formula: formula.price)
        state = self.states[formulas.index(best)]
        self.journal.lead_to(state)
        others = [formula.tree for formula in formulas if formula is not best] + [twin.tree for twin in self.twins]
        lab.facts.setdefault("others", []).extend(others)
        self.answer = best  # should what follows be cut off
        self.answer = best = self._resolved(best, state, data, lab)
        together = lab.fit(best.tree, data)
        self.journal.best = float(together.errors[0])
        if n_check < MIN_CHECKED:
            return "queries"
        holds = not self.hopeless and evidence.fits(together, data) and accepted(best.tree, lab, n_check)
        return "found" if holds else self.whole.budget.used_up() or "exhausted"

    def _formulas(self, lab: Lab) -> list[Finished]:
        """Return the formulas that were followed, fitted to all that was measured, without outliers."""
        for _ in range(MAX_LOOKS):
            measured = lab.measured()
            trees = [state.tree for state in self.states]
            if isinstance(self.expansion, Sums):
                trees = [self.expansion.last_look(self.states[0], self.columns, lab, self.hopeless)]
            formulas = [finished_in_noise(tree, Dataset.of([measured]), lab) for tree in trees]
            best = min(formulas, key=lambda formula: formula.price)
            cleaned = None
            with suppress(OutOfQueriesError):  # then nothing can be asked again, and all stays
                cleaned = None if self.hopeless else without_outliers(best.tree, measured, lab)
            if cleaned is None:
                break
        return formulas

    def _resolved(self, formula: Finished, state: State, data: Dataset, lab: Lab) -> Finished:
        """Return the formula with its parts solved anew by all data, where that is better; what came up is kept.

        Slots come last, and have what the whole run has left of the time and evaluations: nothing is called found
        without rivals.
        """
        regressor = self.expansion.regressor
        errors = formula.standard_errors
        if self.hopeless or regressor is None or errors is None or len(errors) > MOST_RESOLVED:
            return formula
        part = (lab if self.sums else self.whole).part(RESOLVED_SHARE, ("seconds", "evaluations"), evaluations=RESOLVED)
        anew = resolved(formula.tree, data, part, regressor)
        others = lab.facts["others"]
        others += [tree for _, tree in anew.others[:MOST_RIVALS]]
        best = finished_in_noise(anew.best.trees[0], data, lab)
        if not best.price < formula.price:
            others.append(anew.best.trees[0])
            best = formula
        else:
            self.journal.record(State(anew.best.trees[0], tuple(self.columns), True, anew.best, state.solved))
        cut = lab.facts.setdefault("cut", set())
        key = structural_hash(reopened(best.tree))
        (cut.discard if anew.whole else cut.add)(key)
        return best

    def found(self, stopped_by: str) -> Found:
        """Return the answer, or the formulas on their way, ranked on uncontrolled data."""
        if self.answer is not None:
            best, errors = [(self.journal.best, self.answer.tree)], self.answer.standard_errors
        else:
            best, errors = ranked([state.tree for state in self.states[::-1]], self.whole), None
        return Found.of(best, self.journal, stopped_by, errors)


def _pool(lab: Lab, expansion: Joint, schedule: Schedule, tell: Tell, checkpoint: Checkpoint | None) -> Found:
    """Search jointly, as published, or go on from a checkpoint."""
    check_schedule(schedule, lab.n_vars)
    saved = checkpoint.load() if checkpoint is not None else None
    search = PoolSearch(lab, expansion, schedule, Journal(lab, tell), checkpoint)
    try:
        if saved is None:
            search.begin()
        else:
            search.restore(saved)
        stopped_by = search.go()
    except DamagedError as error:
        assert checkpoint is not None
        raise checkpoint.broken(str(error)) from None
    except (KeyboardInterrupt, OutOfQueriesError, NoValuesError) as end:
        if isinstance(end, NoValuesError) and search.hall is None:
            raise
        stopped_by = "exhausted" if isinstance(end, NoValuesError) else ending(end)
        if search.latest is not None and search.hall is not None:
            search.hall.offer(search.latest)
    best = search.hall.best if search.hall is not None else []
    if search.answer is None:
        return Found.of(best, search.journal, stopped_by)
    return Found.of(
        [(best[0][0], search.answer.tree), *best[1:]], search.journal, stopped_by, search.answer.standard_errors
    )


def simplest_first(lab: Lab, regressor: Regressor) -> tuple[int, ...]:
    """Return the variables in the order of their reduced forms, the simplest first; those that do not matter last."""
    lab.begin()
    if not lab.evidence.certain:  # tables would take more points than the order is worth
        return tuple(range(lab.n_vars))
    expansion = Slotwise(regressor, SlotOptions())
    exact = lab.at(lab.evidence.at(EXACT))
    relevant = relevant_variables(exact)
    forms = {column: simplicity(expansion.solutions(State.start(), column, exact, "cheap")) for column in relevant}
    rest = [column for column in range(lab.n_vars) if column not in forms]
    return (*sorted(forms, key=lambda column: (forms[column], column)), *rest)
