"""Constant fitting: the open constants of a tree, anew in each trial.

``fit`` is the one call for every optimiser: our compiled Levenberg-Marquardt (the default), and
scipy's by the names the paper uses (:mod:`deap_vsr.engine.optimizers`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from deap import gp

from deap_vsr.engine import levenberg
from deap_vsr.engine.program import Batch, Model, as_columns, columns_used, encoder, numpy_model
from deap_vsr.engine.trials import fit_trials
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree, Node
from deap_vsr.tree.operators import CATALOGUE, Array, Flags, Indices

_REASONS = {
    levenberg.EXACT: "exact",
    levenberg.CONVERGED: "converged",
    levenberg.ITERATIONS: "iterations",
    levenberg.STUCK: "stuck",
    levenberg.NOT_FINITE: "not finite",
}
_NAMES = {operator.opcode: name for name, operator in CATALOGUE.items()}
#: Iterations between two looks at the clock.
_CHUNK = 4


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

    @classmethod
    def of(cls, trials: Sequence[Points] | Dataset) -> Dataset:
        """Pack trials; a Dataset is returned as it is."""
        if isinstance(trials, Dataset):
            return trials
        if not len(trials):
            raise ExpressionError("no trials to fit")
        parts = [_points(trial, k) for k, trial in enumerate(trials)]
        widths = {X.shape[1] for X, _, _ in parts}
        if len(widths) > 1:
            raise ExpressionError(f"the X of the trials have different numbers of columns: {sorted(widths)}")
        X, y, weight = (np.concatenate([part[i] for part in parts]) for i in range(3))
        offsets = np.cumsum([0, *(len(part[1]) for part in parts)]).astype(np.int64)
        return cls(as_columns(X, 0), y, weight, offsets)

    @property
    def n_trials(self) -> int:
        """Number of trials."""
        return len(self.offsets) - 1

    def trial(self, k: int) -> Dataset:
        """Return trial k alone."""
        part = slice(self.offsets[k], self.offsets[k + 1])
        columns = np.ascontiguousarray(self.columns[:, part])
        return Dataset(columns, self.y[part], self.weight[part], np.array([0, columns.shape[1]]))


def _points(trial: Points, k: int) -> tuple[Array, Array, Array]:
    """Return X, y and roots of the weights of trial k; points of weight 0 are left out."""
    try:
        X, y = np.asarray(trial.X), np.asarray(trial.y)
        weights = np.ones(len(y)) if trial.weights is None else np.asarray(trial.weights)
    except (TypeError, ValueError):
        raise ExpressionError(f"trial {k}: X, y and weights are not arrays of numbers") from None
    if X.ndim != 2:
        raise ExpressionError(f"trial {k}: X has shape {X.shape}, expected (n_points, n_vars)")
    if not len(X) == len(y) == len(weights) or y.ndim != 1 or weights.ndim != 1:
        raise ExpressionError(f"trial {k}: X has {len(X)} points, y has shape {y.shape}, weights {weights.shape}")
    if any(array.dtype.kind not in "biuf" for array in (X, y, weights)):
        raise ExpressionError(f"trial {k}: X, y and weights are not all real numbers")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ExpressionError(f"trial {k}: weights are not all finite numbers >= 0")
    counted = weights > 0
    return X[counted].astype(float), y[counted].astype(float), np.sqrt(weights[counted].astype(float))


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
    determined: Flags
    ranks: Indices
    evaluations: int
    stopped: tuple[str, ...]

    @cached_property
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
    """
    data = Dataset.of(trials)
    tree = tree if isinstance(tree, MaskedTree) else MaskedTree(tree)
    if time_limit is not None:
        from deap_vsr.engine.warm import compile_kernels

        compile_kernels()  # not on the clock of whoever is first
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    batch = encoder(pset).encode([tree])
    if columns_used(batch) > len(data.columns):
        raise ExpressionError(f"the tree uses variable {columns_used(batch)}, X has only {len(data.columns)} columns")
    first = _starts(tree, starts)
    if optimizer == "lm" and batch.foreign:
        from deap_vsr.engine.foreign import fit_foreign

        return fit_foreign(tree, batch, data, pset, first, n_starts, max_iterations, deadline, enough)
    if optimizer != "lm":
        from deap_vsr.engine.optimizers import fit_with_scipy

        return fit_with_scipy(
            tree, batch, data, pset, optimizer, gradient, first, n_starts, max_iterations, deadline, enough
        )
    if deadline is None:
        found = _fit_compiled(tree, batch, data, first, n_starts, max_iterations, enough)
        return _fit_peeled(found, batch, data, n_starts, max_iterations, enough) if n_starts else found
    parts: list[Fit] = []
    for k in range(data.n_trials):
        # As in the compiled loop, the constants of the trial before come first: one branch is followed.
        warm = [parts[-1].constants] if parts and np.isfinite(parts[-1].errors[0]) else []
        begin = np.concatenate([*warm, first])
        parts.append(_fit_before(deadline, tree, batch, data.trial(k), begin, n_starts, max_iterations, enough))
    return joined(parts)


#: Operators that are undone for a start, by name.
_UNDONE: dict[str, Callable[[Array], Array] | None] = {
    **{name: CATALOGUE[name].inverse for name in ("exp", "log", "inv", "neg", "n2")},
    "sqrt": np.square,  # of negative y as well, as only a start is wanted
    "n3": np.cbrt,  # to the last digit, which the catalogue's is not
}


def _fit_peeled(found: Fit, batch: Batch, data: Dataset, n_starts: int, max_iterations: int, enough: float) -> Fit:
    """Try again, where a fit has failed, from the constants that fit y with the outermost operator undone.

    exp(C*x + C) with y near 1e30 is hopeless from any guess, and log y = C*x + C is linear.
    """
    tree = found.tree
    if not len(tree) > 1 or tree[0].arity != 1 or (found.errors <= enough).all():
        return found
    operator = _NAMES.get(int(batch.codes[0]), "")
    inverse = _UNDONE.get(operator)
    if inverse is None:
        return found
    with np.errstate(all="ignore"):
        y = inverse(data.y)
    if not np.isfinite(y).all():
        return found
    inner = replace(batch, codes=np.ascontiguousarray(batch.codes[1:]))
    starts = _fit_compiled(tree, inner, replace(data, y=y), found.constants, n_starts, max_iterations, enough)
    again = _fit_compiled(tree, batch, data, starts.constants, 0, max_iterations, enough)
    return _better(found, again, starts.evaluations)


def _better(a: Fit, b: Fit, spent: int) -> Fit:
    """Return the better of two fits of one tree, trial by trial."""
    use_b = b.errors < a.errors
    return Fit(
        a.tree,
        np.where(use_b, b.errors, a.errors),
        np.where(use_b[:, None], b.constants, a.constants),
        np.where(use_b[:, None], b.standard_errors, a.standard_errors),
        np.where(use_b[:, None], b.determined, a.determined),
        np.where(use_b, b.ranks, a.ranks),
        a.evaluations + b.evaluations + spent,
        tuple(y if better else x for x, y, better in zip(a.stopped, b.stopped, use_b, strict=True)),
    )


def _starts(tree: MaskedTree, starts: Array | None) -> Array:
    n_constants = tree.n_constants
    if starts is None:
        return np.array([tree.constants], dtype=float).reshape(1, n_constants)
    starts = np.array(starts, dtype=float, ndmin=2, order="C")  # in another order the kernel would be compiled anew
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
        max_iterations, float(enough), constants, errors, standard_errors, determined, ranks, evaluations, reasons,
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
