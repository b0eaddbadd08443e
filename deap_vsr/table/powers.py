"""Products: y is a power law, alone or times functions, as sums of logarithms.

log|T(y)| = c + sum of a_i log|x_i| + sum of c_k log|f_k|. The powers of all variables are always in the sum, so that
1 + r stands for every sum of two monomials, and exponents are fitted instead of tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Nodes
from deap_vsr.lab.criterion import NODE
from deap_vsr.table.field import Field
from deap_vsr.table.linear import NOTHING, Linear, orthogonal
from deap_vsr.table.rows import Rows
from deap_vsr.table.targets import Target, targets
from deap_vsr.table.terms import SHIFTS, Part, chains, distinct, function_parts, product_nodes, simple_parts, values_of
from deap_vsr.tree import Constant, Node, is_open, node_from_name, variable
from deap_vsr.tree.operators import Array

#: Monomials r of 1 + r and 1 - r, and of how many of them functions, that are looked through; all pairs of so many of
#: the best, and of so many of the simplest.
RATIOS, FUNCTIONS, PAIRED, SIMPLE = 3000, 250, 1000, 300
#: Single functions whose inner number is fitted, those of them that are offered, and pairs.
REFINED, SINGLES, PAIRS = 150, 24, 60
#: Times that a number is followed on where it moves as far as it may.
FOLLOWED = 4
#: Share of rows at which a logarithm must be finite.
FINITE = 0.5
#: Size, beside the spread of y, below which a value may be nothing but noise.
DROWNED = 0.1
#: Largest exponent of a function.
MOST = 3.0
#: An exponent within this of a multiple of a half is that: others are tried as they are, where a set can write them.
NEAR = 0.12


def power_laws(field: Field) -> None:
    """Offer y, or T(y), as a power law of the variables that have one."""
    for target in targets(field.rows):
        logs = Logs(field.rows, target)
        if logs.usable:
            field.all([target.wrap(nodes) for nodes in logs.written([])], "power law")
        if field.over:
            return


def products(field: Field, n_targets: int = 8) -> None:
    """Offer power laws times one or two functions, sums of two monomials among them."""
    rows = field.rows
    parts, A = log_parts(rows)
    if not len(A):
        return
    for target in targets(rows)[:n_targets]:
        logs = Logs(rows, target)
        if not logs.usable:
            continue
        linear = Linear(A, logs.z, [part.cost for part in parts], logs.block, logs.root)
        singles = linear.singles(PAIRED)
        for refined in refined_parts([(parts[item.parts[0]],) for item in singles[:REFINED]], logs)[:SINGLES]:
            field.all(map(target.wrap, logs.written(refined)), "product")
            if field.over:
                return
        # What explains little alone may be half of a pair: the simplest are tried in any case.
        among = dict.fromkeys([item.parts[0] for item in singles] + list(range(min(SIMPLE, len(parts)))))
        pairs = linear.pairs(PAIRS, list(among))
        for refined in refined_parts([(parts[a], parts[b]) for a, b in (item.parts for item in pairs)], logs):
            field.all(map(target.wrap, logs.written(refined)), "product")
            if field.over:
                return


def refined_parts(choices: Sequence[tuple[Part, ...]], logs: Logs) -> list[tuple[Part, ...]]:
    """Return choices of factors with the numbers within them fitted, the best first; each choice of forms once."""
    found: list[tuple[float, tuple[Part, ...]]] = []
    seen: dict[tuple[object, ...], int] = {}
    for parts in choices:
        key = tuple((part.chain, part.text, part.number == 1.0, part.number < 0) for part in parts)
        waves = any(part.chain[0] in ("sin", "cos", "tan") for part in parts)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > (3 if waves else 1):  # the grid is fine enough for one start, but for waves
            continue
        found.append(logs.refined(parts))
        if logs.rows.late:
            break
    found.sort(key=lambda item: item[0])
    return [parts for _, parts in found]


def log_parts(rows: Rows) -> tuple[list[Part], Array]:
    """Return what may be a factor beside powers, and the logarithms of it on the screened rows."""
    simple, values = simple_parts(rows, RATIOS)
    parts, A = function_parts(simple[:FUNCTIONS], values[:FUNCTIONS], rows.function_set)
    more = [
        (Part(part.inner, (shift,), cost=part.cost + 1.5), 1.0 + sign * inner)
        for part, inner in zip(simple[FUNCTIONS:], values[FUNCTIONS:], strict=True)
        for shift, sign in (("1+", 1.0), ("1-", -1.0))
        if SHIFTS[shift] in rows.allowed
    ]
    more += _sums_of_one(rows)
    parts += [part for part, _ in more]
    A = np.vstack([A, *(column[None] for _, column in more)])
    order = sorted(range(len(parts)), key=lambda i: parts[i].cost)
    with np.errstate(all="ignore"):
        L = np.log(np.abs(A[order]))
    kept = distinct(L)
    return [parts[order[i]] for i in kept], L[kept]


def _sums_of_one(rows: Rows) -> list[tuple[Part, Array]]:
    """Return 1 + t and 1 - t for products t of a variable and a function of another, or a number times that."""
    columns, allowed, X = rows.columns, rows.allowed, rows.screen.X
    names = [name for (name, *longer) in chains(rows.function_set) if not longer and name not in SHIFTS]
    inner = [
        nodes
        for column, other, name in product(columns, columns, names)
        if column != other
        for exponent in (1.0, -1.0)
        for nodes in [
            product_nodes(
                None,
                [((variable(column + 1),), exponent), (Part((variable(other + 1),), (name,)).nodes(allowed), 1.0)],
                allowed,
            )
        ]
        if nodes is not None
    ]
    found = []
    for nodes, values in zip(inner, values_of(inner, X), strict=True):
        middle = float(np.median(np.abs(values)))
        for number in (1.0, *([0.3 / middle] if middle > 0 else [])):
            cost = 7.5 + (0.0 if number == 1.0 else 3.5)
            parts = [Part(nodes, (shift,), number, cost) for shift, operator in SHIFTS.items() if operator in allowed]
            found += [(part, part.values(values)) for part in parts]
    return found


def _least(value: Callable[[float], float], reach: float, times: int) -> tuple[float, float]:
    """Return where a function is least near 0, and how large it is there; followed on while it falls to the edge."""
    at, least = 0.0, np.inf
    for _ in range(times):
        with np.errstate(all="ignore"):
            bounds = (at - reach, at + reach)
            found = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-7})
        if not float(found.fun) < least:
            break
        moved, at, least = abs(float(found.x) - at), float(found.x), float(found.fun)
        if moved < 0.95 * reach:
            break
    return at, least


class Logs:
    """Logarithms of a target and of the variables on the screened rows."""

    def __init__(self, rows: Rows, target: Target) -> None:
        self.rows, self.target = rows, target
        screen = rows.screen
        z = target.screened
        with np.errstate(all="ignore"):
            self.z = np.log(np.abs(z))
            X = np.log(np.abs(screen.X))
        self.columns = [column for column in rows.columns if np.isfinite(X[:, column]).all()]
        good = np.isfinite(self.z)
        self.usable = bool(good.mean() > FINITE and len(self.columns))
        self.z = np.where(good, self.z, 0.0)
        # The logarithm of a value near zero is known badly; what is smaller than noise says that of the noise.
        weight = np.ones(len(z)) if screen.weights is None else np.sqrt(screen.weights)
        size = target.size
        self.root = np.where(good, size / (1.0 + size) * size / (DROWNED + size), 0.0) * weight
        self.block = np.vstack([np.ones(len(z)), X[:, self.columns].T])
        self._Q = orthogonal((self.block * self.root).T)
        rest = self.z * self.root
        self._rest = rest - self._Q @ (self._Q.T @ rest)
        self._total = float(self._rest @ self._rest) or 1.0

    def logs(self, parts: Sequence[Part]) -> Array:
        """Return the logarithms of factors, (n_factors, n_rows)."""
        inner = values_of([part.inner for part in parts], self.rows.screen.X)
        return self._logs(parts, inner)

    def _logs(self, parts: Sequence[Part], inner: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.array([np.log(np.abs(part.values(row))) for part, row in zip(parts, inner, strict=True)])

    def _left(self, logs: Array) -> float:
        """Return what factors leave, as a share of what the powers leave; they may not be finite."""
        if not np.isfinite(logs).all():
            return 1e300
        B = (logs * self.root).T
        B = B - self._Q @ (self._Q.T @ B)
        with np.errstate(all="ignore"):
            solution = solved(B, self._rest, 1e-10)
        if not np.isfinite(solution).all():
            return 1e300
        return float(np.sum((self._rest - B @ solution) ** 2) / self._total)

    def refined(self, parts: tuple[Part, ...]) -> tuple[float, tuple[Part, ...]]:
        """Return the score of factors, and these with the numbers within them fitted, one after the other."""
        inner = values_of([part.inner for part in parts], self.rows.screen.X)
        best = list(parts)
        inside = [i for i, part in enumerate(parts) if part.number != 1.0 and part.chain != ("exp",)]
        left = self._left(self._logs(best, inner))
        for _ in range(3 if len(inside) > 1 else 1):
            for i in inside:
                part = best[i]

                def tried(shift: float, i: int = i, part: Part = part) -> float:
                    trial = [*best[:i], replace(part, number=part.number * float(np.exp(shift))), *best[i + 1 :]]
                    return float(np.log(max(self._left(self._logs(trial, inner)), NOTHING)))

                waves = part.chain[0] in ("sin", "cos", "tan")
                shift, value = _least(tried, 0.3 if waves else 1.5, 1 if waves else FOLLOWED)
                if float(np.exp(value)) < left:
                    left = float(np.exp(value))
                    best[i] = replace(part, number=part.number * float(np.exp(shift)))
        cost = NODE * sum(part.cost for part in best)
        return len(self.z) * float(np.log(max(left, NOTHING))) + cost, tuple(best)

    def written(self, factors: Sequence[Part]) -> Iterator[Nodes | None]:
        """Yield forms with these parts as factors: exponents at simple numbers, or, of variables, as fitted."""
        A = np.vstack([self.block, self.logs(factors)]) if len(factors) else self.block
        if not np.isfinite(A).all():
            return
        solution = solved((A * self.root).T, self.z * self.root)
        exponents: Array = np.asarray(solution[1:], dtype=np.float64)
        n_powers = len(self.columns)
        simple: Array = np.asarray(np.round(2.0 * exponents) / 2.0, dtype=np.float64)
        exponentials = [n_powers + i for i, part in enumerate(factors) if part.chain == ("exp",)]
        near = np.abs(simple - exponents) <= NEAR
        near[exponentials] = True
        bases: list[Nodes] = [(variable(column + 1),) for column in self.columns]
        bases += [part.nodes(self.rows.allowed) for part in factors]
        front = float(np.exp(np.clip(solution[0], -600.0, 600.0)))
        if (np.abs(simple[n_powers:]) <= MOST).all():
            yield self._product(front, bases, simple, exponents, exponentials)
            written = near | (np.arange(len(near)) >= n_powers)
            if not near[:n_powers].all() and "pow" in self.rows.allowed and (np.abs(exponents) <= 2 * MOST).all():
                yield self._product(front, bases, np.where(written, simple, np.nan), exponents, exponentials)

    def _product(
        self, front: float, bases: Sequence[Nodes], simple: Array, fitted: Array, exponentials: Sequence[int]
    ) -> Nodes | None:
        """Return the product; an exponent without a simple number becomes an open constant, one of exp a factor."""
        powers: list[tuple[Sequence[Node], float]] = []
        for i, base in enumerate(bases):
            exponent = float(simple[i])
            if i in exponentials:
                inner, number = base[1:], 1.0
                if base[1].name == "mul" and is_open(base[2]):
                    inner, number = base[3:], float(base[2].value)
                factor = Constant(number * float(fitted[i]))
                powers.append(((base[0], node_from_name("mul"), factor, *inner), 1.0))
            elif np.isnan(exponent):
                powers.append(((node_from_name("pow"), *base, Constant(float(fitted[i]))), 1.0))
            elif exponent:
                powers.append((base, exponent))
        return product_nodes(front, powers, self.rows.allowed)
