"""GP as a regressor of the shared contract: with any toolbox, and with ours."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from deap import base, gp, tools

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.gp import variation
from deap_vsr.gp.algorithms import Generation, Individual, eaMasked, restore_rows, rows_of, selBestDistinct
from deap_vsr.gp.toolbox import controlled, primitive_set_of, with_terminals
from deap_vsr.lab.budget import Budget
from deap_vsr.search.checkpoint import check_trees, restoring
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.tree import Constant, MaskedTree, is_mutable, primitive_set, variable
from deap_vsr.tree.simplify import skeleton_key

#: The standard ``random`` is one for all threads: who has seeded it keeps it to itself, or no run were reproducible.
_RANDOM = threading.RLock()


@dataclass
class ToolboxRegressor:
    """:func:`eaMasked` with any toolbox, as a regressor of the shared contract.

    Attributes
    ----------
    toolbox : base.Toolbox
        As for :func:`eaMasked`, its operators those of ``deap_vsr``, `mutate` with its ``pset``; it is copied, not
        changed. Without `beginners` it needs ``individual()`` as well.
    cxpb, mutpb : float
        Probabilities of crossover and of mutation.
    ngen : int
        Generations of a round.
    size : int
        Of the population.
    n_offspring : int, optional
        Children of a generation; by default as many as the population.
    kind : type
        The class of individuals.
    beginners : individuals for tasks without candidates
        Those that use a controlled variable are left out, unless all do.
    pset : primitive set, optional
        What the nodes of trees mean; by default they are the catalogue's.
    stats, verbose : as for ``deap.algorithms.eaSimple``
    seeded : bool
        Whether the standard ``random`` is seeded from the task's generator and restored; otherwise it is used as it is.
    elite : bool
        Whether the best fit of a generation stays, whatever the toolbox selects.
    counted : bool
        Whether `evaluate` counts what it spends; otherwise each individual of a generation counts for one evaluation.
    logbook : one entry for each generation, with its ``round``
    rounds : int
        How many rounds the logbook holds.
    """

    toolbox: base.Toolbox
    cxpb: float
    mutpb: float
    ngen: int
    size: int = 50
    n_offspring: int | None = None
    kind: type[Any] = Individual
    beginners: Sequence[Any] = ()
    pset: gp.PrimitiveSetTyped | None = None
    stats: tools.Statistics | tools.MultiStatistics | None = None
    verbose: bool = False
    seeded: bool = True
    elite: bool = False
    counted: bool = False
    logbook: tools.Logbook = field(default_factory=tools.Logbook)
    rounds: int = 0

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the task's candidates."""
        if not self.seeded:
            return self._regress(task)
        with _RANDOM:
            before = random.getstate()
            try:
                if task.resume is None:
                    random.seed(int(task.rng.integers(2**63)))
                else:
                    with restoring():
                        restore_random(task.resume["random"])
                return self._regress(task)
            finally:
                random.setstate(before)

    def _regress(self, task: Task) -> list[Candidate]:
        toolbox = with_terminals(self.toolbox, task.columns)
        if not self.counted:
            toolbox.register("map", _count_each, toolbox.map, task.budget)
        resume = None
        if task.resume is not None:
            with restoring():
                resume = Generation.restored(task.resume, self.kind, self.pset)
                check_trees(resume.population if self.pset is None else [], task.n_vars)
        outcomes: list[Fit] = []
        logbook = tools.Logbook()
        logbook.log_header = not self.rounds

        def tell(generation: Generation) -> None:
            def state() -> dict[str, Any]:
                return ({"random": random.getstate()} if self.seeded else {}) | generation.state()

            task.tell(generation.error, MaskedTree(generation.best), state)

        try:
            population, _ = eaMasked(
                self._beginners(task, toolbox) if resume is None else [],
                toolbox,
                self.cxpb,
                self.mutpb,
                self.ngen,
                lambda: task.draw(task.rng),
                self.stats,
                None,
                self.verbose,
                n_offspring=self.n_offspring,
                target=task.target,
                stop=lambda: task.budget.used_up() is not None,
                tell=tell,
                resume=resume,
                outcomes=outcomes,
                elite=self.elite,
                logbook=logbook,
                labels={"round": self.rounds + 1},
            )
        finally:  # also of a round that is interrupted
            self.rounds += 1
            restore_rows(self.logbook, rows_of(logbook))
        found = list(zip(population, outcomes, strict=True))
        if self.elite:  # in the order of a script's own selection, if it has one
            found.sort(key=lambda one: one[1].error if np.isfinite(one[1].error) else np.inf)
            once: dict[int, tuple[Any, Fit]] = {}
            for individual, outcome in found:
                once.setdefault(skeleton_key(individual), (individual, outcome))
            found = list(once.values())
        return [Candidate(MaskedTree(individual), outcome.errors, outcome.constants) for individual, outcome in found]

    def _beginners(self, task: Task, toolbox: base.Toolbox) -> list[Any]:
        """Return the first population: the task's candidates or else beginners, and mutants of them."""
        population = [self.kind(tree) for tree in task.candidates]
        if not population and self.beginners:
            held = controlled(primitive_set_of(self.toolbox), task.columns)
            population = [one for one in self.beginners if not any(n.value in held for n in one if not n.arity)]
            population = population or list(self.beginners)
        if not population:
            population = [toolbox.individual() for _ in range(self.size)]
        while len(population) < self.size:  # a pool of one would be no population
            population.append(toolbox.mutate(toolbox.clone(random.choice(population)))[0])
        return population


def restore_random(state: Sequence[Any]) -> None:
    """Set the standard ``random`` to what its ``getstate`` returned, through JSON or not."""
    version, numbers, gauss = state
    random.setstate((version, tuple(numbers), gauss))


def _count_each(
    mapped: Callable[..., Iterable[Any]], budget: Budget, evaluate: Callable[[Any], Any], individuals: Sequence[Any]
) -> list[Any]:
    """Evaluate individuals through a toolbox's `map`, and count one evaluation for each."""
    outcomes = list(mapped(evaluate, individuals))
    budget.count(len(outcomes))
    return outcomes


@dataclass(frozen=True)
class GpRegressor:
    """GP with our own toolbox, made anew for each task.

    Attributes
    ----------
    population : int
    offspring : int
    generations : int
        The most for one round.
    cxpb, mutpb : float
        Probabilities of crossover and of mutation.
    max_size : int
        Most nodes that a round may add to the largest tree it starts from.
    optimizer, gradient : str
        How constants are fitted (see :func:`deap_vsr.engine.fitting.fit`).
    """

    population: int = 50
    offspring: int = 100
    generations: int = 100_000
    cxpb: float = 0.3
    mutpb: float = 0.9
    max_size: int = 25
    optimizer: str = "lm"
    gradient: str = "exact"
    max_iterations: int = 5
    n_starts: int = 0

    def settings(self) -> dict[str, Any]:
        """Return its numbers, for results."""
        return asdict(self)

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the task's candidates; what has no finite error is left out."""
        if not set(task.function_set) - {"const"}:
            return self._leaves(task)
        regressor = ToolboxRegressor(
            self._toolbox(task),
            self.cxpb,
            self.mutpb,
            self.generations,
            size=self.population,
            n_offspring=self.offspring,
            counted=True,
        )
        return [candidate for candidate in regressor.regress(task) if np.isfinite(np.mean(candidate.errors))]

    def _leaves(self, task: Task) -> list[Candidate]:
        """Return what can be said without an operator: a variable, or a constant; best first."""
        data, evaluate = Dataset.of(task.draw(task.rng)), self._evaluate(task.budget)
        leaves = [[variable(column + 1)] for column in task.columns] + [[Constant(1.0)]]
        fits = [evaluate(Individual(leaf), data) for leaf in leaves]
        found = [outcome for outcome in fits if outcome is not None and np.isfinite(outcome.error)]
        return [Candidate.of(outcome) for outcome in sorted(found, key=lambda outcome: outcome.error)]

    def _toolbox(self, task: Task) -> base.Toolbox:
        pset = primitive_set(task.function_set, task.n_vars)
        toolbox = base.Toolbox()
        toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=3)
        toolbox.register("individual", lambda expr: Individual(expr()), toolbox.expr)
        toolbox.register("expr_mut", gp.genHalfAndHalf, min_=0, max_=2)
        toolbox.register("mate", variation.cxOnePoint)
        toolbox.register("mutate", _mutate, expr=toolbox.expr_mut, pset=pset)
        toolbox.register("select", selBestDistinct, n_random=self.population // 10)
        toolbox.register("evaluate", self._evaluate(task.budget))
        limit = variation.staticLimit(len, max((len(tree) for tree in task.candidates), default=0) + self.max_size)
        toolbox.decorate("mate", limit)
        toolbox.decorate("mutate", limit)
        return toolbox

    def _evaluate(self, budget: Budget) -> Callable[[Individual, Dataset], Fit | None]:
        """Return the `evaluate` of a task: it counts, and gives up at a limit, but for the very first."""
        begun = False

        def evaluate(individual: Individual, trials: Dataset) -> Fit | None:
            nonlocal begun
            if begun and (budget.used_up() == "seconds" or budget.evaluations_left() <= 0):
                return None
            begun = True
            outcome = fit(
                individual,
                trials,
                optimizer=self.optimizer,
                gradient=self.gradient,
                n_starts=self.n_starts,
                max_iterations=self.max_iterations,
                time_limit=None if self.optimizer == "lm" else budget.seconds_left(),
            )
            budget.count(outcome.evaluations)
            return outcome

        return evaluate


def _mutate(individual: Any, expr: Callable[..., Any], pset: gp.PrimitiveSetTyped) -> tuple[Any]:
    """Apply one mutation, drawn at random."""
    draw = random.random()
    if draw < 0.3:
        return variation.mutTerm(individual, expr, pset)
    if draw < 0.5:
        return variation.mutGrow(individual, expr, pset)
    if draw < 0.7:
        return variation.mutUniform(individual, expr, pset)
    if draw < 0.8:
        return variation.mutInsert(individual, pset)
    if draw < 0.9:
        mutable = [i for i, node in enumerate(individual) if is_mutable(node)]  # the root as well
        return variation.replace_node(individual, pset, mutable)
    return variation.mutShrink(individual)
