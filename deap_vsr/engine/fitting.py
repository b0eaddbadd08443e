"""Constant fitting: the open constants of a tree, anew in each trial.

``fit`` is the one call for every optimiser: our compiled Levenberg-Marquardt (the default), and
scipy's by the names the paper uses (:mod:`deap_vsr.engine.optimizers`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from deap import gp

from deap_vsr.engine import levenberg
from deap_vsr.engine.program import Batch, Model, as_columns, columns_used, encoder, numpy_model
from deap_vsr.engine.trials import fit_trials
from deap_vsr.errors import ExpressionError
from deap_vsr.operators import Array, Indices
from deap_vsr.tree import MaskedTree, Node

if TYPE_CHECKING:
    from deap_vsr.engine.cache import FitCache

_REASONS = {
    levenberg.EXACT: "exact",
    levenberg.CONVERGED: "converged",
    levenberg.ITERATIONS: "iterations",
    levenberg.STUCK: "stuck",
    levenberg.NOT_FINITE: "not finite",
}
#: Iterations between two looks at the clock.
_CHUNK = 4
_tokens = itertools.count()


class Points(Protocol):
    """What fitting needs of a trial."""

    @property
    def X(self) -> Array:
        """(n_points, n_vars)."""

    @property
    def y(self) -> Array:
        """(n_points,)."""

    @property
    def weights(self) -> Array | None:
        """(n_points,), or None for equal weights."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Trials packed for the kernel; make one with :meth:`of` to fit many trees on the same data.

    Trial k holds the points offsets[k] .. offsets[k + 1]. ``columns``: (n_vars, n_points);
    ``weight``: roots of the weights.
    """

    columns: Array
    y: Array
    weight: Array
    offsets: Indices
    token: int

    @classmethod
    def of(cls, trials: Sequence[Points] | Dataset) -> Dataset:
        """Pack trials; a Dataset is returned as it is."""
        if isinstance(trials, Dataset):
            return trials
        if not len(trials):
            raise ExpressionError("no trials to fit")
        X = np.concatenate([_matrix(trial.X) for trial in trials])
        y = np.concatenate([np.asarray(trial.y, dtype=float).ravel() for trial in trials])
        weight = np.concatenate([_root_weights(trial) for trial in trials])
        if not len(X) == len(y) == len(weight):
            raise ExpressionError(f"X has {len(X)} points, y {len(y)} and weights {len(weight)}")
        offsets = np.cumsum([0, *(len(trial.y) for trial in trials)]).astype(np.int64)
        return cls(as_columns(X, 0), y, weight, offsets, next(_tokens))

    @property
    def n_trials(self) -> int:
        """Number of trials."""
        return len(self.offsets) - 1

    def trial(self, k: int) -> Dataset:
        """Return trial k alone."""
        part = slice(self.offsets[k], self.offsets[k + 1])
        columns = np.ascontiguousarray(self.columns[:, part])
        return Dataset(columns, self.y[part], self.weight[part], np.array([0, columns.shape[1]]), next(_tokens))


def _matrix(X: Array) -> Array:
    matrix: Array = np.asarray(X, dtype=float)
    if matrix.ndim != 2:
        raise ExpressionError(f"X has shape {matrix.shape}, expected (n_points, n_vars)")
    return matrix


def _root_weights(trial: Points) -> Array:
    if trial.weights is None:
        return np.ones(len(trial.y))
    weights: Array = np.asarray(trial.weights, dtype=float)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ExpressionError("weights are not all finite numbers >= 0")
    roots: Array = np.sqrt(weights)
    return roots


@dataclass(frozen=True, eq=False)
class Fit:
    """The outcome of fitting a tree's L open constants in K trials.

    Attributes
    ----------
    errors : (K,) array
        Weighted NMSE of each trial: squared residuals over those of y about its mean (for constant
        y over those of y itself); inf where no finite fit was found.
    constants : (K, L) array
        Fitted values, a row for each trial.
    standard_errors : (K, L) array
        From the Jacobian; inf for constants that the data do not determine.
    determined : (K, L) array of bool
        False where some direction that leaves the fit unchanged moves the constant.
    ranks : (K,) array
        Rank of the Jacobian; less than L if the data cannot determine all constants.
    evaluations : int
        Expressions evaluated over one trial's points.
    stopped : tuple of str
        For each trial: exact, converged, iterations, stuck, not finite, seconds or no points.
    """

    tree: MaskedTree
    errors: Array
    constants: Array
    standard_errors: Array
    determined: np.ndarray[Any, np.dtype[np.bool_]]
    ranks: Indices
    evaluations: int
    stopped: tuple[str, ...]

    @property
    def error(self) -> float:
        """The mean error over the trials; inf if one of them has no finite fit."""
        return float(np.mean(self.errors))

    @property
    def trees(self) -> list[MaskedTree]:
        """The fitted expression of each trial."""
        return [self.tree.with_constants(row) for row in self.constants]


def fit(
    tree: Sequence[Node],
    trials: Sequence[Points] | Dataset,
    *,
    pset: gp.PrimitiveSetTyped | None = None,
    optimizer: str = "lm",
    gradient: str = "exact",
    starts: Array | None = None,
    n_starts: int = 4,
    max_iterations: int = 60,
    time_limit: float | None = None,
    enough: float = 1e-18,
    cache: FitCache | None = None,
) -> Fit:
    """Fit the open constants of `tree` anew in each trial.

    Parameters
    ----------
    tree : masked or plain DEAP tree
        Its ephemeral and its open constants are fitted.
    trials : sequence of trials (with X, y, weights) or Dataset
    pset : the tree's primitive set; by default the catalogue and x1, x2, ...
    optimizer : str
        ``lm``, or one of :data:`deap_vsr.engine.optimizers.NAMES` (BFGS, Nelder-Mead, ...).
    gradient : "exact" or "finite"
        For scipy's optimisers: our derivatives, or finite differences as in the paper.
    starts : array of shape (n, L), optional
        Warm starts, tried first; by default the constants that the tree holds.
    n_starts : int
        How many more to try, for constants that do not enter linearly: the best of a spread of
        values in their natural units. 0: only `starts`.
    max_iterations : int
        For each start.
    time_limit : float, optional
        Seconds for the whole call; what has been found by then is returned.
    enough : float
        Normalised error at which no further start is tried.
    cache : FitCache, optional
        Looks up a candidate of the same canonical form on the same Dataset.
    """
    data = Dataset.of(trials)
    tree = tree if isinstance(tree, MaskedTree) else MaskedTree(tree)
    if cache is not None:
        settings = (optimizer, gradient, n_starts, max_iterations, enough, time_limit)
        return cache.fit(tree, data, pset, settings, starts, lambda: fit(
            tree, data, pset=pset, optimizer=optimizer, gradient=gradient, starts=starts, n_starts=n_starts,
            max_iterations=max_iterations, time_limit=time_limit, enough=enough,
        ))  # fmt: skip
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    batch = encoder(pset).encode([tree])
    if columns_used(batch) > len(data.columns):
        raise ExpressionError(f"the tree uses variable {columns_used(batch)}, X has only {len(data.columns)} columns")
    first = _starts(tree, starts)
    if optimizer != "lm" or batch.foreign:
        from deap_vsr.engine.optimizers import fit_with_scipy

        return fit_with_scipy(
            tree, batch, data, pset, optimizer, gradient, first, n_starts, max_iterations, deadline, enough
        )
    if deadline is None:
        return _fit_compiled(tree, batch, data, first, n_starts, max_iterations, enough)
    parts = [
        _fit_before(deadline, tree, batch, data.trial(k), first, n_starts, max_iterations, enough)
        for k in range(data.n_trials)
    ]
    return joined(parts)


def fit_many(trees: Sequence[Sequence[Node]], trials: Sequence[Points] | Dataset, **options: Any) -> list[Fit]:
    """Fit every tree of a list on the same trials; options as for :func:`fit`."""
    data = Dataset.of(trials)
    return [fit(tree, data, **options) for tree in trees]


def _starts(tree: MaskedTree, starts: Array | None) -> Array:
    n_constants = tree.n_constants
    if starts is None:
        return np.array([tree.constants], dtype=float).reshape(1, n_constants)
    starts = np.array(starts, dtype=float, ndmin=2)
    if starts.shape[1] != n_constants or not len(starts):
        raise ExpressionError(f"starts have shape {starts.shape}, expected (n, {n_constants})")
    return starts


def _fit_compiled(
    tree: MaskedTree, batch: Batch, data: Dataset, starts: Array, n_starts: int, max_iterations: int, enough: float
) -> Fit:
    n_trials, n_constants = data.n_trials, starts.shape[1]
    constants = np.empty((n_trials, n_constants))
    errors = np.empty(n_trials)
    standard_errors = np.empty((n_trials, n_constants))
    determined = np.empty((n_trials, n_constants), np.bool_)
    ranks, evaluations, reasons = np.empty((3, n_trials), np.int64)
    fit_trials(
        batch.codes, batch.literals, data.columns, data.y, data.weight, data.offsets, starts, 8 * n_starts, n_starts,
        max_iterations, enough, constants, errors, standard_errors, determined, ranks, evaluations, reasons,
    )  # fmt: skip
    stopped = tuple(
        _REASONS[int(reason)] if size else "no points"
        for reason, size in zip(reasons, np.diff(data.offsets), strict=True)
    )
    return Fit(tree, errors, constants, standard_errors, determined, ranks, int(evaluations.sum()), stopped)


def _fit_before(
    deadline: float,
    tree: MaskedTree,
    batch: Batch,
    data: Dataset,
    starts: Array,
    n_starts: int,
    max_iterations: int,
    enough: float,
) -> Fit:
    """Fit one trial a few iterations at a time, looking at the clock in between.

    The first start always gets its first iteration, so that there is an answer.
    """
    begun = time.perf_counter()
    best = _fit_compiled(tree, batch, data, starts[:1], 0, 1, enough)
    spent = best.evaluations
    late = False
    for s in range(len(starts) + 1):
        now, n_spread, remaining = starts[s : s + 1], 0, max_iterations
        if s == len(starts):
            now, n_spread = best.constants, n_starts
        while remaining > 0 and not late:
            each = (time.perf_counter() - begun) / spent
            affordable = int((deadline - time.perf_counter()) / each)  # evaluations
            n_spread = min(n_spread, affordable // 16)  # 8 to look at, some iterations from the best
            steps = max(1, min(_CHUNK, remaining, affordable // 4))
            late = affordable < 3
            if late:
                break
            part = _fit_compiled(tree, batch, data, now, n_spread, steps, enough)
            spent += part.evaluations
            if part.errors[0] < best.errors[0]:
                best = part
            if part.stopped[0] != "iterations":
                break
            now, n_spread, remaining = part.constants, 0, remaining - steps
        if late or best.errors[0] <= enough:
            break
    stopped = ("seconds",) if late and best.stopped[0] == "iterations" else best.stopped
    return replace(best, evaluations=spent, stopped=stopped)


def joined(parts: Sequence[Fit]) -> Fit:
    """Return fits of the same tree, one trial each, as one."""
    return Fit(
        parts[0].tree,
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.constants for part in parts]),
        np.concatenate([part.standard_errors for part in parts]),
        np.concatenate([part.determined for part in parts]),
        np.concatenate([part.ranks for part in parts]),
        sum(part.evaluations for part in parts),
        tuple(reason for part in parts for reason in part.stopped),
    )


def residual_model(tree: MaskedTree, batch: Batch, data: Dataset, pset: gp.PrimitiveSetTyped | None) -> Model:
    """Return c -> (weighted residuals (n_points,), their derivatives (L, n_points)) for one trial.

    In units of the spread of y, so that the sum of squares is the normalised error.
    """
    from deap_vsr.engine.kernels import residuals
    from deap_vsr.engine.trials import spread

    weight = data.weight / spread(data.y, data.weight)
    if batch.foreign:
        model = numpy_model(tree, data.columns.T, encoder(pset).vocabulary)

        def through_numpy(constants: Array) -> tuple[Array, Array]:
            f, J = model(constants)
            with np.errstate(all="ignore"):
                return weight * (f - data.y), weight * J

        return through_numpy

    def compiled(constants: Array) -> tuple[Array, Array]:
        r, J = np.empty(len(data.y)), np.empty((len(constants), len(data.y)))
        residuals(batch.codes, batch.literals, np.asarray(constants, dtype=float), data.columns, data.y, weight, r, J)
        return r, J

    return compiled
