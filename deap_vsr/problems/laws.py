"""Laws to judge on: drawn anew by families, none of them a formula of the data folder.

A law is a template of its family, filled with products of powers of the variables:

    {0}*exp(-{1})   becomes   4.2*x3/x1*exp(-0.031*x2)

Numbers in front are such that exponentials and waves have arguments as one meets them, and terms of a sum are about
as large as one another. What cannot serve as a problem is drawn again: y must be finite, within six decades, and every
variable must matter. As in :mod:`deap_vsr.problems.generate` only ``random.Random.random`` is drawn from.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from math import pow, prod, sqrt
from typing import TypeVar

import numpy as np

from deap_vsr.errors import VsrError
from deap_vsr.problems import suites
from deap_vsr.problems.equation import Equation, Variable, load_equation
from deap_vsr.problems.generate import writer_form
from deap_vsr.tree import MaskedTree, format_number, is_number, is_variable, operators, variable
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import structural_hash, with_sums

T = TypeVar("T")

#: Numbers of variables, by turns.
N_VARS = (2, 3, 4, 5, 6)
#: As one meets them: lengths, times, concentrations, temperatures, ...
RANGES = (
    (0.5, 3.0), (1.0, 10.0), (0.1, 2.0), (20.0, 80.0), (1.0, 5.0), (0.2, 1.5), (2.0, 20.0), (5.0, 50.0), (0.01, 0.1),
    (100.0, 400.0), (280.0, 380.0),
)  # fmt: skip
#: Every law may be looked for with these operators; some with more, needed or not.
BROAD = ("add", "sub", "mul", "div", "inv", "n2", "n3", "sqrt", "exp", "log", "sin", "cos")
MORE = ("n4", "pow", "tan", "arctan", "tanh")
#: Powers of variables, as often as they stand here; calmer ones where the number in front has to suit.
POWERS = (1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 2.0, 2.0, 3.0, 0.5, -2.0, -0.5)
CALM = (1.0, 1.0, 1.0, 1.0, -1.0, 2.0)

#: What a law must be like: sizes of numbers, decades of y, and the least effect of a variable, in spreads of y.
LEAST_NUMBER, LARGEST_NUMBER = 1e-4, 1e4
MAX_DECADES = 6.0
LEAST_EFFECT = 0.05
MAX_DRAWS = 10_000
N_POINTS = 300


# --- families -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A product of powers of one group of variables; how its number in front comes about is said by `kind`.

    - free: any number, or none
    - bare: none
    - real: none, and powers such as 0.8
    - top: its largest value is `value`, or half of it
    - like: it is about as large as part number `value`
    - number: no variables, about `value`
    - level: no variables, about as large as part number `value`
    """

    kind: str
    group: int = -1
    value: float = 0.0


def _free(group: int) -> Part:
    return Part("free", group)


def _bare(group: int) -> Part:
    return Part("bare", group)


def _top(group: int, value: float) -> Part:
    return Part("top", group, value)


def _like(group: int, other: int) -> Part:
    return Part("like", group, other)


@dataclass(frozen=True)
class Template:
    """A text with places for its parts."""

    text: str
    parts: tuple[Part, ...]

    @property
    def n_groups(self) -> int:
        """How many groups of variables it needs, each with one variable at least."""
        return 1 + max(part.group for part in self.parts)


def _template(text: str, *parts: Part) -> Template:
    return Template(text, parts)


#: The families by name.
FAMILIES: Mapping[str, tuple[Template, ...]] = {
    "products": (
        _template("{0}", _free(0)),
        _template("{0}*{1}", _free(0), Part("real", 1)),
    ),
    "ratios": (
        _template("{0}/({1} + {2})", _free(0), _bare(1), _like(2, 1)),
        _template("{0}/({1} + {2})", _free(0), _bare(1), _like(0, 1)),
        _template("{0}*{1}/({0} + {1})", _bare(0), _bare(1)),
        _template("({0} + {1})/({2})", _free(0), _like(1, 0), _bare(2)),
        _template("({0} - {1})/({2} + {3})", _free(0), _like(1, 0), _bare(2), _like(3, 2)),
        _template("{0}/(1 - {1})", _free(0), _top(1, 0.9)),
    ),
    "decays": (
        _template("{0}*exp(-{1})", _free(0), _top(1, 4.0)),
        _template("{0}*exp(-{1}) + {2}", _free(0), _top(1, 4.0), _like(2, 0)),
        _template("{0} + ({1} - {0})*exp(-{2})", _bare(0), _like(1, 0), _top(2, 4.0)),
        _template("{0}*(exp(-{1}) - exp(-{2}))", _free(0), _top(1, 1.0), _top(1, 6.0)),
        _template("{0}/(1 + {1})**2", _free(0), _top(1, 4.0)),
    ),
    "saturations": (
        _template("{0}*{1}/({2} + {1})", _free(0), _bare(1), Part("level", value=1)),
        _template("{0}*{1}/({2} + {1})", _free(0), _bare(1), _like(2, 1)),
        _template("{0}*(1 - exp(-{1}))", _free(0), _top(1, 4.0)),
        _template("{0}*tanh({1})", _free(0), _top(1, 3.0)),
        _template("{0}/(1 + {2}*exp(-{1}))", _free(0), _top(1, 5.0), Part("number", value=8.0)),
        _template("{0}/sqrt(1 + {1})", _free(0), _top(1, 8.0)),
    ),
    "oscillations": (
        _template("{0}*sin({1})", _free(0), _top(1, 6.0)),
        _template("{0}*cos({1} + {2})", _free(0), _top(1, 6.0), Part("number", value=1.0)),
        _template("{0}*exp(-{1})*cos({2})", _free(0), _top(1, 3.0), _top(1, 8.0)),
        _template("{0} + {1}*cos({2})", _free(0), _like(1, 0), _top(2, 6.0)),
        _template("{0}*(1 + {1}*sin({2}))", _free(0), Part("number", value=0.6), _top(1, 6.0)),
        _template("{0}*sin({1})**2", _free(0), _top(1, 3.0)),
    ),
    "sums": (
        _template("sqrt({0} + {1})", _free(0), _like(1, 0)),
        _template("{0}*sqrt({1} + {2})", _free(0), _bare(1), _like(2, 1)),
        _template("{0}/sqrt({1} + {2})", _free(0), _bare(1), _like(2, 1)),
        _template("{0}*sqrt(1 - {1})", _free(0), _top(1, 0.9)),
        _template("log(1 + {0})", _top(0, 30.0)),
        _template("{0}*log(1 + {1})", _free(0), _top(1, 30.0)),
        _template("{0}*exp(-({1} + {2}))", _free(0), _top(1, 2.5), _top(2, 2.5)),
        _template("{0}*sin({1} + {2})", _free(0), _top(1, 4.0), _top(2, 3.0)),
        _template("({0} + {1})**2/({2})", _free(0), _like(1, 0), _bare(2)),
    ),
}


# --- laws ---------------------------------------------------------------------------------


def laws_suite(count: int, seed: int = 0, families: Iterable[str] = tuple(FAMILIES)) -> Iterator[Equation]:
    """Yield `count` laws ``laws/products_0, laws/ratios_0, ..``, the families by turns."""
    names = tuple(families)
    if not names:
        raise VsrError(f"no family of laws to draw from; known are {', '.join(FAMILIES)}")
    for index in range(count):
        yield law(names[index % len(names)], index // len(names), seed)


def law(family: str, number: int, seed: int = 0) -> Equation:
    """Draw one law; the same arguments give the same law. Numbers of variables come by turns, from 2 to 6."""
    if family not in FAMILIES:
        raise VsrError(f"unknown family of laws {family!r}; known are {', '.join(FAMILIES)}")
    n_vars = N_VARS[(list(FAMILIES).index(family) + number) % len(N_VARS)]
    rng = random.Random(f"{seed}/laws/{family}/{number}")
    for _ in range(MAX_DRAWS):
        drawn = _drawn(family, number, n_vars, rng)
        if _serves(drawn, rng) and not _is_known(drawn.tree):
            return drawn
    raise VsrError(f"no law {family}_{number} with {n_vars} variables in {MAX_DRAWS} draws")


def _drawn(family: str, number: int, n_vars: int, rng: random.Random) -> Equation:
    """Return a law that may be of no use."""
    variables = tuple(_variable(i, rng) for i in range(1, n_vars + 1))
    template = _choice([t for t in FAMILIES[family] if t.n_groups <= n_vars], rng)
    formula = _filled(template, variables, rng)
    tree = writer_form(MaskedTree.from_infix(formula))
    needed = {node.name for node in tree if node.arity}
    more = needed | {name for name in MORE if rng.random() < 0.25}
    return Equation(
        name=f"laws/{family}_{number}",
        variables=variables,
        function_set=(*(name for name in operators.CATALOGUE if name in BROAD or name in more), "const"),
        tree=tree,
        formula=formula,
        group=family,
    )


def _variable(index: int, rng: random.Random) -> Variable:
    low, high = _choice(RANGES, rng)
    wide = high >= 10 * low and rng.random() < 0.5
    return Variable(f"x{index}", low, high, "loguniform" if wide else "uniform", "positive", f"x{index}")


def _filled(template: Template, variables: Sequence[Variable], rng: random.Random) -> str:
    groups = _groups(len(variables), template.n_groups, rng)
    factors: list[_Product] = []
    for part in template.parts:
        columns = groups[part.group] if part.group >= 0 else []
        factors.append(_sized(part, _powers(part.kind, columns, rng), variables, factors, rng))
    return template.text.format(*(factor.text for factor in factors))


def _groups(n_vars: int, n_groups: int, rng: random.Random) -> list[list[int]]:
    """Return the columns in groups, each with one at least."""
    columns = list(range(n_vars))
    shuffled = [columns.pop(int(rng.random() * len(columns))) for _ in range(n_vars)]
    groups = [[column] for column in shuffled[:n_groups]]
    for column in shuffled[n_groups:]:
        _choice(groups, rng).append(column)
    return [sorted(group) for group in groups]


def _powers(kind: str, columns: Sequence[int], rng: random.Random) -> dict[int, float]:
    if kind == "real":
        return {column: _choice((1.0, 1.0, -1.0), rng) * _real(rng) for column in columns}
    return {column: _choice(CALM if kind in ("top", "like") else POWERS, rng) for column in columns}


def _real(rng: random.Random) -> float:
    """Return a power such as 0.8, from 0.3 up to 2.4 without halves."""
    tenths = 5
    while tenths % 5 == 0:
        tenths = 3 + int(22 * rng.random())
    return tenths / 10


@dataclass(frozen=True)
class _Product:
    """A number times powers of variables, by column."""

    powers: Mapping[int, float]
    number: float = 1.0

    @property
    def text(self) -> str:
        above = [format_number(self.number)] if self.number != 1.0 else []
        above += [_power(column, power) for column, power in self.powers.items() if power > 0 or _is_real(power)]
        below = [_power(column, -power) for column, power in self.powers.items() if power < 0 and not _is_real(power)]
        if not below:
            return "*".join(above) or "1"
        divisor = below[0] if len(below) == 1 else f"({'*'.join(below)})"
        return f"{'*'.join(above) or '1'}/{divisor}"

    def middle(self, variables: Sequence[Variable]) -> float:
        """Return its value in the middle of the domain."""
        return self.number * prod(
            pow(sqrt(variables[i].low * variables[i].high), power) for i, power in self.powers.items()
        )

    def top(self, variables: Sequence[Variable]) -> float:
        """Return its largest value in the domain."""
        return self.number * prod(
            max(pow(variables[i].low, power), pow(variables[i].high, power)) for i, power in self.powers.items()
        )


def _is_real(power: float) -> bool:
    return not (2 * power).is_integer()


def _power(column: int, power: float) -> str:
    name = f"x{column + 1}"
    if power == 0.5:
        return f"sqrt({name})"
    return name if power == 1 else f"{name}**{format_number(power)}"


def _sized(
    part: Part, powers: dict[int, float], variables: Sequence[Variable], others: Sequence[_Product], rng: random.Random
) -> _Product:
    """Return the product with the number in front that its part asks for."""
    plain = _Product(powers)
    match part.kind:
        case "bare" | "real":
            return plain
        case "free":
            number = _short((1.0 + 9.0 * rng.random()) * _choice((0.1, 1.0), rng), rng)
            return _Product(powers, number) if rng.random() < 0.7 else plain
        case "top":
            size = part.value * (0.5 + 0.5 * rng.random()) / plain.top(variables)
        case "number":
            size = part.value * (0.5 + rng.random())
        case _:  # like, level
            other = others[int(part.value)].middle(variables)
            size = other * (0.4 + 1.6 * rng.random()) / plain.middle(variables)
    return _Product(powers, _short(size, rng))


def _short(value: float, rng: random.Random) -> float:
    """Return the number with two digits, or with one or three."""
    return float(f"{value:.{_choice((1, 2, 2, 3), rng)}g}")


def _choice(items: Sequence[T], rng: random.Random) -> T:
    return items[int(rng.random() * len(items))]


# --- what can serve -----------------------------------------------------------------------


def _serves(equation: Equation, rng: random.Random) -> bool:
    """Whether numbers are common ones, and y is finite everywhere, within some decades, and moved by every variable."""
    numbers = [abs(node.value) for node in equation.tree if is_number(node)]
    if numbers and not LEAST_NUMBER <= min(numbers) <= max(numbers) <= LARGEST_NUMBER:
        return False
    X = _points(equation.variables, N_POINTS, rng)
    corners = np.array(list(product(*((v.low, v.high) for v in equation.variables))))
    y, outermost = equation.evaluate(X), equation.evaluate(corners)
    if not (np.isfinite(y).all() and np.isfinite(outermost).all()):
        return False
    sizes = np.sort(np.abs(np.concatenate([y, outermost])))
    if not 0 < sizes[-1] <= 10**MAX_DECADES * sizes[len(sizes) // 100]:  # a wave goes through zero
        return False
    return min(effects(equation, X, _points(equation.variables, N_POINTS, rng))) > LEAST_EFFECT


def effects(equation: Equation, X: Array, other: Array) -> list[float]:
    """Return for each variable by how much y changes when it alone does, in units of the spread of y.

    Root mean squares, each variable going from its values in X to those in `other`, (n_points, n_vars) both.
    """
    y = equation.evaluate(X)
    found = []
    for column in range(equation.n_vars):
        moved = X.copy()
        moved[:, column] = other[:, column]
        found.append(float(np.sqrt(np.mean((equation.evaluate(moved) - y) ** 2)) / np.std(y)))
    return found


def _points(variables: Sequence[Variable], n_points: int, rng: random.Random) -> Array:
    return np.array([[_value(v, rng.random()) for v in variables] for _ in range(n_points)])


def _value(v: Variable, share: float) -> float:
    return v.low * (v.high / v.low) ** share if v.sampling == "loguniform" else v.low + (v.high - v.low) * share


def _is_known(tree: MaskedTree) -> bool:
    """Whether the data folder has the formula, with whatever numbers and with its variables in whatever order."""
    hashes, shapes = _known()
    names = sorted({int(node.value[1:]) for node in tree if is_variable(node)})
    if _key(tree, dict.fromkeys(names, 1)) not in shapes:
        return False
    return any(_key(tree, dict(zip(names, order, strict=True))) in hashes for order in permutations(names))


@cache
def _known() -> tuple[frozenset[str], frozenset[str]]:
    """Return hashes of the formulas of the data folder, and of what they are with one variable everywhere."""
    trees = [load_equation(path).tree for path in suites.problem_files(suites.data_root())]
    one = dict.fromkeys(range(1, 1000), 1)
    return frozenset(_key(tree, {}) for tree in trees), frozenset(_key(tree, one) for tree in trees)


def _key(tree: MaskedTree, numbers: Mapping[int, int]) -> str:
    """Return the structural hash of a tree whose variables have other numbers."""
    renamed = [
        variable(numbers.get(int(node.value[1:]), int(node.value[1:]))) if is_variable(node) else node for node in tree
    ]
    return structural_hash(with_sums(MaskedTree(renamed)))
