"""The end of a search: constants refitted together and shortened, the formula checked on fresh and on wider data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, Fit, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.errors import NoValuesError
from deap_vsr.lab.criterion import criterion
from deap_vsr.lab.evidence import Exact, FreezeRule
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.search.identify import hidden_by_rounding, identified, without_idle_terms
from deap_vsr.search.leading import without_logarithms
from deap_vsr.search.prune import ONE_AT_NOUGHT, pruned
from deap_vsr.search.short import ROOM, SIGNIFICANCE, rounded, short_in_noise, short_number, with_short_numbers
from deap_vsr.search.squares import without_roots_of_squares
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array
from deap_vsr.tree.powers import ODD
from deap_vsr.tree.simplify import fold, literals, structural_hash, without_neutral
from deap_vsr.tree.written import as_written

#: When a formula is exact, on fresh data: a decade above what refitted laws of many terms leave by rounding.
EXACT = FreezeRule(error=1e-18)
#: An error that is rounding, with some room.
ROUNDING = 1e-24
#: The share of points outside the domain at which a formula must hold, as an oracle may end there, and of everything
#: that was measured, where only points beside a pole may be off.
AGREES, AGREES_WITH_LOG = 0.9, 0.99
#: Of fewer answers outside no share is taken.
FEW = 8
#: A function is taken for 1 if it is off by no more: some digits above rounding, and the formula must hold without it.
IS_ONE = 1e-9
#: Functions that are as good as their operand where it is small, or positive.
NEARLY_STRAIGHT = ODD | {"abs"}


@dataclass(frozen=True)
class Finished:
    """A formula as it is written in the end, the standard errors of its constants, and its price in noise."""

    tree: MaskedTree
    standard_errors: tuple[float, ...] | None
    price: float = 0.0


def reopened(tree: MaskedTree) -> MaskedTree:
    """Return the tree with its constants open again, those that were frozen too; 1 and -1 stay what they are."""
    return MaskedTree(
        Constant(node.value, True, True, node.ret)
        if isinstance(node, Constant) and (node.fitted or abs(node.value) != 1.0)
        else node
        for node in tree
    )


def finish(tree: MaskedTree, lab: Lab, data: Dataset | None = None) -> Finished | None:
    """Return a formula with its constants refitted together, and shortly written; None if it does not fit.

    Exact answers are asked for anew; noisy ones are all that were measured, or `data` (one trial).
    """
    if lab.evidence.certain:
        return finished(tree, lab)
    return finished_in_noise(tree, data or Dataset.of([lab.measured()]), lab)


# --- exact answers ------------------------------------------------------------------------


def finished(tree: MaskedTree, lab: Lab, trial: Trial | None = None) -> Finished | None:
    """Return a formula for exact answers, its constants refitted together and short; None if it does not fit.

    Fresh points are asked for it, unless there is a `trial` to fit.
    """
    lab = lab.at(Exact(EXACT))
    skeleton = reopened(tree)
    n_points = 2 * skeleton.n_constants + 8
    try:
        trial = trial or lab.trials(range(lab.n_vars), 1, n_points)[0]
    except NoValuesError:
        return None
    data = Dataset.of([lab.evidence.weighted(trial)])
    outcome = lab.fit(skeleton, data, n_starts=0)
    standing = replace(outcome, constants=np.array([skeleton.constants]).reshape(1, -1))
    found: MaskedTree | None = None
    for which in (outcome, standing):  # terms that are rounding once all are fitted together, or as they stand
        found = found or _without_rounding(which, data, lab)
    if found is None and outcome.determined.all() and lab.evidence.fits(outcome, data):
        found = shortened(outcome, data, lab)
    if found is None:  # what the data do not determine stays as it is, but for the last digits
        kept = lab.fit(literals(tree), data)
        unknown = np.full(standing.constants.shape, np.inf)
        if lab.evidence.fits(kept, data):
            found = shortened(replace(standing, errors=kept.errors, standard_errors=unknown), data, lab)
    if found is None:
        return None
    written = _written_exactly(found, data, lab)
    return Finished(written, tuple(lab.fit(reopened(written), data, n_starts=0).standard_errors[0].tolist()))


def _without_rounding(outcome: Fit, data: Dataset, lab: Lab) -> MaskedTree | None:
    """Return the formula without terms that are rounding, if it fits, with short numbers or as it is; else None.

    Beside y of 1e9 no fitted constant may be exact enough, and a short one is.
    """
    shorter = without_idle_terms(outcome, data)
    if shorter is None:
        return None
    literal = literals(shorter[0].with_constants(shorter[1][0]))
    again = lab.fit(shorter[0], data, starts=shorter[1], n_starts=0)
    candidates = [literal]
    if again.determined.all() and np.isfinite(again.errors[0]):
        candidates.insert(0, shortened(again, data, lab))
    return next((tree for tree in candidates if lab.evidence.fits(lab.fit(tree, data), data)), None)


def _written_exactly(tree: MaskedTree, data: Dataset, lab: Lab) -> MaskedTree:
    """Return the formula as one would write it, without what does nothing, if that fits as well."""
    known = lab.measured()
    both = (data, Dataset.of([lab.evidence.weighted(known)])) if len(known.y) > 1 else (data,)

    def errors(one: MaskedTree) -> list[float]:
        return [float(lab.fit(one, each).errors[0]) for each in both]

    allowed = [max(ROUNDING, 4.0 * error) for error in errors(tree)]
    for shorter in (
        *_with_a_one(tree, known.X, lab),
        *_without_one(tree),
        *without_roots_of_squares(tree, known.X, lab),
    ):
        if all(error <= limit for error, limit in zip(errors(shorter), allowed, strict=True)):
            return _written_exactly(shorter, data, lab)
    tidy = as_written(tree, lab.function_set)
    return tidy if lab.evidence.fits(lab.fit(tidy, data), data) else tree


def _without_one(tree: MaskedTree) -> Iterator[MaskedTree]:
    """Yield the formula without one of its terms, or of its functions that may do nothing.

    tanh(u) is u where u is small, and log(1 + u); 1e-90*exp(x1**2) is nothing, and has come in where x1 was large.
    """
    yield from without_logarithms(tree)
    for position, node in enumerate(tree):
        if not node.arity or (node.name not in ("add", "sub") and node.name not in NEARLY_STRAIGHT):
            continue
        first = tree.searchSubtree(position + 1)
        stop = tree.searchSubtree(position).stop
        yield MaskedTree([*tree[:position], *tree[first], *tree[stop:]])
        if node.name == "add":
            yield MaskedTree([*tree[:position], *tree[first.stop : stop], *tree[stop:]])


def _with_a_one(tree: MaskedTree, X: Array, lab: Lab) -> Iterator[MaskedTree]:
    """Yield the formula with 1 in the place of a function that is 1 wherever it was measured: exp(-2e-15*x1) is."""
    for position, node in enumerate(tree):
        whole = tree.searchSubtree(position)
        if node.name not in ONE_AT_NOUGHT:
            continue
        with np.errstate(all="ignore"):
            off = np.abs(MaskedTree(tree[whole]).evaluate(X, lab.pset) - 1.0)
        if (off <= IS_ONE).all():
            one = Constant(1.0, False, False)
            yield without_neutral(fold(MaskedTree([*tree[: whole.start], one, *tree[whole.stop :]])))


def shortened(outcome: Fit, data: Dataset, lab: Lab) -> MaskedTree:
    """Return the fitted formula with each number at as few digits as its standard error and the data allow.

    All numbers are shortened at once; where that does not fit, one after the other, each that does staying short.
    """
    full = outcome.constants[0]
    # Where y is rounded to the same numbers, residuals of nothing do not mean that a constant is known so well.
    errors = np.maximum(outcome.standard_errors[0], hidden_by_rounding(outcome, data) / ROOM)
    short = np.array([short_number(v, e) for v, e in zip(full, errors, strict=True)])
    tree = outcome.tree
    allowed = max(ROUNDING, 4.0 * float(outcome.errors[0]))

    def error(values: Array) -> float:
        return float(lab.fit(literals(tree.with_constants(values)), data).errors[0])

    if error(short) <= allowed:
        return without_neutral(fold(literals(tree.with_constants(short))))
    values = full.copy()
    for i in range(len(values)):
        trial = values.copy()
        trial[i] = short[i]
        if error(trial) <= allowed:
            values = trial
    return without_neutral(fold(literals(tree.with_constants(values))))


# --- noisy answers ------------------------------------------------------------------------


def finished_in_noise(tree: MaskedTree, data: Dataset, lab: Lab) -> Finished:
    """Return the formula with its constants fitted together to all `data` (one trial) and shortly written."""
    evidence = lab.evidence
    outcome = lab.fit(reopened(tree), data, n_starts=0)
    if not outcome.determined.all():
        outcome = identified(outcome, data, lab)
    outcome = pruned(outcome, data, lab, evidence)
    price = evidence.price(outcome, data, tied=False)
    for shorter in without_logarithms(outcome.trees[0]):
        again = lab.fit(shorter, data, n_starts=0)
        if not again.determined.all():  # C*log(1 + C*x) would be C*C*x
            again = identified(again, data, lab)
        again = pruned(again, data, lab, evidence)
        lower = evidence.price(again, data, tied=False)
        if again.determined.all() and lower < price:
            outcome, price = again, lower
    if not outcome.determined.all() or not np.isfinite(price):
        return Finished(literals(outcome.trees[0]), None, price)
    errors = evidence.standard_errors(outcome, data)[0]
    short = literals(outcome.tree.with_constants(_short(outcome, data, errors, lab)))
    written = as_written(without_neutral(fold(short)), lab.function_set)
    known = lab.fit(reopened(written), data, n_starts=0)  # also of numbers that were restored to few digits
    return Finished(written, tuple(evidence.standard_errors(known, data)[0].tolist()), price)


def better(trees: Sequence[MaskedTree], lab: Lab) -> int:
    """Return which finished formula is best on all that was measured: by what it leaves, its constants and its length.

    The first, if the others are the same terms in brackets, or nothing was measured.
    """
    sums = [expand(literals(tree), lab.function_set) for tree in trees]
    if None not in sums and len({structural_hash(tree) for tree in sums if tree is not None}) == 1:
        return 0
    data = Dataset.of([lab.measured()])
    if not len(data.y):
        return 0
    prices = []
    for tree in trees:
        left = float(lab.evidence.left(lab.fit(literals(tree), data), data).sum())
        prices.append(criterion(left, reopened(tree), sum(map(_counts, _numbers(tree))), len(data.y)))
    return int(np.argmin(prices))


def _short(outcome: Fit, data: Dataset, errors: Array, lab: Lab) -> Array:
    """Return the constants with short numbers restored, if the formula with them leaves no more than chance allows."""
    values = outcome.constants[0]
    unit = spread(data.y, data.weight)
    residuals, J = residual_model(outcome.tree, encoder(None).encode([outcome.tree]), data, None)(values)
    lab.budget.count(1)
    A = J * unit
    straight = values @ A - residuals * unit  # as if the formula were linear in its constants, which it is nearby
    plain = np.array([rounded(float(v), float(e)) for v, e in zip(values, errors, strict=True)])
    short = with_short_numbers(A, straight, lab.evidence.noise, values, errors)
    least = float(np.sum((residuals * unit) ** 2))
    with np.errstate(all="ignore"):
        there = outcome.tree.with_constants(short).evaluate(data.columns.T)
        grown = (float(np.sum(((there - data.y) * data.weight) ** 2)) - least) / lab.evidence.noise**2
    n_short = sum(short_in_noise(v, e) == s for v, e, s in zip(values.tolist(), errors.tolist(), short, strict=True))
    return short if grown <= chdtri(max(n_short, 1), SIGNIFICANCE) + 1.0 else plain


def _numbers(tree: MaskedTree) -> list[Constant]:
    return [node for node in tree if isinstance(node, Constant)]


def _counts(node: Constant) -> bool:
    """Whether a number is a constant of the formula: 1 and -1 are none."""
    return bool(abs(node.value) != 1.0)


# --- acceptance ---------------------------------------------------------------------------


def accepted(tree: MaskedTree, lab: Lab, n_points: int = 24, rule: FreezeRule = EXACT) -> bool:
    """Whether the formula, its constants as they are, holds on fresh data and, where it can be asked, outside.

    Exact answers must agree with everything that was measured too. A surrogate may do as well as the law on the domain;
    it hardly does outside.
    """
    try:
        (inside,) = lab.trials(range(lab.n_vars), 1, n_points)
    except NoValuesError:
        return False
    data = Dataset.of([inside])
    if not lab.evidence.at(rule).fits(lab.fit(tree, data), data):
        return False
    lab.facts["checked"] = n_points
    lab.budget.count(1)
    outside = _outside(lab, n_points)
    known = lab.measured()
    if len(outside.y) < FEW:
        return _agreement(tree, known, lab) >= AGREES_WITH_LOG
    if not lab.evidence.certain:  # outside, constants that are a little off are far off
        tree = lab.fit(reopened(tree), Dataset.of([known]), n_starts=0).trees[0]
    return _agreement(tree, outside, lab) >= AGREES and _agreement(tree, known, lab) >= AGREES_WITH_LOG


def _outside(lab: Lab, n_points: int) -> Trial:
    """Return fresh answers of the wider domain, to as many points as may still be asked; missing ones are left out."""
    ranges = [wider(v, limits) for v, limits in zip(lab.variables, lab.limits, strict=True)]
    X = draw_inputs(ranges, int(min(n_points, lab.budget.queries_left())), lab.rng)
    y, weights = lab.answers(X)
    good = np.isfinite(y)
    return Trial(X[good], y[good], weights=None if weights is None else weights[good])


def _agreement(tree: MaskedTree, trial: Trial, lab: Lab) -> float:
    """Return the share of answers from which a formula is off by no more than it may be."""
    allowed = lab.evidence.tolerance(trial.y, trial.weights)
    with np.errstate(all="ignore"):
        return float(np.mean(np.abs(tree.evaluate(trial.X, lab.pset) - trial.y) <= allowed))


def wider(variable: Variable, limits: tuple[float, float]) -> Variable:
    """Return the variable with a range half as wide again, within what the oracle answers."""
    if variable.sampling == "integer":
        return variable
    if variable.sampling == "loguniform":
        grow = (variable.high / variable.low) ** 0.25
        low, high = variable.low / grow, variable.high * grow
    else:
        grow = 0.25 * (variable.high - variable.low)
        low, high = variable.low - (grow if variable.sign == "as_range" else 0.0), variable.high + grow
    if variable.sign == "both":
        high = min(high, limits[1], -limits[0])
    else:
        low, high = max(low, limits[0]), min(high, limits[1])
    return variable.with_range(low, high)
