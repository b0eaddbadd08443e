"""The whole vertical search as a DEAP-style algorithm, with a script's own toolbox: `eaVertical`."""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from deap import base, gp, tools

from deap_vsr.engine.fitting import Dataset
from deap_vsr.errors import OutOfQueriesError, VsrError
from deap_vsr.forms.regressor import Chain, FormsRegressor
from deap_vsr.forms.searches import searches
from deap_vsr.gp.algorithms import restore_rows, rows_of
from deap_vsr.gp.answers import answers_of, differing
from deap_vsr.gp.regressor import ToolboxRegressor, restore_random
from deap_vsr.gp.script import Script, groups_of
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import Oracle
from deap_vsr.search.checkpoint import Checkpoint, restoring
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.pool import Schedule
from deap_vsr.search.records import Found
from deap_vsr.search.sequence import in_sequence
from deap_vsr.search.vertical import simplest_first, vertical
from deap_vsr.tree.translate import known_operators, to_catalogue, to_set

#: Without limits, so many evaluations are spent on slots; then joint search follows. Some ten seconds.
SLOT_EVALUATIONS = 5_000_000


def eaVertical(
    population: list[Any],
    toolbox: base.Toolbox,
    cxpb: float,
    mutpb: float,
    ngen: int,
    oracle: Oracle,
    stats: tools.Statistics | tools.MultiStatistics | None = None,
    halloffame: tools.HallOfFame | None = None,
    verbose: bool = False,
    *,
    expansion: str = "joint",
    schedule: str | Sequence[Any] | None = None,
    fit_constants: bool | str = True,
    settings: JointOptions | None = None,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    max_queries: int | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> tuple[list[Any], tools.Logbook]:
    """Run the whole vertical search with a DEAP script's own toolbox.

    ::

        for each variable: free it
            population <- eaMasked(population) with only that variable and constants as new terminals
            K fresh trials: fit, freeze what fits
        return the best expressions over all rounds, short, scored on uncontrolled data

    Parameters
    ----------
    population, toolbox, cxpb, mutpb, stats, halloffame, verbose : as for ``deap.algorithms.eaSimple``
        `population` is replaced by the result. The toolbox's operators must be those of ``deap_vsr`` and hold their
        ``pset``; it is copied, not changed. ``select`` chooses, or :func:`selBestDistinct` where there is none. The
        fitness is what ``loss(y, prediction, individual)``, or ``evaluate(individual, X, y)``, returns on each trial
        once constants are fitted; without them the normalised mean squared error, or 1/(1 + it) if it is maximised.
    ngen : int
        Generations of each round.
    oracle : what can be asked for y; its variables are the arguments of the primitive set, in order
        A table: :class:`deap_vsr.TableOracle`.
    expansion : "joint" or "slotwise"
        As published; or every slot is measured and solved on its own, by systematic forms of those primitives that
        are in the catalogue, and by the GP of the toolbox where there is none. Joint search follows if that fails.
    schedule : the order in which variables are freed: columns (from 0) or names, alone or in groups, or "auto"
        Default: one by one, "numeric"; for a table what its rows allow.
    fit_constants : by least squares (True), by "absolute" or "robust" errors, or not at all while GP searches (False)
    time_limit, max_evaluations, max_queries : limits, whichever comes first
    checkpoint : path, optional
        A file in which the state of the run is kept, every few seconds.
    resume : bool
        Go on from that file, if there is one; the result is that of an uninterrupted run.

    Returns
    -------
    population, logbook
        The hall as individuals, best first, and one entry for each generation, with its ``round``. Ctrl-C returns the
        best so far, and says so.
    """
    if expansion not in ("joint", "slotwise"):
        raise VsrError(f"unknown expansion {expansion!r}; known are joint and slotwise")
    script = Script.of(population, toolbox, oracle, fit_constants)
    groups = groups_of(schedule, script, oracle)
    begun = _identity_of(population) if checkpoint is not None else {}
    # The whole run follows the standard random module, as DEAP's users expect of one seed.
    rng = np.random.default_rng(random.getrandbits(64))
    lab = Lab(oracle, Budget(time_limit, max_evaluations, max_queries), rng, pset=script.pset)
    run = _Run(cxpb, mutpb, ngen, stats, verbose, settings or JointOptions(restart=False), expansion, groups)
    if checkpoint is not None:
        run.checkpoint = Checkpoint(Path(checkpoint), {**run.identity(script, lab), **begun}, resume)
        _check_law(run.checkpoint, lab)
    while True:
        found = run.search(script, lab)
        answer = answers_of(found, script, lab, run.settings.n_points)
        run.close(found, answer, lab)
        blamed = differing(answer[:1], script, lab)
        if not blamed or found.stopped_by == "interrupted":
            break
        warnings.warn(
            f"{', '.join(blamed)}: not what they were taken for at all points; the search is made again, and they are "
            f"called as they are",
            stacklevel=2,
        )
        script = script.taken_back(blamed)
        lab = lab._like(pset=script.pset)
    if found.stopped_by == "interrupted":
        warnings.warn("interrupted: the best so far is returned", stacklevel=2)
    population[:] = answer or script.beginners
    if halloffame is not None and answer:
        halloffame.update(answer)
    return population, run.logbook


@dataclass
class _Run:
    """How a script wants to search, and the logbook that it fills."""

    cxpb: float
    mutpb: float
    ngen: int
    stats: Any
    verbose: bool
    settings: JointOptions
    expansion: str
    groups: Schedule | None
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        self.logbook = tools.Logbook()
        self.logbook.header = ["round", "gen", "nevals", *(self.stats.fields if self.stats else [])]

    def identity(self, script: Script, lab: Lab) -> dict[str, Any]:
        """Return what tells this run from others, for a checkpoint."""
        return {
            "schedule": self.groups, "settings": asdict(self.settings), "expansion": self.expansion,
            "cxpb": self.cxpb, "mutpb": self.mutpb, "ngen": self.ngen, "fit_constants": script.fit_constants,
            "variables": [variable.name for variable in lab.variables], "primitives": sorted(script.pset.mapping),
        }  # fmt: skip

    def close(self, found: Found, answer: Sequence[Any], lab: Lab) -> None:
        """Record what was found without a generation of GP: a logbook without a row is of no use to a script."""
        if answer and not len(self.logbook):
            record = self.stats.compile(answer) if self.stats else {}
            nevals = lab.budget.evaluations
            self.logbook.record(round=max(len(found.rounds), 1), gen=0, nevals=nevals, **record)
            if self.verbose:
                print(self.logbook.stream)

    def search(self, script: Script, lab: Lab) -> Found:
        """Run the search; what is found is in the script's primitives."""
        regressor = _Kept(
            ToolboxRegressor(
                script.toolbox,
                self.cxpb,
                self.mutpb,
                self.ngen,
                size=len(script.beginners),
                kind=script.kind,
                beginners=script.beginners,
                pset=script.pset,
                stats=self.stats,
                verbose=self.verbose,
                seeded=False,
                elite=script.own_select,
                logbook=self.logbook,
            )
        )
        if self.checkpoint is not None:
            self.checkpoint.extra = regressor.state
            regressor.checkpoint = self.checkpoint
        try:
            found = _slotwise(lab, regressor, self.groups) if self.expansion == "slotwise" else None
            if found is None or (found.stopped_by == "exhausted" and lab.budget.used_up() is None):
                groups = self.groups
                if groups is None:
                    order = simplest_first(lab.in_catalogue(), FormsRegressor()) if known_operators(script.pset) else ()
                    groups = tuple((column,) for column in order or range(lab.n_vars))
                joint = vertical(lab, Joint(regressor, self.settings), groups, checkpoint=self.checkpoint)
                hall = sorted([*joint.hall, *(found.hall if found is not None else [])], key=lambda entry: entry[0])
                found = joint if joint.stopped_by == "found" else replace(joint, hall=hall)
        except KeyboardInterrupt as end:
            return Found.nothing(end)
        return found


def _slotwise(lab: Lab, regressor: Regressor, groups: Schedule | None) -> Found | None:
    """Search slot by slot in operators that the primitive set shares with the catalogue; None if it shares none."""
    assert lab.pset is not None
    if not known_operators(lab.pset) or hasattr(lab.oracle, "rows"):  # the rows of a table cannot be chosen
        return None
    plain = lab.in_catalogue()
    if all(limit is None for limit in lab.budget.limits.values()):
        plain = plain.part(names=(), evaluations=SLOT_EVALUATIONS)
    slots = Chain((FormsRegressor(), _InCatalogue(regressor, lab.pset)))
    try:
        _, found = in_sequence(plain, searches(("anchored", "sums", "slotwise"), slots, plain), None, lambda news: None)
    except OutOfQueriesError as end:  # before anything could be found
        return Found.nothing(end)
    if found.stopped_by == "evaluations" and lab.budget.used_up() is None:
        found = replace(found, stopped_by="exhausted")
    written = [(error, to_set(tree, lab.pset)) for error, tree in found.hall]
    hall = [(error, tree) for error, tree in written if tree is not None]
    if found.stopped_by == "found" and (not hall or written[0][1] is None or not _holds(hall[0][1], lab)):
        found = replace(found, stopped_by="exhausted")
    return replace(found, tree=hall[0][1] if hall else None, hall=hall)


def _holds(tree: Any, lab: Lab) -> bool:
    """Whether a formula, written in the script's primitives, still holds on all that was measured."""
    data = Dataset.of([lab.measured()])
    return lab.evidence.fits(lab.fit(tree, data), data) if lab.evidence.certain else True


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


# --- checkpoints --------------------------------------------------------------------------


def _identity_of(population: Sequence[Any]) -> dict[str, Any]:
    """Return what tells a run's seed and population from those of others."""
    texts = "\n".join(map(str, population)), repr(random.getstate())
    digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    return {"population": digests[0], "seed": digests[1]}


def _check_law(checkpoint: Checkpoint, lab: Lab) -> None:
    """Raise VsrError if the oracle does not answer as it did when the checkpoint was written.

    A few of the points that were measured are asked again; noise is allowed for.
    """
    saved = checkpoint.load()
    if saved is None:
        return
    try:
        X, y = (np.array(part, dtype=float)[:3] for part in saved["measured"])
        noise = float(saved["precision"].get("noise") or 0.0)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise checkpoint.broken() from None
    before: dict[str, Any] = getattr(lab.oracle, "state", dict)()
    for x, known in zip(X.reshape(-1, lab.n_vars), y, strict=False):
        told = float(np.asarray(lab._answer(x[None]))[0, 0])
        if abs(told - known) > 1e-9 * abs(known) + 10.0 * noise and np.isfinite(told):
            raise VsrError(
                f"{checkpoint.path}: the checkpoint is of another run: law is {known:.10g} at {x.tolist()} there and "
                f"{told:.10g} here"
            )
    if before:
        getattr(lab.oracle, "restore")(before)  # noqa: B009


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
        return {"rounds": regressor.rounds, "logbook": rows_of(regressor.logbook), "random": random.getstate()}

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the task's candidates, after taking over the state of a checkpoint, once."""
        if self.checkpoint is not None and self.checkpoint.extra_state:
            state, self.checkpoint.extra_state = self.checkpoint.extra_state, {}
            with restoring():
                self.regressor.rounds = int(state["rounds"])
                del self.regressor.logbook[:]
                self.regressor.logbook.chapters.clear()
                restore_rows(self.regressor.logbook, [dict(row) for row in state["logbook"]])
                restore_random(state["random"])
        return self.regressor.regress(task)
