"""Writing the data folder: trigonometric programs drawn anew, other problems from the table.

The programs follow the paper's scheme (m variables, s single terms, p pair terms):

    y = c0 + sum of s terms a * u(x_i) + sum of p terms b * u(x_i) * v(x_j)

Draws use only ``random.Random.random``, whose values Python promises to keep, so that a seed gives
the same bytes on every machine.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from deap_vsr.errors import EquationError, VsrError
from deap_vsr.files import write_atomically
from deap_vsr.problems import suites
from deap_vsr.problems.equation import Equation, Variable, format_equation
from deap_vsr.tree import Constant, MaskedTree, Node, is_variable, node_from_name, operators, variable
from deap_vsr.tree.simplify import fold
from deap_vsr.tree.walk import bottom_up

T = TypeVar("T")

#: Unary operators of each trigonometric set.
DECORATIONS = {"inv": ("inv",), "sincos": ("sin", "cos"), "sincosinv": ("inv", "sin", "cos")}
#: The configurations (m, s, p) of the paper.
CONFIGURATIONS = ((2, 1, 1), (3, 2, 2), (4, 4, 6), (5, 5, 5), (5, 5, 8), (6, 6, 8), (6, 6, 10))
#: Larger ones, made on demand.
LARGE_CONFIGURATIONS = ((8, 8, 12), (10, 10, 16), (10, 10, 20))
PROGRAMS = 10
#: Suites that come from the table in data/sources.
TABLES = ("feynman", "feynman-unit", "livermore2", "classic")
#: The suite with variables that have no effect among those of another, made on demand.
WITH_DUMMIES = "feynman+dummy"
MAX_TOTAL_VARIABLES = 1000


# --- trigonometric programs ---------------------------------------------------------------


def trigonometric_suite(
    sets: Iterable[str] = tuple(DECORATIONS),
    configurations: Iterable[tuple[int, int, int]] = CONFIGURATIONS,
    programs: int = PROGRAMS,
    seed: int = 0,
    n_vars: int | None = None,
) -> Iterator[Equation]:
    """Yield programs ``prog_0 ..`` of each set and configuration.

    With `n_vars` the m variables of a program are placed at random among so many, the others
    having no effect.
    """
    for operator_set in sets:
        for configuration in configurations:
            for index in range(programs):
                yield trigonometric_program(operator_set, configuration, index, seed, n_vars)


def trigonometric_program(
    operator_set: str, configuration: tuple[int, int, int], index: int, seed: int = 0, n_vars: int | None = None
) -> Equation:
    """Draw one program; the same arguments give the same program."""
    m, singles, pairs = configuration
    total = m if n_vars is None else n_vars
    if operator_set not in DECORATIONS:
        raise VsrError(f"unknown trigonometric set {operator_set!r}; known are {', '.join(DECORATIONS)}")
    if m < 1 or not 0 <= singles <= m or not 0 <= pairs <= m * (m - 1) // 2 or singles + pairs < 1:
        raise VsrError(f"configuration {configuration}: m variables allow at most m single and m(m-1)/2 pair terms")
    if not m <= total <= MAX_TOTAL_VARIABLES:
        raise VsrError(f"{total} variables in all: expected from {m} up to {MAX_TOTAL_VARIABLES}")
    name = "-".join(map(str, configuration))
    # Strings seed by their SHA-512, so nothing depends on PYTHONHASHSEED. Distractors come from a
    # stream of their own: a program is the same with and without them.
    stream = f"{seed}/{operator_set}/{name}/{index}"
    nodes = _program(random.Random(stream), DECORATIONS[operator_set], m, singles, pairs)
    group = f"({m},{singles},{pairs})"
    if total > m:
        place = _sample(range(1, total + 1), m, random.Random(f"{stream}/{total}"))
        nodes = [variable(place[int(n.value[1:]) - 1]) if is_variable(n) else n for n in nodes]
        name, group = f"{name}-of-{total}", f"{group} of {total}"
    tree = MaskedTree(nodes)
    large = ("div",) if configuration in LARGE_CONFIGURATIONS and "inv" in DECORATIONS[operator_set] else ()
    return Equation(
        name=f"trigonometric/{operator_set}/{name}/prog_{index}",
        variables=tuple(Variable(f"x{i}", 0.1, 10.0, "loguniform", "positive", f"x{i}") for i in range(1, total + 1)),
        function_set=("add", "sub", "mul", *large, *DECORATIONS[operator_set], "const"),
        tree=tree,
        formula=tree.to_infix(),
        group=group,
    )


def _program(rng: random.Random, decorations: Sequence[str], m: int, singles: int, pairs: int) -> list[Node]:
    """Return the left-nested sum of the constant, the single terms and the pair terms."""
    every_pair = [(i, j) for i in range(1, m + 1) for j in range(i + 1, m + 1)]
    chosen = [*((i,) for i in _sample(range(1, m + 1), singles, rng)), *_sample(every_pair, pairs, rng)]
    total: list[Node] = [_coefficient(rng)]
    for indices in chosen:
        term: list[Node] = [_coefficient(rng)]
        for i in indices:
            term = [node_from_name("mul"), *term, *_decorated(i, decorations, rng)]
        total = [node_from_name("add"), *total, *term]
    return total


def _coefficient(rng: random.Random) -> Constant:
    """Return round(Uniform(-1, 1), 4), zero drawn again."""
    value = 0.0
    while value == 0.0:
        value = round(2.0 * rng.random() - 1.0, 4)
    return Constant(value, fitted=False)


def _decorated(index: int, decorations: Sequence[str], rng: random.Random) -> list[Node]:
    """Return the plain variable with probability 1/2, else one operator of it."""
    if rng.random() < 0.5:
        return [variable(index)]
    return [node_from_name(decorations[int(rng.random() * len(decorations))]), variable(index)]


def _sample(items: Sequence[T], count: int, rng: random.Random) -> list[T]:
    """Return `count` different items in random order."""
    pool = list(items)
    return [pool.pop(int(rng.random() * len(pool))) for _ in range(count)]


# --- problems from the table --------------------------------------------------------------


def table_suite(suite: str) -> Iterator[Equation]:
    """Yield the problems of `suite` (one of :data:`TABLES`) from the table in data/sources."""
    yield from table_problems(suites.data_root() / "sources" / "problems.csv", suite)


def table_problems(path: Path, suite: str) -> Iterator[Equation]:
    """Yield the problems of `suite` from a table with the columns of data/sources/problems.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["suite"] == suite:
                yield _from_row(row)


def _from_row(row: dict[str, str]) -> Equation:
    name = f"{row['suite']}/{row['id']}"
    tree = writer_form(MaskedTree.from_infix(row["formula"]))
    basic, listed = ("add", "sub", "mul", "div"), row["operators"].split()
    needed = {*listed, *(node.name for node in tree if node.arity)} - {*basic, "neg"}
    rest = [operator for operator in operators.CATALOGUE if operator in needed]
    exactly = listed[:1] == ["only"]  # some published sets have no constants
    return Equation(
        name=name,
        variables=tuple(_range(text, i, name) for i, text in enumerate(row["variables"].split(";"), start=1)),
        function_set=tuple(listed[1:]) if exactly else (*basic, *rest, "const"),
        tree=tree,
        formula=row["formula"],
        group=row["group"],
        usable=row["usable"] == "yes",
        reason=row["note"],
        judge=row["judge"],
    )


def _range(text: str, index: int, name: str) -> Variable:
    """Read ``symbol low..high [sampling] [sign]``."""
    symbol, bounds, *words = text.split()
    low, dots, high = bounds.partition("..")
    unknown = set(words) - {"loguniform", "integer", "both", "as_range"}
    if not dots or unknown:
        raise EquationError(
            name, f"variables[{index - 1}]", text, "symbol low..high [loguniform|integer] [both|as_range]"
        )
    sampling = next((word for word in words if word in ("loguniform", "integer")), "uniform")
    sign = next((word for word in words if word in ("both", "as_range")), "positive")
    return Variable(f"x{index}", float(low), float(high), sampling, sign, symbol)


def writer_form(tree: MaskedTree) -> MaskedTree:
    """Apply the writer's rules: -u is mul(-1, u), roots and halves of powers are square roots, constants folded."""

    def written(position: int, node: Node, operands: list[list[Node]]) -> list[Node]:
        if node.arity and node.name == "neg":
            return [node_from_name("mul"), Constant(-1.0, fitted=False), *operands[0]]
        if node.arity and node.name == "pow" and len(operands[1]) == 1 and isinstance(operands[1][0], Constant):
            return _root_of_power(operands[0], operands[1][0])
        return [node, *chain.from_iterable(operands)]

    nodes = bottom_up(fold(tree), written)
    return fold(MaskedTree(nodes))


def _root_of_power(base: list[Node], exponent: Constant) -> list[Node]:
    root = node_from_name("sqrt")
    match exponent.value:
        case 0.5:
            return [root, *base]
        case 0.25:
            return [root, root, *base]
        case 1.5:
            return [node_from_name("mul"), *base, root, *base]
    return [node_from_name("pow"), *base, exponent]


# --- dummy variables ----------------------------------------------------------------------


def dummy_suite(seed: int = 0) -> Iterator[Equation]:
    """Yield the laws of feynman, each with one to three dummy variables among its own, as SRSD does (arXiv 2206.10540).

    A dummy has no effect; its range is two decades around a power of ten from 1e-32 to 1e32, every second one with
    both signs.
    """
    for equation in table_suite("feynman"):
        yield _with_dummies(equation, random.Random(f"{seed}/{WITH_DUMMIES}/{equation.name}"))


def _with_dummies(equation: Equation, rng: random.Random) -> Equation:
    count = 1 + int(rng.random() * 3)
    total = equation.n_vars + count
    own = sorted(_sample(range(1, total + 1), equation.n_vars, rng))
    moved = dict(zip((f"x{i}" for i in range(1, equation.n_vars + 1)), own, strict=True))
    variables = dict(zip(own, equation.variables, strict=True))
    for i in (i for i in range(1, total + 1) if i not in variables):
        middle, sign = int(rng.random() * 65) - 32, "both" if rng.random() < 0.5 else "positive"
        variables[i] = Variable("", float(f"1e{middle - 1}"), float(f"1e{middle + 1}"), "loguniform", sign, f"dummy{i}")
    return replace(
        equation,
        name=f"{WITH_DUMMIES}/{equation.name.rpartition('/')[2]}",
        variables=tuple(replace(variables[i], name=f"x{i}") for i in range(1, total + 1)),
        tree=MaskedTree([variable(moved[node.value]) if is_variable(node) else node for node in equation.tree]),
        formula=re.sub(r"\bx\d+\b", lambda match: f"x{moved[match[0]]}", equation.formula),
        group=f"{equation.group} of {total}",
    )


# --- writing ------------------------------------------------------------------------------


def write_problems(equations: Iterable[Equation], root: Path) -> int:
    """Write each problem to ``root/<name>.json``, whole or not at all; return how many."""
    count = 0
    for equation in equations:
        path = root / f"{equation.name}.json"
        if not path.resolve().is_relative_to(root.resolve()):
            raise EquationError(equation.name, "name", equation.name, "a name that stays inside the folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, format_equation(equation))
        count += 1
    return count
