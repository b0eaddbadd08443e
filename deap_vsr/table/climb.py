"""Sums of products of any number of variables, term by term: each term climbs, one factor after the other.

A dictionary of products grows with the power of the number of variables. Here a term begins as something simple and
changes the exponent of one variable, or its function, at a time, to what explains most of what the others leave. What
is found is a proposal, as in :mod:`deap_vsr.table.sums`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Nodes
from deap_vsr.lab.criterion import NODE
from deap_vsr.table.field import Field
from deap_vsr.table.linear import NOTHING, orthogonal
from deap_vsr.table.rows import Rows
from deap_vsr.table.targets import Target, targets
from deap_vsr.table.terms import Part, chains, function_parts, power_nodes, product_nodes, simple_parts, sum_of
from deap_vsr.tree import variable
from deap_vsr.tree.operators import Array

#: Exponents of a variable in a product, and of a function.
EXPONENTS, OF_FUNCTIONS = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 4.0), (1.0, 2.0, -1.0)
#: Functions that a term may have one of, random terms that climb, and terms of a sum.
FUNCTIONS, STARTS, MAX_TERMS = 40, 8, 5
#: Times that all terms of a sum climb again after one was added.
AGAIN = 3


@dataclass(frozen=True)
class Product:
    """A product: by column the place of its exponent, and the place of its function; 0 is none."""

    powers: tuple[int, ...]
    function: int = 0


class Factors:
    """What terms are made of: powers of the columns and functions of simple parts, with values on the screened rows."""

    def __init__(self, rows: Rows) -> None:
        allowed, X = rows.allowed, rows.screen.X
        self.columns, self.allowed = rows.columns, allowed
        x = variable(1)
        self.exponents = [e for e in EXPONENTS if not e or power_nodes((x,), abs(e), allowed) is not None]
        with np.errstate(all="ignore"):
            self.powers = [np.array([X[:, column] ** e for e in self.exponents]) for column in rows.columns]
        simple, values = simple_parts(rows, FUNCTIONS // 2 + 2 * len(rows.columns), 2)
        names = tuple(name for (name, *more) in chains(rows.function_set) if not more and name not in ("1+", "1-"))
        parts, found = function_parts(simple, values, names, numbers=False) if names else ([], np.empty((0, len(X))))
        parts, found = parts[:FUNCTIONS], found[:FUNCTIONS]
        self.functions: list[tuple[Part, float] | None] = [None]
        columns = [np.ones(len(X))]
        for part, column in zip(parts, found, strict=True):
            for exponent in OF_FUNCTIONS:
                with np.errstate(all="ignore"):
                    power = column**exponent
                if len(part.chain) == 1 and np.isfinite(power).all():
                    self.functions.append((part, exponent))
                    columns.append(power)
        self.applied = np.array(columns)
        self.costs = np.array([0.0] + [item[0].cost + abs(item[1]) for item in self.functions if item is not None])

    def values(self, term: Product) -> Array:
        """Return a term's values on the screened rows, (n_rows,); not finite where a power is not."""
        found = self.applied[term.function]
        with np.errstate(all="ignore"):
            for powers, place in zip(self.powers, term.powers, strict=True):
                found = found * powers[place]
        return np.asarray(found)

    def cost(self, term: Product) -> float:
        """Return about how many nodes a term has."""
        return float(2.0 + sum(1.0 + abs(self.exponents[p]) for p in term.powers if p) + self.costs[term.function])

    def changed(self, term: Product) -> Iterator[tuple[list[Product], Array]]:
        """Yield, factor by factor, all that a term becomes by another one, with values (n_terms, n_rows)."""
        for i, powers in enumerate(self.powers):
            choices = [replace(term, powers=(*term.powers[:i], p, *term.powers[i + 1 :])) for p in range(len(powers))]
            yield choices, self._times(choices[0], powers)
        if len(self.functions) > 1:
            choices = [replace(term, function=f) for f in range(len(self.functions))]
            yield choices, self._times(choices[0], self.applied)

    def _times(self, term: Product, factors: Array) -> Array:
        """Return the values of a term times each of some factors (n_factors, n_rows)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.values(term) * factors)

    def nodes(self, term: Product, factor: float) -> Nodes | None:
        """Return a term times an open constant."""
        powers: list[tuple[Nodes, float]] = [
            ((variable(column + 1),), self.exponents[place])
            for column, place in zip(self.columns, term.powers, strict=True)
            if place
        ]
        function = self.functions[term.function]
        if function is not None:
            powers.append((function[0].nodes(self.allowed), function[1]))
        return product_nodes(factor, powers, self.allowed)


def climbed(field: Field, functions: int = 0) -> None:
    """Offer sums of products that were found term by term, for y or, if wanted, for y with outer functions undone."""
    factors = Factors(field.rows)
    for target in targets(field.rows)[1 : functions + 1] if functions else targets(field.rows)[:1]:
        for steep in (0.0, 1.0):
            climb = Climb(factors, target, steep, field.rows)
            for terms in climb.sums():
                field.offer(target.wrap(climb.written(terms)), "climbed")
                if field.over:
                    return


class Climb:
    """Terms for one target; rows weigh by how well they are known, over the size of y to the power of `steep`."""

    def __init__(self, factors: Factors, target: Target, steep: float, rows: Rows) -> None:
        self.factors, self.rows = factors, rows
        size = np.abs(target.screened)
        self.root = target.root / (size + 0.02 * float(np.median(size)) + 1e-300) ** steep
        self.z = target.screened * self.root
        self.total = float(self.z @ self.z) or 1.0

    def sums(self) -> Iterator[list[Product]]:
        """Yield sums of one term, two, ..., until nothing is left or a term is not worth its price."""
        terms: list[Product] = []
        best = np.inf
        while len(terms) < MAX_TERMS and not self.rows.late:
            starts = [self._random() for _ in range(STARTS)]
            found = [self._climb(start, terms) for start in [self._plain(), *starts]]
            added = min(found, key=lambda item: item[0])[1]
            if added in terms:
                return
            terms = self._together([*terms, added])
            score, left = self._score(terms)
            yield terms
            if left <= 10.0 * NOTHING or score > best:
                return
            best = score

    def _plain(self) -> Product:
        return Product((0,) * len(self.factors.powers))

    def _random(self) -> Product:
        rng = self.rows.rng
        return Product(
            tuple(int(p) for p in rng.integers(0, min(5, len(self.factors.exponents)), len(self.factors.powers)))
        )

    def _together(self, terms: list[Product]) -> list[Product]:
        """Let each term climb again beside the others, until none moves."""
        for _ in range(AGAIN if len(terms) > 1 else 0):
            before = list(terms)
            for i in range(len(terms)):
                terms = [*terms[:i], self._climb(terms[i], [*terms[:i], *terms[i + 1 :]])[1], *terms[i + 1 :]]
            if terms == before:
                break
        return list(dict.fromkeys(terms))

    def _climb(self, term: Product, others: list[Product]) -> tuple[float, Product]:
        """Return what a term becomes beside others, and its score: of each factor the best, until none is better."""
        Q = orthogonal((np.array([self.factors.values(other) for other in others]) * self.root).T) if others else None
        rest = self.z if Q is None else self.z - Q @ (Q.T @ self.z)
        n, best = len(self.z), np.inf
        while True:
            before = best
            for choices, values in self.factors.changed(term):
                left = self._left(values * self.root, rest, Q)
                costs = NODE * np.array([self.factors.cost(choice) for choice in choices])
                scores = n * np.log(np.maximum(left, NOTHING)) + costs
                place = int(np.argmin(scores))
                if scores[place] < best:
                    best, term = float(scores[place]), choices[place]
            if not best < before or self.rows.late:
                return best, term

    def _left(self, A: Array, rest: Array, Q: Array | None) -> Array:
        """Return the share that is left with each of some terms, (n_terms, n_rows), beside the others."""
        with np.errstate(all="ignore"):
            finite = np.asarray(np.isfinite(A).all(axis=1, keepdims=True), dtype=bool)
            size = np.linalg.norm(np.where(finite, A, 0.0), axis=1, keepdims=True)
            A = np.where(finite & (size > 0), A / size, 0.0)
            if Q is not None:
                A = A - (A @ Q) @ Q.T
            square = np.einsum("ij,ij->i", A, A)
            gain = np.where(square > 1e-9, (A @ rest) ** 2 / square, 0.0)
        return np.asarray((float(rest @ rest) - gain) / self.total)

    def _score(self, terms: list[Product]) -> tuple[float, float]:
        """Return the description length, doubled, of a sum, and the share that it leaves."""
        Q = orthogonal((np.array([self.factors.values(term) for term in terms]) * self.root).T)
        rest = self.z - Q @ (Q.T @ self.z)
        left = float(rest @ rest) / self.total
        price = sum(NODE * self.factors.cost(term) + float(np.log(len(self.z))) for term in terms)
        return len(self.z) * float(np.log(max(left, NOTHING))) + price, left

    def written(self, terms: list[Product]) -> Nodes | None:
        """Return a sum with its coefficients, as open constants."""
        A = np.array([self.factors.values(term) for term in terms])
        solution = solved((A * self.root).T, self.z)
        parts = [self.factors.nodes(term, float(c)) for term, c in zip(terms, solution, strict=True)]
        return sum_of(parts, self.factors.allowed)
