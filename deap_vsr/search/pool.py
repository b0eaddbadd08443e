"""Joint search: rounds by schedule, a pool of candidates, and the hall. Its state is what a checkpoint keeps.

Horizontal search is the schedule that frees everything in one round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.errors import VsrError
from deap_vsr.files import checked
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.precision import Precision, stated_precision
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.search.checkpoint import (
    Checkpoint,
    Json,
    check_trees,
    expect,
    points_from,
    restoring,
    tree_from,
    tree_state,
)
from deap_vsr.search.finish import Finished, accepted, finish
from deap_vsr.search.hall import Hall
from deap_vsr.search.joint import Joint
from deap_vsr.search.records import Journal, Round, State
from deap_vsr.search.round import free
from deap_vsr.search.schema import PoolState
from deap_vsr.search.tables import Known
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import literals
from deap_vsr.tree.translate import to_catalogue, to_set

Schedule = tuple[tuple[int, ...], ...]

#: Share of the points that may be asked to see which variables matter: enough is left for a round of each.
RELEVANCE = 0.3
#: Points that the ending asks, about; fewer than the second number tell nothing. In noise so many of the hall may be
#: the answer: the best may be overfitted.
ENDING, MIN_CHECKED, CANDIDATES = 80, 24, 5


@dataclass
class PoolSearch:
    """One search: what it was given, and its state, which is what a checkpoint holds.

    ::

        Q <- empty
        repeat until found or the budget is used up:
            P <- empty
            for each group of the schedule:
                free it
                repeat until one of P fits, or the round's share of the budget is used up:
                    P <- regressor(P, data of the new split)
                    for each candidate of P: K fresh trials, fit, freeze
                offer P to Q
            found if the best of Q holds on fresh uncontrolled data
    """

    lab: Lab
    expansion: Joint
    schedule: Schedule
    journal: Journal
    checkpoint: Checkpoint | None = None

    hall: Hall | None = None
    answer: Finished | None = None
    states: list[State] = field(default_factory=lambda: [State.start()])
    number: int = 0
    """Which group of the schedule is being freed."""
    share: Budget | None = None
    """Its part of the budget; None between rounds."""
    entered: dict[str, float] = field(default_factory=dict)
    """What had been spent when the round began."""
    passed: dict[str, float] = field(default_factory=dict)
    """What had been spent when the pass through the schedule began."""
    resume: Json | None = None
    """What the regressor goes on from."""
    latest: MaskedTree | None = None
    """The best tree that the regressor has told of."""
    refused: set[str] = field(default_factory=set)
    """Formulas that did not hold in the end: asked often enough, one would pass by chance."""

    def __post_init__(self) -> None:
        self._free_only(range(self.lab.n_vars))

    @property
    def best_error(self) -> float:
        """The error of the best of the hall."""
        return self.hall.best[0][0] if self.hall is not None and self.hall.best else np.inf

    @property
    def target(self) -> float:
        """The error at which a regressor has done its work."""
        options = self.expansion.options
        if options.published or self.hall is None:
            return options.rule.error
        return self.lab.evidence.target(self.hall.all)

    def _free_only(self, relevant: Sequence[int]) -> None:
        """Leave variables that do not matter as they are; where none does, all are freed."""
        self.relevant = tuple(relevant) or tuple(range(self.lab.n_vars))
        groups = [tuple(column for column in group if column in self.relevant) for group in self.schedule]
        self.groups = tuple(_groups([group for group in groups if group]))
        self.journal.n_rounds = len(self.groups)

    # --- the state, in and out ---

    def begin(self) -> None:
        """Find out what the answers are like, and which variables matter; draw the data of the hall."""
        options = self.expansion.options
        self.lab.begin(plain=options.published)
        self.lab = self.lab.at(self.lab.evidence.at(options.rule))
        if not options.published:
            self._free_only(relevant_variables(self.lab, max_queries=RELEVANCE * self.lab.budget.queries_left()))
        n_points = int(min(options.hall_points, max(self.lab.budget.queries_left() // 3, 8)))
        trials = self.lab.trials(range(self.lab.n_vars), 2, n_points // 2)
        self.hall = Hall(options.hall_size, Dataset.of(trials), self.lab)

    def state(self, regressor: Json | None) -> Json:
        """Return the state in JSON values; `regressor` is that of the regressor."""
        share = self.share
        return {
            "rng": self.lab.rng.bit_generator.state,
            "oracle": getattr(self.lab.oracle, "state", dict)(),  # a count, a random stream, where it has them
            "spent": self.lab.budget.spent,
            "precision": self.lab.facts["precision"].state(),
            "scale": self.lab.scale,
            "measured": (self.lab.log.X, self.lab.log.y),
            "outliers": self.lab.log.outliers,
            "repeated": self.lab.facts.get("repeated"),
            "relevant": self.relevant,
            "hall": None if self.hall is None else self.hall.state(),
            "rounds": [record.state() for record in self.journal.rounds],
            "pool": [tree_state(state.tree) for state in self.states if not state.empty],
            "number": self.number,
            "share": None if share is None else {"limits": share.limits, "spent": share.spent},
            "entered": self.entered,
            "passed": self.passed,
            "latest": None if self.latest is None else tree_state(self.latest),
            "refused": self.refused,
            "regressor": regressor,
        }

    def restore(self, saved: Json) -> None:
        """Take over a state that :meth:`state` returned; DamagedError where it makes no sense."""
        with restoring():
            self._restore(checked(saved, PoolState, ""))

    def _restore(self, state: PoolState) -> None:
        lab = self.lab
        lab.rng.bit_generator.state = state["rng"]
        if state["oracle"]:
            getattr(lab.oracle, "restore")(state["oracle"])  # noqa: B009
        lab.budget.resume(dict(state["spent"]))  # type: ignore[arg-type]
        expect(math.isfinite(state["scale"]), "a finite scale")
        lab.facts["scale"] = state["scale"]
        stated = stated_precision(lab.oracle)
        lab.know(Precision(**state["precision"], stated=None if stated is None else stated.stated))
        X, y = points_from(state["measured"], lab.n_vars)
        lab.log.add(X, y, np.zeros(len(y), bool))
        lab.log.leave_out(*points_from(state["outliers"], lab.n_vars))
        if state["repeated"] is not None:
            lab.facts["repeated"] = points_from(state["repeated"], lab.n_vars)
        lab = self.lab = lab.at(lab.evidence.at(self.expansion.options.rule))
        expect(all(column < lab.n_vars for column in state["relevant"]), f"columns below {lab.n_vars} in relevant")
        self._free_only(state["relevant"])
        expect(state["number"] < len(self.groups), f"a number of a round below {len(self.groups)}")
        self.hall = Hall.restored(self.expansion.options.hall_size, state["hall"], lab)
        self.journal.rounds = [Round.restored(dict(record), lab.pset) for record in state["rounds"]]
        self.number = state["number"]
        freed = self.groups[self.number - 1][0] if self.number else ()
        pool = [tree_from(tree, lab.pset) for tree in state["pool"]]
        self.states = [State(tree, freed) for tree in pool] or [State.start()]
        if state["share"] is not None:
            self.share = Budget(**state["share"]["limits"], whole=lab.budget).lenient()  # type: ignore[arg-type]
            self.share.resume(dict(state["share"]["spent"]))  # type: ignore[arg-type]
        self.entered, self.passed = (dict(state[name]) for name in ("entered", "passed"))  # type: ignore[assignment]
        self.refused = set(state["refused"])
        self.resume = state["regressor"]
        self.latest = None if state["latest"] is None else tree_from(state["latest"], lab.pset)
        if lab.pset is None:
            known = [tree for _, tree in self.hall.best] + [record.tree for record in self.journal.rounds] + pool
            check_trees([*known, *([] if self.latest is None else [self.latest])], lab.n_vars)

    # --- the search ---

    def go(self) -> str:
        """Run rounds, again and again, until something stops the search; returns what it was."""
        budget, options, hall = self.lab.budget, self.expansion.options, self.hall
        assert hall is not None
        while True:
            if self.share is None:
                self._enter()
            self._round()
            self.share = None
            for state in self.states:
                hall.offer(state.tree)
                if budget.used_up():
                    break
            stopped_by = "found" if self._found(hall) else budget.used_up()
            if stopped_by is not None:
                return stopped_by
            # What has no slots cannot grow, and was no answer: it was frozen too early.
            self.states = [state if state.tree.slots else state.thawed() for state in self.states]
            self.number += 1
            if self.number == len(self.groups) or not self.states:
                idle = budget.spent["evaluations"] == self.passed["evaluations"]
                if idle or not options.restart:  # another pass would be as idle, and so for ever
                    return "exhausted"
                self.number, self.states = 0, [State.start()]

    def _enter(self) -> None:
        """Begin a round: it gets its share of what is left."""
        self.entered = self.lab.budget.spent
        if self.number == 0:
            self.passed = self.entered
        self.share = self.lab.budget.part(1 / (len(self.groups) - self.number)).lenient()

    def _round(self) -> None:
        """Let the regressor grow the pool on the new split until something holds."""
        assert self.share is not None
        lab, options = self.lab.within(self.share), self.expansion.options
        freed, new = self.groups[self.number]
        states = self.states
        while True:
            before = lab.budget.evaluations
            self._tell(self.best_error, self.latest, lambda: self.resume)
            resume, self.resume = self.resume, None
            states = [replace(state, freed=freed[: len(freed) - len(new)]) for state in states]
            known = Known(target=self.target, tell=self._tell, resume=resume)
            grown = free(states, new, self.expansion, lab, known=known, tie=not options.published)
            self.states = states = next(grown, [])
            if not states:
                return
            # What fits the trials of the search and not those of the experiment was no answer: go on from there.
            if states[0].holds or lab.budget.used_up() or not options.restart or lab.budget.evaluations == before:
                break
        self.journal.record(states[0], self.entered)
        if states[0].holds:
            self.journal.best = states[0].outcome.error if states[0].outcome is not None else np.inf
            self.journal.tell(freed, states[0].tree, self.number + 1)
            self.states = [state for state in states if state.holds]

    def _tell(self, error: float, tree: MaskedTree | None, regressor: Callable[[], Json | None]) -> None:
        """Show progress, and write a checkpoint if it is time."""
        self.latest = tree
        self.journal.best = error
        self.journal.tell(self.groups[self.number][0], None, self.number + 1)
        if self.checkpoint is not None:
            self.checkpoint.save(lambda: self.state(regressor()))

    def _found(self, hall: Hall) -> bool:
        """Whether the best of the hall holds, constants as they are, on fresh uncontrolled data.

        Beyond the published method, also refitted and shortly written, and on a wider domain.
        """
        options, lab = self.expansion.options, self.lab
        tree = self._candidate(hall)
        if tree is None:
            return False
        # Some points are left for the ending.
        n_points = int(min(options.hall_points, max(lab.budget.queries_left() - ENDING, MIN_CHECKED)))
        data = Dataset.of(lab.trials(range(lab.n_vars), 1, n_points))
        rule = options.rule if not options.rule.raw else replace(options.rule, raw=False, error=1e-12)
        if not lab.evidence.at(rule).fits(lab.fit(literals(tree), data), data):
            return False
        if options.published:
            return True
        final = self._finished(tree)
        if final is None:
            self.refused.add(str(tree))
            return False
        self.answer = final
        hall.best.sort(key=lambda entry: entry[1] is not tree)
        return True

    def _finished(self, tree: MaskedTree) -> Finished | None:
        """Return a formula refitted and shortly written, if it is accepted; one of other primitives as it is."""
        lab, plain = self.lab.in_catalogue(), tree
        if self.lab.pset is not None:
            known = to_catalogue(tree, self.lab.pset)
            if known is None:
                holds = accepted(tree, self.lab, rule=self.expansion.options.rule)
                return Finished(tree, None) if holds else None
            plain = known
        final = finish(plain, lab)
        if final is None or not accepted(final.tree, lab):
            return None
        written = final.tree if self.lab.pset is None else to_set(final.tree, self.lab.pset)
        return Finished(tree, None) if written is None else replace(final, tree=written)

    def _candidate(self, hall: Hall) -> MaskedTree | None:
        """Return what may be the answer: the best of the hall, or the next that is exact where others were refused."""
        if not self.lab.evidence.certain:
            exact = [tree for _, tree in hall.best[:CANDIDATES]]
        else:
            exact = [tree for error, tree in hall.best if error <= self.expansion.options.rule.error]
        return next((tree for tree in exact if str(tree) not in self.refused), None)


def check_schedule(schedule: Schedule, n_vars: int) -> None:
    """Raise VsrError unless each variable is freed once."""
    freed = [column for group in schedule for column in group]
    if sorted(freed) != list(range(n_vars)):
        raise VsrError(f"schedule {schedule} does not free each of {n_vars} variables once")


def _groups(schedule: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield, round by round, all variables that are free, and those that were not before."""
    freed: tuple[int, ...] = ()
    for group in schedule:
        freed += tuple(group)
        yield freed, tuple(group)
