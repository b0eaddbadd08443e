"""A table as an oracle: it answers at its rows and nowhere else, and hands out the control that they already hold.

Grids, sweeps and repeated settings are groups of rows in which all but some columns are constant: trials that somebody
has already made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deap_vsr.errors import NoControlError, OracleError
from deap_vsr.lab.oracle import DEFAULT_FUNCTION_SET, real_numbers
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.tree import operators
from deap_vsr.tree.operators import Array, Flags, Indices

#: Values of a column that are nearer, relative to its range, are the same setting: rounding of text and of sums.
SAME_SETTING = 1e-9
#: A group of fewer rows is no trial: a form of two constants, and something left to refute it.
MIN_POINTS = 4
#: Free columns that are looked through together for a schedule, at the most; more are freed all at once.
MAX_TOGETHER = 3


@dataclass(frozen=True)
class Control:
    """What rows hold for a set of free columns: groups of rows that are trials.

    ``groups`` has the row numbers of each, the largest first; ``values`` the least number of values that a free column
    takes in each group.
    """

    free: tuple[int, ...]
    groups: tuple[Indices, ...]
    values: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def n_rows(self) -> int:
        """How many rows are in a trial."""
        return sum(map(len, self.groups))


class TableOracle:
    """Rows of a table in the place of an oracle.

    Asked at a point of the table it answers with the mean of the rows there; elsewhere it has no answer, and
    :meth:`reachable` says so. A laboratory takes its trials from :meth:`trials`, and knows all rows from the start.

    Parameters
    ----------
    X : array of shape (n_rows, n_vars), finite
    y : array of shape (n_rows,), finite
    names : of the columns; default: x1, x2, ...
    function_set : names of the operators that an answer may use
    weights : array of shape (n_rows,), optional
        Inverse variances of the rows, up to a factor.
    tolerance : float, optional
        Standard deviation of the noise of y; default: what rows of the same setting show, or else nothing is said.
    same : float
        How far values of a column may be apart, relative to its range, to be one setting.
    min_points : int
        The fewest rows of a trial.
    """

    repeatable = False
    vectorized = True

    def __init__(
        self,
        X: Any,
        y: Any,
        names: Sequence[str] | None = None,
        function_set: Sequence[str] = DEFAULT_FUNCTION_SET,
        *,
        weights: Any = None,
        tolerance: float | None = None,
        same: float = SAME_SETTING,
        min_points: int = MIN_POINTS,
    ) -> None:
        self.X, self.y, self.weights = _checked(X, y, weights)
        self.names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(self.X.shape[1]))
        if len(self.names) != self.X.shape[1]:
            raise OracleError(f"{len(self.names)} names for {self.X.shape[1]} columns")
        self.function_set = operators.normalise_function_set(function_set)
        self.variables = tuple(_variable(name, column) for name, column in zip(self.names, self.X.T, strict=True))
        self.limits = tuple((float(column.min()), float(column.max())) for column in self.X.T)
        self.same, self.min_points = same, min_points
        self.codes = np.column_stack([settings_of(column, same) for column in self.X.T])
        """Which setting each value is, (n_rows, n_vars), from 0."""
        self.tolerance = self._noise_of_repeats() if tolerance is None else tolerance
        self._found: dict[tuple[int, ...], Control] = {}
        self._at: dict[bytes, list[int]] | None = None

    @property
    def n_vars(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def varying(self) -> tuple[int, ...]:
        """Columns that take more than one value."""
        return tuple(int(column) for column in np.flatnonzero(self.codes.max(axis=0) > 0))

    # --- as an oracle ---

    def evaluate(self, X: Array) -> Array:
        """Return y, (n_points,), the mean of the rows at each point; NaN where the table has none."""
        rows = self._rows_at(X)
        return np.array([np.average(self.y[at], weights=self._weight(at)) if at else np.nan for at in rows])

    def reachable(self, X: Array) -> Flags:
        """Return which points are in the table, (n_points,)."""
        return np.array([bool(at) for at in self._rows_at(X)], dtype=bool)

    def draw(self, n_points: int, rng: np.random.Generator) -> Array:
        """Return points of the table, (n_points, n_vars), drawn without return as long as there are any."""
        return np.asarray(self.X[_drawn(len(self.y), n_points, rng)])

    def rows(self) -> Trial:
        """Return all rows as one trial."""
        return self._trial(np.arange(len(self.y)), tuple(range(self.n_vars)))

    # --- control ---

    def control(self, free: Iterable[int]) -> Control:
        """Return the groups of rows that are trials with these columns free: all others are constant in each.

        Every free column that varies in the table takes more than one value in a group.
        """
        columns = tuple(sorted(set(free)))
        if any(not 0 <= column < self.n_vars for column in columns):
            raise OracleError(f"free columns {columns} are not all within 0..{self.n_vars - 1}")
        if columns not in self._found:
            self._found[columns] = self._control(columns)
        return self._found[columns]

    def trials(
        self,
        free: Iterable[int],
        n_trials: int | None = None,
        n_points: int | None = None,
        rng: np.random.Generator | None = None,
        at: Array | None = None,
    ) -> list[Trial]:
        """Return trials with these columns free, as many as the rows hold, at most `n_trials` of at most `n_points`.

        The groups of most rows, or, with `rng`, any. Where all columns are free the rows are dealt out.

        Raises
        ------
        NoControlError
            Where the rows hold no trial; it says which columns were never held.
        """
        control = self.control(free)
        if not control.groups:
            raise NoControlError(self.what_is_missing(control.free))
        groups = list(control.groups)
        if at is not None:
            groups = [group for setting in at for group in self._held_at(control, setting)]
            if not groups:
                raise NoControlError(f"the rows hold no trial of {self._named(control.free)} at the settings wanted")
        if len(control.free) == self.n_vars and n_trials is not None:
            order = np.arange(len(self.y)) if rng is None else rng.permutation(len(self.y))
            n_parts = max(min(n_trials, len(order) // self.min_points), 1)
            groups = [np.sort(part) for part in np.array_split(order, n_parts)]
        elif rng is not None and at is None:
            groups = [groups[i] for i in rng.permutation(len(groups))]
        if at is None:
            groups = groups[:n_trials]
        return [self._trial(self._some(group, n_points, rng), control.free) for group in groups]

    def schedule(self) -> tuple[tuple[int, ...], ...]:
        """Return groups of columns in an order in which, as far as there is one, each round has two trials or more.

        The columns with most rows in trials first; what cannot be freed under control comes last, all at once.
        """
        freed: tuple[int, ...] = ()
        rounds: list[tuple[int, ...]] = []
        while True:
            waiting = [column for column in self.varying if column not in freed]
            new = self._next(freed, waiting)
            if not new:
                break
            rounds.append(new)
            freed += new
        rest = tuple(column for column in range(self.n_vars) if column not in freed)
        return tuple([*rounds, rest] if rest else rounds)

    @property
    def has_control(self) -> bool:
        """Whether some columns, but not all that vary, can be freed under control."""
        return bool(self._next((), list(self.varying)))

    def report(self) -> str:
        """Return in words what control the rows hold."""
        lines = [f"{len(self.y)} rows, {self.n_vars} columns"]
        constant = [self.names[column] for column in range(self.n_vars) if column not in self.varying]
        if constant:
            lines.append(f"never varied: {', '.join(constant)}")
        n_settings = len(np.unique(self.codes, axis=0))
        if n_settings < len(self.y):
            lines.append(f"{n_settings} settings: {len(self.y) - n_settings} rows repeat one")
        if not self.has_control:
            lines.append("nothing is held constant while something else varies: the rows hold no trials")
            return "\n".join(lines)
        freed: tuple[int, ...] = ()
        for new in self.schedule():
            freed += new
            control = self.control(freed)
            held = [self.names[column] for column in self.varying if column not in freed]
            if held:
                lines.append(
                    f"free {self._named(freed)}, {', '.join(held)} held: {len(control)} trials of "
                    f"{len(control.groups[-1])} to {len(control.groups[0])} rows"
                )
            else:
                lines.append(f"free {self._named(freed)}: all rows")
        return "\n".join(lines)

    def what_is_missing(self, free: Sequence[int]) -> str:
        """Return in words why the rows hold no trial with these columns free."""
        held = [column for column in self.varying if column not in free]
        counts = ", ".join(f"{self.names[c]} ({self.codes[:, c].max() + 1} values)" for c in held[:5])
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        return (
            f"the {len(self.y)} rows hold nothing constant while {self._named(free)} varies: no {self.min_points} of "
            f"them agree in {counts}{more}; free these together with it, or measure a sweep of {self._named(free)}"
        )

    # --- inside ---

    def _control(self, free: tuple[int, ...]) -> Control:
        held = [column for column in self.varying if column not in free]
        moving = [column for column in free if column in self.varying]
        if not moving:
            return Control(free, (), ())
        if not held:
            groups = [np.arange(len(self.y))]
        else:
            _, which = np.unique(self.codes[:, held], axis=0, return_inverse=True)
            order = np.argsort(which.ravel(), kind="stable")
            groups = np.split(order, np.flatnonzero(np.diff(which.ravel()[order])) + 1)
        kept = []
        for group in groups:
            if len(group) >= self.min_points:
                values = min(len(np.unique(self.codes[group, column])) for column in moving)
                if values > 1:
                    kept.append((group, values))
        kept.sort(key=lambda item: -len(item[0]))  # stable: the order of the settings beside
        return Control(free, tuple(group for group, _ in kept), tuple(values for _, values in kept))

    def _next(self, freed: tuple[int, ...], waiting: Sequence[int]) -> tuple[int, ...]:
        """Return the columns to free next, as few as can be; none where no choice but all leaves two trials."""
        for size in range(1, min(MAX_TOGETHER, len(waiting) - 1) + 1):
            choices = [
                (control.n_rows, new)
                for new in itertools.combinations(waiting, size)
                if len(control := self.control((*freed, *new))) > 1
            ]
            if choices:
                most = max(n_rows for n_rows, _ in choices)
                return next(new for n_rows, new in choices if n_rows == most)
        return ()

    def _held_at(self, control: Control, setting: Array) -> list[Indices]:
        """Return the group, if there is one, whose held columns have the values of a setting (n_vars,)."""
        held = [column for column in self.varying if column not in control.free]
        width = self.same * np.ptp(self.X[:, held], axis=0)
        for group in control.groups:
            if (np.abs(self.X[group[0], held] - np.asarray(setting)[held]) <= width).all():
                return [group]
        return []

    def _some(self, group: Indices, n_points: int | None, rng: np.random.Generator | None) -> Indices:
        """Return the rows of a group, or some of them: spread over it, or drawn."""
        if n_points is None or len(group) <= n_points:
            return group
        if rng is None:
            return np.asarray(group[np.linspace(0, len(group) - 1, n_points).astype(int)])
        return np.sort(rng.choice(group, n_points, replace=False))

    def _trial(self, rows: Indices, free: tuple[int, ...]) -> Trial:
        return Trial(self.X[rows], self.y[rows], free, self._weight(rows))

    def _weight(self, rows: Sequence[int] | Indices) -> Array | None:
        return None if self.weights is None else np.asarray(self.weights[rows])

    def _rows_at(self, X: Array) -> list[list[int]]:
        """Return for each point the rows that are there, to the last digit."""
        if self._at is None:
            self._at = {}
            for i, point in enumerate(np.ascontiguousarray(self.X)):
                self._at.setdefault(point.tobytes(), []).append(i)
        points = np.ascontiguousarray(X, dtype=float)
        if points.ndim != 2 or points.shape[1] != self.n_vars:
            raise OracleError(f"X has shape {points.shape}, expected (n_points, {self.n_vars})")
        return [self._at.get(point.tobytes(), []) for point in points]

    def _noise_of_repeats(self) -> float | None:
        """Return the standard deviation of y among rows of the same setting; None where fewer than two repeat one."""
        _, which = np.unique(self.codes, axis=0, return_inverse=True)
        count = np.bincount(which.ravel())
        freedom = len(self.y) - len(count)
        if freedom < 2:
            return None
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        mean = np.bincount(which.ravel(), weights * self.y) / np.bincount(which.ravel(), weights)
        left = self.y - mean[which.ravel()]
        noise = float(np.sqrt(np.sum(weights * left**2) / freedom))
        return 0.0 if noise <= 1e-12 * float(np.max(np.abs(self.y))) else noise  # means of equal numbers may be off

    def _named(self, columns: Sequence[int]) -> str:
        return ", ".join(self.names[column] for column in columns) or "nothing"


def settings_of(values: Array, same: float = SAME_SETTING) -> Indices:
    """Return which setting each value of a column is, (n,), from 0: those within `same` of its range are one."""
    distinct, which = np.unique(values, return_inverse=True)
    width = same * float(distinct[-1] - distinct[0])
    codes = np.zeros(len(distinct), dtype=np.int64)
    begun = distinct[0]
    for i, value in enumerate(distinct[1:].tolist(), 1):
        new = value - begun > width
        codes[i] = codes[i - 1] + new
        begun = value if new else begun
    return np.asarray(codes[which.ravel()])


def _drawn(n_rows: int, n_points: int, rng: np.random.Generator) -> Indices:
    whole, rest = divmod(n_points, n_rows)
    return np.concatenate([rng.permutation(n_rows) for _ in range(whole)] + [rng.permutation(n_rows)[:rest]])


def _checked(X: Any, y: Any, weights: Any) -> tuple[Array, Array, Array | None]:
    """Return rows as arrays of finite numbers, or say what is wrong with them."""
    try:
        points, values = real_numbers(X), real_numbers(y)
        known = None if weights is None else real_numbers(weights)
    except (TypeError, ValueError, OverflowError):
        raise OracleError("a table needs numbers in X, y and weights; text and dates are none") from None
    if points.ndim != 2 or not points.size:
        raise OracleError(f"X has shape {points.shape}, expected (n_rows, n_vars) with a row and a column at least")
    for name, part in (("y", values), ("weights", known)):
        if part is not None and part.shape != (len(points),):
            raise OracleError(f"{name} has shape {part.shape}, expected ({len(points)},), one for each row of X")
    for name, part in (("X", points), ("y", values), ("weights", known)):
        if part is not None and not np.isfinite(part).all():
            row = int(np.argwhere(~np.isfinite(part))[0][0])
            raise OracleError(f"{name} is not finite in row {row}: leave such rows out")
    if known is not None and not (known > 0).all():
        raise OracleError(f"weights must be above 0, row {int(np.argmin(known))} has {known.min():g}")
    return points, values, None if known is None else known / known.mean()


def _variable(name: str, column: Array) -> Variable:
    """Return a column as a variable; one that is constant is given some room, as a domain needs."""
    low, high = float(column.min()), float(column.max())
    if low == high:
        high = low + max(abs(low), 1.0)
    return Variable(name, low, high, "uniform", "as_range" if low < 0 else "positive", name)
