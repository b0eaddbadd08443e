"""Grammars as text.

::

    # products of powers
    A -> C * P
    P -> P * P | V | V**2 | sqrt(V)
       | inv(V)
    V -> x1 | x2

A line is ``head -> alternative | alternative``; a line that begins with ``|`` goes on with the head before it. Heads
are capitalised names; the first is where derivations start. Alternatives are formulas as everywhere else: x1, x2, ...
are variables, C is a fitted constant, numbers are numbers.
"""

from __future__ import annotations

import re

from cfg_mcts.grammar import GrammarError, Rule, nonterminal
from deap_vsr.errors import ExpressionError, short
from deap_vsr.tree.notation import parse
from deap_vsr.tree.operators import CATALOGUE

_HEAD = re.compile(r"[A-Z][A-Za-z0-9_]*")
_LINE = re.compile(r"\s*(?P<head>[^\s|>-]*)\s*(?P<arrow>->)?")


def read_rules(text: str) -> list[Rule]:
    """Read rules; errors say line, column and what was expected there."""
    alternatives: list[tuple[str, str, int, int]] = []  # head, text, line, column
    head = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].rstrip()
        if not line:
            continue
        if line.lstrip().startswith("|"):
            if not head:
                raise _error(number, line.index("|") + 1, "found `|` before any rule", "`A -> ...`")
            begin = line.index("|") + 1
        else:
            head, begin = _read_head(line, number)
        for part in line[begin:].split("|"):
            column = begin + 1 + len(part) - len(part.lstrip())
            if not part.strip():
                raise _error(number, column, "found nothing", "a formula such as `A + x1`")
            alternatives.append((head, part.strip(), number, column))
            begin += len(part) + 1
    if not alternatives:
        raise _error(1, 1, "found no rule", "`A -> A + A | x1 | C`")
    names = {one[0]: nonterminal(one[0]) for one in alternatives}
    rules = []
    for head, formula, number, column in alternatives:
        try:
            rules.append(Rule(head, tuple(parse(formula, names))))
        except ExpressionError as error:
            place = column + (error.column or 1) - 1
            expected = f"a formula of {', '.join(sorted(names))}, x1, x2, ..., C, numbers and operators"
            found = re.sub(" at column [0-9]+", "", str(error))  # a column of the line is told, not of the formula
            raise _error(number, place, found, expected) from None
    return rules


def _read_head(line: str, number: int) -> tuple[str, int]:
    """Return the head of a line, and where its alternatives begin."""
    found = _LINE.match(line)
    assert found is not None  # it matches the empty text, too
    head, place = found["head"], found.start("head") + 1
    if not _HEAD.fullmatch(head) or head == "C" or head in CATALOGUE:
        taken = ", not C, which is a constant" if head == "C" else ""
        raise _error(number, place, f"found {short(head)!r}", f"a non-terminal: a capitalised name such as A{taken}")
    if found["arrow"] is None:
        raise _error(number, found.end() + 1, f"found {short(line[found.end() :])!r}", "`->` behind the non-terminal")
    return head, found.end()


def _error(line: int, column: int, found: str, expected: str) -> GrammarError:
    return GrammarError(f"grammar, line {line}, column {column}: {found}; expected {expected}")
