"""Noisy data: formulas that are sums of products, grown variable by variable by an information criterion.

With noise the table of a single slot tells little; all slots of a round together tell much more. In each round the
candidates are the terms there are, each alone and times every simple atom of the new variable. At each setting of what
is held a term has a coefficient of its own; a term comes in if it lowers the Bayesian information criterion over all
settings, and goes where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.program import evaluate
from deap_vsr.errors import OutOfQueriesError
from deap_vsr.forms.atoms import atoms_of
from deap_vsr.forms.selection import MAX_TERMS, select
from deap_vsr.lab.oracle import Oracle
from deap_vsr.lab.relevance import relevant_variables
from deap_vsr.lab.trials import draw_inputs, sample_trials
from deap_vsr.search.contract import Budget
from deap_vsr.search.criterion import NODE
from deap_vsr.search.freezing import UNSURE
from deap_vsr.search.records import Outcome, Progress, Round
from deap_vsr.search.short import restored
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name
from deap_vsr.tree.operators import Array, Flags
from deap_vsr.tree.tidy import with_differences

#: More terms for each variable are not looked for: a formula that takes more is no sum of simple products.
TERMS_A_VARIABLE = 4

#: Where a round leaves so many times the variance of the noise, the law is no sum of products of simple atoms; then so
#: many points and terms are enough for the last fit, and the rest is left to other searches.
HOPELESS, FEW_POINTS, FEW_TERMS = 2.0, 400, 12

#: Of the time; the rest is left to other searches.
SHARE = 0.4

#: Atoms of so many nodes are simple: x, sin(x), 1/x.
SIMPLE = 2

#: A term is a product of factors: (column, number of an atom).
Term = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class NoisySettings:
    """Numbers of the search in noise: settings and points of a round, points of the last fit, atoms of a variable.

    A run with a limit on queries spends it in the same proportions.
    """

    n_settings: int = 3
    n_points: int = 350
    last_points: int = 3000
    n_atoms: int = 10


def search_noisy(
    oracle: Oracle,
    budget: Budget,
    rng: np.random.Generator,
    noise: float,
    settings: NoisySettings | None = None,
    progress: Callable[[Progress], None] = lambda news: None,
    order: Sequence[int] | None = None,
) -> Outcome:
    """Find a sum of products for a noisy oracle, with the standard errors of its constants.

    ::

        terms <- {1}
        for each variable that matters:
            free it; data at K settings of what is held
            terms <- the best sum of terms and of terms times atoms of it, by the information criterion
            where it leaves much more than the noise: go no further
        all data there are: add what is still missing, drop what is not significant
        restore numbers of few digits, where the data do not object
    """
    run = _Noisy(oracle, budget, rng, noise, settings or NoisySettings())
    stopped_by = "found"
    errors: Array | None = None
    if not {"add", "mul"} <= set(oracle.function_set):
        return Outcome(None, [], [], "exhausted", noise)  # no sum of products can be written
    try:
        relevant = relevant_variables(oracle, rng, noise, max_queries=0.3 * budget.queries_left())
        columns = [column for column in order if column in relevant] if order is not None else relevant
        run.plan(len(columns))
        for place in range(len(columns)):
            freed = tuple(columns[: place + 1])
            progress(Progress(place + 1, len(columns), freed, np.inf, budget))
            run.free(freed)
            if run.hopeless:
                run.last_points = min(run.last_points, FEW_POINTS)
                break
            limit = budget.used_up()
            if limit is not None and place + 1 < len(columns):
                stopped_by = limit
                break
        errors = run.last(columns)[~run.exact]
        if stopped_by == "found" and not run.holds():
            stopped_by = budget.used_up() or "exhausted"
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    except OutOfQueriesError:
        stopped_by = "queries"
    tree = run.answer()
    known = tuple(errors.tolist()) if errors is not None else None
    return Outcome(tree, [(run.error, tree)], run.rounds, stopped_by, noise, known)


class _Noisy:
    """One run: the terms so far, and all data that were measured."""

    def __init__(
        self, oracle: Oracle, budget: Budget, rng: np.random.Generator, noise: float, settings: NoisySettings
    ) -> None:
        self.oracle, self.budget, self.rng, self.noise = oracle, budget, rng, noise
        self.share = budget.part(SHARE, ("seconds",))
        self.terms: list[Term] = [()]
        self.coefficients: Array = np.zeros(1)
        self.exact: Flags = np.zeros(1, bool)
        """Which coefficients are 1 or -1 in the end: before a product they are no constants, but at most a sign."""
        self.rounds: list[Round] = []
        self.hopeless = False
        """Whether sums of products have left much more than the noise in a round."""
        self.explained = False
        """Whether the last fit leaves no more than the noise."""
        self.error = np.inf
        self.X: list[Array] = []
        self.y: list[Array] = []
        self.n_settings = settings.n_settings
        self.n_points, self.last_points, self.check_points = settings.n_points, settings.last_points, 100
        self.atoms = [a for a in atoms_of(tuple(oracle.function_set)) if a.cost <= 5][: settings.n_atoms]

    def plan(self, n_rounds: int) -> None:
        """Share out the points that may be asked, where there is a limit on them."""
        planned = n_rounds * self.n_settings * self.n_points + self.last_points + self.check_points
        share = min(1.0, max(self.budget.queries_left(), 0.0) / planned)
        self.n_points, self.last_points, self.check_points = (
            int(share * points) for points in (self.n_points, self.last_points, self.check_points)
        )

    def free(self, freed: tuple[int, ...]) -> None:
        """Run one round: the last of `freed` is new."""
        if self.n_points < 8:
            return
        before = self.budget.spent
        n_vars = len(self.oracle.variables)
        last = len(freed) == len(self.oracle.variables)
        count = 1 if last else self.n_settings
        held_at = draw_inputs(self.oracle.variables, count, self.rng)
        trials = sample_trials(self.oracle, freed, count, self.n_points * (2 if last else 1), self.rng, held_at)
        for trial in trials:
            self.X.append(trial.X)
            self.y.append(trial.y)
        candidates = list(self.terms)
        for term in self.terms:
            candidates += [(*term, (freed[-1], atom)) for atom in range(len(self.atoms))]
        blocks = [(self._columns(candidates, trial.X), trial.y) for trial in trials]
        chosen = self._best(blocks, candidates)
        self.budget.count(len(candidates) * len(trials))
        self.terms = [candidates[i] for i in chosen] or [()]
        fitted = [_solve(A[chosen], y)[0] if chosen else np.array([y.mean()]) for A, y in blocks]
        self.coefficients, self.exact = fitted[-1], np.zeros(len(self.terms), bool)
        left = [_error(A[chosen], y, c) for (A, y), c in zip(blocks, fitted, strict=True)]
        squares = sum(error * y.var() * len(y) for error, (_, y) in zip(left, blocks, strict=True))
        self.hopeless = squares > HOPELESS * self.noise**2 * sum(len(y) for _, y in blocks)
        spent = self.budget.spent
        held = tuple(column for column in range(n_vars) if column not in freed)
        self.rounds.append(
            Round(
                freed,
                held,
                self.answer(slots=bool(held)),
                tuple(left),
                tuple(tuple(row.tolist()) for row in fitted),
                len(self.terms) if held else 0,
                True,
                int(spent["queries"] - before["queries"]),
                spent["seconds"] - before["seconds"],
            )
        )

    def last(self, columns: Sequence[int]) -> Array:
        """Fit everything once more on all data and a last batch; returns the standard errors of the coefficients."""
        if self.last_points > 0:
            (trial,) = sample_trials(self.oracle, range(len(self.oracle.variables)), 1, self.last_points, self.rng)
            self.X.append(trial.X)
            self.y.append(trial.y)
        if not self.X:
            return np.zeros(1)
        X, y = np.concatenate(self.X), np.concatenate(self.y)
        factors: list[Term] = [(), *dict.fromkeys((factor,) for term in self.terms for factor in term)]
        candidates = list(self.terms)
        known = {frozenset(term) for term in candidates}
        for factor in factors:
            for column in columns:
                for atom in range(len(self.atoms)):
                    term = (*factor, (column, atom))
                    if frozenset(term) not in known:
                        known.add(frozenset(term))
                        candidates.append(term)
        A = self._columns(candidates, X)
        chosen = self._best([(A, y)], candidates, len(self.terms))
        self.budget.count(len(candidates))
        self.terms = [candidates[i] for i in chosen] or [()]
        if not chosen:
            chosen, A = [0], np.ones((1, len(y)))
        fitted, errors = _solve(A[chosen], y, self.noise)
        left = float(np.sum((y - fitted @ A[chosen]) ** 2))
        self.error = left / float(np.sum((y - y.mean()) ** 2))
        self.explained = left <= (UNSURE * self.noise) ** 2 * float(chdtri(len(y), 1e-4))
        # A positive term first: the others, which become differences, then stay in order, as their errors are.
        order = np.argsort(np.arange(len(fitted)) != np.argmax(fitted > 0), kind="stable")
        A, fitted, errors = A[chosen][order], fitted[order], errors[order]
        self.terms = [self.terms[i] for i in order]
        self.coefficients = restored(A, y, self.noise, fitted, errors)
        self.exact = (np.abs(self.coefficients) == 1.0) & np.array([bool(term) for term in self.terms])
        return errors

    def holds(self) -> bool:
        """Whether the formula leaves no more than the noise, also on fresh data; not, where none are to be had."""
        n_points = self.check_points
        if n_points < 3:
            return False
        (trial,) = sample_trials(self.oracle, range(len(self.oracle.variables)), 1, n_points, self.rng)
        self.budget.count(1)
        with np.errstate(all="ignore"):
            left = float(np.sum((self.answer().evaluate(trial.X) - trial.y) ** 2))
        self.error = left / float(np.sum((trial.y - trial.y.mean()) ** 2))
        return self.explained and left <= (UNSURE * self.noise) ** 2 * float(chdtri(n_points, 1e-4))

    def _best(self, blocks: Sequence[tuple[Array, Array]], candidates: Sequence[Term], n_start: int = 0) -> list[int]:
        """Return the better of two selections: among terms of the cheapest atoms, and among all.

        A greedy search that begins with a complicated atom may never come back from it.
        """
        simple = [all(self.atoms[atom].cost <= SIMPLE for _, atom in term) for term in candidates]
        every, stop = [True] * len(candidates), lambda: self.share.used_up() == "seconds"
        n_columns = len({column for term in candidates for column, _ in term})
        most = FEW_TERMS if self.hopeless else min(MAX_TERMS, TERMS_A_VARIABLE * n_columns + 1)
        # sin(sin(x)) is nearly sin(x): what is no simpler must explain more.
        surcharge = NODE * np.array([sum(max(self.atoms[a].cost - SIMPLE, 0) for _, a in term) for term in candidates])

        def best(allowed: list[bool], start: list[int]) -> tuple[list[int], float]:
            return select(blocks, self.noise, allowed, start, stop, most, surcharge)

        tries = [best(simple, [i for i in range(n_start) if simple[i]])]
        if not all(simple):
            tries.append(best(every, list(range(n_start))))
            tries.append(best(every, tries[0][0]))
        return min(tries, key=lambda item: item[1])[0]

    def _columns(self, terms: Sequence[Term], X: Array) -> Array:
        """Return the values of terms: (n_terms, n_points); zeros for those that are not finite."""
        factors = list(dict.fromkeys(factor for term in terms for factor in term))
        trees = [self.atoms[atom].of(column) for column, atom in factors]
        values = dict(zip(factors, evaluate(trees, X), strict=True)) if factors else {}
        out = np.ones((len(terms), len(X)))
        for i, term in enumerate(terms):
            for factor in term:
                out[i] *= values[factor]
        with np.errstate(all="ignore"):
            out[~(np.abs(out) < 1e12).all(axis=1)] = 0.0
        return out

    def answer(self, slots: bool = False) -> MaskedTree:
        """Return the sum of the terms with their coefficients."""
        parts = []
        for term, value in zip(self.terms, self.coefficients, strict=False):
            constant = Constant(float(value), slots, slots)
            part: tuple[Node, ...] = (constant,)
            for column, atom in term:
                part = (node_from_name("mul"), *part, *self.atoms[atom].of(column))
            parts.append(part)
        nodes: tuple[Node, ...] = parts[0]
        for part in parts[1:]:
            nodes = (node_from_name("add"), *nodes, *part)
        tree = MaskedTree(nodes)
        return tree if slots else with_differences(tree, self.oracle.function_set)


def _error(A: Array, y: Array, coefficients: Array) -> float:
    """Return the NMSE that a sum leaves; of an empty one 1."""
    rest = y - coefficients @ A if len(A) else y - y.mean()
    return float(np.sum(rest**2) / np.sum((y - y.mean()) ** 2))


def _solve(A: Array, y: Array, noise: float = 0.0) -> tuple[Array, Array]:
    """Return coefficients of the rows of `A` by least squares, and their standard errors for the given noise."""
    units = np.linalg.norm(A, axis=1)
    Q, R = np.linalg.qr((A / units[:, None]).T)
    inverse = np.linalg.pinv(R)
    return inverse @ (Q.T @ y) / units, noise * np.linalg.norm(inverse, axis=1) / units
