"""Context-free grammars of formulas.

A rule replaces a non-terminal by a prefix list of nodes, some of which may be non-terminals again. A derivation
(:mod:`cfg_mcts.derivation`) replaces the leftmost non-terminal until none is left; what it has then is an expression,
the same prefix list that a tree is everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from deap import gp

from deap_vsr.errors import VsrError
from deap_vsr.files import read_text
from deap_vsr.tree import Constant, Node, is_variable, node_from_name, variable
from deap_vsr.tree.notation import infix
from deap_vsr.tree.operators import normalise_function_set

#: Unary operators that do not count as functions within functions: powers, roots and signs.
ALGEBRAIC = frozenset({"neg", "inv", "abs", "sqrt", "n2", "n3", "n4", "n5", "n6", "n8"})


#: Largest file of rules that is read, in bytes.
MAX_BYTES = 100_000


class GrammarError(VsrError, ValueError):
    """A grammar that cannot be used, with the line and column where it was written as text."""


class NonTerminal(gp.Terminal):
    """A place in a form that a rule has still to fill."""

    def __init__(self, name: str) -> None:
        super().__init__(name, True, object)


@lru_cache(maxsize=1024)
def nonterminal(name: str) -> NonTerminal:
    """Return the (shared) node of the non-terminal called `name`."""
    return NonTerminal(name)


@dataclass(frozen=True, eq=False)
class Rule:
    """``head -> body``: a non-terminal's name, and the prefix list that may take its place."""

    head: str
    body: tuple[Node, ...]

    @cached_property
    def places(self) -> tuple[tuple[Node, int, int], ...]:
        """Each node of the body with its depth in it, and how many functions are around it."""
        found = []
        pending = [(0, 0)]
        for node in self.body:
            depth, inside = pending.pop()
            found.append((node, depth, inside))
            below = (depth + 1, inside + is_function(node))
            pending.extend([below] * node.arity)
        return tuple(found)

    @property
    def variables(self) -> set[int]:
        """Columns, from 0, of the variables in the body."""
        return {
            int(node.value[1:]) - 1 for node in self.body if is_variable(node) and not isinstance(node, NonTerminal)
        }

    def __str__(self) -> str:
        return f"{self.head} -> {infix(self.body, skeleton=True)}"


def is_function(node: Node) -> bool:
    """Whether `node` counts as a function within functions: unary and not algebraic."""
    return node.arity == 1 and node.name not in ALGEBRAIC


class Grammar:
    """Rules, of which the first one's head is where derivations start.

    Parameters
    ----------
    rules : in the order in which they are tried
    name : what results call it

    Raises
    ------
    GrammarError
        If a non-terminal has no rule, can never come to an end, or can turn into itself and nothing more.
    """

    def __init__(self, rules: Iterable[Rule], name: str = "own") -> None:
        self.rules = tuple(rules)
        self.name = name
        if not self.rules:
            raise GrammarError("a grammar needs at least one rule, such as A -> x1")
        self.start = self.rules[0].head
        self._shortest: dict[tuple[int, int], dict[str, list[list[float]]]] = {}
        self.by_head: dict[str, tuple[Rule, ...]] = {}
        for rule in self.rules:
            self.by_head[rule.head] = (*self.by_head.get(rule.head, ()), rule)
        self._check()

    @classmethod
    def from_operators(cls, function_set: Sequence[str], columns: Iterable[int], coefficients: bool = False) -> Grammar:
        """Return the grammar of one non-terminal A: an operator of As, a variable, a constant.

        With `coefficients` the leaves are C*x and C*f(x), for every unary f of the set, instead of x, and functions are
        found nowhere else. Such a grammar knows the shape of sums of terms: compare it only with methods that know it
        too.
        """
        names = normalise_function_set(function_set)
        A, C = nonterminal("A"), Constant(1.0)
        operators = [node_from_name(name) for name in names if name != "const"]
        inner = [operator for operator in operators if operator.arity > 1 or not coefficients]
        rules: list[tuple[Node, ...]] = [(operator, *[A] * operator.arity) for operator in inner]
        leaves: list[tuple[Node, ...]] = []
        for x in (variable(column + 1) for column in columns):
            leaves.append((x,))
            leaves += [(operator, x) for operator in operators if operator.arity == 1 and coefficients]
        times: tuple[Node, ...] = (node_from_name("mul"), C) if coefficients else ()
        rules += [(*times, *leaf) for leaf in leaves]
        if "const" in names or not leaves:
            rules.append((C,))
        return cls([Rule("A", body) for body in rules], "coefficient leaves" if coefficients else "operators")

    @classmethod
    def from_text(cls, text: str, name: str = "own") -> Grammar:
        """Read rules such as ``A -> A + A | C*sin(x1)``; see :mod:`cfg_mcts.text`."""
        from cfg_mcts.text import read_rules

        return cls(read_rules(text), name)

    @classmethod
    def from_file(cls, path: str | Path) -> Grammar:
        """Read a file of such rules."""
        path = Path(path)
        try:
            text = read_text(path, MAX_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise GrammarError(
                f"{path}: cannot read the grammar: {why}; give a file of rules, or coefficients"
            ) from None
        try:
            return cls.from_text(text, path.stem)
        except GrammarError as error:
            raise GrammarError(f"{path}: {error}") from None

    def __str__(self) -> str:
        alternatives = {
            head: " | ".join(infix(rule.body, skeleton=True) for rule in rules) for head, rules in self.by_head.items()
        }
        return "\n".join(f"{head} -> {bodies}" for head, bodies in alternatives.items())

    @property
    def variables(self) -> set[int]:
        """Columns, from 0, of the variables in its rules."""
        return {column for rule in self.rules for column in rule.variables}

    def restricted(self, columns: Iterable[int]) -> Grammar:
        """Return the grammar with only those rules whose variables are among `columns`.

        Non-terminals that cannot come to an end without the others go as well.
        """
        allowed = set(columns)
        rules = [rule for rule in self.rules if rule.variables <= allowed]
        while True:
            finite = _ending(rules)
            kept = [rule for rule in rules if {rule.head, *heads_in(rule)} <= finite]
            if len(kept) == len(rules):
                break
            rules = kept
        if not any(rule.head == self.start for rule in rules):
            named = ", ".join(f"x{column + 1}" for column in sorted(allowed)) or "no variable"
            raise GrammarError(f"the grammar has no expression of {self.start} in {named} alone")
        first = [rule for rule in rules if rule.head == self.start]
        return Grammar([*first, *(rule for rule in rules if rule.head != self.start)], self.name)

    def _check(self) -> None:
        for rule in self.rules:
            for head in heads_in(rule):
                if head not in self.by_head:
                    raise GrammarError(f"non-terminal {head} in `{rule}` has no rule of its own")
        endless = sorted(set(self.by_head) - _ending(self.rules))
        if endless:
            raise GrammarError(f"non-terminal {endless[0]} never comes to an end; give it a rule without non-terminals")
        units = {
            head: {
                rule.body[0].value for rule in rules if len(rule.body) == 1 and isinstance(rule.body[0], NonTerminal)
            }
            for head, rules in self.by_head.items()
        }
        for head in units:
            reached: set[str] = set()
            new = {head}
            while new:
                new = {other for one in new for other in units[one]} - reached
                reached |= new
            if head in reached:
                raise GrammarError(f"non-terminal {head} can turn into itself and nothing more, without end")

    # --- how short, and how many ---

    def shortest(self, max_depth: int, nesting: int) -> dict[str, list[list[float]]]:
        """Return ``table[head][depth][functions]``: fewest nodes that fill `head` within so much depth and nesting."""
        if (max_depth, nesting) not in self._shortest:
            self._shortest[max_depth, nesting] = self._shortest_table(max_depth, nesting)
        return self._shortest[max_depth, nesting]

    def _shortest_table(self, max_depth: int, nesting: int) -> dict[str, list[list[float]]]:
        table = {head: [[math.inf] * (nesting + 1) for _ in range(max_depth + 1)] for head in self.by_head}
        for depth in range(max_depth + 1):
            changed = True
            while changed:  # rules such as A -> B use the same depth again
                changed = False
                for head, rules in self.by_head.items():
                    for inside in range(nesting + 1):
                        best = min(least_length(rule, table, depth, inside) for rule in rules)
                        if best < table[head][depth][inside]:
                            table[head][depth][inside] = best
                            changed = True
        return table

    def count(self, max_length: int) -> list[int]:
        """Return how many expressions have 0, 1, ... `max_length` nodes.

        Derivations are counted: an expression that an ambiguous grammar derives in two ways counts twice.
        """
        counts = {head: [0] * (max_length + 1) for head in self.by_head}
        for length in range(1, max_length + 1):
            for head in self._units_first():
                counts[head][length] = sum(_count_rule(rule, counts, length) for rule in self.by_head[head])
        return counts[self.start]

    def _units_first(self) -> list[str]:
        """Return the heads so that B comes before A where there is a rule A -> B."""
        ordered: list[str] = []

        def visit(head: str) -> None:
            if head in ordered:
                return
            for rule in self.by_head[head]:
                if len(rule.body) == 1 and isinstance(rule.body[0], NonTerminal):
                    visit(str(rule.body[0].value))
            ordered.append(head)

        for head in self.by_head:
            visit(head)
        return ordered

    def expressions(self, max_length: int) -> Iterator[tuple[Node, ...]]:
        """Yield every expression of at most `max_length` nodes, in the order of leftmost derivations."""
        table = self.shortest(max_length, max_length)
        pending: list[tuple[Node, ...]] = [(nonterminal(self.start),)]
        while pending:
            form = pending.pop()
            place = first_open(form)
            if place is None:
                yield form
                continue
            for rule in reversed(self.by_head[str(form[place].value)]):
                grown = (*form[:place], *rule.body, *form[place + 1 :])
                least = sum(table[n.value][-1][-1] if isinstance(n, NonTerminal) else 1 for n in grown)
                if least <= max_length:
                    pending.append(grown)


def heads_in(rule: Rule) -> list[str]:
    """Return the names of the non-terminals in the body of `rule`, from left to right."""
    return [str(node.value) for node in rule.body if isinstance(node, NonTerminal)]


def _ending(rules: Sequence[Rule]) -> set[str]:
    """Return the non-terminals from which an expression can be reached."""
    ending: set[str] = set()
    while True:
        more = {rule.head for rule in rules if set(heads_in(rule)) <= ending}
        if more == ending:
            return ending
        ending = more


def _count_rule(rule: Rule, counts: dict[str, list[int]], length: int) -> int:
    """Return how many expressions of exactly `length` nodes begin with `rule`."""
    heads = heads_in(rule)
    ways = {len(rule.body) - len(heads): 1}
    for head in heads:
        more: dict[int, int] = {}
        for used, number in ways.items():
            for size in range(1, length - used + 1):
                if counts[head][size]:
                    more[used + size] = more.get(used + size, 0) + number * counts[head][size]
        ways = more
    return ways.get(length, 0)


def least_length(rule: Rule, table: dict[str, list[list[float]]], depth: int, inside: int) -> float:
    """Return the fewest nodes that `rule` leads to, with so much depth and so many functions left; inf if too many."""
    total = 0.0
    for node, below, within in rule.places:
        if below > depth or within + is_function(node) > inside:
            return math.inf
        total += table[str(node.value)][depth - below][inside - within] if isinstance(node, NonTerminal) else 1
    return total


def first_open(form: Sequence[Node]) -> int | None:
    """Return the position of the leftmost non-terminal of a form; None if it is an expression."""
    return next((position for position, node in enumerate(form) if isinstance(node, NonTerminal)), None)
