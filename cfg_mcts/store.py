"""Search trees as files: what a checkpoint holds, GraphML and JSON for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

import networkx as nx

from cfg_mcts.derivation import Derivation, Deriver
from cfg_mcts.search import SearchTree
from deap_vsr.errors import VsrError
from deap_vsr.search.checkpoint import expect
from deap_vsr.search.schema import Count, FitState, WeightedData
from deap_vsr.search.schema import TreeState as FormulaState
from deap_vsr.tree.notation import infix


class TreeState(TypedDict):
    """A search tree in a checkpoint."""

    nodes: list[tuple[Count, str]]
    edges: list[tuple[Count, Count]]
    visits: list[Count]
    totals: list[float]
    own_visits: list[Count]
    closed: list[bool]
    rollouts: Count
    stale: Count
    free: list[Count]


class ClimbState(TypedDict):
    """The tree of a climb: the expression that it grows, which of its slots, and the tree."""

    base: FormulaState
    slots: list[Count]
    search: TreeState


class RoundState(TypedDict):
    """What a round of tree search keeps in a checkpoint."""

    random: tuple[int, list[Count], float | None]
    data: WeightedData
    own: TreeState
    climb: ClimbState | None
    rewards: list[tuple[int, float]]
    waiting: list[Count]
    numbers: tuple[float, int]
    best: FitState | None
    climbed: FitState | None


def search_state(tree: SearchTree) -> dict[str, Any]:
    """Return a search tree in JSON values, but for the rewards of expressions, which several trees may share."""
    return {
        "nodes": list(tree.graph.nodes(data="rule")),
        "edges": list(tree.graph.edges),
        "visits": tree.visits,
        "totals": tree.totals,
        "own_visits": tree.own_visits,
        "closed": tree.closed,
        "rollouts": tree.rollouts,
        "stale": tree.stale,
        "free": tree.free,
    }


def search_from(state: TreeState, deriver: Deriver, start: Derivation) -> SearchTree:
    """Return the search tree that :func:`search_state` wrote; derivations are derived again, rule by rule."""
    tree = SearchTree.of(start)
    rules = {str(rule): rule for rule in deriver.grammar.rules}
    for node, rule in state["nodes"]:  # in the same order: children are chosen in it
        tree.graph.add_node(node, rule=rule)
    tree.graph.add_edges_from(state["edges"])
    _check(state, tree.graph)
    for parent, child in nx.bfs_edges(tree.graph, 0):
        tree.derivations[child] = deriver.apply(tree.derivations[parent], rules[tree.graph.nodes[child]["rule"]])
    tree.visits, tree.totals, tree.own_visits = state["visits"], state["totals"], state["own_visits"]
    tree.closed, tree.free = state["closed"], state["free"]
    tree.rollouts, tree.stale = state["rollouts"], state["stale"]
    return tree


def _check(state: TreeState, graph: nx.DiGraph[int]) -> None:
    """Raise DamagedError unless it is a tree whose root is 0, and has numbers for each of its nodes."""
    numbers = {node for node, _ in state["nodes"]}
    expect(len(numbers) == len(state["nodes"]) == len(graph), "each node of the search tree once")
    is_tree = graph.in_degree(0) == 0 and len(state["edges"]) == len(graph) - 1 and nx.is_weakly_connected(graph)
    expect(is_tree and all(degree <= 1 for _, degree in graph.in_degree), "edges of the search tree that make a tree")
    size = len(state["visits"])
    sizes = {len(state["totals"]), len(state["own_visits"]), len(state["closed"])}
    expect(sizes == {size}, "as many visits as totals, own_visits and closed")
    every = sorted(numbers) + sorted(state["free"])
    expect(sorted(every) == list(range(size)), "each number of a node once, in the search tree or free")


def as_graph(tree: SearchTree) -> nx.DiGraph[int]:
    """Return the tree as a graph whose nodes know rule, form, visits, mean_reward, closed and finished."""
    graph: nx.DiGraph[int] = tree.graph.copy()
    for node, derivation in tree.derivations.items():
        graph.nodes[node].update(
            form=infix(derivation.form, skeleton=True),
            visits=tree.visits[node],
            own_visits=tree.own_visits[node],
            mean_reward=tree.mean(node),
            closed=tree.closed[node],
            finished=derivation.finished,
        )
    return graph


def save_tree(tree: SearchTree, path: str | Path) -> None:
    """Write the tree as GraphML (``.graphml``) or as networkx's node-link JSON (``.json``)."""
    path = Path(path)
    if path.suffix not in (".graphml", ".json"):
        raise VsrError(
            f"{path}: a search tree is written as .graphml or .json, not {path.suffix or 'without a suffix'}"
        )
    graph = as_graph(tree)
    try:
        if path.suffix == ".graphml":
            nx.write_graphml(graph, path)
        else:
            path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")), encoding="utf-8")
    except OSError as error:
        raise VsrError(f"{path}: cannot write: {error.strerror}") from None
