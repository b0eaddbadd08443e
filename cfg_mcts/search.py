"""Monte Carlo tree search over derivations: select, expand, simulate, back-propagate on a networkx tree."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from cfg_mcts.derivation import Derivation, Deriver
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import skeleton_key

#: Expressions whose rewards are remembered.
MAX_REWARDS = 500_000

#: Returns a reward for each expression, bounded; None where there was no time left for it.
Evaluate = Callable[[list[MaskedTree]], Sequence["float | None"]]


@dataclass
class SearchTree:
    """The tree of partial derivations: its structure in networkx, what changes all the time in lists beside it.

    Node 0 is the root. For node i, ``visits[i]`` roll-outs have gone through it, with rewards of ``totals[i]`` in all;
    ``own_visits[i]`` of them are no child's: those from before it was expanded, and those of children cut off since.
    A node is ``closed`` when nothing is left to be tried below it.
    """

    graph: nx.DiGraph[int]
    derivations: dict[int, Derivation]
    visits: list[int] = field(default_factory=lambda: [0])
    totals: list[float] = field(default_factory=lambda: [0.0])
    own_visits: list[int] = field(default_factory=lambda: [0])
    closed: list[bool] = field(default_factory=lambda: [False])
    rewards: dict[int, float] = field(default_factory=dict)
    """Of every expression met so far, by its form: equal ones are fitted once."""
    rollouts: int = 0
    stale: int = 0
    """Roll-outs since a form was met for the first time."""
    free: list[int] = field(default_factory=list)
    """Numbers of nodes that were cut off, to be used again."""

    @classmethod
    def of(cls, start: Derivation) -> SearchTree:
        """Return the tree of one node."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_node(0, rule="")
        return cls(graph, {0: start}, closed=[False])

    def add(self, parent: int, derivation: Derivation, rule: str) -> int:
        """Add a child and return its number."""
        if self.free:
            child = self.free.pop()
            self.visits[child], self.totals[child], self.own_visits[child], self.closed[child] = 0, 0.0, 0, False
        else:
            child = len(self.visits)
            self.visits.append(0)
            self.totals.append(0.0)
            self.own_visits.append(0)
            self.closed.append(False)
        self.graph.add_node(child, rule=rule)
        self.graph.add_edge(parent, child)
        self.derivations[child] = derivation
        return child

    def remove(self, nodes: Sequence[int]) -> None:
        """Take nodes out, whose numbers may be used again."""
        self.graph.remove_nodes_from(nodes)
        for node in nodes:
            del self.derivations[node]
        self.free += sorted(nodes, reverse=True)

    def children(self, node: int) -> list[int]:
        """Return the children of `node`, in the order of the rules."""
        return list(self.graph.successors(node))

    def mean(self, node: int) -> float:
        """Return the mean reward of the roll-outs through `node`; 0 before the first."""
        return self.totals[node] / self.visits[node] if self.visits[node] else 0.0


def mcts(
    tree: SearchTree,
    deriver: Deriver,
    evaluate: Evaluate,
    rng: random.Random,
    *,
    c: float = 1.0,
    n_sim: int = 10,
    max_nodes: int = 200_000,
    max_stale: int = 20_000,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[SearchTree], None] = lambda tree: None,
) -> None:
    """Search the expressions that the root of `tree` leads to; the tree grows in place.

    ::

        until stopped, or every expression has been met, or nothing new is met any more:
            path <- select: from the root to a leaf, by UCB
            for each rule that may come next: expand the leaf by a child
            for each child: simulate n_sim random completions, score them, and back-propagate to the root

    Parameters
    ----------
    tree : SearchTree
        ``SearchTree.of(deriver.begin())``, or what an earlier search has left, from which it goes on.
    evaluate : callable
        Returns the rewards of a list of expressions; each form is asked for once.
    c : float
        How much UCB favours what was tried less.
    n_sim : int
        Roll-outs for each new child.
    max_nodes : int
        Where the tree has more, the least visited branches are cut off; their visits and rewards stay counted.
    max_stale : int
        The search is over after so many roll-outs without a form that was not met before.
    stop, tell : called after each expansion
    """
    while not tree.closed[0] and tree.stale < max_stale and not stop():
        path = select(tree, c)
        children = expand(tree, path[-1], deriver)
        rewards = score(tree, [simulate(tree, child, deriver, n_sim, rng) for child in children], evaluate)
        if rewards is None:
            tree.remove(children)  # as if they had never been there
            break
        for child, values in zip(children, rewards, strict=True):
            backpropagate(tree, (*path, child), values)
        close(tree, path)
        if len(tree.derivations) > max_nodes:
            prune(tree, max_nodes // 2)
        tell(tree)


def select(tree: SearchTree, c: float) -> tuple[int, ...]:
    """Return the path from the root to a leaf that follows the largest upper confidence bound.

    UCB(s, a) = mean reward + c sqrt(ln N(s) / N(s, a)); closed branches are never chosen.
    """
    path = [0]
    visits, totals, closed = tree.visits, tree.totals, tree.closed
    while True:
        node = path[-1]
        best, chosen = -math.inf, -1
        reach = c * math.sqrt(math.log(max(visits[node], 1)))
        for child in tree.graph.successors(node):
            if closed[child]:
                continue
            n = visits[child]
            bound = totals[child] / n + reach / math.sqrt(n) if n else math.inf
            if bound > best:
                best, chosen = bound, child
        if chosen < 0:
            return tuple(path)
        path.append(chosen)


def expand(tree: SearchTree, leaf: int, deriver: Deriver) -> list[int]:
    """Add a child for every rule that may replace the leftmost non-terminal of `leaf`."""
    derivation = tree.derivations[leaf]
    return [tree.add(leaf, deriver.apply(derivation, rule), str(rule)) for rule in deriver.allowed(derivation)]


def simulate(tree: SearchTree, child: int, deriver: Deriver, n_sim: int, rng: random.Random) -> list[MaskedTree]:
    """Return random completions of a child; of a finished one, the expression itself."""
    derivation = tree.derivations[child]
    if derivation.finished:
        return [derivation.tree]
    return [deriver.complete(derivation, rng) for _ in range(n_sim)]


def score(tree: SearchTree, samples: Sequence[Sequence[MaskedTree]], evaluate: Evaluate) -> list[list[float]] | None:
    """Return the rewards of the samples, those met before from memory; None if there was no time for all."""
    if len(tree.rewards) > MAX_REWARDS:
        tree.rewards.clear()
    keys = [[skeleton_key(expression, chains=True) for expression in expressions] for expressions in samples]
    new: dict[int, MaskedTree] = {}
    for mine, expressions in zip(keys, samples, strict=True):
        for key, expression in zip(mine, expressions, strict=True):
            if key not in tree.rewards:
                new.setdefault(key, expression)
    if new:
        tree.stale = 0
    for key, reward in zip(new, evaluate(list(new.values())), strict=True):
        if reward is None:
            return None
        tree.rewards[key] = reward
    return [[tree.rewards[key] for key in mine] for mine in keys]


def backpropagate(tree: SearchTree, path: Sequence[int], rewards: Sequence[float]) -> None:
    """Count the rewards of the path's last node at every node of the path."""
    count, total = len(rewards), math.fsum(rewards)
    tree.rollouts += count
    tree.stale += count
    tree.own_visits[path[-1]] += count
    for node in path:
        tree.visits[node] += count
        tree.totals[node] += total


def close(tree: SearchTree, path: Sequence[int]) -> None:
    """Close finished children of the path's end, and every node of the path all of whose children are closed."""
    for child in tree.children(path[-1]):
        tree.closed[child] = tree.derivations[child].finished
    for node in reversed(path):
        if not all(tree.closed[child] for child in tree.graph.successors(node)):
            break
        tree.closed[node] = True


def prune(tree: SearchTree, keep: int) -> None:
    """Cut off closed branches, then the least visited, until at most about `keep` nodes are left.

    A node below which something was cut off is a leaf again; the visits of what went count as its own.
    """
    inner = [node for node in tree.derivations if node and tree.graph.out_degree(node)]
    for node in sorted(inner, key=lambda node: (not tree.closed[node], tree.visits[node], -node)):
        if len(tree.derivations) <= keep:
            break
        if node not in tree.derivations:
            continue
        tree.remove(list(nx.descendants(tree.graph, node)))
        tree.own_visits[node] = tree.visits[node]
