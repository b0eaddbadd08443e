"""What a search has found, as a script's own individuals: short, with its loss, and checked with its own functions."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.engine.program import evaluate
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.gp.algorithms import assignFit
from deap_vsr.gp.script import Script
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.finish import finish, reopened
from deap_vsr.search.records import Found
from deap_vsr.tree import Constant, MaskedTree, Vocabulary
from deap_vsr.tree.expand import expand
from deap_vsr.tree.recognise import Own
from deap_vsr.tree.simplify import fold, literals
from deap_vsr.tree.translate import to_catalogue, to_set

#: Batches of points on which answers are scored, each as large as a trial of the search; and how few will do.
BATCHES, LEAST = 6, 24
#: So many of the hall are shortened, each with so many fits at the most, fewer where functions are called: a second.
SHORTENED, FITS = 3, 400
#: Of trees of more nodes only the best is shortened: each fit takes some ten milliseconds.
LARGE = 60
#: Steps of a fit that only asks whether something is idle: what is, is linear or as good as at once.
ITERATIONS = 12
#: What a shorter formula may leave of the longer one's error more; what counts as nothing; what counts as exact.
ROOM, NOTHING, EXACT = 1.01, 1e-26, 1e-20
#: What a digit costs beside a node, by hand: 1.7*a*b + 0.4*a is shorter than 1.7*a*(b + 0.235294117647).
DIGIT = 0.5
#: Points at which an answer is evaluated once more with the script's own functions, and what may be rounding.
CHECKED, ROUNDING = 1000, 1e-9


def last_data(lab: Lab, n_points: int) -> list[Trial]:
    """Return uncontrolled data to score answers on: fresh ones, or where there are none left, what was measured."""
    n_batches = int(min(BATCHES, lab.budget.queries_left() // n_points))
    if not hasattr(lab.oracle, "rows") and n_batches * n_points >= LEAST:
        with suppress(NoValuesError, OutOfQueriesError):
            return lab.trials(range(lab.n_vars), n_batches, n_points)
    measured = lab.measured()
    return [measured] if len(measured.y) else []


def answers_of(found: Found, script: Script, lab: Lab, n_points: int) -> list[Any]:
    """Return the hall as individuals of a script's own class, shortened and scored, best first.

    Of exact formulas only the shortest stays: what is better by rounding is not better.
    """
    trials = [lab.measured()] if found.stopped_by == "interrupted" else last_data(lab, n_points)
    if not trials or not len(trials[0].y):
        return []
    data = joined(trials)
    trees = [
        shortened(tree, data, lab)
        if place < (SHORTENED if len(tree) <= LARGE else 1)
        else fold(tree, Vocabulary(script.pset))
        for place, (_, tree) in enumerate(found.hall)
    ]
    exact = [tree for tree in trees if lab.fit(literals(tree), data).errors[0] <= EXACT]
    shortest = min(exact, key=_price, default=None)
    individuals = []
    for tree in trees:
        if tree is shortest or not any(tree is other for other in exact):
            individual = script.kind(literals(tree))
            assignFit(individual, script.toolbox.evaluate(individual, trials=trials))
            individuals.append(individual)
    return sorted(individuals, key=lambda individual: individual.fitness, reverse=True)


def joined(trials: Sequence[Trial]) -> Dataset:
    """Return trials as one."""
    data = Dataset.of(trials)
    return replace(data, offsets=data.offsets[[0, -1]])


def shortened(tree: MaskedTree, data: Dataset, lab: Lab) -> MaskedTree:
    """Return a formula, refitted to `data` (one trial), without what does nothing and with as few digits as do."""

    def error(formula: MaskedTree) -> float:
        return float(lab.fit(literals(formula), data).errors[0])

    left = error(tree)
    forms = [tree, _trimmed(tree, data, lab)]
    assert lab.pset is not None
    plain = to_catalogue(forms[-1], lab.pset) if left <= EXACT else None
    for other in _other_forms(plain, lab.in_catalogue()) if plain is not None else ():
        written = to_set(other, lab.pset)
        if written is not None:
            forms += [written, _trimmed(written, data, lab)]
    allowed = max(EXACT, ROOM * left) if np.isfinite(left) else np.inf
    return min((form for form in forms if error(form) <= allowed), key=_price, default=tree)


def _price(tree: MaskedTree) -> float:
    """Return how long a formula is to read: its nodes, and its digits at half a node each."""
    digits = [len(f"{abs(node.value):.15g}".replace(".", "").strip("0")) for node in tree if isinstance(node, Constant)]
    return len(tree) + DIGIT * sum(digits)


def _other_forms(tree: MaskedTree, lab: Lab) -> Iterator[MaskedTree]:
    """Yield an exact formula multiplied out, and finished as a formula of ``discover`` is."""
    expanded = expand(literals(tree), lab.function_set)
    for form in (tree, expanded):
        if form is not None:
            with suppress(NoValuesError, OutOfQueriesError):
                final = finish(form, lab)
                yield form if final is None else final.tree


def _trimmed(tree: MaskedTree, data: Dataset, lab: Lab) -> MaskedTree:
    """Return a formula without what does nothing: where a constant or an operand does as well as a sub-tree, it stays.

    From the root on, so that much goes at once; twice, as what is left may make more of it idle.
    """
    outcome = lab.fit(reopened(tree), data, n_starts=0)
    if not np.isfinite(outcome.errors[0]):
        return tree
    allowed = ROOM * float(outcome.errors[0]) + NOTHING
    vocabulary = Vocabulary(lab.pset)
    slow = not all(vocabulary.operator(node).known for node in tree if node.arity)
    best, left = outcome.trees[0], FITS // 20 if slow else FITS
    for _ in range(2):
        position = 0
        while position < len(best) and left > 0:
            for shorter in _smaller(best, position):
                left -= 1
                again = lab.fit(shorter, data, n_starts=0, max_iterations=ITERATIONS)
                if again.errors[0] <= allowed:
                    best = again.trees[0]
                    break
            else:
                position += 1
    return _rounded(fold(best, vocabulary), data, lab, allowed)


def _smaller(tree: MaskedTree, position: int) -> Iterator[MaskedTree]:
    """Yield trees in which the sub-tree at a place is a constant, or one of its operands, the shortest first."""
    node = tree[position]
    if not node.arity:
        return
    place = tree.searchSubtree(position)
    choices: list[list[Any]] = [[Constant(1.0, True, True, node.ret)]]
    first = position + 1
    for _ in range(node.arity):
        operand = tree.searchSubtree(first)
        first = operand.stop
        if tree[operand.start].ret == node.ret:
            choices.append(list(tree[operand]))
    for nodes in sorted(choices, key=len):
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
