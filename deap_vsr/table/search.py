"""The search on a table: steps from cheap to dear, one field in which all compete, and how the answer stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.table import TableOracle
from deap_vsr.search.finish import Finished, finished, finished_in_noise, reopened
from deap_vsr.search.rivals import rivals_of
from deap_vsr.table.climb import climbed
from deap_vsr.table.control import controlled
from deap_vsr.table.evolve import evolve
from deap_vsr.table.exponentials import exponentials
from deap_vsr.table.field import Field, Formula, price
from deap_vsr.table.floor import AGREE, Floor, noise_floor, structure
from deap_vsr.table.index import separable, separable_forms
from deap_vsr.table.powers import power_laws, products
from deap_vsr.table.rows import EXACT, Rows
from deap_vsr.table.sums import linear, polynomials, ratios, sums
from deap_vsr.table.surrogate import surrogate_slots
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Indices
from deap_vsr.tree.simplify import structural_hash

#: The steps by name, in order; those of the second list follow only where nothing explains the rows.
CHEAP: dict[str, Callable[[Field], None]] = {
    "control": controlled,
    "power laws": power_laws,
    "linear": linear,
    "separable": separable,
    "climbed": climbed,
    "exponentials": exponentials,
    "polynomials": polynomials,
    "ratios": ratios,
    "products": products,
    "sums": sums,
    "climbed within functions": lambda f: climbed(f, 2),
}
DEAR: dict[str, Callable[[Field], None]] = {
    "forms": separable_forms,
    "more forms": lambda f: separable_forms(f, 1, "most"),
    "surrogate": surrogate_slots,
    "gp": evolve,
}
#: A formula that is so many nats ahead of its nearest rival is clearly ahead.
CLEAR = 10.0
#: Seconds behind a limit in which formulas beside the best are still finished: of 14, one may take a second.
AFTER = 0.3
#: How much more than on the rows it was fitted to a formula may leave of rows that were held out, at random and at the
#: edge: mean squares of a tenth of the rows are known to a fifth or so.
RANDOM, EDGE = 2.0, 4.0


#: Share of rows that must not decide alone how a formula stands.
FEW = 0.02


#: Numbers of rows: searched with, held out at random, and at the edge.
Split = tuple[Indices, Indices, Indices]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a search on a table ends with.

    Attributes
    ----------
    formulas : of the front, finished, the smallest first; `best` is the place of the one to use
    status : "fits" or "partial"; on a table alone nothing is ever found
    reason : why, in words
    lead : how far the best is ahead of its nearest rival, in nats
    rivals : how far each is behind, in nats, and its tree, nearest first
    measurements : (n, n_vars), points at which rivals differ most
    held_out : normalised errors of each formula of the front on rows held out: at random, and at the edge
    """

    formulas: list[Finished]
    prices: list[float]
    errors: list[float]
    best: int
    status: str
    reason: str
    lead: float
    rivals: list[tuple[float, MaskedTree]]
    measurements: Array
    held_out: list[tuple[float, float]]
    floor: Floor
    by: list[str]
    steps: list[str] = field(default_factory=list)


def run(rows: Rows, arena: Field, tell: Callable[[str], None] = lambda step: None) -> list[str]:
    """Let the steps propose, in order, until a formula explains the rows or time is up; returns those taken."""
    taken: list[str] = []
    for number, steps in enumerate((CHEAP, DEAR)):
        if number and explains(arena):
            break
        for name, step in steps.items():
            if arena.over:
                return taken
            tell(name)
            taken.append(name)
            step(arena)
            if number and explains(arena):
                return taken
    return taken


def explains(arena: Field) -> bool:
    """Whether the best formula leaves nothing but noise: rounding, or what neighbours do not agree in."""
    if arena.exact:
        return True
    best, rows = arena.best, arena.rows
    if best is None or best.error > 0.3:
        return False
    with np.errstate(all="ignore"):
        left = best.tree.evaluate(rows.X) - rows.y
    return bool(np.isfinite(left).all()) and structure(rows, left) < AGREE and _at_floor(left, noise_floor(rows))


def _at_floor(left: Array, floor: Floor) -> bool:
    return floor.known_by == "nothing" or float(np.std(left)) <= 1.1 * floor.bound


def held_out(rows: Rows) -> Split:
    """Return rows to search with, rows held out at random, and a block at the edge, as numbers of rows.

    The block is where a column that is drawn is largest, or least. Small tables keep all.
    """
    n = rows.n_rows
    everything = np.arange(n)
    if n < 40 or not rows.columns:
        return everything, everything[:0], everything[:0]
    column = int(rows.rng.choice(rows.columns))
    size = min(max(n // 10, 4), 2000)
    order = np.argsort(rows.X[:, column], kind="stable")
    edge = order[-size:] if rows.rng.random() < 0.5 else order[:size]
    rest = np.setdiff1d(everything, edge)
    random = rows.rng.permutation(rest)[:size]
    return np.setdiff1d(rest, random), np.sort(random), np.sort(edge)


def concluded(arena: Field, rows: Rows, parts: Split, steps: list[str]) -> Answer:
    """Return the front refitted to all `rows`, finished, and how the best of it stands."""
    front = [formula for formula in arena.front() if np.isfinite(formula.price)]
    front = front[-14:]
    lab = _laboratory(rows, arena)
    whole = rows.data
    refitted = [_refitted(formula, rows) for formula in front]
    best = int(np.argmin([item.price for item in refitted]))
    ended = {best: _finished(refitted[best], rows, lab, arena)}  # before time is up for the others
    for i, one in enumerate(refitted):
        if i != best:
            ended[i] = _finished(one, rows, lab, arena) if _in_time(rows) else _as_it_is(one)
    once = {structural_hash(ended[i].tree): i for i in reversed(range(len(refitted)))}
    kept = sorted({**once, structural_hash(ended[best].tree): best}.values())
    refitted, done, best = [refitted[i] for i in kept], [ended[i] for i in kept], kept.index(best)
    prices = [item.price for item in refitted]
    lead, rivals = _rivals(refitted[best], refitted, arena, rows, lab, whole)
    checks = [_checked(done[i].tree, rows, parts) for i in range(len(done))]
    floor = noise_floor(rows)
    answer = Answer(
        done, prices, [_error(item.tree, rows) for item in done], best, "partial", "", lead, rivals[:6],
        _measurements(done[best].tree, rivals, rows), checks, floor, [item.by for item in refitted], steps,
    )  # fmt: skip
    status, reason = _status(answer, rows, arena.exact)
    return replace(answer, status=status, reason=reason)


def _laboratory(rows: Rows, arena: Field) -> Lab:
    """Return a laboratory that knows the rows, their noise taken to be what the best formula leaves."""
    part = rows.part(np.linspace(0, rows.n_rows - 1, min(rows.n_rows, 5000)).astype(int))
    oracle = TableOracle(part.X, part.y, function_set=rows.function_set, weights=part.weights)
    lab = Lab(oracle, rows.budget.part(seconds=None), rows.rng)
    best = arena.best
    noise = 0.0 if best is None or arena.exact else float(np.sqrt(best.error)) * float(np.std(rows.y))
    lab.know_noise(noise)
    return lab


def _refitted(formula: Formula, rows: Rows) -> Formula:
    outcome = fit(formula.fit.tree, rows.data, starts=formula.fit.constants, n_starts=0)
    return Formula(outcome, price(outcome, rows), formula.by)


def _in_time(rows: Rows) -> bool:
    """Whether there is time to finish one more formula."""
    return rows.budget.left("seconds") > -AFTER


def _as_it_is(formula: Formula) -> Finished:
    """Return a formula with its numbers as they were fitted."""
    errors = tuple(formula.fit.standard_errors[0].tolist())
    return Finished(formula.tree, errors if np.isfinite(errors).all() else None, formula.price)


def _finished(formula: Formula, rows: Rows, lab: Lab, arena: Field) -> Finished:
    """Return a formula with short numbers, as far as rows allow."""
    done: Finished | None = None
    if formula.error <= max(EXACT, 10.0 * rows.rounding):
        done = finished(formula.tree, lab, rows.screen.trial)
    elif formula is not None and not arena.exact:
        done = finished_in_noise(
            formula.tree, Dataset.of([rows.screen.trial if rows.n_rows > 5000 else rows.trial]), lab
        )
    if done is None or not _error(done.tree, rows) <= 1.05 * formula.error + 10.0 * rows.rounding:
        return _as_it_is(formula)
    return done


def _rivals(
    best: Formula, front: list[Formula], arena: Field, rows: Rows, lab: Lab, data: Dataset
) -> tuple[float, list[tuple[float, MaskedTree]]]:
    """Return the lead of the best in nats, and what is behind it, that is not the same function, nearest first.

    Prices are compared on the same rows: what was fitted to those searched with is fitted to all.
    """
    scale = float(np.std(rows.y)) or 1.0
    X = rows.screen.X
    with np.errstate(all="ignore"):
        values = [best.tree.evaluate(X)]
    skeletons = {_skeleton(best.tree)}
    others = [*front]
    if rows.budget.used_up() is None:
        others += [_refitted(formula, rows) for formula in arena.ranked[:25]]
        if not arena.exact:
            others += [Formula(item, price(item, rows), "rival") for item in rivals_of(best.fit.tree, data, lab)]
    found = []
    for other in sorted(others, key=lambda item: item.price):
        with np.errstate(all="ignore"):
            mine = other.tree.evaluate(X)
        if any(not np.nanmax(np.abs(mine - known)) > 1e-7 * scale for known in values):
            continue
        if not np.isfinite(other.price) or _skeleton(other.tree) in skeletons:
            continue
        values.append(mine)
        skeletons.add(_skeleton(other.tree))
        found.append((max(0.5 * (other.price - best.price), 0.0), other.tree))
        if len(found) == 6:
            break
    return (found[0][0] if found else np.inf), found


def _skeleton(tree: MaskedTree) -> str:
    """Return a formula without the values of its numbers, for comparisons."""
    return structural_hash(reopened(tree))


def _measurements(tree: MaskedTree, rivals: list[tuple[float, MaskedTree]], rows: Rows, count: int = 5) -> Array:
    """Return points within the ranges of the table, (count, n_vars), at which the nearest rivals differ most."""
    if not rivals:
        return np.empty((0, rows.X.shape[1]))
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    X = np.vstack([rows.rng.uniform(low, high, (400, len(low))), rows.screen.X])
    with np.errstate(all="ignore"):
        off = np.sum([np.abs(other.evaluate(X) - tree.evaluate(X)) for _, other in rivals[:3]], axis=0)
    order = np.argsort(-np.where(np.isfinite(off), off, -1.0), kind="stable")
    chosen = [int(order[0])]
    units = np.where(high > low, high - low, 1.0)
    for i in order[1:]:
        if len(chosen) == count:
            break
        if min(float(np.max(np.abs(X[i] - X[j]) / units)) for j in chosen) > 0.2:
            chosen.append(int(i))
    return np.asarray(X[chosen])


def _checked(tree: MaskedTree, rows: Rows, parts: Split) -> tuple[float, float]:
    """Return the normalised errors of a formula, fitted to the rows searched with, on those held out."""
    train, *others = parts
    if not len(others[0]):
        return (float("nan"), float("nan"))
    again = fit(reopened(tree), rows.part(train).data, n_starts=0).trees[0]
    spread = float(np.var(rows.y)) or 1.0
    with np.errstate(all="ignore"):
        errors = [float(np.mean((again.evaluate(rows.X[part]) - rows.y[part]) ** 2)) / spread for part in others]
    return (errors[0], errors[1])


def _error(tree: MaskedTree, rows: Rows) -> float:
    """Return the normalised error of a formula on all rows, its numbers as they are."""
    spread = float(np.var(rows.y)) or 1.0
    with np.errstate(all="ignore"):
        error = float(np.mean((tree.evaluate(rows.X) - rows.y) ** 2)) / spread
    return error if np.isfinite(error) else np.inf


def _rests_on_few(tree: MaskedTree, rows: Rows) -> bool:
    """Whether a formula explains less than half of what y does in all rows but those that are furthest off."""
    order = np.argsort(np.abs(rows.y - np.median(rows.y)), kind="stable")
    most = order[: max(int((1.0 - FEW) * rows.n_rows), 2)]
    with np.errstate(all="ignore"):
        left = float(np.mean((tree.evaluate(rows.X[most]) - rows.y[most]) ** 2))
    return not left <= 0.5 * float(np.var(rows.y[most]))


def _status(answer: Answer, rows: Rows, exact: bool) -> tuple[str, str]:
    """Return how the best formula stands, and why; on a table alone nothing is found."""
    tree, error = answer.formulas[answer.best].tree, answer.errors[answer.best]
    n_constants = reopened(tree).n_constants
    if rows.n_rows < 3 * (n_constants + 2):
        return "partial", f"{rows.n_rows} rows are too few to tell anything of a formula with {n_constants} constants"
    if not np.isfinite(error) or error > 0.5:
        return "partial", "no formula explains half of what y does"
    if _rests_on_few(tree, rows):
        return (
            "partial",
            "a few rows hold nearly all of the spread of y, and what it says of the others is lost in noise",
        )
    random, edge = answer.held_out[answer.best]
    floor = max(error, 10.0 * rows.rounding)
    if random > RANDOM * floor or edge > EDGE * floor:
        return "partial", "it predicts, but rows that were held out are further off than those it was fitted to"
    if not exact:
        with np.errstate(all="ignore"):
            left = tree.evaluate(rows.X) - rows.y
        agreement = structure(rows, left)
        if agreement >= AGREE:
            return "partial", f"it predicts, but what it leaves is no noise: neighbours agree by {agreement:.1f} sigma"
        if answer.floor.known_by == "repeats" and not _at_floor(left, answer.floor):
            return "partial", f"it predicts, but leaves more than repeats do ({answer.floor.noise:.3g})"
    what = "to the last digit" if exact else f"to what is left, {np.sqrt(error):.2g} of the spread of y, like noise"
    if answer.lead >= CLEAR:
        ahead = "no rival" if not np.isfinite(answer.lead) else f"{answer.lead:.0f} nats ahead of the next form"
        return "fits", f"explains the rows {what}; {ahead}; a table alone cannot show that it is the law"
    return "fits", f"explains the rows {what}; other forms do nearly as well ({answer.lead:.1f} nats): measure more"
