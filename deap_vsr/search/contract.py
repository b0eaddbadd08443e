"""The contract between a search and a regressor: a task with its budget, and the candidates that come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from deap_vsr.engine.fitting import Fit
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Evidence, Exact
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array


@dataclass(frozen=True)
class Candidate:
    """A tree, and how it fared in the trials of its task: errors (K,), constants (K, L)."""

    tree: MaskedTree
    errors: Array
    constants: Array

    @classmethod
    def of(cls, outcome: Fit) -> Candidate:
        """Make one of a fit."""
        return cls(outcome.tree, outcome.errors, outcome.constants)


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
    effort : "cheap", "quick", "most" or "all"
        Whether only cheap stages are wanted, or quick ones as well, or all but what is tried last.
    rivals : bool
        Whether, in noise, what does nearly as well is wanted too: an answer is compared with it.
    evidence : Evidence
        What the trials' answers tell. Weights of noisy ones are inverse variances, of exact ones inverse squares of how
        far a formula may be off.
    tell : callable
        ``tell(error, tree, state)``, to be called now and then: the best error and tree so far, and a function that
        returns JSON values from which `regress` can go on. A regressor that never calls it is not seen to progress,
        and starts its round anew when a run is resumed.
    resume : what `state` returned, if the task goes on from there
    refused : formulas that fitted a task before, and did not hold in the experiment that followed: they are no answer
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
    evidence: Evidence = field(default_factory=Exact)
    tell: Callable[[float, MaskedTree, Callable[[], dict[str, Any]]], None] = lambda error, tree, state: None
    resume: dict[str, Any] | None = None
    rivals: bool = False
    refused: Sequence[MaskedTree] = ()


class Regressor(Protocol):
    """GP, MCTS, ...: anything that grows candidates."""

    def regress(self, task: Task) -> list[Candidate]:
        """Return candidates, best first, the mask of the task's candidates respected."""
