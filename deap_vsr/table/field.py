"""The field: every formula that a step proposes, fitted to the rows, and what it costs to write down.

Surrogates, logarithms and parts of the rows may propose; all rows decide, by description length. The noise of a table
is not known beforehand, so what a formula leaves is taken for it: n log(mean square) in the place of chi-squared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from deap_vsr.engine.fitting import Fit, fit
from deap_vsr.errors import ExpressionError
from deap_vsr.lab.criterion import criterion
from deap_vsr.table.rows import EXACT, Rows
from deap_vsr.tree import MaskedTree, Node, is_variable
from deap_vsr.tree.simplify import structural_hash

#: A form that leaves so many times the mean square of the best of its size on the screened rows is not fitted to all.
HOPELESS = 4.0
#: Formulas that are kept.
KEPT = 300


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula fitted to all rows: its price in doubled nats, and the step that proposed it."""

    fit: Fit
    price: float
    by: str

    @property
    def tree(self) -> MaskedTree:
        """The formula with its fitted constants."""
        return self.fit.trees[0]

    @property
    def error(self) -> float:
        """What it leaves: the normalised mean square error."""
        return float(self.fit.errors[0])

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.fit.tree)


def price(outcome: Fit, rows: Rows) -> float:
    """Return the description length of a fit, doubled, relative to that of a constant; inf if it is not finite."""
    error = float(outcome.errors[0])
    if not np.isfinite(error):
        return np.inf
    n = len(rows.data.y)
    return criterion(n * float(np.log(max(error, rows.rounding))), outcome.tree, outcome.tree.n_constants, n)


@dataclass(eq=False)
class Field:
    """Formulas that compete on the same rows.

    Attributes
    ----------
    max_size : the most nodes of a formula
    needed : columns that a formula must use
    n_jobs : processes for what can be done side by side, as in scikit-learn
    """

    rows: Rows
    max_size: int = 60
    needed: frozenset[int] = frozenset()
    n_jobs: int | None = None
    tell: Callable[[Formula], None] = lambda formula: None
    formulas: dict[str, Formula] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _least: dict[int, float] = field(default_factory=dict)

    @property
    def ranked(self) -> list[Formula]:
        """All formulas, the cheapest first."""
        return sorted(self.formulas.values(), key=lambda formula: (formula.price, formula.size))

    @property
    def best(self) -> Formula | None:
        """The cheapest formula."""
        return min(self.formulas.values(), key=lambda formula: formula.price, default=None)

    @property
    def exact(self) -> bool:
        """Whether the best formula leaves nothing but rounding."""
        return self.best is not None and self.best.error <= max(EXACT, 10.0 * self.rows.rounding)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to look for, or no time."""
        return self.exact or self.rows.late

    def offer(self, nodes: Sequence[Node] | None, by: str, n_starts: int = 0) -> Formula | None:
        """Fit a form to some rows and, if that is promising, to all; returns it if it is in the field."""
        if nodes is None:
            return None
        tree = MaskedTree(nodes)
        if not self.permits(tree):
            return None
        key = structural_hash(tree)
        if key in self._seen:
            return None
        self._seen.add(key)
        rows = self.rows
        try:
            screened = self._fitted(tree, rows.screen, None, n_starts)
            size = len(tree)
            least = min((error for length, error in self._least.items() if length <= size), default=np.inf)
            error = float(screened.errors[0])
            if not error <= max(HOPELESS * least, rows.rounding):
                return None
            self._least[size] = min(self._least.get(size, np.inf), error)
            outcome = screened if rows.screen is rows else self._fitted(tree, rows, screened.constants, 0)
        except ExpressionError:
            return None
        formula = Formula(outcome, price(outcome, rows), by)
        if not np.isfinite(formula.price):
            return None
        return self._kept(key, formula)

    def _kept(self, key: str, formula: Formula) -> Formula:
        before = self.best
        self.formulas[key] = formula
        if len(self.formulas) > KEPT:
            for worst in sorted(self.formulas, key=lambda k: -self.formulas[k].price)[: KEPT // 4]:
                if self.formulas[worst] not in self.front():
                    del self.formulas[worst]
        if before is None or formula.price < before.price:
            self.tell(formula)
        return formula

    def permits(self, tree: MaskedTree) -> bool:
        """Whether a formula may be so long, uses what it must, and nothing that it must not."""
        if len(tree) > self.max_size:
            return False
        used = {int(str(node.value)[1:]) - 1 for node in tree if is_variable(node)}
        return self.needed <= used

    def all(self, proposals: Iterable[Sequence[Node] | None], by: str) -> None:
        """Offer forms until one is exact or time is up."""
        for nodes in proposals:
            self.offer(nodes, by)
            if self.over:
                break

    def front(self) -> list[Formula]:
        """Return the formulas that none of at most their size beats, the smallest first."""
        front: list[Formula] = []
        for formula in sorted(self.formulas.values(), key=lambda formula: (formula.size, formula.error)):
            if not front or formula.error < 0.999 * front[-1].error:
                front.append(formula)
        return front

    def _fitted(self, tree: MaskedTree, rows: Rows, starts: object, n_starts: int) -> Fit:
        outcome = fit(tree, rows.data, starts=starts, n_starts=n_starts)  # type: ignore[arg-type]
        rows.budget.count(outcome.evaluations)
        return outcome
