"""The oracle protocol and its implementations: something that can be asked for y at chosen inputs."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deap_vsr.errors import OracleError, OracleFailure
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import operators
from deap_vsr.tree.operators import Array

#: How each kind of noise is drawn: n values of mean 0 and standard deviation 1.
_DRAW: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n),
    "laplace": lambda rng, n: rng.laplace(0.0, np.sqrt(0.5), n),
    "exponential": lambda rng, n: rng.exponential(1.0, n) - 1.0,
    "logistic": lambda rng, n: rng.logistic(0.0, np.sqrt(3.0) / np.pi, n),
}

#: What noise may be a share of beside the spread of y: its root mean square.
RMS = "rms"

#: A size that may depend on the answer: a number, or a function y (n,) -> (n,).
Size = float | Callable[[Array], Array]

DEFAULT_FUNCTION_SET = operators.named_set("science")


@dataclass(frozen=True)
class Relative:
    """A share of the size of each answer: ``Relative(0.01)`` is 1 % of the reading."""

    share: float

    def __call__(self, y: Array) -> Array:
        """Return it for answers, (n,) -> (n,)."""
        return self.share * np.abs(y)


@dataclass(frozen=True)
class Digits:
    """The step of answers that are rounded to so many significant digits."""

    count: int

    def __call__(self, y: Array) -> Array:
        """Return it for answers, (n,) -> (n,)."""
        with np.errstate(all="ignore"):
            decade = np.floor(np.log10(np.abs(y)))
        return np.where(np.isfinite(decade), 10.0 ** (np.where(np.isfinite(decade), decade, 0.0) - self.count + 1), 0.0)


@dataclass(frozen=True)
class Noise:
    """Additive noise of mean 0: its kind and standard deviation.

    With ``relative`` the standard deviation is `scale` times the spread (standard deviation) of y
    over the domain; with ``relative="rms"`` times its root mean square, as SRBench has it.
    """

    scale: float = 0.0
    kind: str = "normal"
    relative: bool | str = False

    def __post_init__(self) -> None:
        if self.kind not in _DRAW:
            raise OracleError(f"unknown noise {self.kind!r}; known are {', '.join(_DRAW)}")
        if self.relative not in (False, True, RMS):
            raise OracleError(f"noise relative to {self.relative!r}, expected True, False or {RMS!r}")
        if not (np.isfinite(self.scale) and self.scale >= 0):
            raise OracleError(f"noise scale {self.scale!r} is not a finite number >= 0")


class Oracle(Protocol):
    """What can be asked; what an oracle may have beside is said at :class:`deap_vsr.lab.lab.Lab`."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The inputs with their domains and sampling."""

    def evaluate(self, X: Array) -> Array | tuple[Array, Array]:
        """Answer X of shape (n_points, n_vars) with y of shape (n_points,), or with y and its standard errors.

        NaN and inf are data.
        """


class View:
    """Another oracle with some attributes of its own; asking it asks the other one."""

    def __init__(self, oracle: Oracle, **changed: Any) -> None:
        self.__dict__.update(changed, oracle=oracle)

    def __getattr__(self, name: str) -> Any:
        if name == "oracle":  # a copy that is being made has none yet
            raise AttributeError(name)
        return getattr(self.oracle, name)


class CallableOracle:
    """An oracle for any Python function or simulator.

    Parameters
    ----------
    function : callable
        Takes X of shape (n_points, n_vars) and returns (n_points,), or a tuple of two such arrays, y and its standard
        errors; with ``vectorized=False`` it takes one point, an array of shape (n_vars,), and returns a number, or two.
    variables : sequence of Variable or of (low, high)
        The inputs; a bare pair is sampled uniformly.
    function_set : names of the operators that an answer may use, or the name of a set
        By default "science": 20 operators, of which most laws need few; the usual ones are tried first.
    noise : Noise or float, optional
        Added to the function's values, once for each point asked. A float is the standard deviation
        of normal noise.
    spread : float, optional
        Standard deviation of y over the domain, or its root mean square; needed for noise that is relative to it.
    limits : sequence of (low, high), optional
        How far outside the domains the function may be asked; default: not at all.
    repeatable : bool
        Whether asking twice gives a second measurement (of a noisy experiment, say).
    noise_sd, tolerance, resolution : number, or function of y, optional
        What is known of the answers as they are; nothing is added. `noise_sd` is the standard deviation of noise that
        differs each time; `tolerance` how far answers may be off that are the same each time (of a solver, say);
        `resolution` the step to which they are rounded. :class:`deap_vsr.Relative` and :class:`deap_vsr.Digits` are
        such functions. What is not stated is found out, by repeats, neighbours and digits.
    errors : "nan" or "raise"
        What a point at which the function raises is: one without an answer, or the end of the run.
    seed : int
        Of the oracle's own random stream, from which the noise comes.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        variables: Sequence[Variable | tuple[float, float]],
        function_set: str | Sequence[str] = DEFAULT_FUNCTION_SET,
        *,
        noise: Noise | float = 0.0,
        spread: float | None = None,
        limits: Sequence[tuple[float, float]] | None = None,
        repeatable: bool = True,
        noise_sd: Size | None = None,
        tolerance: Size | None = None,
        resolution: Size | None = None,
        errors: str = "nan",
        vectorized: bool = True,
        seed: int = 0,
    ) -> None:
        self.variables = tuple(_variable(v, i) for i, v in enumerate(variables))
        if not self.variables:
            raise OracleError("an oracle needs at least one variable")
        self.function_set = operators.normalise_function_set(function_set)
        self.noise = noise if isinstance(noise, Noise) else Noise(float(noise))
        self.limits = tuple(v.bounds for v in self.variables) if limits is None else tuple(limits)
        if len(self.limits) != self.n_vars:
            raise OracleError(f"{len(self.limits)} limits for {self.n_vars} variables")
        self.repeatable = repeatable
        self.noise_sd, self.tolerance, self.resolution = noise_sd, tolerance, resolution
        if errors not in ("nan", "raise"):
            raise OracleError(f"errors is {errors!r}, expected nan or raise")
        self.errors = errors
        self.queries = 0
        self._function = function
        self.vectorized = vectorized
        self._rng = np.random.default_rng(seed)
        self._sigma = self.noise.scale
        if self.noise.relative and self.noise.scale:
            if spread is None or not (np.isfinite(spread) and spread >= 0):
                size = "root mean square" if self.noise.relative == RMS else "standard deviation"
                raise OracleError(f"relative noise needs the spread of y: give spread=, its {size}")
            self._sigma *= spread

    @property
    def n_vars(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    def state(self) -> dict[str, Any]:
        """Return the points asked so far and the state of the random stream, for a checkpoint."""
        return {"queries": self.queries, "rng": self._rng.bit_generator.state}

    def skip(self, n_points: int) -> None:
        """Go on as if so many points had been asked: the noise of the next ones is what it would have been."""
        if self._sigma:
            _DRAW[self.noise.kind](self._rng, n_points)

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state` returned."""
        self.queries = state["queries"]
        self._rng.bit_generator.state = state["rng"]

    def evaluate(self, X: Array) -> Any:
        """Return y of shape (n_points,) for X of shape (n_points, n_vars); counts every point.

        A function that gives standard errors gives a tuple of two arrays.
        """
        X = self.checked(X)
        self.queries += len(X)
        y, sigma = self._ask(X)
        if self._sigma:
            y = y + self._sigma * _DRAW[self.noise.kind](self._rng, len(y))
        return y if sigma is None else (y, sigma)

    def checked(self, X: Array) -> Array:
        """Return a copy of X, (n_points, n_vars), with which a function may do what it likes.

        Raises
        ------
        OracleError
            For another shape, and for points outside the limits.
        """
        X = np.array(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_vars:
            raise OracleError(f"X has shape {X.shape}, expected (n_points, {self.n_vars})")
        low, high = np.array(self.limits).T
        outside = ~((low <= X) & (high >= X))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise OracleError(
                f"{self.names[column]} = {X[row, column]:g} is outside the oracle's limits {self.limits[column]}"
            )
        return X

    def _ask(self, X: Array) -> tuple[Array, Array | None]:
        first = ", ".join(f"{name}={value:g}" for name, value in zip(self.names, X[0], strict=True)) if len(X) else ""
        tried = f"{len(X)} point(s), the first at {first[:200]}"
        try:
            with np.errstate(all="ignore"):
                answer, sigma = self._call(X)
        except Exception as error:
            raise OracleFailure(f"the oracle raised {type(error).__name__}: {error}; asked for {tried}") from error
        try:
            y, errors = real_numbers(answer), None if sigma is None else real_numbers(sigma)
        except (TypeError, ValueError, OverflowError):
            raise OracleError(f"the oracle's answer is not an array of numbers; asked for {tried}") from None
        if y.shape != (len(X),):
            raise OracleError(f"the oracle answered in shape {y.shape}, expected ({len(X)},); asked for {tried}")
        return y, errors

    def _call(self, X: Array) -> tuple[Any, Any | None]:
        if self.vectorized:
            return with_errors(self._function(X))
        answers = [self._function(point) for point in X]
        if answers and all(isinstance(answer, tuple) and len(answer) == 2 for answer in answers):
            return tuple(zip(*answers, strict=True))  # type: ignore[return-value]
        return answers, None


class EquationOracle(CallableOracle):
    """The oracle of an equation file: answers at any real inputs, with noise if asked for."""

    def __init__(self, equation: Equation, noise: Noise | float = 0.0, seed: int = 0) -> None:
        noise = noise if isinstance(noise, Noise) else Noise(float(noise))
        super().__init__(
            equation.evaluate,
            equation.variables,
            equation.function_set,
            noise=noise,
            spread=_spread(equation, noise) if noise.relative else None,
            limits=[(-np.inf, np.inf)] * equation.n_vars,
            seed=seed,
        )
        self.equation = equation


def with_errors(answer: Any) -> tuple[Any, Any | None]:
    """Return y of an answer and its standard errors, if it has some: if it is a tuple of two sequences."""
    both = isinstance(answer, tuple) and len(answer) == 2 and all(np.ndim(part) == 1 for part in answer)
    return answer if both else (answer, None)


def real_numbers(answer: Any) -> Array:
    """Return a copy of `answer` as floats, NaN where it is masked; text, dates, None and complex numbers are none."""
    y = np.array(answer)
    if y.dtype.kind == "O" and not all(isinstance(value, numbers.Real) for value in y.flat):
        raise TypeError
    if y.dtype.kind not in "biufO":
        raise TypeError
    y = y.astype(float)
    if isinstance(answer, np.ma.MaskedArray):
        y[np.ma.getmaskarray(answer)] = np.nan
    return y


def _spread(equation: Equation, noise: Noise) -> float:
    """Return what the noise is relative to: standard deviation, or root mean square, of the formula over its domain."""
    y = equation.evaluate(draw_inputs(equation.variables, 10_000, np.random.default_rng(0)))
    y = y[np.isfinite(y)]
    if not len(y):
        return 0.0
    return float(np.sqrt(np.mean(y**2)) if noise.relative == RMS else np.std(y))


def _variable(given: Variable | tuple[float, float], index: int) -> Variable:
    if isinstance(given, Variable):
        return given
    low, high = given
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise OracleError(f"domain of variable {index + 1} is ({low}, {high}), expected finite numbers low < high")
    name = f"x{index + 1}"
    return Variable(name, float(low), float(high), symbol=name)
