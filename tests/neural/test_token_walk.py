"""Writing formulas: parents, siblings, forms, and every hard prior."""

import numpy as np
import pytest

from deap_vsr import MaskedTree
from deap_vsr.neural.policy import Policy, Writer, score
from deap_vsr.neural.priors import FORBIDDEN, Rules, prior_logits
from deap_vsr.neural.tokens import INVERSES, TRIGONOMETRIC, Form, Library
from deap_vsr.neural.walk import Walk
from deap_vsr.tree import is_mutable, is_number, is_open
from deap_vsr.tree.walk import operand_positions

FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "n2", "sqrt", "const")
RULES = Rules(min_length=4, max_length=25, max_constants=2)


def writer(form=None, rules=RULES, functions=FUNCTIONS, columns=(0, 1), coefficients=False):
    shape = Form.of(form)
    return Writer(Library.of(functions, columns, shape.frozen, coefficients), shape, rules)


def drawn(own, n=400, seed=0, spread=0.0):
    """Return samples of a policy that has learnt nothing, or, with `spread`, of one with random weights."""
    rng = np.random.default_rng(seed)
    policy = Policy(len(own.library), 8, rng)
    for weight in policy.weights.values():
        weight.data += spread * type(weight.data)(*weight.shape).copy_(weight.new_tensor(rng.normal(size=weight.shape)))
    return own.sample(policy, n, rng)


def trees(own, samples):
    return [own.form.tree(samples.sequence(row), own.library) for row in range(len(samples))]


# --- parents and siblings -----------------------------------------------------------------


def family(sequence, arities, empty):
    """Return parent and sibling of each token of a prefix sequence, found by recursion."""
    found = {}

    def visit(position, parent, sibling):
        found[position] = parent, sibling
        end, before = position + 1, empty
        for _ in range(arities[sequence[position]]):
            first = end
            end = visit(end, sequence[position], before)
            before = sequence[first]
        return end

    assert visit(0, empty, empty) == len(sequence)
    return [found[position] for position in range(len(sequence))]


FROZEN = MaskedTree.from_infix("x1*C + 0.25*sin(C)").with_mask([0, 0, 0, 1, 0, 0, 0, 1])


@pytest.mark.parametrize("form", [None, FROZEN])
def test_parents_and_siblings_are_those_of_a_recursive_reference(form):
    own = writer(form)
    samples = drawn(own)
    for row in range(len(samples)):
        n = samples.lengths[row]
        seen = list(zip(samples.parents[:n, row].tolist(), samples.siblings[:n, row].tolist(), strict=True))
        assert seen == family(samples.sequence(row), own.library.arities, own.library.empty)


def test_replay_shows_a_policy_what_it_saw_when_it_wrote():
    own = writer(FROZEN)
    samples = drawn(own, spread=0.5)
    again = own.replay([samples.sequence(row) for row in range(len(samples))])
    for name in ("tokens", "parents", "siblings", "priors", "free", "lengths"):
        assert np.array_equal(getattr(samples, name), getattr(again, name)), name
    assert again.legal.all()


def test_samples_side_by_side_are_those_of_both():
    own = writer()
    a, b = drawn(own, 5), drawn(own, 7, seed=1)
    both = a.joined([a, b])
    assert [both.sequence(row) for row in range(12)] == [
        *(a.sequence(row) for row in range(5)),
        *(b.sequence(row) for row in range(7)),
    ]
    assert both[np.array([6, 0])].sequence(0) == b.sequence(1)


# --- what a policy that has learnt nothing writes -----------------------------------------


def test_the_first_token_is_uniform_over_what_is_allowed():
    own = writer(rules=Rules(min_length=4, uniform_arity=False, soft_length=None))
    samples = drawn(own, 4_000)
    operators = np.flatnonzero(own.library.arities > 0)
    counts = np.bincount(samples.tokens[0], minlength=len(own.library))
    assert counts.sum() == counts[operators].sum()
    expected = len(samples) / len(operators)
    assert np.abs(counts[operators] - expected).max() < 4.5 * np.sqrt(expected)


def test_every_token_of_the_first_batch_is_uniform_over_what_is_allowed():
    own = writer(rules=Rules(min_length=4, uniform_arity=False, soft_length=None))
    samples = drawn(own, 300)
    allowed = (samples.priors > FORBIDDEN).sum(axis=2)
    assert len(set(allowed[samples.free].tolist())) > 5  # of the 13 tokens fewer and fewer
    neglogp, entropy = score(Policy(len(own.library), 8, np.random.default_rng(0)), samples, 1.0)
    expected = np.where(samples.free, np.log(np.maximum(allowed, 1)), 0.0).sum(axis=0)
    assert neglogp.detach().numpy() == pytest.approx(expected, rel=1e-5)
    assert entropy.detach().numpy() == pytest.approx(expected, rel=1e-5)


def test_with_uniform_arity_leaves_functions_and_operators_are_equally_likely():
    own = writer(rules=Rules(soft_length=None))
    samples = drawn(own, 4_000)
    arity = own.library.arities[samples.tokens[0]]
    # A constant alone is forbidden, so two of the three leaves are left.
    assert np.bincount(arity) / len(samples) == pytest.approx(np.array([2 / 3, 1, 1]) / (8 / 3), abs=0.04)


def test_a_slot_stays_a_constant_as_often_as_it_should():
    own = writer(FROZEN, rules=Rules(stay=0.6))
    samples = drawn(own, 2_000)
    stayed = [is_open(tree[3]) for tree in trees(own, samples)]
    assert np.mean(stayed) == pytest.approx(0.6, abs=0.05)


def test_something_is_written_into_one_slot_at_least():
    own = writer(FROZEN, rules=Rules(stay=0.99))
    samples = drawn(own, 200)
    assert samples.legal.all()
    assert all(len(tree) > len(FROZEN) or not all(map(is_open, (tree[3], tree[7]))) for tree in trees(own, samples))
    assert not own.replay([own.library.tokens(FROZEN)]).legal[0]


# --- hard priors --------------------------------------------------------------------------


def parents_of(tree):
    return {0: None} | {
        operand: position for position, below in enumerate(operand_positions(tree)) for operand in below
    }


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_every_sample_obeys_every_hard_prior(spread):
    own = writer()
    samples = drawn(own, 600, seed=3, spread=spread)
    assert samples.legal.all()
    forbidden_below = {*INVERSES, *(pair[::-1] for pair in INVERSES)}
    for tree in trees(own, samples):
        tree.checked()
        assert RULES.min_length <= len(tree) <= RULES.max_length
        assert tree.n_constants <= RULES.max_constants
        assert any(not node.arity and not is_number(node) for node in tree)
        parents = parents_of(tree)
        for position, node in enumerate(tree):
            above = parents[position]
            if above is not None:
                assert (tree[above].name, node.name) not in forbidden_below
            if node.arity:
                operands = [tree[operand] for operand in operand_positions(tree)[position]]
                assert not all(is_number(operand) for operand in operands)
            if node.name in TRIGONOMETRIC:
                while above is not None:
                    assert tree[above].name not in TRIGONOMETRIC
                    above = parents[above]


@pytest.mark.parametrize("coefficients", [False, True])
@pytest.mark.parametrize("columns", [(0,), (0, 1)])
def test_there_are_so_many_constants_for_each_variable(columns, coefficients):
    own = writer(rules=Rules(constants_each=1), columns=columns, coefficients=coefficients)
    written = drawn(own, 500, spread=0.5)
    constants = [own.library.constants[written.sequence(row)].sum() for row in range(len(written))]
    assert max(constants) == len(columns)


def test_frozen_nodes_are_forced_and_only_what_is_offered_is_sampled():
    own = writer(FROZEN, columns=(1,), functions=("add", "mul", "const"))
    for tree in trees(own, drawn(own, 400, spread=0.5)):
        tree.checked()
        assert [node for node in tree if not is_mutable(node)] == [node for node in FROZEN if not is_mutable(node)]
        new = [node for node in tree if is_mutable(node)]
        assert {node.name if node.arity or not is_number(node) else "C" for node in new} <= {"add", "mul", "x2", "C"}
        assert len(new) <= RULES.max_length


def test_tokens_within_all_slots_keep_to_the_length():
    own = writer(FROZEN, rules=Rules(max_length=6))
    lengths = [len(tree) - 6 for tree in trees(own, drawn(own, 500, spread=1.0))]
    assert max(lengths) == 6
    assert min(lengths) == 2


def test_a_rule_that_would_leave_nothing_is_not_applied():
    own = writer(functions=("sin",), columns=(0,), rules=Rules(min_length=4))
    for tree in trees(own, drawn(own, 20)):
        assert tree.to_infix() == "sin(x1)"


def test_illegal_and_overlong_formulas_are_seen_in_replay():
    own = writer(rules=Rules(max_length=5))
    texts = ("sin(x1)", "sin(sin(x1))", "exp(log(x1))", "C + C", "x1*x1 + x2", "x1*x1 + x2*x2")
    sequences = [own.library.tokens(MaskedTree.from_infix(text)) for text in texts]
    assert own.replay(sequences).legal.tolist() == [True, False, False, False, True, False]


# --- tokens and forms ---------------------------------------------------------------------


def test_a_form_is_what_is_frozen_with_its_slots():
    assert [node is None for node in Form.of(FROZEN).nodes] == [False] * 3 + [True] + [False] * 3 + [True]
    assert Form.of(None).fresh
    assert Form.of(MaskedTree.from_infix("C*x1")).fresh
    assert Form.of(MaskedTree.from_infix("2*x1").with_mask([0, 0, 0])).fresh


def test_a_sub_tree_that_may_change_is_a_slot():
    tree = MaskedTree.from_infix("x1*(C + x2)").with_mask([0, 0, 1, 1, 1])
    form = Form.of(tree)
    assert [node is None for node in form.nodes] == [False, False, True]
    library = Library.of(("add", "mul", "const"), (1,), form.frozen)
    again = form.tree(library.tokens(tree), library)
    assert [node.name for node in again[:3]] == [node.name for node in tree[:3]]
    assert again.to_infix(skeleton=True) == tree.to_infix(skeleton=True)


def test_coefficient_leaves_stand_for_products():
    own = writer(functions=("add", "mul", "sin", "const"), columns=(0,), coefficients=True)
    assert [name for name in own.library.names if name.startswith("C*")] == ["C*x1", "C*sin(x1)"]
    formulas = {tree.to_infix(skeleton=True) for tree in trees(own, drawn(own, 300))}
    assert any("C*sin(x1)" in formula for formula in formulas)


def test_priors_of_rows_do_not_depend_on_the_others():
    own = writer()
    walk, alone = (Walk(own.library, own.form, 25, n) for n in (3, 1))
    first = own.library.tokens(MaskedTree.from_infix("sin(x1)"))[:1]
    walk.take(np.array([first[0], own.library.names.index("add"), first[0]]))
    alone.take(np.array(first))
    many, one = (prior_logits(w.state(), own.library, own.rules) for w in (walk, alone))
    assert np.array_equal(many[0], one[0])
    assert np.array_equal(many[2], one[0])
    assert not np.array_equal(many[1], one[0])
