"""Derivations within limits: which rules may come next, and random completions that always end."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from cfg_mcts.grammar import (
    Grammar,
    GrammarError,
    NonTerminal,
    Rule,
    first_open,
    heads_in,
    is_function,
    least_length,
    nonterminal,
)
from deap_vsr.tree import MaskedTree, Node, is_mutable, is_open


@dataclass(frozen=True)
class Limits:
    """How large a derivation may grow.

    Attributes
    ----------
    max_length : int
        Nodes that it may add to the form it starts from, in all.
    max_depth : int
        Depth of what grows at one non-terminal of that form.
    nesting : int
        Functions within each other in what grows at one: with 1 there is no sin(sin(x)). Frozen functions around a
        slot do not count, as an experiment has shown that they belong there.
    """

    max_length: int = 25
    max_depth: int = 8
    nesting: int = 1


def functions_around(tree: MaskedTree) -> list[int]:
    """Return for each node how many functions are around it that search may change."""
    found, pending = [], [0]
    for node in tree:
        inside = pending.pop()
        found.append(inside)
        pending.extend([inside + (is_function(node) and is_mutable(node))] * node.arity)
    return found


@dataclass(frozen=True, eq=False)
class Derivation:
    """A form and, for each of its non-terminals, the depth and the functions that it has used up.

    ``added`` counts the nodes beyond those it started from, each non-terminal as the fewest nodes that fill it.
    """

    form: tuple[Node, ...]
    used: tuple[tuple[int, int], ...]
    added: float

    @property
    def finished(self) -> bool:
        """Whether no non-terminal is left."""
        return not self.used

    @property
    def tree(self) -> MaskedTree:
        """The expression, if it is finished."""
        return MaskedTree(self.form).checked()


class Deriver:
    """Derivations of one grammar within limits: which rules may come next, and random completions."""

    def __init__(
        self, grammar: Grammar, limits: Limits | None = None, leaf_share: float = 0.5, stay: float = 0.7
    ) -> None:
        self.grammar = grammar
        self.limits = limits or Limits()
        self.table = grammar.shortest(self.limits.max_depth, self.limits.nesting)
        if self.table[grammar.start][-1][-1] > self.limits.max_length:
            raise GrammarError(f"{grammar.start} has no expression within {self.limits}")
        self._rules = {
            head: [(rule, self._lengths(rule), 1.0 if heads_in(rule) else 0.0) for rule in rules]
            for head, rules in grammar.by_head.items()
        }
        self.leaf_share = leaf_share
        self.stay = stay
        self._constants = {
            head: next((rule for rule in rules if len(rule.body) == 1 and is_open(rule.body[0])), None)
            for head, rules in grammar.by_head.items()
        }

    def _lengths(self, rule: Rule) -> list[list[float]]:
        depths, functions = range(self.limits.max_depth + 1), range(self.limits.nesting + 1)
        return [[least_length(rule, self.table, depth, inside) for inside in functions] for depth in depths]

    def begin(self, tree: MaskedTree | None = None, slots: Sequence[int] | None = None) -> Derivation:
        """Return the derivation that starts from a tree whose slots are non-terminals, or from nothing.

        `slots` are the positions of those that may grow; by default all. One inside so many functions that no
        expression of the grammar can be put there stays a constant. A tree without slots is finished.
        """
        start = nonterminal(self.grammar.start)
        if tree is None:
            return Derivation((start,), ((0, 0),), self.table[self.grammar.start][-1][-1])
        inside = [min(around, self.limits.nesting) for around in functions_around(tree)]
        least = self.table[self.grammar.start][-1]
        opened = [p for p in (tree.slots if slots is None else slots) if least[-1 - inside[p]] < math.inf]
        form = tuple(start if position in opened else node for position, node in enumerate(tree))
        used = tuple((0, inside[position]) for position in sorted(opened))
        added = sum(least[-1 - around] for _, around in used)
        if added > self.limits.max_length:
            raise GrammarError(f"{len(opened)} slots cannot be filled within {self.limits}")
        return Derivation(form, used, added)

    def allowed(self, derivation: Derivation) -> list[Rule]:
        """Return the rules that may replace the leftmost non-terminal, so that the limits can still be kept."""
        place = first_open(derivation.form)
        if place is None:
            return []
        depth, inside = self._left(derivation.used[0])
        head = str(derivation.form[place].value)
        room = self._room(derivation) + self.table[head][depth][inside]
        return [rule for rule, lengths, _ in self._rules[head] if lengths[depth][inside] <= room]

    def apply(self, derivation: Derivation, rule: Rule) -> Derivation:
        """Replace the leftmost non-terminal by the body of `rule`."""
        place = first_open(derivation.form)
        if place is None or derivation.form[place].value != rule.head:
            raise GrammarError(f"`{rule}` does not fit: the leftmost non-terminal is another one")
        depth, inside = derivation.used[0]
        left = self._left(derivation.used[0])
        used = tuple(
            (depth + below, inside + within) for node, below, within in rule.places if isinstance(node, NonTerminal)
        )
        added = derivation.added - self.table[rule.head][left[0]][left[1]] + least_length(rule, self.table, *left)
        form = (*derivation.form[:place], *rule.body, *derivation.form[place + 1 :])
        return Derivation(form, used + derivation.used[1:], added)

    def complete(self, derivation: Derivation, rng: random.Random) -> MaskedTree:
        """Return a random expression that the derivation leads to, within the limits.

        A rule without non-terminals is taken with probability ``leaf_share``, where there is one; otherwise, and
        among rules of a kind, all are as likely. So expressions are short more often than long. A slot that the
        derivation has not yet come to stays a constant with probability ``stay``: what is tried at one slot is then
        seen by itself, and not through what chance makes of all the others.
        """
        out: list[Node] = []
        room = self._room(derivation)
        pending = self._pending(derivation, rng)
        max_depth, nesting = self.limits.max_depth, self.limits.nesting
        draw, share = rng.random, self.leaf_share
        while pending:
            node, depth, inside = pending.pop()
            if type(node) is not NonTerminal:
                out.append(node)
                continue
            d, k = max_depth - depth, nesting - inside
            room += self.table[node.value][d][k]
            leaves: list[tuple[Rule, float]] = []
            inner: list[tuple[Rule, float]] = []
            for rule, lengths, grows in self._rules[node.value]:
                if lengths[d][k] <= room:
                    (inner if grows else leaves).append((rule, lengths[d][k]))
            among = leaves if not inner or (leaves and draw() < share) else inner
            rule, least = among[int(draw() * len(among))]
            room -= least
            for item, below, within in reversed(rule.places):
                pending.append((item, depth + below, inside + within))
        return MaskedTree(out)

    def _pending(self, derivation: Derivation, rng: random.Random) -> list[tuple[Node, int, int]]:
        """Return the nodes of the form in reverse, non-terminals with what they have used up; some slots stay."""
        used = iter(derivation.used)
        pending: list[tuple[Node, int, int]] = []
        first = True
        for node in derivation.form:
            if not isinstance(node, NonTerminal):
                pending.append((node, 0, 0))
                continue
            depth, inside = next(used)
            constant = self._constants[str(node.value)] if depth == 0 and not first else None
            stays = constant is not None and rng.random() < self.stay
            pending.append((constant.body[0], 0, 0) if stays and constant else (node, depth, inside))
            first = False
        pending.reverse()
        return pending

    def _left(self, used: tuple[int, int]) -> tuple[int, int]:
        return self.limits.max_depth - used[0], self.limits.nesting - used[1]

    def _room(self, derivation: Derivation) -> float:
        return self.limits.max_length - derivation.added
