"""A picture of a search tree that a person can read; needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfg_mcts.search import SearchTree
from deap_vsr.plot import figure_of
from deap_vsr.tree.notation import infix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Characters of a form in a box.
MAX_TEXT = 30


def plot_tree(tree: SearchTree, max_nodes: int = 24) -> Figure:
    """Draw the most visited nodes, from the root on the left: form, visits, mean reward as colour.

    Closed nodes have a grey frame; a node with children that are not drawn says how many.
    """
    shown = _most_visited(tree, max_nodes)
    rows = _rows(tree, shown)
    depth = {0: 0}
    for node in sorted(shown):
        for child in tree.graph.successors(node):
            depth[child] = depth[node] + 1
    width = max(depth[node] for node in shown) + 1
    height = max(rows.values()) + 1
    figure = figure_of(1.0 + 2.6 * width, 1.2 + 0.42 * height)
    axis = figure.subplots()
    means = [tree.mean(node) for node in shown]
    low, high = min(means), max(*means, min(means) + 1e-9)
    for node in shown:
        for child in tree.graph.successors(node):
            if child in rows:
                axis.plot([depth[node], depth[child]], [-rows[node], -rows[child]], color="#bbbbbb", lw=1, zorder=1)
    for node in shown:
        share = (tree.mean(node) - low) / (high - low)
        frame = "#999999" if tree.closed[node] else "#205080"
        axis.text(
            depth[node], -rows[node], _label(tree, node, rows), ha="center", va="center", fontsize=7, zorder=2,
            bbox={"boxstyle": "round", "fc": (1.0, 1.0 - 0.55 * share, 1.0 - 0.9 * share), "ec": frame},
        )  # fmt: skip
    axis.set_xlim(-0.6, width - 0.4)
    axis.set_ylim(-height + 0.4, 0.8)
    axis.set_axis_off()
    axis.set_title(
        f"{len(shown)} of {len(tree.derivations)} nodes, {tree.rollouts} roll-outs; "
        f"mean reward from {low:.2f} (white) to {high:.2f} (orange); grey frame: nothing left to try",
        fontsize=8,
    )
    return figure


def _most_visited(tree: SearchTree, max_nodes: int) -> list[int]:
    """Return the nodes to draw: the most visited, each with its parent."""
    shown, border = [0], list(tree.graph.successors(0))
    while border and len(shown) < max_nodes:
        best = max(border, key=lambda node: (tree.visits[node], -node))
        border.remove(best)
        shown.append(best)
        border += tree.graph.successors(best)
    return shown


def _rows(tree: SearchTree, shown: list[int]) -> dict[int, float]:
    """Return the row of each node: leaves one below the other, parents in the middle of their children."""
    rows: dict[int, float] = {}
    kept, free = set(shown), 0
    pending = [(0, False)]
    while pending:
        node, done = pending.pop()
        children = [child for child in tree.graph.successors(node) if child in kept]
        if not children:
            rows[node] = free
            free += 1
        elif done:
            rows[node] = sum(rows[child] for child in children) / len(children)
        else:
            pending.append((node, True))
            pending += [(child, False) for child in reversed(children)]
    return rows


def _label(tree: SearchTree, node: int, rows: dict[int, float]) -> str:
    text = infix(tree.derivations[node].form, skeleton=True)
    text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
    hidden = sum(child not in rows for child in tree.graph.successors(node))
    more = f", +{hidden}" if hidden else ""
    return f"{text}\n{tree.visits[node]} visits, {tree.mean(node):.2f}{more}"
