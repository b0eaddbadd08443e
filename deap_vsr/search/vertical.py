"""The orchestrator of vertical search: schedule -> rounds -> hall. Knows no regressor; it is handed one.

Joint expansion, as published. Horizontal search is the schedule that frees everything in one round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.errors import OutOfQueriesError, VsrError
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import Trial, sample_trials
from deap_vsr.search.checkpoint import Checkpoint, State, tree_from, tree_state
from deap_vsr.search.contract import Budget, Candidate, Regressor, Task
from deap_vsr.search.finish import finished
from deap_vsr.search.freezing import FreezeRule, fits, freeze, measure_noise
from deap_vsr.search.hall import Hall
from deap_vsr.search.identify import identified
from deap_vsr.search.records import Outcome, Progress, Round
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import literals

Schedule = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Settings:
    """Numbers of the orchestrator. The paper gives K = 5 and a hall of 50; the others are ours."""

    n_trials: int = 5
    n_points: int = 40
    search_trials: int = 1
    pool_size: int = 10
    hall_size: int = 50
    hall_points: int = 256
    rule: FreezeRule = field(default_factory=FreezeRule)
    restart: bool = True


def search(
    oracle: Oracle,
    regressor: Regressor,
    schedule: Schedule,
    budget: Budget,
    rng: np.random.Generator,
    settings: Settings | None = None,
    progress: Callable[[Progress], None] = lambda news: None,
    pset: gp.PrimitiveSetTyped | None = None,
    checkpoint: Checkpoint | None = None,
) -> Outcome:
    """Find a formula for `oracle`, freeing variables group by group.

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

    `pset` says what the nodes of the regressor's trees mean; by default the catalogue and x1, x2, ...
    With a `checkpoint` the state of the run is kept in a file, from which it can go on.
    """
    _check_schedule(schedule, len(oracle.variables))
    run = _Run(
        oracle, regressor, tuple(_rounds(schedule)), budget, rng, settings or Settings(), progress, pset, checkpoint
    )
    saved = checkpoint.load() if checkpoint is not None else None
    if saved is not None and checkpoint is not None:
        try:
            run.restore(saved)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError):
            raise checkpoint.broken() from None
    try:
        if saved is None:
            run.begin()
        stopped_by = run.go()
    except (KeyboardInterrupt, OutOfQueriesError) as end:
        stopped_by = "interrupted" if isinstance(end, KeyboardInterrupt) else "queries"
        if run.latest is not None:
            run.hall.offer(run.latest, budget)
    best = run.hall.best if hasattr(run, "hall") else []
    if stopped_by == "found" and run.noise == 0 and pset is None and not run.settings.rule.raw:
        with suppress(KeyboardInterrupt, OutOfQueriesError):  # the same formula, shortly written
            short = finished(best[0][1], oracle, budget, rng)
            best = best if short is None else [(best[0][0], short), *best[1:]]
    return Outcome(best[0][1] if best else None, best, run.rounds, stopped_by, run.noise)


@dataclass
class _Run:
    """One search: what it was given, and its state, which is what a checkpoint holds."""

    oracle: Oracle
    regressor: Regressor
    plan: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    budget: Budget
    rng: np.random.Generator
    settings: Settings
    progress: Callable[[Progress], None]
    pset: gp.PrimitiveSetTyped | None
    checkpoint: Checkpoint | None

    noise: float = 0.0
    hall: Hall = field(init=False)
    rounds: list[Round] = field(default_factory=list)
    pool: list[MaskedTree] = field(default_factory=list)
    number: int = 0
    """Which round of the plan is going on."""
    share: Budget | None = None
    """Its part of the budget; None between rounds."""
    entered: dict[str, float] = field(default_factory=dict)
    """What had been spent when the round began."""
    passed: dict[str, float] = field(default_factory=dict)
    """What had been spent when the pass through the schedule began."""
    resume: State | None = None
    """What the regressor goes on from."""
    latest: MaskedTree | None = None
    """The best tree that the regressor has told of."""

    # --- the state, in and out ---

    def begin(self) -> None:
        """Measure the noise, and draw the data of the hall."""
        self.noise = measure_noise(self.oracle, self.rng)
        everything = range(len(self.oracle.variables))
        n_points = int(min(self.settings.hall_points, max(self.budget.queries_left() // 3, 8)))
        trials = sample_trials(self.oracle, everything, 2, n_points // 2, self.rng)
        self.hall = Hall(self.settings.hall_size, Dataset.of(trials), self.pset)

    def state(self, regressor: State | None) -> State:
        """Return the state in JSON values; `regressor` is that of the regressor."""
        share = self.share
        return {
            "rng": self.rng.bit_generator.state,
            "oracle": getattr(self.oracle, "state", dict)(),  # a count, a random stream, where it has them
            "spent": self.budget.spent,
            "noise": self.noise,
            "hall": self.hall.state(),
            "rounds": [record.state() for record in self.rounds],
            "pool": [tree_state(tree) for tree in self.pool],
            "number": self.number,
            "share": None if share is None else {"limits": share.limits, "spent": share.spent},
            "entered": self.entered,
            "passed": self.passed,
            "regressor": regressor,
        }

    def restore(self, state: State) -> None:
        """Take over a state that :meth:`state` returned."""
        self.rng.bit_generator.state = state["rng"]
        if state["oracle"]:
            getattr(self.oracle, "restore")(state["oracle"])  # noqa: B009
        self.budget.resume(state["spent"])
        self.noise = state["noise"]
        self.hall = Hall.restored(self.settings.hall_size, state["hall"], self.pset)
        self.rounds = [Round.restored(record, self.pset) for record in state["rounds"]]
        self.pool = [tree_from(tree, self.pset) for tree in state["pool"]]
        self.number = state["number"]
        if state["share"] is not None:
            self.share = Budget(self.oracle, **state["share"]["limits"], whole=self.budget)
            self.share.resume(state["share"]["spent"])
        self.entered, self.passed = state["entered"], state["passed"]
        self.resume = state["regressor"]

    # --- the search ---

    def go(self) -> str:
        """Run rounds, again and again, until something stops the search; returns what it was."""
        while True:
            if self.share is None:
                self._enter()
            self._round()
            self.share = None
            for tree in self.pool:
                self.hall.offer(tree, self.budget)
                if self.budget.used_up():
                    break
            stopped_by = "found" if self._found() else self.budget.used_up()
            if stopped_by is not None:
                return stopped_by
            self.number += 1
            if self.number == len(self.plan) or not self.pool:
                spent = self.budget.spent
                idle = all(spent[name] == self.passed[name] for name in ("evaluations", "queries"))
                if idle or not self.settings.restart:  # another pass would be as idle, and so for ever
                    return "exhausted"
                self.number, self.pool = 0, []

    def _enter(self) -> None:
        """Begin a round: it gets its share of what is left."""
        self.entered = self.budget.spent
        if self.number == 0:
            self.passed = self.entered
        self.share = self.budget.part(1 / (len(self.plan) - self.number))

    def _round(self) -> None:
        """Let the regressor grow the pool on the new split until something fits, then freeze it; best first."""
        oracle, settings, share = self.oracle, self.settings, self.share
        assert share is not None
        freed, new = self.plan[self.number]

        def draw(generator: np.random.Generator) -> list[Trial]:
            return sample_trials(oracle, freed, settings.search_trials, settings.n_points, generator)

        while True:
            before = share.evaluations
            self._tell(self.hall.best[0][0] if self.hall.best else np.inf, self.latest, lambda: self.resume)
            # Where nothing is frozen nothing is known to be right, and a pool without slots cannot grow: all may be
            # needed.
            columns = new if any(tree.slots and not all(tree.mask) for tree in self.pool) else freed
            task = Task(
                self.pool,
                draw,
                oracle.function_set,
                columns,
                len(oracle.variables),
                share,
                settings.rule.error,
                self.rng,
                tell=self._tell,
                resume=self.resume,
            )
            self.resume = None
            candidates = self.regressor.regress(task)[: settings.pool_size]
            if not candidates:
                self.pool = []
                return
            data = Dataset.of(sample_trials(oracle, freed, settings.n_trials, settings.n_points, self.rng))
            outcomes = _experiment(candidates, data, oracle, share, settings, self.noise, self.pset)
            self.pool = [freeze(outcome, data, settings.rule, self.noise) for outcome in outcomes]
            accepted = [fits(outcome, data, settings.rule, self.noise) for outcome in outcomes]
            # What fits the trials of the search and not those of the experiment was no answer: go on from there.
            if accepted[0] or share.used_up() or not settings.restart or share.evaluations == before:
                break
        self._record(freed, outcomes[0], accepted[0])
        if any(accepted):
            self.pool = [tree for tree, good in zip(self.pool, accepted, strict=True) if good]

    def _tell(self, error: float, tree: MaskedTree | None, regressor: Callable[[], State | None]) -> None:
        """Show progress, and write a checkpoint if it is time."""
        self.latest = tree
        self.progress(Progress(self.number + 1, len(self.plan), self.plan[self.number][0], error, self.budget))
        if self.checkpoint is not None:
            self.checkpoint.save(lambda: self.state(regressor()))

    def _record(self, freed: tuple[int, ...], best: Fit, accepted: bool) -> None:
        n_vars = len(self.oracle.variables)
        record = Round.of(freed, n_vars, self.pool[0], best, accepted, self.entered, self.budget.spent)
        self.rounds.append(record)
        if accepted:
            self.progress(Progress(self.number + 1, len(self.plan), freed, best.error, self.budget, self.pool[0]))

    def _found(self) -> bool:
        """Whether the best of the hall holds, constants as they are, on fresh uncontrolled data."""
        hall, settings = self.hall, self.settings
        if not hall.best or (self.noise == 0 and hall.best[0][0] > settings.rule.error):
            return False
        everything = range(len(self.oracle.variables))
        data = Dataset.of(sample_trials(self.oracle, everything, 1, settings.hall_points, self.rng))
        outcome = fit(literals(hall.best[0][1]), data, pset=hall.pset)
        self.budget.count(outcome.evaluations)
        rule = settings.rule if not settings.rule.raw else replace(settings.rule, raw=False, error=1e-12)
        return fits(outcome, data, rule, self.noise)


def _check_schedule(schedule: Schedule, n_vars: int) -> None:
    freed = [column for group in schedule for column in group]
    if sorted(freed) != list(range(n_vars)):
        raise VsrError(f"schedule {schedule} does not free each of {n_vars} variables once")


def _rounds(schedule: Schedule) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield, round by round, all variables that are free, and those that were not before."""
    freed: tuple[int, ...] = ()
    for group in schedule:
        freed += tuple(group)
        yield freed, tuple(group)


def _experiment(
    candidates: list[Candidate],
    data: Dataset,
    oracle: Oracle,
    budget: Budget,
    settings: Settings,
    noise: float,
    pset: gp.PrimitiveSetTyped | None,
) -> list[Fit]:
    """Fit every candidate in the K trials of `data`, best first; what fits is rewritten into determined constants."""
    outcomes = []
    for candidate in candidates:
        outcome = fit(candidate.tree, data, pset=pset, starts=candidate.constants[:1], n_starts=1)
        budget.count(outcome.evaluations)
        if pset is None and fits(outcome, data, settings.rule, noise):
            outcome, spent = identified(outcome, data, oracle.function_set, settings.rule, noise)
            budget.count(spent)
        outcomes.append(outcome)
        if budget.used_up():
            break
    return sorted(outcomes, key=lambda outcome: (max(outcome.error, settings.rule.error), len(outcome.tree)))
