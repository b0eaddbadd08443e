import json

import numpy as np
import pytest

from deap_vsr import CallableOracle, MaskedTree, Trial, VsrError, sample_trials
from deap_vsr.engine import Dataset, fit
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.checkpoint import Checkpoint
from deap_vsr.search.contract import Candidate
from deap_vsr.search.hall import Hall
from deap_vsr.search.identify import identified
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.sequence import in_sequence
from deap_vsr.search.vertical import simplest_first, vertical

DOMAINS = [(0.5, 3.0)] * 3
OPERATORS = ("add", "sub", "mul", "div", "sin", "const")


def gas(X):
    return X[:, 0] * X[:, 1] / X[:, 2]


class Scripted:
    """A regressor that knows what to answer in each round, and writes down what it was asked."""

    def __init__(self, *answers):
        self.answers = answers
        self.tasks = []

    def regress(self, task):
        self.tasks.append(task)
        texts = self.answers[(len(self.tasks) - 1) % len(self.answers)]
        data = Dataset.of(task.draw(task.rng))
        found = [fit(MaskedTree.from_infix(text), data) for text in texts]
        task.budget.count(sum(outcome.evaluations for outcome in found))
        return [Candidate.of(outcome) for outcome in found]


def oracle(function=gas, **options):
    return CallableOracle(function, DOMAINS, OPERATORS, **options)


def run(regressor, asked, schedule=((0,), (1,), (2,)), options=None, **limits):
    lab = Lab(asked, Budget(**limits), np.random.default_rng(0))
    return vertical(lab, Joint(regressor, options or JointOptions()), schedule)


def test_a_regressor_is_told_what_did_not_hold():
    regressor = Scripted(["x1 + C"], ["C*x1"], ["C*x1*x2"], ["C*x1*x2/x3"])
    assert run(regressor, oracle(), queries=20_000).stopped_by == "found"
    refused = [[tree.to_infix(skeleton=True) for tree in task.refused] for task in regressor.tasks]
    assert refused == [[], ["x1 + C"], [], []]


def test_rounds_free_one_group_after_the_other_and_grow_the_frozen_form():
    regressor, asked = Scripted(["C*x1"], ["C*x1*x2"], ["C*x1*x2/x3"]), oracle()
    outcome = run(regressor, asked, queries=10_000)
    assert outcome.stopped_by == "found"
    assert [(r.freed, r.controlled, r.slots, r.accepted) for r in outcome.rounds] == [
        ((0,), (1, 2), 1, True),
        ((0, 1), (2,), 1, True),
        ((0, 1, 2), (), 0, True),
    ]
    assert [task.columns for task in regressor.tasks] == [(0,), (1,), (2,)]
    assert [len(task.candidates) for task in regressor.tasks] == [0, 1, 1]
    assert regressor.tasks[1].candidates[0].mask == [0, 1, 0]
    for task, free in zip(regressor.tasks, ([0], [0, 1], [0, 1, 2]), strict=True):
        (trial,) = task.draw(np.random.default_rng(1))
        assert [c for c in range(3) if np.ptp(trial.X[:, c]) > 0] == free
    np.testing.assert_allclose(outcome.tree.evaluate(np.array([[2.0, 3.0, 4.0]])), [1.5])


def test_horizontal_search_is_the_schedule_with_everything_in_one_round():
    regressor = Scripted(["C*x1*x2/x3"])
    outcome = run(regressor, oracle(), schedule=((0, 1, 2),), queries=5_000)
    assert outcome.stopped_by == "found"
    assert [task.columns for task in regressor.tasks] == [(0, 1, 2)]


@pytest.mark.parametrize("published", [False, True])
def test_a_formula_that_stops_depending_on_variables_is_found_early(published):
    options = JointOptions(published=published)
    outcome = run(Scripted(["C*x1"]), oracle(lambda X: 2 * X[:, 0]), options=options, queries=5_000)
    assert outcome.stopped_by == "found"
    assert len(outcome.rounds) == 1


def test_variables_that_do_not_matter_are_not_freed_but_by_the_published_method():
    def law(X):
        return X[:, 0] * X[:, 2]

    regressor = Scripted(["C*x1"], ["C*x1*x3"])
    outcome = run(regressor, oracle(law), queries=5_000)
    assert outcome.stopped_by == "found"
    assert [round_.freed for round_ in outcome.rounds] == [(0,), (0, 2)]
    regressor = Scripted(["C*x1"], ["C*x1"], ["C*x1*x3"])
    outcome = run(regressor, oracle(law), options=JointOptions(published=True), queries=5_000)
    assert outcome.stopped_by == "found"
    assert [round_.freed for round_ in outcome.rounds] == [(0,), (0, 1), (0, 1, 2)]


def test_where_no_variable_matters_all_are_freed():
    outcome = run(Scripted(["C"]), oracle(lambda X: 0 * X[:, 0] + 2.5), queries=5_000)
    assert outcome.stopped_by == "found"
    assert outcome.tree.to_infix() == "2.5"


def test_a_formula_that_holds_only_inside_the_domain_is_found_by_the_published_method_alone():
    def law(X):
        return np.where(X[:, 0] <= 3.0, gas(X), 2 * gas(X))

    for published, expected in ((False, "queries"), (True, "found")):
        asked = oracle(law, limits=[(0.0, 10.0)] * 3)
        options = JointOptions(published=published)
        outcome = run(Scripted(["C*x1*x2/x3"]), asked, ((0, 1, 2),), options, queries=3_000)
        assert outcome.stopped_by == expected
        np.testing.assert_allclose(outcome.tree.evaluate(np.array([[2.0, 3.0, 4.0]])), [1.5])


def test_behind_a_formula_that_was_refused_the_law_is_found():
    def law(X):
        return np.abs(3.0 - X[:, 0]) * X[:, 1] / X[:, 2]

    asked = CallableOracle(law, DOMAINS, (*OPERATORS, "sqrt"), limits=[(0.0, 10.0)] * 3)
    inside, everywhere = "(3 - x1)*x2/x3", "sqrt((3 - x1)*(3 - x1))*x2/x3"
    outcome = run(Scripted([inside, everywhere]), asked, ((0, 1, 2),), queries=5_000)
    assert outcome.stopped_by == "found"
    assert "sqrt" in outcome.tree.to_infix()
    assert outcome.hall[0][1] is outcome.tree
    assert not any("sqrt" in tree.to_infix() for _, tree in outcome.hall[1:])


def test_what_is_found_is_refitted_and_shortly_written():
    outcome = run(Scripted(["C*x1*x2/x3 + C"]), oracle(lambda X: 0.25 * gas(X)), ((0, 1, 2),), queries=5_000)
    assert outcome.stopped_by == "found"
    assert outcome.tree.n_constants == 0
    assert [node.value for node in outcome.tree if not node.arity and not isinstance(node.value, str)] == [0.25]
    assert len(outcome.standard_errors) == 1


def test_tied_slots_are_one_but_for_the_published_method():
    def law(X):
        return X[:, 1] * (X[:, 0] + np.sin(X[:, 0])) + 0 * X[:, 2]

    for published, slots in ((False, 1), (True, 2)):
        options = JointOptions(published=published)
        outcome = run(Scripted(["C*x1 + C*sin(x1)"], ["C"]), oracle(law), options=options, queries=3_000)
        assert outcome.rounds[0].slots == slots


def test_every_point_asked_for_is_counted_and_limits_hold():
    for name, limit in (("queries", 3_000), ("evaluations", 200), ("seconds", 0.3)):
        asked = oracle()
        outcome = run(Scripted(["C*x1 + C"]), asked, **{name: limit})
        assert outcome.stopped_by == name
        assert asked.queries > 0
        assert not any(round_.accepted and not round_.controlled for round_ in outcome.rounds)
        assert outcome.tree is not None  # the best so far


def test_a_search_without_restart_ends_exhausted():
    outcome = run(Scripted(["C*x1 + C"]), oracle(), options=JointOptions(restart=False), queries=100_000)
    assert outcome.stopped_by == "exhausted"
    assert len(outcome.rounds) == 3


def test_an_interrupt_returns_the_best_so_far():
    class Interrupted(Scripted):
        def regress(self, task):
            if len(self.tasks) == 2:
                raise KeyboardInterrupt
            return super().regress(task)

    outcome = run(Interrupted(["C*x1"], ["C*x1*x2"]), oracle(), queries=10_000)
    assert outcome.stopped_by == "interrupted"
    assert outcome.tree is not None


def test_a_regressor_without_an_answer_ends_the_pass_not_the_run():
    class Silent:
        def regress(self, task):
            task.budget.count(10)
            return []

    outcome = run(Silent(), oracle(), evaluations=100)
    assert outcome.stopped_by == "evaluations"
    assert outcome.tree is None


def test_a_regressor_that_does_nothing_does_not_keep_a_run_going_for_ever():
    class Idle:
        def regress(self, task):
            return []

    assert run(Idle(), oracle(), evaluations=100).stopped_by == "exhausted"


# --- rounds that go on --------------------------------------------------------------------


class Hasty(Scripted):
    """First answers with a formula that fits the trial of the search and no other, then as it is told."""

    def __init__(self, *answers, hasty=1):
        super().__init__(*answers)
        self.hasty = hasty

    def regress(self, task):
        if len(self.tasks) >= self.hasty:
            return super().regress(task)
        self.tasks.append(task)
        data = Dataset.of(task.draw(task.rng))
        slope = float(data.y[0] / data.columns[0, 0])
        outcome = fit(MaskedTree.from_infix(f"{slope!r}*x1"), data)
        assert outcome.errors.max() < 1e-20 or task.columns != (0,)  # more than x1 is free
        task.budget.count(outcome.evaluations)
        return [Candidate.of(outcome)]


def test_a_round_whose_candidate_fits_only_the_search_trials_is_asked_again():
    regressor = Hasty(["C*x1"], ["C*x1*x2"], ["C*x1*x2/x3"], hasty=3)
    regressor.answers = (*["never asked"] * 3, *regressor.answers)
    outcome = run(regressor, oracle(), queries=20_000)
    assert outcome.stopped_by == "found"
    assert [task.columns for task in regressor.tasks] == [(0,)] * 4 + [(1,), (2,)]
    assert [len(round_.freed) for round_ in outcome.rounds] == [1, 2, 3]
    assert all(round_.accepted for round_ in outcome.rounds)
    again = regressor.tasks[1].candidates
    assert len(again) == 1
    assert again[0].mask == [1, 1, 1], "what does not fit is not frozen"
    # Each time it was asked a search trial and the trials of an experiment were drawn.
    assert outcome.rounds[0].queries == 4 * (40 + 5 * 40)


def test_a_round_that_never_fits_ends_with_its_share_of_the_budget():
    asked = oracle()
    regressor = Hasty(hasty=10**9)
    outcome = run(regressor, asked, evaluations=300)
    assert outcome.stopped_by == "evaluations"
    first = [task for task in regressor.tasks if task.columns == (0,)]
    assert len(first) > 5
    assert 100 <= first[0].budget.evaluations < 130, "the first of three rounds has a third"
    assert not any(round_.accepted for round_ in outcome.rounds)
    assert [len(round_.freed) for round_ in outcome.rounds][:3] == [1, 2, 3]


def test_a_round_that_never_fits_ends_with_the_queries_too():
    asked = oracle()
    outcome = run(Hasty(hasty=10**9), asked, queries=3_000)
    assert outcome.stopped_by == "queries"
    assert 2_700 < asked.queries <= 3_000, "not one point too many, and not one round's share only"
    assert [len(round_.freed) for round_ in outcome.rounds][:2] == [1, 2]


def test_without_restart_a_round_is_asked_once():
    regressor = Hasty(hasty=10**9)
    outcome = run(regressor, oracle(), options=JointOptions(restart=False), queries=100_000)
    assert outcome.stopped_by == "exhausted"
    assert len(regressor.tasks) == len(outcome.rounds) == 3


def test_the_trials_of_an_experiment_have_a_setting_each_and_all_candidates_are_fitted_to_them():
    settings = []

    def spied(X):
        if len(X) == 40:
            settings.append(tuple(X[0, 1:]))
        return gas(X)

    run(
        Scripted(["C*x1", "C*x1 + C", "C + C*sin(x1)"]),
        oracle(spied),
        options=JointOptions(restart=False),
        queries=50_000,
    )
    # One trial for the search and five for the experiment of the first round, whatever the number of candidates.
    assert len(set(settings[:6])) == 6
    assert len(settings) == 18


@pytest.mark.parametrize("schedule", [((0,), (1,)), ((0, 1, 2), (2,)), ((0,), (1,), (3,)), ()])
def test_a_schedule_frees_each_variable_once(schedule):
    with pytest.raises(VsrError, match="schedule"):
        run(Scripted(["C"]), oracle(), schedule=schedule, queries=100)


def test_a_surrogate_is_not_called_found():
    # Exact on the hall's batch up to 1e-9 only: not a formula.
    outcome = run(Scripted(["x1*x2/x3 + C*sin(x1)"]), oracle(lambda X: gas(X) + 1e-5 * X[:, 0] ** 3), queries=4_000)
    assert outcome.stopped_by == "queries"


def test_the_hall_holds_distinct_formulas_best_first_and_no_more_than_its_size():
    lab = Lab(oracle())
    X = np.random.default_rng(0).uniform(0.5, 3, (50, 3))
    hall = Hall(3, Dataset.of([Trial(X, gas(X))] * 2), lab)
    for text in ("C*x1", "x1*C", "C*x1 + C", "C*x2", "C*x1*x2", "C*x1*x2/x3", "log(-x1)"):
        hall.offer(MaskedTree.from_infix(text))
    assert len(hall.best) == 3
    errors = [error for error, _ in hall.best]
    assert errors == sorted(errors)
    assert errors[0] < 1e-20
    assert lab.budget.evaluations > 0


def test_a_formula_enters_the_hall_once_however_it_is_written_and_whatever_its_constants():
    X = np.random.default_rng(0).uniform(0.5, 3, (50, 3))
    hall = Hall(10, Dataset.of([Trial(X, gas(X))] * 2), Lab(oracle()))
    frozen = MaskedTree.from_infix("C*x1").with_constants([0.9]).with_mask([0, 0, 0])
    for tree in (*map(MaskedTree.from_infix, ("C*x1", "x1*C", "C*x1", "C + C*x1", "x1*C + C")), frozen):
        hall.offer(tree)
    assert len(hall.best) == 2
    assert {tree.n_constants for _, tree in hall.best} == {1, 2}


def test_of_two_fits_of_one_formula_the_better_stays_in_the_hall():
    X = np.random.default_rng(0).uniform(0.5, 3, (50, 3))
    hall = Hall(10, Dataset.of([Trial(X, np.sin(9 * X[:, 0]))] * 2), Lab(oracle()))
    errors = [hall.offer(MaskedTree.from_infix("sin(C*x1)").with_constants([start])) for start in (0.1, 9.01, 0.1)]
    assert errors[1] < 1e-20 < errors[0]
    assert [error for error, _ in hall.best] == [errors[1]]


def test_a_hall_comes_back_from_json_and_still_knows_how_well_each_formula_did():
    X = np.random.default_rng(0).uniform(0.5, 3, (50, 3))
    y = np.sin(9 * X[:, 0])
    hall = Hall(2, Dataset.of([Trial(X, y), Trial(X[:20], y[:20])]), Lab(oracle()))
    for text, start in (("sin(C*x1)", 9.01), ("C*x1 + C*x2 + C", 1.0), ("C*x2", 1.0)):
        tree = MaskedTree.from_infix(text)
        hall.offer(tree.with_constants([start] * tree.n_constants))
    back = Hall.restored(2, json.loads(json.dumps(hall.state(), default=lambda value: value.tolist())), hall.lab)
    assert back.best == hall.best
    for name in ("columns", "y", "weight", "offsets"):
        np.testing.assert_array_equal(getattr(back.all, name), getattr(hall.all, name))
    assert len(back.best) == 2
    worse = MaskedTree.from_infix("sin(C*x1)").with_constants([0.1])
    assert back.offer(worse) > 0.1
    assert back.best == hall.best


def test_the_hall_ranks_by_the_worse_of_two_batches():
    low = np.linspace(0.5, 1.5, 40)
    X = [np.column_stack([x, x, x]) for x in (low, np.append(low + 0.01, 2.0 + 1e-9))]
    hall = Hall(5, Dataset.of([Trial(x, x[:, 0]) for x in X]), Lab(oracle()))
    pole, plain = MaskedTree.from_infix("x1 + 0.000001/(x1 - 2)"), MaskedTree.from_infix("x1 + 0.01*sin(x1)")
    first = [float(fit(tree, hall.data).errors[0]) for tree in (pole, plain)]
    assert first[0] < 1e-8 < first[1]
    assert hall.offer(pole) > 1
    assert hall.offer(plain) < 1e-2
    assert [tree for _, tree in hall.best] == [plain, pole]


def test_a_formula_without_finite_values_on_the_second_batch_does_not_enter_the_hall():
    X = [np.full((10, 3), 1.0) + np.arange(10.0)[:, None] / 10, np.full((10, 3), -1.0)]
    hall = Hall(5, Dataset.of([Trial(x, x[:, 0] + np.arange(10)) for x in X]), Lab(oracle()))
    assert hall.offer(MaskedTree.from_infix("C*log(x1) + C")) == np.inf
    assert hall.best == []


def test_the_automatic_order_starts_with_what_is_linear_and_ends_with_what_does_not_matter():
    asked = oracle(lambda X: np.sin(6 * X[:, 0]) + 0 * X[:, 1] + 2 * X[:, 2])
    assert simplest_first(Lab(asked, rng=np.random.default_rng(0)), FormsRegressor()) == (2, 0, 1)
    assert asked.queries < 120


def test_constants_that_trade_off_are_rewritten_into_ones_that_the_data_determine():
    rng = np.random.default_rng(0)
    data = Dataset.of(sample_trials(oracle(lambda X: X[:, 1] + X[:, 2] * X[:, 0]), [0], 4, 30, rng))
    clumsy = fit(MaskedTree.from_infix("(x1 + C)*(C*C) + C*sin(x1)"), data)
    lab = Lab(oracle())
    better = identified(clumsy, data, lab)
    assert better.determined.all()
    assert better.tree.n_constants == 2
    assert lab.budget.evaluations > 0
    assert identified(clumsy, data, Lab(CallableOracle(gas, DOMAINS, ("sin", "const")))) is clumsy


def line(slope=3.0):
    """Data of a straight line through 0 in x1, at four settings."""
    asked = oracle(lambda X: slope * X[:, 0])
    return Dataset.of(sample_trials(asked, [0], 4, 30, np.random.default_rng(0)))


@pytest.mark.parametrize("text", ["C*sin(C*x1)", "C*sin(sin(C*x1))", "C*sin(C*x1 + C)"])
def test_a_function_that_does_nothing_is_dropped(text):
    data = line()
    shape = MaskedTree.from_infix(text)
    disguised = shape.with_constants([3e5, 1e-5, 0.0][: shape.n_constants])
    outcome = fit(disguised, data, n_starts=0)
    assert outcome.errors.max() < 1e-12, "it passes for a fit"
    lab = Lab(oracle())
    found = identified(outcome, data, lab)
    assert found.tree.to_infix(skeleton=True) == "C*x1"
    assert found.determined.all()
    np.testing.assert_allclose(found.constants, 3.0)
    assert lab.budget.evaluations > 0


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("C*sin(C*x1)", lambda X: 3 * np.sin(2 * X[:, 0])),
        ("C*sin(C*x1)", lambda X: X[:, 1] * np.sin(X[:, 2] * X[:, 0])),
        ("C*sin(C*x1) + C*x1", lambda X: 0.05 * np.sin(2 * X[:, 0]) + 7 * X[:, 0]),
    ],
)
def test_a_function_that_does_something_is_kept(text, law):
    data = Dataset.of(sample_trials(oracle(law), [0], 4, 30, np.random.default_rng(0)))
    outcome = fit(MaskedTree.from_infix(text), data, n_starts=30)
    assert outcome.errors.max() < 1e-20
    found = identified(outcome, data, Lab(oracle()))
    assert [node.name for node in found.tree if node.arity == 1] == ["sin"]
    assert found.errors.max() < 1e-20


# --- searches one after the other ---------------------------------------------------------


def test_a_joint_search_that_comes_first_keeps_the_order_it_is_given():
    regressor, lab = Scripted(["C/x3"], ["C*x2/x3"], ["x1*x2/x3"]), Lab(oracle(), Budget(queries=10_000))
    lab.begin()
    schedule, outcome = in_sequence(lab, [Joint(regressor)], ((2,), (1,), (0,)), lambda news: None)
    assert outcome.stopped_by == "found"
    assert schedule == ((2,), (1,), (0,))
    assert [round_.freed for round_ in outcome.rounds] == [(2,), (2, 1), (2, 1, 0)]


def test_a_joint_search_that_comes_first_ends_with_what_it_has_if_points_are_few():
    lab = Lab(oracle(), Budget(queries=100))
    lab.begin()
    _, outcome = in_sequence(lab, [Joint(Scripted(["C*x1"]))], None, lambda news: None)
    assert outcome.stopped_by == "queries"
    assert lab.budget.queries <= 100


# --- runs that go on ----------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process: nobody catches it."""


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_run_that_goes_on_from_a_checkpoint_has_all_that_was_measured_in_noise(noise, tmp_path):
    class Dying(Scripted):
        def regress(self, task):
            if len(self.tasks) == 2:
                raise Killed
            return super().regress(task)

    answers = (["C*x1"], ["C*x1*x2"], ["C*x1*x2/x3"])

    def go(regressor, **how):
        lab = Lab(
            oracle(lambda X: 0.73 * gas(X), noise=noise, seed=2), Budget(queries=10_000), np.random.default_rng(0)
        )
        checkpoint = Checkpoint(tmp_path / "run.json", {}, every=0.0, **how)
        found = vertical(lab, Joint(regressor), ((0,), (1,), (2,)), checkpoint=checkpoint)
        return found.stopped_by, found.tree, found.standard_errors, lab.budget.queries, lab.budget.evaluations

    expected = go(Scripted(*answers))
    assert expected[0] == "found"
    with pytest.raises(Killed):
        go(Dying(*answers))
    assert go(Scripted(answers[2]), resume=True) == expected


def test_a_run_that_goes_on_from_a_checkpoint_still_refuses_what_was_refused(tmp_path):
    def law(X):
        return np.where(X[:, 0] <= 3.0, gas(X), 2 * gas(X))

    class Counting(Scripted):
        def __init__(self, *answers, lives):
            super().__init__(*answers)
            self.lives = lives

        def regress(self, task):
            if len(self.tasks) == self.lives:
                raise Killed
            return super().regress(task)

    for resume in range(8):
        lab = Lab(oracle(law, limits=[(0.0, 10.0)] * 3), Budget(queries=20_000), np.random.default_rng(0))
        checkpoint = Checkpoint(tmp_path / "run.json", {}, resume=resume > 0, every=0.0)
        with pytest.raises(Killed):
            vertical(lab, Joint(Counting(["C*x1*x2/x3"], lives=2)), ((0, 1, 2),), checkpoint=checkpoint)
    assert json.loads((tmp_path / "run.json").read_text())["state"]["refused"]
