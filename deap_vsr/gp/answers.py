"""What a search has found, as a script's own individuals: short, with its loss, and checked with its own functions."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.engine.program import evaluate
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.gp.algorithms import assignFit
from deap_vsr.gp.script import Script
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.finish import reopened
from deap_vsr.search.records import Found
from deap_vsr.tree import Constant, MaskedTree, Vocabulary
from deap_vsr.tree.recognise import Own
from deap_vsr.tree.simplify import fold, literals

#: Points on which answers are scored; those of the hall.
POINTS, LEAST = 256, 24
#: So many of the hall are shortened, each with so many fits at the most: about a second.
SHORTENED, FITS = 3, 400
#: What a shorter formula may leave of the longer one's error more; and what counts as nothing.
ROOM, NOTHING = 1.01, 1e-26
#: Points at which an answer is evaluated once more with the script's own functions, and what may be rounding.
CHECKED, ROUNDING = 1000, 1e-9


def last_data(lab: Lab) -> Trial:
    """Return uncontrolled data to score answers on: fresh ones, or where there are none left, what was measured."""
    n_points = int(min(POINTS, lab.budget.queries_left()))
    if not hasattr(lab.oracle, "rows") and n_points >= LEAST:
        with suppress(NoValuesError, OutOfQueriesError):
            return lab.trials(range(lab.n_vars), 1, n_points)[0]
    return lab.measured()


def answers_of(found: Found, script: Script, lab: Lab) -> list[Any]:
    """Return the hall as individuals of a script's own class, shortened and scored, best first."""
    data = last_data(lab)
    if not len(data.y):
        return []
    individuals = []
    for place, (_, grown) in enumerate(found.hall):
        tree = grown
        if found.stopped_by != "found" or place:  # what is found is finished
            tree = shortened(grown, data, lab) if place < SHORTENED else fold(grown, Vocabulary(script.pset))
        individual = script.kind(literals(tree))
        assignFit(individual, script.toolbox.evaluate(individual, trials=[data]))
        individuals.append(individual)
    return sorted(individuals, key=lambda individual: individual.fitness, reverse=True)


def shortened(tree: MaskedTree, trial: Trial, lab: Lab) -> MaskedTree:
    """Return a formula, refitted, without what does nothing and with as few digits as leave it as good."""
    data = Dataset.of([trial])
    outcome = lab.fit(reopened(tree), data, n_starts=0)
    if not np.isfinite(outcome.errors[0]):
        return tree
    allowed = ROOM * float(outcome.errors[0]) + NOTHING
    best, left = outcome.trees[0], FITS
    while left > 0:
        for shorter in _smaller(best):
            left -= 1
            again = lab.fit(shorter, data, n_starts=0)
            if again.errors[0] <= allowed:
                best = again.trees[0]
                break
            if left <= 0:
                break
        else:
            break
    return _rounded(fold(best, Vocabulary(lab.pset)), data, lab, allowed)


def _smaller(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield trees in which a sub-tree is a constant, or one of its operands; the shortest first."""
    found: list[tuple[int, int, list[Any]]] = []
    for position, node in enumerate(tree):
        if not node.arity:
            continue
        place = tree.searchSubtree(position)
        constant = Constant(1.0, True, True, node.ret)
        found.append((len(tree) - (place.stop - place.start) + 1, len(found), [place, [constant]]))
        first = position + 1
        for _ in range(node.arity):
            operand = tree.searchSubtree(first)
            first = operand.stop
            if tree[operand.start].ret == node.ret:
                kept = list(tree[operand])
                found.append((len(tree) - (place.stop - place.start) + len(kept), len(found), [place, kept]))
    for _, _, (place, nodes) in sorted(found, key=lambda item: item[:2]):
        yield MaskedTree([*tree[: place.start], *nodes, *tree[place.stop :]])


def _rounded(tree: MaskedTree, data: Dataset, lab: Lab, allowed: float) -> MaskedTree:
    """Return the formula with each number at as few digits as leave the error within what is allowed."""
    for position in tree.open_constants:
        value = float(tree[position].value)
        for digits in range(1, 16):
            number = Constant(float(f"{value:.{digits - 1}e}"), True, True, tree[position].ret)
            trial = MaskedTree([*tree[:position], number, *tree[position + 1 :]])
            if lab.fit(literals(trial), data).errors[0] <= allowed:
                tree = trial
                break
    return tree


def differing(individuals: Sequence[Any], script: Script, lab: Lab) -> list[str]:
    """Return the recognised primitives of answers whose own functions have other values where y was measured."""
    X = lab.measured().X[:CHECKED]
    blamed: dict[str, None] = {}
    for individual in individuals:
        names = script.recognised(individual)
        if not names or not len(X):
            continue
        own = copy.copy(script.pset)
        own.context = {**own.context, **{name: Own(own.context[name]) for name in names}}
        tree = MaskedTree(individual)
        ours, theirs = evaluate([tree], X, script.pset)[0], tree.evaluate(X, own)
        finite = np.isfinite(theirs)
        if (finite != np.isfinite(ours)).any() or not np.allclose(ours[finite], theirs[finite], ROUNDING, 0.0):
            blamed.update(dict.fromkeys(names))
    return list(blamed)
