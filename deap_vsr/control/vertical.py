"""The orchestrator of vertical search: schedule -> rounds -> hall. Knows no regressor; it is handed one.

Joint expansion, as published. Horizontal search is the schedule that frees everything in one round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from deap import gp

from deap_vsr.control.experiment import Trial, sample_trials
from deap_vsr.control.freezing import FreezeRule, fits, freeze, measure_noise
from deap_vsr.control.identify import identified
from deap_vsr.control.oracle import Oracle
from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.errors import VsrError
from deap_vsr.operators import Array
from deap_vsr.simplify import structural_hash
from deap_vsr.tree import Constant, MaskedTree, Vocabulary, is_open

Schedule = tuple[tuple[int, ...], ...]


class Budget:
    """Limits on seconds, evaluations and oracle queries, whichever comes first, and what is spent.

    A part of a budget (:meth:`part`) has limits of its own; what it spends counts for the whole.
    """

    def __init__(
        self,
        oracle: Oracle,
        seconds: float | None = None,
        evaluations: int | None = None,
        queries: int | None = None,
        whole: Budget | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.oracle = oracle
        self.whole = whole
        self.tick = tick
        self.started = time.perf_counter()
        self.evaluations = 0
        self._first_query = oracle.queries
        self.limits = {"seconds": seconds, "evaluations": evaluations, "queries": queries}

    @property
    def spent(self) -> dict[str, float]:
        """What has been spent of each."""
        return {
            "seconds": time.perf_counter() - self.started,
            "evaluations": self.evaluations,
            "queries": self.oracle.queries - self._first_query,
        }

    def count(self, evaluations: int) -> None:
        """Count evaluations, here and in the whole; whoever wants to show progress is told."""
        self.evaluations += evaluations
        self.tick()
        if self.whole is not None:
            self.whole.count(evaluations)

    def used_up(self) -> str | None:
        """Return which limit is reached (seconds, evaluations, queries), or None."""
        spent = self.spent
        for name, limit in self.limits.items():
            if limit is not None and spent[name] >= limit:
                return name
        return self.whole.used_up() if self.whole is not None else None

    def part(self, share: float) -> Budget:
        """Return a budget of `share` of what is left."""

        def left(name: str) -> float | None:
            limit = self.limits[name]
            return None if limit is None else share * (limit - self.spent[name])

        evaluations, queries = left("evaluations"), left("queries")
        return Budget(
            self.oracle,
            left("seconds"),
            None if evaluations is None else int(evaluations),
            None if queries is None else int(queries),
            whole=self,
        )


@dataclass(frozen=True)
class Candidate:
    """A tree, and how it fared in the trials of its task: errors (K,), constants (K, L)."""

    tree: MaskedTree
    errors: Array
    constants: Array
    evaluations: int = 0

    @classmethod
    def of(cls, outcome: Fit) -> Candidate:
        """Make one of a fit."""
        return cls(outcome.tree, outcome.errors, outcome.constants, outcome.evaluations)


@dataclass(frozen=True)
class Task:
    """What a regressor is asked: grow candidates on one round's data.

    Attributes
    ----------
    candidates : masked trees to grow; empty in the first round
    draw : callable
        ``draw(rng)`` returns trials; X always has all columns. An experiment draws fresh ones.
    function_set : names of the operators allowed in new material
    columns : variables allowed in new material, from 0
    budget : Budget
    target : float
        Normalised error at which the task is solved.
    rng : numpy Generator
    effort : "cheap" or "all"
        Whether only cheap stages are wanted.
    """

    candidates: Sequence[MaskedTree]
    draw: Callable[[np.random.Generator], list[Trial]]
    function_set: tuple[str, ...]
    columns: tuple[int, ...]
    n_vars: int
    budget: Budget
    target: float
    rng: np.random.Generator
    effort: str = "all"


class Regressor(Protocol):
    """GP, MCTS, ...: anything that grows candidates."""

    def regress(self, task: Task) -> list[Candidate]:
        """Return candidates, best first, the mask of the task's candidates respected."""


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


@dataclass(frozen=True)
class Round:
    """One round, for the report: what was freed and held, and the best candidate after freezing."""

    freed: tuple[int, ...]
    controlled: tuple[int, ...]
    tree: MaskedTree
    errors: tuple[float, ...]
    constants: tuple[tuple[float, ...], ...]
    slots: int
    accepted: bool
    queries: int
    seconds: float


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on."""

    round: int
    n_rounds: int
    freed: tuple[int, ...]
    best: float
    budget: Budget


@dataclass(frozen=True)
class Outcome:
    """What a search returns: the best of the hall, the hall, the rounds, and why it stopped."""

    tree: MaskedTree | None
    hall: list[tuple[float, MaskedTree]]
    rounds: list[Round]
    stopped_by: str
    noise: float


class Hall:
    """The best expressions over all rounds, distinct formulas, ranked on uncontrolled data.

    `data` holds two batches: constants are fitted on the first, and the worse of the errors on both counts. A pole
    between the points of the first does not pass for a good fit.
    """

    def __init__(self, size: int, data: Dataset, pset: gp.PrimitiveSetTyped | None = None) -> None:
        self.size = size
        self.data, self.check = data.trial(0), data.trial(1)
        self.pset = pset
        self._vocabulary = Vocabulary(pset)
        self.best: list[tuple[float, MaskedTree]] = []
        self._hashes: dict[str, float] = {}

    def offer(self, tree: MaskedTree, budget: Budget) -> float:
        """Fit `tree` on the uncontrolled batch and keep it if it is good enough; returns its error."""
        outcome = fit(tree, self.data, pset=self.pset, n_starts=1)
        budget.count(outcome.evaluations)
        fitted = outcome.trees[0]
        error = float(max(outcome.errors[0], fixed_error(fitted, self.check, self.pset)))
        budget.count(1)
        if not np.isfinite(error):
            return error
        key = structural_hash(fitted, self._vocabulary)
        if error < self._hashes.get(key, np.inf):
            self._hashes[key] = error
            self.best = [entry for entry in self.best if structural_hash(entry[1], self._vocabulary) != key]
            self.best.append((error, fitted))
            self.best.sort(key=lambda entry: (entry[0], len(entry[1])))
            del self.best[self.size :]
        return error


def search(
    oracle: Oracle,
    regressor: Regressor,
    schedule: Schedule,
    budget: Budget,
    rng: np.random.Generator,
    settings: Settings | None = None,
    progress: Callable[[Progress], None] = lambda news: None,
    pset: gp.PrimitiveSetTyped | None = None,
) -> Outcome:
    """Find a formula for `oracle`, freeing variables group by group.

    ::

        Q <- empty
        repeat until found or the budget is used up:
            P <- empty
            for each group of the schedule:
                free it; P <- regressor(P, data of the new split)
                for each candidate of P: K fresh trials, fit, freeze; offer it to Q
            found if the best of Q holds on fresh uncontrolled data

    `pset` says what the nodes of the regressor's trees mean; by default the catalogue and x1, x2, ...
    """
    settings = settings or Settings()
    n_vars = len(oracle.variables)
    _check_schedule(schedule, n_vars)
    noise = measure_noise(oracle, rng)
    everything = tuple(range(n_vars))
    batch = Dataset.of(sample_trials(oracle, everything, 2, settings.hall_points // 2, rng))
    hall = Hall(settings.hall_size, batch, pset)
    rounds: list[Round] = []
    try:
        stopped_by = _search(oracle, regressor, schedule, budget, rng, settings, progress, noise, hall, rounds)
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    return Outcome(hall.best[0][1] if hall.best else None, hall.best, rounds, stopped_by, noise)


def _search(
    oracle: Oracle,
    regressor: Regressor,
    schedule: Schedule,
    budget: Budget,
    rng: np.random.Generator,
    settings: Settings,
    progress: Callable[[Progress], None],
    noise: float,
    hall: Hall,
    rounds: list[Round],
) -> str:
    """Run rounds, again and again, until something stops the search; returns what it was."""
    stopped_by: str | None = None
    while stopped_by is None:
        pool: list[MaskedTree] = []
        before = (budget.evaluations, oracle.queries)
        for number, (freed, new) in enumerate(_rounds(schedule), start=1):
            progress(Progress(number, len(schedule), freed, hall.best[0][0] if hall.best else np.inf, budget))
            share = budget.part(1 / (len(schedule) - number + 1))
            pool, record = _round(oracle, regressor, pool, freed, new, share, rng, settings, noise, hall.pset)
            if record is not None:
                rounds.append(record)
            for tree in pool:
                hall.offer(tree, budget)
                if budget.used_up():
                    break
            stopped_by = "found" if _found(oracle, hall, rng, settings, noise, budget) else budget.used_up()
            if stopped_by is not None or not pool:
                break
        idle = before == (budget.evaluations, oracle.queries)  # another pass would be as idle, and so for ever
        if stopped_by is None and (idle or not settings.restart):
            stopped_by = "exhausted"
    return stopped_by


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


def _round(
    oracle: Oracle,
    regressor: Regressor,
    pool: list[MaskedTree],
    freed: tuple[int, ...],
    new: tuple[int, ...],
    budget: Budget,
    rng: np.random.Generator,
    settings: Settings,
    noise: float,
    pset: gp.PrimitiveSetTyped | None,
) -> tuple[list[MaskedTree], Round | None]:
    """Let the regressor grow the pool on the new split, then freeze what fits; best first."""
    queries, started = oracle.queries, time.perf_counter()

    def draw(generator: np.random.Generator) -> list[Trial]:
        return sample_trials(oracle, freed, settings.search_trials, settings.n_points, generator)

    # Where nothing is frozen nothing is known to be right, and a pool without slots cannot grow: all may be needed.
    columns = new if any(tree.slots and not all(tree.mask) for tree in pool) else freed
    while True:
        spent = budget.evaluations
        task = Task(pool, draw, oracle.function_set, columns, len(oracle.variables), budget, settings.rule.error, rng)
        candidates = regressor.regress(task)[: settings.pool_size]
        if not candidates:
            return [], None
        data = Dataset.of(sample_trials(oracle, freed, settings.n_trials, settings.n_points, rng))
        outcomes = _experiment(candidates, data, oracle, budget, settings, noise, pset)
        frozen = [freeze(outcome, data, settings.rule, noise) for outcome in outcomes]
        # What fits the trials of the search and not those of the experiment was no answer: go on from there.
        done = fits(outcomes[0], data, settings.rule, noise) or budget.used_up() or not settings.restart
        if done or budget.evaluations == spent:
            break
        pool = frozen
    best = outcomes[0]
    record = Round(
        freed,
        tuple(column for column in range(len(oracle.variables)) if column not in freed),
        frozen[0],
        tuple(best.errors.tolist()),
        tuple(map(tuple, best.constants.tolist())),
        len(frozen[0].slots),
        fits(best, data, settings.rule, noise),
        oracle.queries - queries,
        time.perf_counter() - started,
    )
    accepted = [
        tree for tree, outcome in zip(frozen, outcomes, strict=True) if fits(outcome, data, settings.rule, noise)
    ]
    return accepted or frozen, record


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


def _found(
    oracle: Oracle, hall: Hall, rng: np.random.Generator, settings: Settings, noise: float, budget: Budget
) -> bool:
    """Whether the best of the hall holds, constants as they are, on fresh uncontrolled data."""
    if not hall.best:
        return False
    if noise == 0 and hall.best[0][0] > settings.rule.error:
        return False
    data = Dataset.of(sample_trials(oracle, range(len(oracle.variables)), 1, settings.hall_points, rng))
    outcome = fit(_fixed(hall.best[0][1]), data, pset=hall.pset)
    budget.count(outcome.evaluations)
    rule = settings.rule if not settings.rule.raw else replace(settings.rule, raw=False, error=1e-12)
    return fits(outcome, data, rule, noise)


def fixed_error(tree: MaskedTree, data: Dataset, pset: gp.PrimitiveSetTyped | None) -> float:
    """Return the largest error of `tree` over the trials, its constants as they are."""
    return float(np.max(fit(_fixed(tree), data, pset=pset).errors))


def _fixed(tree: MaskedTree) -> MaskedTree:
    return MaskedTree(Constant(node.value, False, False, node.ret) if is_open(node) else node for node in tree)


def automatic_order(oracle: Oracle, rng: np.random.Generator, n_points: int = 15) -> tuple[int, ...]:
    """Return the variables, those first whose reduced form is simplest.

    One trial each with that variable alone free: how well a straight line does decides, and variables on which
    nothing depends come last.
    """
    line = MaskedTree.from_infix("C + C*x1")
    errors = []
    for column in range(len(oracle.variables)):
        (trial,) = sample_trials(oracle, [column], 1, n_points, rng)
        if np.ptp(trial.y) == 0:
            errors.append(np.inf)
            continue
        outcome = fit(line, [Trial(trial.X[:, [column]], trial.y)])
        errors.append(max(float(outcome.errors[0]), 1e-20))
    return tuple(sorted(range(len(errors)), key=lambda column: (errors[column], column)))
