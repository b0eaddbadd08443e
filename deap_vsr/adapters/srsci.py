"""SRSci, the competition protocol of the paper's authors: an evaluator that is asked, an expression out.

Its users are given ``symbolic_equation_evaluator_public.py`` with a class ``Equation_evaluator(equation_name,
noise_type, noise_scale)``, whose objects have ``evaluate(X)``, ``get_nvars()`` and ``get_function_set()``. It names no
domains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.adapters.entry import Entry, GlobalStream, RoundsOracle, inside, with_domains
from deap_vsr.errors import VsrError
from deap_vsr.loading import attribute_of
from deap_vsr.problems.equation import Variable
from deap_vsr.result import Result
from deap_vsr.tree.operators import Array, normalise_function_set

EVALUATOR = "symbolic_equation_evaluator_public.py:Equation_evaluator"
NOISE_KINDS = ("normal", "exponential", "uniform", "laplace", "logistic")
#: That of the paper's sets.
DOMAIN = (0.1, 10.0)


def srsci(folder: Path, problem: str, domains: Mapping[str, Variable], noise: float, kind: str, seed: int) -> Entry:
    """Return the problem with the file name `problem`, e.g. ``example.in``.

    Parameters
    ----------
    folder : where the evaluator stands, with what it needs
    domains : of x1, x2, ...; those that are not named have :data:`DOMAIN`
    noise, kind : scale and type, as the evaluator understands them
    seed : of the noise
    """
    if kind not in NOISE_KINDS:
        raise VsrError(f"--noise-kind {kind}: expected {', '.join(NOISE_KINDS)}")
    with inside(folder):
        make = attribute_of(EVALUATOR, "the evaluator")
        try:
            evaluator = make(problem, kind, noise)
            n_vars, operators = int(evaluator.get_nvars()), tuple(evaluator.get_function_set())
        except Exception as error:
            raise VsrError(f"the evaluator has no problem {problem}: {type(error).__name__}: {error}") from None
    usual = [Variable(f"x{i + 1}", *DOMAIN, symbol=f"x{i + 1}") for i in range(n_vars)]
    variables = with_domains(usual, domains)
    asked = _Asked(evaluator, variables, GlobalStream(seed))
    oracle = RoundsOracle(asked, variables, normalise_function_set(operators))
    return Entry(
        oracle,
        lambda result: (f"{Path(problem).stem}.out", preorder(result)),
        lambda result: {"points to see how it is asked": len(asked.probe)},
    )


def preorder(result: Result) -> str:
    """Return the expression as the protocol wants it, ``[('add','binary'), ('X_1','var'), ...]``."""
    if result.tree is None:
        raise VsrError("no formula was found, so none is written")
    tokens = [(text.replace("x", "X_") if kind == "var" else text, kind) for text, kind in result.tree.to_tokens()]
    return f"[{', '.join(f'({text!r},{kind!r})' for text, kind in tokens)}]\n"


class _Asked:
    """Asks the evaluator, points as rows; the public one takes them as columns, its description says rows.

    Which it is is seen from one question of more points than there are variables: one way the answer has its length.
    """

    def __init__(self, evaluator: Any, variables: Sequence[Variable], stream: GlobalStream) -> None:
        self._evaluator, self._stream = evaluator, stream
        middle = np.array([0.5 * (variable.low + variable.high) for variable in variables])
        self.probe = np.tile(middle, (len(variables) + 1, 1))
        self._as_columns = self._takes_columns()

    def __call__(self, X: Array) -> Array:
        return self._ask(X, self._as_columns)

    def _takes_columns(self) -> bool:
        reasons = []
        for as_columns in (False, True):
            try:
                y = self._ask(self.probe, as_columns)
            except Exception as error:
                reasons.append(f"{type(error).__name__}: {error}")
                continue
            if y.shape == (len(self.probe),):
                return as_columns
            reasons.append(f"an answer of shape {y.shape}")
        points, variables = self.probe.shape
        raise VsrError(f"the evaluator does not answer {points} points of {variables} variables: {'; '.join(reasons)}")

    def _ask(self, X: Array, as_columns: bool) -> Array:
        with self._stream(), np.errstate(all="ignore"):
            return np.asarray(self._evaluator.evaluate(X.T if as_columns else X), dtype=float)
