"""Slotwise expansion in noise: where variables are seen, the last fit, and whole searches on made-up laws."""

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, Variable, discover
from deap_vsr.engine import Dataset, fit
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.evidence import Noisy
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.relevance import settings_that_show
from deap_vsr.lab.trials import Trial
from deap_vsr.search.finish import better, finished_in_noise
from deap_vsr.search.freezing import freeze
from deap_vsr.search.records import State
from deap_vsr.search.round import verified
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import Slotwise
from deap_vsr.search.tables import Grown
from deap_vsr.search.vertical import Beam, vertical

USUAL = ("add", "sub", "mul", "div", "exp", "log", "sqrt", "sin", "cos", "n2", "const")
NOISE = 0.05


def law(text, n_vars=2, noise=NOISE, function_set=USUAL, domain=(0.5, 3.0), seed=0):
    tree = MaskedTree.from_infix(text)
    return CallableOracle(tree.evaluate, [domain] * n_vars, function_set, noise=noise, seed=seed)


def lab_of(asked, seed=0, **limits):
    """Return a laboratory that knows the noise."""
    lab = Lab(asked, Budget(**limits), np.random.default_rng(seed))
    lab.know_noise(NOISE)
    return lab


def run(asked, regressor=None, seed=0, order=None, tell=lambda news: None, **limits):
    lab = lab_of(asked, seed, **limits)
    schedule = None if order is None else tuple((column,) for column in order)
    return vertical(lab, Slotwise(regressor or FormsRegressor(), SlotOptions.in_noise()), schedule, tell), lab.budget


def error(tree, text, n_vars=2, domain=(0.5, 3.0)):
    """The mean square of what a formula is off, in units of the noise."""
    X = np.random.default_rng(99).uniform(*domain, (3000, n_vars))
    return np.mean((tree.evaluate(X) - MaskedTree.from_infix(text).evaluate(X)) ** 2) / NOISE**2


def noisy_data(text, n_points=400, n_trials=1, n_vars=2, seed=0):
    rng = np.random.default_rng(seed)
    trials = []
    for _ in range(n_trials):
        X = rng.uniform(0.5, 3.0, (n_points, n_vars))
        trials.append(Trial(X, MaskedTree.from_infix(text).evaluate(X) + NOISE * rng.standard_normal(n_points)))
    return Dataset.of(trials)


# --- where a variable is seen ---------------------------------------------------------------


def test_settings_are_chosen_at_which_the_variable_is_seen():
    # x1 matters only where x2 is large.
    settings = settings_that_show(lab_of(law("x1*exp(8*(x2 - 3))", domain=(0.0, 3.0))), 0, 3)
    assert settings.shape == (3, 2)
    assert settings[:, 1].min() > 2.0


def test_variables_of_simple_forms_are_freed_first_where_points_are_many():
    asked = law("x3*(1 + 2*exp(-x1*x2))*x4/3", 4)
    options = SlotOptions.in_noise()
    assert Slotwise(FormsRegressor(), options).simplest_first([0, 1, 2, 3], lab_of(asked))[:2] == [2, 3]
    few = SlotOptions.in_noise(2000, 4)
    assert Slotwise(FormsRegressor(), few).simplest_first([0, 1, 2, 3], lab_of(asked)) == [0, 1, 2, 3]


def test_a_variable_that_is_not_seen_has_no_settings():
    assert settings_that_show(lab_of(law("x1")), 1, 3) is None


# --- what is followed ---------------------------------------------------------------------


def test_what_says_the_same_in_more_nodes_is_kept_for_where_the_shorter_formula_leads_nowhere():
    lab = lab_of(law("2.3*x1", domain=(0.0001, 0.0005), noise=1e-5)).at(Noisy(1e-5))
    texts = ("C*x1", "log(1 + C*x1)", "C*x1 + C*x1**2", "C*exp(x1)")
    grown = [
        Grown(MaskedTree.from_infix(text), State.start(), np.ones((1, text.count("C"))), lab.draw(3)) for text in texts
    ]
    holding = [
        state
        for state in verified(grown, (0,), Slotwise(FormsRegressor(), SlotOptions.in_noise()), lab, 3, True)
        if state.holds
    ]
    twins = {state.outcome.tree.to_infix(skeleton=True): state.twin for state in holding}
    assert twins["C*x1"] is False
    assert twins["log(1 + C*x1)"] is True


def test_where_the_shorter_formula_leads_nowhere_the_longer_one_is_followed(monkeypatch):
    followed = []

    def _next(self, waiting):
        followed.append([state.tree.to_infix() for state in self.states])
        states = (
            []
            if len(followed) == 2
            else [State(MaskedTree.from_infix("x1")), State(MaskedTree.from_infix("x2"), twin=True)]
        )
        return waiting[0], states

    monkeypatch.setattr(Beam, "_next", _next)
    monkeypatch.setattr(Beam, "_finish", lambda self: "exhausted")
    beam = Beam(lab_of(law("x1*x2")), Slotwise(FormsRegressor(), SlotOptions.in_noise(2000, 2)), lambda news: None)
    assert beam.go([0, 1]) == "exhausted"
    assert followed == [["1"], ["x1"], ["x2"]]


# --- freezing -----------------------------------------------------------------------------


def test_in_noise_a_real_constant_is_frozen_at_the_mean_of_least_variance():
    rng = np.random.default_rng(0)
    wide, narrow = rng.uniform(-3.0, 3.0, (200, 1)), rng.uniform(-0.01, 0.01, (200, 1))
    trials = [Trial(X, 2.0 * X[:, 0] + NOISE * rng.standard_normal(200)) for X in (wide, narrow)]
    data = Dataset.of(trials)
    outcome = fit(MaskedTree.from_infix("C*x1"), data)
    assert Noisy(NOISE).fits(outcome, data)
    frozen = freeze(outcome, data, Noisy(NOISE))
    assert frozen.slots == []
    assert abs(frozen[1].value - 2.0) < 0.01 < abs(outcome.constants.mean() - 2.0)


# --- the last fit -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_last_fit_restores_short_numbers_and_tells_the_errors_in_order(seed):
    data = noisy_data("2.5*exp(-0.7*x1) + 0.123456*x2", 4000, seed=seed)
    start = MaskedTree.from_infix("2.4*exp(-0.72*x1) + 0.12*x2")
    found = finished_in_noise(start, data, lab_of(law("x1")).at(Noisy(NOISE)))
    numbers = [node.value for node in found.tree if not node.arity and not isinstance(node.value, str)]
    assert numbers[:2] == pytest.approx([2.5, -0.7], abs=4 * max(found.standard_errors))
    assert len(found.standard_errors) == 3
    scaled = (np.array(numbers) - [2.5, -0.7, 0.123456]) / found.standard_errors
    assert np.abs(scaled).max() < 5.0
    # As for any fit: the standard error from the noise that is known and the derivatives.
    x1, x2 = data.columns
    J = np.array([np.exp(-0.7 * x1), 2.5 * x1 * np.exp(-0.7 * x1), x2])
    expected = NOISE * np.sqrt(np.diag(np.linalg.inv(J @ J.T)))
    np.testing.assert_allclose(found.standard_errors, expected, rtol=0.05)


def test_a_constant_that_is_one_in_the_end_has_no_error():
    data = noisy_data("x1 + 0.5*x2", 4000)
    found = finished_in_noise(MaskedTree.from_infix("1.01*x1 + 0.49*x2"), data, lab_of(law("x1")).at(Noisy(NOISE)))
    assert found.tree.to_infix() == "x1 + 0.5*x2"
    assert len(found.standard_errors) == 1


def test_the_better_of_two_formulas_is_the_one_that_explains_more_or_the_shorter_one():
    asked = law("2*x1")
    trees = [MaskedTree.from_infix(text) for text in ("2*x1 + 0.0001*sin(x2)", "2*x1", "2.5*x1")]
    lab = lab_of(asked).at(Noisy(NOISE))
    lab.trials(range(2), 1, 1000)
    assert better(trees, lab) == 1
    assert better(trees[::-1], lab) == 1


# --- whole searches -----------------------------------------------------------------------

LAWS = [
    ("2.5*x1*exp(-0.7*x2)", 2),
    ("3*x1/(2 + x2)", 2),
    ("2*log(x1 + 0.5*x2)", 2),
    ("2*x1*x2/(1.5 + x2) + 0.5*x3", 3),
    ("1.5*x1 + 2*sin(x2) - 0.8*x1*x3", 3),
]


@pytest.mark.parametrize(("text", "n_vars"), LAWS)
def test_laws_that_are_no_sums_are_found_in_noise(text, n_vars):
    found, budget = run(law(text, n_vars))
    assert found.stopped_by == "found"
    assert error(found.tree, text, n_vars) < 0.02
    constants = [n for n in found.tree if not n.arity and not isinstance(n.value, str) and abs(n.value) != 1]
    assert len(found.standard_errors) == len(constants)
    assert found.noise == NOISE
    assert budget.spent["queries"] < 15_000


@pytest.mark.parametrize("seed", range(3))
def test_gp_solves_slots_in_noise(seed):
    text = "2.5*x1*exp(-0.7*x2)"
    found, _ = run(law(text, seed=seed), GpRegressor(), seed=seed, evaluations=300_000)
    assert found.stopped_by == "found"
    assert error(found.tree, text) < 0.4


def test_a_variable_that_does_not_matter_is_left_out():
    found, _ = run(law("2.5*x1*exp(-0.7*x3)", 4))
    assert found.stopped_by == "found"
    assert {n.value for n in found.tree if not n.arity and isinstance(n.value, str)} == {"x1", "x3"}


def test_rounds_tell_what_was_tried_and_their_queries_add_up():
    asked = law("2.5*x1*exp(-0.7*x2)")
    found, budget = run(asked)
    # Those that led to the answer come last, and then the answer, if its parts were solved anew.
    before = [record for record in found.rounds if len(record.freed) == 1][-1]
    last = found.rounds[-1]
    assert (before.freed, before.controlled, before.accepted) == ((0,), (1,), True)
    assert (last.freed, last.controlled, last.accepted) == ((0, 1), (), True)
    assert before.tables
    assert 0 < sum(record.queries for record in found.rounds) <= budget.spent["queries"] == asked.queries


def test_the_order_that_is_asked_for_is_kept():
    found, _ = run(law("2.5*x1*exp(-0.7*x2)"), order=(1, 0))
    assert next(record for record in found.rounds if record.accepted).freed == (1,)


@pytest.mark.parametrize("queries", [0, 30, 300, 1_000, 2_500])
def test_limits_on_queries_are_kept(queries):
    asked = law("3*x1/(2 + x2)")
    found, _ = run(asked, queries=queries)
    assert asked.queries <= queries
    assert found.stopped_by in ("queries", "found")


def test_evaluations_are_shared_with_what_comes_after():
    found, budget = run(law("3*x1/(2 + x2)"), evaluations=2_000)
    assert found.stopped_by in ("exhausted", "evaluations")
    assert found.standard_errors is None
    assert budget.evaluations < 20_000


def test_the_same_seed_gives_the_same_answer():
    texts = {run(law("3*x1/(2 + x2)", seed=5), seed=5)[0].tree.to_infix() for _ in range(2)}
    assert len(texts) == 1


def test_what_was_found_when_interrupted_is_returned():
    asked = law("1.5*x1 + 2*sin(x2) - 0.8*x1*x3", 3)

    def stop(news):
        if news.round == 2:
            raise KeyboardInterrupt

    found, _ = run(asked, tell=stop)
    assert found.stopped_by == "interrupted"
    assert found.tree is not None
    assert found.rounds


def test_what_no_form_explains_is_not_called_found():
    asked = law("sin(40*x1*x2)", function_set=("add", "mul", "const"))
    found, _ = run(asked, evaluations=200_000)
    assert found.stopped_by != "found"


@pytest.mark.parametrize("seed", range(4))
def test_the_last_round_has_the_form_of_the_answer(seed):
    found, _ = run(law("exp(0.7*x1)*x2/(2.3 + x2)", seed=seed), seed=seed)
    assert found.stopped_by == "found"
    functions = [
        sorted(n.name for n in tree if n.arity and n.name not in ("add", "sub", "mul"))
        for tree in (found.rounds[-1].tree, found.tree)
    ]
    assert functions[0] == functions[1]


def test_where_nothing_was_measured_nothing_is_fitted():
    asked = law("5 + 0*x1", 1)
    found, _ = run(asked, queries=30)
    assert found.stopped_by == "queries"


def test_a_law_that_has_values_on_a_part_of_its_domain_only_is_found():
    asked = law("2*sqrt(x1 - x2)", domain=(0.0, 2.0))
    found, _ = run(asked, evaluations=3_000_000)
    assert found.tree is not None


def test_where_a_sum_only_approximates_slots_have_the_evaluations_to_find_what_is_shorter():
    variables = [Variable("x1", 2, 20), Variable("x2", 1, 10, "loguniform")]
    oracle = CallableOracle(MaskedTree.from_infix("x1*sin(5.4/x2)").evaluate, variables, noise=0.08, seed=0)
    result = discover(oracle, time_limit=600)
    assert result.expression == "sin(5.4/x2)*x1"
    assert result.status == "found"
    assert result.standing.search == "slotwise"


def test_a_variable_that_is_seen_at_few_settings_is_looked_for_closely():
    def seen_at_an_end(X):
        return np.where(X[:, 0] > 2.9, X[:, 1], 1.0)

    slots = Slotwise(FormsRegressor(), SlotOptions.in_noise())
    missed = 0
    for seed in range(6):
        lab = lab_of(CallableOracle(seen_at_an_end, [(0.5, 3.0)] * 2, USUAL, noise=NOISE, seed=seed), seed)
        if slots.held_at(1, 0, lab) is None:
            missed += 1
            held_at = slots.held_at(1, 0, lab, closely=True)
            assert held_at is not None
            assert (held_at[:, 0] > 2.9).all()
    assert missed >= 3


def test_closely_is_looked_only_where_no_variable_can_be_seen_and_points_are_plenty(monkeypatch):
    asked = []

    def told(self, column, n_held, lab, closely=False):
        asked.append((column, closely))
        return None

    monkeypatch.setattr(Slotwise, "held_at", told)
    run(law("x1*x2"), order=[0, 1])
    assert asked == [(0, False), (1, False), (0, True), (1, True)]
    monkeypatch.undo()
    few = lab_of(law("x1*x2"), queries=2000)
    assert Slotwise(FormsRegressor(), SlotOptions.in_noise()).held_at(0, 1, few, closely=True) is None
    assert few.budget.queries == 0
