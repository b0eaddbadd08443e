"""The four phases: what each does to the search tree, and what holds of it at all times."""

import json
import math
import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfg_mcts import Deriver, Grammar, Limits, SearchTree, mcts, plot_tree, save_tree
from cfg_mcts.search import backpropagate, close, expand, prune, select, simulate
from cfg_mcts.store import as_graph, search_from, search_state
from deap_vsr import VsrError
from deap_vsr.tree.simplify import skeleton_key

GRAMMAR = Grammar.from_operators(["add", "mul", "sin", "const"], [0, 1])
SMALL = Grammar.from_text("A -> A + B | B\nB -> x1 | C")


def reward(tree):
    """Any bounded number that depends on the form alone."""
    return (skeleton_key(tree, chains=True) % 1_000) / 1_000


def searched(grammar=GRAMMAR, rollouts=1_000, seed=0, size=9, asked=None, **options):
    deriver = Deriver(grammar, Limits(size, 6, 1))
    tree = SearchTree.of(deriver.begin())

    def evaluate(trees):
        if asked is not None:
            asked.extend(trees)
        return [reward(one) for one in trees]

    options = {"stop": lambda: tree.rollouts >= rollouts} | options
    mcts(tree, deriver, evaluate, random.Random(seed), **options)
    return tree, deriver


def check(tree):
    """Visits and rewards add up at every node; nothing is open below a closed node."""
    for node in tree.graph.nodes:
        children = tree.children(node)
        assert tree.visits[node] == tree.own_visits[node] + sum(tree.visits[child] for child in children)
        if tree.closed[node] and children:
            assert all(tree.closed[child] for child in children)
        assert 0.0 <= tree.mean(node) <= 1.0
    assert tree.visits[0] == tree.rollouts
    assert nx.is_arborescence(tree.graph)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**20), st.integers(100, 1_500), st.sampled_from([0.0, 0.5, 2.0]), st.integers(1, 12))
def test_visits_of_a_node_are_its_own_and_its_children_s(seed, rollouts, c, n_sim):
    tree, _ = searched(seed=seed, rollouts=rollouts, c=c, n_sim=n_sim)
    check(tree)


def test_mean_rewards_are_exact():
    deriver = Deriver(GRAMMAR, Limits(7, 6, 1))
    tree = SearchTree.of(deriver.begin())
    seen = {}
    for step in range(30):
        path = select(tree, 1.0)
        for child in expand(tree, path[-1], deriver):
            values = [reward(one) for one in simulate(tree, child, deriver, 5, random.Random(step))]
            backpropagate(tree, (*path, child), values)
            for node in (*path, child):
                seen.setdefault(node, []).extend(values)
        close(tree, path)
    for node, values in seen.items():
        assert tree.visits[node] == len(values)
        assert math.isclose(tree.mean(node), math.fsum(values) / len(values), rel_tol=1e-13)


def test_selection_follows_the_upper_confidence_bound():
    deriver = Deriver(SMALL, Limits(5, 6, 1))
    tree = SearchTree.of(deriver.begin())
    first, second = expand(tree, 0, deriver)
    backpropagate(tree, (0, first), [0.5] * 10)
    backpropagate(tree, (0, second), [0.4] * 2)
    bounds = {node: tree.mean(node) + 1.0 * math.sqrt(math.log(12) / tree.visits[node]) for node in (first, second)}
    assert select(tree, 1.0) == (0, max(bounds, key=bounds.get)) == (0, second)
    assert select(tree, 0.0) == (0, first)
    tree.closed[first] = True
    assert select(tree, 0.0) == (0, second)


def test_a_child_is_added_for_every_rule_and_a_finished_one_is_its_own_sample():
    deriver = Deriver(SMALL, Limits(5, 6, 1))
    tree = SearchTree.of(deriver.begin())
    children = expand(tree, 0, deriver)
    assert [tree.graph.nodes[child]["rule"] for child in children] == ["A -> A + B", "A -> B"]
    leaves = expand(tree, children[1], deriver)
    samples = [simulate(tree, leaf, deriver, 10, random.Random(0)) for leaf in leaves]
    assert [[one.to_infix(skeleton=True) for one in sample] for sample in samples] == [["x1"], ["C"]]
    assert len(simulate(tree, children[0], deriver, 10, random.Random(0))) == 10


def test_a_finite_language_is_searched_to_its_end_and_no_further():
    asked = []
    tree, _ = searched(SMALL, rollouts=10**9, size=5, asked=asked)
    assert tree.closed[0]
    check(tree)
    language = {skeleton_key(nodes, chains=True) for nodes in SMALL.expressions(5)}
    assert {skeleton_key(one, chains=True) for one in asked} == language == set(tree.rewards)


def test_expressions_that_are_equal_are_evaluated_once():
    asked = []
    tree, _ = searched(asked=asked, rollouts=3_000)
    keys = [skeleton_key(one, chains=True) for one in asked]
    assert len(keys) == len(set(keys))
    assert tree.rollouts > 2 * len(keys)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x1 + (x2 + C)", "C + x2 + x1", True),
        ("x1*(x2*C)", "C*x1*x2", True),
        ("C + x1 + C", "x1 + C", True),
        ("sin(C)*x1", "x1*C", False),
        ("exp(C)*x1", "x1*C", False),
        ("-C*x1", "x1*C", True),
        ("inv(C)*x1", "x1*C", True),
        ("x1 - x2", "x2 - x1", False),
        ("x1 + x2*C", "(x1 + x2)*C", False),
        ("sin(x1)", "sin(x2)", False),
    ],
)
def test_forms_are_equal_whatever_the_order_of_rules(one, other, same):
    from deap_vsr import MaskedTree

    keys = [skeleton_key(MaskedTree.from_infix(text), chains=True) for text in (one, other)]
    assert (keys[0] == keys[1]) == same


def test_the_best_rules_are_visited_most():
    """Rewarded is what begins with sin."""
    deriver = Deriver(GRAMMAR, Limits(9, 6, 1))
    tree = SearchTree.of(deriver.begin())
    mcts(
        tree,
        deriver,
        lambda trees: [float(one[0].name == "sin") for one in trees],
        random.Random(0),
        c=0.3,
        stop=lambda: tree.rollouts > 3_000,
    )
    rules = {tree.graph.nodes[child]["rule"]: tree.visits[child] for child in tree.children(0)}
    assert rules["A -> sin(A)"] > 0.8 * tree.rollouts


def test_a_search_without_time_left_changes_nothing_that_is_counted():
    deriver = Deriver(GRAMMAR)
    tree = SearchTree.of(deriver.begin())
    mcts(tree, deriver, lambda trees: [0.5, *[None] * (len(trees) - 1)], random.Random(0))
    assert tree.rollouts == tree.visits[0] == 0
    assert list(tree.graph.nodes) == [0]
    mcts(tree, deriver, lambda trees: [0.5] * len(trees), random.Random(0), stop=lambda: tree.rollouts > 300)
    check(tree)


def test_pruning_keeps_to_the_limit_and_loses_no_visit():
    tree, deriver = searched(rollouts=4_000, max_nodes=60, n_sim=2)
    check(tree)
    assert len(tree.derivations) <= 60 + 10  # a search prunes after an expansion
    assert set(tree.derivations) == set(tree.graph.nodes)
    assert len(tree.visits) <= 100  # numbers are used again
    before = [tree.visits[0], tree.totals[0]]
    prune(tree, 20)
    check(tree)
    assert [tree.visits[0], tree.totals[0]] == before
    mcts(tree, deriver, lambda t: list(map(reward, t)), random.Random(1), stop=lambda: tree.rollouts >= 6_000)
    check(tree)


def test_a_search_ends_when_nothing_new_is_met():
    grammar = Grammar.from_text("A -> A + A | x1")  # few forms, very many derivations
    tree, _ = searched(grammar, rollouts=10**9, size=15, max_stale=500)
    assert not tree.closed[0]
    assert tree.stale >= 500


def test_a_pruned_tree_goes_on_from_what_was_kept_of_it():
    tree, deriver = searched(rollouts=3_000, max_nodes=60, n_sim=2)
    kept = json.loads(json.dumps(search_state(tree)))
    again = search_from(kept, deriver, deriver.begin())
    again.rewards = dict(tree.rewards)
    for one in (tree, again):
        mcts(
            one,
            deriver,
            lambda t: list(map(reward, t)),
            random.Random(2),
            max_nodes=60,
            stop=lambda one=one: one.rollouts >= 4_000,
        )
    assert search_state(again) == search_state(tree)


def test_the_same_seed_gives_the_same_tree():
    states = [json.dumps(search_state(searched(seed=7)[0])) for _ in range(2)]
    assert states[0] == states[1]


def test_a_tree_goes_on_from_what_was_kept_of_it():
    whole, _ = searched(seed=3, rollouts=1_200)
    rng = random.Random(3)
    deriver = Deriver(GRAMMAR, Limits(9, 6, 1))
    half = SearchTree.of(deriver.begin())
    mcts(half, deriver, lambda t: list(map(reward, t)), rng, stop=lambda: half.rollouts >= 500)
    kept = json.loads(json.dumps(search_state(half)))
    assert kept["edges"]
    again = search_from(kept, deriver, deriver.begin())
    mcts(again, deriver, lambda t: list(map(reward, t)), rng, stop=lambda: again.rollouts >= 1_200)
    assert search_state(again) == search_state(whole)


def test_trees_are_written_as_graphml_and_json(tmp_path):
    tree, _ = searched()
    graph = as_graph(tree)
    for name in ("tree.graphml", "tree.json"):
        save_tree(tree, tmp_path / name)
    read = nx.read_graphml(tmp_path / "tree.graphml", node_type=int)
    linked = nx.node_link_graph(json.loads((tmp_path / "tree.json").read_text()), edges="edges")
    for copy in (read, linked):
        assert set(copy.edges) == set(graph.edges)
        assert copy.nodes[0]["visits"] == tree.visits[0]
        assert copy.nodes[1]["form"] == graph.nodes[1]["form"]
    with pytest.raises(VsrError, match=r"as .graphml or .json, not .txt"):
        save_tree(tree, tmp_path / "tree.txt")
    with pytest.raises(VsrError, match="cannot write"):
        save_tree(tree, tmp_path / "no" / "tree.json")


def test_the_picture_shows_the_most_visited_nodes():
    tree, _ = searched()
    axis = plot_tree(tree, max_nodes=10).axes[0]
    labels = [text.get_text() for text in axis.texts]
    assert len(labels) == 10
    assert labels[0].startswith("A\n1")
    assert f"10 of {len(tree.derivations)} nodes" in axis.get_title()
    assert plot_tree(SearchTree.of(Deriver(SMALL).begin())).axes[0].texts
