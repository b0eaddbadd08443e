"""Slotwise expansion: tables of slots, and whole searches on made-up laws."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, OracleError, Variable
from deap_vsr.engine import Dataset, fit
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.search.contract import Budget, Candidate
from deap_vsr.search.slots import SlotSettings, search_slotwise, simplest_first
from deap_vsr.search.tables import Plan, Tables, spread_values

RATIONAL = ("add", "sub", "mul", "div", "const")
DOMAIN = (0.5, 3.0)


def oracle(law, variables, function_set=RATIONAL, **options):
    variables = [DOMAIN] * variables if isinstance(variables, int) else variables
    return CallableOracle(lambda X: law(X.T), variables, function_set, **options)


def run(asked, regressor=None, seed=0, order=None, settings=None, **limits):
    budget = Budget(asked, **limits)
    outcome = search_slotwise(
        asked, regressor or FormsRegressor(), budget, np.random.default_rng(seed), settings, order=order
    )
    return outcome, budget


def gas(x):
    return x[0] * x[1] / x[2]


# --- values of the new variable -----------------------------------------------------------


VARIABLES = [
    Variable("x1", 0.5, 3.0),
    Variable("x1", 0.0, 1.0),
    Variable("x1", -2.0, 5.0, "uniform", "as_range"),
    Variable("x1", 0.1, 10.0, "uniform", "both"),
    Variable("x1", 1e-6, 1e6, "loguniform"),
    Variable("x1", 1e-3, 1e3, "loguniform", "both"),
    Variable("x1", 1.0, 9.0, "integer"),
    Variable("x1", 0.5, 100.2, "integer"),
    Variable("x1", -3.0, 4.0, "integer", "as_range"),
]
PLANS = [Plan(12), Plan(28, even=True), Plan(24, window=0.2), Plan(24, window=0.04), Plan(20, even=True, window=0.5)]


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda v: f"{v.sampling} {v.sign} {v.low:g} {v.high:g}")
@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_values_are_within_the_domain_in_order_and_as_many_as_planned(variable, plan):
    for seed in range(20):
        values = spread_values(variable, plan, np.random.default_rng(seed))
        assert (np.diff(values) > 0).all()
        low, high = variable.bounds
        assert ((values >= low) & (values <= high)).all()
        if variable.sign == "both":
            assert (np.abs(values) >= variable.low).all()
        if variable.sampling == "integer":
            np.testing.assert_array_equal(values, np.round(values))
            assert 1 <= len(values) <= plan.n_values
        else:
            assert len(values) == plan.n_values


def test_values_are_spread_as_the_variable_is_sampled_or_evenly():
    decades = Variable("x1", 1e-6, 1e6, "loguniform")
    values = spread_values(decades, Plan(12), np.random.default_rng(0))
    np.testing.assert_array_equal(np.floor(np.log10(values)), np.arange(-6.0, 6.0))
    even = spread_values(decades, Plan(12, even=True), np.random.default_rng(0))
    np.testing.assert_allclose(even / 1e6, np.arange(12) / 12, atol=1 / 12)
    assert (even > 1e3).all()


def test_a_window_is_a_share_of_the_domain_and_not_always_the_same():
    places = []
    for seed in range(30):
        values = spread_values(Variable("x1", 10.0, 20.0), Plan(24, window=0.04), np.random.default_rng(seed))
        assert 0.3 < np.ptp(values) < 0.4
        places.append(values[0])
    assert min(places) < 12.0
    assert max(places) > 17.0


def test_both_signs_are_among_the_values():
    for sampling in ("uniform", "loguniform"):
        values = spread_values(Variable("x1", 0.1, 10.0, sampling, "both"), Plan(12), np.random.default_rng(0))
        assert (values < 0).sum() == 6


def test_every_whole_number_of_a_small_domain_is_taken():
    for seed in range(20):
        values = spread_values(Variable("x1", 1.0, 9.0, "integer"), Plan(28), np.random.default_rng(seed))
        assert values.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_few_points_make_small_tables():
    assert SlotSettings.within(None, 5) == SlotSettings.within(10_000, 5) == SlotSettings()
    few, fewer = SlotSettings.within(1_000, 5), SlotSettings.within(300, 5)
    assert few.thrifty
    assert fewer.thrifty
    assert fewer.plans[0].n_values < few.plans[0].n_values < SlotSettings().plans[0].n_values


# --- tables -------------------------------------------------------------------------------


def table(*columns, errors=0.0):
    """Return tables at three settings of x3, and 6 values of x2; a column is a function of (x2, x3)."""
    grid = np.linspace(1.0, 2.0, 6)
    settings = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 5.0]])
    slots = np.array([[[column(x, s[2]) for column in columns] for x in grid] for s in settings], dtype=float)
    return Tables(1, grid, slots, np.broadcast_to(float(errors), slots.shape), settings)


def test_slots_that_depend_on_the_new_variable_move_and_others_do_not():
    measured = table(
        lambda x, s: x * s,
        lambda x, s: s,
        lambda x, s: 7.0 * (1 + 1e-13 * x),
        lambda x, s: 7.0 * (1 + 1e-6 * x),
        lambda x, s: 0.0,
        lambda x, s: x if s == 5.0 else 2.0,
        lambda x, s: 1e-200 * x,
        lambda x, s: -1e200 * x,
    )
    assert measured.moving().tolist() == [True, False, False, True, False, True, True, True]


def test_what_is_within_the_standard_errors_does_not_move():
    moves = [table(lambda x, s: 7.0 + 1e-4 * x, errors=error).moving()[0] for error in (1e-7, 1e-3)]
    assert moves == [True, False]


def test_the_table_of_a_slot_is_trials_in_which_only_the_new_variable_varies():
    measured = table(lambda x, s: s, lambda x, s: x * s)
    trials = measured.trials(1)
    assert len(trials) == 3
    for trial, setting in zip(trials, measured.settings, strict=True):
        assert trial.free == (1,)
        np.testing.assert_array_equal(trial.X[:, 1], measured.grid)
        np.testing.assert_array_equal(trial.X[:, [0, 2]], np.tile(setting[[0, 2]], (6, 1)))
        np.testing.assert_allclose(trial.y, measured.grid * setting[2])
        assert (trial.weights > 0).all()


def test_values_that_are_missing_are_left_out_and_uncertain_ones_count_less():
    measured = table(lambda x, s: x * s)
    measured.slots[0, 2, 0] = np.nan
    errors = measured.errors.copy()
    errors[1, 3, 0] = 0.1
    first, second, third = Tables(1, measured.grid, measured.slots, errors, measured.settings).trials(0)
    assert [len(trial.y) for trial in (first, second, third)] == [5, 6, 6]
    assert np.isfinite(first.y).all()
    assert second.weights[3] < 1e-6 * second.weights[2]
    assert np.ptp(third.weights) == 0


# --- whole searches -----------------------------------------------------------------------


WHOLE = Variable("x2", 1.0, 9.0, "integer")
DECADES = Variable("x1", 1e-3, 1e3, "loguniform")
SIGNED = [Variable(f"x{i}", 0.1, 10.0, "uniform", "both") for i in (1, 2, 3)]

LAWS = {
    "gas": (gas, 3, RATIONAL),
    "tied brackets": (lambda x: (x[0] + x[1]) * (x[2] + x[3]) * (x[4] + x[5]), 6, RATIONAL),
    "tied brackets under a root": (lambda x: np.sqrt((x[0] + x[1]) * (x[2] + x[3])), 4, (*RATIONAL, "sqrt")),
    "Gaussian in three variables": (
        lambda x: np.exp(-((x[0] - x[1]) ** 2) / (2 * x[2] ** 2)) / (x[2] * np.sqrt(2 * np.pi)),
        3,
        (*RATIONAL, "exp", "n2", "sqrt"),
    ),
    "product of Gaussians": (
        lambda x: np.exp(-(x[0] ** 2) - 2 * x[1] ** 2 - 0.5 * x[2] ** 2),
        3,
        (*RATIONAL, "exp", "n2"),
    ),
    "rational": (lambda x: x[0] / (x[1] + 2 * x[0] * x[2]), 3, RATIONAL),
    "lens": (lambda x: 1 / (1 / x[0] + x[2] / x[1]), 3, RATIONAL),
    "root of a sum of squares": (lambda x: np.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2), 3, (*RATIONAL, "sqrt", "n2")),
    "phase": (lambda x: x[2] * np.cos(x[0] - x[1]), 3, (*RATIONAL, "sin", "cos")),
    "pole inside the domain": (lambda x: x[0] / (x[1] - 1.7) + x[2], 3, RATIONAL),
    "integer variable": (lambda x: x[0] * x[1] ** 2 + 0.25 * x[2], [DOMAIN, WHOLE, DOMAIN], (*RATIONAL, "n2")),
    "irrelevant variables": (lambda x: 2 * x[0] * np.sin(x[2]) + 0.3, 4, (*RATIONAL, "sin")),
    "five variables": (lambda x: x[0] * (x[1] + x[2] * np.sin(x[3])) / x[4], 5, (*RATIONAL, "sin")),
    "decades": (lambda x: x[0] * x[1] ** 2 / x[2], [DECADES] * 3, (*RATIONAL, "n2")),
    "both signs": (lambda x: x[0] ** 2 + x[0] * x[1] * x[2] - 0.7, SIGNED, (*RATIONAL, "n2")),
    # Fails with the seed 0, see test_large_regions_without_values_do_not_break_the_search.
    "regions without values": (lambda x: np.sqrt(x[0] - x[1] + 1.0) * x[2], 3, (*RATIONAL, "sqrt")),
    "a number": (lambda x: 0 * x[0] + 2.5, 2, RATIONAL),
}


def fresh(variables, n_points=200, seed=99):
    """Return points over the domains, drawn by numpy alone."""
    rng = np.random.default_rng(seed)
    bounds = np.array([variable.bounds for variable in variables]).T
    X = rng.uniform(*bounds, (n_points, len(variables)))
    whole = [variable.sampling == "integer" for variable in variables]
    X[:, whole] = np.round(X[:, whole])
    return X


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_found_exactly_and_every_query_is_counted(name, seed):
    law, variables, function_set = LAWS[name]
    points = []

    def spied(x):
        points.append(x.shape[1])
        with np.errstate(all="ignore"):
            return law(x)

    asked = oracle(spied, variables, function_set)
    outcome, budget = run(asked, seed=seed, queries=10_000)
    assert outcome.stopped_by == "found"
    assert outcome.tree.n_constants == 0
    X = fresh(asked.variables)
    with np.errstate(all="ignore"):
        y = law(X.T)
    good = np.isfinite(y)
    np.testing.assert_allclose(outcome.tree.evaluate(X[good]), y[good], rtol=1e-9)
    assert asked.queries == budget.spent["queries"] == sum(points)
    assert {node.name for node in outcome.tree if node.arity} <= set(asked.function_set)


def test_brackets_do_not_multiply_slots():
    law, variables, function_set = LAWS["tied brackets"]
    outcome, _ = run(oracle(law, variables, function_set))
    assert [record.slots for record in outcome.rounds] == [2, 1, 2, 1, 1, 0]


def test_variables_that_do_not_matter_are_never_freed():
    law, variables, function_set = LAWS["irrelevant variables"]
    outcome, _ = run(oracle(law, variables, function_set))
    assert {column for record in outcome.rounds for column in record.freed} == {0, 2}


def test_a_search_for_few_among_many_variables_is_cheap():
    asked = oracle(lambda x: x[7] * x[120] + 2 * x[199], 200)
    outcome, _ = run(asked)
    assert outcome.stopped_by == "found"
    assert asked.queries < 1_000


# A real bug: where y has no finite value at any common value of the new variable the table of the first round is
# empty, and Tables.moving raises "ValueError: zero-size array to reduction operation".
@pytest.mark.parametrize("law", [lambda x: np.sqrt(x[0] - x[1]) * x[2], lambda x: np.arcsin(x[0] * x[1] / x[2])])
def test_large_regions_without_values_do_not_break_the_search(law):
    asked = oracle(law, 3, (*RATIONAL, "sqrt", "arcsin"))
    outcome, _ = run(asked, queries=5_000, evaluations=200_000)
    assert outcome.stopped_by in ("found", "exhausted", "queries", "evaluations")


# A real bug: the squares of the tolerances in Tables.trials overflow or vanish. Below 1e-145 a search ends with
# "ExpressionError: weights are not all finite numbers >= 0", near 1e+160 with an OverflowError, and above nothing is
# found, with RuntimeWarnings. (fit itself stands 1e-250 and 1e+300.)
@pytest.mark.parametrize("size", [1e-150, 1e160])
def test_a_law_of_very_small_or_large_values_is_found(size):
    outcome, _ = run(oracle(lambda x: size * x[0] * x[1], 2), queries=2_000)
    assert outcome.stopped_by == "found"
    np.testing.assert_allclose(outcome.tree.evaluate(np.array([[2.0, 1.5]])), [3.0 * size], rtol=1e-9)


# --- rounds and order ---------------------------------------------------------------------


def test_rounds_tell_what_was_freed_and_held_and_that_it_was_accepted():
    outcome, _ = run(oracle(gas, 3), order=(2, 0, 1))
    assert [(r.freed, r.controlled, r.slots, r.accepted) for r in outcome.rounds] == [
        ((2,), (0, 1), 1, True),
        ((2, 0), (1,), 1, True),
        ((2, 0, 1), (), 0, True),
    ]
    for record in outcome.rounds:
        assert len(record.errors) == len(record.constants) == SlotSettings().n_settings
        assert max(record.errors) <= 1e-17
        assert record.queries > 0
        assert record.tree.mask == [int(i in record.tree.slots) for i in range(len(record.tree))]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_an_order_that_is_given_is_followed(order):
    outcome, _ = run(oracle(lambda x: x[0] * x[1] + x[2], 3), order=order)
    assert [record.freed for record in outcome.rounds] == [order[:1], order[:2], order]


def test_by_default_the_simplest_reduced_form_comes_first():
    outcome, _ = run(oracle(lambda x: np.sin(x[0]) * x[1] + x[1] * np.exp(x[2]), 3, (*RATIONAL, "sin", "exp")))
    assert outcome.stopped_by == "found"
    assert outcome.rounds[0].freed == (1,)


class Fake:
    """A regressor that answers with a formula of one variable, and writes down what it was asked."""

    def __init__(self, *texts):
        self.texts = texts
        self.tasks = []

    def regress(self, task):
        self.tasks.append(task)
        data = Dataset.of(task.draw(task.rng))
        name = f"x{task.columns[0] + 1}"
        found = [fit(MaskedTree.from_infix(text.replace("x", name)), data) for text in self.texts]
        task.budget.count(sum(outcome.evaluations for outcome in found))
        return [Candidate.of(outcome) for outcome in found]


def test_any_regressor_of_the_contract_will_do():
    regressor = Fake("C*x + C")
    outcome, budget = run(oracle(lambda x: 3 * x[0] * x[1] - x[2] * x[1] + 0.5, 3), regressor, evaluations=10_000)
    assert outcome.stopped_by == "found"
    X = fresh([Variable("x1", 0.5, 3.0)] * 3)
    np.testing.assert_allclose(outcome.tree.evaluate(X), 3 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 1] + 0.5, rtol=1e-12)
    assert budget.evaluations > 0
    for task in regressor.tasks:
        assert len(task.columns) == 1
        assert not task.candidates
        assert task.function_set == RATIONAL
        (column,) = task.columns
        for trial in task.draw(task.rng):
            assert [c for c in range(3) if np.ptp(trial.X[:, c]) > 0] == [column]


def test_a_form_that_is_refused_is_recorded_and_the_next_is_taken():
    outcome, _ = run(oracle(lambda x: x[0] * x[1], 2), Fake("C + C*x*x*x", "C*x"), order=(0, 1))
    assert outcome.stopped_by == "found"
    accepted = [record.accepted for record in outcome.rounds]
    assert accepted == [False, True, False, True]
    assert [record.freed for record in outcome.rounds] == [(0,), (0,), (0, 1), (0, 1)]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gp_solves_slots_too(seed):
    asked = oracle(lambda x: x[0] * x[1] + 0.5, 2)
    outcome, budget = run(asked, GpRegressor(), seed=seed, evaluations=60_000)
    assert outcome.stopped_by == "found"
    X = fresh(asked.variables)
    np.testing.assert_allclose(outcome.tree.evaluate(X), X[:, 0] * X[:, 1] + 0.5, rtol=1e-9)
    assert budget.evaluations < 60_000


def test_a_regressor_that_never_finds_anything_ends_exhausted():
    regressor = Fake()
    outcome, _ = run(oracle(gas, 3), regressor)
    assert outcome.stopped_by == "exhausted"
    assert (outcome.tree, outcome.hall, outcome.rounds) == (None, [], [])
    assert [task.effort for task in regressor.tasks][:3] == ["cheap"] * 3
    assert {task.effort for task in regressor.tasks} == {"cheap", "most", "all"}


def test_a_regressor_that_is_always_wrong_ends_exhausted_with_nothing_accepted():
    outcome, _ = run(oracle(lambda x: np.sin(3 * x[0] * x[1]), 2), Fake("C*x", "C + C*x"))
    assert outcome.stopped_by == "exhausted"
    assert outcome.rounds
    assert not any(record.accepted for record in outcome.rounds)
    assert outcome.tree is None


def test_no_more_formulas_are_grown_than_the_settings_say():
    outcome, _ = run(oracle(lambda x: np.sin(3 * x[0] * x[1]), 2), Fake("C*x"), settings=SlotSettings(max_nodes=1))
    assert outcome.stopped_by == "exhausted"
    assert len(outcome.rounds) == 1


# --- limits -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gas", "tied brackets", "phase", "pole inside the domain"])
def test_queries_are_limited_but_for_the_last_check(name):
    law, variables, function_set = LAWS[name]
    stopped = set()
    for limit in range(60, 1_000, 47):
        asked = oracle(law, variables, function_set)
        outcome, _ = run(asked, queries=limit)
        stopped.add(outcome.stopped_by)
        if outcome.stopped_by == "found":
            # a verification, the refit of all constants, and acceptance inside and outside
            assert asked.queries <= limit + 100
        else:
            assert outcome.stopped_by == "queries"
            assert asked.queries <= limit + 40  # a verification, and the ranking of what there is
    assert stopped == {"found", "queries"}


def test_out_of_queries_the_best_so_far_is_returned():
    asked = oracle(gas, 3)
    outcome, _ = run(asked, queries=150)
    assert outcome.stopped_by == "queries"
    assert outcome.tree is not None
    assert outcome.hall[0][1] == outcome.tree
    errors = [error for error, _ in outcome.hall]
    assert errors == sorted(errors)


# A real bug: which variables matter is asked without a look at the limit, 6 points for each that does.
def test_many_variables_that_matter_do_not_exceed_the_queries():
    asked = oracle(lambda x: x.sum(axis=0), 60)
    outcome, _ = run(asked, queries=100)
    assert outcome.stopped_by == "queries"
    assert asked.queries <= 100 + 100


def hard(x):
    """Nothing that the forms find."""
    return np.sin(x[0] ** 2 * np.exp(np.cos(3 * x[0]))) * x[1]


@pytest.mark.parametrize("limit", [1, 1_000, 100_000])
def test_evaluations_are_limited_but_for_the_stage_that_goes_on(limit):
    outcome, budget = run(oracle(hard, 2, (*RATIONAL, "exp", "sin", "cos")), evaluations=limit)
    assert outcome.stopped_by == "evaluations"
    assert limit <= budget.evaluations < limit + 200_000


def test_seconds_are_limited(monkeypatch):
    class Clock:
        """A second passes whenever one looks."""

        seconds = 0.0

        def perf_counter(self):
            self.seconds += 1.0
            return self.seconds

    partial = []
    for limit in range(1, 61):
        monkeypatch.setattr("deap_vsr.search.contract.time", Clock())
        outcome, budget = run(oracle(gas, 3), seconds=float(limit))
        if outcome.stopped_by == "found":
            break
        assert outcome.stopped_by == "seconds"
        assert budget.spent["seconds"] < limit + 20.0
        partial.append(outcome.tree is not None)
    assert outcome.stopped_by == "found"
    assert partial[0] is False
    assert partial[-1] is True


# --- what goes wrong ----------------------------------------------------------------------


class Breaking:
    """A law that breaks at a call, once or from then on."""

    def __init__(self, at, error, once=False):
        self.at, self.error, self.once = at, error, once
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.at or (self.calls > self.at and not self.once):
            raise self.error
        return gas(x)


def n_calls():
    law = Breaking(10**9, None)
    assert run(oracle(law, 3))[0].stopped_by == "found"
    return law.calls


def test_an_interrupt_at_any_time_returns_the_best_so_far():
    trees = []
    for at in range(1, n_calls() + 1):
        outcome, _ = run(oracle(Breaking(at, KeyboardInterrupt(), once=True), 3))
        assert outcome.stopped_by == "interrupted"
        assert (outcome.tree is not None) == any(record.accepted for record in outcome.rounds)
        trees.append(outcome.tree)
    assert trees[0] is None
    assert trees[-1] is not None
    X = fresh([Variable("x1", 0.5, 3.0)] * 3)
    np.testing.assert_allclose(trees[-1].evaluate(X), gas(X.T), rtol=1e-12)


def test_an_oracle_that_breaks_for_good_is_an_oracle_error_at_any_time():
    for at in range(1, n_calls() + 1):
        with pytest.raises(OracleError, match=r"the oracle raised ValueError: out of order"):
            run(oracle(Breaking(at, ValueError("out of order")), 3))


# A real bug: sample_trials' OracleError ("not enough finite values") and that of a function that raises are one type.
# In a verification, in finishing and in accepting both count as "does not hold", and the user's exception is lost.
def test_an_oracle_that_breaks_once_is_an_oracle_error_at_any_time():
    silent = []
    for at in range(1, n_calls() + 1):
        try:
            run(oracle(Breaking(at, ValueError("out of order"), once=True), 3))
        except OracleError:
            continue
        silent.append(at)
    assert silent == []


def test_a_problem_without_finite_values_ends():
    outcome, _ = run(oracle(lambda x: x[0] * np.nan, 2), queries=5_000)
    assert outcome.stopped_by in ("exhausted", "queries")
    assert outcome.tree is None


# --- operators ----------------------------------------------------------------------------


def test_a_function_that_is_not_in_the_set_is_written_with_those_that_are():
    asked = oracle(lambda x: np.cos(x[0]) * x[1], 2, ("add", "mul", "sin", "const"))
    outcome, _ = run(asked)
    assert outcome.stopped_by == "found"
    assert {node.name for node in outcome.tree if node.arity} <= {"add", "mul", "sin"}


# A real bug: factoring ties writes products, and merging exponentials writes sums, also where the set has none.
@pytest.mark.parametrize(
    ("law", "n_vars", "function_set", "order"),
    [
        (lambda x: np.exp(x[0]) * np.exp(x[1]) * x[2], 3, ("mul", "exp", "const"), None),
        (lambda x: x[1] + x[1] / x[0], 2, ("add", "div", "const"), (0, 1)),
    ],
)
def test_tied_slots_are_written_with_operators_of_the_set(law, n_vars, function_set, order):
    outcome, _ = run(oracle(law, n_vars, function_set), order=order, queries=5_000)
    assert outcome.stopped_by == "found"
    assert {node.name for node in outcome.tree if node.arity} <= set(function_set)


# --- the same seed ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_result():
    results = []
    for _ in range(2):
        law, variables, function_set = LAWS["Gaussian in three variables"]
        asked = oracle(law, variables, function_set)
        outcome, budget = run(asked, seed=5)
        rounds = [(r.freed, r.tree.to_infix(), r.errors, r.constants, r.queries) for r in outcome.rounds]
        results.append((outcome.tree.to_infix(), rounds, asked.queries, budget.evaluations))
    assert results[0] == results[1]


def test_the_same_seed_gives_the_same_result_in_every_process(run_python):
    script = """
import numpy as np
from deap_vsr import CallableOracle
from deap_vsr.search.contract import Budget
from deap_vsr.search.slots import search_slotwise
from deap_vsr.forms.regressor import FormsRegressor

def law(X):
    return X[:, 2] * np.cos(X[:, 0] - X[:, 1]) / (X[:, 3] + 1)

asked = CallableOracle(law, [(0.5, 3.0)] * 4, ["add", "sub", "mul", "div", "sin", "cos", "const"])
budget = Budget(asked, queries=20_000)
outcome = search_slotwise(asked, FormsRegressor(), budget, np.random.default_rng(3))
print(outcome.stopped_by, outcome.tree.to_infix(), asked.queries, budget.evaluations)
for record in outcome.rounds:
    print(record.freed, record.tree.to_infix(), record.errors)
"""
    first, second = (run_python(script, PYTHONHASHSEED=seed) for seed in ("1", "4242"))
    assert first == second
    assert first.startswith("found ")


# --- the order of the simplest ------------------------------------------------------------


def test_the_order_of_the_simplest_has_every_variable_once_and_those_without_effect_last():
    asked = oracle(lambda x: np.sin(x[3]) * x[1] + x[1] * x[4] * x[4], 6, (*RATIONAL, "sin"))
    budget = Budget(asked)
    order = simplest_first(asked, FormsRegressor(), budget, np.random.default_rng(0))
    assert sorted(order) == list(range(6))
    assert order[0] == 1
    assert order[-3:] == (0, 2, 5)
    assert budget.spent["queries"] == asked.queries < 200


def test_a_variable_without_a_form_comes_after_those_with_one():
    asked = oracle(lambda x: np.sin(3 * x[0]) * x[1] + x[2], 4, ("add", "mul", "const"))
    assert simplest_first(asked, FormsRegressor(), Budget(asked), np.random.default_rng(0)) == (1, 2, 0, 3)
