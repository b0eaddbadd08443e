"""The laboratory: an oracle with its budget, random stream, evidence, and the log of every measurement.

The only caller of ``oracle.evaluate``; searches fit through it as well, so that counts and limits are in one place.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Dataset, Fit, Points, fit
from deap_vsr.errors import OracleError, OracleFailure, OutOfQueriesError, OutOfTimeError, VsrError
from deap_vsr.lab.batches import Batches
from deap_vsr.lab.budget import NAMES, Budget
from deap_vsr.lab.evidence import LEAST, Evidence, Exact
from deap_vsr.lab.log import Log
from deap_vsr.lab.look import look
from deap_vsr.lab.oracle import DEFAULT_FUNCTION_SET, Oracle, real_numbers, with_errors
from deap_vsr.lab.precision import Precision
from deap_vsr.lab.streams import failure
from deap_vsr.lab.trials import Trial, draw_trials
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name
from deap_vsr.tree.names import Names
from deap_vsr.tree.operators import Array, Flags, Indices
from deap_vsr.tree.translate import known_operators

#: Outside of these y is asked for in other units: squares of sums of squares must be finite numbers.
SMALLEST, LARGEST = 1e-60, 1e60
#: A slow oracle is asked for so many seconds' worth of points at a time, so that limits, and Ctrl-C, are not far off.
BATCH_SECONDS = 0.2
#: Where an oracle raises at each of so many points, something is wrong with it, and not with the points.
HOPELESS = 20
#: Iterations of a fit from each of its starts, at the most, and evaluations that one takes (up to 3.3 were seen, with
#: what a start costs); where fewer than the last number are left, for each trial, there is one start only.
ITERATIONS, EACH, FEW_EVALUATIONS = 60, 4, 20
#: So many measurements are fitted together at the most: several times what a search in noise asks, some seconds' work.
MAX_FITTED = 50_000


class Lab:
    """What a search is given to find out about.

    Parameters
    ----------
    oracle : needs `variables` and ``evaluate(X)``
        Optional: `function_set`; `limits`, for each variable how far it may be asked (default: its domain);
        `repeatable`, whether asking twice measures twice (default: yes); `noise_sd`, the standard deviation of its
        noise, where that is known; ``reachable(X)``, flags of the points that can be asked; ``skip(n)``, for an oracle
        with a random stream of its own: go on as if `n` points had been asked; ``everything(X, y, sigma)``, for an
        oracle that knows more than it was asked: given all answers so far and their standard errors, all that a formula
        is to be fitted to, points as they were really set and data from before included. ``evaluate(X)`` may give the
        standard error of each answer too: a tuple of two arrays. A table (:class:`deap_vsr.TableOracle`) has
        ``rows()``, which are known from the start, and ``trials`` and ``draw`` of its own.
    budget : default: no limits
    rng : numpy Generator
    log : path of a CSV file, or a Log, optional
        In which measurements are kept, and from which they are read (:class:`deap_vsr.lab.log.Log`).
    pset : what the nodes of trees mean; default: the catalogue and x1, x2, ...
    batch : points that are handed to the oracle at once, at the most; default: no limit
        A batch is handed over whole, whatever time it takes, unless the oracle is not `vectorized`. Within it, dear
        variables change seldom (:attr:`deap_vsr.Variable.cost`).
    verify : fresh points that an answer is attacked with; default: as many as is usual

    Attributes
    ----------
    evidence : what answers tell; exact until noise has been measured
    """

    def __init__(
        self,
        oracle: Oracle,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
        *,
        log: str | Path | Log | None = None,
        pset: gp.PrimitiveSetTyped | None = None,
        batch: int | None = None,
        verify: int | None = None,
    ) -> None:
        self.oracle = oracle
        self.variables: tuple[Variable, ...] = tuple(oracle.variables)
        self.function_set: tuple[str, ...] = tuple(getattr(oracle, "function_set", DEFAULT_FUNCTION_SET))
        bounds = tuple(variable.bounds for variable in self.variables)
        self.limits: tuple[tuple[float, float], ...] = tuple(getattr(oracle, "limits", bounds))
        self.budget = budget or Budget()
        self.rng = rng if rng is not None else np.random.default_rng(0)
        self._batching = Batches(self.variables, batch)  # parts share it
        self.names = Names.of(self.variables, getattr(oracle, "output", ""), getattr(oracle, "unit", ""))
        names = [variable.name for variable in self.variables]
        self.log = log if isinstance(log, Log) else Log(names, log)
        self.pset = pset
        self.evidence: Evidence = Exact()
        self.verify = verify
        self._warned = np.geterr()  # how whoever makes the oracle wants its arithmetic; ours is silent in a search
        self._pace = [0.0]  # and, once it is known, how many seconds a point takes; parts share it
        self._late = [0.0]  # seconds for which it was asked behind the time limit, in all; parts share it
        self.facts: dict[str, Any] = {}
        """What was found out about the oracle, for all parts: precision, scale, relevant variables."""
        if hasattr(oracle, "rows"):  # they were measured before, and cost nothing
            rows = oracle.rows()
            self.log.add(rows.X, rows.y, np.zeros(len(rows.y), bool))

    @property
    def n_vars(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def scale(self) -> float:
        """What answers are divided by."""
        return float(self.facts.get("scale", 1.0))

    @property
    def repeats(self) -> bool:
        """Whether the oracle is known to give the same answer each time."""
        return "precision" in self.facts and bool(self.facts["precision"].repeats)

    @property
    def batch(self) -> int | None:
        """How many points are handed to the oracle at once, at the most; None: no limit."""
        return self._batching.size

    @property
    def batches(self) -> int:
        """How many batches the oracle was handed, by all parts; without a limit of their size, questions.

        A batch all of whose points are read from the log's file is none: a run that goes on counts what it asks.
        """
        return self.budget.run.batches

    def part(self, share: float = 1.0, names: Sequence[str] = NAMES, **at_most: float | None) -> Lab:
        """Return the same laboratory with a part of the budget (:meth:`deap_vsr.lab.budget.Budget.part`)."""
        return self.within(self.budget.part(share, names, **at_most))

    def within(self, budget: Budget) -> Lab:
        """Return the same laboratory with another budget, a part of this one's."""
        return self._like(budget=budget)

    def at(self, evidence: Evidence) -> Lab:
        """Return the same laboratory, its answers judged as `evidence` says."""
        return self._like(evidence=evidence)

    def in_catalogue(self) -> Lab:
        """Return the same laboratory for formulas in operators of the catalogue, those that the primitive set has."""
        if self.pset is None:
            return self
        return self._like(pset=None, function_set=(*known_operators(self.pset), "const"))

    def _like(self, **changed: Any) -> Lab:
        other = copy.copy(self)
        other.__dict__.update(changed)
        return other

    # --- asking ---

    def ask(self, X: Array, again: bool = False) -> Array:
        """Return y, (n_points,), for X of shape (n_points, n_vars); NaN and inf are data (:meth:`answers`)."""
        return self.answers(X, again)[0]

    def answers(self, X: Array, again: bool = False) -> tuple[Array, Array | None]:
        """Return y, (n_points,), for X of shape (n_points, n_vars), and the weight of each; None: all have the same.

        What is known is not asked where the oracle repeats itself, but with `again`. Points that cannot be reached have
        no answer, and cost nothing.

        Raises
        ------
        OutOfQueriesError
            Instead of asking one point more than the limit allows.
        """
        X = np.asarray(X, dtype=float)
        told, known = self.log.known(X, self.repeats and not again)
        wanted = ~known & self._reachable(X)
        n_wanted = int(wanted.sum())
        if n_wanted > self.budget.queries_left():
            raise OutOfQueriesError(f"{n_wanted} points are wanted, {self.budget.queries_left():g} may be asked")
        if n_wanted:
            told[wanted] = self._measure(self._filled_up(X[wanted]))[:n_wanted]
        return self.weighted(*(told / self.scale if self.scale != 1.0 else told).T)

    def wish(self, X: Array) -> None:
        """Say which points, (n_points, n_vars), are likely to be wanted later.

        Where there is a batch size, and the oracle repeats itself, a batch that has room is filled up with wishes, in
        the order in which they were wished and within the limit of queries. They are measurements like any others, and
        known from then on. Without a batch size wishes do nothing.
        """
        if self.batch is not None:
            X = np.array(X, dtype=float)
            _, known = self.log.known(X)
            self._batching.wish(X[~known & self._reachable(X)])

    def forget_wishes(self) -> None:
        """Forget all wishes."""
        self._batching.forget()

    def _filled_up(self, X: Array) -> Array:
        """Return points that are wanted, and behind them the wishes that are asked with them."""
        return self._batching.filled_up(X, self.budget.queries_left() - len(X)) if self.repeats else X

    def _reachable(self, X: Array) -> Flags:
        """Return which points can be asked, (n_points,)."""
        reachable = getattr(self.oracle, "reachable", None)
        return np.ones(len(X), bool) if reachable is None else np.asarray(reachable(X), dtype=bool)

    def weighted(self, y: Array, sigma: Array) -> tuple[Array, Array | None]:
        """Return answers and their weights: by their own standard errors, or else by what the evidence says."""
        told = np.isfinite(sigma) & (sigma >= 0)
        if self.evidence.certain or not told.any():
            return y, self.evidence.weights(y)
        noise = self.evidence.noise
        sd = np.where(told, sigma, self.evidence.sigma(y))
        return y, (noise / np.maximum(sd, LEAST * noise)) ** 2

    def _measure(self, X: Array) -> Array:
        """Return answers that the log's file holds, or else the oracle's, (n, 2); they are counted and kept."""
        return np.vstack([self._measure_batch(X[batch], batch.start == 0) for batch in self._batching.cut(len(X))])

    def _measure_batch(self, X: Array, first: bool) -> Array:
        """Return the answers of a batch, (n, 2).

        Batches are cut before the file is read, so that a run that goes on asks what it would have asked in the same
        order. Points are kept in the order of X, as they come; if they come in another one, when all have come, or
        when there will be no more.
        """
        told, read = self.log.read(X)
        if read.any() and hasattr(self.oracle, "skip"):
            self.oracle.skip(int(read.sum()))
        self.budget.count_queries(int(read.sum()))
        come, kept = read.copy(), read.copy()
        wanted = np.flatnonzero(~read)
        try:
            for part in self._parts(wanted[self._batching.order(X[wanted])], first):
                if not self._batching.dear:
                    self._keep(X, told, come, kept)
                if hasattr(self.oracle, "stream"):
                    with np.errstate(**self._warned):
                        self._hear(X, part, told, come, kept)
                    continue
                told[part] = self._answer(X[part])
                self.budget.count_queries(len(part))
                come[part] = True
        finally:
            self._keep(X, told, come, kept)
        return told

    def _hear(self, X: Array, part: Indices, told: Array, come: Flags, kept: Flags) -> None:
        """Take the answers of an oracle that tells them one by one; the file is told of each as it comes."""
        for place, heard in self.oracle.stream(X[part]):  # type: ignore[attr-defined]
            at = part[place]
            if isinstance(heard, Exception):
                if getattr(self.oracle, "errors", "nan") == "raise":
                    raise failure(heard, self.log.names, X[at]) from heard
                told[at] = self._failure(X[at][None], failure(heard, self.log.names, X[at]))[0]
            else:
                told[at] = heard.values[0], heard.sigma
                self.facts["answers"] = self.facts.get("answers", False) or bool(np.isfinite(told[at, 0]))
            self.budget.count_queries(1)
            come[at] = True
            self.log.write(X[at][None], told[at][None])
            kept[at] = True

    def _keep(self, X: Array, told: Array, come: Flags, kept: Flags) -> None:
        """Keep the answers that have come, (n,), in the log; they wait no more, and are no wishes.

        Those that the file has are kept in memory only.
        """
        self.log.add(X[come], told[come, 0], ~kept[come], told[come, 1])
        self._batching.forget(X[come])
        come[:] = False

    def _parts(self, wanted: Indices, first: bool) -> Iterator[Indices]:
        """Yield the points of a batch to ask: all at once, or as many as a slow oracle answers in a part of a second.

        Raises
        ------
        OutOfTimeError
            Where the time is up before the last of them; of the `first` batch some are asked in any case, while all
            that is asked behind the limit takes no longer than a part does.
        """
        at, workers = 0, getattr(self.oracle, "workers", 1)
        while at < len(wanted):
            pace, over = self._pace[-1], self.budget.run.used_up() == "seconds"
            too_late = over and self._late[0] + pace * len(wanted) > BATCH_SECONDS
            if too_late or ((at or not first) and self.budget.used_up() == "seconds"):
                raise OutOfTimeError("the time is up; not all points were asked")
            if not at:
                self.budget.count_batch()
            if not getattr(self.oracle, "vectorized", True):
                size = 1
            elif self.batch is not None:
                size = len(wanted)
            elif len(self._pace) == 1:
                size = workers
            else:
                size = len(wanted) if pace * len(wanted) <= BATCH_SECONDS else max(int(BATCH_SECONDS / pace), workers)
            part = wanted[at : at + size]
            begun = time.perf_counter()
            yield part
            took = time.perf_counter() - begun
            self._pace[1:] = [max(took / len(part), 0.5 * pace)]
            self._late[0] += took * over
            at += len(part)

    def _answer(self, X: Array) -> Array:
        """Return what the oracle says, y and its standard errors, (n, 2); no answer where it raises."""
        try:
            with np.errstate(**self._warned):
                answer = self.oracle.evaluate(X)
        except Exception as error:
            if isinstance(error, VsrError) and not isinstance(error, OracleFailure):
                raise
            if getattr(self.oracle, "errors", "nan") == "raise":
                raise
            if len(X) > 1:  # one of them may be to blame
                return np.vstack([self._answer(point[None]) for point in X])
            return self._failure(X, error)
        y, sigma = with_errors(answer)
        try:
            told = real_numbers(y), real_numbers(np.full(len(X), np.nan) if sigma is None else sigma)
        except (TypeError, ValueError, OverflowError):
            raise OracleError("the oracle's answer is not an array of numbers") from None
        for part in told:
            if part.shape != (len(X),):
                raise OracleError(f"the oracle answered in shape {part.shape}, expected ({len(X)},)")
        self.facts["answers"] = self.facts.get("answers", False) or bool(np.isfinite(told[0]).any())
        return np.column_stack(told)

    def _failure(self, X: Array, error: Exception) -> Array:
        """Return no answer for a point at which the oracle raised; where it never did anything else, raise."""
        failures = self.facts["failures"] = self.facts.get("failures", 0) + 1
        self.facts.setdefault("failure", str(error) or type(error).__name__)
        if failures >= HOPELESS and not self.facts.get("answers") and not np.isfinite(self.log.y).any():
            if isinstance(error, OracleError):
                raise error
            raise OracleFailure(f"the oracle raised {type(error).__name__}: {error}; at all of {failures} points")
        return np.full((len(X), 2), np.nan)

    def draw(self, n_points: int) -> Array:
        """Return points drawn from the domains, (n_points, n_vars), or from the rows of a table."""
        if hasattr(self.oracle, "draw"):
            return np.asarray(self.oracle.draw(n_points, self.rng))
        return draw_inputs(self.variables, n_points, self.rng)

    def trials(
        self,
        free: Iterable[int],
        n_trials: int,
        n_points: int,
        at: Array | None = None,
        rng: np.random.Generator | None = None,
    ) -> list[Trial]:
        """Return trials, each with its controlled variables at a setting of its own, or of `at` (n_trials, n_vars).

        See :func:`deap_vsr.lab.trials.draw_trials`. Those of a table are what its rows hold.
        """
        if hasattr(self.oracle, "trials"):
            trials = self.oracle.trials(free, n_trials, n_points, self.rng if rng is None else rng, at)
            return [replace(trial, y=trial.y / self.scale) for trial in trials]
        return draw_trials(self.variables, self.answers, free, n_trials, n_points, self.rng if rng is None else rng, at)

    def measured(self) -> Trial:
        """Return every finite measurement so far as one trial; of very many as many as tell the same."""
        good = self.log.good
        if good.sum() > MAX_FITTED:
            kept = np.flatnonzero(good)[np.linspace(0, good.sum() - 1, MAX_FITTED).astype(int)]
            good = np.isin(np.arange(len(good)), kept)
        X, y, sigma = self.log.X[good], self.log.y[good], self.log.sigma[good]
        if hasattr(self.oracle, "everything"):
            X, y, sigma = self.oracle.everything(X, y, sigma)
        y, weights = self.weighted(y / self.scale, sigma / self.scale)
        return Trial(X, y, tuple(range(self.n_vars)), weights, int((~good).sum()))

    # --- fitting ---

    def fit(self, tree: Sequence[Node], data: Sequence[Points] | Dataset, **how: Any) -> Fit:
        """Fit a tree's open constants, as :func:`deap_vsr.fit` does; they are counted, and kept to the limit."""
        data = Dataset.of(data)
        outcome = fit(tree, data, pset=self.pset, **self._affordable(how, data.n_trials))
        self.budget.count(outcome.evaluations)
        return outcome

    def _affordable(self, how: dict[str, Any], n_trials: int) -> dict[str, Any]:
        """Return how to fit with the evaluations that are left: fewer iterations, and starts, where those are few."""
        starts = how.get("starts")
        runs = (1 if starts is None else len(starts)) + int(how.get("n_starts", 4))
        left = self.budget.evaluations_left() / n_trials
        if left > runs * ITERATIONS * EACH:
            return how
        if left < FEW_EVALUATIONS:
            how, runs = how | {"n_starts": 0, "starts": None if starts is None else starts[:1]}, 1
        return how | {"max_iterations": min(how.get("max_iterations", ITERATIONS), max(int(left / runs / EACH), 1))}

    # --- what the answers are like ---

    def begin(self, plain: bool = False) -> None:
        """Find out what the answers are like, once: their size, if not `plain`, and how precise they are."""
        if "precision" not in self.facts or "presumed" in self.facts:
            if not plain and self.pset is None:
                self.rescale()
            self.know(look(self, plain).at(self.log.y))
        self.evidence = self.facts["precision"].evidence(self.scale, self.evidence.rule)

    def know(self, precision: Precision) -> None:
        """Take the answers to be so precise."""
        self.facts["precision"] = precision
        self.facts.pop("presumed", None)
        self.evidence = precision.evidence(self.scale, self.evidence.rule)

    def presume(self, precision: Precision) -> None:
        """Take the answers to be so precise until :meth:`begin` looks closer."""
        self.know(precision)
        self.facts["presumed"] = True

    def know_noise(self, noise: float) -> None:
        """Take the answers to have noise of this standard deviation, in units of the laboratory, or none."""
        self.know(Precision(noise * self.scale, repeats=noise == 0.0, noise=noise * self.scale, jitter=noise))

    def rescale(self) -> None:
        """Take other units for y if squares of its values are none, judged by what is known, or a few points."""
        if "scale" in self.facts:
            return
        with np.errstate(all="ignore"):
            size = np.abs(self.log.y if len(self.log) else self.ask(self.draw(3)))
        size = size[np.isfinite(size) & (size > 0)]
        if len(size) and not SMALLEST < np.median(size) < LARGEST and "mul" in self.function_set:
            self.facts["scale"] = float(10.0 ** np.round(np.log10(np.median(size))))

    def in_units(
        self, tree: MaskedTree, errors: Sequence[float] | None = None
    ) -> tuple[MaskedTree, tuple[float, ...] | None]:
        """Return a formula that was found here, and the errors of its constants, in the oracle's own units."""
        if self.scale == 1.0:
            return tree, None if errors is None else tuple(errors)
        known = iter(errors or ())
        marked = [(node, next(known, 0.0) if _counts(node) else 0.0) for node in tree]
        scaled = _in_units(marked, tree, 0, self.scale)
        told = tuple(error for node, error in scaled if _counts(node))
        return MaskedTree([node for node, _ in scaled]), None if errors is None else told


def _counts(node: Node) -> bool:
    """Whether a node is a constant of the formula: 1 and -1 are none."""
    return isinstance(node, Constant) and abs(node.value) != 1.0


def _in_units(marked: list[tuple[Node, float]], tree: MaskedTree, at: int, scale: float) -> list[tuple[Node, float]]:
    """Return the nodes of the sub-tree at a place, with their errors, times `scale`, each term by its number."""
    whole = tree.searchSubtree(at)
    if tree[at].name in ("add", "sub"):
        second = tree.searchSubtree(at + 1).stop
        return [marked[at], *_in_units(marked, tree, at + 1, scale), *_in_units(marked, tree, second, scale)]
    front = at
    while tree[front].name in ("mul", "div"):
        front += 1
    if isinstance(tree[front], Constant):
        value = float(f"{tree[front].value * scale:.15g}")  # 2 times 1e200 is 2e200
        number = (Constant(value, False, False, tree[front].ret), marked[front][1] * scale)
        return [*marked[at:front], number, *marked[front + 1 : whole.stop]]
    return [(node_from_name("mul"), 0.0), (Constant(scale, False, False), 0.0), *marked[at : whole.stop]]
