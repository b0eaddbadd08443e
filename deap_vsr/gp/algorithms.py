"""GP as a flat DEAP-style loop: `eaMasked`, one round in which only mutable nodes change."""

from __future__ import annotations

import functools
import math
import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
from deap import base, gp, tools
from msgspec import Meta

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.errors import VsrError
from deap_vsr.files import checked
from deap_vsr.gp import variation
from deap_vsr.gp.scoring import evaluateFit, scored, takes_trials, values_of
from deap_vsr.gp.seen import Seen
from deap_vsr.gp.toolbox import primitive_set_of
from deap_vsr.lab.trials import Trial
from deap_vsr.search.checkpoint import expect, tree_from, tree_state
from deap_vsr.search.schema import Count, TreeState
from deap_vsr.tree import MaskedTree, is_ephemeral
from deap_vsr.tree.simplify import skeleton_key

__all__ = ["Individual", "assignFit", "eaMasked", "evaluateFit", "selBestDistinct"]


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


def assignFit(individual: Any, outcome: Fit) -> None:
    """Write an outcome into an individual: fitness, and the constants fitted in the first trial.

    The fitness is what a loss of the script's own says; else the error where it is to be minimised, and
    1/(1 + error) where it is to be maximised. What is not finite is the worst, as DEAP ranks NaN above everything.
    """
    individual.fitness.values = values_of(outcome, individual.fitness.weights)
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
    places: Annotated[list[Count], Meta(min_length=1)]
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
    best: Any = None

    def state(self) -> dict[str, Any]:
        """Return it in JSON values; an individual that was selected several times is one."""
        once = _once(self.population)
        place = {id(individual): i for i, individual in enumerate(once)}
        return {
            "number": self.number,
            "error": self.error,
            "size": self.size,
            "population": [tree_state(individual) for individual in once],
            "places": [place[id(individual)] for individual in self.population],
            "seen": self.seen.state(),
            "rows": rows_of(self.rows) if isinstance(self.rows, tools.Logbook) else list(self.rows),
        }

    @classmethod
    def restored(cls, saved: dict[str, Any], kind: type, pset: gp.PrimitiveSetTyped | None = None) -> Generation:
        """Return what :meth:`state` wrote, its individuals of type `kind`."""
        state = checked(saved, GenerationState, "")
        once = [kind(tree_from(tree, pset)) for tree in state["population"]]
        expect(max(state["places"]) < len(once), "places of individuals that there are")
        population = [once[place] for place in state["places"]]
        seen = Seen.restored(state["seen"])
        return cls(state["number"], state["error"], state["size"], population, seen, state["rows"])


def eaMasked(
    population: list[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    ngen: int,
    draw: Callable[[], Sequence[Trial]] | Sequence[Trial],
    stats: tools.Statistics | tools.MultiStatistics | None = None,
    halloffame: tools.HallOfFame | None = None,
    verbose: bool = False,
    *,
    n_offspring: int | None = None,
    target: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[Generation], None] = lambda generation: None,
    resume: Generation | None = None,
    outcomes: list[Fit] | None = None,
    elite: bool = False,
    logbook: tools.Logbook | None = None,
    labels: Mapping[str, Any] | None = None,
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
    population : replaced by the result, as by ``deap.algorithms.eaSimple``; untouched if anything is raised
    toolbox : needs ``mate``, ``mutate``, ``select``, ``clone``; ``map`` is the only parallel seam
        ``evaluate(individual, trials)`` returns an outcome, or None at a limit: children without one are left out, and
        where one of the parents has none the generation before stands. A script's own scoring is used as by
        :func:`deap_vsr.eaVertical`: ``loss(y, prediction, individual)``, or ``evaluate(individual, X, y)``. ``select``
        returns some of those it is given, not copies.
    draw : trials, or a callable that returns those of a generation; those of the oracle are fresh each time
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
    elite : bool
        Whether the best fit of a generation stays, whatever ``select`` chooses.
    logbook, labels : where generations are recorded, and what is recorded with each, in columns of their own
    """
    given, labels = population, dict(labels or {})
    logbook = tools.Logbook() if logbook is None else logbook
    logbook.header = [*labels, "gen", "nevals", *(stats.fields if stats else [])]
    evaluate = _evaluating(toolbox, population)
    population = [toolbox.clone(individual) for individual in population]
    size = len(population)
    seen = Seen(skeleton_key(individual) for individual in population)
    first = 0
    if resume is not None:
        first, size, population, seen = resume.number + 1, resume.size, resume.population, resume.seen
        restore_rows(logbook, resume.rows)
    for generation in range(first, ngen + 1):
        offspring = _vary(population, toolbox, cxpb, mutpb, n_offspring or size, seen) if generation else []
        everybody = _once([*population, *offspring])
        trials = Dataset.of(draw() if callable(draw) else draw)
        fits = mapped(toolbox, functools.partial(evaluate, trials=trials), [_opened(one) for one in everybody])
        if generation > first and any(outcome is None for outcome in fits[: len(_once(population))]):
            break  # cut short among the parents: the generation before stands
        fitted = [(one, outcome) for one, outcome in zip(everybody, fits, strict=True) if outcome is not None]
        for individual, outcome in fitted:
            assignFit(individual, outcome)
        everybody = [individual for individual, _ in fitted]
        fit_of = {id(individual): outcome for individual, outcome in fitted}
        population = _selected(everybody, fit_of, toolbox, size, elite)
        if outcomes is not None:
            outcomes[:] = [fit_of[id(individual)] for individual in population]
        if halloffame is not None:
            halloffame.update(population)
        record = stats.compile(population) if stats else {}
        logbook.record(**labels, gen=generation, nevals=len(everybody), **record)
        if verbose:
            print(logbook.stream)
        best = min(population, key=lambda individual: _rank(fit_of[id(individual)]))
        error = fit_of[id(best)].error
        if error <= target or stop() or generation == ngen:
            break
        tell(Generation(generation, error, size, population, seen, logbook, best))
    given[:] = population
    return population, logbook


def _evaluating(toolbox: base.Toolbox, population: Sequence[Any]) -> Callable[..., Any]:
    """Return what evaluates individuals on trials: what the toolbox has for that, or what its loss makes of a fit."""
    own = getattr(toolbox, "evaluate", None)
    if own is not None and takes_trials(own):
        return own  # type: ignore[no-any-return]
    weights = population[0].fitness.weights if population else (-1.0,)
    return scored(toolbox, primitive_set_of(toolbox), weights, True, 4, n_starts=0, max_iterations=5)


def _opened(individual: Any) -> Any:
    """Return the individual itself, its ephemeral constants open ones of ours: their classes cannot be shipped."""
    for position, node in enumerate(individual):
        if is_ephemeral(node):
            list.__setitem__(individual, position, variation.with_value(node, node.value))
    return individual


def mapped(toolbox: base.Toolbox, function: Callable[..., Any], individuals: Sequence[Any]) -> list[Any]:
    """Return what the toolbox's `map` gives; a clear error where something cannot be sent to other processes."""
    try:
        return list(toolbox.map(function, individuals))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error).lower() and not isinstance(error, pickle.PicklingError):
            raise
        raise VsrError(
            f"toolbox.map sends work to other processes, and something cannot be sent: {error}. Primitives and a loss "
            f"must be functions of a module, def and not lambda"
        ) from error


def _rank(outcome: Fit) -> float:
    return outcome.error if math.isfinite(outcome.error) else math.inf


def _once(individuals: Sequence[Any]) -> list[Any]:
    """Return each individual once, in order: a tournament may choose one several times."""
    return list({id(individual): individual for individual in individuals}.values())


def _selected(
    everybody: Sequence[Any], fit_of: Mapping[int, Fit], toolbox: base.Toolbox, size: int, elite: bool
) -> list[Any]:
    """Return those that the toolbox selects; the best fit stays in the place of the last, if that is wanted."""
    population = list(toolbox.select(everybody, size))
    if elite and everybody:
        best = min(everybody, key=lambda individual: _rank(fit_of[id(individual)]))
        if not any(individual is best for individual in population):
            population[-1:] = [best]
    return population


def rows_of(logbook: tools.Logbook) -> list[dict[str, Any]]:
    """Return the rows of a logbook, those of a ``MultiStatistics`` with its chapters in them."""
    rows: list[dict[str, Any]] = [dict(row) for row in logbook]
    for name, chapter in logbook.chapters.items():
        for row, part in zip(rows, rows_of(chapter), strict=True):
            row[name] = {key: value for key, value in part.items() if key not in row}
    return rows


def restore_rows(logbook: tools.Logbook, rows: Sequence[dict[str, Any]]) -> None:
    """Record rows that :func:`rows_of` returned."""
    for row in rows:
        logbook.record(**row)


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
