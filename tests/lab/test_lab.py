"""The laboratory: it alone asks; it counts, keeps limits, remembers, and knows what answers are like."""

import copy
import pickle

import numpy as np
import pytest
from deap import gp

from deap_vsr import CallableOracle, MaskedTree, Variable, discover
from deap_vsr.errors import NoValuesError, OracleError, OutOfQueriesError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Exact, FreezeRule, Noisy
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import DEFAULT_FUNCTION_SET, View

VARIABLES = (Variable("x1", 0.5, 3.0), Variable("x2", 0.5, 3.0))
POINTS = np.array([[0.5, 1.0], [2.0, 2.5], [3.0, 0.75]])


class Plain:
    """No more than an oracle needs, and a list of the points it was asked."""

    variables = VARIABLES

    def __init__(self, law=lambda X: X[:, 0] * X[:, 1]):
        self.law = law
        self.asked = []

    def evaluate(self, X):
        self.asked += X.tolist()
        return self.law(X)


class Drifting(Plain):
    """Never answers the same twice."""

    def __init__(self, **attributes):
        super().__init__(lambda X: X[:, 0] * X[:, 1] + 0.1 * self.rng.standard_normal(len(X)))
        self.rng = np.random.default_rng(0)
        self.__dict__.update(attributes)


def laboratory(oracle, noise=0.0, **limits):
    """Return a laboratory that knows the noise already."""
    lab = Lab(oracle, Budget(**limits))
    lab.know_noise(noise)
    return lab


# --- asking and counting ------------------------------------------------------------------


def test_what_is_asked_is_counted_once_and_kept():
    oracle, lab = Plain(), Lab(Plain())
    lab.oracle = oracle
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, 5.0, 2.25])
    assert oracle.asked == POINTS.tolist()
    assert lab.budget.queries == len(lab.log) == 3
    np.testing.assert_array_equal(lab.log.X, POINTS)
    np.testing.assert_array_equal(lab.log.y, [0.5, 5.0, 2.25])


def test_no_points_are_not_asked():
    oracle = Plain()
    lab = Lab(oracle)
    assert lab.ask(np.empty((0, 2))).shape == (0,)
    assert lab.budget.queries == len(lab.log) == len(oracle.asked) == 0


def test_one_point_too_many_is_not_asked():
    oracle = Plain()
    lab = Lab(oracle, Budget(queries=5))
    lab.ask(POINTS)
    with pytest.raises(OutOfQueriesError, match="3 points are wanted, 2 may be asked"):
        lab.ask(POINTS + 0.01)
    assert lab.budget.queries == len(oracle.asked) == 3, "all of them or none"
    lab.ask(POINTS[:2] + 0.01)
    assert lab.budget.used_up() == "queries"
    with pytest.raises(OutOfQueriesError):
        lab.ask(POINTS[:1] + 0.02)
    assert len(oracle.asked) == 5


def test_parts_share_log_and_facts_and_count_for_the_whole():
    oracle = Plain()
    lab = laboratory(oracle, queries=100)
    part = lab.part(0.1)
    part.ask(POINTS)
    part.facts["relevant"] = [0]
    assert lab.budget.queries == part.budget.queries == 3
    assert lab.log is part.log
    assert lab.facts["relevant"] == [0]
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, 5.0, 2.25])
    assert len(oracle.asked) == 3, "what a part has measured is known to all"
    with pytest.raises(OutOfQueriesError):
        part.ask(np.random.default_rng(0).uniform(0.5, 3.0, (8, 2)))
    lab.ask(np.random.default_rng(0).uniform(0.5, 3.0, (8, 2)))


def test_the_random_stream_of_parts_is_that_of_the_whole():
    first, second = Lab(Plain()), Lab(Plain())
    expected = [first.draw(2), first.draw(2)]
    np.testing.assert_array_equal([second.part(0.5).draw(2), second.at(Noisy(0.1)).draw(2)], expected)


def test_another_judgement_leaves_the_laboratory_as_it_was():
    lab = laboratory(Plain(), queries=50)
    strict = lab.at(lab.evidence.at(FreezeRule(error=1e-18)))
    assert strict.evidence.rule.error == 1e-18
    assert lab.evidence == Exact()
    strict.ask(POINTS)
    assert lab.budget is strict.budget
    assert lab.budget.queries == 3


def test_fits_are_counted():
    lab = laboratory(Plain())
    part = lab.part(0.5)
    outcome = part.fit(MaskedTree.from_infix("C*x1*x2"), lab.trials([0, 1], 2, 10))
    assert outcome.errors.max() < 1e-20
    assert lab.budget.evaluations == part.budget.evaluations == outcome.evaluations > 0


def test_trees_are_fitted_by_the_primitive_set_of_the_laboratory():
    own = gp.PrimitiveSet("own", 2)
    own.addPrimitive(lambda a, b: a * b, 2, name="times")
    lab = Lab(Plain(), pset=own)
    tree = gp.PrimitiveTree.from_string("times(ARG0, ARG1)", own)
    assert lab.fit(tree, lab.trials([0, 1], 1, 10)).errors.max() < 1e-20


# --- what is known ------------------------------------------------------------------------


def test_known_points_are_not_asked_again_where_the_oracle_repeats_itself():
    oracle = Plain()
    lab = laboratory(oracle)
    lab.ask(POINTS)
    more = np.vstack([POINTS[::-1], [[1.0, 1.0]]])
    np.testing.assert_array_equal(lab.ask(more), [2.25, 5.0, 0.5, 1.0])
    assert oracle.asked[3:] == [[1.0, 1.0]]
    assert lab.budget.queries == len(lab.log) == 4, "what is known is measured once"


def test_known_points_are_asked_again_if_that_is_wanted():
    oracle = Plain()
    lab = laboratory(oracle)
    lab.ask(POINTS)
    np.testing.assert_array_equal(lab.ask(POINTS, again=True), [0.5, 5.0, 2.25])
    assert len(oracle.asked) == lab.budget.queries == len(lab.log) == 6


def test_points_are_asked_again_as_long_as_nothing_is_known_of_the_noise():
    oracle = Plain()
    lab = Lab(oracle)
    lab.ask(POINTS)
    lab.ask(POINTS)
    assert len(oracle.asked) == lab.budget.queries == 6


def test_points_are_asked_again_where_the_oracle_does_not_repeat_itself():
    oracle = Drifting()
    lab = laboratory(oracle, noise=0.1)
    assert (lab.ask(POINTS) != lab.ask(POINTS)).all()
    assert len(oracle.asked) == lab.budget.queries == len(lab.log) == 6


def test_a_point_twice_in_one_question_is_asked_twice():
    oracle = Plain()
    laboratory(oracle).ask(POINTS[[0, 0]])
    assert len(oracle.asked) == 2


def test_known_points_may_be_had_when_no_more_may_be_asked():
    lab = laboratory(Plain(), queries=3)
    lab.ask(POINTS)
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, 5.0, 2.25])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_answers_that_are_not_finite_are_data(value):
    oracle = Plain(lambda X: np.where(X[:, 0] > 1.0, value, X[:, 0]))
    lab = laboratory(oracle)
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, value, value])
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, value, value])
    assert len(oracle.asked) == lab.budget.queries == len(lab.log) == 3
    trial = lab.measured()
    np.testing.assert_array_equal(trial.X, POINTS[:1])
    np.testing.assert_array_equal(trial.y, [0.5])
    assert trial.dropped == 2
    assert trial.free == (0, 1)


def test_trials_are_drawn_from_the_laboratory_and_counted():
    oracle = Plain()
    lab = laboratory(oracle)
    trials = lab.trials([0], 3, 7)
    assert [trial.X.shape for trial in trials] == [(7, 2)] * 3
    assert all(np.ptp(trial.X[:, 1]) == 0 for trial in trials)
    assert len(oracle.asked) == lab.budget.queries == 21
    at = np.array([[1.0, 2.0]])
    (trial,) = lab.trials([0], 1, 7, at)
    assert (trial.X[:, 1] == 2.0).all()
    state = lab.rng.bit_generator.state
    lab.trials([0], 1, 7, rng=np.random.default_rng(1))
    assert lab.rng.bit_generator.state == state


# --- answers that are none ----------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [lambda X: (8 * X[:, 0]).astype(int), lambda X: list(X[:, 0]), lambda X: X[:, 0] > 1]
)
def test_any_sequence_of_real_numbers_is_an_answer(answer):
    y = Lab(Plain(answer)).ask(POINTS)
    assert y.dtype == float
    np.testing.assert_array_equal(y, np.asarray(answer(POINTS), dtype=float))


def test_an_answer_is_not_changed_by_the_next_question():
    buffer = np.empty(9)

    def simulator(X):
        buffer[: len(X)] = X[:, 0]  # the same memory for every answer
        return buffer[: len(X)]

    lab = Lab(Plain(simulator))
    first = lab.ask(POINTS)
    lab.ask(POINTS / 2)
    np.testing.assert_array_equal(first, POINTS[:, 0])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda X: X, "shape"),
        (lambda X: X[:-1, 0], "shape"),
        (lambda X: 1.0, "shape"),
        (lambda X: None, "numbers"),
        (lambda X: ["a"] * len(X), "numbers"),
        (lambda X: X[:, 0] + 1j, "numbers"),
    ],
)
def test_an_answer_that_is_not_one_real_number_for_each_point_is_an_error(answer, message):
    lab = Lab(Plain(answer))
    with pytest.raises(OracleError, match=message):
        lab.ask(POINTS)
    assert len(lab.log) == 0


# --- what an oracle may have --------------------------------------------------------------


def test_an_oracle_needs_variables_and_answers():
    lab = Lab(Plain())
    assert lab.n_vars == 2
    assert lab.function_set == DEFAULT_FUNCTION_SET
    assert lab.limits == ((0.5, 3.0), (0.5, 3.0)), "not outside the domain"
    lab.begin()
    assert lab.evidence == Exact()
    assert lab.scale == 1.0


@pytest.mark.parametrize("method", ["vsr", "vsr-gp"])
def test_an_oracle_with_no_more_than_it_needs_is_a_problem(method):
    oracle = Plain()
    result = discover(oracle, method, max_queries=3_000, max_evaluations=30_000)
    assert result.stopped_by == "done"
    assert result.expression in ("x1*x2", "x2*x1")
    assert result.oracle_queries == len(oracle.asked)


def test_the_operators_of_an_oracle_and_its_limits_are_those_of_the_laboratory():
    oracle = Plain()
    oracle.function_set, oracle.limits = ("add", "sin"), [(-np.inf, np.inf), (0.0, 9.0)]
    lab = Lab(oracle)
    assert lab.function_set == ("add", "sin")
    assert lab.limits == ((-np.inf, np.inf), (0.0, 9.0))


def test_noise_is_measured_where_it_is_not_stated():
    oracle = Drifting()
    lab = Lab(oracle)
    lab.begin()
    assert lab.evidence.noise == pytest.approx(0.1, rel=0.2)
    assert isinstance(lab.evidence, Noisy)
    assert len(oracle.asked) == lab.budget.queries
    before = lab.budget.queries
    lab.begin()
    assert lab.budget.queries == before, "once"


def test_noise_that_is_stated_is_not_measured():
    oracle = Drifting(noise_sd=0.25)
    lab = Lab(oracle)
    lab.begin()
    assert lab.evidence == Noisy(0.25)
    assert len(oracle.asked) == 3, "for the size of y"
    exact = Plain()
    exact.noise_sd = 0.0
    lab = Lab(exact)
    lab.begin()
    assert lab.evidence == Exact()
    assert lab.repeats


def test_standard_errors_of_points_are_weights():
    law = lambda X: (X[:, 0], np.where(X[:, 0] > 2.0, 0.2, 0.1))  # noqa: E731
    lab = Lab(CallableOracle(law, [(0.0, 3.0)]))
    lab.begin()
    assert lab.evidence.noise == pytest.approx(0.1)
    y, weights = lab.answers(np.array([[1.0], [2.5]]))
    np.testing.assert_array_equal(y, [1.0, 2.5])
    np.testing.assert_allclose(weights, [1.0, 0.25])
    (trial,) = lab.trials([0], 1, 20)
    np.testing.assert_allclose(trial.weights, np.where(trial.X[:, 0] > 2.0, 0.25, 1.0))
    assert len(lab.measured().weights) == len(lab.log)


def test_a_law_is_found_where_each_answer_has_a_standard_error():
    rng = np.random.default_rng(1)

    def measure(X):
        sigma = np.where(X[:, 0] > 2.0, 0.5, 0.005)
        return 1.5 * X[:, 0] * X[:, 1] + 0.7 + sigma * rng.standard_normal(len(X)), sigma

    result = discover(CallableOracle(measure, [(0.5, 3.0)] * 2), seed=0, max_queries=6000)
    assert result.stopped_by == "done"
    X = np.array([[1.0, 2.0], [3.0, 0.7]])
    np.testing.assert_allclose(result.tree.evaluate(X), 1.5 * X[:, 0] * X[:, 1] + 0.7, rtol=2e-3)


def test_a_function_of_one_point_may_give_its_standard_error():
    oracle = CallableOracle(lambda x: (x[0], 0.1), [(0.0, 3.0)], vectorized=False)
    y, sigma = oracle.evaluate(np.array([[1.0], [2.0], [2.5]]))
    np.testing.assert_array_equal(y, [1.0, 2.0, 2.5])
    np.testing.assert_array_equal(sigma, [0.1] * 3)


def test_where_asking_again_is_no_second_measurement_neighbours_tell_of_noise():
    oracle = Drifting(repeatable=False)
    lab = Lab(oracle)
    lab.begin()
    assert lab.evidence.noise == pytest.approx(0.1, rel=0.3)
    before = len(oracle.asked)
    lab.ask(POINTS)
    lab.ask(POINTS)
    assert len(oracle.asked) == before + 3, "asking twice is of no use"


def test_points_that_cannot_be_reached_have_no_answer_and_cost_nothing():
    oracle = Plain()
    oracle.reachable = lambda X: X[:, 0] < 2.5
    lab = laboratory(oracle, queries=2)
    np.testing.assert_array_equal(lab.ask(POINTS), [0.5, 5.0, np.nan])
    assert oracle.asked == POINTS[:2].tolist()
    assert lab.budget.queries == len(lab.log) == 2
    assert np.isnan(lab.ask(POINTS[2:])).all()


def test_trials_keep_to_what_can_be_reached():
    oracle = Plain()
    oracle.reachable = lambda X: X[:, 0] + X[:, 1] < 3.0
    lab = laboratory(oracle)
    for trial in lab.trials([0], 5, 20):
        assert (trial.X.sum(axis=1) < 3.0).all()
    assert 100 <= lab.budget.queries == len(oracle.asked) == len(lab.log)
    assert (lab.log.X.sum(axis=1) < 3.0).all()
    oracle.reachable = lambda X: np.zeros(len(X), bool)
    with pytest.raises(NoValuesError):
        lab.trials([0], 1, 5)


def test_a_formula_is_found_where_some_points_cannot_be_reached():
    oracle = Plain()
    oracle.reachable = lambda X: X[:, 0] + X[:, 1] < 4.0
    result = discover(oracle, max_queries=3_000)
    assert result.stopped_by == "done"
    assert result.expression in ("x1*x2", "x2*x1")
    assert np.array(oracle.asked).sum(axis=1).max() < 4.0


def test_an_oracle_with_a_random_stream_skips_what_was_read(tmp_path):
    skipped = []
    for run in (0, 1):
        oracle = Drifting()
        oracle.skip = skipped.append
        lab = Lab(oracle, log=tmp_path / "log.csv")
        lab.ask(POINTS[: 2 + run])
    assert skipped == [2]


# --- noise of replicates ------------------------------------------------------------------


# --- the size of y ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e200, -1e200, 1e-200])
def test_y_of_any_size_is_asked_for_in_units_in_which_it_has_squares(size):
    oracle = Plain(lambda X: size * X[:, 0] * X[:, 1])
    lab = Lab(oracle)
    lab.begin()
    y = lab.ask(POINTS)
    assert ((np.abs(y) > 1e-3) & (np.abs(y) < 1e3)).all()
    assert lab.scale == float(f"{lab.scale:.0e}"), "a power of ten, so that short numbers stay short"
    np.testing.assert_allclose(y * lab.scale, oracle.law(POINTS), rtol=1e-15)
    np.testing.assert_array_equal(lab.log.y[-3:], oracle.law(POINTS), "the log has the oracle's own")
    np.testing.assert_array_equal(lab.measured().y[-3:], y)
    assert lab.part(0.5).scale == lab.scale


@pytest.mark.parametrize("size", [1e50, 1.0, 1e-50])
def test_y_of_a_usual_size_is_left_alone(size):
    lab = Lab(Plain(lambda X: size * X[:, 0]))
    lab.begin()
    assert lab.scale == 1.0


def test_without_a_product_or_for_the_published_method_y_is_left_alone():
    oracle = Plain(lambda X: 1e200 * X[:, 0])
    oracle.function_set = ("add", "const")
    lab = Lab(oracle)
    lab.begin()
    assert lab.scale == 1.0
    lab = Lab(Plain(lambda X: 1e200 * X[:, 0]))
    lab.begin(plain=True)
    assert lab.scale == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3*x1", "12*x1"),
        ("3*x1/x2", "12*x1/x2"),
        ("3", "12"),
        ("x1*x2", "4*(x1*x2)"),
        ("x1 + 2", "4*x1 + 8"),
        ("0.5*x1*x2 - 3", "2*x1*x2 - 12"),
        ("sin(3*x1)", "4*sin(3*x1)"),
    ],
)
def test_a_formula_is_written_for_the_oracles_own_units(text, expected):
    lab = Lab(Plain())
    tree = MaskedTree.from_infix(text)
    assert lab.in_units(tree) == (tree, None)
    lab.facts["scale"] = 4.0
    found, _ = lab.in_units(tree)
    np.testing.assert_allclose(found.evaluate(POINTS), 4.0 * tree.evaluate(POINTS))
    assert found.to_infix() == MaskedTree.from_infix(expected).to_infix()


def test_standard_errors_are_those_of_constants_in_the_oracles_own_units():
    lab = Lab(Plain())
    lab.facts["scale"] = 10.0
    tree, errors = lab.in_units(MaskedTree.from_infix("0.5*x1*exp(3*x2) + x1 - 0.2"), (0.01, 0.02, 0.03))
    assert tree.to_infix() == "5*x1*exp(3*x2) + 10*x1 - 2"
    assert errors == pytest.approx((0.1, 0.02, 0.0, 0.3))


def test_noise_is_seen_where_most_answers_are_missing():
    noise = np.random.default_rng(0)

    def law(X):
        return np.where(X[:, 0] < 0.8, np.nan, X[:, 0] + noise.normal(0, 0.1, len(X)))

    for seed in range(10):
        lab = Lab(CallableOracle(law, [(0.0, 1.0)] * 2), rng=np.random.default_rng(seed))
        lab.begin()
        assert lab.evidence.noise == pytest.approx(0.1, rel=0.5)


def test_what_a_part_has_found_out_holds_for_the_whole():
    lab = Lab(CallableOracle(lambda X: X[:, 0], [(0.0, 1.0)], noise=0.1))
    part = lab.part(0.5)
    part.begin()
    assert lab.evidence.noise == 0.0
    lab.begin()
    assert lab.evidence == part.evidence


@pytest.mark.parametrize("method", ["vsr", "vsr-gp"])
@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_a_law_of_any_size_is_found_in_its_own_units(method, size):
    result = discover(Plain(lambda X: size * X[:, 0] * X[:, 1]), method, max_queries=3_000, max_evaluations=30_000)
    assert result.stopped_by == "done"
    np.testing.assert_allclose(result.tree.evaluate(POINTS), size * np.array([0.5, 5.0, 2.25]), rtol=1e-9)


def test_noise_is_told_in_the_oracles_own_units():
    rng = np.random.default_rng(0)
    oracle = Plain(lambda X: 1e200 * (X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(len(X))))
    lab = Lab(oracle)
    lab.begin()
    assert lab.evidence.noise * lab.scale == pytest.approx(1e199, rel=0.2)
    stated = Plain(oracle.law)
    stated.noise_sd = 1e199
    lab = Lab(stated)
    lab.begin()
    assert lab.evidence.noise * lab.scale == pytest.approx(1e199)


# --- views --------------------------------------------------------------------------------


def law(X):
    return X[:, 0]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))], ids=["copy", "deep", "pickle"]
)
def test_a_view_can_be_copied(copied):
    view = copied(View(CallableOracle(law, VARIABLES), function_set=("add",)))
    assert view.function_set == ("add",)
    assert view.variables == VARIABLES
    np.testing.assert_array_equal(view.evaluate(POINTS), POINTS[:, 0])
    assert not hasattr(view, "no such thing")


def test_asking_a_view_asks_the_oracle_behind_it():
    oracle = Plain()
    lab = Lab(View(oracle, function_set=("mul",), noise_sd=0.5))
    lab.begin()
    assert lab.evidence == Noisy(0.5)
    assert lab.function_set == ("mul",)
    assert len(oracle.asked) == lab.budget.queries == 3
