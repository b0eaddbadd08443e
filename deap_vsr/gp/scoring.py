"""How a script scores individuals: its loss, its `evaluate` with each trial's points, or the error of the fit."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from deap import base, gp

from deap_vsr.engine.fitting import Dataset, Fit, Points, fit
from deap_vsr.engine.program import evaluate
from deap_vsr.engine.robust import KINDS, fit_by
from deap_vsr.errors import VsrError
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import literals

#: What a value that is not finite counts as, away from what is wanted: DEAP ranks NaN above everything.
WORST = 1e300

RECIPE = (
    'register a loss, toolbox.register("loss", f) with f(y, prediction, individual) -> values, '
    "or an evaluate(individual, X, y) that takes its points"
)


@dataclass(frozen=True, eq=False)
class Scored(Fit):
    """A fit, and what a script's own loss says of it: one value for each weight of the fitness."""

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, outcome: Fit, values: Sequence[float]) -> Scored:
        """Add values to a fit."""
        known = {item.name: getattr(outcome, item.name) for item in fields(Fit)}
        return cls(**known, values=tuple(map(float, values)))


def evaluateFit(
    individual: Any,
    trials: Sequence[Points] | Dataset,
    pset: Any = None,
    fit_constants: bool | str = True,
    loss: Callable[[Any, Any, Any], Any] | None = None,
    score: Callable[[Any, Any, Any], Any] | None = None,
    **options: Any,
) -> Fit:
    """Fit the individual's constants in each trial: the `evaluate` of a toolbox.

    Parameters
    ----------
    fit_constants : by least squares (True), by "absolute" or "robust" errors, or not at all (False)
    loss : ``loss(y, prediction, individual) -> values``, called on every trial once constants are fitted; default: none
        The fitness is the mean over the trials.
    score : the same as ``score(individual, X, y) -> values``
    options : of :func:`deap_vsr.fit`
    """
    data = Dataset.of(trials)
    if fit_constants is False:
        outcome = _as_it_is(individual, data, pset)
    else:
        outcome = fit_by("squares" if fit_constants is True else fit_constants, individual, data, pset=pset, **options)
    if loss is None and score is None:
        return outcome
    rows = []
    for k, tree in enumerate(outcome.trees):
        part, fitted = data.trial(k), type(individual)(tree)
        X = np.ascontiguousarray(part.columns.T)
        with np.errstate(all="ignore"):
            if loss is not None:
                values = loss(part.y, evaluate([tree], X, pset)[0], fitted)
            else:
                assert score is not None
                values = score(fitted, X, part.y)
        rows.append(np.atleast_1d(np.asarray(values, dtype=float)))
    return Scored.of(outcome, np.mean(rows, axis=0).tolist())


def _as_it_is(individual: Any, data: Dataset, pset: Any) -> Fit:
    """Return the outcome of an individual whose constants are left as they are."""
    tree = MaskedTree(individual)
    plain = fit(literals(tree), data, pset=pset)
    shape = (data.n_trials, tree.n_constants)
    constants = np.tile(np.array(tree.constants, dtype=float), (data.n_trials, 1)).reshape(shape)
    unknown = np.zeros(shape, dtype=bool)
    return replace(plain, tree=tree, constants=constants, standard_errors=np.full(shape, np.inf), determined=unknown)


def values_of(outcome: Fit, weights: Sequence[float]) -> tuple[float, ...]:
    """Return the fitness values of an outcome.

    Without a loss of a script's own: the error where it is to be minimised, 1/(1 + error) where it is to be maximised.
    What is not finite is the worst.
    """
    if isinstance(outcome, Scored):
        if len(outcome.values) != len(weights):
            raise VsrError(f"the loss returns {len(outcome.values)} value(s), the fitness has {len(weights)} weight(s)")
        pairs = zip(outcome.values, weights, strict=True)
        return tuple(value if math.isfinite(value) else math.copysign(WORST, -weight) for value, weight in pairs)
    if len(weights) > 1:
        raise VsrError(f"the fitness has {len(weights)} weights, evaluate returns one error; {RECIPE}")
    error = outcome.error if math.isfinite(outcome.error) else WORST
    return (1.0 / (1.0 + error) if weights[0] > 0 else error,)


def scored(
    toolbox: base.Toolbox,
    pset: gp.PrimitiveSetTyped,
    weights: Sequence[float],
    fit_constants: bool | str,
    level: int = 5,
    **options: Any,
) -> Callable[..., Any]:
    """Return what evaluates individuals on a round's trials, made of what a script has registered.

    An `evaluate` that takes `trials` is used as it is. A `loss`, or an ``evaluate(individual, X, y)``, is called on
    every trial. One that has points of its own cannot score a reduced form, and is named in a warning, in the line of
    the caller at `level`.
    """
    if fit_constants not in (True, False, *KINDS):
        raise VsrError(f"fit_constants is {fit_constants!r}, expected True, False, {', '.join(KINDS)}")
    own, loss = getattr(toolbox, "evaluate", None), getattr(toolbox, "loss", None)
    fitted = functools.partial(evaluateFit, pset=pset, fit_constants=fit_constants, **options)
    if loss is not None:
        return functools.partial(fitted, loss=loss)
    if own is not None and takes_trials(own):
        return own  # type: ignore[no-any-return]
    score = None if own is None else _with_points(own)
    if score is not None:
        return functools.partial(fitted, score=score)
    if len(weights) > 1:
        raise VsrError(
            f"the fitness has {len(weights)} weights, and nothing returns as many values on new data; {RECIPE}"
        )
    if own is not None:
        warnings.warn(
            f"toolbox.evaluate ({_name(own)}) has points of its own, and cannot score a round's trials; the normalised "
            f"mean squared error is the fitness instead. To have your own, {RECIPE}",
            stacklevel=level,
        )
    return fitted


def takes_trials(function: Callable[..., Any]) -> bool:
    """Whether an `evaluate` is one of ours: it takes a round's trials, and returns an outcome."""
    return "trials" in _parameters(function)


@dataclass(frozen=True)
class _Score:
    """A script's ``evaluate(individual, X, y)``, whatever it calls its points."""

    function: Callable[..., Any]
    names: tuple[str, str] | None

    def __call__(self, individual: Any, X: Any, y: Any) -> Any:
        if self.names is None:
            return self.function(individual, X, y)
        return self.function(individual, **dict(zip(self.names, (X, y), strict=True)))


def _with_points(own: Callable[..., Any]) -> _Score | None:
    """Return an `evaluate` that takes X and y, by these names or as what is missing; None if it has its points."""
    parameters = _parameters(own)
    by_name = {name.lower(): name for name in parameters}
    if {"x", "y"} <= by_name.keys():
        names = by_name["x"], by_name["y"]
        return _Score(_without(own, names), names)
    needed = [
        p
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return _Score(own, None) if len(needed) == 3 else None


def _without(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return a registered function without the points that it was registered with: they need not be shipped."""
    if not isinstance(function, functools.partial):
        return function
    keywords = {name: value for name, value in function.keywords.items() if name not in names}
    return functools.partial(function.func, *function.args, **keywords)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
