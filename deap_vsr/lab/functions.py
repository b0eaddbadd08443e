"""The oracle of any Python function, called as it wants to be: with names, with values, with a row, with a batch."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deap_vsr.errors import OracleError, OracleFailure, VsrError
from deap_vsr.lab.oracle import real_numbers
from deap_vsr.lab.streams import Answer, Heard, StreamOracle, Workers, answer_of
from deap_vsr.tree.operators import Array

#: How a function may be called; "auto" finds out.
CALLS = ("auto", "named", "values", "row", "batch")


class FunctionOracle(StreamOracle):
    """An oracle for a Python function.

    Parameters
    ----------
    function : callable
        Of named arguments, of values in order, of a row (n_vars,), or of a whole batch (n_points, n_vars). It answers
        with a number (or a number and its standard error, as a tuple); with a mapping or a sequence of numbers where
        there are `outputs`; for a batch with arrays of them.
    variables : the numbers that it is asked with (:func:`deap_vsr.lab.domains.inputs_of`)
    call : "named", "values", "row", "batch", or "auto": found out by its signature and its first answer
    fixed : arguments that are always the same
    workers, processes : how many points are asked at the same time, by threads or by processes of their own
    others : as of :class:`StreamOracle`
    """

    def __init__(
        self,
        function: Callable[..., Any],
        variables: Sequence[Any],
        function_set: Sequence[str],
        *,
        call: str = "auto",
        fixed: Mapping[str, Any] | None = None,
        workers: int = 1,
        processes: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(variables, function_set, workers=workers, **others)
        if not callable(function):
            raise OracleError(f"a {type(function).__name__} cannot be called; expected a function")
        if call not in CALLS:
            raise OracleError(f"call is {call!r}, expected one of {', '.join(CALLS)}")
        how = calling(function, self.names, tuple(fixed or {})) if call == "auto" else call
        self._ask_it = Call(function, how, self.names, self._whole(), dict(fixed or {}))
        self._workers = Workers(workers, processes)

    def _whole(self) -> tuple[bool, ...]:
        return tuple(variable.sampling == "integer" for variable in self.variables)

    @property
    def how(self) -> str:
        """How the function is called; "probe" until the first answer has shown whether it takes rows or batches."""
        return self._ask_it.how

    def heard(self, X: Array) -> Iterator[Heard]:
        """Yield the answer at each point of X, (n_points, n_vars), as it comes."""
        begin = 0
        while self.how == "probe" and begin < len(X):
            yield begin, self._probe(X[begin])
            begin += 1
        rest = X[begin:]
        for place, told in (
            self._batch(rest) if self.how == "batch" else self._workers.each(self._ask_it, rest.tolist())
        ):
            yield begin + place, self._understood(told)

    def _understood(self, told: Any) -> Answer | Exception:
        if isinstance(told, Exception | Answer):
            return told
        try:
            return answer_of(told, self.outputs, self.output)
        except OracleFailure as error:
            return error

    def _probe(self, x: Array) -> Answer | Exception:
        """Ask one point, (n_vars,), as a number, as a row, and as a batch, until there is an answer.

        A function of batches is not much asked by a row: it has no second index.
        """
        errors: list[Exception] = []
        for how in ("values", "row") if self.n_vars == 1 else ("row",):
            trial = self._ask_it.called(how)
            try:
                answer = answer_of(trial(x.tolist()), self.outputs, self.output)
            except Exception as error:
                errors.append(error)
                continue
            self._ask_it = trial
            return answer
        batch = self._ask_it.called("batch")
        try:
            (answer,) = self._columns(batch.function(x[None].copy(), **batch.fixed), 1)
        except Exception as error:
            if isinstance(errors[0], OracleError) and not isinstance(errors[0], OracleFailure):
                raise errors[0] from None
            return error if isinstance(errors[0], IndexError) else errors[0]
        self._ask_it = batch
        return answer

    def _batch(self, X: Array) -> Iterator[tuple[int, Any]]:
        """Ask all points at once; where that raises, each alone, as one of them may be to blame."""
        if not len(X):
            return
        try:
            told: Sequence[Any] = self._columns(self._ask_it.function(X.copy(), **self._ask_it.fixed), len(X))
        except VsrError:
            raise
        except Exception as error:
            if len(X) == 1:
                yield 0, error
                return
            for place, x in enumerate(X):
                yield from ((place, answer) for _, answer in self._batch(x[None]))
            return
        yield from enumerate(told)

    def _columns(self, told: Any, n_points: int) -> list[Answer]:
        """Return the answers of a batch: of each output an array (n_points,), or all in one (n_points, n_outputs)."""
        if isinstance(told, Mapping):
            told = [told[name] for name in self.outputs or ([self.output] if self.output in told else told)]
        sigma = np.full(n_points, np.nan)
        if not self.outputs and isinstance(told, tuple) and len(told) == 2:
            told, sigma = told[0], real_numbers(told[1])
        try:
            values = real_numbers(told)
        except (TypeError, ValueError, OverflowError):
            raise OracleError("the function's answer is not an array of numbers") from None
        if values.ndim == 2 and isinstance(told, list | tuple) and len(told) == (len(self.outputs) or 1):
            values = values.T  # a sequence of columns
        expected = (n_points, len(self.outputs)) if self.outputs else (n_points,)
        if values.shape == (n_points, 1) and not self.outputs:
            values = values[:, 0]
        if values.shape != expected:
            raise OracleError(f"the function answered in shape {values.shape}, expected {expected}")
        rows = values if self.outputs else values[:, None]
        return [Answer(tuple(row), float(error)) for row, error in zip(rows.tolist(), sigma, strict=True)]


@dataclass(frozen=True)
class Call:
    """A function, and how it is called with the numbers of a row; other processes can be handed it."""

    function: Callable[..., Any]
    how: str
    names: tuple[str, ...]
    whole: tuple[bool, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)

    def called(self, how: str) -> Call:
        """Return the same, called in another way."""
        return Call(self.function, how, self.names, self.whole, self.fixed)

    def __call__(self, row: Sequence[float]) -> Any:
        """Return what the function says at a point."""
        with np.errstate(all="ignore"):
            if self.how == "row":
                return self.function(np.array(row), **self.fixed)
            values = [int(value) if whole else value for value, whole in zip(row, self.whole, strict=True)]
            if self.how == "named":
                return self.function(**dict(zip(self.names, values, strict=True)), **self.fixed)
            return self.function(*values, **self.fixed)


def arguments(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function; none where it does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def calling(function: Callable[..., Any], names: Sequence[str], fixed: Sequence[str] = ()) -> str:
    """Return how a function is called, by its signature: "named", "values", or "probe" where that does not tell.

    Raises
    ------
    OracleError
        If it takes other arguments than there are variables.
    """
    if isinstance(function, np.ufunc):
        return "values"
    parameters = arguments(function)
    if not parameters:
        return "values" if len(names) > 1 else "probe"
    kinds = inspect.Parameter
    named = {p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)} - set(fixed)
    needed = [
        p.name
        for p in parameters
        if p.default is kinds.empty and p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]
    needed = [name for name in needed if name not in fixed]
    anything = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    if all(name in named or anything for name in names) and set(needed) <= set(names):
        return "named"
    in_order = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    most = math.inf if any(p.kind is kinds.VAR_POSITIONAL for p in parameters) else len(in_order)
    if most >= 1 and len(needed) <= 1 and not set(named) & set(names):
        return "probe" if most == 1 or len(needed) == 1 else "values"
    if len(needed) <= len(names) <= most and not set(named) & set(names):
        return "values"
    takes = ", ".join(p.name for p in parameters) or "nothing"
    raise OracleError(
        f"the function takes {takes}, the variables are {', '.join(names)}: name them alike, "
        'or say call="values", "row" or "batch"'
    )
