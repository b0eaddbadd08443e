"""Grammars: what they accept, how many expressions they have, and derivations that stay within their language."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfg_mcts import Deriver, Grammar, GrammarError, Limits, Rule
from cfg_mcts.derivation import functions_around
from cfg_mcts.grammar import NonTerminal, first_open, is_function, nonterminal
from deap_vsr import MaskedTree
from deap_vsr.tree import Constant, node_from_name, variable

POWERS = """
# products of powers
A -> C * P
P -> P * P | V | V**2 | sqrt(V)
   | inv(V)
V -> x1 | x2
"""

BODIES = ["A + B", "A * A", "sin(B)", "B - x1", "x1", "C", "inv(A)", "x2**2", "exp(B) + C", "A", "B", "2.5*x1"]


@st.composite
def grammars(draw):
    """Grammars of one or two non-terminals that come to an end and never turn into themselves."""
    text = []
    heads = draw(st.sampled_from([("A",), ("A", "B")]))
    for place, head in enumerate(heads):
        later = heads[place + 1 :]
        usable = [b for b in BODIES if b not in ("A", "B") or b in later]
        usable = [b for b in usable if "B" in heads or "B" not in b]
        chosen = draw(st.lists(st.sampled_from(usable), min_size=1, max_size=5, unique=True))
        text.append(f"{head} -> {' | '.join([*chosen, 'x3'])}")
    return Grammar.from_text("\n".join(text))


def texts(expressions):
    return [MaskedTree(nodes).checked().to_infix(skeleton=True) for nodes in expressions]


# --- making one ---------------------------------------------------------------------------


def test_the_grammar_of_an_operator_set_has_a_rule_for_each_operator_variable_and_constant():
    grammar = Grammar.from_operators(["add", "mul", "sin", "const"], [0, 2])
    assert str(grammar) == "A -> A + A | A*A | sin(A) | x1 | x3 | C"
    assert Grammar.from_operators(["add"], [0]).count(3) == [0, 1, 0, 1]  # no const, no C
    assert str(Grammar.from_operators(["add"], [])) == "A -> A + A | C"


def test_coefficient_leaves_are_an_option_and_called_by_their_name():
    plain, named = (Grammar.from_operators(["add", "mul", "sin", "const"], [0], flag) for flag in (False, True))
    assert "C*" not in str(plain)
    assert str(named) == "A -> A + A | A*A | C*x1 | C*sin(x1) | C"
    assert (plain.name, named.name) == ("operators", "coefficient leaves")


def test_text_is_read_with_comments_and_lines_that_go_on():
    grammar = Grammar.from_text(POWERS)
    assert str(grammar) == "A -> C*P\nP -> P*P | V | V**2 | sqrt(V) | inv(V)\nV -> x1 | x2"
    assert grammar.start == "A"
    assert str(Grammar.from_text(str(grammar))) == str(grammar)


def test_rules_can_be_written_in_python():
    body = (node_from_name("mul"), nonterminal("A"), Constant(1.0))
    grammar = Grammar([Rule("A", body), Rule("A", (variable(1),))])
    assert texts(grammar.expressions(5)) == ["x1*C*C", "x1*C", "x1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: found no rule; expected `A -> A"),
        ("A", "line 1, column 2: found ''; expected `->`"),
        ("A = x1", "line 1, column 3: found .= x1.; expected `->`"),
        ("\n\na -> x1", "line 3, column 1: found 'a'; expected a non-terminal: a capitalised name"),
        ("C -> x1", "line 1, column 1: found 'C'; expected a non-terminal.*not C, which is a constant"),
        ("A -> ", "line 1, column 5: found nothing; expected a formula"),
        ("A -> x1 |", "line 1, column 10: found nothing"),
        ("A -> x1\n  || x2", "line 2, column 4: found nothing"),
        ("| x1", r"line 1, column 1: found `\|` before any rule"),
        ("A -> x1 | A + B", "line 1, column 15: unknown name 'B'.*expected a formula of A, x1"),
        ("A -> x1\nB -> sin(x1, x2)", "line 2, column 6: sin takes 1 operand"),
        ("A -> x1 | foo(x1)", "line 1, column 11: unknown operator 'foo'"),
        ("A -> x1 $ 2", r"line 1, column 9: '\$' does not belong"),
        ("A -> (x1", "line 1, column 6: not a formula"),
        ("A -> x1 if 1 else A", "line 1, column 6: IfExp does not belong"),
        ("A -> __import__('os')", "line 1, column 17"),
        ("A -> sin(A)", "non-terminal A never comes to an end"),
        ("A -> B | x1\nB -> B + B", "non-terminal B never comes to an end"),
        ("A -> B | x1\nB -> A", "can turn into itself"),
        ("A -> A | x1", "can turn into itself"),
    ],
)  # fmt: skip
def test_a_faulty_grammar_is_refused_with_its_place_and_what_was_expected(text, message):
    with pytest.raises(GrammarError, match=message):
        Grammar.from_text(text)


def test_a_file_that_is_no_grammar_is_named(tmp_path):
    with pytest.raises(GrammarError, match=r"nowhere.*cannot read the grammar"):
        Grammar.from_file(tmp_path / "nowhere")
    faulty = tmp_path / "faulty.txt"
    faulty.write_text("A -> ")
    with pytest.raises(GrammarError, match=r"faulty.txt: grammar, line 1"):
        Grammar.from_file(faulty)
    faulty.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GrammarError, match="not UTF-8"):
        Grammar.from_file(faulty)
    faulty.write_text(POWERS)
    assert Grammar.from_file(faulty).name == "faulty"


def test_a_round_keeps_only_the_rules_of_its_variables():
    grammar = Grammar.from_text("A -> B | A + A | x2 * D\nB -> x1*x3\nD -> x2 | C")
    assert str(grammar.restricted([1])) == "A -> A + A | x2*D\nD -> x2 | C"
    assert str(grammar.restricted([0, 2])) == "A -> B | A + A\nB -> x1*x3\nD -> C"
    with pytest.raises(GrammarError, match="no expression of A in x1 alone"):
        grammar.restricted([0])


# --- counting -----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(grammars(), st.integers(1, 6))
def test_counts_agree_with_enumeration(grammar, size):
    counted = grammar.count(size)
    found = Counter(len(nodes) for nodes in grammar.expressions(size))
    assert counted == [found[length] for length in range(size + 1)]


def test_the_number_of_sums_and_products_is_that_of_binary_trees():
    grammar = Grammar.from_operators(["add", "mul", "const"], [0])
    catalan = [1, 1, 2, 5, 14, 42]
    expected = [0] * 12
    for inner, shapes in enumerate(catalan):
        expected[2 * inner + 1] = shapes * 2**inner * 2 ** (inner + 1)
    assert grammar.count(11) == expected


# --- derivations --------------------------------------------------------------------------


def nesting_of(tree):
    """Return the most functions on a way from the root to a leaf."""
    deepest, pending = 0, [0]
    for node in tree:
        inside = pending.pop() + is_function(node)
        deepest = max(deepest, inside)
        pending.extend([inside] * node.arity)
    return deepest


@settings(max_examples=80, deadline=None)
@given(grammars(), st.integers(0, 2**30), st.integers(1, 9), st.integers(0, 5), st.integers(0, 2))
def test_every_completion_is_in_the_language_within_the_limits_and_evaluates(grammar, seed, size, depth, nesting):
    try:
        deriver = Deriver(grammar, Limits(size, depth, nesting))
    except GrammarError:
        assert all(
            len(tree) > size or tree.height > depth or nesting_of(tree) > nesting
            for tree in map(MaskedTree, grammar.expressions(size))
        )
        return
    language = set(texts(grammar.expressions(size))) if size <= 6 else None
    rng = random.Random(seed)
    for _ in range(20):
        tree = deriver.complete(deriver.begin(), rng)
        assert len(tree.checked()) <= size
        assert tree.height <= depth
        assert nesting_of(tree) <= nesting
        assert language is None or tree.to_infix(skeleton=True) in language
        assert tree.evaluate(np.ones((3, 3))).shape == (3,)


@settings(max_examples=60, deadline=None)
@given(grammars(), st.integers(0, 2**30))
def test_rules_applied_one_by_one_keep_the_limits_and_end_in_the_language(grammar, seed):
    deriver = Deriver(grammar, Limits(6, 6, 6))
    language = set(texts(grammar.expressions(6)))
    rng = random.Random(seed)
    derivation = deriver.begin()
    while not derivation.finished:
        rules = deriver.allowed(derivation)
        assert rules, "there is always a way to the end"
        assert sum(isinstance(node, NonTerminal) for node in derivation.form) == len(derivation.used)
        derivation = deriver.apply(derivation, rng.choice(rules))
    assert first_open(derivation.form) is None
    assert derivation.added == len(derivation.form)
    assert derivation.tree.to_infix(skeleton=True) in language


def test_every_expression_within_the_limits_can_be_derived():
    grammar = Grammar.from_operators(["add", "sin", "const"], [0])
    deriver = Deriver(grammar, Limits(5, 3, 1))
    found, pending = set(), [deriver.begin()]
    while pending:
        derivation = pending.pop()
        if derivation.finished:
            found.add(derivation.tree.to_infix(skeleton=True))
        pending += [deriver.apply(derivation, rule) for rule in deriver.allowed(derivation)]
    within = [tree for tree in map(MaskedTree, grammar.expressions(5)) if tree.height <= 3 and nesting_of(tree) <= 1]
    assert found == {tree.to_infix(skeleton=True) for tree in within}
    assert "sin(sin(x1))" not in found
    assert "sin(sin(x1))" in texts(grammar.expressions(3))


def test_a_rule_of_another_non_terminal_is_refused():
    grammar = Grammar.from_text("A -> B | x1\nB -> x2")
    deriver = Deriver(grammar)
    with pytest.raises(GrammarError, match="does not fit"):
        deriver.apply(deriver.begin(), grammar.rules[-1])


def test_slots_become_non_terminals_and_frozen_nodes_stay():
    tree = MaskedTree.from_infix("C*x1 + 0.5*sin(C)").with_mask([0, 0, 1, 0, 0, 0, 0, 1])
    deriver = Deriver(Grammar.from_operators(["add", "sin", "const"], [1]))
    start = deriver.begin(tree)
    assert [position for position, node in enumerate(start.form) if isinstance(node, NonTerminal)] == tree.slots
    grown = deriver.complete(start, random.Random(1))
    assert [node for node in grown if not node.arity and node.value in (0.5, "x1")] == [tree[3], tree[5]]
    only = deriver.begin(tree, tree.slots[1:])
    assert only.form[2] is tree[2]
    assert len(only.used) == 1


def test_functions_around_a_slot_count_unless_they_are_frozen():
    mutable = MaskedTree.from_infix("sin(x1 + C)")
    frozen = mutable.with_mask([0, 0, 0, 1])
    assert functions_around(mutable) == [0, 1, 1, 1]
    assert functions_around(frozen) == [0, 0, 0, 0]
    deriver = Deriver(Grammar.from_operators(["add", "sin", "const"], [1]), Limits(nesting=1))
    names = [{str(rule) for rule in deriver.allowed(deriver.begin(tree))} for tree in (mutable, frozen)]
    assert names[1] - names[0] == {"A -> sin(A)"}


def test_completions_are_short_more_often_than_long():
    deriver = Deriver(Grammar.from_operators(["add", "mul", "sin", "const"], [0]), leaf_share=0.6)
    rng = random.Random(0)
    sizes = [len(deriver.complete(deriver.begin(), rng)) for _ in range(2_000)]
    assert np.median(sizes) <= 3
    assert max(sizes) > 12
    assert math.isclose(np.mean(np.array(sizes) == 1), 0.6, abs_tol=0.05)


def test_slots_not_yet_reached_mostly_stay_constants():
    tree = MaskedTree.from_infix("C + C*x1 + C*x1**2").with_mask([0, 0, 1, 0, 1, 0, 0, 1, 0, 0])
    grammar = Grammar.from_operators(["add", "mul", "const"], [1])
    rng = random.Random(0)
    changed = {}
    for stay in (0.0, 0.9):
        deriver = Deriver(grammar, stay=stay)
        grown = [deriver.complete(deriver.begin(tree), rng) for _ in range(400)]
        changed[stay] = sum(str(t).count("x2") for t in grown)
    assert changed[0.9] < 0.7 * changed[0.0]
