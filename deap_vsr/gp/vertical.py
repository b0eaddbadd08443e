"""The whole vertical search as a DEAP-style algorithm, with a script's own toolbox: `eaVertical`."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from deap import base, gp, tools

from deap_vsr.errors import VsrError
from deap_vsr.forms.regressor import Chain, FormsRegressor
from deap_vsr.gp.algorithms import evaluateFit, selBestDistinct, set_error
from deap_vsr.gp.regressor import ToolboxRegressor, restore_random
from deap_vsr.gp.toolbox import primitive_set_of
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import Oracle
from deap_vsr.search.checkpoint import Checkpoint, restoring
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.records import Found
from deap_vsr.search.slotwise import SlotOptions, Slotwise
from deap_vsr.search.vertical import vertical
from deap_vsr.tree.translate import known_operators, to_catalogue, to_set


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
    expansion: str = "joint",
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
    expansion : "joint" or "slotwise"
        As published; or every slot is measured and solved on its own, by systematic forms of those primitives that
        are in the catalogue, and by the GP of the toolbox where there is none. Joint search follows if that fails.

    Returns
    -------
    population, logbook
        The hall as individuals, best first, and one entry for each generation, with its ``round``.
    """
    if expansion not in ("joint", "slotwise"):
        raise VsrError(f"unknown expansion {expansion!r}; known are joint and slotwise")
    pset = primitive_set_of(toolbox)
    if len(pset.arguments) != len(oracle.variables):
        raise VsrError(
            f"the primitive set has {len(pset.arguments)} arguments, the oracle {len(oracle.variables)} variables"
        )
    logbook = tools.Logbook()
    logbook.header = ["round", "gen", "nevals", *(stats.fields if stats else [])]
    regressor = _Kept(
        ToolboxRegressor(
            _fitting(toolbox, pset),
            cxpb,
            mutpb,
            ngen,
            size=len(population),
            kind=type(population[0]),
            beginners=population,
            pset=pset,
            stats=stats,
            verbose=verbose,
            seeded=False,
            logbook=logbook,
        )
    )
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
    found = _slotwise(lab, regressor, groups) if expansion == "slotwise" else None
    if found is None:
        found = vertical(lab, Joint(regressor, chosen), groups, checkpoint=kept)
    answer = _individuals(found, type(population[0]))
    if halloffame is not None:
        halloffame.clear()
        halloffame.update(answer)
    return answer, logbook


def _individuals(found: Found, kind: type[Any]) -> list[Any]:
    """Return the hall as individuals of a script's own class, best first."""
    answer = []
    for error, tree in found.hall:
        individual = kind(tree)
        set_error(individual, error)
        answer.append(individual)
    return answer


def _slotwise(lab: Lab, regressor: Regressor, groups: tuple[tuple[int, ...], ...]) -> Found | None:
    """Search slot by slot in operators that the primitive set shares with the catalogue; None if nothing is found."""
    assert lab.pset is not None
    if not known_operators(lab.pset):
        return None
    lab.begin()
    plain = lab.in_catalogue()
    slots = Chain((FormsRegressor(), _InCatalogue(regressor, lab.pset)))
    expansion = Slotwise(slots, SlotOptions.of(plain.evidence))
    found = vertical(plain, expansion, groups)
    written = None if found.tree is None else to_set(found.tree, lab.pset)
    if found.stopped_by != "found" or written is None:
        return None
    return replace(found, tree=written, hall=[(found.hall[0][0], written)])


@dataclass
class _InCatalogue:
    """A regressor of a user's primitives for a search in ours: what cannot be said in ours is left out."""

    regressor: Regressor
    pset: gp.PrimitiveSetTyped

    def regress(self, task: Task) -> list[Candidate]:
        """Solve a slot."""
        if task.candidates:
            return []
        found = [(to_catalogue(item.tree, self.pset), item) for item in self.regressor.regress(task)]
        return [replace(item, tree=tree) for tree, item in found if tree is not None]


def _fitting(toolbox: base.Toolbox, pset: gp.PrimitiveSetTyped) -> base.Toolbox:
    """Return a copy of the toolbox that fits constants in each trial, and selects distinct formulas."""
    mine = copy.copy(toolbox)
    mine.register("evaluate", evaluateFit, pset=pset, n_starts=0, max_iterations=5)
    mine.register("select", selBestDistinct)
    return mine


@dataclass
class _Kept:
    """A regressor whose logbook a checkpoint keeps, and with it the standard ``random``, which the run follows."""

    regressor: ToolboxRegressor
    checkpoint: Checkpoint | None = None

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the search itself: rounds, logbook, the standard ``random``."""
        if self.checkpoint is not None and self.checkpoint.extra_state:
            return self.checkpoint.extra_state  # not yet taken over
        regressor = self.regressor
        return {"rounds": regressor.rounds, "logbook": list(regressor.logbook), "random": random.getstate()}

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the task's candidates, after taking over the state of a checkpoint, once."""
        if self.checkpoint is not None and self.checkpoint.extra_state:
            state, self.checkpoint.extra_state = self.checkpoint.extra_state, {}
            with restoring():
                self.regressor.rounds = int(state["rounds"])
                self.regressor.logbook[:] = [dict(row) for row in state["logbook"]]
                restore_random(state["random"])
        return self.regressor.regress(task)
