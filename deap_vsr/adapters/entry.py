"""What an adapter makes of a problem of another benchmark: an oracle, its rules, the answer as that one wants it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.errors import OracleError, OutOfQueriesError, VsrError
from deap_vsr.lab.oracle import CallableOracle
from deap_vsr.problems.equation import Variable
from deap_vsr.result import Result
from deap_vsr.tree.operators import Array


@dataclass(frozen=True)
class Entry:
    """A problem of another benchmark.

    `written` gives its answer file, (name, text); `figures` what is told of a result beside what `vsr` tells.
    """

    oracle: CallableOracle
    written: Callable[[Result], tuple[str, str]]
    figures: Callable[[Result], dict[str, float]]
    batch: int | None = None
    max_queries: int | None = None


class RoundsOracle(CallableOracle):
    """An oracle that is asked in rounds: so many of them, of so many points at the most.

    Parameters
    ----------
    function : takes X, (n_points, n_vars), returns y, (n_points,)
    variables, function_set : as of :class:`deap_vsr.CallableOracle`
    points, rounds : of a round, and how many; None: no limit
    output : what the answer is called
    """

    def __init__(
        self,
        function: Callable[[Array], Array],
        variables: Sequence[Variable],
        function_set: Sequence[str],
        points: int | None = None,
        rounds: int | None = None,
        output: str = "",
    ) -> None:
        super().__init__(function, variables, function_set)
        self.output = output
        self.most_points, self.most_rounds = points, rounds
        self.rounds = 0

    def evaluate(self, X: Array) -> Any:
        """Return y, (n_points,), of one round.

        Raises
        ------
        OutOfQueriesError
            When the rounds are used up; a search ends with what it has.
        """
        if self.most_points is not None and len(X) > self.most_points:
            raise OracleError(f"{len(X)} points in one round, expected at most {self.most_points}")
        if self.most_rounds is not None and self.rounds >= self.most_rounds:
            raise OutOfQueriesError(f"the {self.most_rounds} rounds are used up")
        self.rounds += 1
        return super().evaluate(X)


def with_domains(usual: Sequence[Variable], given: Mapping[str, Variable]) -> list[Variable]:
    """Return the variables of a problem, with the domains that the user gives in the place of the usual ones."""
    names = [variable.name for variable in usual]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise VsrError(f"--domain {unknown[0]}: the problem's variables are {', '.join(names)}")
    return [given.get(variable.name, variable) for variable in usual]


class GlobalStream:
    """A stream of its own for foreign code that draws from numpy's global one, which is left as it was."""

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed).get_state()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Let the global stream be this one for a while."""
        before = np.random.get_state()  # noqa: NPY002 - it is theirs
        np.random.set_state(self._state)  # noqa: NPY002
        try:
            yield
        finally:
            self._state = np.random.get_state()  # noqa: NPY002
            np.random.set_state(before)  # noqa: NPY002


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Let foreign code find its modules and files, for a while: they are relative to where it stands."""
    if not folder.is_dir():
        raise VsrError(f"--adapter: {folder} is no folder; give that of your own copy")
    before, place = os.getcwd(), str(folder.resolve())
    sys.path.insert(0, place)
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(place)
