"""The round: expand, verify on fresh joint data, freeze, tie. Every search goes through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.search.freezing import freeze
from deap_vsr.search.prune import unlike
from deap_vsr.search.records import State
from deap_vsr.search.tables import NOTHING, Grown, Known
from deap_vsr.search.ties import factor_ties
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.translate import names_are_ours

#: Where more formulas hold in noise than can be followed, so many times the data decide: half the standard errors.
MORE_DATA = 4
#: Formulas whose residual chi-squared differs by no more are not told apart by any data like these: half a nat.
UNTOLD = 1.0
#: In noise so many of the formulas that hold are looked at for what they can do without: twice what is followed.
SETTLED = 6


class Expansion(Protocol):
    """How a round grows formulas."""

    @property
    def n_starts(self) -> int:
        """Starts, beside the known ones, for fitting what has grown."""

    def expand(
        self, states: Sequence[State], new: tuple[int, ...], lab: Lab, effort: str = "all", known: Known = NOTHING
    ) -> Iterator[list[Grown]]:
        """Yield formulas grown from `states` with `new` variables freed; those of a list are compared together."""

    def check(self, grown: Sequence[Grown], freed: Sequence[int], lab: Lab, times: int = 1) -> Dataset | None:
        """Return fresh joint data to judge them by; None if there are none."""

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return a fit that holds in the form in which it goes on; None if it is of no use."""


def free(
    states: Sequence[State],
    new: tuple[int, ...],
    expansion: Expansion,
    lab: Lab,
    effort: str = "all",
    known: Known = NOTHING,
    *,
    width: int | None = None,
    tie: bool = True,
) -> Iterator[list[State]]:
    """Free variables: yield lists of what became of `states`, what holds first, best first.

    ::

        for each list of formulas that the expansion grows:
            fresh joint data, the same for all of them
            fit; those that hold, in the order that the evidence gives them, are frozen, and tied slots factored out

    Parameters
    ----------
    known : what the expansion is told beside
    width : the most to go on with, where more data may decide which; default: all
    tie : whether slots whose ratio is the same at all settings become one
    """
    freed = (*states[0].freed, *new)
    for grown in expansion.expand(states, new, lab, effort, known):
        yield verified(grown, freed, expansion, lab, width, tie) if grown else []


Held = tuple[tuple[float, float], Fit, Grown]


def verified(
    grown: Sequence[Grown], freed: tuple[int, ...], expansion: Expansion, lab: Lab, width: int | None, tie: bool
) -> list[State]:
    """Return what the same fresh joint data say of formulas: what holds, best first and frozen, then what does not."""
    data = expansion.check(grown, freed, lab)
    if data is None:
        return []
    holding, failed = _judged(grown, freed, data, expansion, lab)
    if width is not None:
        holding, kept = _near(holding, lab)
        if len(kept) > width and lab.budget.used_up() is None:
            rivals = [formula for _, _, formula in holding]
            more = None
            with suppress(OutOfQueriesError):  # then what there is decides
                more = expansion.check(rivals, freed, lab, MORE_DATA)
            if more is not None:
                data = more
                holding, others = _judged(rivals, freed, data, expansion, lab)
                kept, failed = _near(holding, lab)[1], failed + others
        twins = _twins(kept, data, lab)
        told = [item for item in kept if id(item) not in twins]
        holding = [*told[:width], *(item for item in kept if id(item) in twins)][: 2 * width]
    else:
        twins = set()
    frozen = [
        State(
            _frozen(item[1], data, lab, tie),
            freed,
            True,
            item[1],
            item[2].solved,
            item[2].parent,
            twin=id(item) in twins,
        )
        for item in holding
    ]
    return [*frozen, *failed]


def _twins(kept: Sequence[Held], data: Dataset, lab: Lab) -> set[int]:
    """Return which fits, the best first, say no more than a shorter one before them, as far as such data tell."""
    left = [float(lab.evidence.left(outcome, data).sum()) for _, outcome, _ in kept]
    trees = [outcome.tree for _, outcome, _ in kept]
    return {
        id(kept[i])
        for i in range(len(kept))
        if any(
            abs(left[i] - left[j]) <= UNTOLD
            and len(trees[i]) > len(trees[j])
            and trees[i].n_constants >= trees[j].n_constants
            for j in range(i)
        )
    }


def _judged(
    grown: Sequence[Grown], freed: tuple[int, ...], data: Dataset, expansion: Expansion, lab: Lab
) -> tuple[list[Held], list[State]]:
    """Return the fits that hold, in the order that the evidence gives them, and the formulas that do not."""
    failed: list[State] = []
    fits: list[tuple[float, Fit, Grown]] = []
    for formula in grown:
        outcome = lab.fit(formula.tree, data, starts=formula.starts, n_starts=expansion.n_starts)
        if lab.evidence.fits(outcome, data):
            fits.append((lab.evidence.order(outcome, data)[0], outcome, formula))
        else:
            failed.append(_failed(outcome, formula, freed, data, lab))
        if lab.budget.used_up() is not None:
            break
    if not lab.evidence.certain:
        fits = sorted(fits, key=lambda item: item[0])[:SETTLED]
    holding: list[Held] = []
    for _, outcome, formula in fits:
        settled = expansion.settled(outcome, data, lab)
        if settled is not None:
            holding.append((lab.evidence.order(settled, data), settled, formula))
        else:
            failed.append(_failed(outcome, formula, freed, data, lab))
        if lab.budget.used_up() is not None:
            break
    return sorted(holding, key=lambda item: item[0]), failed


def _failed(outcome: Fit, formula: Grown, freed: Sequence[int], data: Dataset, lab: Lab) -> State:
    excess = lab.evidence.excess(outcome, data)
    return State(outcome.tree, tuple(freed), False, outcome, formula.solved, formula.parent, None, excess)


def _near(holding: list[Held], lab: Lab) -> tuple[list[Held], list[Held]]:
    """Return what is not much worse than the best, and of that what is not the same in other words."""
    near = [item for item in holding if lab.evidence.near(item[0], holding[0][0])]
    if lab.evidence.certain:
        return near, near
    distinct = {id(outcome) for outcome in unlike([outcome for _, outcome, _ in near], len(near))}
    return near, [item for item in near if id(item[1]) in distinct]


def _frozen(outcome: Fit, data: Dataset, lab: Lab, tie: bool) -> MaskedTree:
    frozen = freeze(outcome, data, lab.evidence)
    if not tie or not frozen.slots or not names_are_ours(lab.pset, ("add", "mul")):
        return frozen
    places = {position: i for i, position in enumerate(outcome.tree.open_constants)}
    columns = [places[position] for position in frozen.slots]
    errors = lab.evidence.standard_errors(outcome, data)
    return factor_ties(frozen, outcome.constants[:, columns], errors[:, columns], lab.evidence, lab.function_set)
