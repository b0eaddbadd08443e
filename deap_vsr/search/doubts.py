"""Why an answer is never called found, whatever the points say that it is attacked with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.engine.linear import solved
from deap_vsr.lab.lab import Lab
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.search.finish import reopened
from deap_vsr.search.records import Found
from deap_vsr.tree import Constant, MaskedTree, Node, is_open, is_variable
from deap_vsr.tree.simplify import structural_hash

#: More loose numbers than this are several; a number is loose if it has more digits than these.
SEVERAL, SHORT_DIGITS = 2, 3
#: From few points a fit knows some numbers to three digits itself: there short ones have two.
FEW_DIGITS = 2
#: A polynomial of this degree at the most is seen at so many settings of the other variables; what is nought to it; and
#: by how much each power is smaller than the one before, where x is largest, if it is to be the beginning of a series.
DEGREE, SETTINGS, NOUGHT, DWINDLING = 4, 3, 1e-8, 5.0
#: With so many loose numbers a sum in one variable bends as any curve does. A damped wave is none, if it is alone.
BENDS = 4
#: A number is hardly told if its standard error is a larger share of it.
HARDLY = 0.5
#: With fewer answers what is a tenth of the noise along one variable is hardly seen: a standard error and a half of the
#: mean of as many as fall into a tenth of its range. Of variables that a formula has not so many are named.
MANY, NAMED = 2000, 3
#: Of these nodes, numbers and a variable a polynomial is made that is none by chance: a line, or what has its square.
PLAIN = frozenset({"add", "sub", "mul", "n2", "n3"})


def never_found(found: Found, formula: MaskedTree, lab: Lab, compared: bool = True) -> str:
    """Return why an answer is never called found, whatever the points say; nothing if there is no such reason.

    `compared` says whether there were rivals that it was compared with.
    """
    certain = lab.evidence.certain
    if not certain and not any(map(is_variable, formula)):
        return "no variable can be seen in the noise"
    if found.search == "joint" and "slotwise" in found.tried and not certain:
        return "it was found by joint search after slots had failed, in noise"
    if found.search == "sums" and "slotwise" not in found.tried and _n_loose(formula) > SEVERAL:
        return "it is a sum with several numbers that were fitted, and slots were not tried"
    if not certain and structural_hash(reopened(formula)) in lab.facts.get("cut", ()):
        return "there was no time to look for what else its parts could be"
    mixed = None if certain else _mixed(formula)
    if mixed is not None:
        return f"a sum of functions of {lab.variables[mixed].name} with several fitted numbers may approximate many"
    crowded = None if certain else _crowded(formula)
    if crowded is not None:
        return f"{BENDS} and more fitted numbers beside {lab.variables[crowded].name} alone may approximate any curve"
    untold = None if certain else _untold(formula, lab)
    if untold is not None:
        return f"what was measured hardly tells the number {untold:.6g}"
    series = None if certain else _series(formula, lab)
    if series is not None:
        return f"powers of {lab.variables[series].name} with fitted numbers may be the beginning of a series"
    n_loose = _n_loose(formula, FEW_DIGITS)
    if found.search == "slotwise" and "setting" in lab.facts and n_loose >= SEVERAL:
        return f"from so few points in noise a formula with {n_loose} fitted numbers may only come close to the law"
    if not certain and not compared and _n_loose(formula) > SEVERAL:
        return f"nothing else came up to compare its {_n_loose(formula)} fitted numbers with"
    if not certain and int(lab.log.good.sum()) < MANY and (others := _left_out(formula, lab)):
        return f"so few points in noise do not tell whether {others} may matter a little"
    for column, variable in enumerate(lab.variables):
        values = len(np.unique(lab.log.X[:, column])) if variable.sampling == "integer" else np.inf
        needed = max(_n_constants_of(formula, column) + 2, 3)
        if values < needed and any(is_variable(node) and node.value == f"x{column + 1}" for node in formula):
            return f"{variable.name} has {values} values, and it takes {needed} to tell its form"
    return ""


def _series(formula: MaskedTree, lab: Lab) -> int | None:
    """Return the variable in three dwindling powers of which, with a fitted number, a formula has a factor; else None.

    So begins every smooth function: x2*(1 + x1/100 + x1**2/15000) is (1 + x1/100)/sqrt(1 - x1**2/10000)*x2 in noise. In
    (x1 - x2)**2 the powers do not stay in proportion when x2 changes.
    """
    used = {node.value for node in formula if is_variable(node)} if _n_loose(formula) else set()
    at = draw_inputs(lab.variables, SETTINGS, np.random.default_rng(0))
    for column, variable in enumerate(lab.variables):
        if f"x{column + 1}" not in used or variable.sampling == "integer":
            continue
        t = np.linspace(-1.0, 1.0, 2 * DEGREE + 1)
        x = 0.5 * (sum(variable.bounds) + np.ptp(variable.bounds) * t)
        X = np.repeat(at, len(x), axis=0)
        X[:, column] = np.tile(x, len(at))
        powers = np.vander(x / np.max(np.abs(x)), DEGREE + 1)
        with np.errstate(all="ignore"):
            y = formula.evaluate(X, lab.pset).reshape(len(at), -1).T
        size = np.max(np.abs(y), axis=0)
        if not np.isfinite(y).all() or not (size > 0.0).all():
            continue
        numbers = solved(powers, y / size)
        there = np.max(np.abs(numbers), axis=1) > NOUGHT
        in_proportion = np.max(np.ptp(numbers * np.sign(numbers[there][0]), axis=1)) < NOUGHT if there.any() else False
        if np.max(np.abs(powers @ numbers - y / size)) >= NOUGHT or not in_proportion or there.sum() < 3:
            continue
        largest_last = np.max(np.abs(numbers[there]), axis=1)
        if (DWINDLING * largest_last[:-1] < largest_last[1:]).all():
            return column
    return None


def _left_out(formula: MaskedTree, lab: Lab) -> str:
    """Return the names of the variables that a formula has not."""
    used = {node.value for node in formula if is_variable(node)}
    others = [variable.name for column, variable in enumerate(lab.variables) if f"x{column + 1}" not in used]
    return ", ".join(others[:NAMED]) + (", ..." if len(others) > NAMED else "")


def _mixed(formula: MaskedTree) -> int | None:
    """Return the variable of which alone a sum is that has several loose numbers, and is no polynomial; None: no such.

    Two functions among all there are, with numbers before them, are as near to any smooth curve as some thousand
    measurements tell: 6.76786*sin(sin(x)) + 0.0098675*x**6 to 6*erf(x). One function and a number, a + b/x, is not.
    """
    for position, node in enumerate(formula):
        part = formula[formula.searchSubtree(position)]
        if node.name not in ("add", "sub") or _n_loose(part) < SEVERAL:
            continue
        columns = {int(other.value[1:]) - 1 for other in part if is_variable(other)}
        terms = sum(any(map(is_variable, term)) for term in _terms(MaskedTree(part)))
        if terms > 1 and len(columns) == 1 and any(other.arity and other.name not in PLAIN for other in part):
            return columns.pop()
    return None


def _untold(formula: MaskedTree, lab: Lab) -> float | None:
    """Return a number of a formula that is as good at half of it and twice: 7000 of tanh(7000*x1 - 4200), a step."""
    data = Dataset.of([lab.measured()])
    outcome = lab.fit(reopened(formula), data, n_starts=0)
    if not outcome.determined.all():  # a number too many is another matter
        return None
    values, errors = outcome.constants[0], lab.evidence.standard_errors(outcome, data)[0]
    numbers = [node.value for node in reopened(formula) if is_open(node)]
    return next((n for n, v, e in zip(numbers, values, errors, strict=True) if e > HARDLY * abs(v)), None)


def _crowded(formula: MaskedTree) -> int | None:
    """Return the variable of which alone a sum is that has so many loose numbers that it bends as any curve does.

    0.15025 + 13.777/(2202.8 + x2**4)**0.35887 is 1/(1 + 6.4*exp(-23.5/x2)), as far as noise of 1 % tells.
    """
    for position, operator in enumerate(formula):
        part = formula[formula.searchSubtree(position)]
        columns = {int(node.value[1:]) - 1 for node in part if is_variable(node)}
        if operator.name in ("add", "sub") and len(columns) == 1 and _n_loose(part) >= BENDS:
            return columns.pop()
    return None


def _terms(tree: MaskedTree) -> list[list[Node]]:
    """Return the operands of a chain of sums and differences."""
    if tree[0].name not in ("add", "sub"):
        return [list(tree)]
    first = tree.searchSubtree(1)
    return [*_terms(MaskedTree(tree[first])), *_terms(MaskedTree(tree[first.stop :]))]


def _n_loose(formula: Sequence[Node], digits: int = SHORT_DIGITS) -> int:
    """Return how many numbers of a formula are not short."""
    numbers = [node.value for node in formula if isinstance(node, Constant)]
    return sum(float(f"{number:.{digits - 1}e}") != number for number in numbers)


def _n_constants_of(formula: MaskedTree, column: int) -> int:
    """Return how many numbers say how a formula moves with a variable.

    Those of the smallest part that has all of it in it; and of the largest that is of it alone, but one, a factor: of
    0.3*x2 - 0.29*cos(0.97**x1)*x2 with brackets three numbers bend with x1, not one.
    """
    name = f"x{column + 1}"
    places = [i for i, node in enumerate(formula) if is_variable(node) and node.value == name]
    if not places:
        return 0
    wholes = [formula.searchSubtree(i) for i in range(len(formula))]
    smallest = min(
        (whole for whole in wholes if whole.start <= places[0] and whole.stop > places[-1]),
        key=lambda whole: whole.stop - whole.start,
    )
    of_it = [whole for whole in wholes if {node.value for node in formula[whole] if is_variable(node)} == {name}]
    return max(_n_numbers(formula[smallest]), max(_n_numbers(formula[whole]) for whole in of_it) - 1)


def _n_numbers(nodes: Sequence[Node]) -> int:
    """Return how many numbers other than 1 and -1 there are."""
    return sum(isinstance(node, Constant) and abs(node.value) != 1.0 for node in nodes)
