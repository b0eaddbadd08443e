"""A table as an oracle: what control its rows hold, and what it says where they hold none."""

import itertools

import numpy as np
import pytest

import deap_vsr
from deap_vsr import OracleError, TableOracle
from deap_vsr.errors import NoControlError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.table import settings_of
from deap_vsr.search.contract import Candidate
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import MaskedTree


def grid(*sizes):
    return np.array(list(itertools.product(*[np.linspace(1.0, 2.0, size) for size in sizes])))


def scattered(n_rows=40, n_vars=3, seed=0):
    return np.random.default_rng(seed).uniform(1.0, 2.0, (n_rows, n_vars))


def test_a_grid_holds_trials_for_every_set_of_columns():
    X = grid(5, 4, 3)
    table = TableOracle(X, X[:, 0] * X[:, 1] + X[:, 2])
    for size in (1, 2, 3):
        for free in itertools.combinations(range(3), size):
            held = [column for column in range(3) if column not in free]
            expected = np.prod([(5, 4, 3)[column] for column in held]) if (5, 4, 3)[free[0]] > 3 or size > 1 else 0
            assert len(table.control(free)) == expected
            for trial in table.trials(free) if expected else ():
                assert trial.free == free
                assert (np.ptp(trial.X[:, held], axis=0) == 0).all()
                assert (np.ptp(trial.X[:, free], axis=0) > 0).all()
                assert np.array_equal(trial.y, trial.X[:, 0] * trial.X[:, 1] + trial.X[:, 2])


def test_a_sweep_among_scattered_rows_is_found():
    X = scattered()
    X[7:19, [0, 2]] = X[7, [0, 2]]  # twelve rows in which only x2 varies
    table = TableOracle(X, X.sum(axis=1))
    (trial,) = table.trials([1])
    assert np.array_equal(trial.X, X[7:19])
    assert not len(table.control([0]))
    assert not len(table.control([2]))


def test_settings_that_differ_by_rounding_are_one():
    values = np.array([0.1 + 0.2, 0.3, 1.0, 0.3 + 1e-16, 1.0 - 1e-12])
    assert settings_of(values).tolist() == [0, 0, 1, 0, 1]
    assert settings_of(np.array([5.0, 5.0])).tolist() == [0, 0]
    X = np.column_stack([np.linspace(1, 2, 6), np.full(6, 300.0) + 1e-3 * np.arange(6)])
    X = np.vstack([X, [[1.0, 350.0], [2.0, 350.0]]])
    assert not len(TableOracle(X, X[:, 0]).control([0]))
    assert len(TableOracle(X, X[:, 0], same=1e-3).control([0])) == 1


def test_scattered_rows_hold_nothing_and_it_says_so():
    X = scattered()
    table = TableOracle(X, X[:, 0], names=["mass", "speed", "time"])
    assert not table.has_control
    with pytest.raises(NoControlError, match=r"the 40 rows hold nothing constant while mass varies.*speed \(40 values"):
        table.trials([0])
    assert table.schedule() == ((0, 1, 2),)
    assert "the rows hold no trials" in table.report()
    (trial,) = table.trials(range(3))
    assert np.array_equal(trial.X, X)


def test_the_schedule_frees_what_can_be_held_and_the_rest_at_once():
    rng = np.random.default_rng(1)
    settings = rng.uniform(1.0, 2.0, (6, 2))  # x2 and x3 always change together
    X = np.array([(x, *setting) for setting in settings for x in np.linspace(1, 3, 8)])
    table = TableOracle(X, X.prod(axis=1))
    assert table.schedule() == ((0,), (1, 2))
    assert "free x1, x2, x3 held: 6 trials of 8 to 8 rows" in table.report()
    full = TableOracle(grid(4, 5, 6), grid(4, 5, 6)[:, 0])
    assert [len(group) for group in full.schedule()] == [1, 1, 1]


def test_a_column_that_never_varies_is_no_hindrance():
    X = np.column_stack([np.repeat(np.linspace(1, 2, 5), 5), np.tile(np.linspace(1, 2, 5), 5), np.full(25, 7.0)])
    table = TableOracle(X, X[:, 0] / X[:, 1])
    assert table.varying == (0, 1)
    assert len(table.control([0])) == 5
    assert "never varied: x3" in table.report()


def test_trials_are_dealt_out_as_wanted_and_by_the_seed():
    X = grid(6, 6)
    table = TableOracle(X, X[:, 0], weights=np.arange(1.0, 37.0))
    trials = table.trials([0], 3, 4, np.random.default_rng(0))
    assert [len(trial.y) for trial in trials] == [4, 4, 4]
    assert len({trial.X[0, 1] for trial in trials}) == 3
    again = table.trials([0], 3, 4, np.random.default_rng(0))
    assert all(np.array_equal(a.X, b.X) for a, b in zip(trials, again, strict=True))
    assert trials[0].weights.shape == (4,)
    parts = table.trials([0, 1], 2, 100, np.random.default_rng(0))
    assert sorted(len(part.y) for part in parts) == [18, 18]
    (held,) = table.trials([0], 1, at=np.array([[9.0, 1.2]]))
    assert (held.X[:, 1] == 1.2).all()
    with pytest.raises(NoControlError, match="at the settings wanted"):
        table.trials([0], 1, at=np.array([[9.0, 1.234]]))


def test_rows_of_one_setting_tell_the_noise():
    rng = np.random.default_rng(0)
    X = np.repeat(scattered(200, 2), 3, axis=0)
    noisy = TableOracle(X, X[:, 0] + rng.normal(0.0, 0.2, len(X)))
    assert noisy.tolerance == pytest.approx(0.2, rel=0.1)
    assert TableOracle(X, X[:, 0]).tolerance == 0.0
    assert TableOracle(scattered(), scattered()[:, 0]).tolerance is None


def test_it_answers_at_its_rows_and_nowhere_else():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    table = TableOracle(X, [1.0, 5.0, 2.0])
    wanted = np.array([[3.0, 4.0], [1.0, 2.0], [1.0, 4.0]])
    assert table.reachable(wanted).tolist() == [True, True, False]
    assert np.array_equal(table.evaluate(wanted), [5.0, 1.5, np.nan], equal_nan=True)
    with pytest.raises(OracleError, match="shape"):
        table.evaluate(np.ones((2, 3)))


def test_a_laboratory_knows_the_rows_and_asks_nothing():
    X = grid(6, 5)
    lab = Lab(TableOracle(X, X[:, 0] * X[:, 1]))
    lab.begin()
    assert len(lab.measured().y) == 30
    trials = lab.trials([0], 3, 4)
    assert [trial.free for trial in trials] == [(0,)] * 3
    assert {tuple(row) for row in lab.draw(10).tolist()} <= {tuple(row) for row in X.tolist()}
    assert lab.budget.queries == 0


class TwoForms:
    """A regressor that proposes C*x1, then fills its slot."""

    def regress(self, task):
        text = "C*x1" if not task.candidates else "C*x1*x2"
        return [Candidate(MaskedTree.from_infix(text), np.zeros(1), np.ones((1, 1)))]


def test_vertical_search_runs_on_a_grid_as_on_an_oracle():
    X = grid(6, 6)
    table = TableOracle(X, 3.0 * X[:, 0] * X[:, 1])
    options = JointOptions(restart=False, published=True)
    found = vertical(Lab(table, rng=np.random.default_rng(0)), Joint(TwoForms(), options), table.schedule())
    assert [record.accepted for record in found.rounds] == [True, True]
    assert found.hall[0][0] < 1e-25


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        ([[1.0, 2.0]], [1.0, 2.0], None, r"y has shape \(2,\), expected \(1,\)"),
        ([1.0, 2.0], [1.0, 2.0], None, r"X has shape \(2,\)"),
        (np.empty((0, 2)), [], None, "with a row and a column"),
        ([[1.0], [np.nan]], [1.0, 2.0], None, "X is not finite in row 1"),
        ([["a"], ["b"]], [1.0, 2.0], None, "text and dates"),
        ([[1.0], [2.0]], [1.0, 2.0], [1.0, 0.0], "above 0"),
    ],
)
def test_what_is_no_table_is_refused_in_words(X, y, weights, message):
    with pytest.raises(OracleError, match=message):
        TableOracle(X, y, weights=weights)


def test_names_are_as_many_as_columns():
    with pytest.raises(OracleError, match="3 names for 2 columns"):
        deap_vsr.TableOracle(np.ones((4, 2)), np.ones(4), names=["a", "b", "c"])
