"""What a search tells: its rounds, its progress, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Fit
from deap_vsr.errors import OutOfQueriesError, OutOfTimeError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.checkpoint import Json, tree_from, tree_state
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.names import Names
from deap_vsr.tree.operators import Array


@dataclass(frozen=True, eq=False)
class SolvedSlot:
    """A slot as a function of one variable: x (J,), values (K, J) at K settings, its form and constants (K, L).

    In noise ``errors`` (K, J) are the standard errors of the values.
    """

    column: int
    x: Array
    values: Array
    form: MaskedTree
    constants: Array
    errors: Array | None = None


@dataclass(frozen=True)
class Round:
    """One round, for the report: what was freed and held, and the best candidate after freezing."""

    freed: tuple[int, ...]
    controlled: tuple[int, ...]
    tree: MaskedTree
    errors: tuple[float, ...]
    constants: tuple[tuple[float, ...], ...]
    slots: int
    accepted: bool
    queries: int
    seconds: float
    tables: tuple[SolvedSlot, ...] = field(default=(), compare=False)
    """What slotwise expansion measured, for pictures; a checkpoint does without."""

    @classmethod
    def of(
        cls,
        freed: tuple[int, ...],
        n_vars: int,
        tree: MaskedTree,
        outcome: Fit,
        accepted: bool,
        before: dict[str, float],
        now: dict[str, float],
        tables: tuple[SolvedSlot, ...] = (),
    ) -> Round:
        """Make one of an outcome, and of what had been spent before and is now."""
        return cls(
            freed,
            tuple(column for column in range(n_vars) if column not in freed),
            tree,
            tuple(outcome.errors.tolist()),
            tuple(map(tuple, outcome.constants.tolist())),
            len(tree.slots),
            accepted,
            int(now["queries"] - before["queries"]),
            now["seconds"] - before["seconds"],
            tables,
        )

    def state(self) -> Json:
        """Return it in JSON values."""
        kept = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "tables"}
        return kept | {"tree": tree_state(self.tree)}

    @classmethod
    def restored(cls, state: Json, pset: gp.PrimitiveSetTyped | None) -> Round:
        """Return what :meth:`state` wrote."""
        given: Json = {key: tuple(value) if isinstance(value, list) else value for key, value in state.items()}
        given["constants"] = tuple(map(tuple, state["constants"]))
        given["tree"] = tree_from(state["tree"], pset)
        return cls(**given)


@dataclass(frozen=True, eq=False)
class State:
    """A formula on its way: frozen but for its slots, and what is free in it.

    ``outcome`` is that of the experiment it was verified by, ``holds`` what that said; it grew from ``parent``.
    """

    tree: MaskedTree
    freed: tuple[int, ...] = ()
    holds: bool = True
    outcome: Fit | None = None
    solved: tuple[SolvedSlot, ...] = ()
    parent: State | None = None
    record: Round | None = None
    excess: float = np.inf
    """What is left in noise, over the noise: residual chi-squared over its degrees of freedom."""
    empty: bool = False
    """Whether nothing is known yet: the formula is one constant, which is a slot."""
    twin: bool = False
    """Whether a shorter formula beside it leaves as much: it says the same in more nodes, as log(1 + u) for small u."""

    @property
    def error(self) -> float:
        """The largest error of the experiment."""
        return np.inf if self.outcome is None else float(self.outcome.errors.max())

    def thawed(self) -> State:
        """Return the state with the formula as it was before it was frozen."""
        return self if self.outcome is None else replace(self, tree=self.outcome.tree)

    @classmethod
    def start(cls) -> State:
        """Return where a search begins."""
        return cls(MaskedTree([Constant(1.0)]), empty=True)


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on; ``tree`` is a reduced form that has just been found."""

    round: int
    n_rounds: int
    freed: tuple[int, ...]
    best: float
    budget: Budget
    tree: MaskedTree | None = None
    names: Names = field(default_factory=Names)


@dataclass(frozen=True)
class Found:
    """What a search returns: the best formula, the hall it is of, the rounds, and why the search stopped."""

    tree: MaskedTree | None
    hall: list[tuple[float, MaskedTree]]
    rounds: list[Round]
    stopped_by: str
    noise: float
    standard_errors: tuple[float, ...] | None = None
    """Of the constants of the tree that were fitted, in prefix order."""
    inner: MaskedTree | None = None
    """The tree in the units of the laboratory, where they are others."""
    search: str = ""
    """The expansion that found it."""
    tried: tuple[str, ...] = ()
    """All that were tried."""

    @property
    def own(self) -> MaskedTree | None:
        """The tree in the units in which answers are known to the laboratory."""
        return self.tree if self.inner is None else self.inner

    @classmethod
    def nothing(cls, end: BaseException) -> Found:
        """Return what there is when a search has ended before it has begun."""
        return cls(None, [], [], ending(end), 0.0)

    @classmethod
    def of(
        cls,
        hall: Sequence[tuple[float, MaskedTree]],
        journal: Journal,
        stopped_by: str,
        standard_errors: tuple[float, ...] | None = None,
    ) -> Found:
        """Return the best of a hall, in the oracle's own units."""
        lab = journal.lab
        best = [(error, lab.in_units(tree)[0]) for error, tree in hall]
        noise = lab.evidence.noise * lab.scale
        errors = lab.in_units(hall[0][1], standard_errors)[1] if hall else None
        inner = hall[0][1] if hall and lab.scale != 1.0 else None
        return cls(best[0][1] if best else None, best, journal.rounds, stopped_by, noise, errors, inner)


class Journal:
    """What a search records, and tells, of its rounds."""

    def __init__(self, lab: Lab, tell: Callable[[Progress], None], n_rounds: int = 1) -> None:
        self.lab, self._tell = lab, tell
        self.n_rounds = n_rounds
        self.rounds: list[Round] = []
        self.best = np.inf
        """The error that progress shows."""
        self._recorded = lab.budget.spent

    def tell(self, freed: Sequence[int], tree: MaskedTree | None = None, number: int | None = None) -> None:
        """Show progress: what is free, and a reduced form if one has just been found."""
        number = len(freed) if number is None else number
        self._tell(Progress(number, self.n_rounds, tuple(freed), self.best, self.lab.budget, tree, self.lab.names))

    def record(self, state: State, since: dict[str, float] | None = None) -> State:
        """Keep what became of a formula in a round; what was spent counts from the last record, or `since`."""
        assert state.outcome is not None
        spent = self.lab.budget.spent
        before, self._recorded = since or self._recorded, spent
        self.rounds.append(
            Round.of(state.freed, self.lab.n_vars, state.tree, state.outcome, state.holds, before, spent, state.solved)
        )
        return replace(state, record=self.rounds[-1])

    def lead_to(self, state: State) -> None:
        """Put the rounds that led to a formula behind the others."""
        chain: list[Round] = []
        at: State | None = state
        while at is not None:
            if at.record is not None:
                chain.insert(0, at.record)
            at = at.parent
        kept = {id(record) for record in chain}
        self.rounds = [record for record in self.rounds if id(record) not in kept] + chain


def what_stopped(go: Callable[[], str]) -> str:
    """Run a search and return what stopped it: what it says itself, Ctrl-C, a point too many, or the clock."""
    try:
        return go()
    except (KeyboardInterrupt, OutOfQueriesError) as end:
        return ending(end)


def ending(end: BaseException) -> str:
    """Return what an exception says that a search was stopped by."""
    if isinstance(end, KeyboardInterrupt):
        return "interrupted"
    return "seconds" if isinstance(end, OutOfTimeError) else "queries"
