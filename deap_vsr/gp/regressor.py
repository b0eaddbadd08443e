"""GP as a regressor of the shared contract."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from deap import base, gp

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.gp import variation
from deap_vsr.gp.algorithms import Generation, Individual, eaMasked, selBestDistinct
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.tree import MaskedTree, primitive_set


@dataclass(frozen=True)
class GpRegressor:
    """GP as a regressor of the shared contract.

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
        """Grow the task's candidates; the standard ``random`` is seeded from the task's and restored."""
        state = random.getstate()
        if task.resume is None:
            random.seed(int(task.rng.integers(2**63)))
        else:
            version, numbers, gauss = task.resume["random"]
            random.setstate((version, tuple(numbers), gauss))
        try:
            return self._regress(task)
        finally:
            random.setstate(state)

    def _regress(self, task: Task) -> list[Candidate]:
        pset = round_set(task.function_set, task.columns, task.n_vars)
        largest = max((len(tree) for tree in task.candidates), default=0) + self.max_size
        toolbox = self._toolbox(pset, largest)
        outcomes: list[Fit] = []
        begun = False

        def evaluate(individual: Individual, trials: Dataset) -> Fit | None:
            nonlocal begun
            if begun and task.budget.used_up() == "seconds":
                return None
            begun = True
            outcome = fit(
                individual,
                trials,
                optimizer=self.optimizer,
                gradient=self.gradient,
                n_starts=self.n_starts,
                max_iterations=self.max_iterations,
                time_limit=None if self.optimizer == "lm" else task.budget.seconds_left(),
            )
            task.budget.count(outcome.evaluations)
            return outcome

        toolbox.register("evaluate", evaluate)

        def tell(generation: Generation) -> None:
            best = MaskedTree(generation.best)
            task.tell(generation.error, best, lambda: {"random": random.getstate(), **generation.state()})

        resume = Generation.restored(task.resume, Individual) if task.resume is not None else None
        population, _ = eaMasked(
            self._beginners(task, toolbox) if resume is None else [],
            toolbox,
            self.cxpb,
            self.mutpb,
            self.generations,
            draw=lambda: task.draw(task.rng),
            n_offspring=self.offspring,
            target=task.target,
            stop=lambda: task.budget.used_up() is not None,
            tell=tell,
            resume=resume,
            outcomes=outcomes,
        )
        return [
            Candidate(MaskedTree(individual), outcome.errors, outcome.constants, outcome.evaluations)
            for individual, outcome in zip(population, outcomes, strict=True)
            if np.isfinite(outcome.error)
        ]

    def _beginners(self, task: Task, toolbox: base.Toolbox) -> list[Individual]:
        """Return the first population: random trees, or the task's candidates and mutants of them."""
        population = [Individual(tree) for tree in task.candidates]
        while len(population) < self.population and not task.candidates:
            population.append(Individual(toolbox.expr()))
        while len(population) < self.population:  # a pool of one would be no population
            population.append(toolbox.mutate(toolbox.clone(random.choice(population)))[0])
        return population

    def _toolbox(self, pset: gp.PrimitiveSetTyped, largest: int) -> base.Toolbox:
        toolbox = base.Toolbox()
        toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=3)
        toolbox.register("expr_mut", gp.genHalfAndHalf, min_=0, max_=2)
        toolbox.register("mate", variation.cxOnePoint)
        toolbox.register("mutate", _mutate, expr=toolbox.expr_mut, pset=pset)
        toolbox.register("select", selBestDistinct, n_random=self.population // 10)
        limit = variation.staticLimit(len, largest)
        toolbox.decorate("mate", limit)
        toolbox.decorate("mutate", limit)
        return toolbox


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
        return variation.mutNodeReplacement(individual, pset)
    return variation.mutShrink(individual)


def round_set(function_set: Sequence[str], columns: Sequence[int], n_vars: int) -> gp.PrimitiveSetTyped:
    """Return the primitive set of a round: of the variables, only `columns` are terminals."""
    pset = primitive_set(function_set, n_vars)
    allowed = {f"x{column + 1}" for column in columns}
    for kind, terminals in pset.terminals.items():
        pset.terminals[kind] = [t for t in terminals if isinstance(t, gp.MetaEphemeral) or t.value in allowed]
    return pset
