"""scipy's optimisers by the names the paper uses, through the same call as our own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from deap import gp
from scipy import optimize

from deap_vsr.engine.fitting import Dataset, Fit, joined, residual_model
from deap_vsr.engine.linear import solved
from deap_vsr.engine.program import Batch, Model
from deap_vsr.engine.trials import standard_errors_of
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

#: Names that ``fit(optimizer=...)`` takes besides "lm".
NAMES = ("BFGS", "L-BFGS-B", "CG", "Nelder-Mead", "basinhopping", "shgo", "dual_annealing", "direct", "least_squares")

_LOCAL = ("BFGS", "L-BFGS-B", "CG", "Nelder-Mead")
_TAKES_GRADIENT = ("BFGS", "L-BFGS-B", "CG")
#: Box of the optimisers that need bounds.
_BOX = 10.0


class _EnoughError(Exception):
    """Raised inside an objective to end an optimiser: good enough, or out of time."""


class _Objective:
    """The normalised error of one trial as a function of the constants; counts, remembers the best."""

    def __init__(self, model: Model, start: Array, deadline: float | None, enough: float) -> None:
        self.model = model
        self.deadline = deadline
        self.enough = enough
        self.evaluations = 0
        self.best = np.inf
        self.constants = start
        self.late = False

    def residuals(self, constants: Array) -> tuple[Array, Array]:
        """Evaluate, count, keep the best; end the optimiser when time is up."""
        self.evaluations += 1
        r, J = self.model(constants)
        with np.errstate(all="ignore"):
            error = float(r @ r)
        if error < self.best:
            self.best, self.constants = error, np.array(constants, dtype=float)
        if self.deadline is not None and time.perf_counter() > self.deadline:
            self.late = True
            raise _EnoughError
        return r, J

    def value(self, constants: Array) -> float:
        """The error; a large finite number where it is not finite."""
        r, _ = self.residuals(constants)
        with np.errstate(all="ignore"):
            error = float(r @ r)
        if error <= self.enough:
            raise _EnoughError
        return error if np.isfinite(error) else 1e300

    def value_and_gradient(self, constants: Array) -> tuple[float, Array]:
        """The error and its exact derivatives."""
        r, J = self.residuals(constants)
        with np.errstate(all="ignore"):
            error, slope = float(r @ r), 2.0 * (J @ r)
        if error <= self.enough:
            raise _EnoughError
        if not np.isfinite(error):
            return 1e300, np.zeros(len(constants))
        return error, np.nan_to_num(slope, nan=0.0, posinf=1e300, neginf=-1e300)


def fit_with_scipy(
    tree: MaskedTree,
    batch: Batch,
    data: Dataset,
    pset: gp.PrimitiveSetTyped | None,
    optimizer: str,
    gradient: str,
    starts: Array,
    n_starts: int,
    max_iterations: int,
    deadline: float | None,
    enough: float,
) -> Fit:
    """Fit each trial with the optimiser called `optimizer`; see :func:`deap_vsr.engine.fitting.fit`."""
    if optimizer not in NAMES:
        raise ExpressionError(f"unknown optimizer {optimizer!r}; known are lm, {', '.join(NAMES)}")
    if gradient not in ("exact", "finite"):
        raise ExpressionError(f"gradient is {gradient!r}, expected exact or finite")
    parts = []
    for k in range(data.n_trials):
        trial = data.trial(k)
        model = residual_model(tree, batch, trial, pset)
        objective = _Objective(model, starts[0], deadline, enough)
        reason = _run(optimizer, gradient, objective, spread_starts(starts, n_starts), max_iterations, len(trial.y))
        parts.append(
            finished(tree, model, objective.constants, objective.best, objective.evaluations, reason, len(trial.y))
        )
    return joined(parts)


def spread_starts(starts: Array, n_starts: int) -> Array:
    """Return the given starts and `n_starts` more, spread over signs and sizes."""
    rng = np.random.default_rng(0)
    shape = (n_starts, starts.shape[1])
    more = rng.choice([-1.0, 1.0], shape) * 30.0 ** rng.uniform(-1, 1, shape)
    return np.concatenate([starts, more])


def _run(name: str, gradient: str, objective: _Objective, starts: Array, max_iterations: int, n_points: int) -> str:
    """Run the optimiser from every start until the error is small enough; return why it ended."""
    if not n_points:
        return "no points"
    reason = "converged"
    try:
        if not starts.shape[1]:
            objective.value(starts[0])
        else:
            with np.errstate(all="ignore"):
                for start in starts if name in (*_LOCAL, "least_squares") else starts[:1]:
                    before = objective.best
                    if name in _LOCAL:
                        why = _local(name, gradient, objective, start, max_iterations)
                    elif name == "least_squares":
                        why = _least_squares(gradient, objective, start, max_iterations, n_points)
                    else:
                        why = _global(name, gradient, objective, start, max_iterations)
                    reason = why if objective.best < before else reason
    except _EnoughError:
        return "seconds" if objective.late else "exact"
    return reason if np.isfinite(objective.best) else "not finite"


def _reason(result: Any) -> str:
    """Return what scipy says of its end in our words."""
    return "converged" if result.success else "iterations"


def _local(name: str, gradient: str, objective: _Objective, start: Array, max_iterations: int) -> str:
    exact = gradient == "exact" and name in _TAKES_GRADIENT
    function: Callable[..., Any] = objective.value_and_gradient if exact else objective.value
    jac = True if exact else None
    return _reason(optimize.minimize(function, start, method=name, jac=jac, options={"maxiter": max_iterations}))


def _least_squares(gradient: str, objective: _Objective, start: Array, max_iterations: int, n_points: int) -> str:
    """MINPACK's Levenberg-Marquardt; the trust region method where there are too few points for it."""
    r, J = objective.residuals(start)
    if not np.isfinite(r).all():
        return "not finite"
    begin = start
    if np.isfinite(J).all():
        # A whole Gauss-Newton step first: it solves what is linear, whatever its scale; MINPACK creeps there.
        size = np.max(np.abs(J), axis=1, initial=0.0)
        unit = np.where(size > 0, size, 1.0)
        step = solved((J / unit[:, None]).T, -r, 1e-10) / unit
        ahead, _ = objective.residuals(start + step)
        begin = start + step if float(ahead @ ahead) < float(r @ r) else start
    last: dict[bytes, Array] = {}

    def residuals(constants: Array) -> Array:
        r, J = objective.residuals(constants)
        last.clear()
        last[constants.tobytes()] = J
        return np.clip(np.nan_to_num(r, nan=1e150, posinf=1e150, neginf=-1e150), -1e150, 1e150)

    def jacobian(constants: Array) -> Array:
        J = last.get(constants.tobytes())
        J = objective.residuals(constants)[1] if J is None else J
        return np.nan_to_num(J.T, nan=0.0, posinf=1e150, neginf=-1e150)

    result = optimize.least_squares(
        residuals,
        begin,
        jac=jacobian if gradient == "exact" else "2-point",
        method="lm" if n_points >= len(start) else "trf",
        x_scale="jac",
        ftol=1e-15,
        xtol=1e-15,
        gtol=1e-15,
        max_nfev=max_iterations,
    )
    if objective.best <= objective.enough:
        raise _EnoughError
    return _reason(result)


def _global(name: str, gradient: str, objective: _Objective, start: Array, max_iterations: int) -> str:
    box = [(-_BOX, _BOX)] * len(start)
    if name == "basinhopping":
        exact = gradient == "exact"
        local = {"method": "BFGS", "jac": True if exact else None, "options": {"maxiter": max_iterations}}
        function = objective.value_and_gradient if exact else objective.value
        optimize.basinhopping(function, start, niter=20, minimizer_kwargs=local, rng=np.random.default_rng(0))
        return "iterations"  # it does all its hops, whatever it finds
    if name == "shgo":
        # One round of sampling; left to itself it refines for minutes.
        return _reason(optimize.shgo(objective.value, box, n=50, iters=1))
    if name == "dual_annealing":
        return _reason(
            optimize.dual_annealing(objective.value, box, maxiter=max_iterations, rng=np.random.default_rng(0))
        )
    return _reason(optimize.direct(objective.value, box, maxfun=1000 * len(start), maxiter=max_iterations))


def finished(
    tree: MaskedTree, model: Model, constants: Array, error: float, evaluations: int, reason: str, n_points: int
) -> Fit:
    """Return the fit of one trial, with standard errors and rank from the Jacobian at `constants`."""
    errors = np.full(len(constants), np.inf)
    determined = np.zeros(len(constants), np.bool_)
    rank = 0
    if len(constants) and np.isfinite(error):
        J = model(constants)[1]
        if np.isfinite(J).all():
            rank = standard_errors_of(J, np.ones(n_points), error, errors, determined)
    return Fit(
        tree,
        np.array([error]),
        constants[None, :],
        errors[None, :],
        determined[None, :],
        np.array([rank]),
        evaluations,
        (reason,),
    )
