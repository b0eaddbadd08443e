"""VsrRegressor: formulas for tables as a scikit-learn estimator (extra ``[table]``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from deap_vsr.errors import ExpressionError, VsrError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.table import TableOracle
from deap_vsr.table import guesses
from deap_vsr.table.field import Field
from deap_vsr.table.rows import Rows
from deap_vsr.table.search import Answer, concluded, held_out, run
from deap_vsr.tree import Constant, MaskedTree
from deap_vsr.tree.operators import Array, normalise_function_set

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.figure import Figure

    from deap_vsr.campaign.campaign import Campaign

#: What a formula may use unless said otherwise: what laws are made of, and nothing that is seldom meant.
OPERATORS = ("add", "sub", "mul", "div", "n2", "n3", "sqrt", "exp", "log", "sin", "cos", "const")
#: Of more rows so many are searched with, drawn at random: fits take no more, and memory stays small.
MAX_ROWS = 20_000


class VsrRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Find a formula for the rows of a table.

    Parameters
    ----------
    operators : names of operators that a formula may use
    time_limit : seconds for the search; what has been found by then is the answer
    max_evaluations : evaluations of expressions, for runs that are the same on any machine; default: no limit
    max_size : the most nodes of a formula
    start_from : formulas to begin with, C for a constant to be fitted: ``["C*a/b"]``
    form : a part that is known, with one unknown function F of some columns: ``"a*F(b, c)"``
    required, forbidden : columns, by name or number, that a formula must, or must not, use
    monotonic : {column: 1 or -1}, checked on the answer; formulas that are not are left out
    random_state : int or None
    n_jobs : processes for populations of GP, as in scikit-learn; the result is the same
    warm_start : go on from the formulas of the fit before
    verbose : whether steps are told on stderr

    Attributes
    ----------
    equations_ : pandas.DataFrame
        The front: complexity, error, error_held_out, error_edge, expression, sympy, latex, standard_errors, status.
    status_, reason_ : "fits" or "partial", and why; a table alone never shows that a law is found
    lead_ : how far the answer is ahead of its nearest rival, in nats
    rivals_ : list of (nats behind, expression)
    measurements_ : (n, n_features), points at which rivals differ most
    """

    def __init__(
        self,
        operators: Sequence[str] = OPERATORS,
        time_limit: float | None = 60.0,
        max_evaluations: int | None = None,
        max_size: int = 60,
        start_from: Sequence[str] | None = None,
        form: str | None = None,
        required: Sequence[str | int] | None = None,
        forbidden: Sequence[str | int] | None = None,
        monotonic: dict[str | int, int] | None = None,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.operators = operators
        self.time_limit = time_limit
        self.max_evaluations = max_evaluations
        self.max_size = max_size
        self.start_from = start_from
        self.form = form
        self.required = required
        self.forbidden = forbidden
        self.monotonic = monotonic
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, tell: Callable[[str], None] | None = None) -> VsrRegressor:
        """Search for a formula: X (n_rows, n_features), y (n_rows,), weights as inverse variances."""
        _numbers_only(X)
        X, y = validate_data(self, X, y, dtype=float, y_numeric=True)
        y = np.asarray(y, dtype=float)
        weights = None
        if sample_weight is not None:
            weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=float))
            if not (weights >= 0).all() or not weights.any():
                raise ValueError("sample_weight must not be negative, nor all zero")
            kept = weights > 0
            X, y, weights = X[kept], y[kept], weights[kept] / weights[kept].mean()
            weights = None if np.ptp(weights) == 0.0 else weights
        names = self._names()
        rng = np.random.default_rng(self.random_state if not hasattr(self.random_state, "randint") else 0)
        self.notes_: list[str] = []
        if len(y) > MAX_ROWS:
            chosen = np.sort(rng.choice(len(y), MAX_ROWS, replace=False))
            self.notes_.append(f"{MAX_ROWS} of {len(y)} rows, drawn at random, were used")
            X, y, weights = X[chosen], y[chosen], None if weights is None else weights[chosen]
        if len(y) < 2 or np.ptp(y) == 0.0:
            return self._constant(y)
        columns = self._columns(X, names)
        rows = Rows.of(
            X, y, normalise_function_set(self.operators), weights, columns,
            Budget(self.time_limit, self.max_evaluations), rng,
        )  # fmt: skip
        self._search(rows, names, tell or (lambda step: None))
        return self

    def _search(self, rows: Rows, names: Sequence[str], tell: Callable[[str], None]) -> None:
        """Run the steps on the rows that are not held out, and conclude on all."""
        parts = held_out(rows)
        train = rows.part(parts[0])
        known = guesses.parsed(self.form, names) if self.form else None
        target = train if known is None else known.target(train)
        arena = Field(
            target, int(self.max_size),
            frozenset() if known else frozenset(self._numbers(self.required or (), names)), self.n_jobs,
        )  # fmt: skip
        for text in self.start_from or ():
            arena.offer(guesses.formula(text, names), "start", n_starts=4)
        if self.warm_start and hasattr(self, "_trees"):
            for tree in self._trees:
                arena.offer(guesses.opened(tree), "warm start")
        steps: list[str] = []
        if target.columns or arena.best is None:
            steps = run(target, arena, tell)
        if known is not None:
            arena = known.wrapped(arena, train)
        if arena.best is None:
            arena.offer([Constant(float(train.y.mean()))], "constant")
        guesses.monotonic_only(
            arena, rows, {self._numbers([k], names)[0]: v for k, v in (self.monotonic or {}).items()}
        )
        if arena.best is None:
            arena.needed = frozenset()
            arena.offer([Constant(float(train.y.mean()))], "constant")
            self.notes_.append("no formula meets the constraints: the mean is the answer")
        self._take(concluded(arena, rows, parts, steps), names)

    def _take(self, answer: Answer, names: Sequence[str]) -> None:
        self._trees = [item.tree for item in answer.formulas]
        self._answer: Answer | None = answer
        self._shown = list(names)
        self.best_index_ = answer.best
        self.status_, self.reason_, self.lead_ = answer.status, answer.reason, answer.lead
        self.rivals_ = [(behind, guesses.text(tree, names)) for behind, tree in answer.rivals]
        self.measurements_ = answer.measurements
        self.steps_ = answer.steps

    def _constant(self, y: Array) -> VsrRegressor:
        """Take y for the answer: of one row, or of y that is constant, there is nothing else to say."""
        self._trees = [MaskedTree([Constant(float(y[0]), fitted=False)])]
        self._answer = None
        self._shown = self._names()
        self.best_index_, self.lead_, self.rivals_, self.steps_ = 0, 0.0, [], []
        self.status_ = "partial"
        self.reason_ = "one row tells nothing" if len(y) < 2 else "y is the same in all rows"
        self.measurements_ = np.empty((0, self.n_features_in_))
        return self

    def predict(self, X: Any, index: int | None = None) -> Array:
        """Return y for X, (n_rows, n_features), by the answer or another formula of the front."""
        check_is_fitted(self, "best_index_")
        X = validate_data(self, X, dtype=float, reset=False)
        tree = self._trees[self.best_index_ if index is None else index]
        with np.errstate(all="ignore"):
            return np.asarray(tree.evaluate(X), dtype=float)

    @property
    def expression_(self) -> str:
        """The answer, with the names of the columns."""
        self._fitted()
        return guesses.text(self._trees[self.best_index_], self._shown)

    def sympy(self, index: int | None = None) -> sympy.Expr:
        """Return the answer, or another formula of the front, as a sympy expression."""
        self._fitted()
        return guesses.as_sympy(self._trees[self.best_index_ if index is None else index], self._shown)

    def latex(self, index: int | None = None) -> str:
        """Return the answer, or another formula of the front, in LaTeX."""
        import sympy

        return str(sympy.latex(self.sympy(index)))

    @property
    def equations_(self) -> pd.DataFrame:
        """The front as a table, the smallest first."""
        import pandas as pd

        self._fitted()
        rows = []
        for i, tree in enumerate(self._trees):
            answer = self._answer
            random, edge = answer.held_out[i] if answer is not None else (np.nan, np.nan)
            try:
                symbolic = str(self.sympy(i))
            except ExpressionError:
                symbolic = ""
            rows.append({
                "complexity": len(tree), "error": answer.errors[i] if answer is not None else 0.0,
                "error_held_out": random, "error_edge": edge, "expression": guesses.text(tree, self._shown),
                "sympy": symbolic, "latex": self.latex(i) if symbolic else "",
                "standard_errors": answer.formulas[i].standard_errors if answer is not None else None,
                "status": self.status_ if i == self.best_index_ else "", "step": answer.by[i] if answer else "constant",
            })  # fmt: skip
        return pd.DataFrame(rows)

    def plot(self, kind: str = "front", X: Any = None, y: Any = None, index: int | None = None) -> Figure:
        """Draw the "front"; or, with rows, the "fit" (predicted against measured) or the "residuals" by column."""
        from deap_vsr.table import pictures

        self._fitted()
        if kind == "front":
            front = self.equations_
            held_out = front[["error_held_out", "error_edge"]].to_numpy(dtype=float)
            texts = front["expression"].to_list()
            sizes, errors = front["complexity"].to_list(), front["error"].to_numpy(dtype=float)
            return pictures.front_of(sizes, errors, held_out, self.best_index_, texts)
        if kind not in ("fit", "residuals"):
            raise VsrError(f"plot: found {kind!r}, expected front, fit or residuals")
        if X is None or y is None:
            raise VsrError(f"plot: the {kind} needs rows: plot({kind!r}, X, y)")
        X, y = validate_data(self, X, y, dtype=float, reset=False)
        tree = self._trees[self.best_index_ if index is None else index]
        if kind == "fit":
            return pictures.fit_of(tree, X, np.asarray(y, dtype=float), "y")
        return pictures.left_of(tree, X, np.asarray(y, dtype=float), self._shown, "y")

    def laboratory(self, folder: str | Path, X: Any, y: Any, output: str = "y", **options: Any) -> Campaign:
        """Begin a laboratory that knows these rows, and asks first for the points at which rivals differ most.

        ``options`` are those of :class:`deap_vsr.Campaign`: noise, unit, sheet, points, seed.
        """
        from deap_vsr.table.laboratory import laboratory

        self._fitted()
        X, y = validate_data(self, X, y, dtype=float, reset=False)
        options = {"operators": list(normalise_function_set(self.operators)), **options}
        return laboratory(folder, X, np.asarray(y, dtype=float), self._shown, output, self.measurements_, options)

    def report(self) -> str:
        """Return in words what was found, how it stands and what would tell more."""
        self._fitted()
        lines = [f"y = {self.expression_}", f"{self.status_}: {self.reason_}", *self.notes_]
        lines += [f"  {behind:8.1f} nats behind: {text}" for behind, text in self.rivals_[:5]]
        if len(self.measurements_) and self.lead_ < 10.0:
            lines.append("measure, to tell these apart:")
            for point in self.measurements_:
                lines.append("  " + ", ".join(f"{n}={v:.6g}" for n, v in zip(self._shown, point, strict=True)))
        return "\n".join(lines)

    # --- inside ---

    def _fitted(self) -> None:
        if not hasattr(self, "best_index_"):
            raise NotFittedError("this VsrRegressor is not fitted yet: call fit first")

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i + 1}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _numbers(self, wanted: Sequence[str | int], names: Sequence[str]) -> list[int]:
        found = []
        for item in wanted:
            number = item if isinstance(item, int) else list(names).index(item) if item in names else -1
            if not 0 <= number < len(names):
                raise VsrError(f"column {item!r} is not in the table; it has {', '.join(names[:10])}")
            found.append(number)
        return found

    def _columns(self, X: Array, names: Sequence[str]) -> list[int]:
        """Return the columns to use: without forbidden ones, those that never vary, and copies of others."""
        forbidden = self._numbers(self.forbidden or (), names)
        kept: list[int] = []
        for column in range(X.shape[1]):
            if column in forbidden:
                continue
            if np.ptp(X[:, column]) == 0.0:
                self.notes_.append(f"{names[column]} is the same in all rows: not used")
                continue
            same = [other for other in kept if _collinear(X[:, other], X[:, column])]
            if same:
                self.notes_.append(f"{names[column]} cannot be told from {names[same[0]]}: not used")
                continue
            kept.append(column)
        if len(X) < 3 * len(kept):
            self.notes_.append(f"{len(X)} rows for {len(kept)} columns: too few to tell which of them matter")
        for note in self.notes_ if self.verbose else ():
            warnings.warn(note, UserWarning, stacklevel=3)
        return kept

    def control(self, X: Any, y: Any) -> str:
        """Return in words what control the rows of a table hold."""
        return TableOracle(X, y).report()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # 200 random rows of ten columns have no law to find
        return tags


def _collinear(a: Array, b: Array) -> bool:
    """Whether two columns are the same but for a factor."""
    with np.errstate(all="ignore"):
        cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return abs(abs(cosine) - 1.0) < 1e-14


def _numbers_only(X: Any) -> None:
    """Raise ValueError for the columns of a frame that hold text, by name; what else is wrong scikit-learn says."""
    for name in getattr(X, "columns", ()):
        for value in X[name] if getattr(getattr(X[name], "dtype", None), "kind", "") == "O" else ():
            if isinstance(value, str):
                try:
                    float(value)
                except ValueError as error:
                    raise ValueError(f"column {name}: {error}; leave it out, or make numbers of it") from None
