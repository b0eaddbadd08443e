import networkx
import pytest
from hypothesis import given, settings
from strategies import keys, trees

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import Constant, MaskedTree


def graph_of(*tokens, edges):
    """Return a graph with nodes 0, 1, ... and the edges (parent, child, position)."""
    graph = networkx.DiGraph()
    for i, (token, kind) in enumerate(tokens):
        graph.add_node(i, token=token, kind=kind, mutable=True, fitted=False)
    for parent, child, position in edges:
        graph.add_edge(parent, child, position=position)
    return graph


@given(trees())
@settings(max_examples=2000)
def test_graph_reads_back_as_the_same_tree_with_mask_and_open_constants(tree):
    again = MaskedTree.from_networkx(tree.to_networkx())
    assert keys(again) == keys(tree)
    assert again == tree


@given(trees())
@settings(max_examples=500)
def test_graph_is_a_tree_with_one_edge_to_every_operand(tree):
    graph = tree.to_networkx()
    assert networkx.is_arborescence(graph)
    assert sorted(graph) == list(range(len(tree)))
    assert [graph.out_degree(i) for i in range(len(tree))] == [node.arity for node in tree]
    assert networkx.dag_longest_path_length(graph) == tree.height
    for i in graph:
        assert sorted(graph.edges[edge]["position"] for edge in graph.out_edges(i)) == list(range(tree[i].arity))


def test_node_attributes_say_token_kind_and_flags():
    tree = MaskedTree.from_infix("C*x1").with_mask([1, 0, 1])
    graph = tree.to_networkx()
    assert graph.nodes[0] == {"token": "mul", "kind": "binary", "mutable": True, "fitted": False}
    assert graph.nodes[1] == {"token": "1", "kind": "const", "mutable": False, "fitted": True}
    assert graph.nodes[2] == {"token": "x1", "kind": "var", "mutable": True, "fitted": False}


def test_node_names_and_order_of_insertion_do_not_matter():
    tree = MaskedTree.from_infix("x1 - sin(x2)/3")
    graph = networkx.relabel_nodes(tree.to_networkx(), lambda i: f"node {9 - i}")
    shuffled = networkx.DiGraph()
    shuffled.add_nodes_from(reversed(list(graph.nodes(data=True))))
    shuffled.add_edges_from(reversed(list(graph.edges(data=True))))
    assert MaskedTree.from_networkx(shuffled) == tree


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308])
def test_odd_constants_read_back(value):
    tree = MaskedTree([Constant(value, fitted=True, mutable=False)])
    assert keys(MaskedTree.from_networkx(tree.to_networkx())) == keys(tree)


LEAF, SIN, ADD = ("x1", "var"), ("sin", "unary"), ("add", "binary")


@pytest.mark.parametrize(
    "graph",
    [
        networkx.DiGraph(),
        graph_of(LEAF, LEAF, edges=[]),
        graph_of(SIN, SIN, edges=[(0, 1, 0), (1, 0, 0)]),
        graph_of(ADD, SIN, SIN, LEAF, edges=[(0, 1, 0), (0, 2, 1), (1, 3, 0), (2, 3, 0)]),
        graph_of(ADD, LEAF, edges=[(0, 1, 0)]),
        graph_of(LEAF, LEAF, edges=[(0, 1, 0)]),
        graph_of(("sinus", "unary"), LEAF, edges=[(0, 1, 0)]),
        graph_of(("y", "var"), edges=[]),
        graph_of(("sin(x1)", "var"), edges=[]),
        graph_of(("one", "const"), edges=[]),
    ],
    ids=["empty", "two roots", "cycle", "shared leaf", "operand missing", "leaf with a child", "operator", "variable",
         "formula for a variable", "constant"],
)  # fmt: skip
def test_graph_that_is_no_expression_is_refused(graph):
    with pytest.raises(ExpressionError):
        MaskedTree.from_networkx(graph)


def test_graph_with_a_cycle_beside_the_tree_is_refused():
    # As many edges as a tree of three nodes has, and one root.
    graph = graph_of(LEAF, SIN, SIN, edges=[(1, 2, 0), (2, 1, 0)])
    with pytest.raises(ExpressionError):
        MaskedTree.from_networkx(graph)


def test_graph_with_operands_in_the_wrong_place_is_refused():
    # add has one operand and sin two; the flat list of tokens would pass for sin(x1) + x1.
    graph = graph_of(ADD, SIN, LEAF, LEAF, edges=[(0, 1, 0), (1, 2, 0), (1, 3, 1)])
    with pytest.raises(ExpressionError):
        MaskedTree.from_networkx(graph)
