"""Stage 5, small skeletons: expressions with two or three constants inside functions, by size, from many starts.

A term is x, a function of an argument, a power with an open exponent, or a product of terms; an argument is a term or a
sum of two, with open constants before it, beside it, or both. A skeleton is one term or two, with coefficients, and a
constant. All of them are built by rule from the operator set. Constants that come out of a function, as the factor
within a root does, are not put into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deap_vsr.engine.fitting import fit
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.inner import FACTOR_COMES_OUT, SHIFT_COMES_OUT
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, MaskedTree, node_from_name, operators, variable

#: Constants inside functions: fewer are left to the stages before, more are not tried.
FEWEST, MOST = 2, 3
#: The most that a skeleton costs.
MAX_COST = 9
#: How many skeletons there are at most.
LIMIT = 2500
#: Which skeletons are fitted (begin, end), and from how many starts beside that of all ones: those that cost next to
#: nothing; and what comes after them, few starts for all the others, then more for some.
QUICK = ((0, 150, 4),)
THOROUGH = ((150, LIMIT, 4), (0, 400, 20))


@dataclass(frozen=True)
class Term:
    """Nodes in x1 and open constants, all `n_inner` of them inside functions.

    It costs one for each leaf, function, sum and product, and one more where a function is taken of a function alone;
    ``depth`` says how many functions are within each other. ``factors`` are the same for the same structure, in
    whatever order a product has them.
    """

    nodes: Nodes
    cost: int
    n_inner: int
    depth: int
    factors: tuple[str, ...]

    @property
    def text(self) -> str:
        """The structure as text."""
        return f"[{' '.join(self.factors)}]" if len(self.factors) > 1 else self.factors[0]


@dataclass(frozen=True)
class _Argument(Term):
    """What a function is taken of: so many terms, so many of them with an open factor, and perhaps a constant."""

    n_terms: int = 1
    n_scaled: int = 0
    shifted: bool = False
    reflected: bool = False
    """Whether it is the constant less the term."""

    @property
    def is_function(self) -> bool:
        """Whether it is a function, with nothing before or beside it."""
        plain = self.n_terms == 1 and not self.n_scaled and not self.shifted
        return plain and (self.nodes[0].arity == 1 or self.nodes[0].name in ("div", "pow"))


@lru_cache(maxsize=16)
def skeletons_of(
    function_set: tuple[str, ...], max_cost: int = MAX_COST, limit: int = LIMIT
) -> tuple[tuple[Term, ...], ...]:
    """Return the skeletons of a set, cheapest first: each one term or two that are to be added."""
    terms = _Terms(function_set)
    result: list[tuple[Term, ...]] = []
    for cost in range(1, max_cost + 1):
        found = [*((term,) for term in terms.at(cost)), *(terms.pairs(cost - 1) if "add" in terms.allowed else ())]
        wanted = [skeleton for skeleton in found if FEWEST <= _n_inner(skeleton) <= MOST]
        result += sorted(wanted, key=lambda skeleton: (_n_inner(skeleton), _depth(skeleton)))
        if len(result) >= limit:
            break
    return tuple(result[:limit])


def _n_inner(terms: Sequence[Term]) -> int:
    return sum(term.n_inner for term in terms)


def _depth(terms: Sequence[Term]) -> int:
    return max(term.depth for term in terms)


class _Terms:
    """The terms of a set, cost by cost."""

    def __init__(self, function_set: tuple[str, ...]) -> None:
        self.allowed = frozenset(function_set)
        self.unary = functions(function_set)
        own = [name for name in function_set if name != "const" and not operators.get(name).known]
        self.own_binary = [name for name in own if operators.get(name).arity == 2]
        self.seen: set[tuple[str, ...]] = set()
        self.built: dict[int, list[Term]] = {1: [Term((variable(1),), 1, 0, 0, ("x",))]}

    def at(self, cost: int) -> list[Term]:
        """Return the terms of a cost, no two of the same structure."""
        if cost < 1:
            return []
        if cost not in self.built:
            self.built[cost] = []
            for term in self._fresh(cost):
                if term.n_inner <= MOST and term.factors not in self.seen:
                    self.seen.add(term.factors)
                    self.built[cost].append(term)
        return self.built[cost]

    def pairs(self, cost: int) -> Iterator[tuple[Term, Term]]:
        """Yield pairs of terms that cost so much together, the dearer first."""
        for half in range(1, cost // 2 + 1):
            others = self.at(half)
            for i, first in enumerate(self.at(cost - half)):
                for second in others[: i + 1] if 2 * half == cost else others:
                    yield first, second

    def _fresh(self, cost: int) -> Iterator[Term]:
        for more in (1, 2):
            for argument in self._arguments(cost - more):
                for function in self.unary if argument.is_function == (more == 2) else ():
                    if _belongs(function, argument):
                        nodes = function.of(argument.nodes, self.allowed)
                        yield Term(
                            nodes, cost, argument.n_inner, argument.depth + 1, (f"{function.name}({argument.text})",)
                        )
        if "mul" in self.allowed:
            for pair in self.pairs(cost - 1):
                nodes = (node_from_name("mul"), *pair[0].nodes, *pair[1].nodes)
                yield Term(nodes, cost, _n_inner(pair), _depth(pair), tuple(sorted(pair[0].factors + pair[1].factors)))
        if "pow" in self.allowed:
            for argument in self._arguments(cost - 2):
                if not argument.n_scaled and argument.nodes[0].name not in ("pow", "exp", "sqrt"):
                    nodes = (node_from_name("pow"), *argument.nodes, Constant(1.0))
                    yield Term(nodes, cost, argument.n_inner + 1, argument.depth + 1, (f"pow({argument.text}, C)",))
        for name in self.own_binary:
            for pair in self._operands(cost - 1):
                nodes = (node_from_name(name), *pair[0].nodes, *pair[1].nodes)
                texts = (f"{name}({pair[0].text}, {pair[1].text})",)
                yield Term(nodes, cost, _n_inner(pair), _depth(pair) + 1, texts)

    def _operands(self, cost: int) -> Iterator[tuple[Term, Term]]:
        """Yield what an operator of two operands that nothing is known of is taken of: arguments, or one and C."""
        constant = Term((Constant(1.0),), 1, 1, 0, ("C",))
        for argument in self._arguments(cost - 1):
            yield from ((argument, constant), (constant, argument))
        for left in range(1, cost):
            for first in self._arguments(left):
                yield from ((first, second) for second in self._arguments(cost - left))

    def _arguments(self, cost: int) -> Iterator[_Argument]:
        """Yield the arguments of a cost, those of one term first."""
        for term in self.at(cost):
            yield _Argument(term.nodes, cost, term.n_inner, term.depth, (term.text,))
        times, plus, less = ((node_from_name(name), Constant(1.0)) for name in ("mul", "add", "sub"))
        for term in self.at(cost - 1):
            inner, text = term.n_inner + 1, term.text
            if "mul" in self.allowed:
                yield _Argument((*times, *term.nodes), cost, inner, term.depth, (f"C*{text}",), n_scaled=1)
            if "add" in self.allowed:
                yield _Argument((*plus, *term.nodes), cost, inner, term.depth, (f"C + {text}",), shifted=True)
            if "sub" in self.allowed:
                yield _Argument(
                    (*less, *term.nodes), cost, inner, term.depth, (f"C - {text}",), shifted=True, reflected=True
                )
        if not {"add", "mul"} <= self.allowed:
            return
        for term in self.at(cost - 2):
            nodes = (*plus, *times, *term.nodes)
            yield _Argument(
                nodes, cost, term.n_inner + 2, term.depth, (f"C + C*{term.text}",), n_scaled=1, shifted=True
            )
        for before in ((0, 0), (1, 0), (0, 1), (1, 1)):
            for pair in self.pairs(cost - 1 - sum(before)):
                if pair[0] is not pair[1] or pair[0].n_inner:
                    parts = [(*times * b, *term.nodes) for b, term in zip(before, pair, strict=True)]
                    texts = sorted("C*" * b + term.text for b, term in zip(before, pair, strict=True))
                    nodes = (node_from_name("add"), *parts[0], *parts[1])
                    inner = _n_inner(pair) + sum(before)
                    yield _Argument(nodes, cost, inner, _depth(pair), (" + ".join(texts),), 2, sum(before))


def _belongs(function: Function, argument: _Argument) -> bool:
    """Whether a function of an argument is not the same as a simpler one with constants before it or beside it."""
    name, inner = function.name, argument.nodes[0].name
    if name in SHIFT_COMES_OUT and argument.shifted:
        return False
    if name == "log" and inner == "exp":
        return False
    if name not in FACTOR_COMES_OUT:  # u(C*v) has one constant more than u(v) and is as good
        return not argument.reflected and not argument.is_function
    if argument.n_scaled == argument.n_terms:
        return False
    if argument.reflected and name not in ("sqrt", "log"):  # a sign comes out as well, but not of these
        return False
    if inner in FACTOR_COMES_OUT | {"pow", "mul", "div"}:  # an inverse of a root, and no root of an inverse
        return name == "inv" and inner not in ("inv", "div", "mul")
    return not (name != "log" and inner == "exp")


def small_skeletons(target: Target, passes: Sequence[tuple[int, int, int]] = (*QUICK, *THOROUGH)) -> Iterator[Step]:
    """Yield, skeleton by skeleton, a form if it fits the first setting, with starts for all.

    What is fitted has at most half as many constants as there are points. `passes` says which skeletons are fitted
    (begin, end), from how many starts, one pass after the other.
    """
    table = target.table
    data = table.dataset()
    first = data.trial(0)
    for begin, end, n_starts in passes:
        for terms in skeletons_of(table.function_set)[begin:end]:
            tree = MaskedTree(_written(terms, target))
            if 2 * tree.n_constants > table.n_points:
                continue
            fits = [fit(tree, first, n_starts=n_starts)]
            fine = table.holds(fits[0], first)
            for k in range(1, data.n_trials if fine else 1):  # from the setting before: one branch is followed
                fits.append(fit(tree, data.trial(k), starts=fits[-1].constants, n_starts=n_starts))
            starts = np.concatenate([outcome.constants for outcome in fits])
            forms = [Form(tuple(tree), starts, len(tree))] if fine else []
            yield forms, sum(outcome.evaluations for outcome in fits)


def _written(terms: tuple[Term, ...], target: Target) -> Nodes:
    """Return the sum of the terms, with coefficients and a constant, as far as the set can write them."""
    parts = [term.nodes for term in terms]
    ones = np.ones(1 + len(parts))
    return sum_nodes([None, *parts], ones, target) or sum_nodes(parts, ones[1:], target) or parts[0]
