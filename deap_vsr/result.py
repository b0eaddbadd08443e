"""What a run returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import deap_vsr
from deap_vsr.errors import ExpressionError, VsrError
from deap_vsr.judge.metrics import Verdict, judge
from deap_vsr.lab.data import Data
from deap_vsr.lab.lab import Lab
from deap_vsr.problems.equation import Equation, Variable
from deap_vsr.saved import load, save
from deap_vsr.search.correlation import correlation, fitted_places
from deap_vsr.search.records import Found, Round
from deap_vsr.search.standing import Standing
from deap_vsr.shown import html_of, json_of
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.code import c_code, numpy_code, python_code
from deap_vsr.tree.names import Names, latex_name
from deap_vsr.tree.notation import short_formula
from deap_vsr.tree.operators import Array
from deap_vsr.tree.reading import for_reading
from deap_vsr.tree.simplify import literals

if TYPE_CHECKING:
    import sympy as symbols
    from matplotlib.figure import Figure


#: Characters of a formula in a line.
MAX_SHOWN = 100


@dataclass(frozen=True)
class FittedConstant:
    """A number of the formula that was fitted, and its standard error; NaN where that is not known."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class Rival:
    """Another formula that the data do not refute, and by how many nats it is behind."""

    formula: str
    behind: float
    tree: MaskedTree = field(repr=False)


@dataclass(frozen=True, repr=False)
class Result:
    """The formula that was found, how good it is, what it cost, and the path that led to it.

    ``verdict`` is the judge's, where the hidden formula is known. ``standard_errors`` are those of the fitted constants
    of a formula that was found, in prefix order: as measured, also for a constant that was restored to a short number
    afterwards. A coefficient restored to 1 or -1 is no constant of the formula any more, and has none.
    """

    tree: MaskedTree | None
    method: str
    expansion: str | None
    schedule: tuple[tuple[int, ...], ...]
    seed: int
    noise: float
    budget: dict[str, float | None]
    settings: dict[str, Any]
    seconds: float
    evaluations: int
    oracle_queries: int
    peak_memory_mb: float
    stopped_by: str
    """Why the run ended: done (a formula stands), seconds, evaluations, queries, interrupted, exhausted."""
    rounds: list[Round] = field(default_factory=list)
    equation: str = ""
    verdict: Verdict | None = None
    standard_errors: tuple[float, ...] | None = None
    version: str = ""
    points_read: int = 0
    """Points whose answer was read from a log instead of asked; not among the queries."""
    failures: int = 0
    """Points at which the oracle raised an exception; they have no answer."""
    standing: Standing = field(default_factory=lambda: Standing("partial", ""))
    """How the answer stands: what it was attacked with, and what is unsure."""
    error: float | None = None
    """Root mean square of what the formula leaves of all that was measured, relative to the spread of y."""
    outliers: tuple[tuple[tuple[float, ...], float], ...] = ()
    """Answers that were left out, as asking again did not confirm them: the point, and y."""
    batches: int = 0
    """Batches in which the points were asked; its largest size, if there is one, is among the settings."""
    variables: tuple[Variable, ...] = ()
    """The inputs of the problem, with names, units and domains."""
    names: Names = field(default_factory=Names)
    """What the variables and the answer are called in formulas, tables and pictures."""
    correlation: tuple[tuple[float, ...], ...] | None = None
    """Of the errors of the fitted constants, in the order of `standard_errors`; None where they are not known."""
    data: Data = field(default_factory=Data, compare=False)
    """Every measurement of the run."""

    @classmethod
    def of(
        cls,
        found: Found,
        stands: Standing,
        lab: Lab,
        equation: Equation | None,
        *,
        method: str,
        expansion: str | None,
        schedule: tuple[tuple[int, ...], ...],
        seed: int,
        settings: dict[str, Any],
        memory: float,
    ) -> Result:
        """Return the result of a search, judged if the hidden formula is known; without a verdict after Ctrl-C."""
        seconds, stopped_by, verdict = lab.budget.spent["seconds"], found.stopped_by, None
        if found.tree is not None and equation is not None:
            try:
                verdict = judge(found.tree, equation)
            except KeyboardInterrupt:  # what was found is not lost for that
                stopped_by = "interrupted"
        return cls(
            tree=found.tree,
            method=method,
            expansion=expansion,
            schedule=schedule,
            seed=seed,
            noise=found.noise,
            budget=dict(lab.budget.limits),
            settings=settings if lab.batch is None else {**settings, "batch": lab.batch},
            seconds=seconds,
            evaluations=lab.budget.evaluations,
            oracle_queries=lab.budget.queries - lab.log.n_read,
            peak_memory_mb=memory,
            stopped_by="done" if stopped_by == "found" else stopped_by,
            rounds=found.rounds,
            equation=equation.name if equation is not None else "",
            verdict=verdict,
            standard_errors=found.standard_errors,
            version=deap_vsr.__version__,
            points_read=lab.log.n_read,
            failures=lab.facts.get("failures", 0),
            standing=stands,
            error=_error(found, lab),
            outliers=tuple((tuple(x.tolist()), float(y)) for x, y in zip(*lab.log.outliers, strict=True)),
            batches=lab.batches,
            variables=lab.variables,
            names=lab.names,
            correlation=correlation(found, lab),
            data=Data.of(lab.log, [*lab.names.given, lab.names.output]),
        )

    @property
    def status(self) -> str:
        """Whether the formula is "found", "fits" or is "partial" (:class:`deap_vsr.search.standing.Standing`)."""
        return self.standing.status

    @property
    def reason(self) -> str:
        """Why it stands as it does, in words."""
        return self.standing.reason

    @property
    def share(self) -> float:
        """The largest share of the domain in which the formula may still be wrong."""
        return self.standing.share

    def __repr__(self) -> str:
        """Return the formula in few digits, how it stands, and what it cost: one line."""
        formula = "?" if self.tree is None else short_formula(literals(self.tree), self.names)
        formula = formula if len(formula) <= MAX_SHOWN else f"{formula[: MAX_SHOWN - 4]} ..."
        cost = f"{self.oracle_queries} points{self.in_batches}, {self.seconds:.1f} s"
        return f"<Result {self.status}: {self.names.output} = {formula}; {cost}>"

    def _repr_latex_(self) -> str:
        """Return the formula, for notebooks."""
        return f"${latex_name(self.names.output)} = {self.latex}$" if self.tree is not None else ""

    def _repr_html_(self) -> str:
        """Return the formula, how it stands, its constants and its path, for notebooks."""
        return html_of(self)

    @property
    def in_batches(self) -> str:
        """In how many batches points were asked, in words; empty where their size was not limited."""
        size = self.settings.get("batch")
        return "" if size is None else f" in {self.batches} batches of at most {size}"

    @property
    def expression(self) -> str:
        """The formula as text in x1, x2, ..., as ``MaskedTree.from_infix`` reads it; empty if none was found."""
        return for_reading(self.tree).to_infix() if self.tree is not None else ""

    @property
    def formula(self) -> str:
        """The formula as text in the names of the variables; empty if none was found."""
        return self.names.named(for_reading(self.tree)).to_infix() if self.tree is not None else ""

    @property
    def latex(self) -> str:
        """The formula in LaTeX, in the names of the variables; empty if none was found."""
        return self.names.named(for_reading(self.tree)).to_latex() if self.tree is not None else ""

    @property
    def sympy(self) -> str:
        """The formula as sympy prints it, in the names of the variables; empty if there is none or it is too deep."""
        try:
            return str(self.names.named(for_reading(self.tree)).to_sympy()) if self.tree is not None else ""
        except ExpressionError:
            return ""

    @property
    def constants(self) -> list[FittedConstant]:
        """The fitted constants of the formula, in prefix order, with their standard errors where they are known."""
        values = [float(self.tree[i].value) for i in fitted_places(self.tree)] if self.tree is not None else []
        known = self.standard_errors if len(self.standard_errors or ()) == len(values) else None
        errors = known or (math.nan,) * len(values)
        return [FittedConstant(value, error) for value, error in zip(values, errors, strict=True)]

    @property
    def covariance(self) -> Array | None:
        """The covariance of the errors of the fitted constants, (L, L); None where it is not known."""
        if self.correlation is None or self.standard_errors is None:
            return None
        errors = np.array(self.standard_errors)
        return np.array(self.correlation).reshape(len(errors), len(errors)) * np.outer(errors, errors)

    @property
    def rivals(self) -> list[Rival]:
        """Other formulas that the data do not refute, the nearest first."""
        return [Rival(self.names.named(tree).to_infix(), behind, tree) for behind, tree in self.standing.rivals]

    # --- using it ---

    def predict(self, X: Any) -> Array:
        """Return y, (n_points,), for X of shape (n_points, n_vars), or a table with a column for each name."""
        if hasattr(X, "keys") or hasattr(X, "columns"):
            missing = [name for name in self.names.given if name not in X]
            if missing:
                raise VsrError(f"there is no column {', '.join(missing)}; expected {', '.join(self.names.given)}")
            X = np.column_stack([np.asarray(X[name], dtype=float) for name in self.names.given])
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or (self.variables and X.shape[1] != len(self.variables)):
            raise VsrError(f"X has shape {X.shape}, expected (n_points, {len(self.variables)})")
        return self._formula().evaluate(X)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Return y for numbers or arrays, in the order of the variables or by name: ``result(T=300, p=2)``.

        One array of shape (n_points, n_vars) is what :meth:`predict` takes.
        """
        if len(values) == 1 and not named and (np.ndim(values[0]) == 2 or hasattr(values[0], "keys")):
            return self.predict(values[0])
        symbols = [name if name in named else self.names.name(i) for i, name in enumerate(self.names.given)]
        wanted = symbols[len(values) :]
        if len(values) > len(symbols) or set(wanted) != set(named):
            raise VsrError(f"found {len(values)} values and {sorted(named)}, expected {', '.join(symbols)}")
        columns = np.broadcast_arrays(*values, *(named[name] for name in wanted))
        y = self.predict(np.column_stack([np.ravel(column) for column in columns]))
        return float(y[0]) if columns[0].ndim == 0 else y.reshape(columns[0].shape)

    def to_python(self) -> str:
        """Return the source of a Python function of numbers."""
        return python_code(self._formula(), self.names)

    def to_numpy(self) -> str:
        """Return the source of a Python function of numbers or numpy arrays."""
        return numpy_code(self._formula(), self.names)

    def to_c(self) -> str:
        """Return the source of a C function of doubles."""
        return c_code(self._formula(), self.names)

    def to_sympy(self) -> symbols.Expr:
        """Return a sympy expression in real symbols of the names of the variables."""
        return self.names.named(self._formula()).to_sympy()

    def _formula(self) -> MaskedTree:
        if self.tree is None:
            raise VsrError(f"no formula was found: {self.reason}")
        return self.tree

    def plot(self, kind: str = "path") -> Figure:
        """Draw the "path" of reduced forms, the "slots", the "fit" (measured against predicted) or the "residuals"."""
        from deap_vsr.plot import PICTURES

        if kind not in PICTURES:
            raise VsrError(f"plot: found {kind!r}, expected {', '.join(PICTURES)}")
        return PICTURES[kind](self)

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file, which :meth:`load` reads."""
        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Return a result that :meth:`save` wrote; what is in the file is checked, and nothing in it is executed."""
        found = load(Path(path))
        names = (*found["names"].given, found["names"].output)
        return cls(**{**found, "data": replace(found["data"], names=names)})

    @property
    def path(self) -> list[Round]:
        """The rounds that led to the answer, without other attempts and earlier passes."""
        places = path_of([r.freed for r in self.rounds], [r.accepted for r in self.rounds])
        return [self.rounds[i] for i in places]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values; numbers that JSON does not have become null."""
        return json_of(self)


class Results(dict[str, Result]):
    """What a run returns that had several outputs or categories: a result for each, by name."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {result!r}" for name, result in self.items())

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{escape(name)}</h4>{html_of(result)}" for name, result in self.items())

    def to_json(self) -> dict[str, Any]:
        """Return all of them as plain JSON values."""
        return {name: result.to_json() for name, result in self.items()}


def _error(found: Found, lab: Lab) -> float | None:
    """Return what a formula leaves of all that was measured, relative to the spread of y."""
    measured = lab.measured()
    if found.tree is None or len(measured.y) < 2:
        return None
    with np.errstate(all="ignore"):
        left = found.tree.evaluate(measured.X, lab.pset) / lab.scale - measured.y
        error = float(np.sqrt(np.mean(left**2)) / (np.std(measured.y) or 1.0))
    return error if math.isfinite(error) else None


def path_of(freed: Sequence[Sequence[Any]], accepted: Sequence[bool]) -> list[int]:
    """Return which rounds led to the last one, in order: each with a part of the variables that the next has free.

    Of several attempts with the same variables it is the last that was accepted, if one was.
    """
    path = [len(freed) - 1] if freed else []
    for i in range(len(freed) - 2, -1, -1):
        if not set(freed[i]) < set(freed[path[0]]):
            continue
        same = [j for j in range(i, -1, -1) if set(freed[j]) == set(freed[i])]
        path.insert(0, next((j for j in same if accepted[j]), i))
    return path
