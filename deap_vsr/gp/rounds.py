"""The pieces of a vertical search for a generation loop of one's own: `rounds` opens them, `freeze` closes each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from deap import base

from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.errors import VsrError
from deap_vsr.gp.answers import answers_of, joined, last_data
from deap_vsr.gp.scoring import values_of
from deap_vsr.gp.script import Script, groups_of
from deap_vsr.gp.toolbox import with_terminals
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.records import Found, State
from deap_vsr.search.round import free
from deap_vsr.search.tables import Known
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import skeleton_key


@dataclass
class Step:
    """One round, open: what a loop of one's own needs.

    Attributes
    ----------
    toolbox : the script's toolbox for this round
        ``evaluate(individual)`` returns fitness values on the round's trials, constants fitted; new material has, of
        the variables, only those that are new. Any algorithm of DEAP runs with it.
    trials : the data of the round: the freed variables vary, the others are held
    freed, new : columns that are free, and those that were not before
    number, last : which round it is, from 1, and whether it is the last
    """

    toolbox: base.Toolbox
    trials: list[Trial]
    freed: tuple[int, ...]
    new: tuple[int, ...]
    number: int
    last: bool
    script: Script = field(repr=False)
    lab: Lab = field(repr=False)
    settings: JointOptions = field(repr=False)
    states: list[State] = field(repr=False)
    closed: bool = field(default=False, repr=False)

    def population(self, n: int) -> list[Any]:
        """Return individuals to begin with: new ones in the first round, later what was frozen and mutants of it."""
        begun = [self.script.kind(state.tree) for state in self.states if not state.empty][:n]
        if not begun:
            return [self.toolbox.individual() for _ in range(n)]
        grown = list(begun)
        while len(grown) < n:
            (mutant,) = self.toolbox.mutate(self.toolbox.clone(random.choice(begun)))
            grown.append(mutant)
        return grown


def rounds(
    toolbox: base.Toolbox,
    oracle: Oracle,
    schedule: str | Sequence[Any] | None = None,
    *,
    fit_constants: bool | str = True,
    settings: JointOptions | None = None,
    max_queries: int | None = None,
) -> Iterator[Step]:
    """Yield the rounds of a vertical search, one variable after the other, for a loop of one's own.

    ::

        for step in rounds(toolbox, oracle):
            population = step.population(60)
            population, log = any_algorithm(population, step.toolbox, ...)
            population = freeze(population, step)

    The arguments are those of :func:`deap_vsr.eaVertical`; the toolbox needs ``individual`` as well. The search ends
    early where a formula holds for all variables.
    """
    if not hasattr(toolbox, "individual"):
        raise VsrError("the toolbox has no individual; rounds begin with new ones")
    before = random.getstate()
    script = Script.of([toolbox.individual()], toolbox, oracle, fit_constants)
    random.setstate(before)
    options = settings or JointOptions()
    lab = Lab(oracle, Budget(queries=max_queries), np.random.default_rng(random.getrandbits(64)), pset=script.pset)
    groups = groups_of(schedule, script, oracle) or tuple((column,) for column in range(lab.n_vars))
    lab.begin()
    lab = lab.at(lab.evidence.at(options.rule))
    states: list[State] = [State.start()]
    freed: tuple[int, ...] = ()
    for number, new in enumerate(groups, 1):
        freed = (*freed, *new)
        trials = lab.trials(freed, options.search_trials, options.n_points)
        # Where nothing is frozen nothing is known to be right, and all variables may be needed.
        frozen = any(state.tree.slots and not all(state.tree.mask) for state in states)
        mine = with_terminals(script.toolbox, new if frozen else freed)
        mine.register("evaluate", _values, evaluate=script.toolbox.evaluate, trials=trials, weights=script.weights)
        step = Step(mine, trials, freed, new, number, number == len(groups), script, lab, options, states)
        yield step
        if not step.closed:
            raise VsrError(f"round {number} was not closed: population = freeze(population, step) ends it")
        if step.last:
            return
        states = step.states


def freeze(population: Sequence[Any], step: Step) -> list[Any]:
    """Close a round: fit on fresh trials, each with its own controlled values, and freeze what fits in all of them.

    Returns
    -------
    list of individuals
        What goes on, best first. Of the last round: the answers, short, scored on uncontrolled data.
    """
    if step.closed:
        raise VsrError(f"round {step.number} is closed already")
    begun = [replace(state, freed=step.freed[: len(step.freed) - len(step.new)]) for state in step.states]
    joint = Joint(_Given(population, step), step.settings)
    known = Known(target=step.settings.rule.error)
    states = next(free(begun, step.new, joint, step.lab, known=known), [])
    step.closed = True
    if not states:
        return list(population)
    holding = [state for state in states if state.holds] or states
    if not step.last and any(not state.tree.slots for state in holding):
        step.last = _holds(next(state for state in holding if not state.tree.slots), step)
    if step.last:
        hall = [(state.error, tree) for state in holding for tree in _fitted(state, step)]
        return answers_of(Found(hall[0][1], hall, [], "exhausted", 0.0), step.script, step.lab, step.settings.n_points)
    step.states = [state if state.tree.slots else state.thawed() for state in holding]
    return [step.script.kind(state.tree) for state in step.states]


@dataclass(frozen=True)
class _Given:
    """A population as what a regressor has grown: distinct formulas, the best first."""

    population: Sequence[Any]
    step: Step

    def regress(self, task: Task) -> list[Candidate]:
        """Return the candidates."""
        data, pset = Dataset.of(self.step.trials), self.step.script.pset
        once = {skeleton_key(individual): individual for individual in self.population}
        found = [fit(MaskedTree(individual), data, pset=pset, n_starts=1) for individual in once.values()]
        task.budget.count(sum(outcome.evaluations for outcome in found))
        found.sort(key=lambda outcome: outcome.error if np.isfinite(outcome.error) else np.inf)
        return [Candidate(outcome.trees[0], outcome.errors, outcome.constants) for outcome in found]


def _values(individual: Any, evaluate: Callable[..., Any], trials: Sequence[Trial], weights: Sequence[float]) -> Any:
    """Return fitness values, as algorithms of DEAP want them."""
    return values_of(evaluate(individual, trials=trials), weights)


def _fitted(state: State, step: Step) -> list[MaskedTree]:
    """Return a formula with its open constants fitted to uncontrolled data."""
    return step.lab.fit(state.tree, _uncontrolled(step), n_starts=1).trees[:1]


def _uncontrolled(step: Step) -> Dataset:
    return joined(last_data(step.lab, step.settings.n_points))


def _holds(state: State, step: Step) -> bool:
    """Whether a formula without slots holds where all variables are free."""
    data = _uncontrolled(step)
    return step.lab.evidence.fits(step.lab.fit(state.tree, data), data)
