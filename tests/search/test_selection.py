"""Which columns belong to a sum."""

import itertools

import numpy as np
import pytest

from deap_vsr.search.selection import select

NOISE = 0.1


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
