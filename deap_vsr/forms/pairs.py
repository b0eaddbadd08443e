"""Two inner constants: C*u(theta*x) + C*v(phi*x) and C*u(theta*x)*v(phi*x), at every pair of a grid of thetas.

Each function of the operator set at each value of its inner constant is one column; a sum of two is then a problem of
two columns, solved for all pairs at once from their products. Levenberg-Marquardt goes on from the best of each two
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.inner import FACTOR_COMES_OUT, SHIFT_COMES_OUT
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Step, Target
from deap_vsr.tree import Constant, node_from_name, operators, variable
from deap_vsr.tree.operators import Array

#: Values of an inner constant: of a factor, in units of the inverse of the largest x; of a shift, of the largest x; and
#: exponents. Half of what a scan of one constant looks at, as there are as many pairs as their square.
FACTORS = np.geomspace(0.05, 25.0, 28)
TURNS = np.arange(0.5, 25.0, 0.5)
SHIFTS = np.geomspace(0.03, 10.0, 12)
EXPONENTS = np.concatenate([np.arange(-4.0, 0.0, 0.25), np.arange(0.25, 4.25, 0.25)])
#: Functions of which two are tried together, at the most: exp, sin, cos, and the four usual ones of a shift; pairs of
#: columns nearer to each other than this are one.
MAX_FUNCTIONS, ALIKE = 7, 1e-9
#: Steps are made of so many of the best pairs of functions, sums and products.
MAX_FORMS = 24


@dataclass(frozen=True, eq=False)
class _Column:
    """A function at all values of its inner constant: values (n_thetas, n_settings, n_points), and its nodes."""

    thetas: Array
    values: Array
    nodes: Callable[[float], Nodes]
    cost: int


def two_inner_constants(target: Target) -> Iterator[Step]:
    """Yield, in one step, sums and products of two functions with an inner constant each."""
    if not {"add", "mul"} <= target.table.allowed:
        return
    families = _families(target)
    sizes = [len(family.thetas) for family in families]
    # Sums and products of each two, at every setting: all or nothing.
    if target.table.left() < len(target.z) * 2 * sum(m * n for i, m in enumerate(sizes) for n in sizes[: i + 1]):
        return
    found: list[tuple[float, Form]] = []
    tried = 0
    for i, first in enumerate(families):
        for second in families[: i + 1]:
            for kind in (_sums, _products):
                left, form = kind(first, second, target)
                tried += left.size * len(target.z)
                if form is not None:
                    found.append((float(np.min(left)), form))
    found.sort(key=lambda item: item[0])
    yield [form for _, form in found[:MAX_FORMS]], tried


def _families(target: Target) -> list[_Column]:
    """Return the functions that are tried: those of a factor before those of a shift, the simplest first."""
    table = target.table
    x = table.x
    reach = float(np.max(np.abs(x)))
    result: list[_Column] = []

    def add(function: str, thetas: Array, argument: Array, write: Callable[[float], Nodes]) -> None:
        with np.errstate(all="ignore"):
            values = argument if not function else np.asarray(operators.get(function).function(argument))
        good = (np.abs(values) < 1e60).all(axis=(1, 2)) & (np.abs(values).max(axis=(1, 2)) > 1e-60)
        if good.sum() > 1 and len(result) < MAX_FUNCTIONS:
            nodes = write if not function else _Of(Function(function), write, table.allowed)
            result.append(_Column(thetas[good], values[good], nodes, 3 + bool(function)))

    known = [unary for unary in functions(table.function_set) if operators.get(unary.name).known]
    for unary in sorted(known, key=lambda unary: unary.name in FACTOR_COMES_OUT):
        if unary.name not in FACTOR_COMES_OUT:
            waves = unary.name in ("sin", "cos", "tan")
            grid = TURNS if waves else np.concatenate([-FACTORS[::-1], FACTORS])
            add(unary.name, grid / reach, (grid / reach)[:, None, None] * x, _factor)
        elif unary.name not in SHIFT_COMES_OUT and unary.name != "abs":
            shifts = SHIFTS * reach
            add(unary.name, shifts, shifts[:, None, None] + x, _shift)
    if "pow" in table.allowed and (x > 0.0).all():
        add("", EXPONENTS, x ** EXPONENTS[:, None, None], _power)
    return result


def _factor(theta: float) -> Nodes:
    return (node_from_name("mul"), Constant(theta), variable(1))


def _shift(theta: float) -> Nodes:
    return (node_from_name("add"), variable(1), Constant(theta))


def _power(theta: float) -> Nodes:
    return (node_from_name("pow"), variable(1), Constant(theta))


@dataclass(frozen=True)
class _Of:
    function: Function
    inner: Callable[[float], Nodes]
    allowed: frozenset[str]

    def __call__(self, theta: float) -> Nodes:
        return self.function.of(self.inner(theta), self.allowed)


def _sums(first: _Column, second: _Column, target: Target) -> tuple[Array, Form | None]:
    """Return what sums of two functions leave at all pairs of thetas, and the form of the best."""

    def left_at(k: int) -> Array:
        z = target.z[k] / target.tolerance[k]
        A, B = (_unit(column.values[:, k] / target.tolerance[k]) for column in (first, second))
        a, b, between = A @ z, B @ z, A @ B.T
        with np.errstate(all="ignore"):
            apart = 1.0 - between**2
            gain = (a[:, None] ** 2 - 2.0 * a[:, None] * b[None] * between + b[None] ** 2) / apart
            return np.where(apart > ALIKE, float(z @ z) - gain, np.inf)

    def written(k: int, left: Array) -> Nodes | None:
        i, j = np.unravel_index(int(np.argmin(left)), left.shape)
        columns = np.array([first.values[i, k], second.values[j, k]]) / target.tolerance[k]
        coefficients = solved(columns.T, target.z[k] / target.tolerance[k], 1e-12)
        if not np.isfinite(coefficients).all():
            return None
        parts = [first.nodes(float(first.thetas[i])), second.nodes(float(second.thetas[j]))]
        return sum_nodes(parts, coefficients, target)

    return _best(left_at, written, first.cost + second.cost + 2, target)


def _products(first: _Column, second: _Column, target: Target) -> tuple[Array, Form | None]:
    """Return what products of two functions leave at all pairs of thetas, and the form of the best."""

    def left_at(k: int) -> Array:
        z = target.z[k] / target.tolerance[k]
        both = first.values[:, None, k] * second.values[None, :, k] / target.tolerance[k]
        with np.errstate(all="ignore"):
            left = float(z @ z) - (both @ z) ** 2 / np.sum(both**2, axis=2)
        return np.where(np.isfinite(left), left, np.inf)

    def written(k: int, left: Array) -> Nodes | None:
        i, j = np.unravel_index(int(np.argmin(left)), left.shape)
        column = first.values[i, k] * second.values[j, k] / target.tolerance[k]
        coefficient = float(column @ (target.z[k] / target.tolerance[k]) / (column @ column))
        one, other = first.nodes(float(first.thetas[i])), second.nodes(float(second.thetas[j]))
        return sum_nodes([(node_from_name("mul"), *one, *other)], np.array([coefficient]), target)

    if first is second:  # the same function twice: a power of it, or a sum of two
        return np.array([np.inf]), None
    return _best(left_at, written, first.cost + second.cost + 1, target)


def _best(
    left_at: Callable[[int], Array], written: Callable[[int, Array], Nodes | None], cost: int, target: Target
) -> tuple[Array, Form | None]:
    left = left_at(0)
    if not np.isfinite(left).any():
        return left, None
    nodes = written(0, left)
    if nodes is None:
        return left, None
    others = range(1, len(target.z))

    def elsewhere() -> list[Nodes]:
        return [target.wrap(n) for n in (written(k, left_at(k)) for k in others) if n is not None]

    return left, Form.of([target.wrap(nodes)], cost + target.cost, elsewhere=elsewhere)


def _unit(rows: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
