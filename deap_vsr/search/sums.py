"""Sums in noise: each slot becomes a sum over simple atoms of the new variable, all slots at once.

In noise the table of a single slot tells little; all slots of a round together tell much more. A formula that is linear
in its slots stays so: the candidates of a round are what stands before each slot, alone and times every simple atom of
the new variable. At each setting of what is held a candidate has a coefficient of its own; it comes in if it lowers the
Bayesian information criterion over all settings, and goes where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.engine.program import evaluate
from deap_vsr.errors import NoValuesError
from deap_vsr.lab.criterion import NODE
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Regressor
from deap_vsr.search.finish import reopened
from deap_vsr.search.identify import without_terms
from deap_vsr.search.records import State
from deap_vsr.search.selection import MAX_TERMS, select
from deap_vsr.search.tables import NOTHING, Grown, Known
from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name
from deap_vsr.tree.expand import expand
from deap_vsr.tree.operators import Array

#: More terms for each variable are not looked for: a formula that takes more is no sum of simple
#: products. The largest benchmark programs have 3.
TERMS_A_VARIABLE = 4
#: With fewer points for each term a sum explains nothing.
POINTS_A_TERM = 5
#: With so many terms at most the last look is taken at a law that is no sum of products: as an approximation.
FEW_TERMS = 12
#: Atoms of so many nodes are simple: x, sin(x), 1/x. Others pay for each node more.
SIMPLE = 2
#: Atoms that cost more are not tried: with sin(x)/x the most.
MAX_COST = 5
#: Fewer points at a setting tell nothing about terms.
MIN_POINTS = 8


class Atom(Protocol):
    """A constant-free expression of one variable (:class:`deap_vsr.forms.atoms.Atom`)."""

    @property
    def cost(self) -> int:
        """What it costs: one for each operator and leaf, more for functions of functions."""

    def of(self, column: int) -> list[Node]:
        """Return its nodes, in the variable of `column`, from 0."""


@dataclass(frozen=True)
class SumOptions:
    """Numbers of the search for sums: settings and points of a round, atoms of a variable.

    The last look takes ``last_points`` beside all that was measured.
    """

    n_settings: int = 3
    n_points: int = 350
    last_points: int = 3000
    n_atoms: int = 10

    def within(self, queries: float, n_rounds: int, n_check: int = 0) -> SumOptions:
        """Return options for a run that may ask so many points: the same proportions of them, and of `n_check`."""
        planned = n_rounds * self.n_settings * self.n_points + self.last_points + n_check
        share = min(1.0, max(queries, 0.0) / planned)
        return SumOptions(self.n_settings, int(share * self.n_points), int(share * self.last_points), self.n_atoms)


@dataclass(frozen=True)
class Sums:
    """Every slot grown at once, into a sum over the atoms that `atoms` returns for a function set."""

    atoms: Callable[[tuple[str, ...]], Sequence[Atom]]
    options: SumOptions = field(default_factory=SumOptions)
    regressor: Regressor | None = None
    """Solves parts of one variable anew, in the end."""

    @property
    def n_starts(self) -> int:
        """Starts, beside the known ones: none, as sums are linear in their constants."""
        return 0

    def expand(
        self, states: Sequence[State], new: tuple[int, ...], lab: Lab, effort: str = "all", known: Known = NOTHING
    ) -> Iterator[list[Grown]]:
        """Yield, for the first of `states`, the sum that the criterion chooses; nothing where no sum can be written."""
        state, (column,) = states[0], new
        tree = _opened(state.tree)  # what stood still may move a little
        if not tree.n_constants or self.options.n_points < MIN_POINTS or not self.can_be_written(lab):
            return
        freed = (*state.freed, column)
        held_at = known.held_at if known.held_at is not None else lab.draw(self.options.n_settings)
        n_points = self.options.n_points * (2 if len(freed) == lab.n_vars else 1)
        try:
            trials = lab.trials(freed, len(held_at), n_points, held_at)
        except NoValuesError:
            return
        atoms = self._atoms(lab)
        choices: list[tuple[int, Atom | None]] = [(slot, None) for slot in range(tree.n_constants)]
        choices += [(slot, atom) for slot in range(tree.n_constants) for atom in atoms]
        blocks = [_block(tree, trial, [atom.of(column) for atom in atoms]) for trial in trials]
        costs = np.array([0 if atom is None else max(atom.cost - SIMPLE, 0) for _, atom in choices])
        most = min(MAX_TERMS, TERMS_A_VARIABLE * len(freed) + 1)
        chosen = _best(blocks, lab, costs, [], most)
        lab.budget.count(len(choices) * len(trials))
        grown = _grown(tree, [choices[i] for i in sorted(chosen)], column)
        yield [Grown(grown, state, np.ones((1, grown.n_constants)), held_at, data=Dataset.of(trials))]

    def can_be_written(self, lab: Lab) -> bool:
        """Whether the operators of the laboratory can write sums of products."""
        return {"add", "mul"} <= set(lab.function_set)

    def held_at(self, column: int, n_held: int, lab: Lab, closely: bool = False) -> Array:
        """Return settings of what is held; where nothing is, all settings are one."""
        return lab.draw(self.options.n_settings if n_held else 1)

    def check(self, grown: Sequence[Grown], freed: Sequence[int], lab: Lab, times: int = 1) -> Dataset | None:
        """Return the data that the sum was chosen by: terms are many, and paid for by the criterion."""
        return grown[0].data

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return the fit itself."""
        return outcome

    def last_look(self, state: State, columns: Sequence[int], lab: Lab, hopeless: bool) -> MaskedTree:
        """Return the formula with terms that all data together show to be missing, without what they do not support."""
        tree = _linear(state.tree, lab)
        trial = lab.measured()
        if tree.n_constants == 0 or not len(trial.y) or not columns:
            return state.tree
        atoms = self._atoms(lab)
        factors = [(atom.of(column), max(atom.cost - SIMPLE, 0)) for column in columns for atom in atoms]
        inside = [i for i, (nodes, _) in enumerate(factors) if _holds(state.tree, nodes)]
        pairs = {frozenset([i, j]): [i, j] for i in inside for j in range(len(factors))}
        products = [[i] for i in range(len(factors))] + list(pairs.values())
        values = evaluate([nodes for nodes, _ in factors], trial.X)
        own = _basis(tree, trial.X)
        A = np.vstack([own, [np.prod(values[product], axis=0) for product in products]])
        costs = [0] * len(own) + [sum(factors[i][1] for i in product) for product in products]
        known = _distinct(A, len(own))
        A, costs, products = A[known], [costs[i] for i in known], [products[i - len(own)] for i in known[len(own) :]]
        n_distinct = len(np.unique(trial.X, axis=0))  # points asked again tell of the noise, not of more terms
        most = FEW_TERMS if hopeless else min(MAX_TERMS, TERMS_A_VARIABLE * len(columns) + 1)
        most = min(most, max(n_distinct // POINTS_A_TERM, 2))
        block = _in_weights(_bounded(A), trial.y - _rest(tree, trial.X), trial)
        chosen = _best([block], lab, np.array(costs), list(range(len(own))), most)
        lab.budget.count(len(A))
        kept = without_terms(tree, np.array([i not in chosen for i in range(len(own))]))
        nodes: list[Node] = [] if kept is None else list(kept[0])
        for i in sorted(chosen):
            if i >= len(own):
                term: list[Node] = [Constant(1.0)]
                for factor in products[i - len(own)]:
                    term = [node_from_name("mul"), *term, *factors[factor][0]]
                nodes = [node_from_name("add"), *nodes, *term] if nodes else term
        return MaskedTree(nodes) if nodes else MaskedTree([Constant(1.0)])

    def _atoms(self, lab: Lab) -> list[Atom]:
        return [atom for atom in self.atoms(lab.function_set) if atom.cost <= MAX_COST][: self.options.n_atoms]


def _best(blocks: Sequence[tuple[Array, Array]], lab: Lab, costs: Array, start: Sequence[int], most: int) -> list[int]:
    """Return the better of two selections: among the simplest candidates, and among all.

    A greedy search that begins with a complicated atom may never come back from it.
    """
    simple = (costs == 0).tolist()
    # sin(sin(x)) is nearly sin(x): what is no simpler must explain more.
    surcharge = NODE * costs

    def best(allowed: list[bool], begin: list[int]) -> tuple[list[int], float]:
        late = lambda: lab.budget.used_up() == "seconds"  # noqa: E731
        return select(blocks, lab.evidence.noise, allowed, begin, late, most, surcharge)

    tries = [best(simple, [i for i in start if simple[i]])]
    if not all(simple):
        tries.append(best([True] * len(costs), list(start)))
        tries.append(best([True] * len(costs), tries[0][0]))
    return min(tries, key=lambda item: item[1])[0]


def _opened(tree: MaskedTree) -> MaskedTree:
    """Return the tree with frozen constants open again, where it stays linear: not those within a tied bracket."""
    nodes = list(tree)
    for position, node in enumerate(tree):
        if isinstance(node, Constant) and abs(node.value) != 1.0 and _is_coefficient(tree, nodes, position):
            nodes[position] = Constant(node.value, True, True, node.ret)
    return MaskedTree(nodes)


def _is_coefficient(tree: MaskedTree, nodes: Sequence[Node], position: int) -> bool:
    """Whether a formula is linear in a constant, also beside the open constants of `nodes`."""
    for above in range(position):
        whole = tree.searchSubtree(above)
        name = tree[above].name
        if whole.stop <= position or name in ("add", "sub"):
            continue
        first = tree.searchSubtree(above + 1)
        before = position < first.stop
        if name not in ("mul", "div") or (name == "div" and not before):
            return False
        if any(map(is_open, nodes[first.stop : whole.stop] if before else nodes[first])):
            return False
    return True


def _linear(tree: MaskedTree, lab: Lab) -> MaskedTree:
    """Return a sum of products with one open constant for each term."""
    return expand(reopened(tree), lab.function_set) or tree


def _basis(tree: MaskedTree, X: Array) -> Array:
    """Return what stands before each open constant of a tree that is linear in them: (L, n_points)."""
    L = tree.n_constants
    trees = [tree.with_constants(row) for row in np.vstack([np.eye(L), np.zeros((1, L))])]
    with np.errstate(all="ignore"):
        values = evaluate(trees, X)
        return np.asarray(values[:-1] - values[-1])


def _rest(tree: MaskedTree, X: Array) -> Array:
    """Return what a tree gives without its open constants, (n_points,)."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(tree.with_constants(np.zeros(tree.n_constants)).evaluate(X))


def _block(tree: MaskedTree, trial: Trial, atoms: Sequence[Sequence[Node]]) -> tuple[Array, Array]:
    """Return the values of all candidates of a round, each slot alone and times each atom, and what they explain."""
    basis, values = _basis(tree, trial.X), evaluate(atoms, trial.X)
    with np.errstate(all="ignore"):
        products = (basis[:, None] * values[None]).reshape(-1, len(trial.y))
    return _in_weights(_bounded(np.vstack([basis, products])), trial.y - _rest(tree, trial.X), trial)


def _in_weights(A: Array, y: Array, trial: Trial) -> tuple[Array, Array]:
    """Return candidates and what they explain as least squares takes them: each point by its weight."""
    if trial.weights is None:
        return A, y
    root = np.sqrt(trial.weights)
    return A * root, y * root


def _bounded(A: Array) -> Array:
    """Return candidates with zeros for those that are not finite, or as good as."""
    with np.errstate(all="ignore"):
        A[~(np.abs(A) < 1e12).all(axis=1)] = 0.0
    return A


def _grown(tree: MaskedTree, chosen: Sequence[tuple[int, Atom | None]], column: int) -> MaskedTree:
    """Return the tree with each slot the sum of what was chosen for it; slots with nothing go."""
    parts: dict[int, list[Node]] = {}
    for slot, atom in chosen:
        term: list[Node] = [Constant(1.0)]
        if atom is not None:
            term = [node_from_name("mul"), *term, *atom.of(column)]
        parts[slot] = [node_from_name("add"), *parts[slot], *term] if slot in parts else term
    found = without_terms(tree, np.array([slot not in parts for slot in range(tree.n_constants)]))
    if found is None:
        return MaskedTree([Constant(1.0)])
    kept, slots = found
    nodes: list[Node] = list(kept)
    for slot, position in sorted(zip(slots, kept.open_constants, strict=True), reverse=True):
        nodes[position : position + 1] = parts[slot]
    return MaskedTree(nodes)


def _holds(tree: MaskedTree, nodes: Sequence[Node]) -> bool:
    """Whether `nodes` are a sub-tree."""

    def names(of: Sequence[Node]) -> list[object]:
        return [node.name if node.arity else node.value for node in of]

    wanted, there = names(nodes), names(tree)
    return any(there[i : i + len(wanted)] == wanted for i in range(len(there) - len(wanted) + 1))


def _distinct(A: Array, n_own: int) -> list[int]:
    """Return the rows that are no multiple of another one before, of which the first `n_own` always stay."""
    with np.errstate(all="ignore"):
        probe = A[:, :: max(A.shape[1] // 16, 1)]
        units = probe / np.linalg.norm(probe, axis=1, keepdims=True)
        units *= np.where(units[:, :1] < 0, -1.0, 1.0)
    seen: set[bytes] = set()
    kept = []
    for i, row in enumerate(np.round(units, 9) + 0.0):
        key = row.tobytes()
        if i < n_own or (key not in seen and np.isfinite(row).all()):
            kept.append(i)
        seen.add(key)
    return kept
