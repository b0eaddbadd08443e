"""Searches one after the other, each handed the same laboratory, and so everything that was measured before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.search.anchored import Anchored
from deap_vsr.search.anonymous import anonymous
from deap_vsr.search.finish import better
from deap_vsr.search.joint import Joint
from deap_vsr.search.pool import Schedule
from deap_vsr.search.records import Found, ending
from deap_vsr.search.shape import shape_of
from deap_vsr.search.slot_options import PLENTY
from deap_vsr.search.slotwise import UNSOLVED, Slotwise
from deap_vsr.search.sums import Sums
from deap_vsr.search.vertical import Tell, vertical
from deap_vsr.tree import Constant

#: Evaluations for looking for something shorter than a sum of products that holds in noise: some ten seconds.
SECOND_LOOK = 20_000_000
#: Reduced forms of so many constants, in the mean, are those of a sum of many terms: with 1 % noise and 10,000 points
#: 6 of 112 laws of feynman-unit and 3 of 48 fresh ones have as many, and 140 of 150 sums of 10 products or more.
OF_A_SUM = 2.5
#: Of the points that are left, for ruling variables out.
RULED_OUT = 0.2


def in_order(names: Sequence[str], lab: Lab, sums_first: bool = False) -> list[str]:
    """Return the names of searches in their order: slots, sums, in noise with many points slots once more, joint.

    A sum approximates whatever the law is, and asks many points for it. Slots that have led nowhere at one sample of
    settings may lead somewhere at another, and know then all that was measured for sums. `sums_first`: where the law
    looks like a sum (:func:`is_a_sum`), slots would be as many as its terms, and leave no points.
    """
    order = ("sums", "slotwise", "joint") if sums_first else ("slotwise", "sums", "joint")
    ordered = [name for name in order if name in names]
    plenty = lab.budget.queries_left() >= PLENTY * lab.n_vars
    if plenty and not sums_first and not lab.evidence.certain and {"slotwise", "sums"} <= set(names):
        ordered.insert(2, "slotwise")
    return ordered


def is_a_sum(slots: Slotwise, lab: Lab) -> bool:
    """Whether, in noise, the law looks like a sum of many terms: by the variables' reduced forms, each tried alone.

    Those of most laws have a term and a constant at the most, in the mean.
    """
    if not slots.options.n_tried:
        return False
    relevant = relevant_variables(lab, max_queries=RULED_OUT * lab.budget.queries_left())
    simple = [size for size in slots.alone(relevant, lab).values() if size != UNSOLVED]
    return bool(simple) and float(np.mean([n_constants for n_constants, _ in simple])) >= OF_A_SUM


def in_sequence(
    lab: Lab, expansions: Iterable[Joint | Slotwise | Anchored | Sums], order: Schedule | None, tell: Tell
) -> tuple[Schedule, Found]:
    """Try expansions until one finds a formula; returns the order of variables and what was found.

    ::

        for each expansion:
            search with it
            where a formula stands already: keep the better of both
            stop at a formula that nothing shorter is likely to stand for, and whose residuals are noise, or at a limit
    """
    best: Found | None = None
    schedule = order
    following = iter(expansions)
    while True:
        try:  # the next one may want to know first what answers are like
            expansion = next(following, None)
        except (OutOfQueriesError, KeyboardInterrupt) as end:
            if best is None:
                raise
            best = replace(best, stopped_by=ending(end))
            break
        if expansion is None:
            break
        if isinstance(expansion, Joint):
            if best is not None and best.stopped_by == "found":
                break  # in doubt, and no other search has a better one: in noise this one has hardly ever
            if best is not None and lab.budget.queries_left() < _least(expansion):
                best = replace(best, stopped_by="queries")
                break
            other = vertical(lab, expansion, schedule, tell)
        else:
            # Where a formula stands, twice as many points will tell.
            second = best is not None and best.stopped_by == "found"
            part = lab.part(evaluations=SECOND_LOOK, queries=2 * lab.budget.queries, names=()) if second else lab
            other = vertical(part, expansion, order, tell)
        name = type(expansion).__name__.lower()
        other = replace(other, search=name, tried=(*(best.tried if best is not None else ()), name))
        best = other if best is None else replace(_together(best, other, lab), tried=other.tried)
        freed = best.rounds[-1].freed if best.rounds else ()
        rest = [column for group in order for column in group] if order is not None else range(lab.n_vars)
        schedule = tuple((column,) for column in (*freed, *(c for c in rest if c not in freed)))
        if not _goes_on(best, expansion, lab):
            break
    if best is None:  # nothing can be searched with
        return (), Found(None, [], [], "exhausted", lab.evidence.noise)
    return schedule or (), best


def _goes_on(found: Found, expansion: Joint | Slotwise | Anchored | Sums, lab: Lab) -> bool:
    """Whether the next search is worth its while."""
    if found.stopped_by == "found":
        return (isinstance(expansion, Sums) and not _convincing(found)) or _in_doubt(found, lab)
    # In noise a table may want more points than there are, and what is left may do for joint expansion.
    in_noise = not lab.evidence.certain and isinstance(expansion, Slotwise)
    return found.stopped_by in (("exhausted", "queries") if in_noise else ("exhausted",))


def _in_doubt(found: Found, lab: Lab) -> bool:
    """Whether, in noise, what an answer leaves has a shape, or a polynomial says as much: then it is not the law."""
    if lab.evidence.certain or found.own is None or lab.budget.used_up() is not None:
        return False
    return bool(anonymous(found.own, lab) or shape_of(found.own, lab))


def _convincing(found: Found) -> bool:
    """Whether a sum has a single number, or short ones: they are hardly there by chance.

    Another sum that holds in noise may only approximate something shorter.
    """
    numbers = [node.value for node in found.tree or () if isinstance(node, Constant) and abs(node.value) != 1.0]
    return len(numbers) <= 1 or all(float(f"{number:.1e}") == number for number in numbers)


def _least(expansion: Joint) -> int:
    """Return how many points a joint search of one round asks."""
    options = expansion.options
    return options.hall_points + (options.n_trials + 1) * options.n_points


def _together(first: Found, second: Found, lab: Lab) -> Found:
    """Return what two searches have found: what the second has, if it is found, else the better of both."""
    if first.stopped_by == "found":
        shorter = False
        if second.stopped_by == "found" and first.own is not None and second.own is not None:
            shorter = better([first.own, second.own], lab) == 1
        stopped_by = "interrupted" if second.stopped_by == "interrupted" else "found"
        best, other = (second, first) if shorter else (first, second)
        return replace(best, rounds=[*other.rounds, *best.rounds], stopped_by=stopped_by)
    if second.stopped_by == "found" or not first.hall:
        return replace(second, rounds=[*first.rounds, *second.rounds])
    hall = sorted([*first.hall, *second.hall], key=lambda entry: entry[0])
    best, other = (first, second) if hall[0] in first.hall else (second, first)
    return replace(
        second,
        tree=hall[0][1],
        hall=hall,
        rounds=[*other.rounds, *best.rounds],
        standard_errors=best.standard_errors,
    )
