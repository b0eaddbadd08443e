import pickle
import random

import numpy as np
import pytest
from deap import gp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ALL_OPERATORS

from deap_vsr import primitive_set
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree, is_ephemeral
from deap_vsr.tree.operators import CATALOGUE

POINTS = np.random.default_rng(5).uniform(-3, 3, (8, 3))
SETS = {typed: primitive_set([*ALL_OPERATORS, "const"], 3, typed=typed) for typed in (False, True)}


@pytest.mark.parametrize("typed", [False, True])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=1000)
def test_generated_trees_evaluate_as_gp_compile_does(typed, seed):
    random.seed(seed)
    pset = SETS[typed]
    tree = MaskedTree(gp.genHalfAndHalf(pset, 0, 5))
    values = tree.evaluate(POINTS, pset)
    np.testing.assert_array_equal(tree.evaluate(POINTS), values)  # the catalogue and x1, x2, ... need no set
    compiled = gp.compile(tree, pset)(*POINTS.T)
    np.testing.assert_allclose(np.broadcast_to(compiled, 8), values, rtol=1e-12)


@pytest.mark.parametrize("typed", [False, True])
def test_set_holds_the_operators_arguments_and_nothing_else(typed):
    pset = primitive_set(["+", "ln", "add", "n2"], 2, name="mine", typed=typed)
    kind = float if typed else object
    assert isinstance(pset, gp.PrimitiveSetTyped)
    assert isinstance(pset, gp.PrimitiveSet) is not typed
    assert pset.name == "mine"
    assert pset.ret is kind
    assert pset.arguments == ["x1", "x2"]
    assert {p.name: (p.args, p.ret) for p in pset.primitives[kind]} == {
        "add": ([kind, kind], kind),
        "log": ([kind], kind),
        "n2": ([kind], kind),
    }
    assert [t.name for t in pset.terminals[kind]] == ["x1", "x2"]
    assert pset.context["add"] is CATALOGUE["add"]


@pytest.mark.parametrize("typed", [False, True])
def test_const_gives_ephemeral_constants_that_count_as_open(typed):
    random.seed(1)
    pset = primitive_set(["add", "const"], 1, typed=typed)
    seen = []
    for _ in range(50):
        tree = MaskedTree(gp.genFull(pset, 2, 3))
        ephemerals = [i for i, node in enumerate(tree) if is_ephemeral(node)]
        assert tree.open_constants == tree.slots == ephemerals
        assert tree.mask == [1] * len(tree)
        seen += tree.constants
    assert len(set(seen)) == len(seen) > 20
    assert all(-1 <= value <= 1 for value in seen)


def test_one_seed_of_the_standard_random_module_fixes_the_trees():
    pset = SETS[False]
    lists = []
    for _ in range(2):
        random.seed(42)
        lists.append([MaskedTree(gp.genHalfAndHalf(pset, 1, 4)).to_tokens() for _ in range(20)])
    assert lists[0] == lists[1]


def test_two_sets_with_constants_live_side_by_side():
    first, second = primitive_set(["add", "const"], 1), primitive_set(["mul", "const"], 1, typed=True)
    random.seed(2)
    for pset in (first, second):
        tree = MaskedTree(gp.genFull(pset, 3, 3))
        assert pickle.loads(pickle.dumps(tree)).to_tokens() == tree.to_tokens()


def test_set_survives_pickle():
    pset = pickle.loads(pickle.dumps(primitive_set(["add", "sin", "const"], 2)))
    tree = MaskedTree.from_string("add(sin(x1), x2)", pset)
    np.testing.assert_allclose(tree.evaluate(POINTS, pset), np.sin(POINTS[:, 0]) + POINTS[:, 1])


def test_text_of_deap_is_read_with_the_set():
    tree = MaskedTree.from_string("add(n2(x1), 2.5)", SETS[False])
    assert tree.to_infix() == "x1**2 + 2.5"


def test_unknown_operator_is_refused():
    with pytest.raises(ExpressionError, match="nonsense"):
        primitive_set(["add", "nonsense"], 1)
