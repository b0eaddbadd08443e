"""The log of a run: written as measurements come, replayed in order, and a run that goes on from it."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, Variable, discover
from deap_vsr.errors import LogError, OutOfQueriesError, VsrError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.log import Log

POINTS = np.array([[0.5, 1.0], [2.0, 2.5], [3.0, 0.1 + 0.2]])


def oracle(noise=0.0, law=lambda X: X[:, 0] * X[:, 1], seed=0):
    return CallableOracle(law, [(0.0, 3.0)] * 2, noise=noise, seed=seed)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


# --- writing ------------------------------------------------------------------------------


def test_a_log_is_a_table_of_the_variables_and_y(path):
    lab = Lab(oracle(), log=path)
    assert path.read_text() == "x1,x2,y\n", (
        "begun at once: a place that cannot be written is known before the first point"
    )
    lab.ask(POINTS)
    assert path.read_text() == "x1,x2,y\n0.5,1.0,0.5\n2.0,2.5,5.0\n3.0,0.30000000000000004,0.9000000000000001\n"


def test_measurements_are_written_as_they_come(path):
    seen = []

    def law(X):
        seen.append(len(path.read_text().splitlines()) - 1)
        return X[:, 0]

    lab = Lab(oracle(law=law), log=path)
    for i in range(3):
        lab.part(0.5).ask(POINTS[: i + 1])
    assert seen == [0, 1, 3]
    assert len(path.read_text().splitlines()) == 7


def test_numbers_come_back_to_the_last_digit(path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 3.0, (200, 2))
    y = Lab(oracle(law=lambda X: np.exp(50 * X[:, 0]) * X[:, 1]), log=path).ask(X)
    never = oracle(law=lambda X: 1 / 0)
    np.testing.assert_array_equal(Lab(never, log=path).ask(X), y)
    assert never.queries == 0


def test_the_file_may_be_named_by_text_and_is_in_a_folder_that_is_there(path):
    Lab(oracle(), log=str(path)).ask(POINTS)
    assert len(path.read_text().splitlines()) == 4
    with pytest.raises(LogError, match="nowhere"):
        Lab(oracle(), log=path.parent / "nowhere" / "log.csv")


def test_names_with_commas_are_quoted(path):
    Log(["a, b", 'c"d'], path).add(np.array([[1.0, 2.0]]), np.array([3.0]), np.array([True]))
    again = Log(["a, b", 'c"d'], path)
    assert again.read(np.array([[1.0, 2.0]]))[0][0, 0] == 3.0


class WithErrors:
    """An oracle whose answers have standard errors, some of them unknown."""

    variables = (
        Variable("x1", 0.0, 3.0, "uniform", "positive", ""),
        Variable("x2", 0.0, 3.0, "uniform", "positive", ""),
    )
    asked = 0

    def evaluate(self, X):
        self.asked += len(X)
        return X.sum(axis=1), np.where(X[:, 0] > 1.0, 0.1 * X[:, 0], np.nan)


def test_standard_errors_are_kept_and_read_again(path):
    Lab(WithErrors(), log=path).ask(POINTS)
    assert path.read_text().splitlines()[0] == "x1,x2,y,sigma"
    again = Lab(WithErrors(), log=path)
    again.ask(POINTS)
    assert again.oracle.asked == 0
    np.testing.assert_array_equal(again.log.sigma, WithErrors().evaluate(POINTS)[1])


def test_a_log_that_has_no_standard_errors_yet_gets_a_column_for_them(path):
    log = Log(["x1", "x2"], path)
    log.add(np.ones((1, 2)), np.array([3.0]), np.array([True]))
    log.add(np.zeros((1, 2)), np.array([np.nan]), np.array([True]), np.array([0.5]))
    assert path.read_text() == "x1,x2,y,sigma\n1.0,1.0,3.0,\n0.0,0.0,nan,0.5\n"
    again = Log(["x1", "x2"], path)
    np.testing.assert_array_equal(again.read(np.ones((1, 2)))[0], [[3.0, np.nan]])
    np.testing.assert_array_equal(again.read(np.zeros((1, 2)))[0], [[np.nan, 0.5]])


def test_a_log_without_a_file_holds_all_measurements_in_order():
    log = Log(["x1", "x2"])
    X = np.random.default_rng(0).uniform(0.0, 3.0, (1000, 2))
    for part in np.split(X, [1, 10, 500, 500, 900]):
        log.add(part, part.sum(axis=1), np.ones(len(part), bool))
    assert len(log) == 1000
    np.testing.assert_array_equal(log.X, X)
    np.testing.assert_array_equal(log.y, X.sum(axis=1))
    assert log.n_read == 0


# --- replay -------------------------------------------------------------------------------


def test_what_the_file_holds_is_not_asked_and_is_counted_apart(path):
    Lab(oracle(), log=path).ask(POINTS[:2])
    asked = oracle()
    lab = Lab(asked, log=path)
    np.testing.assert_array_equal(lab.ask(POINTS), Lab(oracle()).ask(POINTS))
    assert asked.queries == 1
    assert lab.budget.queries == len(lab.log) == 3, "a run that goes on has the same limits"
    assert lab.log.n_read == 2
    assert len(path.read_text().splitlines()) == 4, "what was read is not written again"


def test_the_file_is_read_a_point_at_a_time_whatever_comes_first(path):
    Lab(oracle(), log=path).ask(POINTS)
    asked = oracle()
    lab = Lab(asked, log=path)
    np.testing.assert_array_equal(lab.ask(POINTS[::-1]), [POINTS[2].prod(), 5.0, 0.5])
    assert asked.queries == 0


def test_replicates_come_back_in_order(path):
    X = POINTS[[0, 0, 1, 0, 1]]
    first = Lab(oracle(noise=0.1), log=path)
    y = first.ask(X)
    assert len(set(y)) == 5
    asked = oracle(noise=0.1, seed=5)
    lab = Lab(asked, log=path)
    np.testing.assert_array_equal(np.concatenate([lab.ask(X[:2]), lab.ask(X[2:])]), y)
    assert asked.queries == 0
    assert lab.ask(X[:1]) not in y[[0, 1, 3]], "all of them are used: it is asked"
    assert asked.queries == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_answers_that_are_not_finite_come_back(path, value):
    law = lambda X: np.where(X[:, 0] > 1.0, value, X[:, 0])  # noqa: E731
    y = Lab(oracle(law=law), log=path).ask(POINTS)
    asked = oracle(law=law)
    np.testing.assert_array_equal(Lab(asked, log=path).ask(POINTS), y)
    np.testing.assert_array_equal(y, [0.5, value, value])
    assert asked.queries == 0


def test_the_noise_goes_on_as_it_would_have(path):
    expected = Lab(oracle(noise=0.1)).ask(np.repeat(POINTS, 4, axis=0))
    Lab(oracle(noise=0.1), log=path).ask(np.repeat(POINTS, 4, axis=0)[:5])
    lab = Lab(oracle(noise=0.1), log=path)
    np.testing.assert_array_equal(lab.ask(np.repeat(POINTS, 4, axis=0)), expected)
    lab = Lab(oracle(noise=0.1), log=path)
    assert lab.log.n_read == 0
    np.testing.assert_array_equal(lab.ask(np.repeat(POINTS, 4, axis=0)), expected)
    assert lab.log.n_read == 12


def test_what_is_known_is_not_taken_from_the_file_again(path):
    asked = oracle()
    lab = Lab(asked, log=path)
    lab.know_noise(0.0)
    counts = []
    for _ in range(2):
        lab.ask(POINTS)
        lab.ask(POINTS)
        lab.ask(POINTS, again=True)
        counts.append((lab.budget.queries, len(lab.log)))
        lab = Lab(oracle(), log=path)
        lab.know_noise(0.0)
    assert counts == [(6, 6)] * 2


def test_a_batch_that_is_refused_takes_nothing_from_the_file(path):
    y = Lab(oracle(noise=0.1), log=path).ask(POINTS)
    lab = Lab(oracle(noise=0.1), Budget(queries=2), log=path)
    with pytest.raises(OutOfQueriesError):
        lab.ask(POINTS)
    assert lab.log.n_read == lab.budget.queries == len(lab.log) == 0
    np.testing.assert_array_equal(lab.ask(POINTS[:2]), y[:2])
    assert lab.log.n_read == 2


def test_the_log_has_the_oracles_own_units(path):
    for _ in range(2):
        lab = Lab(oracle(law=lambda X: 1e200 * X[:, 0]), log=path)
        lab.begin()
        y = lab.ask(POINTS)
        np.testing.assert_allclose(y * lab.scale, 1e200 * POINTS[:, 0])
    assert lab.log.n_read == lab.budget.queries
    assert path.read_text().splitlines()[-1].endswith("e+200")


# --- files that are broken ----------------------------------------------------------------


def test_every_torn_file_is_gone_on_with(path):
    Lab(oracle(), log=path).ask(POINTS)
    text = path.read_text()
    for size in range(len(text) + 1):
        path.write_text(text[:size])
        asked = oracle()
        lab = Lab(asked, log=path)
        np.testing.assert_array_equal(lab.ask(POINTS), [0.5, 5.0, POINTS[2].prod()])
        complete = max(text[:size].count("\n") - 1, 0)
        assert (lab.log.n_read, asked.queries) == (complete, 3 - complete)
        assert path.read_text() == text


def test_an_empty_file_is_begun(path):
    path.write_text("")
    Lab(oracle(), log=path).ask(POINTS[:1])
    assert path.read_text() == "x1,x2,y\n0.5,1.0,0.5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1,y\n", "line 1 is 'x1,y', expected 'x1,x2,y'"),
        ("x2,x1,y\n", "line 1 is 'x2,x1,y'"),
        ("1.0,2.0,3.0\n", r"line 1 is '1\.0,2\.0,3\.0'"),
        ("something else", "line 1 is 'something else'"),
        ("x1,x2,y\n1.0,2.0\n", "line 2 has 2 values, expected 3"),
        ("x1,x2,y\n1.0,2.0,3.0\n1.0,2.0,3.0,4.0\n", "line 3 has 4 values, expected 3"),
        ("x1,x2,y\n1.0,2.0,3.0\n\n1.0,2.0,3.0\n", "line 3 has 0 values, expected 3"),
        ("x1,x2,y\n1.0,abc,3.0\n", "line 2: x2 is 'abc', expected a number"),
        ("x1,x2,y\n1.0,2.0,\n", "line 2: y is '', expected a number"),
        ("x1,x2,y\nnan,2.0,3.0\n", "line 2: x1 is 'nan', expected a finite number"),
        ("x1,x2,y\n1.0,inf,3.0\n", "line 2: x2 is 'inf', expected a finite number"),
        ("x1,x2,y\n1.0,2.0," + 200_000 * "3" + "\n", "cannot be used as a log"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_a_file_that_is_no_log_of_this_run_is_an_error_that_names_file_and_line(path, text, message):
    path.write_text(text)
    with pytest.raises(LogError, match=message) as caught:
        Lab(oracle(), log=path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300
    assert isinstance(caught.value, VsrError)
    assert path.read_text() == text, "it is left alone"


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(path):
    path.write_bytes(b"x1,x2,y\n\xff\xfe\n")
    with pytest.raises(LogError, match=r"log\.csv"):
        Lab(oracle(), log=path)
    with pytest.raises(LogError, match="cannot be used as a log"):
        Lab(oracle(), log=path.parent)


def test_a_file_that_can_no_longer_be_written_is_an_error_that_names_it(path):
    lab = Lab(oracle(), log=path)
    path.unlink()
    path.mkdir()
    with pytest.raises(LogError, match=r"log\.csv: cannot write the log"):
        lab.ask(POINTS)


def test_a_file_with_other_line_ends_is_read(path):
    path.write_bytes(b"x1,x2,y\r\n0.5,1.0,0.5\r\n")
    asked = oracle()
    assert Lab(asked, log=path).ask(POINTS[:1]) == [0.5]
    assert asked.queries == 0


# --- runs that go on ----------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process: nobody catches it."""


class Mortal(CallableOracle):
    """An oracle whose process is killed instead of asking it one point more than it may."""

    may_ask = np.inf

    def evaluate(self, X):
        if self.queries + len(X) > self.may_ask:
            raise Killed
        return super().evaluate(X)


#: What a run is asked for; the operators cannot express a wave, and joint search has the last word.
RUNS = {
    "vsr": {"method": "vsr", "max_queries": 2_000},
    "vsr in batches": {"method": "vsr", "max_queries": 2_000, "batch": 7},
    "vsr that falls back": {"method": "vsr", "wave": True, "max_evaluations": 20_000},
    "vsr in noise": {"method": "vsr", "noise": 0.05, "max_queries": 6_000},
    "vsr in noise that falls back": {"method": "vsr", "noise": 0.02, "wave": True, "max_evaluations": 12_000},
    "joint vsr-gp": {"method": "vsr-gp", "max_evaluations": 20_000},
    "joint vsr-gp in noise": {"method": "vsr-gp", "noise": 0.05, "max_evaluations": 20_000},
    "slotwise vsr-gp": {"method": "vsr-gp", "expansion": "slotwise", "max_evaluations": 20_000},
    "slotwise vsr-gp in noise": {
        "method": "vsr-gp",
        "expansion": "slotwise",
        "noise": 0.05,
        "max_queries": 8_000,
        "max_evaluations": 20_000,
    },
    "vsr-mcts": {"method": "vsr-mcts", "max_evaluations": 10_000},
    "vsr-mcts in noise": {"method": "vsr-mcts", "noise": 0.05, "max_evaluations": 10_000},
}


def run(path, may_ask=np.inf, noise=0.0, wave=False, **how):
    """Return the result of a run, and the points that its oracle was asked."""

    def law(X):
        return np.sin(3.0 * X[:, 0]) * X[:, 1] if wave else 2.0 * X[:, 0] * X[:, 1] + np.sin(X[:, 2])

    operators = ("add", "mul", "const") if wave else ("add", "sub", "mul", "sin", "const")
    asked = Mortal(law, [(0.5, 3.0)] * (2 if wave else 3), operators, noise=noise, seed=1)
    asked.may_ask = may_ask
    return discover(asked, log=path, **how), asked.queries


def outcome(result):
    """Return what must be the same, however often a run was killed."""
    rounds = [(r.freed, r.accepted, r.tree.to_infix(), r.errors, r.constants, r.queries) for r in result.rounds]
    points = result.oracle_queries + result.points_read
    return (
        result.expression,
        result.stopped_by,
        result.noise,
        result.standard_errors,
        result.evaluations,
        points,
        rounds,
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_killed_goes_on_from_its_log_to_the_same_result(name, path):
    whole, n_points = run(None, **RUNS[name])
    assert whole.oracle_queries == n_points > 0
    assert whole.points_read == 0
    for share in (0.02, 0.3, 0.8):
        with pytest.raises(Killed):
            run(path, may_ask=int(share * n_points) - _lines(path), **RUNS[name])
        assert _lines(path) <= share * n_points
    before = _lines(path)
    assert before > 0
    with path.open("a") as file:
        file.write("1.0,2.")  # killed while it wrote
    again, asked = run(path, **RUNS[name])
    assert outcome(again) == outcome(whole)
    assert again.points_read == before
    assert again.oracle_queries == asked == n_points - before
    finished, asked = run(path, **RUNS[name])
    assert outcome(finished) == outcome(whole)
    assert (asked, finished.oracle_queries, finished.points_read) == (0, 0, n_points)


def _lines(path):
    return max(len(path.read_text().splitlines()) - 1, 0) if path.exists() else 0


def test_a_run_with_a_log_is_the_same_as_one_without(path):
    how = RUNS["vsr in noise"]
    assert outcome(run(path, **how)[0]) == outcome(run(None, **how)[0])


def test_a_log_of_another_problem_is_refused(path):
    run(path, **RUNS["vsr"])
    with pytest.raises(LogError, match="line 1 is 'x1,x2,x3,y', expected 'x1,x2,y'"):
        discover(oracle(), log=path)


def test_a_second_run_with_the_same_log_is_refused_and_nothing_is_mixed_in(path):
    # Fails at 7ff2e9b: rows of both were mixed.
    def measure(log, value):
        log.add(np.full((1, 2), value), np.array([value]), np.array([True]))

    first, second = Log(["x1", "x2"], path), Log(["x1", "x2"], path)
    measure(first, 1.0)
    with pytest.raises(LogError, match="another run writes there"):
        measure(second, 2.0)
    measure(first, 3.0)
    assert path.read_text() == "x1,x2,y\n1.0,1.0,1.0\n3.0,3.0,3.0\n"


def test_a_log_that_is_gone_is_told_of(path):
    log = Log(["x1", "x2"], path)
    path.unlink()
    with pytest.raises(LogError, match="cannot write the log"):
        log.add(np.ones((1, 2)), np.array([3.0]), np.array([True]))
