"""Stage 4, one inner constant: u(theta g(x)), u(g(x) + theta) and g(x)**theta, scanned over theta.

At each theta everything else is linear: the best small sum that holds a function of theta is found as in stage 1.
Where a scan dips, Levenberg-Marquardt goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.engine.subsets import scan_subsets
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.ratios import ratio_nodes
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, Node, node_from_name, operators
from deap_vsr.tree.operators import Array, Indices

#: Functions from which a factor comes out: u(theta g) is v(theta) u(g), or for the logarithm v(theta) + u(g).
FACTOR_COMES_OUT = {"inv", "sqrt", "log", "abs", "n2", "n3", "n4", "n5", "n6", "n8"}
#: Functions from which a shift comes out: exp, and whole powers, which are sums.
SHIFT_COMES_OUT = {"exp", "n2"}
#: Sums of one and two terms are looked for among so many columns; of three terms as well.
PAIRS, TRIPLES = (36, 24), (36, 24, 15)
#: Dips of a scan that are followed: at most so many, below this share of the median; how often, in how many steps.
MAX_DIPS, SHALLOW, ZOOMS, FINE = 4, 0.5, 2, 11

#: Functions of a family that are scanned alone.
ALONE = 3

#: Values of a function of theta, (n_thetas, n_points), for thetas and the number of a setting.
Values = Callable[[Array, int], Array]


@dataclass(frozen=True, eq=False)
class Family:
    """Functions that share an inner constant: values(thetas, setting) (n_thetas, n_points), nodes(theta) for each."""

    thetas: Array
    values: list[Values]
    nodes: list[Callable[[float], Nodes]]
    costs: list[int]

    def only(self, function: int) -> Family:
        """Return the family of one of the functions."""
        part = slice(function, function + 1)
        return Family(self.thetas, self.values[part], self.nodes[part], self.costs[part])


def inner_constants(target: Target, n_inner: int = 4, counts: Sequence[int] = PAIRS, first: int = 0) -> Iterator[Step]:
    """Yield, family by family, forms to be fitted; their constants are starts only.

    `counts` says among how many columns sums of 1, 2, ... terms are looked for; `n_inner` how many of the first atoms
    are tried as g, from the number `first` on.
    """
    table = target.table
    if not {"add", "mul"} <= table.allowed:
        return
    for index, atom in enumerate(table.atoms[first:n_inner], first):
        g = table.values(n_inner)[index]
        if not np.isfinite(g).all():
            continue
        places = (False, True) if table.allowed & {"div", "inv"} else (False,)
        for family in _families(target, atom.nodes, g):
            # Each of the simplest functions alone, or another one may hide it between two steps; then all together.
            for part in (*(family.only(f) for f in range(min(ALONE, len(family.values)))), family):
                for below in places:
                    yield _Scan(target, part, counts, below).forms()


def _families(target: Target, inner: Nodes, g: Array) -> Iterator[Family]:
    """Yield the families of an inner function `g`: factors, shifts, powers."""
    table = target.table
    unary = functions(table.function_set)
    reach, low = float(np.max(np.abs(g[0]))), float(np.min(g))
    by_factor = [u for u in unary if u.name not in FACTOR_COMES_OUT]
    if by_factor:
        turns = 60.0 * min(reach / max(float(np.ptp(g[0])), 1e-300), 6.0)  # a narrow window sees higher frequencies
        grid = np.concatenate([np.geomspace(0.02, 1.0, 24, endpoint=False), np.arange(1.0, turns, 0.4)]) / reach
        if not table.allowed & {"inv", "div"} and not all(map(symmetric, by_factor)):
            grid = np.concatenate([-grid[::-1], grid])  # exp(-x) is no inverse there
        yield _family(target, grid, by_factor, _Times(inner), lambda theta, k: theta[:, None] * g[k])
    both = {"sin", "cos"} <= table.allowed
    by_shift = [u for u in unary if u.name not in SHIFT_COMES_OUT and not (both and u.name in ("sin", "cos"))]
    if by_shift:
        steps = np.geomspace(0.003, 30.0, 40) * reach
        grid = np.concatenate([-steps[::-1], steps, np.linspace(0.15, 6.2, 30)])
        yield _family(target, grid, by_shift, _Plus(inner), lambda theta, k: theta[:, None] + g[k])
    if "pow" in table.allowed and low > 0:
        grid = np.concatenate([-np.arange(0.1, 6.0, 0.1)[::-1], np.arange(0.1, 6.0, 0.1)])
        yield _family(target, grid, [], _Power(inner), lambda theta, k: g[k] ** theta[:, None])


def symmetric(function: Function) -> bool:
    """Whether a function of -x is that of x, or its negative."""
    x: Array = np.array([0.31, 0.67, 1.73])
    with np.errstate(all="ignore"):
        there, back = (np.abs(operators.get(function.name).function(sign * x)) for sign in (1.0, -1.0))
    return bool(np.allclose(there, back, equal_nan=True))


def _family(
    target: Target,
    grid: Array,
    unary: Sequence[Function],
    write: Callable[[float], Nodes],
    argument: Values,
) -> Family:
    """Return the functions of one argument with theta, their products, and their products with simple atoms."""
    table = target.table
    single: list[tuple[Values, Callable[[float], Nodes], int]] = []
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
        value = table.values(3)[index]
        if np.isfinite(value).all():
            for f, f_nodes, f_cost in single[:6]:
                products.append((_MultiplyBy(f, value), _Join(_Fixed(atom.nodes), f_nodes), f_cost + 1 + atom.cost))
    products.sort(key=lambda item: item[2])
    return Family(grid, [p[0] for p in products], [p[1] for p in products], [p[2] for p in products])


@dataclass(frozen=True, eq=False)
class _Scan:
    """A family scanned over theta for one target.

    With ``below`` the functions of theta are in a denominator: z = P - z C u is P/(1 + C u), as for ratios.
    """

    target: Target
    family: Family
    counts: Sequence[int]
    below: bool

    @property
    def head(self) -> int:
        """How many functions of theta come first; then 1 and the atoms, then the other functions."""
        return min(len(self.family.values), 3 if self.below else 8)

    @cached_property
    def fixed(self) -> list[int]:
        """The atoms beside the functions of theta."""
        values = self.target.table.values(12 if self.below else 4)
        return [int(i) for i in np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))]

    def columns(self, thetas: Array, k: int) -> Array:
        """Return the columns at each theta in setting k: (n_thetas, n_columns, n_points), in units of the tolerance."""
        z = self.target.z[k]
        with np.errstate(all="ignore"):
            moving = np.array([f(thetas, k) for f in self.family.values[: self.head if self.below else None]])
            if self.below:
                moving = moving * z
            fine = (np.abs(moving) < 1e60).all(axis=2) & (np.abs(moving).max(axis=2) > 1e-60)
            moving[~fine] = 0.0  # a column of zeros is never chosen
            atoms = self.target.table.values(12 if self.below else 4)[self.fixed, k]
            still = np.concatenate([np.ones((1, len(z))), atoms])
            behind = moving[self.head : max(self.counts) - len(still)]
            everywhere = np.broadcast_to(still, (len(thetas), *still.shape))
            parts = [moving[: self.head].transpose(1, 0, 2), everywhere, behind.transpose(1, 0, 2)]
            scaled: Array = np.concatenate(parts, axis=1) / self.target.tolerance[k]
        return scaled

    def search(self, thetas: Array) -> tuple[Indices, Array, int]:
        """Return for each theta and size the best subset in the first setting, what it leaves; how many were tried."""
        A = self.columns(thetas, 0)
        sizes = len(self.counts)
        least = np.empty((len(A), sizes))
        best: Indices = np.empty((len(A), sizes, sizes), np.int64)
        first_below = self.head if A.shape[1] == self.head + 1 + len(self.fixed) else A.shape[1]
        z = self.target.z[0] / self.target.tolerance[0]
        tried = scan_subsets(A, z, np.array(self.counts), first_below, best, least)
        return best, least, tried

    def forms(self) -> Step:
        """Return forms at the deepest dips, each followed in smaller and smaller steps; how many subsets were tried."""
        thetas = self.family.thetas
        _, coarse, tried = self.search(thetas)
        # Where a scan dips, size by size: theta, and how far it is to its neighbours.
        dips = [
            (size, float(thetas[t]), float(np.max(np.abs(np.diff(thetas[max(t - 1, 0) : t + 2])))))
            for size in range(2 if self.below else 1, len(self.counts) + 1)
            for t in _dips(coarse[:, size - 1])
        ]
        found: dict[tuple[int, ...], list[Form]] = {}
        for _ in range(ZOOMS if dips else 0):
            fine = np.concatenate([np.linspace(theta - step, theta + step, FINE) for _, theta, step in dips])
            best, least, more = self.search(fine)
            tried += more
            nearer = []
            for place, (size, _, step) in enumerate(dips):
                t = place * FINE + int(np.argmin(least[place * FINE : (place + 1) * FINE, size - 1]))
                nearer.append((size, float(fine[t]), 2.0 * step / (FINE - 1)))
                self._add(found, [int(i) for i in best[t, size - 1, :size]], float(fine[t]))
            dips = nearer
        return [form for group in found.values() for form in group], tried

    def _add(self, found: dict[tuple[int, ...], list[Form]], subset: list[int], theta: float) -> None:
        """Add the form of a subset at theta, if it has a function of theta, and is not there often enough."""
        inside = self._inside(subset)
        group = found.setdefault(tuple(subset), [])
        if -1 in subset or not inside or (self.below and len(inside) == len(subset)) or len(group) == 4:
            return
        form = self._form(subset, theta)
        if form is not None:
            group.append(form)

    def _inside(self, subset: Sequence[int]) -> list[int]:
        """Return the columns of a subset that are functions of theta."""
        return [i for i in subset if i < self.head or i > self.head + len(self.fixed)]

    def _form(self, subset: list[int], theta: float) -> Form | None:
        nodes = self._written(subset, theta, 0)
        if nodes is None:
            return None
        cost = self.target.cost + 2 * self.below
        for i in subset:
            atom = i - self.head - 1
            inside = i in self._inside(subset)
            cost += 2 + self.family.costs[self._function(i)] if inside else 1
            cost += self.target.table.atoms[self.fixed[atom]].cost if not inside and atom >= 0 else 0
        return Form.of([nodes], cost, elsewhere=lambda: self._elsewhere(subset))

    def _function(self, column: int) -> int:
        return column if column < self.head else column - 1 - len(self.fixed)

    def _written(self, subset: list[int], theta: float, k: int) -> Nodes | None:
        """Return the nodes of a subset at theta with the coefficients that setting k has."""
        A = self.columns(np.array([theta]), k)[0, subset]
        z = self.target.z[k] / self.target.tolerance[k]
        coefficients = solved(A.T, z, 1e-14)
        if not np.isfinite(coefficients).all():
            return None
        parts: dict[int, Nodes | None] = {}
        inside = self._inside(subset)
        for i in subset:
            if i in inside:
                parts[i] = self.family.nodes[self._function(i)](theta)
            else:
                atom = i - self.head - 1
                parts[i] = None if atom < 0 else self.target.table.atoms[self.fixed[atom]].nodes
        values = dict(zip(subset, coefficients, strict=True))
        nodes = _nodes(parts, values, inside if self.below else [], self.target)
        return None if nodes is None else self.target.wrap(nodes)

    def _elsewhere(self, subset: list[int]) -> list[Nodes]:
        """Return the nodes for the other settings, each at the theta that is best there."""
        written = []
        counts = np.array([0] * (len(subset) - 1) + [len(subset)])
        for k in range(1, len(self.target.z)):
            A = np.ascontiguousarray(self.columns(self.family.thetas, k)[:, subset])
            least = np.empty((len(A), len(subset)))
            best: Indices = np.empty((len(A), len(subset), len(subset)), np.int64)
            scan_subsets(A, self.target.z[k] / self.target.tolerance[k], counts, len(subset), best, least)
            for t in _dips(least[:, -1])[:2]:
                nodes = self._written(subset, float(self.family.thetas[t]), k)
                if nodes is not None:
                    written.append(nodes)
        return written


def _dips(least: Array) -> Indices:
    """Return where a scan is lower than beside it, and clearly lower than elsewhere, the deepest first."""
    padded = np.concatenate([[np.inf], least, [np.inf]])
    known = least[np.isfinite(least)]
    if not len(known):
        return np.empty(0, np.int64)
    low = (least <= padded[:-2]) & (least <= padded[2:]) & (least <= SHALLOW * np.median(known))
    dips = np.flatnonzero(low)
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
    argument: Values

    def __call__(self, theta: Array, k: int) -> Array:
        values: Array = operators.get(self.function.name).function(self.argument(theta, k))
        return values


@dataclass(frozen=True)
class _Multiply:
    first: Values
    second: Values

    def __call__(self, theta: Array, k: int) -> Array:
        return self.first(theta, k) * self.second(theta, k)


@dataclass(frozen=True, eq=False)
class _MultiplyBy:
    first: Values
    value: Array

    def __call__(self, theta: Array, k: int) -> Array:
        values: Array = self.first(theta, k) * self.value[k]
        return values
