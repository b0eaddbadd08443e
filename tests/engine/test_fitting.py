import functools
import math
import operator
import pickle
import random
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from deap import gp
from problems import points, tree, trial
from strategies import MODERATE_NUMBERS, random_tree

from deap_vsr import ExpressionError, MaskedTree, Trial
from deap_vsr.engine import evaluate, fit
from deap_vsr.engine.optimizers import NAMES
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import fit_trials
from deap_vsr.tree import Constant, primitive_set


def test_constants_are_fitted_anew_in_each_trial():
    trials = [trial(f"{a}*exp(-0.{b}*x1) + 3*x2", points(50, seed=a)) for a, b in ((2, 5), (1, 7), (4, 2))]
    found = fit(tree("C*exp(C*x1) + C*x2"), trials)
    assert found.constants.shape == found.standard_errors.shape == found.determined.shape == (3, 3)
    np.testing.assert_allclose(found.constants, [[2, -0.5, 3], [1, -0.7, 3], [4, -0.2, 3]], rtol=1e-9)
    assert found.stopped == ("exact",) * 3
    assert found.evaluations > 3
    assert found.error == pytest.approx(np.mean(found.errors))
    assert [expression.constants for expression in found.trees] == found.constants.tolist()


@pytest.mark.parametrize("scale_y", [1e-200, 1e-30, 1e30, 1e200])
@pytest.mark.parametrize("scale_x", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("C + C*x1 + C/x2", "1 + 2*x1 + 3/x2"),
        ("C*exp(C*x1) + C", "2*exp(-0.5*x1) + 3"),
        ("C*sin(C*x1 + C)", "2*sin(1.5*x1 + 0.4)"),
        ("(C + C*x1)/(C + x2)", "(1 + 2*x1)/(0.7 + x2)"),
    ],
)
def test_fits_do_not_depend_on_the_scale_of_x_or_y(text, truth, scale_x, scale_y):
    plain = trial(truth)
    found = fit(tree(text), [Trial(plain.X * scale_x, plain.y * scale_y)])
    assert found.errors[0] < 1e-20
    assert found.determined.all()


def test_weights_decide_which_points_count():
    X = points(60)
    y = 2 * X[:, 0] + 1
    y[:20] += 50
    weights = np.ones(60)
    weights[:20] = 0
    found = fit(tree("C*x1 + C"), [Trial(X, y, weights=weights)])
    np.testing.assert_allclose(found.constants[0], [2, 1])
    assert fit(tree("C*x1 + C"), [Trial(X, y)]).errors[0] > 0.01


def test_standard_errors_are_those_of_weighted_linear_regression():
    X = points(80)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, 80)
    y = 2 * X[:, 0] - X[:, 1] + rng.normal(0, 0.1, 80) / np.sqrt(weights)
    found = fit(tree("C*x1 + C*x2 + C"), [Trial(X, y, weights=weights)])
    A = np.column_stack([X, np.ones(80)]) * np.sqrt(weights)[:, None]
    solution, rest, *_ = np.linalg.lstsq(A, y * np.sqrt(weights), rcond=None)
    expected = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * rest[0] / 77)
    np.testing.assert_allclose(found.constants[0], solution, rtol=1e-9)
    np.testing.assert_allclose(found.standard_errors[0], expected, rtol=1e-8)
    by_scipy = fit(tree("C*x1 + C*x2 + C"), [Trial(X, y, weights=weights)], optimizer="least_squares")
    np.testing.assert_allclose(by_scipy.standard_errors[0], expected, rtol=1e-6)


def test_warm_starts_are_used():
    hard = trial("sin(40*x1)")
    assert fit(tree("sin(C*x1)"), [hard], starts=[[40.01]], n_starts=0).errors[0] < 1e-20
    assert fit(tree("sin(C*x1)"), [hard], starts=[[1.0]], n_starts=0).errors[0] > 0.1


def test_starts_in_any_order_of_memory_run_in_the_kernel_that_is_compiled():
    X = points()
    given = [Trial(X, 2.0 * X[:, 0] + 3.0)]
    starts = np.array([[1.0, 1.0], [2.0, 2.5], [5.0, 0.5]])
    found = fit(tree("C*x1 + C"), given, starts=starts)
    compiled = len(fit_trials.signatures)
    again = fit(tree("C*x1 + C"), given, starts=np.asfortranarray(starts))
    assert len(fit_trials.signatures) == compiled
    np.testing.assert_array_equal(again.constants, found.constants)


def test_fitting_replaces_constants_and_never_edits_the_tree():
    skeleton = tree("C*x1 + C")
    before = pickle.dumps(skeleton)
    found = fit(skeleton, [trial("2*x1 + 1")])
    assert pickle.dumps(skeleton) == before
    assert found.trees[0].constants == pytest.approx([2, 1])


def test_frozen_and_literal_constants_are_left_alone():
    skeleton = MaskedTree(
        [
            *tree("x1 + C"),
        ]
    )
    frozen = MaskedTree([*skeleton[:2], Constant(0.25, fitted=False, mutable=False)])
    found = fit(frozen, [trial("x1 + 9")])
    assert found.constants.shape == (1, 0)
    assert found.trees[0] == frozen


@pytest.mark.parametrize(
    ("text", "y"),
    [
        ("C", np.full(100, 3.0)),
        ("C*x1", np.zeros(100)),
        ("C + C*x1", np.full(100, 1e-300)),
        ("x1*C*0", np.ones(100)),
        ("C/(x1 - x1)", np.ones(100)),
        ("log(-x1)*C", np.ones(100)),
        ("exp(exp(C*x1*1000))", np.ones(100)),
        ("C*x1", np.full(100, np.nan)),
        ("C*x1", np.where(np.arange(100) == 3, np.inf, 1.0)),
        ("x1**C**C", np.ones(100)),
        ("sqrt(C)", -np.ones(100)),
        ("inv(C)*inv(C)*x2", np.linspace(-1, 1, 100)),
    ],
)
@pytest.mark.parametrize("optimizer", ["lm", "least_squares", "BFGS", "Nelder-Mead"])
def test_hopeless_cases_have_an_answer_and_no_warning(text, y, optimizer):
    found = fit(tree(text), [Trial(points(), y)], optimizer=optimizer, max_iterations=20, n_starts=1)
    assert found.errors[0] >= 0
    assert not np.isnan(found.errors[0])
    assert found.stopped[0] in ("exact", "converged", "iterations", "stuck", "not finite")


@pytest.mark.parametrize("optimizer", ["lm", "BFGS"])
def test_zero_points_and_too_few_points_have_an_answer(optimizer):
    nothing = Trial(np.empty((0, 2)), np.empty(0))
    found = fit(tree("C*x1"), [nothing], optimizer=optimizer)
    assert found.stopped == ("no points",)
    two = fit(tree("C*x1 + C*x2 + C"), [trial("x1 + x2", points(2))], optimizer=optimizer)
    assert two.errors[0] < 1e-6
    assert two.ranks[0] == 2
    assert not two.determined.all()


def test_constant_y_is_measured_by_its_own_size():
    assert fit(tree("C"), [Trial(points(), np.full(100, 3.0))]).errors[0] < 1e-20
    assert fit(tree("x1*0"), [Trial(points(), np.full(100, 3.0))]).errors[0] == pytest.approx(1.0)


def test_bad_arguments_have_clear_errors():
    good = [trial("x1")]
    with pytest.raises(ExpressionError, match="no trials"):
        fit(tree("C"), [])
    with pytest.raises(ExpressionError, match=r"uses variable 5, X has only 2"):
        fit(tree("x5 + C"), good)
    with pytest.raises(ExpressionError, match="unknown optimizer 'ADAM'"):
        fit(tree("C"), good, optimizer="ADAM")
    with pytest.raises(ExpressionError, match="exact or finite"):
        fit(tree("C"), good, optimizer="BFGS", gradient="guess")
    with pytest.raises(ExpressionError, match=r"starts have shape \(1, 2\), expected \(n, 1\)"):
        fit(tree("C"), good, starts=[[1.0, 2.0]])
    with pytest.raises(ExpressionError, match="weights"):
        fit(tree("C"), [trial("x1", weights=-np.ones(100))])
    with pytest.raises(ExpressionError, match="points, y"):
        fit(tree("C"), [Trial(points(), np.ones(99))])
    with pytest.raises(ExpressionError, match="shape"):
        fit(tree("C"), [Trial(np.ones(5), np.ones(5))])
    with pytest.raises(ExpressionError, match="incomplete"):
        fit(MaskedTree(tree("x1 + C")[:2]), good)
    with pytest.raises(ExpressionError, match="extra token"):
        evaluate([[*tree("x1"), *tree("x1")]], points())
    with pytest.raises(ExpressionError, match="columns"):
        evaluate([tree("x7")], points())
    with pytest.raises(ExpressionError, match="shape"):
        evaluate([tree("x1")], np.ones(3))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gradient", ["exact", "finite"])
def test_the_optimisers_of_the_paper_are_available_by_name(name, gradient):
    trials = [trial("2*x1 + 1.5", points(30))]
    found = fit(tree("C*x1 + C"), trials, optimizer=name, gradient=gradient, n_starts=0, max_iterations=300)
    assert found.errors[0] < 1e-3
    assert found.evaluations > 1
    if name not in ("direct", "dual_annealing"):
        np.testing.assert_allclose(found.constants[0], [2, 1.5], atol=1e-3)


def test_finite_differences_cost_an_evaluation_for_each_constant():
    trials = [trial("2*exp(-x1) + x2 + 1")]
    spent = {
        gradient: fit(
            tree("C*exp(C*x1) + C*x2 + C"), trials, optimizer="BFGS", gradient=gradient, n_starts=0, max_iterations=5
        ).evaluations
        for gradient in ("exact", "finite")
    }
    assert spent["finite"] >= 4 * spent["exact"]


@pytest.mark.parametrize("optimizer", ["lm", "BFGS", "shgo", "dual_annealing"])
def test_a_time_limit_ends_a_fit_with_what_it_has(optimizer):
    X = np.random.default_rng(0).uniform(0.1, 5, (200_000, 2))
    noisy = Trial(X, np.sin(3 * X[:, 0]) + np.random.default_rng(1).normal(0, 1, len(X)))
    fit(tree("C*x1"), [trial("x1")])  # kernels are ready
    started = time.perf_counter()
    found = fit(
        tree("C*sin(C*x1*x1 + C)*exp(C*x2) + C/(x1 + C)"), [noisy], optimizer=optimizer, time_limit=0.5, n_starts=50,
        max_iterations=10_000,
    )  # fmt: skip
    assert time.perf_counter() - started < 5
    assert np.isfinite(found.errors[0])


def test_a_time_limit_that_is_long_enough_changes_nothing():
    trials = [trial("2*exp(-0.5*x1) + 3*x2"), trial("exp(-0.7*x1) + 3*x2")]
    found = fit(tree("C*exp(C*x1) + C*x2"), trials, time_limit=30)
    np.testing.assert_allclose(found.constants, [[2, -0.5, 3], [1, -0.7, 3]], rtol=1e-9)
    assert found.stopped == ("exact", "exact")


# --- primitives that the catalogue does not know ------------------------------------------


def protected_division(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1.0


@pytest.fixture
def own_set():
    pset = gp.PrimitiveSet("own", 2)
    pset.addPrimitive(operator.add, 2)
    pset.addPrimitive(operator.mul, 2)
    pset.addPrimitive(protected_division, 2)
    pset.addPrimitive(math.sin, 1)
    pset.addEphemeralConstant("own_constant", functools.partial(random.uniform, -1, 1))
    pset.addTerminal(0.5, name="half")
    return pset


def own_tree(pset, names):
    def node(name):
        found = pset.mapping[name]
        return found() if name == "own_constant" else found

    return gp.PrimitiveTree([node(name) for name in names])


def test_unknown_primitives_are_fitted_through_numpy_with_the_same_answers(own_set):
    names = ["protected_division", "add", "own_constant", "mul", "own_constant", "ARG0", "add", "ARG1", "own_constant"]
    found = fit(own_tree(own_set, names), [trial("(2 + 3*x1)/(x2 + 0.7)")], pset=own_set)
    np.testing.assert_allclose(found.constants[0], [2, 3, 0.7], rtol=1e-8)
    assert found.errors[0] < 1e-20
    assert found.determined.all()


def test_lists_may_mix_known_and_unknown_primitives(own_set):
    X = points()
    X[0, 1] = 0.0
    known = own_tree(own_set, ["add", "sin", "ARG0", "half"])
    unknown = own_tree(own_set, ["protected_division", "ARG0", "ARG1"])
    values = evaluate([known, unknown, known], X, own_set)
    np.testing.assert_allclose(values[0], np.sin(X[:, 0]) + 0.5)
    np.testing.assert_array_equal(values[0], values[2])
    assert values[1, 0] == 1.0
    np.testing.assert_allclose(values[1, 1:], X[1:, 0] / X[1:, 1])


def test_an_encoder_notices_a_primitive_set_that_has_grown():
    pset = primitive_set(["add"], 1)
    assert encoder(pset) is encoder(pset)
    before = encoder(pset)
    pset.addPrimitive(math.sin, 1)
    assert encoder(pset) is not before
    assert evaluate([gp.PrimitiveTree([pset.mapping["sin"], pset.mapping["x1"]])], points(3, 1), pset).shape == (1, 3)


# --- one machine, many workers ------------------------------------------------------------


def _fitted(text):
    return fit(tree(text), [trial("2*exp(-0.5*x1) + 3")]).constants.tolist()


TEXTS = ["C*exp(C*x1) + C", "C + C*x1", "C/(x1 + C)", "C*sin(C*x1)"]


def test_threads_and_spawned_processes_give_the_same_fits():
    serial = [_fitted(text) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_fitted, TEXTS * 5)) == serial * 5
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_fitted, TEXTS)) == serial


def test_importing_the_packages_does_not_import_numba_sympy_or_torch():
    assert _loaded_by("deap_vsr, deap_vsr.engine, cfg_mcts", "numba", "sympy", "torch") == "[]"
    assert _loaded_by("deap_vsr.methods", "sympy", "torch") == "[]"  # what is to search needs numba


def _loaded_by(modules, *names):
    code = f"import sys, {modules}; print([name for name in {names} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


def test_kernels_work_where_nothing_can_be_written(monkeypatch):
    from deap_vsr.engine import jit as module

    calls = []

    def njit(**options):
        calls.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(module.numba, "njit", njit)

    def size(items):
        return len(items)

    assert module.jit(size)([1, 2]) == 2
    assert [options.get("cache", False) for options in calls] == [True, False]


# --- scale, and what is handed over -------------------------------------------------------


@pytest.mark.parametrize("scale_y", [1e-30, 1e-6, 1e6, 1e30])
@pytest.mark.parametrize("scale_x", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("sqrt(C*x1 + C)", "sqrt(2*x1 + 0.7)"),
        ("inv(C*x1 + C)", "inv(2*x1 + 0.7)"),
        ("x2/(C*x1 + C)", "x2/(2*x1 + 0.7)"),
        ("(C*x1 + C)**2", "(2*x1 + 0.7)**2"),
        ("exp(C*x1 + C)", "exp(0.8*x1 + 0.7)"),
        ("exp(C)*x1", "3*x1"),
    ],
)
def test_forms_without_an_outer_constant_do_not_depend_on_scale_either(text, truth, scale_x, scale_y):
    plain = trial(truth)
    if text == "x2/(C*x1 + C)":
        plain = trial("x2/(2*x1 + 0.7)")
    X = plain.X * scale_x
    y = plain.y * scale_y
    if "x2" in text:
        X[:, 1] = plain.X[:, 1]
    assert fit(tree(text), [Trial(X, y)]).errors[0] < 1e-20


@pytest.mark.parametrize("optimizer", ["lm", "BFGS"])
def test_nothing_to_fit_is_the_worst_fit_not_the_best(optimizer):
    nothing = Trial(np.empty((0, 2)), np.empty(0))
    weightless = trial("x1", weights=np.zeros(100))
    found = fit(tree("C*x1"), [nothing, trial("x1"), weightless], optimizer=optimizer)
    assert np.isinf(found.errors[[0, 2]]).all()
    assert found.errors[1] < 1e-6
    assert found.stopped[0] == found.stopped[2] == "no points"


def test_points_of_weight_zero_may_be_anything():
    plain = trial("2*x1 + 1")
    y, weights = plain.y.copy(), np.ones(100)
    y[:3], weights[:3] = np.nan, 0
    assert fit(tree("C*x1 + C"), [Trial(plain.X, y, weights=weights)]).errors[0] < 1e-20


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([Trial(points(20), np.ones(30)), Trial(points(30), np.ones(20))], "trial 0: X has 20 points"),
        ([Trial(points(5, 2), np.ones(5)), Trial(points(5, 3), np.ones(5))], "different numbers of columns"),
        ([Trial(points(2), np.array(["a", "b"]))], "real numbers"),
        ([Trial(points(2), np.array([1j, 2]))], "real numbers"),
        ([Trial(points(2), np.ones((2, 1)))], "y has shape"),
        ([Trial([[1], [2, 3]], np.ones(2))], "not arrays of numbers"),
    ],
)
def test_data_that_do_not_go_together_are_refused(trials, message):
    with pytest.raises(ExpressionError, match=message):
        fit(tree("C*x1"), trials)


def test_primitive_sets_are_not_kept_for_ever_and_changes_of_a_function_are_noticed():
    from deap_vsr.engine import program

    for _ in range(60):
        evaluate([tree("x1")], points(), primitive_set(["add"], 2))
    assert len(program._ENCODERS) <= program._MAX_ENCODERS
    pset = gp.PrimitiveSet("changing", 1)
    pset.addPrimitive(math.sin, 1, name="f")
    expression = gp.PrimitiveTree([pset.mapping["f"], pset.mapping["ARG0"]])
    X = points(5, 1)
    np.testing.assert_allclose(evaluate([expression], X, pset)[0], np.sin(X[:, 0]))
    pset.context["f"] = math.cos
    np.testing.assert_allclose(evaluate([expression], X, pset)[0], np.cos(X[:, 0]))


def test_unknown_primitives_are_fitted_at_any_scale(own_set):
    names = ["add", "mul", "own_constant", "protected_division", "ARG0", "ARG1", "own_constant"]
    plain = trial("2*x1/x2 + 3")
    for scale in (1e-30, 1e30):
        found = fit(own_tree(own_set, names), [Trial(plain.X, plain.y * scale)], pset=own_set)
        assert found.errors[0] < 1e-18


@pytest.mark.parametrize("name", ["BFGS", "Nelder-Mead", "least_squares"])
def test_an_optimiser_cut_short_says_so(name):
    noisy = Trial(points(), np.random.default_rng(0).normal(size=100))
    found = fit(tree("C*sin(C*x1 + C)"), [noisy], optimizer=name, max_iterations=2, n_starts=0)
    assert found.stopped == ("iterations",)


def test_a_time_limit_follows_the_same_branch_from_trial_to_trial():
    trials = [trial(f"{a}*sin(1.5*x1) + 1", points(50, seed=k)) for k, a in enumerate((2.0, 2.1, 2.2))]
    with_limit, without = (fit(tree("C*sin(C*x1) + C"), trials, time_limit=limit) for limit in (30, None))
    assert (np.sign(with_limit.constants) == np.sign(with_limit.constants[0])).all()
    assert with_limit.evaluations < 4 * without.evaluations


# --- the error that is reported is that of the formula that comes out ----------------------


def nmse_by_numpy(formula, X, y):
    """Return the NMSE of a formula, constants as they are; inf where it is not finite."""
    with np.errstate(all="ignore"):
        error = np.sum(((y - formula.evaluate(X)) / np.sqrt(np.sum((y - y.mean()) ** 2))) ** 2)
    return float(error) if np.isfinite(error) else np.inf


@pytest.mark.parametrize("n_starts", [0, 1, 4])
@pytest.mark.parametrize("max_iterations", [5, 60])
def test_a_formula_that_drowns_y_in_a_large_term_is_not_called_exact(n_starts, max_iterations):
    X = np.random.default_rng(0).uniform(0, 3, (40, 1))
    y = np.sin(3 * X[:, 0]) + X[:, 0]
    drowning = tree("(C + C*C)*(x1 + C - (C*C + x1*C))")
    drowning = drowning.with_constants([-6.9e29, -1.417e15, 6.24e15, 0.0, -0.0, 2.7e29, 1.0])
    found = fit(drowning, [Trial(X, y)], n_starts=n_starts, max_iterations=max_iterations)
    true = nmse_by_numpy(found.trees[0], X, y)
    assert true > 0.1, "a straight line is all that it can be"
    assert found.errors[0] >= true / 2
    assert found.stopped[0] != "exact"


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_a_fit_is_that_of_its_formula_evaluated_by_numpy(seed):
    rng = random.Random(seed)
    X = points(30, 3, seed, 0.3, 3.0)
    y = (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2], X[:, 0] / X[:, 1], np.exp(X[:, 2]))[seed]
    trials = [Trial(X, y), Trial(X * 1.1, y)]
    compared = 0
    for i in range(200):
        found = fit(random_tree(rng, numbers=MODERATE_NUMBERS), trials, n_starts=i % 3, max_iterations=8)
        for error, formula, trial_ in zip(found.errors, found.trees, trials, strict=True):
            true = nmse_by_numpy(formula, trial_.X, trial_.y)
            nearby = nmse_by_numpy(formula, trial_.X * (1 + 1e-14), trial_.y)
            # sin(exp(20 x)) is rounding and no more: what it gives depends on the machine.
            if np.isfinite(error) and abs(nearby - true) <= 1e-7 * true + 1e-22:
                np.testing.assert_allclose(error, true, rtol=1e-6, atol=1e-25)
                compared += 1
    assert compared > 200


@pytest.mark.parametrize("numbers", [None, MODERATE_NUMBERS], ids=["any literals", "any starts"])
def test_no_fit_is_reported_better_than_its_formula_whatever_its_constants(numbers):
    rng = random.Random(5)
    X = points(30, 3, 1, 0.3, 3.0)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    compared = 0
    for i in range(300):
        candidate = random_tree(rng, numbers=numbers)
        starts = [[rng.choice((-1, 1)) * 10 ** rng.uniform(-30, 30) for _ in candidate.constants]]
        found = fit(candidate, [Trial(X, y)], starts=starts, n_starts=i % 2, max_iterations=8)
        if np.isfinite(found.errors[0]):
            assert found.errors[0] >= nmse_by_numpy(found.trees[0], X, y) / 2 - 1e-25, candidate.to_infix()
            compared += 1
    assert compared > 100


def softsign(x):
    return x / (1.0 + abs(x))


OWN = gp.PrimitiveSet("OWN", 1)
for _function, _arity in ((np.add, 2), (np.multiply, 2), (softsign, 1)):
    OWN.addPrimitive(_function, _arity)
OWN.addEphemeralConstant("own_constant", float)
OWN.renameArguments(ARG0="x1")


def own(text):
    nodes = {
        "+": OWN.mapping["add"],
        "*": OWN.mapping["multiply"],
        "s": OWN.mapping["softsign"],
        "x": OWN.mapping["x1"],
    }
    return MaskedTree([nodes[letter] if letter in nodes else Constant(1.0) for letter in text])


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_a_function_of_one_s_own_is_fitted_exactly_whatever_the_scale(scale):
    X = np.random.default_rng(0).uniform(-3, 3, (40, 1))
    y = scale * (2.5 * softsign(1.7 * X[:, 0]) + 0.3)
    found = fit(own("+*Cs*CxC"), [Trial(X, y), Trial(2 * X, 3 * y)], pset=OWN, n_starts=3)
    assert found.errors[0] < 1e-24
    np.testing.assert_allclose(found.constants[0], [2.5 * scale, 1.7, 0.3 * scale], rtol=1e-6)
    assert found.determined[0].all()
    assert found.ranks[0] == 3
    np.testing.assert_allclose(found.constants[1], [7.5 * scale, 0.85, 0.9 * scale], rtol=1e-6)


def test_what_is_linear_beside_a_function_of_one_s_own_takes_one_step():
    X = np.random.default_rng(0).uniform(-3, 3, (40, 1))
    found = fit(own("+*CsxC"), [Trial(X, 7.0 * softsign(X[:, 0]) - 2.0)], pset=OWN, n_starts=0)
    assert found.errors[0] < 1e-28
    assert found.evaluations <= 5


def test_constants_that_a_function_of_one_s_own_cannot_tell_apart_are_not_determined():
    X = np.random.default_rng(0).uniform(-3, 3, (40, 1))
    found = fit(own("**CCsx"), [Trial(X, 7.0 * softsign(X[:, 0]))], pset=OWN, n_starts=0)
    assert found.errors[0] < 1e-24
    assert not found.determined[0].any()
    assert found.ranks[0] == 1
