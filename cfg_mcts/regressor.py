"""MCTS as a regressor of the shared contract: plain over all variables, vertical at the slots of a frozen form."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from cfg_mcts.derivation import Deriver, Limits, functions_around
from cfg_mcts.grammar import Grammar, GrammarError
from cfg_mcts.search import SearchTree, mcts
from cfg_mcts.store import RoundState, TreeState, search_from, search_state
from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.files import checked
from deap_vsr.search.checkpoint import check_trees, data_from, expect, restoring, tree_from, tree_state
from deap_vsr.search.contract import Candidate, Task
from deap_vsr.search.fits import MANY, data_state, fit_from, fit_state, fitted_on
from deap_vsr.tree import MaskedTree, is_open
from deap_vsr.tree.simplify import fold

#: What runs a function over a list, in order: the one parallel seam, as DEAP's ``toolbox.map``.
Map = Callable[[Callable[[MaskedTree], Fit], list[MaskedTree]], Iterable[Fit]]

#: Expressions fitted between two looks at the limits.
CHUNK = 16

#: Roll-outs without a new form after which a search tree is done with.
MAX_STALE = 20_000

#: What a node of an expression, and a constant within a function, cost where a climb goes on, in decades of error.
NODE_PRICE, INNER_PRICE = 0.15, 0.3


@dataclass(frozen=True)
class MctsRegressor:
    """Monte Carlo tree search as a regressor of the shared contract.

    Attributes
    ----------
    c : float
        Weight of exploration in UCB.
    n_sim : int
        Roll-outs for each child.
    max_size : int
        Nodes that the search tree of a round may add to the form it starts from, beside those that its slots need.
    max_depth, nesting : int
        Limits of what grows at one slot (see :class:`cfg_mcts.derivation.Limits`).
    leaf_share : float
        How often a roll-out takes a rule without non-terminals, where it can.
    stay : float
        How often a slot that a derivation has not yet come to stays a constant in a roll-out.
    max_nodes : int
        Of the search tree; less visited branches are cut off.
    climb, climb_size : int
        After so many roll-outs a climb begins: a search tree of as many roll-outs, and of so many nodes more, at each
        open constant of the best expression, then of the best that came out, and so on; where that leads no further,
        the round's own tree goes on. With 0, and with a grammar of one's own, there is one tree for the whole round,
        as published.
    coefficients : bool
        Whether leaves are C*x and C*f(x) instead of x.
    grammar : Grammar, optional
        A grammar of one's own, instead of the operators that the task allows.
    reward : "inv_nmse" or "neg_mse"
        1/(1 + NMSE), or minus the MSE, at least minus the variance of y.
    optimizer, gradient, max_iterations, n_starts : how constants are fitted
    map : callable
        Where fits run; results do not depend on it.
    """

    c: float = 1.0
    n_sim: int = 10
    max_size: int = 20
    max_depth: int = 8
    nesting: int = 1
    leaf_share: float = 0.5
    stay: float = 0.7
    max_nodes: int = 200_000
    climb: int = 500
    climb_size: int = 9
    coefficients: bool = False
    grammar: Grammar | None = None
    reward: str = "inv_nmse"
    optimizer: str = "lm"
    gradient: str = "exact"
    max_iterations: int = 8
    n_starts: int = 0
    map: Map = field(default=map, repr=False, compare=False)

    def settings(self) -> dict[str, Any]:
        """Return its numbers, for results; a grammar of one's own as its rules."""
        shown = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "map"}
        own = None if self.grammar is None else {"name": self.grammar.name, "rules": str(self.grammar)}
        return shown | {"grammar": own}

    def regress(self, task: Task) -> list[Candidate]:
        """Grow the best of the task's candidates at its slots; the best expression found, alone."""
        return _Round(self, task).go()

    def grammar_of(self, task: Task) -> Grammar:
        """Return the grammar of a round: of the variables, only those that the task allows."""
        if self.grammar is not None:
            unknown = [column for column in sorted(self.grammar.variables) if column >= task.n_vars]
            if unknown:
                raise GrammarError(f"the grammar names x{unknown[0] + 1}, the problem has {task.n_vars} variables")
            return self.grammar.restricted(task.columns)
        return Grammar.from_operators(task.function_set, task.columns, self.coefficients)


class _Round:
    """One task: its data, the search tree of the round, that of the present climb, and the best so far."""

    def __init__(self, regressor: MctsRegressor, task: Task) -> None:
        self.regressor, self.task = regressor, task
        self.rng = random.Random()
        self.best: Fit | None = None
        self.climbed: Fit | None = None
        self.price = math.inf
        """The best of the present climb, nodes having a price, and its price."""
        self.base: MaskedTree | None = None
        self.waiting: list[int] = []
        """The expression that a climb has come to, and those of its slots that have not had their turn."""
        self.entered, self.until = np.inf, 0
        """Price of `climbed` when it was last gone on from, and roll-outs at which the present tree's turn ends."""
        self.grammar = regressor.grammar_of(task)
        # An open constant of one's own grammar may stand where its start symbol may not.
        self.climbs = regressor.climb if regressor.grammar is None else 0
        own = task.candidates[0] if task.candidates and task.candidates[0].slots else None
        self.largest = len(own or ()) + 4 * regressor.max_size
        """Nodes beyond which an expression is not climbed from."""
        self.own = self.now = self._growth(own, None, {})
        if task.resume is None:
            self.data = Dataset.of(task.draw(task.rng))
            self.rng.seed(int(task.rng.integers(2**63)))
        else:
            with restoring():
                self._restore(task.resume)

    def _growth(self, form: MaskedTree | None, slots: list[int] | None, rewards: dict[int, float]) -> _Growth:
        """Return a new search tree: from `form`, with `slots` of it (default: all) open, or from nothing."""
        regressor = self.regressor
        n_open = 1 if form is None else len(form.slots if slots is None else slots)
        size = regressor.max_size if slots is None else regressor.climb_size
        least = self.grammar.shortest(regressor.max_depth, regressor.nesting)[self.grammar.start][-1][0]
        at_least = n_open * int(min(least, regressor.max_size))  # the slots themselves
        limits = Limits(size + at_least, regressor.max_depth, regressor.nesting)
        deriver = Deriver(self.grammar, limits, regressor.leaf_share, regressor.stay)
        tree = SearchTree.of(deriver.begin(form, slots))
        tree.rewards = rewards
        return _Growth(slots, deriver, tree)

    def go(self) -> list[Candidate]:
        """Search until the target is reached, the budget used up, or every expression met."""
        if self.task.resume is None:
            self._evaluate(list(self.task.candidates))  # what is finished may be the answer
            self._own_turn()
        while not self._over():
            self._grow()
            if self.now is self.own and (not self.climbs or self._own_is_done()):
                break
            if not self._over():
                self._climb()
        if self.best is None:
            return []
        return [replace(Candidate.of(self.best), tree=self.best.trees[0])]

    def _own_is_done(self) -> bool:
        """Whether the round's tree has nothing left to try, meets nothing new, or has had all that is wanted of it."""
        tree = self.own.tree
        cheap = self.task.effort == "cheap" and tree.rollouts >= 2 * self.climbs
        return tree.closed[0] or tree.stale >= MAX_STALE or cheap

    def _grow(self) -> None:
        """Let the present search tree grow for its turn."""
        regressor, now = self.regressor, self.now
        mcts(
            now.tree,
            now.deriver,
            self._evaluate,
            self.rng,
            c=regressor.c,
            n_sim=regressor.n_sim,
            max_nodes=regressor.max_nodes,
            max_stale=MAX_STALE,
            stop=lambda: self._over() or bool(self.climbs and now.tree.rollouts >= self.until),
            tell=self._tell,
        )

    def _climb(self) -> None:
        """Grow the best expression at one of its open constants after the other; then go on from what came out best.

        Where nothing came out better, the round's own tree goes on.
        """
        if not self.waiting:
            better = self.price < self.entered - 0.01
            self.entered = self.price
            base = fold(self.climbed.trees[0], frozen=False) if self.climbed is not None and better else None
            if base is None or not base.slots or len(base) > self.largest:
                self._own_turn()
                return
            self.base, self.waiting = base, list(base.slots)
        self.now = self._growth(self.base, [self.waiting.pop(0)], self.now.tree.rewards)
        self.until = self.climbs

    def _own_turn(self) -> None:
        """Let the round's own tree grow; what it finds is where the next climb begins."""
        self.own.tree.rewards = self.now.tree.rewards
        self.now, self.climbed, self.price, self.entered, self.waiting = self.own, None, math.inf, math.inf, []
        self.until = self.own.tree.rollouts + self.climbs

    def _over(self) -> bool:
        return self._solved() or self.task.budget.used_up() is not None

    def _solved(self) -> bool:
        return self.best is not None and self.best.error <= self.task.target

    def _evaluate(self, trees: list[MaskedTree]) -> Sequence[float | None]:
        """Fit the expressions, remember the best, and return their rewards."""
        rewards: list[float | None] = []
        slow = self.regressor.optimizer != "lm" and self.task.budget.seconds_left() is not None
        few = self.task.budget.evaluations_left() < MANY * CHUNK
        size = 1 if slow or few else CHUNK  # a slow fit may take all the time there is, a few all evaluations
        for begin in range(0, len(trees), size):
            if self.best is not None and self.task.budget.used_up() is not None:
                return [*rewards, *[None] * (len(trees) - begin)]
            for first in self.regressor.map(self._fit(), trees[begin : begin + size]):
                left = self.task.budget.evaluations_left() if self.regressor.optimizer == "lm" else 0
                outcome = fitted_on(first, self.data, self.best, left)
                self.task.budget.count(outcome.evaluations)
                error = outcome.error
                self._offer(outcome, error)
                rewards.append(self._reward(error))
        return rewards

    def _fit(self) -> Callable[[MaskedTree], Fit]:
        """Return what fits one expression; it can be sent to another process."""
        regressor = self.regressor
        return partial(
            fit,
            trials=self.data,
            optimizer=regressor.optimizer,
            gradient=regressor.gradient,
            n_starts=regressor.n_starts,
            max_iterations=regressor.max_iterations,
            time_limit=None if regressor.optimizer == "lm" else self.task.budget.seconds_left(),
        )

    def _offer(self, outcome: Fit, error: float) -> None:
        """Keep what fits best; of two that fit, the shorter one."""
        if not math.isfinite(error):
            return
        rank = max(error, self.task.target), len(outcome.tree)
        if self.best is None or rank < (max(self.best.error, self.task.target), len(self.best.tree)):
            self.best = outcome
        if math.log10(max(error, 1e-30)) < self.price:  # or it is not worth a closer look
            price = _price(outcome)
            if price < self.price:
                self.climbed, self.price = outcome, price

    def _reward(self, error: float) -> float:
        error = error if math.isfinite(error) else math.inf
        if self.regressor.reward == "inv_nmse":
            return 1.0 / (1.0 + error)
        return -float(min(error, 1.0) * np.var(self.data.y))

    # --- progress and checkpoints ---

    def _tell(self, tree: SearchTree) -> None:
        if self.best is not None:
            self.task.tell(self.best.error, self.best.trees[0], self._state)

    def _state(self) -> dict[str, Any]:
        now = self.now
        climb = None if now is self.own else {"base": tree_state(self.base or ()), "slots": now.slots}
        return {
            "random": self.rng.getstate(),
            "data": data_state(self.data),
            "own": search_state(self.own.tree),
            "climb": None if climb is None else climb | {"search": search_state(now.tree)},
            "rewards": list(now.tree.rewards.items()),
            "waiting": self.waiting,
            "numbers": [self.entered, self.until],
            "best": fit_state(self.best),
            "climbed": fit_state(self.climbed),
        }

    def _restore(self, saved: dict[str, Any]) -> None:
        state = checked(saved, RoundState, "")
        version, numbers, gauss = state["random"]
        self.rng.setstate((version, tuple(numbers), gauss))
        self.data = data_from(state["data"], self.task.n_vars, state["data"]["weight"])
        (self.entered, self.until), self.waiting = state["numbers"], state["waiting"]
        self.best, self.climbed = fit_from(state["best"]), fit_from(state["climbed"])
        self.price = math.inf if self.climbed is None else _price(self.climbed)
        self.own.restore(state["own"])
        climb = state["climb"]
        if climb is not None:
            self.base = tree_from(climb["base"])
            slots = set(self.base.slots)
            expect({*climb["slots"], *self.waiting} <= slots, "slots of the expression that is climbed from")
            self.now = self._growth(self.base, climb["slots"], {})
            self.now.restore(climb["search"])
        self.now.tree.rewards = dict(state["rewards"])
        known = [outcome.tree for outcome in (self.best, self.climbed) if outcome is not None]
        check_trees([*known, *([] if self.base is None else [self.base])], self.task.n_vars)


@dataclass
class _Growth:
    """A search tree, and which slots of the form that it grows from are open; None: all."""

    slots: list[int] | None
    deriver: Deriver
    tree: SearchTree

    def restore(self, state: TreeState) -> None:
        """Take over a search tree that a checkpoint has kept."""
        self.tree = search_from(state, self.deriver, self.tree.derivations[0])


def _price(outcome: Fit) -> float:
    """Return the decades of an error and what nodes cost: of two that fit about as well, the simpler one.

    Constants within functions, such as phases, make an expression flexible long before it is right.
    """
    inner = sum(
        inside > 0 and is_open(node) for node, inside in zip(outcome.tree, functions_around(outcome.tree), strict=True)
    )
    return math.log10(max(outcome.error, 1e-30)) + NODE_PRICE * len(outcome.tree) + INNER_PRICE * inner
