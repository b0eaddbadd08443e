import copy
import multiprocessing
import operator
import pickle
import random

import numpy as np
import pytest
from deap import gp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import decode, frozen, key, keys, masked_at_random, subtrees, trees

from deap_vsr import tree as tree_module
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import (
    Constant,
    FrozenPrimitive,
    FrozenTerminal,
    MaskedTree,
    is_ephemeral,
    is_mutable,
    is_number,
    is_open,
    is_variable,
    node_from_name,
    primitive_set,
    variable,
    with_flag,
)

PSET = primitive_set(["add", "mul", "sin", "const"], 2)
flags = st.lists(st.booleans(), max_size=60)


def ephemeral():
    (node,) = [t for t in PSET.terminals[object] if isinstance(t, gp.MetaEphemeral)]
    return node()


# --- nodes --------------------------------------------------------------------------------


def test_mask_says_which_nodes_may_change():
    nodes = [
        node_from_name("add"),
        with_flag(node_from_name("sin"), False),
        with_flag(variable(1), False),
        Constant(2.0, fitted=True, mutable=False),
    ]
    tree = MaskedTree(nodes)
    assert isinstance(tree[1], FrozenPrimitive)
    assert isinstance(tree[2], FrozenTerminal)
    assert tree.mask == [1, 0, 0, 0]


@pytest.mark.parametrize("mutable", [True, False])
def test_a_leaf_is_a_variable_or_a_number_and_an_operator_is_neither(mutable):
    nodes = [variable(1), Constant(2.0), Constant(2.0, fitted=False), ephemeral(), node_from_name("sin")]
    flagged = [with_flag(node, mutable) for node in nodes]
    assert [is_variable(node) for node in flagged] == [True, False, False, False, False]
    assert [is_number(node) for node in flagged] == [False, True, True, True, False]


def test_freezing_leaves_the_shared_node_alone():
    node = node_from_name("sin")
    assert not is_mutable(with_flag(node, False))
    assert is_mutable(node)
    assert is_mutable(node_from_name("sin"))


@given(trees(), flags)
@settings(max_examples=1000)
def test_with_mask_sets_the_flags_and_nothing_else(tree, mask):
    mask = (mask + [True] * len(tree))[: len(tree)]
    before = keys(tree)
    masked = tree.with_mask(mask)
    assert masked.mask == [int(flag) for flag in mask]
    assert masked.to_tokens() == tree.to_tokens()
    assert masked.constants == tree.constants
    assert masked.open_constants == tree.open_constants
    assert [node.ret for node in masked] == [node.ret for node in tree]
    assert keys(tree) == before
    assert keys(masked.with_mask(tree.mask)) == before


def test_mask_of_another_length_is_refused():
    with pytest.raises(ExpressionError, match="3 nodes has 2 flags"):
        MaskedTree.from_infix("x1 + x2").with_mask([1, 0])


def test_freezing_keeps_name_type_and_printed_form_of_a_users_nodes():
    pset = gp.PrimitiveSetTyped("main", [float, float], float)
    pset.renameArguments(ARG0="speed")
    pset.addPrimitive(operator.lt, [float, float], bool, name="less")
    pset.addTerminal(2.5, float, name="half_five")
    pset.addTerminal(3.5, float)
    nodes = [pset.mapping[name] for name in ("less", "speed", "half_five", "3.5")]
    for node in nodes:
        frozen_node = with_flag(node, False)
        assert not is_mutable(frozen_node)
        back = with_flag(frozen_node, True)
        assert back == node
        for other in (frozen_node, back):
            assert (other.name, other.arity, other.ret) == (node.name, node.arity, node.ret)
            assert other.format(*"ab"[: node.arity]) == node.format(*"ab"[: node.arity])


def test_ephemeral_constant_is_open_and_freezes_at_its_value():
    node = ephemeral()
    assert is_ephemeral(node)
    assert is_open(node)
    assert is_mutable(node)
    stiff = with_flag(node, False)
    assert isinstance(stiff, Constant)
    assert (stiff.value, stiff.fitted, stiff.mutable) == (node.value, True, False)


def test_constants_are_equal_when_value_and_flags_are():
    assert Constant(1.5) == Constant(1.5)
    assert hash(Constant(1.5)) == hash(Constant(1.5))
    others = [Constant(2.5), Constant(1.5, fitted=False), Constant(1.5, mutable=False), Constant(1.5, ret=float)]
    assert all(Constant(1.5) != other for other in others)
    assert Constant(1.5) != 1.5
    assert Constant(1.5) != gp.Terminal(1.5, False, object)


def test_frozen_and_ordinary_nodes_are_not_equal():
    assert with_flag(variable(1), False) != variable(1)
    assert with_flag(variable(1), False) == with_flag(variable(1), False)
    assert with_flag(node_from_name("sin"), False) != node_from_name("sin")


def test_repr_of_a_constant_shows_value_and_flags():
    assert repr(Constant(2, fitted=False)) == "Constant(2.0, fitted=False, mutable=True)"


# --- constants ----------------------------------------------------------------------------


def test_slots_are_the_open_constants_that_may_change():
    tree = MaskedTree(
        [
            node_from_name("add"),
            Constant(1.0),
            node_from_name("mul"),
            Constant(2.0, fitted=True, mutable=False),
            node_from_name("add"),
            Constant(3.0, fitted=False),
            ephemeral(),
        ]
    )
    assert tree.open_constants == [1, 3, 6]
    assert tree.slots == [1, 6]
    assert tree.n_constants == 3
    assert tree.constants == [1.0, 2.0, tree[6].value]


@given(trees(), st.randoms(use_true_random=False))
@settings(max_examples=1000)
def test_with_constants_replaces_values_and_keeps_flags(tree, rng):
    before = keys(tree)
    values = [rng.uniform(-5, 5) for _ in tree.constants]
    fitted = tree.with_constants(values)
    assert fitted.constants == values
    assert fitted.mask == tree.mask
    assert fitted.open_constants == tree.open_constants
    assert keys(tree) == before  # copies share nodes: none is edited
    assert keys(fitted.with_constants(tree.constants)) == before
    untouched = [i for i in range(len(tree)) if i not in tree.open_constants]
    assert all(fitted[i] is tree[i] for i in untouched)


def test_with_constants_takes_an_array_and_turns_ephemerals_into_constants():
    tree = MaskedTree([node_from_name("add"), ephemeral(), variable(1)])
    fitted = tree.with_constants(np.array([4.25]))
    assert fitted[1] == Constant(4.25)
    assert is_ephemeral(tree[1])


def test_wrong_number_of_constants_is_refused():
    with pytest.raises(ExpressionError, match="1 values for 2 open constants"):
        MaskedTree.from_infix("C*x1 + C").with_constants([1.0])


def test_size_and_depth_are_those_of_deap():
    tree = MaskedTree.from_infix("sin(x1 + 2)*x2")
    assert (tree.size, tree.depth) == (len(tree), tree.height) == (6, 3)


# --- list operations ----------------------------------------------------------------------

OPERATIONS = (
    "append", "insert", "extend", "delete", "delete_slice", "pop", "set_node", "set_subtree", "reverse", "plus",
    "plus_equals", "times", "sort", "copy", "deepcopy", "pickle", "rebuild", "clear_and_refill", "slice",
)  # fmt: skip


def changed(tree, operation, other, rng):
    """Return `tree` after a list operation, and the keys that it must have."""
    model = keys(tree)
    i = rng.randrange(len(tree) + 1)
    j = rng.randrange(i, len(tree) + 1)
    if operation == "append":
        tree.append(other[0])
        model.append(key(other[0]))
    elif operation == "insert":
        tree.insert(i, other[-1])
        model.insert(i, key(other[-1]))
    elif operation == "extend":
        tree.extend(other)
        model.extend(keys(other))
    elif operation == "delete" and i < len(tree) > 1:
        del tree[i]
        del model[i]
    elif operation == "delete_slice" and j - i < len(tree):
        del tree[i:j]
        del model[i:j]
    elif operation == "pop" and i < len(tree) > 1:
        assert key(tree.pop(i)) == model.pop(i)
    elif operation == "set_node" and i < len(tree):
        (new,) = [node for node in other if node.arity == tree[i].arity][:1] or [tree[i]]
        tree[i] = new
        model[i] = key(new)
    elif operation == "set_subtree" and i < len(tree):
        tree[i:j] = other
        model[i:j] = keys(other)
    elif operation == "reverse":
        tree.reverse()
        model.reverse()
    elif operation == "plus":
        tree = MaskedTree(tree + other)
        model = model + keys(other)
    elif operation == "plus_equals":
        tree += other
        model += keys(other)
    elif operation == "times" and len(tree) < 100:
        tree *= 2
        model *= 2
    elif operation == "sort":
        names = [node.name for node in tree]
        model = [model[i] for i in sorted(range(len(tree)), key=names.__getitem__)]
        tree.sort(key=operator.attrgetter("name"))
    elif operation == "copy":
        tree = copy.copy(tree)
    elif operation == "deepcopy":
        tree = copy.deepcopy(tree)
    elif operation == "pickle":
        tree = pickle.loads(pickle.dumps(tree))
    elif operation == "rebuild":
        tree = MaskedTree(tree.copy())
    elif operation == "clear_and_refill":
        nodes = list(tree)
        tree.clear()
        tree.extend(nodes)
    elif operation == "slice" and i < j:
        tree = MaskedTree(tree[i:j])
        model = model[i:j]
    return tree, model


@given(
    trees(size=30),
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.binary(max_size=12)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
@settings(max_examples=2000)
def test_mask_stays_in_step_under_any_list_operations(tree, operations, rng):
    for operation, genome in operations:
        other = decode(genome)
        before = keys(other)
        tree, model = changed(tree, operation, other, rng)
        assert isinstance(tree, MaskedTree)
        assert keys(tree) == model
        assert len(tree.mask) == len(tree)
        assert tree.mask == [int(k[2]) for k in model]
        assert keys(other) == before


@given(trees(), trees(), st.randoms(use_true_random=False))
@settings(max_examples=2000)
def test_subtree_assignment_carries_the_flags_of_both_sides(tree, other, rng):
    place = rng.choice(subtrees(tree))
    taken = rng.choice(subtrees(other))
    expected = [*keys(tree)[: place.start], *keys(other)[taken], *keys(tree)[place.stop :]]
    tree[place] = other[taken]
    assert keys(tree) == expected
    tree.checked()


@given(trees())
@settings(max_examples=1000)
def test_incomplete_subtree_cannot_be_assigned(tree):
    before = keys(tree)
    with pytest.raises(ValueError, match="incomplete subtree"):
        tree[0 : len(tree)] = [node_from_name("add"), variable(1)]
    with pytest.raises(ValueError, match="different arity"):
        tree[0] = node_from_name("sin") if tree[0].arity != 1 else variable(1)
    assert keys(tree) == before


# --- copies -------------------------------------------------------------------------------


@given(trees())
@settings(max_examples=2000)
def test_copies_and_pickles_are_equal_and_independent(tree):
    before = keys(tree)
    twins = [copy.copy(tree), copy.deepcopy(tree), MaskedTree(tree)]
    twins += [pickle.loads(pickle.dumps(tree, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    for twin in twins:
        assert type(twin) is MaskedTree
        assert keys(twin) == before
        assert twin == tree
        twin.append(variable(1))
        twin[0] = with_flag(twin[0], not is_mutable(twin[0]))
        assert keys(tree) == before


class Individual(MaskedTree):
    """What DEAP's creator makes, less the global registry."""

    def __init__(self, content):
        super().__init__(content)
        self.fitness = [1.0]


def test_deepcopy_of_a_subclass_copies_its_attributes_and_shares_no_list():
    individual = Individual(MaskedTree.from_infix("C*x1 + 2").with_mask([0, 1, 0, 1, 0]))
    individual.fitness = [3.0]
    twin = copy.deepcopy(individual)
    assert type(twin) is Individual
    assert twin.fitness == [3.0]
    assert twin.fitness is not individual.fitness
    assert keys(twin) == keys(individual)
    assert type(individual.with_mask([1] * 5)) is Individual
    assert type(individual.with_constants([2.0])) is Individual


def test_trees_keep_mask_and_constants_through_a_spawned_process():
    random.seed(5)
    rng = random.Random(5)
    sent = [masked_at_random(gp.genHalfAndHalf(PSET, 1, 4), rng) for _ in range(30)]
    sent += [decode(rng.randbytes(40)) for _ in range(30)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        masks = pool.map(operator.attrgetter("mask"), sent)
        returned = pool.map(copy.copy, sent)
        pool.close()
        pool.join()
    assert masks == [tree.mask for tree in sent]
    assert [keys(tree) for tree in returned] == [keys(tree) for tree in sent]
    assert any(frozen(tree) for tree in sent)


# --- whole expressions --------------------------------------------------------------------


@given(trees())
@settings(max_examples=500)
def test_complete_expression_is_accepted_and_any_cut_or_longer_one_refused(tree):
    assert tree.checked() is tree
    with pytest.raises(ExpressionError, match="incomplete"):
        MaskedTree(tree[:-1]).checked()
    with pytest.raises(ExpressionError, match="extra token"):
        MaskedTree([*tree, variable(1)]).checked()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "incomplete"),
        ([("add", "binary"), ("x1", "var")], "incomplete"),
        ([("x1", "var"), ("x2", "var")], "extra token"),
        ([("x0", "var")], "unknown variable"),
        ([("x01", "var")], "unknown variable"),
        ([("y", "var")], "unknown variable"),
        ([("x1\n", "var")], "unknown variable"),
        ([("one", "const")], "not a number"),
        ([("", "const")], "not a number"),
        ([("add", "unary"), ("x1", "var")], "is binary"),
        ([("sin", "binary"), ("x1", "var"), ("x1", "var")], "is unary"),
        ([("sinus", "unary"), ("x1", "var")], "unknown operator"),
        ([("x1", "variable")], "unknown kind"),
        ([("add", ""), ("x1", "var"), ("x1", "var")], "unknown kind"),
    ],
)
def test_bad_tokens_are_refused_by_name(tokens, message):
    with pytest.raises(ExpressionError, match=message):
        MaskedTree.from_tokens(tokens)


def test_variable_with_thousands_of_digits_is_refused():
    with pytest.raises(ExpressionError):
        MaskedTree.from_tokens([("x" + "9" * 5000, "var")])


def test_tokens_give_literals_but_for_open_constants():
    tree = MaskedTree.from_tokens([("add", "binary"), ("C", "const"), ("2.5", "const")])
    assert tree[1] == Constant(1.0)
    assert tree[2] == Constant(2.5, fitted=False)
    assert tree.mask == [1, 1, 1]


def test_tokens_may_use_aliases():
    tree = MaskedTree.from_tokens([("ln", "unary"), ("+", "binary"), ("x1", "var"), ("x2", "var")])
    assert tree.to_tokens() == [("log", "unary"), ("add", "binary"), ("x1", "var"), ("x2", "var")]


def test_class_methods_give_the_subclass():
    for tree in (
        Individual.from_infix("x1 + 1"),
        Individual.from_tokens([("x1", "var")]),
        Individual.from_sympy(MaskedTree.from_infix("x1 + 1").to_sympy()),
        Individual.from_networkx(MaskedTree.from_infix("x1 + 1").to_networkx()),
    ):
        assert type(tree) is Individual


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"), (-2.0, "-2"), (0.0, "0"), (-0.0, "-0.0"), (0.1, "0.1"), (1e15, "1000000000000000"), (1e16, "1e+16"),
        (1e-5, "1e-05"), (float("inf"), "inf"), (float("-inf"), "-inf"), (float("nan"), "nan"), (5e-324, "5e-324"),
    ],
)  # fmt: skip
def test_number_is_printed_shortly(value, text):
    assert tree_module.format_number(value) == text


@given(st.floats())
@settings(max_examples=1000)
def test_printed_number_reads_back_as_itself(value):
    assert repr(float(tree_module.format_number(value))) == repr(value)


def test_variables_and_catalogue_nodes_are_shared():
    assert variable(3) is variable(3)
    assert node_from_name("ln") is node_from_name("log")
