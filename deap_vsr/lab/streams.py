"""Oracles whose answers come one by one, from several workers: what comes first is told first.

A search sees answers in the order of its question whatever order they come in, so its result does not depend on the
number of workers; the log's file is told of each as it comes, so a run that is killed loses none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from deap_vsr.errors import OracleError, OracleFailure, short
from deap_vsr.lab.oracle import _DRAW, DEFAULT_FUNCTION_SET, CallableOracle, real_numbers
from deap_vsr.problems.equation import Variable
from deap_vsr.tree.operators import Array, Flags


@dataclass(frozen=True)
class Answer:
    """What was answered at one point: the value of each output, and the standard error of the only one, or NaN."""

    values: tuple[float, ...]
    sigma: float = float("nan")


#: The place of a point in a question, and its answer, or why it has none.
Heard = tuple[int, "Answer | Exception"]


class StreamOracle(CallableOracle):
    """An oracle that tells answers as they come; sub-classes say where from.

    Parameters
    ----------
    variables, function_set, limits, repeatable, noise, noise_sd, tolerance, resolution, errors, seed :
        as of :class:`deap_vsr.CallableOracle`
    outputs : names of several outputs; without any there is one
    output : what the only one is called; default: y
    unit : of the answer, as text
    feasible : which settings can be asked: a function of a row as a mapping from names to values, that says yes or no
    workers : how many points are asked at the same time
    """

    def __init__(
        self,
        variables: Sequence[Variable | tuple[float, float]],
        function_set: Sequence[str] = DEFAULT_FUNCTION_SET,
        *,
        outputs: Sequence[str] = (),
        output: str = "",
        unit: str = "",
        feasible: Callable[[Mapping[str, float]], Any] | None = None,
        workers: int = 1,
        **about: Any,
    ) -> None:
        unknown = set(about) - _ABOUT
        if unknown:
            raise OracleError(
                f"nothing is known of {', '.join(sorted(unknown))}; known are {', '.join(sorted(_ABOUT))}"
            )
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise OracleError(f"workers is {workers!r}, expected a whole number of at least 1")
        super().__init__(_nobody, variables, function_set, **about)
        self.outputs = tuple(outputs)
        if len(set(self.outputs)) != len(self.outputs) or not all(isinstance(o, str) and o for o in self.outputs):
            raise OracleError(f"outputs: found {short(list(outputs))}, expected names, each once")
        self.output, self.unit, self.workers = output, unit, workers
        self._feasible = feasible
        if feasible is not None:
            self.reachable = self._can_be_asked

    @abstractmethod
    def heard(self, X: Array) -> Iterator[Heard]:
        """Yield the answer at each point of X, (n_points, n_vars), as it comes."""

    def row(self, x: Array) -> dict[str, float]:
        """Return a point, (n_vars,), by names; whole numbers as such."""
        return {
            v.name: int(value) if v.sampling == "integer" else value
            for v, value in zip(self.variables, x.tolist(), strict=True)
        }

    def stream(self, X: Array) -> Iterator[Heard]:
        """Yield the answer at each point as it comes, noise added if there is any; every point is counted."""
        X = self.checked(X)
        noise = self._sigma * _DRAW[self.noise.kind](self._rng, len(X)) if self._sigma else np.zeros(len(X))
        for place, answer in self.heard(X):
            self.queries += 1
            off = float(noise[place])
            yield place, _moved(answer, off) if off else answer

    def evaluate(self, X: Array) -> Any:
        """Return y of shape (n_points,) for X of shape (n_points, n_vars), or y and its standard errors.

        Of several outputs it is the first.
        """
        y, sigma = np.full(len(X), np.nan), np.full(len(X), np.nan)
        for place, answer in self.stream(X):
            if isinstance(answer, Exception):
                raise failure(answer, self.names, X[place]) from answer
            y[place], sigma[place] = answer.values[0], answer.sigma
        return (y, sigma) if np.isfinite(sigma).any() else y

    def _can_be_asked(self, X: Array) -> Flags:
        assert self._feasible is not None
        flags = []
        for x in np.asarray(X, dtype=float):
            try:
                flags.append(bool(self._feasible(self.row(x))))
            except Exception as error:
                raise OracleError(
                    f"feasible raised {type(error).__name__}: {error}; at {_at(self.names, x)}"
                ) from error
        return np.array(flags, dtype=bool)


def _moved(answer: Answer | Exception, off: float) -> Answer | Exception:
    if isinstance(answer, Exception):
        return answer
    return Answer(tuple(value + off for value in answer.values), answer.sigma)


def _nobody(X: Any) -> Any:
    raise AssertionError("a stream has no function of its own")  # pragma: no cover


_ABOUT = {"limits", "repeatable", "noise", "spread", "noise_sd", "tolerance", "resolution", "errors", "seed"}


def failure(error: Exception, names: Sequence[str], x: Array) -> Exception:
    """Return an exception of the function behind an oracle as one of ours, with the point at which it was raised."""
    if isinstance(error, OracleError):
        return error
    return OracleFailure(f"the oracle raised {type(error).__name__}: {error}; at {_at(names, x)}")


def _at(names: Sequence[str], x: Array) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in zip(names, x, strict=True))[:200]


def answer_of(told: Any, outputs: Sequence[str], output: str = "") -> Answer:
    """Return what was answered at one point.

    One output is a number, or a number and its standard error, or the one called `output` of a mapping; several are a
    mapping by their names, or a sequence.

    Raises
    ------
    OracleFailure
        If it is nothing of that kind.
    """
    if isinstance(told, Mapping):
        if not outputs and output in told:
            return answer_of(told[output], ())
        if not outputs and len(told) != 1:
            names = ", ".join(map(str, told))
            raise OracleError(f"the function answers with {len(told)} outputs ({names}): say which, outputs=[...]")
        missing = [name for name in outputs if name not in told]
        if missing:
            raise OracleFailure(f"the answer has no {', '.join(missing)}: {short(dict(told))}")
        told = [told[name] for name in outputs] if outputs else next(iter(told.values()))
    try:
        values = real_numbers(told)
    except (TypeError, ValueError, OverflowError):
        raise OracleFailure(f"the answer is {short(told)}, expected {_expected(outputs)}") from None
    if outputs:
        if values.shape != (len(outputs),):
            raise OracleFailure(f"the answer is {short(told)}, expected {_expected(outputs)}")
        return Answer(tuple(values.tolist()))
    if isinstance(told, tuple) and values.shape == (2,):
        return Answer((float(values[0]),), float(values[1]))
    if values.size != 1:
        raise OracleFailure(f"the answer is {short(told)}, expected a number")
    return Answer((float(values.reshape(-1)[0]),))


def _expected(outputs: Sequence[str]) -> str:
    return f"a number for each of {', '.join(outputs)}" if outputs else "a number"


# --- several at the same time -------------------------------------------------------------


class Workers:
    """Calls a function at many points, several at the same time.

    Parameters
    ----------
    count : how many
    processes : whether they are processes of their own; else threads of this one
    """

    def __init__(self, count: int = 1, processes: bool = False) -> None:
        self.count, self.processes = count, processes
        self._pool: Executor | None = None

    def each(self, call: Callable[[Any], Any], points: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the place of each point, and what the call gave or raised, as they come."""
        if self.count == 1 and not self.processes:
            for place, point in enumerate(points):
                yield place, _tried(call, point)
            return
        pending = {self._submit(call, point): place for place, point in enumerate(points)}
        broken = []
        try:
            for future in as_completed(pending):
                told = _result(future)
                if isinstance(told, BrokenExecutor):
                    broken.append(pending[future])
                else:
                    yield pending[future], told
        finally:
            for future in pending:
                future.cancel()
        for place in sorted(broken):  # one of them has ended its process: each alone shows which
            self._pool = None
            yield place, _result(self._submit(call, points[place]))

    def _submit(self, call: Callable[[Any], Any], point: Any) -> Future[Any]:
        if self._pool is None:
            self._pool = self._started()
        return self._pool.submit(call, point)

    def _started(self) -> Executor:
        if not self.processes:
            return ThreadPoolExecutor(self.count, "vsr-worker")
        from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[attr-defined]

        # One of its own: the reusable one of a process is joblib's, whose Parallel cannot go on with another's.
        pool: Executor = ProcessPoolExecutor(self.count)
        return pool


def _tried(call: Callable[[Any], Any], point: Any) -> Any:
    try:
        return call(point)
    except Exception as error:
        return error


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        return error
