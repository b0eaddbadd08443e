from hypothesis import given
from strategies import keys, trees

from deap_vsr.tree import MaskedTree, node_from_name, variable
from deap_vsr.tree.walk import bottom_up, operand_positions


@given(trees())
def test_putting_each_node_before_its_operands_gives_the_tree_back(tree):
    def whole(position, node, operands):
        return [node, *(item for operand in operands for item in operand)]

    assert keys(bottom_up(tree, whole)) == keys(tree)


@given(trees())
def test_every_node_is_met_once_the_last_first_and_with_as_many_operands_as_it_takes(tree):
    met = []

    def note(position, node, operands):
        met.append(position)
        assert node is tree[position]
        assert len(operands) == node.arity
        return position

    assert bottom_up(tree, note) == 0
    assert met == list(range(len(tree)))[::-1]


def test_operands_come_in_their_order():
    tree = MaskedTree.from_infix("(x1 - sin(x2))/3")
    assert bottom_up(tree, lambda position, node, operands: f"{node.name}({','.join(operands)})") == (
        "div(sub(x1(),sin(x2())),3.0())"
    )
    assert operand_positions(tree) == [[1, 5], [2, 3], [], [4], [], []]


@given(trees())
def test_operand_positions_are_where_sub_trees_begin(tree):
    for position, operands in enumerate(operand_positions(tree)):
        begin = position + 1
        for operand in operands:
            assert operand == begin
            begin = tree.searchSubtree(begin).stop


def test_depth_is_no_obstacle():
    tree = MaskedTree([node_from_name("sin")] * 20_000 + [variable(1)])
    assert bottom_up(tree, lambda position, node, operands: 1 + max(operands, default=-1)) == 20_000
    assert operand_positions(tree) == [*([i] for i in range(1, 20_001)), []]
