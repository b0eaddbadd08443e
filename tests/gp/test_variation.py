import functools
import operator
import random
from collections import Counter

import pytest
from deap import gp
from strategies import frozen, masked_at_random

from deap_vsr import primitive_set, variation
from deap_vsr.tree import Constant, MaskedTree, is_mutable

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
