"""Stage 4, one inner constant: u(theta g(x)), u(g(x) + theta) and g(x)**theta, scanned over theta.

At each theta everything else is linear: the best small sum that holds a function of theta is found as in stage 1.
Where a scan dips, Levenberg-Marquardt goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr import operators
from deap_vsr.engine.subsets import scan_subsets
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.ratios import ratio_nodes
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Target
from deap_vsr.operators import Array, Indices
from deap_vsr.tree import Constant, Node, node_from_name

#: Functions from which a factor comes out: u(theta g) is v(theta) u(g), or for the logarithm v(theta) + u(g).
_FACTOR_COMES_OUT = {"inv", "sqrt", "log", "abs", "n2", "n3", "n4", "n5", "n6", "n8"}
#: Functions from which a shift comes out: exp, and whole powers, which are sums.
_SHIFT_COMES_OUT = {"exp", "n2"}
#: Sums of one and two terms are looked for among so many columns; of three terms as well.
PAIRS, TRIPLES = (36, 24), (36, 24, 15)
#: Dips of a scan that are followed.
MAX_DIPS = 4


@dataclass(frozen=True, eq=False)
class Family:
    """Functions that share an inner constant: values(theta) (n_theta, n_points), nodes(theta) for each."""

    thetas: Array
    values: list[Callable[[Array, Array], Array]]
    nodes: list[Callable[[float], Nodes]]
    costs: list[int]


def inner_constants(
    target: Target, n_inner: int = 4, counts: Sequence[int] = PAIRS
) -> Iterator[tuple[list[Form], int]]:
    """Yield, family by family, forms to be fitted, and how many subsets were tried; the constants are starts only.

    `counts` says among how many columns sums of 1, 2, ... terms are looked for; `n_inner` how many of the first atoms
    are tried as g.
    """
    table = target.table
    if not {"add", "mul"} <= table.allowed:
        return
    for index, atom in enumerate(table.atoms[:n_inner]):
        g = table.values(n_inner)[index]
        if not np.isfinite(g).all():
            continue
        for family in _families(target, atom.nodes, g[0]):
            yield _scan(target, family, g[0], counts)
            if table.allowed & {"div", "inv"} and not table.noisy:
                yield _scan(target, family, g[0], counts, below=True)


def _families(target: Target, inner: Nodes, g: Array) -> Iterator[Family]:
    """Yield the families of an inner function `g`: factors, shifts, powers."""
    table = target.table
    unary = functions(table.function_set)
    reach, low = float(np.max(np.abs(g))), float(np.min(g))
    by_factor = [u for u in unary if u.name not in _FACTOR_COMES_OUT]
    if by_factor:
        turns = 60.0 * min(reach / max(float(np.ptp(g)), 1e-300), 6.0)  # a narrow window sees higher frequencies
        grid = np.concatenate([np.geomspace(0.02, 1.0, 24, endpoint=False), np.arange(1.0, turns, 0.4)]) / reach
        yield _family(target, grid, by_factor, _Times(inner), lambda theta, values: theta[:, None] * values)
    both = {"sin", "cos"} <= table.allowed
    by_shift = [u for u in unary if u.name not in _SHIFT_COMES_OUT and not (both and u.name in ("sin", "cos"))]
    if by_shift:
        steps = np.geomspace(0.003, 30.0, 40) * reach
        grid = np.concatenate([-steps[::-1], steps, np.linspace(0.15, 6.2, 30)])
        yield _family(target, grid, by_shift, _Plus(inner), lambda theta, values: theta[:, None] + values)
    if "pow" in table.allowed and low > 0:
        grid = np.concatenate([-np.arange(0.1, 6.0, 0.1)[::-1], np.arange(0.1, 6.0, 0.1)])
        yield _family(target, grid, [], _Power(inner), lambda theta, values: values ** theta[:, None])


def _family(
    target: Target,
    grid: Array,
    unary: Sequence[Function],
    write: Callable[[float], Nodes],
    argument: Callable[[Array, Array], Array],
) -> Family:
    """Return the functions of one argument with theta, their products, and their products with simple atoms."""
    table = target.table
    single: list[tuple[Callable[[Array, Array], Array], Callable[[float], Nodes], int]] = []
    for u in unary:
        single.append((_Apply(u, argument), _Write(u, write, table.allowed), 4))
        if u.name != "inv" and table.allowed & {"inv", "div"}:
            inverse = Function("inv")
            inner = _Write(u, write, table.allowed)
            single.append((_Apply(inverse, _Apply(u, argument)), _Write(inverse, inner, table.allowed), 5))
    if not unary:
        single.append((argument, write, 3))
    products = list(single)
    plain = [item for item in single if item[2] == 4][:4]
    for i, (f, f_nodes, f_cost) in enumerate(plain):
        for h, h_nodes, h_cost in plain[i:]:
            square = f is h and "n2" in table.allowed  # one constant instead of two
            nodes = _Write(Function("n2"), f_nodes, table.allowed) if square else _Join(f_nodes, h_nodes)
            products.append((_Multiply(f, h), nodes, f_cost + (1 if square else h_cost)))
    for index, atom in enumerate(table.atoms[:3]):
        value = table.values(3)[index, 0]
        if np.isfinite(value).all():
            for f, f_nodes, f_cost in single[:6]:
                products.append((_MultiplyBy(f, value), _Join(_Fixed(atom.nodes), f_nodes), f_cost + 1 + atom.cost))
    products.sort(key=lambda item: item[2])
    return Family(grid, [p[0] for p in products], [p[1] for p in products], [p[2] for p in products])


def _scan(
    target: Target, family: Family, g: Array, counts: Sequence[int], below: bool = False
) -> tuple[list[Form], int]:
    """Scan the first setting over theta, and return forms with their starts at the deepest dips.

    With `below` the functions of theta are in a denominator: z = P - z C u is P/(1 + C u), as for ratios.
    """
    table = target.table
    z, tolerance = target.z[0], target.tolerance[0]
    head = min(len(family.values), 3 if below else 8)
    n_fixed = 12 if below else 4
    with np.errstate(all="ignore"):
        moving = np.array([f(family.thetas, g) for f in family.values[: head if below else None]])
        if below:
            moving = moving * z
        fine = (np.abs(moving) < 1e60).all(axis=2) & (np.abs(moving).max(axis=2) > 1e-60)
        moving[~fine] = 0.0  # a column of zeros is never chosen
    fixed = table.values(n_fixed)[:, 0]
    good = np.flatnonzero(np.isfinite(fixed[:, 0]))
    columns = np.concatenate([np.ones((1, len(z))), fixed[good]])
    # Some of the functions, then 1 and the atoms, then the others: small sums see the simplest of both.
    behind = moving[head : max(counts) - len(columns)]
    everywhere = np.broadcast_to(columns, (len(family.thetas), *columns.shape))
    A = np.concatenate([moving[:head].transpose(1, 0, 2), everywhere, behind.transpose(1, 0, 2)], axis=1)
    with np.errstate(over="ignore"):
        A /= tolerance
    least = np.empty((len(A), len(counts)))
    best: Indices = np.empty((len(A), len(counts), len(counts)), np.int64)
    first_below = A.shape[1] if len(behind) else head
    tried = scan_subsets(A, z / tolerance, np.array(counts), first_below, best, least)
    forms: dict[tuple[int, ...], list[Form]] = {}
    for size in range(2 if below else 1, len(counts) + 1):
        for t in _dips(least[:, size - 1]):
            subset = [int(i) for i in best[t, size - 1, :size]]
            inside = [i for i in subset if i < head or i >= head + len(columns)]
            if not inside or len(forms.setdefault(tuple(subset), [])) >= 3 or (below and len(inside) == len(subset)):
                continue
            coefficients, *_ = np.linalg.lstsq(A[t, subset].T, z / tolerance, rcond=1e-14)
            theta = float(family.thetas[t])
            parts: dict[int, Nodes | None] = {}
            cost = target.cost + 2 * below
            for i in subset:
                at = i - head
                if i in inside:
                    which = i if i < head else i - len(columns)
                    parts[i], cost = family.nodes[which](theta), cost + 2 + family.costs[which]
                else:
                    atom = None if at == 0 else table.atoms[good[at - 1]]
                    parts[i], cost = (None, cost + 1) if atom is None else (atom.nodes, cost + 1 + atom.cost)
            nodes = _nodes(parts, dict(zip(subset, coefficients, strict=True)), inside if below else [], target)
            if nodes is not None:
                forms[tuple(subset)].append(Form.of([target.wrap(nodes)], cost))
    return [form for group in forms.values() for form in group], tried


def _dips(least: Array) -> Indices:
    """Return where a scan is lower than beside it, the deepest first."""
    padded = np.concatenate([[np.inf], least, [np.inf]])
    dips = np.flatnonzero((least <= padded[:-2]) & (least <= padded[2:]) & np.isfinite(least))
    return dips[np.argsort(least[dips], kind="stable")][:MAX_DIPS]


def _nodes(
    parts: dict[int, Nodes | None], coefficients: dict[int, float], below: Sequence[int], target: Target
) -> Nodes | None:
    """Return the sum of the parts, or those not `below` over 1 plus those that are."""
    above = [i for i in parts if i not in below]
    P = sum_nodes([parts[i] for i in above], np.array([coefficients[i] for i in above]), target)
    if not below or P is None:
        return P
    Q = sum_nodes([parts[i] for i in below], np.array([-coefficients[i] for i in below]), target)
    return None if Q is None else ratio_nodes(P, Q, target)


# --- functions and their nodes, side by side ----------------------------------------------


@dataclass(frozen=True)
class _Times:
    inner: Nodes

    def __call__(self, theta: float) -> Nodes:
        if self.inner[0].name == "div" and isinstance(self.inner[1], Constant):
            return (self.inner[0], Constant(theta), *self.inner[2:])
        return (node_from_name("mul"), Constant(theta), *self.inner)


@dataclass(frozen=True)
class _Plus:
    inner: Nodes

    def __call__(self, theta: float) -> Nodes:
        return (node_from_name("add"), Constant(theta), *self.inner)


@dataclass(frozen=True)
class _Power:
    inner: Nodes

    def __call__(self, theta: float) -> Nodes:
        return (node_from_name("pow"), *self.inner, Constant(theta))


@dataclass(frozen=True)
class _Fixed:
    inner: Nodes

    def __call__(self, theta: float) -> Nodes:
        return self.inner


@dataclass(frozen=True)
class _Write:
    function: Function
    write: Callable[[float], Nodes]
    allowed: frozenset[str]

    def __call__(self, theta: float) -> Nodes:
        return self.function.of(self.write(theta), self.allowed)


@dataclass(frozen=True)
class _Join:
    first: Callable[[float], Nodes]
    second: Callable[[float], Nodes]

    def __call__(self, theta: float) -> Nodes:
        product: tuple[Node, ...] = (node_from_name("mul"), *self.first(theta), *self.second(theta))
        return product


@dataclass(frozen=True)
class _Apply:
    function: Function
    argument: Callable[[Array, Array], Array]

    def __call__(self, theta: Array, g: Array) -> Array:
        values: Array = operators.get(self.function.name).function(self.argument(theta, g))
        return values


@dataclass(frozen=True)
class _Multiply:
    first: Callable[[Array, Array], Array]
    second: Callable[[Array, Array], Array]

    def __call__(self, theta: Array, g: Array) -> Array:
        return self.first(theta, g) * self.second(theta, g)


@dataclass(frozen=True, eq=False)
class _MultiplyBy:
    first: Callable[[Array, Array], Array]
    value: Array

    def __call__(self, theta: Array, g: Array) -> Array:
        return self.first(theta, g) * self.value
