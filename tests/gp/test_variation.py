import functools
import operator
import random
from collections import Counter

import numpy as np
import pytest
from deap import gp
from strategies import frozen, keys, masked_at_random

from deap_vsr import Trial, primitive_set
from deap_vsr.engine import fit
from deap_vsr.gp import variation
from deap_vsr.tree import Constant, MaskedTree, is_mutable, is_open, variable

NAMES = ["add", "sub", "mul", "div", "sin", "cos", "n2", "const"]
PLAIN = primitive_set(NAMES, 3)
TYPED = primitive_set(NAMES, 3, typed=True)


def mixed_set():
    """Floats and booleans, with an operator that has no other of its kind."""
    pset = gp.PrimitiveSetTyped("mixed", [float, bool], float)
    pset.addPrimitive(operator.add, [float, float], float)
    pset.addPrimitive(operator.and_, [bool, bool], bool)
    pset.addPrimitive(operator.lt, [float, float], bool)
    pset.addPrimitive(lambda condition, a: a if condition else 0.0, [bool, float], float, name="when")
    pset.addEphemeralConstant("mixed_constant", functools.partial(random.uniform, -1, 1), float)
    pset.addTerminal(True, bool)
    return pset


MIXED = mixed_set()


def operators(pset):
    """Every operator as a function of one or two individuals that gives a list of individuals."""
    expr = functools.partial(gp.genHalfAndHalf, min_=0, max_=2)
    return {
        "cxOnePoint": (2, variation.cxOnePoint),
        "cxOnePointLeafBiased": (2, functools.partial(variation.cxOnePointLeafBiased, termpb=0.5)),
        "mutUniform": (1, functools.partial(variation.mutUniform, expr=expr, pset=pset)),
        "mutGrow": (1, functools.partial(variation.mutGrow, expr=expr, pset=pset)),
        "mutTerm": (1, functools.partial(variation.mutTerm, expr=expr, pset=pset)),
        "mutNodeReplacement": (1, functools.partial(variation.mutNodeReplacement, pset=pset)),
        "mutInsert": (1, functools.partial(variation.mutInsert, pset=pset)),
        "mutShrink": (1, variation.mutShrink),
        "mutEphemeral one": (1, functools.partial(variation.mutEphemeral, mode="one")),
        "mutEphemeral all": (1, functools.partial(variation.mutEphemeral, mode="all")),
    }


def individual(pset, rng):
    nodes = gp.genHalfAndHalf(pset, 0, 4)
    # Open constants of our own beside DEAP's ephemeral ones.
    kind = float if pset is not PLAIN else object
    nodes = [
        Constant(n.value, ret=kind) if isinstance(type(n), gp.MetaEphemeral) and rng.random() < 0.5 else n
        for n in nodes
    ]
    return masked_at_random(nodes, rng)


@pytest.mark.parametrize("name", operators(PLAIN))
@pytest.mark.parametrize("pset", [PLAIN, TYPED, MIXED], ids=["plain", "typed", "mixed types"])
def test_no_operator_changes_a_frozen_node(name, pset):
    arity, apply = operators(pset)[name]
    rng = random.Random(7)
    random.seed(7)
    for _ in range(4000):  # over 100,000 applications in all
        parents = [individual(pset, rng) for _ in range(arity)]
        before = sum((frozen(parent) for parent in parents), Counter())
        children = apply(*parents)
        assert sum((frozen(child) for child in children), Counter()) == before
        for child in children:
            child.checked()
            assert len(child.mask) == len(child)
            _check_types(child, pset)
        assert len({id(child) for child in children}) == arity


def _check_types(tree, pset):
    """Every operand has a type that its operator takes."""
    wanted = [pset.ret]
    for node in tree:
        assert issubclass(node.ret, wanted.pop())
        if node.arity:
            wanted.extend(reversed(node.args))


@pytest.mark.parametrize("name", operators(PLAIN))
def test_operators_do_change_trees_without_a_mask_and_plain_deap_trees(name):
    arity, apply = operators(PLAIN)[name]
    random.seed(3)
    for kind in (MaskedTree, gp.PrimitiveTree):
        changed = 0
        for _ in range(200):
            parents = [kind(gp.genHalfAndHalf(PLAIN, 1, 3)) for _ in range(arity)]
            before = [str(parent) for parent in parents]
            children = apply(*parents)
            assert all(type(child) is kind for child in children)
            changed += [str(child) for child in children] != before
        assert changed > 50


def test_a_tree_without_open_positions_passes_unchanged():
    random.seed(0)
    for name, (arity, apply) in operators(PLAIN).items():
        parents = [MaskedTree(gp.genFull(PLAIN, 2, 3)) for _ in range(arity)]
        parents = [parent.with_mask([0] * len(parent)) for parent in parents]
        assert [list(child) for child in apply(*parents)] == [list(parent) for parent in parents], name


def test_only_whole_open_subtrees_are_replaced():
    tree = MaskedTree.from_infix("sin(x1 + 2) + C").with_mask([1, 1, 1, 0, 1, 1])
    assert variation.open_positions(tree) == [4, 5]
    assert variation.open_positions(tree.with_mask([1] * 6)) == [0, 1, 2, 3, 4, 5]
    assert variation.open_positions(tree.with_mask([0] * 6)) == []


def test_growing_keeps_what_is_there():
    random.seed(1)
    expr = functools.partial(gp.genFull, min_=1, max_=1)
    for _ in range(100):
        tree = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
        (grown,) = variation.mutGrow(tree, expr, PLAIN)
        assert [node.name for node in grown[:2]] == ["mul", "x1"]
        assert any(isinstance(node, Constant) and node.value == 1.0 for node in grown)


def own_names():
    """A set whose addition and multiplication have names of the user's own, and an ephemeral constant."""
    pset = gp.PrimitiveSet("own names", 1)
    pset.addPrimitive(operator.add, 2, name="plus")
    pset.addPrimitive(operator.mul, 2, name="times")
    pset.addPrimitive(operator.sub, 2, name="add")  # a trap: it is the function that counts
    pset.addEphemeralConstant("own_names_constant", functools.partial(random.uniform, -1, 1))
    return pset


@pytest.mark.parametrize(
    ("pset", "names", "leaf"), [(PLAIN, ["add", "mul"], "x1"), (own_names(), ["plus", "times"], "ARG0")]
)
def test_a_term_is_added_with_a_scale_of_its_own(pset, names, leaf):
    random.seed(1)
    expr = functools.partial(gp.genFull, min_=1, max_=1)
    wrapped = 0
    for _ in range(100):
        open_tree = MaskedTree([pset.mapping["add"], pset.mapping[leaf], Constant(0.5)])
        tree = open_tree.with_mask([0, 0, 1])
        (grown,) = variation.mutTerm(tree, expr, pset)
        grown.checked()
        assert grown is tree
        # g is the slot, and becomes g + C*t.
        assert [node.name for node in grown[:3]] == ["add", leaf, names[0]]
        assert grown[3] == Constant(0.5)
        assert grown[4].name == names[1]
        assert is_open(grown[5])
        assert grown[6].arity, "the term comes from expr"
        assert grown.mask[2:] == [1] * (len(grown) - 2)
        (anywhere,) = variation.mutTerm(MaskedTree(open_tree), expr, pset)
        wrapped += anywhere[0].name == names[0] and list(anywhere[1:4]) == list(open_tree)
    assert wrapped > 10, "a whole tree may be g"


def test_a_term_that_is_not_wanted_leaves_the_fit_as_it_was():
    X = np.random.default_rng(0).uniform(0.5, 3, (30, 3))
    data = [Trial(X, 2 * X[:, 0] + np.sin(X[:, 1]))]
    random.seed(3)
    expr = functools.partial(gp.genHalfAndHalf, min_=0, max_=1)
    before = fit(MaskedTree.from_infix("C*x1"), data).errors[0]
    for _ in range(50):
        (grown,) = variation.mutTerm(MaskedTree.from_infix("C*x1 + 0").with_mask([0, 0, 0, 0, 1]), expr, PLAIN)
        assert fit(grown, data, n_starts=0).errors[0] <= before * (1 + 1e-9)


@pytest.mark.parametrize("missing", ["add", "mul", "const"])
def test_a_set_without_addition_multiplication_or_constants_is_left_to_growing(missing):
    names = [name for name in ("add", "mul", "sin", "const") if name != missing]
    pset = primitive_set(names, 2)
    expr = functools.partial(gp.genFull, min_=0, max_=1)
    random.seed(1)
    above = set()
    for _ in range(100):
        tree = MaskedTree.from_infix("sin(0.5)").with_mask([0, 1])
        (grown,) = variation.mutTerm(tree, expr, pset)
        grown.checked()
        assert grown is tree
        assert grown.mask == [0] + [1] * (len(grown) - 1)
        assert {node.name for node in grown if node.arity} <= set(names)
        assert sum(not node.arity and node.value == 0.5 for node in grown) == 1, "what is there is kept"
        above.add(grown[1].name)
    assert above == set(names) - {"const"}, "any operator of the set may be put above it"


def test_constants_are_drawn_anew_one_or_all():
    random.seed(2)
    tree = MaskedTree.from_infix("C*x1 + C*x2 + C")
    (one,) = variation.mutEphemeral(MaskedTree(tree), "one")
    assert sum(a != b for a, b in zip(one, tree, strict=True)) == 1
    (everything,) = variation.mutEphemeral(MaskedTree(tree), "all")
    assert sum(a != b for a, b in zip(everything, tree, strict=True)) == 3
    with pytest.raises(ValueError, match="mode"):
        variation.mutEphemeral(tree, "some")


def test_a_limit_hands_out_copies_never_the_same_object_twice():
    def grow(a, b):
        return MaskedTree(gp.genFull(PLAIN, 4, 4)), MaskedTree(gp.genFull(PLAIN, 4, 4))

    limited = variation.staticLimit(len, 5)(grow)
    random.seed(0)
    for _ in range(50):
        parents = MaskedTree.from_infix("x1"), MaskedTree.from_infix("x2")
        children = limited(*parents)
        assert children[0] is not children[1]
        assert all(child is not parent for child in children for parent in parents)
        assert all(len(child) <= 5 for child in children)


def test_a_child_beyond_the_limit_is_what_it_was_before():
    parents = [MaskedTree.from_infix(text) for text in ("x1*2 + sin(C)", "x2 + C")]
    parents[0] = parents[0].with_mask([0, 0, 0, 0, 1, 1])
    before = [keys(parent) for parent in parents]
    large = gp.genFull(PLAIN, 4, 4)

    def enlarge(first, second, n):
        first[first.searchSubtree(4)] = large
        second[second.searchSubtree(1)] = large if n == 2 else [variable(3)]
        return first, second

    limited = variation.staticLimit(len, 8)(enlarge)
    for n in (1, 2):
        given = [MaskedTree(parent) for parent in parents]
        children = limited(*given, n=n)
        assert [child is parent for child, parent in zip(children, given, strict=True)] == [True, True]
        assert keys(children[0]) == before[0]
        assert keys(children[1]) == before[1] if n == 2 else children[1].to_infix() == "x3 + 1"
        assert children[0] is not children[1]


def test_under_a_limit_a_child_is_that_of_the_operator_or_what_it_was_before():
    limit = variation.staticLimit(len, 8)
    random.seed(6)
    rng = random.Random(6)
    refused = 0
    for _ in range(300):
        for name, (arity, apply) in operators(PLAIN).items():
            parents = [individual(PLAIN, rng) for _ in range(arity)]
            if any(len(parent) > 8 for parent in parents):
                continue
            before = [keys(parent) for parent in parents]
            state = random.getstate()
            wanted = [keys(child) for child in apply(*(MaskedTree(parent) for parent in parents))]
            random.setstate(state)
            children = limit(apply)(*parents)
            assert len({id(child) for child in children}) == arity
            for child, was, would_be in zip(children, before, wanted, strict=True):
                refused += len(would_be) > 8
                assert keys(child) == (was if len(would_be) > 8 else would_be), name
    assert refused > 100


def test_the_same_seed_gives_the_same_children():
    def children():
        random.seed(11)
        rng = random.Random(11)
        texts = []
        for _ in range(50):
            for arity, apply in operators(TYPED).values():
                texts += [str(child) for child in apply(*(individual(TYPED, rng) for _ in range(arity)))]
        return texts

    assert children() == children()


def test_new_material_may_be_changed_later():
    random.seed(4)
    tree = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
    expr = functools.partial(gp.genFull, min_=2, max_=2)
    (grown,) = variation.mutUniform(tree, expr, PLAIN)
    assert [is_mutable(node) for node in grown] == [False, False] + [True] * (len(grown) - 2)
