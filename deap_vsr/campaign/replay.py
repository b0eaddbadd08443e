"""Replay: the search runs again over what was measured, until it needs a point that was not.

The oracle here has answers for what is in the tables. The first batch with a point that is not there ends the search,
as a limit on points would: that batch is the next sheet, and what the search returns is how things stand.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deap_vsr.campaign.setup import Setup
from deap_vsr.campaign.sheets import Measured
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.lab.oracle import Size
from deap_vsr.methods import discover
from deap_vsr.result import Result
from deap_vsr.search.records import Progress
from deap_vsr.tree.operators import Array

#: What was set counts as what was asked if it is off by no more than this, relative to its range: rounding of text.
SAME = 1e-9
#: An answer that is moved to the point that was asked is unsure by such a share of how far it is moved: what a smooth
#: model of few points gets wrong of a slope.
UNSURE = 0.3
#: Of the model: how much its coefficients are held down, relative to the points.
RIDGE = 1e-3
#: What answers are off in any case, relative to them, where some were moved: more than rounding, less than any noise.
LEAST_SIGMA = 1e-6


#: The noise of readings, relative to them, where none is stated and knobs are set so badly that repeats do not tell it.
ASSUMED = 0.01


class NeedPoints(OutOfQueriesError):  # noqa: N818 - no error: what a campaign is about
    """A batch has points that were not measured; searches end with what they have."""


@dataclass(frozen=True)
class Answer:
    """What was measured of a row that was asked for, or of one that was not.

    Attributes
    ----------
    id : of the row; empty where it was not asked for
    asked : the point, (n_vars,)
    x : the point as it was really set, (n_vars,)
    y : mean of its measurements; NaN where they failed
    sigma : standard error of that; NaN where it is not known
    batch : the sheet it is of
    """

    id: str
    asked: Array
    x: Array
    y: float
    sigma: float
    batch: int = 0


def answer(name: str, asked: Sequence[float] | None, rows: Sequence[Measured], setup: Setup, batch: int = 0) -> Answer:
    """Return one answer of all measurements of a row: their mean, weighted by how precise they are."""
    good = [row for row in rows if row.valid]
    point = np.array(rows[0].x if asked is None else asked, dtype=float)
    if not good:
        return Answer(name, point, point, np.nan, np.nan, batch)
    told = np.array([row.sigma if np.isfinite(row.sigma) else setup.sigma(row.y) / np.sqrt(row.n) for row in good])
    known = np.isfinite(told).all() and (told > 0).all()
    # In units of the most precise one: a square of a standard error may overflow.
    precise = (told.min() / told) ** 2 if known else np.array([float(row.n) for row in good])
    weights = precise / precise.sum()
    x = (weights[:, None] * np.array([row.x for row in good])).sum(axis=0)
    y = float(weights @ np.array([row.y for row in good]))
    n = sum(row.n for row in good)
    stated = any(np.isfinite(row.sigma) for row in good) or n > 1
    sigma = float(told.min() / np.sqrt(precise.sum())) if known and stated else np.nan
    return Answer(name, point, x, y, sigma, batch)


class Replay:
    """An oracle that answers from tables.

    Parameters
    ----------
    answers : of rows that were asked for, in the order in which they were asked
    before : of rows that were not, or that the search will not ask for: data, not answers
    guess : whether points that are missing get some answer until a sheet is full, to see what is asked next

    Attributes
    ----------
    needed : points that are missing, (n, n_vars)
    used : ids of the rows that were answers
    """

    vectorized = True
    errors = "raise"

    def __init__(
        self, setup: Setup, answers: Sequence[Answer], before: Sequence[Answer] = (), guess: bool = False
    ) -> None:
        self.variables, self.function_set = setup.variables, setup.operators
        self.output, self.unit = setup.output, setup.unit
        self.setup, self.guess = setup, guess
        self.moved = any(_is_moved(one, setup) for one in answers)
        # Where knobs are not where they should be, an exact instrument gives no exact answers.
        self.noise_sd: Size | None = None if self.moved and setup.noise == 0.0 else setup.noise
        # Each sheet by what was known then: answers stay what they were.
        batches = sorted({one.batch for one in answers}) if self.moved else []
        shifts = {batch: _Shift([one for one in answers if one.batch <= batch], setup) for batch in batches}
        self._waiting: dict[bytes, deque[tuple[str, float, float]]] = defaultdict(deque)
        self._set: dict[tuple[bytes, float], tuple[Array, float, float]] = {}
        for one in answers:
            y, sigma = shifts[one.batch].at_asked(one) if self.moved else (one.y, one.sigma)
            self._waiting[one.asked.tobytes()].append((one.id, y, sigma))
            self._set[one.asked.tobytes(), y] = (one.x, one.y, _sigma(one, setup) if self.moved else one.sigma)
        self.before = self._data(before)
        self.needed: list[Array] = []
        self.used: list[str] = []

    def _data(self, before: Sequence[Answer]) -> tuple[Array, Array, Array] | None:
        """Return X, y and standard errors of data that nobody will ask for."""
        good = [one for one in before if np.isfinite(one.y)]
        if not good:
            return None
        sigma = [_sigma(one, self.setup) if self.moved else one.sigma for one in good]
        return np.array([one.x for one in good]), np.array([one.y for one in good]), np.array(sigma)

    def evaluate(self, X: Array) -> tuple[Array, Array]:
        """Return answers, (n,), and their standard errors.

        Raises
        ------
        NeedPoints
            Where one is missing.
        """
        if self.needed and not self.guess:
            raise NeedPoints("points of a sheet are missing")
        told = [self._waiting[point.tobytes()].popleft() if self._waiting[point.tobytes()] else None for point in X]
        self.used += [one[0] for one in told if one is not None]
        missing = [point for point, one in zip(X, told, strict=True) if one is None]
        self.needed += missing
        if missing and (not self.guess or len(self.needed) >= self.setup.sheet):
            raise NeedPoints(f"{len(missing)} points were not measured")
        pairs = [(1.0, np.nan) if one is None else one[1:] for one in told]
        return np.array([y for y, _ in pairs]), np.array([sigma for _, sigma in pairs])

    def everything(self, X: Array, y: Array, sigma: Array) -> tuple[Array, Array, Array]:
        """Return answers as they were measured, where the knobs really were, and behind them data from before."""
        if self.moved:
            rows = [self._set.get((x.tobytes(), float(a)), (x, a, s)) for x, a, s in zip(X, y, sigma, strict=True)]
            X = np.array([row[0] for row in rows]).reshape(X.shape)
            y, sigma = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
        if self.before is None:
            return X, y, sigma
        return np.vstack([X, self.before[0]]), np.append(y, self.before[1]), np.append(sigma, self.before[2])


def _is_moved(one: Answer, setup: Setup) -> bool:
    """Whether a row was set to other values than were asked for."""
    room = np.array([SAME * (v.high - v.low) for v in setup.variables])
    return bool(np.isfinite(one.y) and (np.abs(one.x - one.asked) > room).any())


def places(X: Array, setup: Setup) -> Array:
    """Return where in their domains, from -1 to 1, variables are, (n, n_vars), in decades where they are positive."""
    columns = []
    for i, variable in enumerate(setup.variables):
        x, low, high = X[:, i], variable.low, variable.high
        if low > 0 and (x > 0).all():
            x, low, high = np.log(x), float(np.log(low)), float(np.log(high))
        columns.append(2.0 * (x - low) / (high - low) - 1.0)
    return np.column_stack(columns)


class _Shift:
    """What an answer would have been at the point that was asked, by a smooth model of all that was measured.

    The model is a polynomial of degree 2, of the logarithm of y where all have one sign, in the places of the variables
    in their domains; it is used for differences only.
    """

    def __init__(self, answers: Sequence[Answer], setup: Setup) -> None:
        self.setup = setup
        good = [one for one in answers if np.isfinite(one.y)]
        y = np.array([one.y for one in good])
        self.sign = 1.0 if (y > 0).all() else -1.0 if (y < 0).all() else 0.0
        target = np.log(self.sign * y) if self.sign else y
        basis = self._basis(np.array([one.x for one in good]))
        self.middle = float(target.mean())
        gram = basis.T @ basis + RIDGE * len(y) * np.eye(basis.shape[1])
        self.coefficients = np.linalg.solve(gram, basis.T @ (target - self.middle))

    def _basis(self, X: Array) -> Array:
        at = places(X, self.setup)
        pairs = [at[:, i] * at[:, j] for i in range(at.shape[1]) for j in range(i + 1)]
        return np.column_stack([np.ones(len(X)), at, *pairs])

    def at_asked(self, one: Answer) -> tuple[float, float]:
        """Return the answer at the point that was asked, and its standard error."""
        if not _is_moved(one, self.setup):
            return one.y, _sigma(one, self.setup)
        here, there = self._basis(np.array([one.x, one.asked])) @ self.coefficients
        y = float(one.y * np.exp(np.clip(there - here, -1.0, 1.0))) if self.sign else float(one.y + there - here)
        return y, float(np.hypot(_sigma(one, self.setup), UNSURE * abs(y - one.y)))


def _sigma(one: Answer, setup: Setup) -> float:
    """Return the standard error of an answer where it was set: as told, or as stated; a trifle at least."""
    told = one.sigma if np.isfinite(one.sigma) else setup.sigma(one.y)
    return max(told if np.isfinite(told) else ASSUMED * abs(one.y), LEAST_SIGMA * abs(one.y))


# --- the search -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """How things stand after the search ran over all that was measured.

    Attributes
    ----------
    result : of the search
    needed : points that it needs next, (n, n_vars); none where it has come to its end
    used : ids of the rows that it asked for
    freed : columns that it was freeing when it stopped
    """

    result: Result
    needed: Array
    used: frozenset[str]
    freed: tuple[int, ...] = field(default=())


def look(setup: Setup, answers: Sequence[Answer], before: Sequence[Answer] = (), guess: bool = False) -> Look:
    """Run the search over all that was measured.

    Rows that were asked for, but are not on its way any more, as a setting or the program has changed since, are data
    in the end, like those that nobody asked for: then it runs a second time, with them.
    """
    found = _search(setup, answers, before, guess)
    left = [one for one in answers if one.id not in found.used and np.isfinite(one.y)]
    if len(found.needed) or not left:
        return found
    with_all = _search(setup, answers, [*before, *left], guess)
    return found if len(with_all.needed) else with_all


def _search(setup: Setup, answers: Sequence[Answer], before: Sequence[Answer], guess: bool) -> Look:
    oracle = Replay(setup, answers, before, guess)
    news: list[Progress] = []
    result = discover(
        oracle,
        seed=setup.seed,
        max_queries=setup.points,
        max_evaluations=setup.evaluations,
        batch=setup.sheet,
        progress=news.append,
    )
    needed = np.array(oracle.needed).reshape(-1, len(setup.variables))
    return Look(result, needed, frozenset(oracle.used), news[-1].freed if news else ())
