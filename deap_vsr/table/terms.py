"""Parts of formulas of several variables, by rule from an operator set: powers, monomials, functions of monomials.

Simple ones first, of those with the same values only the first; nothing is picked by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from deap_vsr.engine.program import evaluate
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.table.rows import Rows
from deap_vsr.tree import Constant, Node, node_from_name, operators, variable
from deap_vsr.tree.operators import Array

#: Exponents of a monomial, with what they cost.
WHOLE = {1: 1, -1: 1, 2: 2, -2: 2, 3: 3, -3: 3}
#: A value that is larger, relative to the others of its part, is beside a pole: of no use on some hundred rows.
LARGEST = 1e12


@dataclass(frozen=True)
class Monomial:
    """A product of powers: exponents by column, from 0, as (column, exponent); 1 if there are none."""

    powers: tuple[tuple[int, float], ...] = ()

    @property
    def cost(self) -> float:
        """What it costs: two for each variable, more for exponents that are not 1."""
        return float(sum(1.0 + (abs(e) if e == int(e) else 1.0 + abs(e)) + (e < 0) * 0.25 for _, e in self.powers))

    @property
    def inverse(self) -> Monomial:
        """One over it."""
        return Monomial(tuple((column, -exponent) for column, exponent in self.powers))

    @property
    def factors(self) -> list[tuple[Nodes, float]]:
        """Its variables as nodes, with their exponents."""
        return [((variable(column + 1),), exponent) for column, exponent in self.powers]

    def nodes(self, allowed: frozenset[str]) -> Nodes | None:
        """Return it as nodes, without a factor; None if the set cannot write it."""
        return product_nodes(None, self.factors, allowed)


def monomials(columns: Sequence[int], limit: int, most: int = 4, halves: bool = False) -> list[Monomial]:
    """Return monomials of up to `most` of the columns, cheapest first; with `halves` square roots too."""
    found: list[Monomial] = []
    for count in range(1, min(most, len(columns)) + 1):
        # The more variables, the fewer exponents: all that there are would be too many.
        exponents: list[float] = [1, -1, 2, -2] if count < 4 else [1, -1]
        if count < 3:
            exponents += [3, -3]
        if halves:
            exponents += [0.5, -0.5]
        level = []
        for chosen in combinations(columns, count):
            level += [Monomial(tuple(zip(chosen, powers, strict=True))) for powers in product(exponents, repeat=count)]
            if count >= 4 and len(columns) <= 7:  # and one of them squared
                for place, sign in product(range(count), (2, -2)):
                    rest = product((1, -1), repeat=count - 1)
                    for others in rest:
                        powers = (*others[:place], sign, *others[place:])
                        level.append(Monomial(tuple(zip(chosen, powers, strict=True))))
            if len(level) > 4 * limit:
                break
        found += level
        if len(found) > 4 * limit:
            break
    found.sort(key=lambda item: item.cost)
    return found[:limit]


def without_inverses(items: Sequence[Monomial]) -> list[Monomial]:
    """Return monomials without those that are one over another before."""
    seen: set[Monomial] = set()
    kept = []
    for item in items:
        if item.inverse not in seen:
            seen.add(item)
            kept.append(item)
    return kept


# --- nodes --------------------------------------------------------------------------------


def power_nodes(base: Sequence[Node], exponent: float, allowed: frozenset[str]) -> Nodes | None:
    """Return base**exponent for a positive exponent; None if the set cannot write it."""
    base = tuple(base)
    if exponent == 1.0:
        return base
    whole = int(exponent)
    if exponent == whole:
        if f"n{whole}" in allowed:
            return (node_from_name(f"n{whole}"), *base)
        if "mul" in allowed and whole <= 6:
            nodes = base
            for _ in range(whole - 1):
                nodes = (node_from_name("mul"), *nodes, *base)
            return nodes
    elif 2 * exponent == int(2 * exponent) and "sqrt" in allowed:
        root = (node_from_name("sqrt"), *base)
        if exponent == 0.5:
            return root
        power = power_nodes(base, exponent - 0.5, allowed) if "mul" in allowed else None
        return None if power is None else (node_from_name("mul"), *power, *root)
    if "pow" in allowed:
        return (node_from_name("pow"), *base, Constant(float(exponent), fitted=False))
    return None


def product_nodes(
    factor: float | None, powers: Sequence[tuple[Sequence[Node], float]], allowed: frozenset[str]
) -> Nodes | None:
    """Return a product of powers (nodes, exponent), with an open constant in front unless `factor` is None."""
    above = [power_nodes(base, e, allowed) for base, e in powers if e > 0]
    below = [power_nodes(base, -e, allowed) for base, e in powers if e < 0]
    if any(part is None for part in (*above, *below)):
        return None
    top = _chain([*([(Constant(factor),)] if factor is not None else []), *above])
    bottom = _chain(below)
    if (len(above) + (factor is not None) > 1 or len(below) > 1) and "mul" not in allowed:
        return None
    if not bottom:
        return top or (Constant(1.0, fitted=False),)
    if "div" in allowed:
        return (node_from_name("div"), *(top or (Constant(1.0, fitted=False),)), *bottom)
    if "inv" not in allowed or (top and "mul" not in allowed):
        return None
    inverse = (node_from_name("inv"), *bottom)
    return (node_from_name("mul"), *top, *inverse) if top else inverse


def sum_of(terms: Sequence[Nodes | None], allowed: frozenset[str]) -> Nodes | None:
    """Return the sum of terms; None if the set cannot write it."""
    if any(term is None for term in terms) or not terms or (len(terms) > 1 and "add" not in allowed):
        return None
    nodes: Nodes = terms[0] or ()
    for term in terms[1:]:
        nodes = (node_from_name("add"), *nodes, *(term or ()))
    return nodes


def _chain(parts: Sequence[Sequence[Node] | None]) -> Nodes:
    nodes: Nodes = ()
    for part in parts:
        nodes = (node_from_name("mul"), *nodes, *(part or ())) if nodes else tuple(part or ())
    return nodes


# --- functions of monomials ---------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Functions, innermost first, of a number times something simple, and what that costs.

    ``chain`` has names of unary operators, and "1+" and "1-". The number is an open constant, unless it is 1.
    """

    inner: Nodes
    chain: tuple[str, ...] = ()
    number: float = 1.0
    cost: float = 0.0

    def nodes(self, allowed: frozenset[str]) -> Nodes:
        """Return it as nodes; the number becomes an open constant."""
        nodes = self.inner
        if self.number != 1.0:
            nodes = (node_from_name("mul"), Constant(self.number), *nodes)
        for name in self.chain:
            if name in SHIFTS:
                nodes = (node_from_name(SHIFTS[name]), Constant(1.0, fitted=False), *nodes)
            else:
                nodes = Function(name).of(nodes, allowed)
        return nodes

    @property
    def text(self) -> str:
        """What is inside, for comparisons."""
        return " ".join(str(node.value) if not node.arity else node.name for node in self.inner)

    def values(self, inner: Array) -> Array:
        """Return its values, (n_rows,), for those of what is inside."""
        with np.errstate(all="ignore"):
            values = self.number * inner
            for name in self.chain:
                if name in SHIFTS:
                    values = 1.0 + values if name == "1+" else 1.0 - values
                else:
                    values = operators.get(name).function(values)
        return np.asarray(values, dtype=float)


#: What is added to 1, or taken from it, by the operator for it.
SHIFTS = {"1+": "add", "1-": "sub"}
#: Numbers within functions are tried at such multiples of what makes their argument 1 in the middle: factors of four,
#: from where fits find their way; waves take finer steps.
SIZES, WAVES = (0.08, 0.3, 1.2, 5.0), (0.35, 0.7, 1.1, 1.7, 2.6, 4.0, 6.0, 9.0)


def simple_parts(rows: Rows, limit: int, most: int = 5) -> tuple[list[Part], Array]:
    """Return what functions are applied to, with values (n_parts, n_rows) on the screened rows.

    Monomials, and sums and differences of two variables.
    """
    allowed, columns = rows.allowed, rows.columns
    found = []
    for item in monomials(columns, limit, most):
        nodes = item.nodes(allowed)
        if nodes is not None:
            found.append(Part(nodes, cost=item.cost))
    for a, b in combinations(columns, 2):
        for operator in ("add", "sub"):
            if operator in allowed:
                found.append(Part((node_from_name(operator), variable(a + 1), variable(b + 1)), cost=4.5))
    found.sort(key=lambda part: part.cost)
    A = values_of([part.inner for part in found[:limit]], rows.screen.X)
    kept = distinct(A)
    return [found[i] for i in kept], A[kept]


def chains(function_set: Sequence[str]) -> list[tuple[str, ...]]:
    """Return functions, alone and with 1 added before or after, that differ from products of powers."""
    allowed = frozenset(function_set)
    names = [f.name for f in functions(function_set) if f.name not in ("inv", "sqrt", "abs") and not is_power(f.name)]
    names = [name for name in names if operators.get(name).known]
    shifts = [shift for shift, operator in SHIFTS.items() if operator in allowed]
    found: list[tuple[str, ...]] = [(name,) for name in (*shifts, *names)]
    found += [("exp", shift) for shift in shifts if "exp" in allowed]
    found += [(shift, "log") for shift in shifts if "log" in allowed]
    return found


def function_parts(
    simple: Sequence[Part], values: Array, function_set: Sequence[str], numbers: bool = True
) -> tuple[list[Part], Array]:
    """Return functions of simple parts and their values; with `numbers` also of multiples of them."""
    found, columns = [], []
    for part, inner in zip(simple, values, strict=True):
        middle = float(np.median(np.abs(inner)))
        for chain in chains(function_set):
            sizes = WAVES if chain[0] in ("sin", "cos", "tan") else SIZES
            tries = [1.0] + ([size / middle for size in sizes] if numbers and middle > 0 else [])
            for sign in (1.0, -1.0) if "exp" in chain else (1.0,):
                for number in tries:
                    inside = number * sign
                    cost = part.cost + 1.5 * len(chain) + (0.0 if number == 1.0 else 3.5)
                    found.append(Part(part.inner, chain, inside, cost))
                    columns.append(found[-1].values(inner))
    if not found:
        return [], np.empty((0, values.shape[1]))
    return found, np.array(columns)


def is_power(name: str) -> bool:
    """Whether an operator is a power: n2, n3, ..."""
    return len(name) == 2 and name[0] == "n" and name[1].isdigit()


def values_of(parts: Sequence[Sequence[Node]], X: Array) -> Array:
    """Return the values of parts, (n_parts, n_rows)."""
    if not len(parts):
        return np.empty((0, len(X)))
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(list(parts), X))


def distinct(A: Array) -> list[int]:
    """Return the rows of `A` (n_parts, n_rows) that are finite, no constant, and no multiple of another before."""
    if not len(A):
        return []
    with np.errstate(all="ignore"):
        size = np.abs(A)
        finite = np.isfinite(A).all(axis=1) & (np.ptp(A, axis=1) > 1e-9 * size.max(axis=1))
        finite &= size.max(axis=1) < LARGEST * np.maximum(np.median(size, axis=1), 1e-150)
        probe = A[:, :: max(A.shape[1] // 24, 1)]
        units = probe / np.linalg.norm(probe, axis=1, keepdims=True)
        units *= np.where(units[:, :1] < 0, -1.0, 1.0)
    seen: set[bytes] = set()
    kept = []
    for i, row in enumerate(np.round(units, 9) + 0.0):
        key = row.tobytes()
        if finite[i] and key not in seen:
            seen.add(key)
            kept.append(i)
    return kept
