"""One inner constant, and nothing beside: z = C*u + C, C*u + C/u + C and C*u + C*u**2 + C, where u is u(theta g).

Beside a wave with a phase, C*sin(theta g + C) + C, there may be one atom of x.

x**2*exp(C*x)/(exp(C*x) - 1)**2 is x**2 over such a sum. Among many columns some three fit a smooth table about as well
at any theta, and a scan shows no dip; these few do not. All targets are looked at together: the columns are the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deap_vsr.engine.linear import solved
from deap_vsr.forms.atoms import Function, Nodes, functions
from deap_vsr.forms.inner import FACTOR_COMES_OUT, symmetric
from deap_vsr.forms.peeling import divided, peeled
from deap_vsr.forms.sums import sum_nodes
from deap_vsr.forms.table import Form, Step, Table, Target
from deap_vsr.forms.targets import behind_factors, factors, once, plain
from deap_vsr.tree import Constant, node_from_name, operators
from deap_vsr.tree.operators import Array

#: Arguments g: so many of the first atoms. Beside the first atoms powers of x among so many are factors.
N_INNER, N_FACTORS, POWERS = 5, 12, 30
#: Values of theta, in units of the inverse of the largest g: an eighth apart, as those of a scan; what oscillates has
#: them evenly, 0.4 apart, and fast waves of x itself, behind so many of the first targets, up to a hundred turns.
THETAS, TURNS, FAST, N_FAST = np.geomspace(0.05, 30.0, 52), np.arange(0.4, 30.0, 0.4), np.arange(30.0, 640.0, 0.4), 16
#: Targets of which the best theta leaves less than this share of the median are looked at in finer steps, so many, so
#: often; what leaves little then is fitted. Of x**2*exp(C*x)/(exp(C*x) - 1)**2 they leave 0.07 and then 5e-4, of most
#: targets 0.01 and more.
SHALLOW, FINE, ZOOMS, DEEP = 0.3, 9, 4, 2e-3
WAVES = {"sin", "cos", "tan"}
#: Atoms of which one may stand beside a wave with a phase, and from how many values of x on: there are five numbers.
N_BESIDE, LEAST_BESIDE = 8, 8
#: The powers of a function u that are looked for together; a turn is the other one of sine and cosine, which makes
#: u(theta g + C).
POWERS_OF_U = {"one": (1,), "square": (2,), "inverse square": (-2,), "both": (1, -1), "two": (1, 2), "turn": (1,)}


@dataclass(frozen=True, eq=False)
class _Family:
    """A function of theta g: what it is, the thetas that are tried, and g, (n_settings, n_points).

    It is looked for behind the first targets only, `few` of them, or, where that is None, behind all. `beside` is an
    atom that a turn may have beside it, with its values, (n_settings, n_points).
    """

    function: Function
    inner: Nodes
    thetas: Array
    g: Array
    few: int | None = None
    beside: tuple[Nodes, Array] | None = None

    def values(self, thetas: Array, k: int) -> Array:
        """Return its values in a setting at any thetas, (..., n_points)."""
        with np.errstate(all="ignore"):
            return np.asarray(operators.get(self.function.name).function(thetas[..., None] * self.g[k]))

    def nodes(self, theta: float, allowed: frozenset[str]) -> Nodes:
        """Return its nodes at a theta."""
        if self.inner[0].name == "div" and isinstance(self.inner[1], Constant):
            return self.function.of((self.inner[0], Constant(theta), *self.inner[2:]), allowed)
        return self.function.of((node_from_name("mul"), Constant(theta), *self.inner), allowed)


def functions_alone(target: Target) -> Iterator[Step]:
    """Yield sums of a function of theta g, a power of it or two, and 1.

    They are looked for behind every factor and function of the table at once.
    """
    table = target.table
    if not {"add", "mul"} <= table.allowed:
        return
    others = list(divided(table, POWERS, N_FACTORS, powers=True))
    targets = [*plain(table), *once(table), *factors(table), *behind_factors(table), *others]
    targets += [inner for target in others for inner in peeled(target)]
    families = list(_families(table))
    for kind in POWERS_OF_U:
        for family in [*families, *(_beside(families, table) if kind == "turn" else ())]:
            count = len(family.thetas) * len(targets[: family.few])
            if not _is_wanted(kind, family, table.allowed) or table.left() < count:
                continue
            found: list[tuple[float, Form]] = []
            for i, theta, depth in zip(*_dips(family, kind, targets[: family.few], 0), strict=True):
                form = _form(targets[i], family, kind, theta) if depth < DEEP else None
                if form is not None:
                    found.append((depth, form))
            found.sort(key=lambda item: item[0])
            yield [form for _, form in found], count


def _is_wanted(kind: str, family: _Family, allowed: frozenset[str]) -> bool:
    """Whether the set can write them, and they are no others in other words, as squares of exp are."""
    powers = POWERS_OF_U[kind]
    if kind == "turn":
        return family.function.name == min({"sin", "cos"} & allowed, default="")
    if min(powers) < 0 and not allowed & {"inv", "div"}:
        return False
    even = {2, -2} & set(powers)
    return not even or ("n2" in allowed and (len(powers) > 1 or symmetric(family.function)))


def _families(table: Table) -> Iterator[_Family]:
    for function in functions(table.function_set):
        operator = operators.get(function.name)
        if function.name in FACTOR_COMES_OUT or not operator.known:
            continue
        for atom, g in zip(table.atoms, table.values(N_INNER), strict=False):
            reach = float(np.max(np.abs(g[0]))) if np.isfinite(g).all() else np.nan
            if not reach > 0.0:
                continue
            if function.name in WAVES:
                yield _Family(function, atom.nodes, TURNS / reach, g)
                if len(atom.nodes) == 1:
                    yield _Family(function, atom.nodes, FAST / reach, g, N_FAST)
                continue
            thetas = THETAS / reach
            if not symmetric(function):
                thetas = np.concatenate([-thetas[::-1], thetas])
            yield _Family(function, atom.nodes, thetas, g)


def _beside(families: Sequence[_Family], table: Table) -> Iterator[_Family]:
    """Yield waves with an atom beside; from few values nothing would be told, so many columns there are."""
    if len(table.x[0]) < LEAST_BESIDE:
        return
    for atom, values in zip(table.atoms, table.values(N_BESIDE), strict=False):
        if not np.isfinite(values).all() or {node.name for node in atom.nodes} & WAVES:
            continue
        for family in families:
            if family.function.name in WAVES and len(family.inner) == 1:
                yield replace(family, few=N_FAST, beside=(atom.nodes, values))


def _dips(family: _Family, kind: str, targets: Sequence[Target], k: int) -> tuple[list[int], list[float], list[float]]:
    """Return which targets have a theta that leaves less than others in setting k, which, and how much less."""
    z = np.array([target.z[k] / (np.abs(target.z[k]).max() or 1.0) for target in targets])  # squares do not overflow
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
    coarse = _left(family, kind, family.thetas[:, None], z, k)
    known = np.where(np.isfinite(coarse), coarse, np.nan)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a target of which nothing is known
        usual = np.nanmedian(known, axis=0)
    some = np.flatnonzero(coarse.min(axis=0) < SHALLOW * usual)
    best = coarse[:, some].argmin(axis=0)
    theta, step = family.thetas[best], np.gradient(family.thetas)[best]
    least = coarse[best, some]
    for _ in range(ZOOMS if len(some) else 0):
        finer = theta + step * np.linspace(-1.0, 1.0, FINE)[:, None]  # (FINE, n_some)
        left = _left(family, kind, finer, z[some], k)
        best = left.argmin(axis=0)
        theta, least, step = finer[best, range(len(some))], left.min(axis=0), 2.0 * step / (FINE - 1)
    return some.tolist(), theta.tolist(), (least / usual[some]).tolist()


def _left(family: _Family, kind: str, thetas: Array, z: Array, k: int) -> Array:
    """Return what is left of targets (n_targets, n_points) of length 1 in setting k at thetas, (n_thetas, n_targets).

    The thetas are (n_thetas, n_targets), or (n_thetas, 1) where they are the same for all. Half the digits are enough.
    """
    A = _columns(family, kind, thetas if thetas.shape[1] > 1 else thetas[:, 0], k)
    left = np.ones((len(thetas), len(z)))
    with np.errstate(all="ignore"):
        fine = np.asarray(((np.abs(A) < 1e60) & (np.abs(A) > 1e-60)).all(axis=(-2, -1)))
        basis: list[Array] = []
        for i in range(A.shape[-1]):
            column = A[..., i] / np.sqrt(np.sum(A[..., i] ** 2, axis=-1, keepdims=True))
            for known in basis:
                column = column - np.sum(known * column, axis=-1, keepdims=True) * known
            basis.append(column / np.sqrt(np.sum(column**2, axis=-1, keepdims=True)))
            along = basis[-1] @ z.T if thetas.shape[1] == 1 else np.einsum("tnp,np->tn", basis[-1], z)
            left -= along**2
        left = np.sqrt(np.maximum(left, 0.0))
    good = np.isfinite(left) & (fine if fine.ndim == 2 else fine[:, None])
    return np.where(good, left, np.inf)


def _columns(family: _Family, kind: str, thetas: Array, k: int) -> Array:
    """Return powers of the function, and 1, at any thetas: (..., n_points, 2 to 4)."""
    u = family.values(thetas, k)
    with np.errstate(all="ignore"):
        columns = [u**power for power in POWERS_OF_U[kind]]
    if kind == "turn":
        columns.append((np.cos if family.function.name == "sin" else np.sin)(thetas[..., None] * family.g[k]))
    if family.beside is not None:
        columns.append(np.broadcast_to(family.beside[1][k], u.shape))
    return np.stack([*columns, np.ones(u.shape)], axis=-1)


def _form(target: Target, family: _Family, kind: str, theta: float) -> Form | None:
    """Return the form at the best theta of the first setting; starts for the others where it holds there."""

    def written(theta: float, k: int) -> Nodes | None:
        parts: list[Nodes | None]
        A = _columns(family, kind, np.array(theta), k) / target.tolerance[k][:, None]
        coefficients = solved(A, target.z[k] / target.tolerance[k], 1e-14)
        if not np.isfinite(coefficients).all():
            return None
        if kind == "turn":
            u, amplitude = _turned(family, theta, coefficients, target.table.allowed)
            others = [None] if family.beside is None else [family.beside[0], None]
            parts, coefficients = [u, *others], np.array([amplitude, *coefficients[2:]])
        else:
            u = family.nodes(theta, target.table.allowed)
            parts = [*(_to_power(u, power, target.table.allowed) for power in POWERS_OF_U[kind]), None]
        nodes = sum_nodes(parts, coefficients, target)
        return None if nodes is None else target.wrap(nodes)

    def elsewhere() -> list[Nodes]:
        thetas = [(theta, k) for k in range(1, len(target.z)) for theta in _dips(family, kind, [target], k)[1]]
        return [nodes for nodes in (written(theta, k) for theta, k in thetas) if nodes is not None]

    nodes = written(theta, 0)
    return None if nodes is None else Form.of([nodes], len(nodes) + target.cost, elsewhere=elsewhere)


def _to_power(u: Nodes, power: int, allowed: frozenset[str]) -> Nodes:
    """Return 1/u**2, 1/u, u or u**2."""
    nodes = Function("n2").of(u, allowed) if abs(power) == 2 else u
    return Function("inv").of(nodes, allowed) if power < 0 else nodes


def _turned(family: _Family, theta: float, coefficients: Array, allowed: frozenset[str]) -> tuple[Nodes, float]:
    """Return a sine and a cosine as one of them, turned, and its amplitude."""
    a, b = float(coefficients[0]), float(coefficients[1])
    shift = np.arctan2(b, a) if family.function.name == "sin" else np.arctan2(-b, a)
    (wave, *argument) = family.nodes(theta, allowed)
    return (wave, node_from_name("add"), *argument, Constant(float(shift))), float(np.hypot(a, b))
