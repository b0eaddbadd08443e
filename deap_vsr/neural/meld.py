"""GPMeld: a policy's batch is the first population of GP, and what GP makes of it is learnt from."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
from deap import algorithms, base, gp, tools

from deap_vsr.gp import variation
from deap_vsr.gp.algorithms import Individual
from deap_vsr.gp.toolbox import restricted
from deap_vsr.neural.policy import Samples, Writer
from deap_vsr.neural.scoring import Scored, Scorer
from deap_vsr.search.contract import Task
from deap_vsr.tree import MaskedTree, primitive_set


@dataclass(frozen=True)
class Meld:
    """Numbers of GP within GPMeld; with 0 generations there is none.

    A child that breaks a hard prior is replaced by its parent. The best `hall` distinct formulas of all generations,
    none of which the policy has written in this batch, come back.
    """

    generations: int = 0
    hall: int = 50
    tournament: int = 5
    cxpb: float = 0.5
    mutpb: float = 0.5


@dataclass(frozen=True, eq=False)
class Melded:
    """What GP found: samples as if a policy had written them, and how they fit."""

    samples: Samples
    scored: Scored


def toolbox_of(task: Task, meld: Meld) -> base.Toolbox:
    """Return the operators of GPMeld: one-point crossover, and one of four mutations."""
    pset = restricted(primitive_set(task.function_set, task.n_vars), task.columns)
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genFull, min_=0, max_=3)
    toolbox.register("mate", variation.cxOnePoint)
    toolbox.register("mutate", _mutate, expr=toolbox.expr, pset=pset)
    toolbox.register("select", tools.selTournament, tournsize=meld.tournament)
    return toolbox


def _mutate(individual: Any, expr: Callable[..., Any], pset: gp.PrimitiveSetTyped) -> tuple[Any]:
    kind = random.randrange(4)
    if kind == 0:
        return variation.mutUniform(individual, expr, pset)
    if kind == 1:
        return variation.mutNodeReplacement(individual, pset)
    if kind == 2:
        return variation.mutInsert(individual, pset)
    return variation.mutShrink(individual)


def melded(
    trees: Sequence[MaskedTree], batch: Scored, toolbox: base.Toolbox, meld: Meld, writer: Writer,
    scorer: Scorer, seed: int,
) -> Melded | None:  # fmt: skip
    """Run GP from a batch; None where nothing new has come of it, or the search is over before it has ended.

    ::

        population <- the batch
        for g in range(generations):
            population <- vary(select(population));  what breaks a hard prior goes back to its parent
            evaluate(population);  hall <- best distinct of hall and population
        return the hall, without what was in the batch
    """
    population = [_individual(tree, error) for tree, error in zip(trees, batch.errors, strict=True)]
    written = set(batch.keys)
    new: set[int] = set()
    hall: dict[int, tuple[float, list[int]]] = {}
    with _seeded(seed):
        for _ in range(meld.generations):
            parents = toolbox.select(population, len(population))
            population = _legal(algorithms.varAnd(parents, toolbox, meld.cxpb, meld.mutpb), parents, toolbox, writer)
            found = scorer.score(population)
            if found is None or scorer.over:
                return None
            new.update(np.array(found.keys)[found.new].tolist())
            for individual, error, key in zip(population, found.errors, found.keys, strict=True):
                individual.fitness.values = (_finite(error),)
                if key not in written and np.isfinite(error) and key not in hall:
                    hall[key] = float(error), writer.library.tokens(individual)
            hall = dict(nsmallest(meld.hall, hall.items(), key=lambda item: item[1][0]))
    if not hall:
        return None
    samples = writer.replay([sequence for _, sequence in hall.values()])
    errors = np.array([error for error, _ in hall.values()])
    return Melded(samples, Scored(errors, list(hall), np.array([key in new for key in hall])))


def _legal(
    children: list[Individual], parents: Sequence[Individual], toolbox: base.Toolbox, writer: Writer
) -> list[Individual]:
    """Return children, a copy of its parent in the place of each that breaks a hard prior."""
    legal = writer.replay([writer.library.tokens(child) for child in children]).legal
    return [
        child if keeps else toolbox.clone(parent) for child, parent, keeps in zip(children, parents, legal, strict=True)
    ]


def _individual(tree: MaskedTree, error: float) -> Individual:
    individual = Individual(tree)
    individual.fitness.values = (_finite(error),)
    return individual


def _finite(error: float) -> float:
    """DEAP ranks NaN above everything, and what is infinite has to be worse than any number."""
    return float(error) if np.isfinite(error) else 1e300


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let the standard ``random``, which DEAP draws from, begin at a seed; afterwards it is as it was."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
