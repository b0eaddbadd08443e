"""Least squares on every small subset; run once more with NUMBA_DISABLE_JIT=1, for their coverage."""

import itertools
import math

import numpy as np
import pytest

from deap_vsr.engine.subsets import find_subsets, scan_subsets


def search(A, y, counts, limits=0.0, first_below=None, max_found=64):
    """Call the kernel; returns the subsets found, the best one and what it leaves for each size, subsets tried."""
    size = len(counts)
    found = np.empty((max_found, size), np.int64)
    best, least = np.empty((size, size), np.int64), np.empty(size)
    below = len(A) if first_below is None else first_below
    n_found, tried = find_subsets(
        np.ascontiguousarray(A), y, np.array(counts, np.int64), below, np.full(size, float(limits)), found, best, least
    )
    assert n_found <= max_found
    return [as_subset(row) for row in found[:n_found]], [as_subset(row) for row in best], least, tried


def as_subset(row):
    n = int(np.sum(row >= 0))
    assert (row[n:] == -1).all()
    return tuple(int(i) for i in row[:n])


def left_by(A, y, subset):
    """What the best sum of a subset leaves; None if its columns depend on each other."""
    columns = A[list(subset)].T
    units = np.linalg.norm(columns, axis=0)
    if not units.all():
        return None
    solution, _, rank, _ = np.linalg.lstsq(columns / units, y, rcond=1e-9)
    return None if rank < len(subset) else float(np.sum((columns / units @ solution - y) ** 2))


def brute_force(A, y, counts, limits=0.0, first_below=None):
    """The same as `search`, with numpy and itertools."""
    limits = np.full(len(counts), limits)
    bests, least, tried, found = [], [], 0, []
    for size, count in enumerate(counts, start=1):
        left = {}
        if not found:
            for subset in itertools.combinations(range(min(count, len(A))), size):
                value = left_by(A, y, subset) if first_below is None or subset[0] < first_below else None
                if value is not None:
                    left[subset] = value
        tried += len(left)
        found += [subset for subset, value in left.items() if value <= limits[size - 1]]
        bests.append(min(left, key=left.get) if left else ())
        least.append(min(left.values(), default=np.inf))
    return found, bests, np.array(least), tried


def problem(seed, n_atoms=9, n_points=16):
    """Random columns of very different lengths, and a y of no small sum of them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_atoms, n_points)) * 10.0 ** rng.uniform(-3.0, 3.0, (n_atoms, 1))
    return A, rng.standard_normal(n_points), rng


def add_up(A, subset, rng):
    """A y that is a sum of the columns of `subset`, in which each of them matters."""
    units = np.linalg.norm(A[list(subset)], axis=1)
    coefficients = rng.uniform(1.0, 2.0, len(subset)) * rng.choice([-1.0, 1.0], len(subset)) / units
    return coefficients @ A[list(subset)]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_subset_of_each_size_is_that_of_brute_force(seed):
    A, y, _ = problem(seed)
    found, best, least, tried = search(A, y, (9, 9, 9, 9))
    expected = brute_force(A, y, (9, 9, 9, 9))
    assert found == []
    assert best == expected[1]
    np.testing.assert_allclose(least, expected[2], rtol=1e-9)
    assert tried == expected[3] == sum(math.comb(9, size) for size in (1, 2, 3, 4))


@pytest.mark.parametrize("seed", range(6))
def test_all_subsets_within_the_limit_are_found_of_the_smallest_size_that_has_some(seed):
    A, y, _ = problem(seed)
    # Between what the fifth and the sixth best pair leave: no single column gets there, five pairs do.
    pairs = sorted(left_by(A, y, subset) for subset in itertools.combinations(range(9), 2))
    limit = 0.5 * (pairs[4] + pairs[5])
    singles = min(left_by(A, y, (i,)) for i in range(9))
    found, best, least, tried = search(A, y, (9, 9, 9), limit)
    expected = brute_force(A, y, (9, 9, 9), limit)
    assert sorted(found) == sorted(expected[0])
    assert {len(subset) for subset in found} == ({1} if singles <= limit else {2})
    assert best == expected[1]
    np.testing.assert_allclose(least, expected[2], rtol=1e-9)
    assert tried == expected[3]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_exact_sum_is_found_and_larger_subsets_are_not_looked_at(size):
    A, _, rng = problem(40 + size, n_atoms=8)
    wanted = tuple(sorted(rng.choice(8, size, replace=False).tolist()))
    found, best, least, tried = search(A, add_up(A, wanted, rng), (8, 8, 8, 8, 8), 1e-20)
    assert found == [wanted]
    assert best[size - 1] == wanted
    assert best[size:] == [()] * (5 - size)
    assert least[size - 1] < 1e-20 < least[: size - 1].min(initial=1.0)
    assert np.isinf(least[size:]).all()
    assert tried == sum(math.comb(8, k) for k in range(1, size + 1))


def test_each_size_has_a_limit_of_its_own():
    A, y, _ = problem(3)
    limits = np.array([0.0, np.inf, np.inf])
    found = np.empty((64, 3), np.int64)
    best, least = np.empty((3, 3), np.int64), np.empty(3)
    n_found, tried = find_subsets(A, y, np.array([9, 9, 9]), 9, limits, found, best, least)
    assert n_found == math.comb(9, 2)
    assert {as_subset(row) for row in found[:n_found]} == set(itertools.combinations(range(9), 2))
    assert tried == 9 + math.comb(9, 2)


@pytest.mark.parametrize("counts", [(9, 5, 3), (4, 6), (0, 7, 5), (0, 0, 4, 6), (20, 20)])
def test_a_size_is_looked_for_among_as_many_of_the_first_columns_as_counts_say(counts):
    A, y, _ = problem(11)
    found, best, least, tried = search(A, y, counts)
    expected = brute_force(A, y, counts)
    assert (found, best, tried) == (expected[0], expected[1], expected[3])
    np.testing.assert_allclose(least, expected[2], rtol=1e-9)
    assert tried == sum(math.comb(min(count, 9), size) for size, count in enumerate(counts, start=1))


def test_a_sum_of_columns_beyond_the_counts_is_not_found():
    A, _, rng = problem(12)
    y = add_up(A, (2, 7), rng)
    assert search(A, y, (9, 7), 1e-20)[0] == []
    assert search(A, y, (9, 8), 1e-20)[0] == [(2, 7)]


@pytest.mark.parametrize("first_below", [0, 1, 3, 9])
def test_the_first_column_of_a_subset_is_among_the_first(first_below):
    A, y, _ = problem(13)
    found, best, least, tried = search(A, y, (9, 9, 9), 0.0, first_below)
    expected = brute_force(A, y, (9, 9, 9), 0.0, first_below)
    assert (found, best, tried) == (expected[0], expected[1], expected[3])
    np.testing.assert_allclose(least, expected[2], rtol=1e-9)
    assert all(subset[0] < first_below for subset in best if subset)


def test_columns_of_zeros_are_never_chosen():
    A, y, rng = problem(14)
    A[[0, 4]] = 0.0
    found, best, least, tried = search(A, y, (9, 9, 9))
    expected = brute_force(A, y, (9, 9, 9))
    assert (found, best, tried) == (expected[0], expected[1], expected[3])
    assert not {0, 4} & {i for subset in best for i in subset}
    assert tried == sum(math.comb(7, size) for size in (1, 2, 3))
    assert search(A, add_up(A, (1, 5), rng), (9, 9), 1e-20)[0] == [(1, 5)]
    assert np.isfinite(least).all()


def test_nothing_but_columns_of_zeros_finds_nothing():
    found, best, least, tried = search(np.zeros((3, 5)), np.ones(5), (3, 3), 1e-6)
    assert (found, best, tried) == ([], [(), ()], 0)
    assert np.isinf(least).all()


def test_columns_that_depend_on_those_chosen_are_skipped():
    A, y, rng = problem(15)
    A[3] = -2.5 * A[1]
    A[6] = add_up(A, (0, 2), rng)
    _, best, least, tried = search(A, y, (9, 9, 9))
    expected = brute_force(A, y, (9, 9, 9))
    assert tried == expected[3]
    np.testing.assert_allclose(least, expected[2], rtol=1e-9)
    assert all(left_by(A, y, subset) == pytest.approx(left) for subset, left in zip(best, least, strict=True))
    # Gone are the pair (1, 3), that pair with one more column, and the triple (0, 2, 6).
    assert tried == 9 + (math.comb(9, 2) - 1) + (math.comb(9, 3) - 7 - 1)


def test_of_two_columns_that_are_the_same_either_is_found_and_never_both():
    A, _, rng = problem(16)
    A[5] = 3.0 * A[2]
    assert search(A, add_up(A, (2, 7), rng), (9, 9, 9), 1e-20)[0] == [(2, 7), (5, 7)]


def test_no_more_are_written_down_than_there_is_room_for():
    A, y, _ = problem(17)
    found, best, _, tried = search(A, y, (9, 9), np.inf, max_found=4)
    assert found == [(0,), (1,), (2,), (3,)]
    assert best[0] == brute_force(A, y, (9,))[1][0]
    assert tried == 9


@pytest.mark.parametrize("seed", range(6))
def test_an_exact_sum_of_four_badly_scaled_columns_is_found_at_a_tolerance_of_1e_11(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((10, 30)) * 10.0 ** rng.permutation(np.linspace(-8.0, 8.0, 10))[:, None]
    wanted = tuple(sorted(rng.choice(10, 4, replace=False).tolist()))
    y = add_up(A, wanted, rng)
    tolerance = 1e-11 * np.ptp(y)
    found, _, least, _ = search(A / tolerance, y / tolerance, (10, 10, 10, 10, 10), len(y))
    assert found == [wanted]
    assert least[3] <= len(y)
    assert (least[:3] > 1e6 * len(y)).all()


def test_an_exact_sum_of_smooth_functions_that_are_nearly_dependent_is_found_alone():
    x = np.linspace(0.4, 2.6, 30)
    A = np.array([np.ones(30), x, x**2, x**3, x**4, np.sin(x), np.cos(x), np.exp(x), 1 / x, np.sqrt(x), np.log(x)])
    y = 3.0 - 2.0 * np.sin(x) + 0.5 * x**3 + 0.25 / x
    tolerance = 1e-11 * np.ptp(y)
    found, _, _, _ = search(A / tolerance, y / tolerance, (11, 11, 11, 11, 11), len(y))
    assert found == [(0, 3, 5, 8)]


def test_what_is_left_of_an_exact_sum_is_rounding_and_not_the_difference_of_two_squares():
    A, _, rng = problem(18, n_points=40)
    y = add_up(A, (1, 4, 8), rng)
    _, best, least, _ = search(A, y, (9, 9, 9))
    assert best[2] == (1, 4, 8)
    assert 0.0 <= least[2] < 1e-28 * np.sum(y**2)


def test_arguments_are_not_modified():
    A, y, _ = problem(19)
    before = A.copy(), y.copy()
    search(A, y, (9, 9, 9))
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_a_scan_of_tables_is_the_search_of_each():
    rng = np.random.default_rng(20)
    tables = rng.standard_normal((5, 7, 14))
    tables[2, 3] = 0.0  # a function that is not defined there
    y = rng.standard_normal(14)
    best, least = np.empty((5, 3, 3), np.int64), np.empty((5, 3))
    tried = scan_subsets(tables, y, np.array([7, 6, 5]), 4, best, least)
    one_by_one = [search(table, y, (7, 6, 5), 0.0, 4) for table in tables]
    assert tried == sum(item[3] for item in one_by_one)
    assert [[as_subset(row) for row in rows] for rows in best] == [item[1] for item in one_by_one]
    np.testing.assert_array_equal(least, [item[2] for item in one_by_one])


def test_a_scan_dips_at_the_inner_constant_of_the_law():
    x = np.linspace(0.2, 3.0, 25)
    thetas = np.arange(0.1, 4.0, 0.1)
    tables = np.array([[np.sin(theta * x), np.exp(-theta * x), np.ones(25), x] for theta in thetas])
    best, least = np.empty((len(thetas), 2, 2), np.int64), np.empty((len(thetas), 2))
    scan_subsets(tables, 2.0 * np.sin(1.7 * x) - 0.3, np.array([4, 4]), 2, best, least)
    dip = int(np.argmin(least[:, 1]))
    assert thetas[dip] == pytest.approx(1.7)
    assert as_subset(best[dip, 1]) == (0, 2)
    assert least[dip, 1] < 1e-24 < 1e-6 < np.delete(least[:, 1], dip).min()
