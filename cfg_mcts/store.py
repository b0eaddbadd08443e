"""Search trees as files: what a checkpoint holds, GraphML and JSON for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx

from cfg_mcts.derivation import Derivation, Deriver
from cfg_mcts.search import SearchTree
from deap_vsr.errors import VsrError
from deap_vsr.tree.notation import infix


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


def search_from(state: dict[str, Any], deriver: Deriver, start: Derivation) -> SearchTree:
    """Return the search tree that :func:`search_state` wrote; derivations are derived again, rule by rule."""
    tree = SearchTree.of(start)
    rules = {str(rule): rule for rule in deriver.grammar.rules}
    for node, rule in state["nodes"]:  # in the same order: children are chosen in it
        tree.graph.add_node(node, rule=rule)
    tree.graph.add_edges_from(map(tuple, state["edges"]))
    for parent, child in nx.bfs_edges(tree.graph, 0):
        tree.derivations[child] = deriver.apply(tree.derivations[parent], rules[tree.graph.nodes[child]["rule"]])
    tree.visits, tree.totals, tree.own_visits = state["visits"], state["totals"], state["own_visits"]
    tree.closed, tree.rollouts, tree.stale, tree.free = (
        state[name] for name in ("closed", "rollouts", "stale", "free")
    )
    return tree


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
