"""What a search tells: its rounds, its progress, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from deap import gp

from deap_vsr.engine.fitting import Fit
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.search.checkpoint import State, tree_from, tree_state
from deap_vsr.search.contract import Budget
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array


@dataclass(frozen=True, eq=False)
class SlotTable:
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
    tables: tuple[SlotTable, ...] = field(default=(), compare=False)
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
        tables: tuple[SlotTable, ...] = (),
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

    def state(self) -> State:
        """Return it in JSON values."""
        kept = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "tables"}
        return kept | {"tree": tree_state(self.tree)}

    @classmethod
    def restored(cls, state: State, pset: gp.PrimitiveSetTyped | None) -> Round:
        """Return what :meth:`state` wrote."""
        given: State = {key: tuple(value) if isinstance(value, list) else value for key, value in state.items()}
        given["constants"] = tuple(map(tuple, state["constants"]))
        given["tree"] = tree_from(state["tree"], pset)
        return cls(**given)


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on; ``tree`` is a reduced form that has just been found."""

    round: int
    n_rounds: int
    freed: tuple[int, ...]
    best: float
    budget: Budget
    tree: MaskedTree | None = None


@dataclass(frozen=True)
class Outcome:
    """What a search returns: the best of the hall, the hall, the rounds, and why it stopped."""

    tree: MaskedTree | None
    hall: list[tuple[float, MaskedTree]]
    rounds: list[Round]
    stopped_by: str
    noise: float
    standard_errors: tuple[float, ...] | None = None
    """Of the constants of the tree that were fitted, in prefix order, where noisy data were fitted together."""


def what_stopped(go: Callable[[], str]) -> str:
    """Run a search and return what stopped it: what it says itself, Ctrl-C, or a point too many."""
    try:
        return go()
    except KeyboardInterrupt:
        return "interrupted"
    except OutOfQueriesError:
        return "queries"
