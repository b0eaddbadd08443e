"""GP as a flat DEAP-style loop: `eaMasked`, one round in which only mutable nodes change."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
from deap import base, gp, tools
from msgspec import Meta

from deap_vsr.engine.fitting import Dataset, Fit, Points, fit
from deap_vsr.files import checked
from deap_vsr.gp import variation
from deap_vsr.gp.seen import Seen
from deap_vsr.lab.trials import Trial
from deap_vsr.search.checkpoint import tree_from, tree_state
from deap_vsr.search.schema import Count, TreeState
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import skeleton_key


class ErrorFitness(base.Fitness):
    """Smaller errors are better."""

    weights = (-1.0,)


class Individual(MaskedTree):
    """A masked tree with a fitness."""

    def __init__(self, content: Any) -> None:
        super().__init__(content)
        self.fitness = ErrorFitness()

    def __deepcopy__(self, memo: dict[int, Any]) -> Individual:
        """Nodes are immutable and shared; DEAP's general way takes ten times as long."""
        copied = type(self)(self)
        copied.fitness.wvalues = self.fitness.wvalues
        return copied


def evaluateFit(individual: Any, trials: Sequence[Points] | Dataset, pset: Any = None, **options: Any) -> Fit:
    """Fit the individual's constants in each trial: the `evaluate` of a toolbox."""
    return fit(individual, trials, pset=pset, **options)


def assignFit(individual: Any, outcome: Fit) -> None:
    """Write an outcome into an individual: fitness, and the constants fitted in the first trial.

    The error where the fitness is to be minimised, 1/(1 + error) where it is to be maximised; what is not
    finite is the worst, as DEAP ranks NaN above everything.
    """
    error = outcome.error
    if not math.isfinite(error):
        error = 1e300
    set_error(individual, error)
    for position, value in zip(outcome.tree.open_constants, outcome.constants[0].tolist(), strict=True):
        if math.isfinite(value):
            list.__setitem__(individual, position, variation.with_value(individual[position], value))


def selBestDistinct(individuals: Sequence[Any], k: int, n_random: int = 0, node_price: float = 0.03) -> list[Any]:
    """Select the best `k` - `n_random` distinct formulas and a few random ones.

    A node costs `node_price` decades of error, so that of two equal fits the shorter one stays. Formulas
    that differ only in the values of constants are one.
    """

    def price(individual: Any) -> float:
        quality = -individual.fitness.wvalues[0]  # the error, where it is minimised
        return float(np.log10(max(quality, 1e-30))) + node_price * len(individual) if quality > 0 else quality

    seen = set()
    distinct = []
    for individual in sorted(individuals, key=price):
        key = skeleton_key(individual)
        if key not in seen:
            seen.add(key)
            distinct.append(individual)
    chosen, rest = distinct[: max(k - n_random, 1)], distinct[max(k - n_random, 1) :]
    return chosen + random.sample(rest, min(n_random, len(rest)))


class GenerationState(TypedDict):
    """A :class:`Generation` in a checkpoint."""

    number: Count
    error: float
    size: Annotated[int, Meta(ge=1, le=10**7)]
    population: Annotated[list[TreeState], Meta(min_length=1)]
    seen: str
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Generation:
    """Where :func:`eaMasked` is: what it needs, beside the state of its random streams, to go on from there."""

    number: int
    error: float
    size: int
    population: list[Any]
    seen: Seen
    rows: Sequence[dict[str, Any]]

    @property
    def best(self) -> Any:
        """The individual with the best fitness."""
        return max(self.population, key=lambda individual: individual.fitness)

    def state(self) -> dict[str, Any]:
        """Return it in JSON values."""
        return {
            "number": self.number,
            "error": self.error,
            "size": self.size,
            "population": [tree_state(individual) for individual in self.population],
            "seen": self.seen.state(),
            "rows": list(self.rows),
        }

    @classmethod
    def restored(cls, saved: dict[str, Any], kind: type, pset: gp.PrimitiveSetTyped | None = None) -> Generation:
        """Return what :meth:`state` wrote, its individuals of type `kind`."""
        state = checked(saved, GenerationState, "")
        population = [kind(tree_from(tree, pset)) for tree in state["population"]]
        seen = Seen.restored(state["seen"])
        return cls(state["number"], state["error"], state["size"], population, seen, state["rows"])


def eaMasked(
    population: list[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    ngen: int,
    draw: Callable[[], list[Trial]],
    n_offspring: int | None = None,
    target: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
    stats: tools.Statistics | None = None,
    halloffame: tools.HallOfFame | None = None,
    verbose: bool = False,
    tell: Callable[[Generation], None] = lambda generation: None,
    resume: Generation | None = None,
    outcomes: list[Fit] | None = None,
) -> tuple[list[Any], tools.Logbook]:
    """Run one round of GP in which only mutable nodes change.

    ::

        for g in range(ngen + 1):
            offspring <- vary(population) if g > 0 else nobody
            trials <- draw()
            evaluate(population + offspring, trials)     # all on the same trials
            population <- select(population + offspring, len(population))

    Parameters
    ----------
    toolbox : needs ``evaluate(individual, trials)``, ``mate``, ``mutate``, ``select``, ``clone``; ``map`` is the only
        parallel seam. Where `evaluate` returns None, at a limit, children without an outcome are left out, and where
        one of the parents has none, the generation before stands. ``select`` returns some of those it is given, not
        copies.
    draw : callable
        Returns the trials of a generation; those of the oracle are fresh each time.
    n_offspring : int
        Children of a generation; by default as many as the population.
    target : float
        Error at which the round is over.
    stop : callable
        Asked after each generation whether to end.
    tell : callable
        Called with each :class:`Generation` after which the round goes on.
    resume : Generation, optional
        What `tell` was given: the round goes on from there, as if it had never been interrupted.
    outcomes : list, optional
        Holds in the end what `evaluate` returned for each of the population that is returned, in its order. Those of
        earlier generations are forgotten.
    """
    logbook = tools.Logbook()
    logbook.header = ["gen", "nevals", *(stats.fields if stats else [])]
    size = len(population)
    seen = Seen(skeleton_key(individual) for individual in population)
    first = 0
    if resume is not None:
        first, size, population, seen = resume.number + 1, resume.size, resume.population, resume.seen
        logbook.extend(resume.rows)
    for generation in range(first, ngen + 1):
        offspring = _vary(population, toolbox, cxpb, mutpb, n_offspring or size, seen) if generation else []
        everybody = population + offspring
        trials = Dataset.of(draw())
        fits = list(toolbox.map(functools.partial(toolbox.evaluate, trials=trials), everybody))
        if any(outcome is None for outcome in fits):  # cut short
            if generation > first and any(outcome is None for outcome in fits[: len(population)]):
                break  # the generation before stands
            everybody = [one for one, outcome in zip(everybody, fits, strict=True) if outcome is not None]
            fits = [outcome for outcome in fits if outcome is not None]
        for individual, outcome in zip(everybody, fits, strict=True):
            assignFit(individual, outcome)
        population = toolbox.select(everybody, size)
        if outcomes is not None:
            fit_of = {id(individual): outcome for individual, outcome in zip(everybody, fits, strict=True)}
            outcomes[:] = [fit_of[id(individual)] for individual in population]
        if halloffame is not None:
            halloffame.update(population)
        record = stats.compile(population) if stats else {}
        logbook.record(gen=generation, nevals=len(everybody), **record)
        if verbose:
            print(logbook.stream)
        best = max(population, key=lambda individual: individual.fitness)
        if _error(best) <= target or stop() or generation == ngen:
            break
        tell(Generation(generation, _error(best), size, population, seen, logbook))
    return population, logbook


def set_error(individual: Any, error: float) -> None:
    """Set the fitness: the error where it is to be minimised, 1/(1 + error) where it is to be maximised."""
    maximise = individual.fitness.weights[0] > 0
    individual.fitness.values = (1.0 / (1.0 + error) if maximise else error,)


def _error(individual: Any) -> float:
    value = float(individual.fitness.values[0])
    return 1.0 / value - 1.0 if individual.fitness.weights[0] > 0 else value


def _vary(
    population: Sequence[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    n_offspring: int,
    seen: Seen,
) -> list[Any]:
    """Return children of random parents: crossover, then mutation, each with its probability.

    A formula that this round remembers is not fitted again; `seen` is kept up to date.
    """
    offspring: list[Any] = []
    for _ in range(5 * n_offspring):
        child = toolbox.clone(random.choice(population))
        if random.random() < cxpb:
            other = toolbox.clone(random.choice(population))
            child, other = toolbox.mate(child, other)
        if random.random() < mutpb:
            (child,) = toolbox.mutate(child)
        key = skeleton_key(child)
        if key not in seen:
            seen.add(key)
            del child.fitness.values
            offspring.append(child)
            if len(offspring) == n_offspring:
                break
    return offspring
