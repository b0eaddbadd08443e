"""Sums in noise: whole searches on made-up laws."""

import numpy as np
import pytest
from deap import gp

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.forms.atoms import atoms_of
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.records import State
from deap_vsr.search.sums import SumOptions, Sums
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import Constant
from deap_vsr.tree.expand import expand

TRIGONOMETRIC = ("add", "sub", "mul", "sin", "cos", "const")
QUICK = SumOptions(n_points=150, last_points=1200)
NOISE = 0.1


def law(X):
    return 2.0 * X[:, 0] * np.sin(X[:, 1]) - 1.5 * np.cos(X[:, 0]) * X[:, 2] + 0.8


#: Each term of the law as the set of its factors, and its coefficient.
TERMS = {
    frozenset({"x1", "sin(x2)"}): 2.0,
    frozenset({"cos(x1)", "x3"}): -1.5,
    frozenset(): 0.8,
}


def run(function=law, n_vars=3, function_set=TRIGONOMETRIC, seed=0, options=QUICK, order=None, queries=None, tell=None):
    oracle = CallableOracle(function, [(0.5, 3.0)] * n_vars, function_set, noise=NOISE, seed=seed)
    lab = Lab(oracle, Budget(queries=queries), np.random.default_rng(seed))
    lab.know_noise(NOISE)
    schedule = None if order is None else tuple((column,) for column in order)
    return vertical(lab, Sums(atoms_of, options), schedule, tell or (lambda news: None)), oracle, lab.budget


def terms_of(tree):
    """The terms of a sum of products, in prefix order: for each its factors as text, and its coefficient."""
    result = []
    differences = [i for i, node in enumerate(tree) if node.name == "sub"]
    for part in split(tree, 0, "add", "sub"):
        factors = split(tree, part.start, "mul")
        (number,) = [tree[f.start].value for f in factors if isinstance(tree[f.start], Constant)]
        # What a difference takes away is its second operand.
        seconds = [tree.searchSubtree(tree.searchSubtree(i + 1).stop) for i in differences]
        number *= -1.0 if part in seconds else 1.0
        rest = [f for f in factors if not isinstance(tree[f.start], Constant)]
        result.append((frozenset(MaskedTree(tree[f]).to_infix() for f in rest), number))
    return result


def split(tree, start, *names):
    """The operands of all operators of these names at the top of the subtree at `start`."""
    here = tree.searchSubtree(start)
    if tree[start].name not in names:
        return [here]
    first = gp.PrimitiveTree.searchSubtree(tree, start + 1)
    return split(tree, start + 1, *names) + split(tree, first.stop, *names)


@pytest.fixture(scope="module", params=[0, 1])
def finished(request):
    return run(seed=request.param)


def test_the_right_terms_are_found_in_noise(finished):
    found, _, _ = finished
    assert {factors for factors, _ in terms_of(found.tree)} == set(TERMS)
    assert found.stopped_by == "found"
    assert found.noise == NOISE


def test_constants_are_within_five_standard_errors_which_are_in_prefix_order(finished):
    found, _, _ = finished
    terms = terms_of(found.tree)
    assert len(found.standard_errors) == len(terms)
    for (factors, value), error in zip(terms, found.standard_errors, strict=True):
        assert 0.0 < error < 0.05
        assert abs(value - TERMS[factors]) < 5.0 * error


def test_standard_errors_are_those_of_linear_regression_on_all_points_of_the_rounds_and_the_last_fit():
    found, oracle, _ = run(lambda X: 0.5 + 2.0 * np.sin(X[:, 0]), 1)
    known = dict(zip((factors for factors, _ in terms_of(found.tree)), found.standard_errors, strict=True))
    n_points = 2 * QUICK.n_points + QUICK.last_points
    assert oracle.queries == n_points + 200
    x = np.random.default_rng(5).uniform(0.5, 3.0, 100_000)
    A = np.array([np.ones_like(x), np.sin(x)])
    expected = NOISE * np.sqrt(np.diag(np.linalg.inv(A @ A.T / len(x))) / n_points)
    assert set(known) == {frozenset(), frozenset({"sin(x1)"})}
    np.testing.assert_allclose([known[frozenset()], known[frozenset({"sin(x1)"})]], expected, rtol=0.1)


def test_the_error_on_fresh_points_is_far_below_the_noise(finished):
    found, _, _ = finished
    X = np.random.default_rng(9).uniform(0.5, 3.0, (2000, 3))
    assert np.sqrt(np.mean((found.tree.evaluate(X) - law(X)) ** 2)) < 0.1 * NOISE


def test_rounds_free_one_variable_after_the_other(finished):
    found, oracle, budget = finished
    assert [entry.freed for entry in found.rounds] == [(0,), (0, 1), (0, 1, 2)]
    assert [entry.controlled for entry in found.rounds] == [(1, 2), (2,), ()]
    assert [entry.queries for entry in found.rounds] == [450, 450, 300]
    assert oracle.queries == budget.spent["queries"] == 450 + 450 + 300 + 1200 + 200
    assert budget.evaluations > 0


def test_an_order_is_kept():
    found, _, _ = run(order=[2, 0, 1])
    assert [entry.freed for entry in found.rounds] == [(2,), (2, 0), (2, 0, 1)]
    assert {factors for factors, _ in terms_of(found.tree)} == set(TERMS)


def test_the_same_seed_gives_the_same_result():
    crooked = lambda X: 2.0437 * X[:, 0] * np.sin(X[:, 1]) + 0.8163  # noqa: E731
    first, again, other = (run(crooked, 2, seed=seed)[0] for seed in (3, 3, 4))
    assert first.tree.to_infix() == again.tree.to_infix() != other.tree.to_infix()
    assert first.standard_errors == again.standard_errors
    assert [entry.constants for entry in first.rounds] == [entry.constants for entry in again.rounds]


def test_progress_is_told_before_each_round_and_then_with_what_was_found():
    news = []
    run(tell=news.append)
    assert [item.freed for item in news] == [(0,), (0,), (0, 1), (0, 1), (0, 1, 2), (0, 1, 2)]
    assert [item.tree is not None for item in news] == [False, True] * 3


def test_a_law_that_is_no_sum_of_products_is_not_called_found():
    found, _, _ = run(lambda X: 3.0 * np.sin(4.0 * X[:, 0] * X[:, 1]), 2, ("add", "mul", "const"))
    assert found.stopped_by == "exhausted"
    assert found.hall[0][0] > 0.01


@pytest.mark.parametrize("queries", [1000, 3000, 10_000])
def test_the_limit_on_queries_is_kept(queries):
    found, oracle, _ = run(queries=queries, options=SumOptions())
    assert oracle.queries <= queries
    assert found.tree is not None
    assert found.stopped_by != "queries"


@pytest.mark.parametrize("queries", [50, 300, 500])
def test_a_small_limit_on_queries_is_kept(queries):
    _, oracle, _ = run(queries=queries, options=SumOptions())
    assert oracle.queries <= queries


def test_the_limit_on_queries_is_kept_with_many_variables():
    _, oracle, _ = run(lambda X: X @ np.linspace(1.0, 3.0, 14), 14, ("add", "mul", "const"), queries=2000)
    assert oracle.queries <= 2000


class Interrupted:
    """A law whose oracle is interrupted when it is asked for the n-th time."""

    def __init__(self, at):
        self.at = at
        self.calls = 0

    def __call__(self, X):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return law(X)


# The first point alone, three trials in each of the first two rounds, one in the third, then the last fit, the check.
@pytest.mark.parametrize(("at", "n_rounds"), [(1, 0), (4, 0), (5, 1), (7, 1), (8, 2), (9, 3), (10, 3)])
def test_an_interrupt_returns_the_best_so_far(at, n_rounds):
    found, _, _ = run(Interrupted(at))
    assert found.stopped_by == "interrupted"
    assert len(found.rounds) == n_rounds
    X = np.random.default_rng(9).uniform(0.5, 3.0, (500, 3))
    assert np.isfinite(found.tree.evaluate(X)).all()
    if n_rounds == 3:
        assert {factors for factors, _ in terms_of(found.tree)} >= {frozenset({"x1", "sin(x2)"})}
        assert np.sqrt(np.mean((found.tree.evaluate(X) - law(X)) ** 2)) < NOISE
    if n_rounds and at < 10:
        assert found.standard_errors is None
        assert found.tree.to_infix(skeleton=True) == found.rounds[-1].tree.to_infix(skeleton=True)


def test_an_interrupt_while_looking_for_the_variables_that_matter_is_caught():
    def interrupted(X):
        raise KeyboardInterrupt

    try:
        found, _, _ = run(interrupted, 14)
    except KeyboardInterrupt:  # it would end all tests
        pytest.fail("the interrupt was not caught")
    assert found.stopped_by == "interrupted"


def test_a_law_that_is_nothing_but_noise_is_a_constant():
    found, _, _ = run(lambda X: np.zeros(len(X)), 2)
    X = np.random.default_rng(9).uniform(0.5, 3.0, (50, 2))
    assert np.max(np.abs(found.tree.evaluate(X))) < NOISE


def test_only_operators_of_the_set_are_used(finished):
    found, _, _ = finished
    assert {node.name for node in found.tree if node.arity} <= set(TRIGONOMETRIC)


@pytest.mark.parametrize("function_set", [("add", "sin", "const"), ("sub", "mul", "sin", "const")])
def test_a_set_that_cannot_write_sums_of_products_is_left_to_others(function_set):
    found, _, _ = run(lambda X: 2.0 * np.sin(X[:, 0]) + X[:, 1], 2, function_set)
    assert found.tree is None
    assert found.stopped_by == "exhausted"


def test_there_is_a_standard_error_for_every_constant_that_was_fitted():
    found, _, _ = run(lambda X: 3.0 / X[:, 0] - 1.5 * X[:, 1], 2, ("add", "sub", "mul", "div", "const"))
    numbers = [node.value for node in found.tree if isinstance(node, Constant) and node.value != 1.0]
    assert len(found.standard_errors) == len(numbers)


# --- laws that are no sums ------------------------------------------------------------------


def steep(X):
    return 3.0 * np.exp(-2.0 * (X[:, 0] - 1.5) ** 2 * X[:, 1]) * X[:, 2]


def test_where_sums_leave_much_more_than_the_noise_the_search_ends_early():
    found, oracle, _ = run(steep, function_set=("add", "sub", "mul", "const"), options=SumOptions())
    assert found.stopped_by == "exhausted"
    assert len(found.rounds) == 1
    assert oracle.queries < 2_000
    assert found.tree is not None


def test_a_sum_that_leaves_more_than_the_noise_on_all_data_is_not_found():
    # y is 0 nearly everywhere: a hundred fresh points may not show that it is not.
    def spike(X):
        return 1e3 * (X[:, 0] > 2.99)

    found, *_ = run(spike, n_vars=1, options=SumOptions())
    assert found.stopped_by != "found"


def test_the_answer_for_a_law_that_is_no_sum_has_the_terms_of_the_round_that_showed_it():
    found, *_ = run(
        lambda X: 3.0 * X[:, 1] * X[:, 2] + 2.0 * np.sin(40.0 * X[:, 1]), function_set=("add", "mul", "const")
    )
    assert found.stopped_by == "exhausted"
    assert [(entry.freed, entry.accepted) for entry in found.rounds] == [((0,), True), ((0, 1), False)]
    multiplied_out = expand(found.tree, ("add", "mul", "const"))  # it may have brackets
    assert "x2*x3" in multiplied_out.to_infix()


@pytest.mark.parametrize("hopeless", [False, True])
def test_points_asked_again_do_not_make_more_terms(hopeless):
    oracle = CallableOracle(
        lambda X: np.exp(X[:, 0]) * np.cos(5.0 * X[:, 1]), [(0.5, 3.0)] * 2, TRIGONOMETRIC, noise=NOISE
    )
    lab = Lab(oracle)
    lab.know_noise(NOISE)
    lab.ask(np.repeat(lab.draw(15), 10, axis=0))
    assert Sums(atoms_of).last_look(State.start(), [0, 1], lab, hopeless).n_constants <= 3
