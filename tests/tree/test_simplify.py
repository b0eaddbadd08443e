import math
import os
import random
import subprocess
import sys
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import reference
from deap import gp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MODERATE_NUMBERS, commuted, keys, random_tree, reassociated, trees

from deap_vsr.tree import Constant, MaskedTree, Vocabulary, is_mutable, node_from_name, variable
from deap_vsr.tree.simplify import canonical, fold, structural_hash, without_neutral

POINTS = np.random.default_rng(11).uniform(-2, 2, (5, 3))
seeds = st.integers(0, 2**32 - 1)
whole_numbers = (1.0, 2.0, 3.0, -1.0, -2.0)
SUMS_AND_PRODUCTS = ("add", "mul", "add", "mul", "sub", "sin", "n2", "div")


def is_number(node):
    return not node.arity and not isinstance(node.value, str)


def anonymous(tree):
    """Return the tokens of the canonical form with every constant called C."""
    return [("C", "const") if kind == "const" else (text, kind) for text, kind in canonical(tree).to_tokens()]


def canonical_text(text):
    return canonical(MaskedTree.from_infix(text)).to_tokens()


# --- folding ------------------------------------------------------------------------------


@given(trees())
@settings(max_examples=2000)
def test_folding_keeps_every_value(tree):
    np.testing.assert_array_equal(fold(tree).evaluate(POINTS), tree.evaluate(POINTS))


@given(trees())
@settings(max_examples=2000)
def test_no_operator_with_finite_value_is_left_over_constants_only(tree):
    folded = fold(tree)
    assert folded == fold(folded)
    assert type(folded) is MaskedTree
    for i, node in enumerate(folded):
        if not node.arity:
            continue
        part = MaskedTree(folded[folded.searchSubtree(i)])
        if all(is_number(leaf) for leaf in part[1:]):
            assert not np.isfinite(part.evaluate(POINTS[:1])[0])


@given(trees())
@settings(max_examples=1000)
def test_folding_leaves_the_tree_itself_alone(tree):
    before = keys(tree)
    fold(tree)
    canonical(tree)
    structural_hash(tree)
    assert keys(tree) == before


@pytest.mark.parametrize("flags", [(a, b, c, d) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)])
def test_folded_constant_is_open_and_mutable_if_one_of_its_parts_is(flags):
    first_open, first_mutable, second_open, second_mutable = map(bool, flags)
    tree = MaskedTree(
        [
            node_from_name("mul"),
            variable(1),
            node_from_name("add"),
            Constant(2.0, first_open, first_mutable),
            node_from_name("neg"),
            Constant(0.5, second_open, second_mutable),
        ]
    )
    assert fold(tree)[2] == Constant(1.5, first_open or second_open, first_mutable or second_mutable)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("2 + 3", "5"),
        ("x1 + 2*3", "x1 + 6"),
        ("sin(0)*x1", "0*x1"),
        ("x1**(1 + 1)", "pow(x1, 2)"),
        ("1/0 + x1", "1/0 + x1"),
        ("log(-1)*x1", "log(-1)*x1"),
        ("exp(1000) + 2*3", "exp(1000) + 6"),
        ("x1 + x2", "x1 + x2"),
        ("7", "7"),
    ],
)
def test_constants_are_folded(text, folded):
    assert fold(MaskedTree.from_infix(text)).to_infix() == folded


# --- the canonical form -------------------------------------------------------------------


@given(trees())
@settings(max_examples=2000)
def test_canonical_form_of_a_canonical_form_is_itself(tree):
    form = canonical(tree)
    again = canonical(form)
    assert again.to_tokens() == form.to_tokens()
    assert keys(again) == keys(form)


@given(trees(names=("add", "mul", "sub"), n_vars=2, numbers=(1.0, 2.0)))
@settings(max_examples=2000)
def test_canonical_form_of_sums_and_products_is_stable_with_its_flags(tree):
    form = canonical(tree)
    assert keys(canonical(form)) == keys(form)


@pytest.mark.parametrize(
    ("operator", "numbers"), [("mul", ("1e200", "1e200", "1e-200")), ("add", ("1e308", "1e308", "-1e308", "3"))]
)
def test_canonical_form_is_stable_where_constants_overflow(operator, numbers):
    # The order decides whether two of them can be folded, and the canonical form has one of its own.
    for order in permutations(numbers):
        tokens = [(operator, "binary")] * (len(order) - 1) + [(number, "const") for number in order]
        form = canonical(MaskedTree.from_tokens([("sin", "unary"), *tokens]))
        assert canonical(form).to_tokens() == form.to_tokens()


@given(trees(numbers=MODERATE_NUMBERS, size=40))
@settings(max_examples=2000)
def test_canonical_form_has_the_same_values_as_far_as_the_condition_allows(tree):
    form = canonical(tree)
    values = form.evaluate(POINTS)
    for x, value in zip(POINTS, values, strict=True):
        expected, condition, largest = reference.condition(tree, x)
        _, other_condition, _ = reference.condition(form, x)
        condition = max(condition, other_condition)
        if largest < 1e100 and condition < 1e9:
            assert value == pytest.approx(expected, rel=1e-14 * condition, abs=1e-290)


@given(trees(), seeds)
@settings(max_examples=2000)
def test_canonical_form_is_the_same_for_commuted_operands(tree, seed):
    other = MaskedTree(commuted(tree, random.Random(seed)))
    assert canonical(other).to_tokens() == canonical(tree).to_tokens()


@given(trees(names=SUMS_AND_PRODUCTS, numbers=()), seeds)
@settings(max_examples=2000)
def test_canonical_form_is_the_same_for_reassociated_operands(tree, seed):
    other = MaskedTree(reassociated(tree, random.Random(seed)))
    assert canonical(other).to_tokens() == canonical(tree).to_tokens()
    assert structural_hash(other) == structural_hash(tree)


@given(trees(names=SUMS_AND_PRODUCTS, numbers=whole_numbers, size=25), seeds)
@settings(max_examples=1000)
def test_canonical_form_is_the_same_for_reassociated_operands_among_constants(tree, seed):
    # Small whole numbers, so that the constants of a sum or product have one value in any order.
    other = MaskedTree(reassociated(tree, random.Random(seed)))
    assert [text for text, _ in canonical(other).to_tokens()] == [text for text, _ in canonical(tree).to_tokens()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x1 + x2", "x2 + x1"),
        ("x1*x2*x3", "x3*(x2*x1)"),
        ("sin(x1 + 2) + x2", "x2 + sin(2 + x1)"),
        ("2*x1 + 3*x2", "x2*3 + x1*2"),
        ("sin(2*x1) + sin(3*x1)", "sin(x1*3) + sin(x1*2)"),
        ("x1 - (x2 + x3)", "x1 - (x3 + x2)"),
        ("x1/(x2*x3*2)", "x1/(2*x3*x2)"),
        ("x1 + (2 + 3)", "5 + x1"),
        ("x1 + 2 + 3", "x1 + 5"),
        ("2*x1*3", "6*x1"),
        ("2*(x1*(3*x2))", "x1*x2*6"),
    ],
)
def test_formulas_that_differ_in_order_only_share_their_canonical_form(first, second):
    assert canonical_text(first) == canonical_text(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x1 - x2", "x2 - x1"),
        ("x1/x2", "x2/x1"),
        ("x1**x2", "x2**x1"),
        ("x1 + x2", "x1*x2"),
        ("x1", "x2"),
        ("2*x1", "3*x1"),
        ("(x1 - x2) - x3", "x1 - (x2 - x3)"),
        ("sin(x1)", "cos(x1)"),
        ("x1 + x1", "x1"),
    ],
)
def test_different_formulas_have_different_canonical_forms(first, second):
    assert canonical_text(first) != canonical_text(second)


def test_canonical_form_puts_variables_first_and_constants_last():
    assert canonical(MaskedTree.from_infix("3 + sin(x1) + x3 + x2")).to_infix() == "x2 + x3 + sin(x1) + 3"


def test_canonical_form_keeps_the_class_and_the_flag_of_each_operand():
    tree = MaskedTree.from_infix("2*x2 + x1").with_mask([1, 0, 0, 1, 0])
    form = canonical(tree)
    assert form.to_infix() == "x1 + x2*2"
    flags = {(node.name, is_mutable(node)) for node in form}
    assert flags == {(node.name, is_mutable(node)) for node in tree}


# --- the structural hash ------------------------------------------------------------------

small = trees(names=("add", "mul", "sub", "sin"), n_vars=2, numbers=(1.0, 2.0, 0.5), size=16)


@given(small, small)
@settings(max_examples=2000)
def test_hashes_are_equal_exactly_when_anonymous_canonical_forms_are(first, second):
    assert (structural_hash(first) == structural_hash(second)) == (anonymous(first) == anonymous(second))


@given(trees(), st.floats(0.1, 0.9), seeds)
@settings(max_examples=1500)
def test_hash_does_not_see_values_flags_or_the_order_of_operands(tree, value, seed):
    rng = random.Random(seed)
    # Numbers that stay apart from each other: folding must not turn finite into inf.
    folded = fold(tree)
    other = MaskedTree(
        Constant(value + i, rng.random() < 0.5) if is_number(node) else node
        for i, node in enumerate(commuted(folded, rng))
    )
    other = other.with_mask([rng.random() < 0.5 for _ in other])
    if len(fold(other)) == len(other):  # 1/0 + x1 may fold with other numbers
        assert structural_hash(other) == structural_hash(tree)
        assert anonymous(other) == anonymous(tree)


def test_random_pairs_have_equal_hashes_exactly_when_their_forms_are_equal():
    rng = random.Random(8)
    seen = {}
    equal = 0
    for _ in range(3000):
        tree = random_tree(rng, size=14, names=("add", "mul", "sin", "sub"), n_vars=2, numbers=(1.0, 2.0))
        form = repr(anonymous(tree))
        digest = structural_hash(tree)
        equal += digest in seen
        assert seen.setdefault(digest, form) == form
    assert len(set(seen.values())) == len(seen)
    assert equal > 300
    assert len(seen) > 300


def test_hash_does_not_depend_on_the_process():
    rng = random.Random(9)
    forms = [random_tree(rng, size=40) for _ in range(40)]
    program = (
        "import sys; from deap_vsr.tree import MaskedTree\n"
        "from deap_vsr.tree.simplify import canonical, structural_hash\n"
        "for line in sys.stdin:\n"
        "    tree = MaskedTree.from_infix(line)\n"
        "    print(structural_hash(tree), canonical(tree).to_infix())\n"
    )
    outputs = []
    for seed in ("0", "1", "12345"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            input="\n".join(tree.to_infix() for tree in forms),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(run.stdout.splitlines())
    assert outputs[0] == outputs[1] == outputs[2]
    assert [line.split()[0] for line in outputs[0]] == [structural_hash(tree) for tree in forms]


def test_open_constants_are_counted_the_same_before_and_after_ordering():
    tree = MaskedTree.from_infix("C*x1 + C*sin(x2) + 2")
    form = canonical(tree)
    assert form.n_constants == tree.n_constants == 2
    assert Counter(keys(form)) == Counter(keys(tree))


def test_a_user_s_own_function_is_folded_as_it_is_meant():
    pset = gp.PrimitiveSet("own", 1)
    pset.addPrimitive(math.log10, 1, name="log")
    tree = MaskedTree([pset.mapping["log"], Constant(100.0)])
    assert fold(tree, Vocabulary(pset))[0].value == pytest.approx(2.0)
    assert canonical(tree, Vocabulary(pset))[0].value == pytest.approx(2.0)
    assert fold(tree)[0].value == pytest.approx(math.log(100.0))


# --- factors of 1 and terms of 0 -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1*x1", "x1"),
        ("x1*1", "x1"),
        ("x1/1", "x1"),
        ("x1 + 0", "x1"),
        ("0 + x1", "x1"),
        ("x1 - 0", "x1"),
        ("1*1", "1"),
        ("0 + 0", "0"),
        ("1*(x1 + 0)*(1*sin(x2/1) + 0)", "x1*sin(x2)"),
        ("sin(0 + 1*x1)/(1*1)", "sin(x1)"),
        ("(x1*1 + 0)/x2", "x1/x2"),
    ],
)
def test_factors_and_divisors_of_one_and_terms_of_zero_go(text, expected):
    assert without_neutral(MaskedTree.from_infix(text)).to_infix() == expected


@pytest.mark.parametrize(
    "text", ["1/x1", "0 - x1", "x1*0", "0*x1", "x1 + 1", "1 - x1", "x1**1", "x1/0", "2*x1", "0", "1", "sin(1) + sin(0)"]
)
def test_what_is_not_neutral_stays(text):
    tree = MaskedTree.from_infix(text)
    assert without_neutral(tree) == tree


@pytest.mark.parametrize("shape", ["C*x1", "x1/C", "x1*C"])
def test_open_constants_stay_whatever_their_value(shape):
    tree = MaskedTree.from_infix(shape).with_constants([1.0])
    assert without_neutral(tree) == tree
    tree = MaskedTree.from_infix("C + x1 + (x2 - C)").with_constants([0.0, 0.0])
    assert without_neutral(tree) == tree


def neutral_bank():
    rng = random.Random(12)
    names = ("add", "sub", "mul", "div", "sin", "sqrt", "n2")
    return [random_tree(rng, 60, names=names, numbers=(1.0, 0.0, -0.0, 2.5)) for _ in range(1000)]


def test_without_neutral_nodes_values_stay():
    shorter = 0
    for tree in neutral_bank():
        short = without_neutral(tree)
        assert type(short) is MaskedTree
        assert without_neutral(short) == short
        before, after = tree.evaluate(POINTS), short.evaluate(POINTS)
        finite = np.isfinite(before) & np.isfinite(after)  # 1/(x*0 + 0) is 1/0, of either sign
        np.testing.assert_array_equal(after[finite], before[finite])
        np.testing.assert_array_equal(np.isnan(after), np.isnan(before))
        shorter += len(short) < len(tree)
    assert shorter > 100


def test_nodes_that_stay_keep_their_flags_and_open_constants_are_all_there():
    for tree in neutral_bank():
        short = without_neutral(tree)
        assert not Counter(keys(short)) - Counter(keys(tree))
        assert short.constants == tree.constants
