"""GP as flat DEAP-style loops: `eaMasked` (one round) and `eaVertical` (the whole vertical search)."""

from __future__ import annotations

import copy
import functools
import math
import random
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from deap import base, gp, tools

from deap_vsr.engine.fitting import Dataset, Fit, Points, fit
from deap_vsr.errors import VsrError
from deap_vsr.gp import variation
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import Trial
from deap_vsr.search.checkpoint import Checkpoint, tree_from, tree_state
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.vertical import vertical
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
    maximise = individual.fitness.weights[0] > 0
    individual.fitness.values = (1.0 / (1.0 + error) if maximise else error,)
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


@dataclass(frozen=True)
class Generation:
    """Where :func:`eaMasked` is: what it needs, beside the state of its random streams, to go on from there."""

    number: int
    error: float
    size: int
    population: list[Any]
    seen: set[int]
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
            "seen": b64encode(np.array(sorted(self.seen), np.int64).tobytes()).decode(),
            "rows": list(self.rows),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], kind: type, pset: gp.PrimitiveSetTyped | None = None) -> Generation:
        """Return what :meth:`state` wrote, its individuals of type `kind`."""
        population = [kind(tree_from(tree, pset)) for tree in state["population"]]
        seen = set(np.frombuffer(b64decode(state["seen"]), np.int64).tolist())
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
        parallel seam. Where `evaluate` returns None for want of time, the generation before stands.
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
    """
    logbook = tools.Logbook()
    logbook.header = ["gen", "nevals", *(stats.fields if stats else [])]
    size = len(population)
    seen = {skeleton_key(individual) for individual in population}
    first = 0
    if resume is not None:
        first, size, population, seen = resume.number + 1, resume.size, resume.population, resume.seen
        logbook.extend(resume.rows)
    for generation in range(first, ngen + 1):
        offspring = _vary(population, toolbox, cxpb, mutpb, n_offspring or size, seen) if generation else []
        everybody = population + offspring
        trials = Dataset.of(draw())
        outcomes = list(toolbox.map(functools.partial(toolbox.evaluate, trials=trials), everybody))
        if any(outcome is None for outcome in outcomes):  # cut short
            if generation > first:
                break  # the generation before stands
            everybody = [one for one, outcome in zip(everybody, outcomes, strict=True) if outcome is not None]
            outcomes = [outcome for outcome in outcomes if outcome is not None]
        for individual, outcome in zip(everybody, outcomes, strict=True):
            assignFit(individual, outcome)
        population = toolbox.select(everybody, size)
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


def _error(individual: Any) -> float:
    value = float(individual.fitness.values[0])
    return 1.0 / value - 1.0 if individual.fitness.weights[0] > 0 else value


def _vary(
    population: Sequence[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    n_offspring: int,
    seen: set[int],
) -> list[Any]:
    """Return children of random parents: crossover, then mutation, each with its probability.

    A formula that this round has met before is not fitted again; `seen` is kept up to date.
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


# --- a user's own toolbox -----------------------------------------------------------------


def eaVertical(
    population: list[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    ngen: int,
    oracle: Oracle,
    schedule: Sequence[Sequence[int]] | None = None,
    settings: JointOptions | None = None,
    stats: tools.Statistics | None = None,
    halloffame: tools.HallOfFame | None = None,
    verbose: bool = False,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> tuple[list[Any], tools.Logbook]:
    """Run the whole vertical search with a DEAP script's own toolbox.

    ::

        for each variable: free it
            population <- eaMasked(population) with only that variable and constants as new terminals
            K fresh trials: fit, freeze what fits
        return the best expressions over all rounds, ranked on uncontrolled data

    Parameters
    ----------
    population, toolbox, cxpb, mutpb, stats, halloffame, verbose : as for ``deap.algorithms.eaSimple``
        The toolbox's operators must be those of ``deap_vsr`` and hold their ``pset``. It is copied, not changed;
        ``evaluate`` and ``select`` are replaced by :func:`evaluateFit` and :func:`selBestDistinct`.
    ngen : int
        Generations of each round.
    oracle : what can be asked for y; its variables are the arguments of the primitive set, in order
    schedule : groups of columns (from 0) in the order in which they are freed; default: one by one
    checkpoint : path, optional
        A file in which the state of the run is kept, every few seconds.
    resume : bool
        Go on from that file, if there is one; the result is that of an uninterrupted run.

    Returns
    -------
    population, logbook
        The hall as individuals, best first, and one entry for each generation, with its ``round``.
    """
    pset = _primitive_set_of(toolbox)
    if len(pset.arguments) != len(oracle.variables):
        raise VsrError(
            f"the primitive set has {len(pset.arguments)} arguments, the oracle {len(oracle.variables)} variables"
        )
    logbook = tools.Logbook()
    logbook.header = ["round", "gen", "nevals", *(stats.fields if stats else [])]
    regressor = _ToolboxRegressor(population, toolbox, pset, cxpb, mutpb, ngen, stats, halloffame, verbose, logbook)
    groups = tuple(map(tuple, schedule or [(column,) for column in range(len(oracle.variables))]))
    # The whole run follows the standard random module, as DEAP's users expect of one seed.
    rng = np.random.default_rng(random.getrandbits(64))
    chosen = settings or JointOptions(restart=False)
    kept = None
    if checkpoint is not None:
        identity = {"schedule": groups, "settings": asdict(chosen), "cxpb": cxpb, "mutpb": mutpb, "ngen": ngen}
        identity |= {"variables": [variable.name for variable in oracle.variables], "primitives": sorted(pset.mapping)}
        kept = Checkpoint(Path(checkpoint), identity, resume, extra=regressor.state)
        regressor.checkpoint = kept
    lab = Lab(oracle, rng=rng, pset=pset)
    outcome = vertical(lab, Joint(regressor, chosen), groups, checkpoint=kept)
    answer = []
    for error, tree in outcome.hall:
        individual = type(population[0])(tree)
        maximise = individual.fitness.weights[0] > 0
        individual.fitness.values = (1.0 / (1.0 + error) if maximise else error,)
        answer.append(individual)
    if halloffame is not None:
        halloffame.clear()
        halloffame.update(answer)
    return answer, logbook


@dataclass
class _ToolboxRegressor:
    """eaMasked with a user's toolbox, as a regressor."""

    population: list[Any]
    toolbox: base.Toolbox
    pset: gp.PrimitiveSetTyped
    cxpb: float
    mutpb: float
    ngen: int
    stats: tools.Statistics | None
    halloffame: tools.HallOfFame | None
    verbose: bool
    logbook: tools.Logbook
    rounds: int = 0
    checkpoint: Checkpoint | None = None

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the search itself: rounds, logbook, the standard ``random``."""
        if self.checkpoint is not None and self.checkpoint.extra_state:
            return self.checkpoint.extra_state  # not yet taken over
        return {"rounds": self.rounds, "logbook": list(self.logbook), "random": random.getstate()}

    def _restore(self) -> None:
        """Take over the state of a checkpoint, once."""
        state = self.checkpoint.extra_state if self.checkpoint is not None else {}
        if not state or self.checkpoint is None:
            return
        self.checkpoint.extra_state = {}
        self.rounds = state["rounds"]
        self.logbook.extend(state["logbook"])
        version, numbers, gauss = state["random"]
        random.setstate((version, tuple(numbers), gauss))

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the task's candidates; in the first round, those the user brought that use no controlled variable."""
        self._restore()
        toolbox = _with_terminals(self.toolbox, self.pset, task.columns)
        individuals = [type(self.population[0])(tree) for tree in task.candidates]
        if not individuals:
            held = set(self.pset.arguments) - {self.pset.arguments[column] for column in task.columns}
            individuals = [i for i in self.population if not any(n.value in held for n in i if not n.arity)]
            individuals = individuals or list(self.population)
        resume = None
        if task.resume is not None:
            resume = Generation.restored(task.resume, type(self.population[0]), self.pset)
        while len(individuals) < len(self.population) and resume is None:
            individuals.append(toolbox.mutate(toolbox.clone(random.choice(individuals)))[0])
        known = 0 if resume is None else len(resume.rows)

        def tell(generation: Generation) -> None:
            nonlocal known
            for row in generation.rows[known:]:
                task.budget.count(row["nevals"])
            known = len(generation.rows)
            task.tell(generation.error, MaskedTree(generation.best), generation.state)

        found, logbook = eaMasked(
            individuals,
            toolbox,
            self.cxpb,
            self.mutpb,
            self.ngen,
            draw=lambda: task.draw(task.rng),
            target=task.target,
            stats=self.stats,
            halloffame=None,
            verbose=self.verbose,
            tell=tell,
            resume=resume,
        )
        self.rounds += 1
        for number, row in enumerate(logbook):
            if number >= known:
                task.budget.count(row["nevals"])
            self.logbook.record(round=self.rounds, **row)
        return [
            Candidate(tree, np.array([_error(individual)]), np.array([tree.constants]).reshape(1, tree.n_constants))
            for individual in found
            if (tree := MaskedTree(individual))
        ]


def _registered(toolbox: base.Toolbox) -> dict[str, functools.partial[Any]]:
    return {name: item for name, item in vars(toolbox).items() if isinstance(item, functools.partial)}


def _primitive_set_of(toolbox: base.Toolbox) -> gp.PrimitiveSetTyped:
    """Return the set that the toolbox's `mutate` holds; clear errors for what would ignore masks."""
    for alias in ("mate", "mutate"):
        item = _registered(toolbox).get(alias)
        if item is None:
            raise VsrError(f"the toolbox has no {alias}; register deap_vsr's cxOnePoint and mutUniform, say")
        function = item.func
        while hasattr(function, "__wrapped__"):  # behind staticLimit
            function = function.__wrapped__
        if getattr(function, "__module__", "") == "deap.gp":
            raise VsrError(
                f"toolbox.{alias} is deap.gp's {function.__name__}, which changes frozen nodes; "
                f"register deap_vsr.{function.__name__} instead"
            )
    pset = _registered(toolbox)["mutate"].keywords.get("pset")
    if not isinstance(pset, gp.PrimitiveSetTyped):
        raise VsrError("toolbox.mutate holds no primitive set; register it with pset=...")
    return pset


def _with_terminals(toolbox: base.Toolbox, pset: gp.PrimitiveSetTyped, columns: Sequence[int]) -> base.Toolbox:
    """Return a copy of the toolbox in which `pset` is a view with only the variables `columns`."""
    view = copy.copy(pset)
    allowed = {pset.arguments[column] for column in columns}
    view.terminals = defaultdict(list)
    for kind, terminals in pset.terminals.items():
        view.terminals[kind] = [
            t
            for t in terminals
            if isinstance(t, gp.MetaEphemeral) or t.value not in pset.arguments or t.value in allowed
        ]

    def replaced(value: Any) -> Any:
        if value is pset:
            return view
        if isinstance(value, functools.partial):
            keywords = {name: replaced(item) for name, item in value.keywords.items()}
            return functools.partial(value.func, *map(replaced, value.args), **keywords)
        return value

    mine = base.Toolbox()
    for alias, item in vars(toolbox).items():
        setattr(mine, alias, replaced(item))
    mine.register("evaluate", evaluateFit, pset=pset, n_starts=0, max_iterations=5)
    mine.register("select", selBestDistinct)
    return mine
