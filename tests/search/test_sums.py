import itertools

import numpy as np
import pytest
from deap import gp

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.forms.noisy import NoisySettings, search_noisy
from deap_vsr.forms.selection import select
from deap_vsr.search.contract import Budget
from deap_vsr.tree import Constant

TRIGONOMETRIC = ("add", "sub", "mul", "sin", "cos", "const")
QUICK = NoisySettings(n_points=150, last_points=1200)
NOISE = 0.1


# --- selection ------------------------------------------------------------------------------


def left_by(blocks, noise, subset):
    """What a sum of the columns leaves in all blocks, in units of the noise."""
    total = 0.0
    for A, y in blocks:
        columns = A[list(subset)].T
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0] if len(subset) else y
        total += float(np.sum(rest**2)) / noise**2
    return total


def price(blocks):
    """What a term costs: a constant in each block, and that it was chosen among so many."""
    n_points = sum(len(y) for _, y in blocks) / len(blocks)
    return len(blocks) * np.log(n_points) + 2.0 * np.log(len(blocks[0][0]))


def criterion(blocks, noise, subset):
    return left_by(blocks, noise, subset) + price(blocks) * len(subset)


def best_of_all(blocks, noise, columns):
    subsets = itertools.chain.from_iterable(itertools.combinations(columns, n) for n in range(len(columns) + 1))
    return min(subsets, key=lambda subset: criterion(blocks, noise, subset))


def problem(seed, n_blocks=2, n_points=40):
    """3 to 6 columns that depend on each other somewhat, some of which make up y, weakly and strongly."""
    rng = np.random.default_rng(seed)
    n_columns = int(rng.integers(3, 7))
    true = sorted(rng.choice(n_columns, int(rng.integers(1, n_columns)), replace=False).tolist())
    mixing = np.eye(n_columns) + 0.4 * rng.standard_normal((n_columns, n_columns))
    blocks = []
    for _ in range(n_blocks):
        A = mixing @ rng.standard_normal((n_columns, n_points))
        coefficients = 0.1 * rng.standard_normal(len(true)) * 10.0 ** rng.uniform(-0.5, 1.0, len(true))
        blocks.append((A, coefficients @ A[true] + NOISE * rng.standard_normal(n_points)))
    return blocks, n_columns


def run_select(blocks, noise=NOISE, allowed=None, start=()):
    n = len(blocks[0][0])
    return select(blocks, noise, [True] * n if allowed is None else allowed, list(start))


def test_the_selection_is_nearly_always_the_best_of_all_subsets():
    seeds = range(60)
    hits = 0
    for seed in seeds:
        blocks, n = problem(seed)
        chosen, value = run_select(blocks)
        best = best_of_all(blocks, NOISE, range(n))
        assert value >= criterion(blocks, NOISE, best) - 1e-6
        hits += sorted(chosen) == sorted(best)
    assert hits >= 0.9 * len(seeds)


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_criterion_returned_is_what_is_left_and_the_price_of_the_terms(seed, n_blocks):
    blocks, _ = problem(100 + seed, n_blocks)
    chosen, value = run_select(blocks)
    assert len(set(chosen)) == len(chosen)
    assert value == pytest.approx(left_by(blocks, NOISE, chosen) + price(blocks) * len(chosen), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_single_step_from_the_selection_is_better(seed):
    blocks, n = problem(200 + seed)
    chosen, value = run_select(blocks)
    others = [i for i in range(n) if i not in chosen]
    steps = [[*chosen, i] for i in others]
    steps += [[j for j in chosen if j != i] for i in chosen]
    steps += [[i if j == out else j for j in chosen] for out in chosen for i in others]
    assert all(criterion(blocks, NOISE, step) >= value - 1e-5 for step in steps)


@pytest.mark.parametrize("seed", range(6))
def test_only_what_is_allowed_comes_in(seed):
    blocks, n = problem(300 + seed)
    allowed = [i % 2 == 0 for i in range(n)]
    chosen, value = run_select(blocks, allowed=allowed, start=range(n))
    assert all(allowed[i] for i in chosen)
    free = best_of_all(blocks, NOISE, [i for i in range(n) if allowed[i]])
    assert value >= criterion(blocks, NOISE, free) - 1e-6
    assert run_select(blocks, allowed=[False] * n) == ([], pytest.approx(left_by(blocks, NOISE, ())))


def test_terms_of_the_start_are_dropped_when_they_are_superfluous():
    rng = np.random.default_rng(5)
    blocks = []
    for c in (3.0, -2.0):
        A = rng.standard_normal((5, 60))
        blocks.append((A, c * A[3] + NOISE * rng.standard_normal(60)))
    assert best_of_all(blocks, NOISE, range(5)) == (3,)
    assert run_select(blocks, start=[0, 1, 2])[0] == [3]
    assert run_select(blocks, start=[3])[0] == [3]
    assert sorted(run_select(blocks, start=[0, 1, 2, 3, 4])[0]) == [3]


def test_the_last_term_of_the_start_is_dropped_when_there_is_nothing_but_noise():
    rng = np.random.default_rng(2)
    blocks = [(rng.standard_normal((3, 60)), NOISE * rng.standard_normal(60)) for _ in range(2)]
    assert run_select(blocks)[0] == []
    assert run_select(blocks, start=[0])[0] == []


def test_a_term_is_exchanged_for_one_that_does_better_but_is_not_worth_its_price_beside_it():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((4, 60))
    y = 2.0 * A[1] + NOISE * rng.standard_normal(60)
    A[3] = A[1] + 0.01 * rng.standard_normal(60)  # nearly as good
    blocks = [(A, y)]
    gain = left_by(blocks, NOISE, (3,)) - left_by(blocks, NOISE, (1, 3))
    assert 1.0 < gain < price(blocks)
    assert run_select(blocks, start=[3])[0] == [1]


def test_a_term_needed_in_one_block_only_comes_in():
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((2, 4, 60))
    blocks = [(A, NOISE * rng.standard_normal(60)), (B, 2.0 * B[1] + NOISE * rng.standard_normal(60))]
    assert run_select(blocks)[0] == [1]


def test_columns_that_are_zero_or_the_same_do_no_harm():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((5, 60))
    A[0] = 0.0
    A[4] = 3.0 * A[2]
    y = 2.0 * A[2] - A[3] + NOISE * rng.standard_normal(60)
    chosen, value = run_select([(A, y)])
    assert sorted(chosen) in ([2, 3], [3, 4])
    assert value == pytest.approx(criterion([(A, y)], NOISE, (2, 3)), rel=1e-6)


def test_the_scale_of_a_column_does_not_matter():
    blocks, n = problem(7)
    factors = 10.0 ** np.linspace(-8.0, 8.0, n)[:, None]
    chosen, value = run_select(blocks)
    again, same = run_select([(A * factors, y) for A, y in blocks])
    assert again == chosen
    assert same == pytest.approx(value, rel=1e-6)


def test_a_column_with_a_surcharge_must_explain_more():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((3, 60))
    A[2] = A[1] + 0.01 * rng.standard_normal(60)
    blocks = [(A, 2.0 * A[1] + NOISE * rng.standard_normal(60))]
    gain = left_by(blocks, NOISE, (2,)) - left_by(blocks, NOISE, (1,))
    assert gain > 0
    for surcharge, expected in ((0.5 * gain, [1]), (2.0 * gain, [2])):
        chosen, value = select(blocks, NOISE, [True] * 3, [], surcharge=np.array([0.0, surcharge, 0.0]))
        assert chosen == expected
        extra = surcharge if expected == [1] else 0.0
        assert value == pytest.approx(criterion(blocks, NOISE, expected) + extra)


# --- the search -----------------------------------------------------------------------------


def law(X):
    return 2.0 * X[:, 0] * np.sin(X[:, 1]) - 1.5 * np.cos(X[:, 0]) * X[:, 2] + 0.8


#: Each term of the law as the set of its factors, and its coefficient.
TERMS = {
    frozenset({"x1", "sin(x2)"}): 2.0,
    frozenset({"cos(x1)", "x3"}): -1.5,
    frozenset(): 0.8,
}


def run(function=law, n_vars=3, function_set=TRIGONOMETRIC, seed=0, settings=QUICK, queries=None, **options):
    oracle = CallableOracle(function, [(0.5, 3.0)] * n_vars, function_set, noise=NOISE, seed=seed)
    budget = Budget(oracle, queries=queries)
    outcome = search_noisy(oracle, budget, np.random.default_rng(seed), NOISE, settings, **options)
    return outcome, oracle, budget


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
    outcome, _, _ = finished
    assert {factors for factors, _ in terms_of(outcome.tree)} == set(TERMS)
    assert outcome.stopped_by == "found"
    assert outcome.noise == NOISE


def test_constants_are_within_five_standard_errors_which_are_in_prefix_order(finished):
    outcome, _, _ = finished
    terms = terms_of(outcome.tree)
    assert len(outcome.standard_errors) == len(terms)
    for (factors, value), error in zip(terms, outcome.standard_errors, strict=True):
        assert 0.0 < error < 0.05
        assert abs(value - TERMS[factors]) < 5.0 * error


def test_standard_errors_are_those_of_linear_regression_on_all_points_of_the_rounds_and_the_last_fit():
    outcome, oracle, _ = run(lambda X: 0.5 + 2.0 * np.sin(X[:, 0]), 1)
    known = dict(zip((factors for factors, _ in terms_of(outcome.tree)), outcome.standard_errors, strict=True))
    n_points = 2 * QUICK.n_points + QUICK.last_points
    assert oracle.queries == n_points + 100
    x = np.random.default_rng(5).uniform(0.5, 3.0, 100_000)
    A = np.array([np.ones_like(x), np.sin(x)])
    expected = NOISE * np.sqrt(np.diag(np.linalg.inv(A @ A.T / len(x))) / n_points)
    assert set(known) == {frozenset(), frozenset({"sin(x1)"})}
    np.testing.assert_allclose([known[frozenset()], known[frozenset({"sin(x1)"})]], expected, rtol=0.1)


def test_the_error_on_fresh_points_is_far_below_the_noise(finished):
    outcome, _, _ = finished
    X = np.random.default_rng(9).uniform(0.5, 3.0, (2000, 3))
    assert np.sqrt(np.mean((outcome.tree.evaluate(X) - law(X)) ** 2)) < 0.1 * NOISE


def test_rounds_free_one_variable_after_the_other(finished):
    outcome, oracle, budget = finished
    assert [entry.freed for entry in outcome.rounds] == [(0,), (0, 1), (0, 1, 2)]
    assert [entry.controlled for entry in outcome.rounds] == [(1, 2), (2,), ()]
    assert [entry.queries for entry in outcome.rounds] == [450, 450, 300]
    assert oracle.queries == budget.spent["queries"] == 450 + 450 + 300 + 1200 + 100
    assert budget.evaluations > 0


def test_an_order_is_kept():
    outcome, _, _ = run(order=[2, 0, 1])
    assert [entry.freed for entry in outcome.rounds] == [(2,), (2, 0), (2, 0, 1)]
    assert {factors for factors, _ in terms_of(outcome.tree)} == set(TERMS)


def test_the_same_seed_gives_the_same_result():
    crooked = lambda X: 2.0437 * X[:, 0] * np.sin(X[:, 1]) + 0.8163  # noqa: E731
    first, again, other = (run(crooked, 2, seed=seed)[0] for seed in (3, 3, 4))
    assert first.tree.to_infix() == again.tree.to_infix() != other.tree.to_infix()
    assert first.standard_errors == again.standard_errors
    assert [entry.constants for entry in first.rounds] == [entry.constants for entry in again.rounds]


def test_progress_is_told_before_each_round():
    news = []
    run(progress=news.append)
    assert [item.freed for item in news] == [(0,), (0, 1), (0, 1, 2)]


def test_a_law_that_is_no_sum_of_products_is_not_called_found():
    outcome, _, _ = run(lambda X: 3.0 * np.sin(4.0 * X[:, 0] * X[:, 1]), 2, ("add", "mul", "const"))
    assert outcome.stopped_by == "exhausted"
    assert outcome.hall[0][0] > 0.01


@pytest.mark.parametrize("queries", [1000, 3000, 10_000])
def test_the_limit_on_queries_is_kept(queries):
    outcome, oracle, _ = run(queries=queries, settings=NoisySettings())
    assert oracle.queries <= queries
    assert outcome.tree is not None
    assert outcome.stopped_by != "queries"


# for. 50 queries become 102, 300 become 321, 500 become 514.
@pytest.mark.parametrize("queries", [50, 300, 500])
def test_a_small_limit_on_queries_is_kept(queries):
    _, oracle, _ = run(queries=queries, settings=NoisySettings())
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


# Three trials in each of the first two rounds, one in the third, then the last fit and the check.
@pytest.mark.parametrize(("at", "n_rounds"), [(1, 0), (3, 0), (4, 1), (6, 1), (7, 2), (8, 3), (9, 3)])
def test_an_interrupt_returns_the_best_so_far(at, n_rounds):
    outcome, _, _ = run(Interrupted(at))
    assert outcome.stopped_by == "interrupted"
    assert len(outcome.rounds) == n_rounds
    X = np.random.default_rng(9).uniform(0.5, 3.0, (500, 3))
    assert np.isfinite(outcome.tree.evaluate(X)).all()
    if n_rounds == 3:
        assert {factors for factors, _ in terms_of(outcome.tree)} >= {frozenset({"x1", "sin(x2)"})}
        assert np.sqrt(np.mean((outcome.tree.evaluate(X) - law(X)) ** 2)) < NOISE
    if n_rounds and at < 9:
        assert outcome.standard_errors is None
        assert outcome.rounds[-1].constants[-1] == tuple(number for _, number in terms_of(outcome.tree))


def test_an_interrupt_while_looking_for_the_variables_that_matter_returns_an_outcome():
    def interrupted(X):
        raise KeyboardInterrupt

    try:
        outcome, _, _ = run(interrupted, 14)
    except KeyboardInterrupt:  # it would end all tests
        pytest.fail("the interrupt was not caught")
    assert outcome.stopped_by == "interrupted"


# Fails with "zip() argument 2 is shorter than argument 1": no term is chosen, and there are three settings.
def test_a_law_that_is_nothing_but_noise_is_a_constant():
    outcome, _, _ = run(lambda X: np.zeros(len(X)), 2)
    X = np.random.default_rng(9).uniform(0.5, 3.0, (50, 2))
    assert np.max(np.abs(outcome.tree.evaluate(X))) < NOISE


def test_only_operators_of_the_set_are_used(finished):
    outcome, _, _ = finished
    assert {node.name for node in outcome.tree if node.arity} <= set(TRIGONOMETRIC)


@pytest.mark.parametrize("function_set", [("add", "sin", "const"), ("sub", "mul", "sin", "const")])
def test_a_set_that_cannot_write_sums_of_products_is_left_to_others(function_set):
    outcome, _, _ = run(lambda X: 2.0 * np.sin(X[:, 0]) + X[:, 1], 2, function_set)
    assert outcome.tree is None
    assert outcome.stopped_by == "exhausted"


def test_there_is_a_standard_error_for_every_constant_that_was_fitted():
    outcome, _, _ = run(lambda X: 3.0 / X[:, 0] - 1.5 * X[:, 1], 2, ("add", "sub", "mul", "div", "const"))
    numbers = [node.value for node in outcome.tree if isinstance(node, Constant) and node.value != 1.0]
    assert len(outcome.standard_errors) == len(numbers)


# --- laws that are no sums ------------------------------------------------------------------


def steep(X):
    return 3.0 * np.exp(-2.0 * (X[:, 0] - 1.5) ** 2 * X[:, 1]) * X[:, 2]


def test_where_sums_leave_much_more_than_the_noise_the_search_ends_early():
    outcome, oracle, _ = run(steep, function_set=("add", "sub", "mul", "const"), settings=NoisySettings())
    assert outcome.stopped_by == "exhausted"
    assert len(outcome.rounds) == 1
    assert oracle.queries < 2_000
    assert outcome.tree is not None


def test_a_sum_that_leaves_more_than_the_noise_on_all_data_is_not_found():
    # y is 0 nearly everywhere: a hundred fresh points may not show that it is not.
    def spike(X):
        return 1e3 * (X[:, 0] > 2.99)

    outcome, *_ = run(spike, n_vars=1, settings=NoisySettings())
    assert outcome.stopped_by != "found"
