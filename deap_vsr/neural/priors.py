"""Priors and constraints: what a policy may write next, and what it is inclined to write before it has learnt anything.

Each is a small function of the :class:`~deap_vsr.neural.walk.State` of n formulas: hard ones return what is forbidden,
(n, L), soft ones what is added to the logits. Their defaults are those of DSO, but for what :class:`Rules` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deap_vsr.neural.tokens import Library
from deap_vsr.neural.walk import State
from deap_vsr.tree.operators import Array, Flags

#: What is added to the logit of a token that is forbidden: its probability is 0, and no gradient is NaN.
FORBIDDEN = -1e9


@dataclass(frozen=True)
class Rules:
    """Numbers of the priors.

    Attributes
    ----------
    min_length, max_length : tokens of a formula; in slots the most for all of them, and no least number
        DSO's least number is 4; here 1, as C/x is the whole of a reduced form. The most was 30 when DSR was published,
        and is 64 now: of x**4 - x**2 + x, x**5 + x**3 + x and x**6 + x**4 + x**2 + x, three seeds each and 200,000
        samples, 30 finds 7 of 9, and on the last two 6 of 6 where 64 finds 5.
    max_constants : open constants of a formula, those that stay in slots not counted
        DSO has 3 now, and had 10; a sum of terms with their coefficients needs more than 3.
    constants_each : so many of them for each variable that is offered; None: no such limit, as published
        A form in one variable with more constants than it needs holds as well, but they hide one another: what the
        slots then are of the next variable is no simple formula. Vertical search over `dsr`, 40,000 evaluations, five
        trigonometric programs: with 4 for a formula 7 of 14 rounds held, with 10 of them 4 (benchmarks/neural.md).
    uniform_arity : whether leaves, functions and binary operators are equally likely, however many there are of each
    soft_length, soft_scale : length about which formulas are drawn, and how strictly
        A formula that ends at length t earlier, or goes on later, loses (t - soft_length)^2 / (2 soft_scale).
    stay : how likely a slot stays a constant, before anything is learnt; as for MCTS
    """

    min_length: int = 1
    max_length: int = 30
    max_constants: int = 10
    constants_each: int | None = 4
    uniform_arity: bool = True
    soft_length: float | None = 10.0
    soft_scale: float = 5.0
    stay: float = 0.7


# --- hard: (n, L), whether it is forbidden ------------------------------------------------


def not_offered(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid what only a frozen form has."""
    return np.broadcast_to(~library.offered, (len(state.parent), len(library)))


def too_long(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid operators for whose operands there is no room."""
    return np.asarray(library.arities > (state.room - state.open)[:, None])


def too_short(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid leaves that would end a formula too early."""
    ends = (state.open == 1) & (state.sampled + 1 < rules.min_length) & state.fresh
    return np.asarray(ends[:, None] & (library.arities == 0))


def too_many_constants(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid one more constant where there are enough; a slot may stay one."""
    each = rules.max_constants if rules.constants_each is None else rules.constants_each * library.n_variables
    enough = (state.constants >= min(rules.max_constants, each)) & (~state.at_root | state.fresh)
    return np.asarray(enough[:, None] & library.constants)


def undoes_its_parent(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid log directly below exp, and the like."""
    return np.asarray(np.append(library.inverses, -1)[state.parent][:, None] == np.arange(len(library)))


def trig_in_trig(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid trigonometric functions within trigonometric functions."""
    return np.asarray(state.in_trig[:, None] & library.trigonometric)


def constant_of_constants(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid a constant as the only operand, or beside another one; a slot may stay one."""
    constant_beside = np.append(library.constants, False)[state.sibling]
    alone = ((state.parent_arity == 1) | constant_beside) & (~state.at_root | state.fresh)
    return np.asarray(alone[:, None] & library.constants)


def without_variables(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid the end of a formula that has no variable."""
    ends = (state.open == 1) & ~state.has_variable & state.fresh
    return np.asarray(ends[:, None] & library.constants)


def nothing_new(state: State, library: Library, rules: Rules) -> Flags:
    """Forbid that all slots stay as they are: that formula is known."""
    return np.asarray((state.last_untouched & ~np.bool_(state.fresh))[:, None] & library.constants)


Hard = Callable[[State, Library, Rules], Flags]
HARD: tuple[Hard, ...] = (
    not_offered,
    too_long,
    undoes_its_parent,
    trig_in_trig,
    too_many_constants,
    constant_of_constants,
    without_variables,
    nothing_new,
    too_short,
)


def forbidden(state: State, library: Library, rules: Rules) -> Flags:
    """Return what may not come next, (n, L); a rule that would leave nothing to a formula is not applied to it."""
    rules_say = [rule(state, library, rules) for rule in HARD]
    found: Flags = np.logical_or.reduce(rules_say)
    if found.all(axis=1).any():
        found = np.zeros_like(found)
        for one in rules_say:
            more = found | one
            found = np.where(more.all(axis=1, keepdims=True), found, more)
    return found


# --- soft: (n, L), added to logits --------------------------------------------------------


def uniform_arity(state: State, library: Library, rules: Rules) -> Array:
    """Return what makes all arities equally likely."""
    alike = library.arities[:, None] == library.arities[library.offered]
    return np.broadcast_to(-np.log(np.maximum(alike.sum(axis=1), 1)), (len(state.parent), len(library)))


def soft_length(state: State, library: Library, rules: Rules) -> Array:
    """Return what keeps formulas near a length: no early end, and no operators late; slots may be short."""
    assert rules.soft_length is not None
    price = -((state.grown - rules.soft_length) ** 2) / (2.0 * rules.soft_scale)
    early = (state.grown < rules.soft_length) & (state.open == 1) & state.fresh
    late = state.grown > rules.soft_length
    leaf = library.arities == 0
    return np.where(early[:, None] & leaf | late[:, None] & ~leaf, price[:, None], 0.0)


def prior_logits(state: State, library: Library, rules: Rules) -> Array:
    """Return the logits of a policy that has learnt nothing: (n, L)."""
    logits = np.zeros((len(state.parent), len(library)))
    if rules.uniform_arity:
        logits = logits + uniform_arity(state, library, rules)
    if rules.soft_length is not None:
        logits = logits + soft_length(state, library, rules)
    logits[forbidden(state, library, rules)] = FORBIDDEN
    if not state.fresh and state.at_root.any():
        logits = np.where(state.at_root[:, None], _inclined_to_stay(logits, library, rules.stay), logits)
    return logits


def _inclined_to_stay(logits: Array, library: Library, stay: float) -> Array:
    """Return logits with which a slot stays a constant as often as `stay` says."""
    constant = library.constants & library.offered
    if not constant.any() or constant.sum() == library.offered.sum():
        return logits
    weights = np.exp(logits) * ~constant
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    others = np.where(logits > FORBIDDEN, logits - np.log(total) + math.log(1.0 - stay), FORBIDDEN)
    return np.where(constant & (logits > FORBIDDEN), math.log(stay), others)
