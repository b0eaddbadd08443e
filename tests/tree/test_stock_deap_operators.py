"""Stock DEAP operators on masked trees: flags go where their nodes go, frozen constants keep their values."""

import copy
import functools
import operator
import pickle
import random
from collections import Counter

import numpy as np
import pytest
from deap import base, creator, gp, tools
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ALL_OPERATORS, frozen, keys, masked_at_random, subtrees

from deap_vsr.tree import Constant, FrozenPrimitive, FrozenTerminal, MaskedTree, is_ephemeral, is_mutable, primitive_set

seeds = st.integers(0, 2**32 - 1)


def if_then_else(condition, yes, no):
    return yes if condition else no


def typed_set():
    """A set of floats and booleans, as in DEAP's spam example."""
    pset = gp.PrimitiveSetTyped("typed", [float, float, bool], float)
    pset.renameArguments(ARG0="speed")
    for function in (operator.add, operator.mul):
        pset.addPrimitive(function, [float, float], float)
    pset.addPrimitive(operator.neg, [float], float)
    pset.addPrimitive(operator.lt, [float, float], bool)
    pset.addPrimitive(operator.and_, [bool, bool], bool)
    pset.addPrimitive(operator.not_, [bool], bool)
    pset.addPrimitive(if_then_else, [bool, float, float], float)
    pset.addEphemeralConstant("typed_number", functools.partial(random.uniform, -9, 9), float)
    pset.addTerminal(False, bool)
    pset.addTerminal(True, bool)
    pset.addTerminal(2.5, float, name="ratio")
    return pset


def tutorial_set():
    pset = gp.PrimitiveSet("main", 1)
    pset.renameArguments(ARG0="x")
    pset.addPrimitive(operator.add, 2)
    pset.addPrimitive(operator.sub, 2)
    pset.addPrimitive(operator.neg, 1)
    pset.addPrimitive(np.sin, 1, name="sine")
    pset.addEphemeralConstant("rand101", functools.partial(random.randint, -1, 1))
    pset.addTerminal(3.14)
    return pset


SETS = {
    "catalogue": primitive_set([*ALL_OPERATORS, "const"], 3),
    "catalogue typed": primitive_set([*ALL_OPERATORS, "const"], 3, typed=True),
    "typed": typed_set(),
    "tutorial": tutorial_set(),
}
set_names = st.sampled_from(sorted(SETS))


def grown(pset, rng):
    """Return a random tree over `pset` with a random mask; some constants as fitting leaves them."""
    tree = masked_at_random(gp.genHalfAndHalf(pset, 1, 4), rng)
    if rng.random() < 0.5:
        tree = tree.with_constants([rng.uniform(-1e3, 1e3) for _ in tree.constants])
    return tree


def well_typed(tree, pset):
    """Whether every operand has the type that its parent asks for."""
    wanted = [pset.ret]
    for node in tree:
        if not issubclass(node.ret, wanted.pop()):
            return False
        wanted.extend(reversed(node.args) if node.arity else ())
    return not wanted


def only_one_subtree_differs(parent, child):
    """Whether `child` is `parent` with one sub-tree replaced, every other node being kept."""
    before, after = keys(parent), keys(child)
    for place in subtrees(parent):
        tail = len(parent) - place.stop
        if before[: place.start] == after[: place.start] and before[place.stop :] == after[len(after) - tail :]:
            middle = child[place.start : len(child) - tail]
            if middle and sum(node.arity - 1 for node in middle) == -1:
                return True
    return False


CROSSOVERS = {
    "cxOnePoint": gp.cxOnePoint,
    "cxOnePointLeafBiased": functools.partial(gp.cxOnePointLeafBiased, termpb=0.3),
}


@pytest.mark.parametrize("name", CROSSOVERS)
@given(set_names, seeds)
@settings(max_examples=1500)
def test_crossover_moves_flags_with_their_nodes(name, set_name, seed):
    random.seed(seed)
    rng = random.Random(seed)
    pset = SETS[set_name]
    parents = grown(pset, rng), grown(pset, rng)
    nodes, stiff = [Counter(keys([*parents[0], *parents[1]])), frozen([*parents[0], *parents[1]])]
    before = [keys(parent) for parent in parents]
    copies = [copy.deepcopy(parent) for parent in parents]
    children = CROSSOVERS[name](*copies)
    assert Counter(keys([*children[0], *children[1]])) == nodes
    assert frozen([*children[0], *children[1]]) == stiff
    for parent, child, was in zip(parents, children, before, strict=True):
        assert type(child) is MaskedTree
        assert len(child.mask) == len(child.checked())
        assert well_typed(child, pset)
        assert only_one_subtree_differs(parent, child)
        assert keys(parent) == was  # the deep copies share nodes with their parents


def mutations(pset):
    expression = functools.partial(gp.genFull, min_=0, max_=2)
    return {
        "mutUniform": functools.partial(gp.mutUniform, expr=expression, pset=pset),
        "mutNodeReplacement": functools.partial(gp.mutNodeReplacement, pset=pset),
        "mutEphemeral one": functools.partial(gp.mutEphemeral, mode="one"),
        "mutEphemeral all": functools.partial(gp.mutEphemeral, mode="all"),
        "mutInsert": functools.partial(gp.mutInsert, pset=pset),
        "mutShrink": gp.mutShrink,
    }


@pytest.mark.parametrize("name", list(mutations(None)))
@given(set_names, seeds)
@settings(max_examples=1000)
def test_mutation_moves_flags_with_their_nodes(name, set_name, seed):
    random.seed(seed)
    rng = random.Random(seed)
    pset = SETS[set_name]
    parent = grown(pset, rng)
    before = keys(parent)
    (child,) = mutations(pset)[name](copy.deepcopy(parent))
    assert keys(parent) == before
    assert type(child) is MaskedTree
    assert len(child.mask) == len(child.checked())
    assert well_typed(child, pset)
    # New material is mutable, so that no frozen node can appear from nowhere.
    assert not frozen(child) - frozen(parent)
    if name == "mutEphemeral all" or name == "mutEphemeral one":
        changed = [i for i, (old, new) in enumerate(zip(parent, child, strict=True)) if old is not new]
        assert all(is_ephemeral(parent[i]) for i in changed)
        assert frozen(child) == frozen(parent)
        assert child.mask == parent.mask
    elif name == "mutInsert":
        assert not Counter(before) - Counter(keys(child))
        assert frozen(child) == frozen(parent)
    elif name == "mutShrink":
        assert not Counter(keys(child)) - Counter(before)
    elif name == "mutNodeReplacement":
        assert sum(old is not new for old, new in zip(parent, child, strict=True)) <= 1
    if not name.startswith("mutEphemeral all"):
        assert only_one_subtree_differs(parent, child)


@given(set_names, seeds, st.sampled_from(["mate", "mutUniform", "mutInsert"]), st.sampled_from(["height", "len"]))
@settings(max_examples=2000)
def test_static_limit_keeps_masks_and_frozen_nodes(set_name, seed, name, measure):
    random.seed(seed)
    rng = random.Random(seed)
    pset = SETS[set_name]
    limit = gp.staticLimit(operator.attrgetter("height"), 4) if measure == "height" else gp.staticLimit(len, 12)
    parents = [grown(pset, rng) for _ in range(2 if name == "mate" else 1)]
    before = [keys(parent) for parent in parents]
    vary = limit(gp.cxOnePoint if name == "mate" else mutations(pset)[name])
    children = vary(*(copy.deepcopy(parent) for parent in parents))
    stiff = sum(map(frozen, parents), Counter())
    for child in children:
        assert type(child) is MaskedTree
        assert len(child.mask) == len(child.checked())
        assert well_typed(child, pset)
        assert not frozen(child) - stiff
        if (child.height > 4) if measure == "height" else (len(child) > 12):
            assert keys(child) in before  # a parent that was too large itself
    assert [keys(parent) for parent in parents] == before


@given(set_names, seeds)
@settings(max_examples=300)
def test_frozen_constants_keep_their_values_through_a_long_chain_of_operators(set_name, seed):
    random.seed(seed)
    rng = random.Random(seed)
    pset = SETS[set_name]
    population = [grown(pset, rng) for _ in range(4)]
    values = {node.value for tree in population for node in tree if isinstance(node, Constant) and not node.mutable}
    operators = list(mutations(pset).values())
    for _ in range(15):
        i, j = rng.sample(range(4), 2)
        population[i], population[j] = gp.staticLimit(len, 60)(gp.cxOnePoint)(population[i], population[j])
        rng.choice(operators)(rng.choice(population))
        copied = [copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))]
        population = [rng.choice(copied)(tree) for tree in population]
    left = {node.value for tree in population for node in tree if isinstance(node, Constant) and not node.mutable}
    assert left <= values


def test_frozen_nodes_are_of_the_frozen_classes_after_crossover():
    random.seed(11)
    rng = random.Random(11)
    seen = set()
    for _ in range(50):
        for child in gp.cxOnePoint(grown(SETS["catalogue"], rng), grown(SETS["catalogue"], rng)):
            seen.update(type(node) for node in child if not is_mutable(node))
    assert seen == {FrozenPrimitive, FrozenTerminal, Constant}


creator.create("MaskedFitness", base.Fitness, weights=(-1.0,))
creator.create("MaskedIndividual", MaskedTree, fitness=creator.MaskedFitness)


def test_creator_individual_in_a_toolbox_keeps_fitness_and_mask():
    random.seed(3)
    pset = SETS["catalogue"]
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=3)
    toolbox.register("individual", tools.initIterate, creator.MaskedIndividual, toolbox.expr)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("mate", gp.cxOnePoint)
    population = toolbox.population(n=20)
    rng = random.Random(3)
    population = [individual.with_mask([rng.random() < 0.5 for _ in individual]) for individual in population]
    for i, individual in enumerate(population):
        individual.fitness.values = (float(i),)
    for i in range(0, 20, 2):
        parents = population[i : i + 2]
        children = toolbox.mate(*map(toolbox.clone, parents))
        assert sum(map(frozen, children), Counter()) == sum(map(frozen, parents), Counter())
        assert [child.fitness.values for child in children] == [(float(i),), (float(i + 1),)]
        assert {type(child) for child in children} == {creator.MaskedIndividual}
    again = pickle.loads(pickle.dumps(population))
    assert [keys(tree) for tree in again] == [keys(tree) for tree in population]
    assert [tree.fitness.values for tree in again] == [tree.fitness.values for tree in population]
