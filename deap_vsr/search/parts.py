"""Parts of a formula that depend on one variable alone, measured by all the data and solved anew.

In noise a formula grows from a few points a round, and what stood in for a law then may stay. In the end everything
that was measured tells what a part is: where the rest of the formula is as it is, each answer is a measurement of the
part at its value of the variable. That is a table in one variable, and its forms compete in the whole formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.lab.evidence import squares
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.finish import reopened
from deap_vsr.search.prune import pruned, some_of
from deap_vsr.tree import Constant, MaskedTree, Node, is_variable, node_from_name
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import structural_hash

#: Values of a table, each the middle of as many answers; with fewer answers for each there are fewer values.
N_VALUES, LEAST_VALUES, ANSWERS = 28, 8, 6
#: Parts of fewer nodes are not solved anew: C*x says all that it can.
LEAST_NODES = 4
#: Of the forms of a part so many are pruned, and fitted to everything.
KEPT = 6
#: A form whose price, doubled nats, is so much above the formula's on a part of the measurements is not pruned.
FAR = 100.0
#: How often all parts are gone through at the most: each time something has changed.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Resolved:
    """A formula whose parts were solved anew, fitted to everything, and others that came up, each with its price.

    ``whole`` says whether all parts were looked at before a limit was reached.
    """

    best: Fit
    price: float
    others: tuple[tuple[float, MaskedTree], ...]
    whole: bool


def resolved(tree: MaskedTree, data: Dataset, lab: Lab, regressor: Regressor) -> Resolved:
    """Return the best of a formula and those with a part written otherwise, by what they leave and how long they are.

    ::

        until no part is better written otherwise:
            for each variable, and each part of it alone:
                table: what all the answers say of the part, at some values
                forms of the table, each in the place of the part, fitted with all other constants
                the best by description length stays

    Parameters
    ----------
    data : all that was measured, as one trial
    """
    fitted = lab.fit(reopened(tree), data, n_starts=0)
    best, price = fitted, lab.evidence.price(fitted, data, tied=False)
    others: dict[str, tuple[float, MaskedTree]] = {}
    done: set[tuple[str, int]] = set()
    for _ in range(ROUNDS):
        before = price
        for column in _columns(best.tree):
            key = (structural_hash(best.tree), column)
            if key in done:
                continue
            done.add(key)
            for outcome, its_price in _alternatives(best.trees[0], column, data, lab, regressor):
                text = structural_hash(outcome.tree)
                others[text] = (its_price, outcome.trees[0])
                if its_price < price:
                    others[structural_hash(best.tree)] = (price, best.trees[0])
                    best, price = outcome, its_price
            if lab.budget.used_up(asking=False) is not None:
                break
        if price == before or lab.budget.used_up(asking=False) is not None:
            break
    others.pop(structural_hash(best.tree), None)
    whole = lab.budget.used_up(asking=False) is None
    return Resolved(best, price, tuple(sorted(others.values(), key=lambda item: item[0])), whole)


def _columns(tree: MaskedTree) -> list[int]:
    return sorted({int(node.value[1:]) - 1 for node in tree if is_variable(node)})


def _alternatives(
    tree: MaskedTree, column: int, data: Dataset, lab: Lab, regressor: Regressor
) -> Iterator[tuple[Fit, float]]:
    """Yield formulas with a part of one variable written otherwise, fitted to everything, and their prices."""
    screened = some_of(data)
    gathered = MaskedTree(gather(tree, column))
    for place in parts_of(gathered, column):
        trial = table_of(gathered, place, column, data, lab)
        if trial is None:
            continue
        forms = regressor.regress(_task(trial, column, lab))
        fits = [_placed(gathered, place, form, screened, lab) for form in forms]
        prices = [lab.evidence.price(outcome, screened, tied=False) for outcome in fits]
        limit = lab.evidence.price(lab.fit(tree, screened, n_starts=0), screened, tied=False) + FAR
        for i in np.argsort(prices, kind="stable")[:KEPT]:
            if lab.budget.used_up(asking=False) is not None:
                return
            outcome = fits[i]
            if not prices[i] < limit:
                break
            shorter = pruned(outcome, screened, lab, lab.evidence)
            whole = lab.fit(shorter.tree, data, starts=shorter.constants, n_starts=0)
            yield whole, lab.evidence.price(whole, data, tied=False)


def _task(trial: Trial, column: int, lab: Lab) -> Task:
    evidence = lab.evidence.of_tables()
    limit = evidence.table_limits(len(trial.y), 1)[0]
    target = float(np.mean(limit / squares(Dataset.of([trial]))))
    return Task(
        [], lambda rng: [trial], lab.function_set, (column,), lab.n_vars,
        lab.budget.part(0.5), target, lab.rng, "most", evidence, rivals=True,
    )  # fmt: skip


def _placed(tree: MaskedTree, place: slice, form: Candidate, data: Dataset, lab: Lab) -> Fit:
    """Return the fit of a formula with a form in the place of a part."""
    part = form.tree.with_constants(form.constants[0])
    return lab.fit(MaskedTree([*tree[: place.start], *part, *tree[place.stop :]]), data, n_starts=0)


# --- where the parts are ------------------------------------------------------------------


def gather(tree: Sequence[Node], column: int) -> list[Node]:
    """Return the nodes with all terms, and all factors, of one variable alone beside each other, numbers with them."""
    whole = MaskedTree(tree)
    name = whole[0].name
    if name not in ("add", "mul"):
        operands = _operands(whole)
        return [whole[0], *(node for operand in operands for node in gather(operand, column))]
    chain = [gather(operand, column) for operand in _chain(whole, name)]
    mine = [nodes for nodes in chain if _variables(nodes) <= {column}]
    rest = [nodes for nodes in chain if not _variables(nodes) <= {column}]
    joined = [_joined(name, nodes) for nodes in (mine, rest) if nodes]
    return _joined(name, joined)


def parts_of(tree: MaskedTree, column: int) -> list[slice]:
    """Return the largest sub-trees that have one variable alone, and are more than it."""
    places: list[slice] = []
    after = 0
    for position in range(len(tree)):
        whole = tree.searchSubtree(position)
        if position < after or _variables(tree[whole]) != {column}:
            continue
        after = whole.stop
        if whole.stop - whole.start >= LEAST_NODES:
            places.append(whole)
    return places


def _variables(nodes: Sequence[Node]) -> set[int]:
    return {int(node.value[1:]) - 1 for node in nodes if is_variable(node)}


def _operands(tree: MaskedTree) -> list[list[Node]]:
    result: list[list[Node]] = []
    first = 1
    for _ in range(tree[0].arity):
        whole = tree.searchSubtree(first)
        result.append(list(tree[whole]))
        first = whole.stop
    return result


def _chain(tree: MaskedTree, name: str) -> list[list[Node]]:
    """Return the operands of a chain of one operator."""
    if tree[0].name != name:
        return [list(tree)]
    return [part for operand in _operands(tree) for part in _chain(MaskedTree(operand), name)]


def _joined(name: str, parts: Sequence[list[Node]]) -> list[Node]:
    nodes = parts[0]
    for part in parts[1:]:
        nodes = [node_from_name(name), *nodes, *part]
    return nodes


# --- what all the answers say of a part ---------------------------------------------------


def table_of(tree: MaskedTree, place: slice, column: int, data: Dataset, lab: Lab) -> Trial | None:
    """Return a part as measured: its values at some of its variable's, weights of 1/error**2; None if little is known.

    The part plus a number that is nought: an answer, as far as it moves with that number, measures it. Answers beside
    each other are taken together, by their weights.
    """
    part = MaskedTree(tree[place])
    fixed = [
        Constant(node.value, False, False, node.ret) if isinstance(node, Constant) else node
        for node in (*tree[: place.start], node_from_name("add"), *part, *tree[place.stop :])
    ]
    stop = place.start + 1 + len(part)
    moved = MaskedTree([*fixed[:stop], Constant(0.0), *fixed[stop:]])
    lab.budget.count(2)
    residuals, J = residual_model(moved, encoder(lab.pset).encode([moved]), data, lab.pset)(np.zeros(1))
    unit = spread(data.y, data.weight) / lab.evidence.noise
    left, slope = residuals * unit, J[0] * unit
    x = data.columns[column]
    good = np.isfinite(left) & np.isfinite(slope)
    if good.sum() < LEAST_VALUES * ANSWERS:
        return None
    x, left, slope = x[good], left[good], slope[good]
    order = np.argsort(x, kind="stable")
    x, left, slope = x[order], left[order], slope[order]
    known = slope**2
    if not known.sum() > 0.0:
        return None
    count = int(np.clip(len(x) // ANSWERS, LEAST_VALUES, N_VALUES))
    # By how much they tell, and by how many they are: half and half, so that no value is of the whole range.
    along = 0.5 * np.cumsum(known) / known.sum() + 0.5 * np.arange(1, len(x) + 1) / len(x)
    which = np.minimum((along * count).astype(int), count - 1)
    info: Array = np.bincount(which, known, count).astype(float)
    full = info > 0.0
    with np.errstate(all="ignore"):
        middle = (np.bincount(which, known * x, count) / info)[full]
        off = (-np.bincount(which, slope * left, count) / info)[full]
        at = np.zeros((len(middle), len(data.columns)))
        at[:, column] = middle
        y = part.evaluate(at, lab.pset) + off
    fine = np.isfinite(y)
    if fine.sum() < LEAST_VALUES:
        return None
    return Trial(at[fine], y[fine], (column,), info[full][fine])
