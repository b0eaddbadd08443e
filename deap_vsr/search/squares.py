"""Roots of squares: sqrt(x1**2 - 2*x1*x2 + x2**2) is abs(x1 - x2), which a round that squares a phase leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import sqrt

import numpy as np

from deap_vsr.lab.lab import Lab
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import literals
from deap_vsr.tree.tidy import terms_of

#: Squares of more terms are not looked for, as every sign is tried, and how near the square must be to what stands
#: there: numbers that were fitted are a little off.
MOST_TERMS, NEAR = 5, 1e-7
#: At so many points of the domain, beside those that were measured, it is seen of which sign a sum is.
POINTS = 500
#: Functions that are the same of -u.
EVEN = frozenset({"cos", "cosh", "abs", "n2", "n4", "n6", "n8"})


def without_roots_of_squares(tree: MaskedTree, X: Array, lab: Lab) -> Iterator[MaskedTree]:
    """Yield a formula with a sum in the place of the root of its square, as far as that can be told at `X`."""
    if not len(X):
        return
    domain = draw_inputs(lab.variables, POINTS, np.random.default_rng(0))
    for position, node in enumerate(tree):
        if node.name != "sqrt" or not node.arity:
            continue
        whole = tree.searchSubtree(position)
        inside = MaskedTree(tree[position + 1 : whole.stop])
        with np.errstate(all="ignore"):
            root = np.sqrt(inside.evaluate(X, lab.pset))
        for candidate in _sums(inside, lab.function_set):
            with np.errstate(all="ignore"):
                values = candidate.evaluate(X, lab.pset)
                sides = np.append(values, candidate.evaluate(domain, lab.pset))
            if not np.max(np.abs(np.abs(values) - root)) <= NEAR * np.max(root):
                continue
            minus = [node_from_name("mul"), Constant(-1.0, False, False)]
            if (position and tree[position - 1].name in EVEN) or (sides >= 0.0).all():
                nodes = list(candidate)
            elif (sides <= 0.0).all():
                nodes = [*minus, *candidate]
            elif "abs" in lab.function_set:
                nodes = [node_from_name("abs"), *candidate]
            else:
                continue
            yield MaskedTree([*tree[:position], *nodes, *tree[whole.stop :]])


def _sums(inside: MaskedTree, function_set: tuple[str, ...]) -> Iterator[MaskedTree]:
    """Yield the sums whose squares have the pure squares that stand in a sum, with every choice of signs."""
    expanded = expand(literals(inside), function_set)
    terms = [] if expanded is None else terms_of(list(literals(expanded)), 1.0)
    halves = [(term.number, term.square_of if term.factors else ()) for term in terms]
    roots = [(sqrt(number), half) for number, half in halves if number > 0.0 and half is not None]
    if not 2 <= len(roots) <= MOST_TERMS or len(terms) <= len(roots):
        return
    for signs in product((1.0, -1.0), repeat=len(roots) - 1):
        nodes: list[Node] = []
        for i, (sign, (number, factors)) in enumerate(zip((1.0, *signs), roots, strict=True)):
            term: list[Node] = [Constant(sign * number, False, False)]
            for factor in factors:
                term = [node_from_name("mul"), *term, *factor]
            nodes = [node_from_name("add"), *nodes, *term] if i else term
        yield MaskedTree(nodes)
