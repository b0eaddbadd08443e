"""The compiled kernels; run once more with NUMBA_DISABLE_JIT=1, for their coverage."""

import math
import random

import mpmath
import numba
import numpy as np
import pytest
import sympy
from deap import gp
from problems import points, tree, trial
from reference import condition
from strategies import MODERATE_NUMBERS, random_tree

from deap_vsr import Trial
from deap_vsr.engine import kernels
from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.engine.householder import qr
from deap_vsr.engine.program import encoder, evaluate, numpy_model
from deap_vsr.engine.trials import find_linear
from deap_vsr.tree import Constant, MaskedTree, Vocabulary, node_from_name
from deap_vsr.tree.guarded import FIRST, SPAN, every_opcode, guarded
from deap_vsr.tree.operators import CATALOGUE

EDGES = np.array(
    [-np.inf, -1e300, -3.5, -1.0, -0.5, -0.0, 0.0, 1e-300, 0.5, 1.0, 2.0, 3.5, 710.0, 1e300, np.inf, np.nan]
)


def derivatives(expression, X):
    """Return values and derivatives by the open constants, as the kernel computes them."""
    batch = encoder(None).encode([expression])
    r, J = np.empty(len(X)), np.empty((expression.n_constants, len(X)))
    kernels.residuals(
        batch.codes,
        batch.literals,
        np.array(expression.constants),
        np.ascontiguousarray(X.T),
        np.zeros(len(X)),
        np.ones(len(X)),
        r,
        J,
    )
    return r, J


def same(a, b, tolerance=1e-13):
    """Equal but for rounding, NaN and inf in the same places."""
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_array_equal(np.isinf(a), np.isinf(b))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=5e-324)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operator_has_the_catalogue_s_value(name):
    operator = CATALOGUE[name]
    X = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1).T[:, : operator.arity]
    if name == "pow" and numba.config.DISABLE_JIT:
        X = X[X[:, 0] != -np.inf]  # numpy's scalars and arrays disagree on (-inf) ** 0.5
    node = MaskedTree.from_tokens(
        [(name, "unary" if operator.arity == 1 else "binary"), *[(f"x{i + 1}", "var") for i in range(operator.arity)]]
    )
    same(evaluate([node], X)[0], operator(*X.T))


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operator_has_the_catalogue_s_derivatives(name):
    operator = CATALOGUE[name]
    values = EDGES[np.isfinite(EDGES) & (np.abs(EDGES) < 1e200)]
    for arguments in np.array(np.meshgrid(values, values)).reshape(2, -1).T[:, : operator.arity]:
        constants = [Constant(value) for value in arguments]
        expression = MaskedTree([node_from_name(name), *constants])
        _, J = derivatives(expression, np.zeros((1, 1)))
        expected = operator.derivative(operator(*arguments), *arguments)
        same(J[:, 0], np.array([float(partial) for partial in expected]))


def test_random_trees_agree_with_numpy_to_rounding_times_condition():
    rng = random.Random(0)
    trees = [random_tree(rng, 30) for _ in range(400)]
    X = points(4, 3, 0, -3, 3)
    compared = 0
    for expression, row in zip(trees, evaluate(trees, X), strict=True):
        for value, expected, x in zip(row, expression.evaluate(X), X, strict=True):
            _, bound, _ = condition(expression, x)
            if math.isfinite(expected) and math.isfinite(bound):
                compared += 1
                assert abs(value - expected) <= 1e-12 * bound * abs(expected), expression.to_infix()
            elif not math.isfinite(expected) and all_finite_before(expression, x):
                assert np.isnan(value) == np.isnan(expected)
                assert np.isinf(value) == np.isinf(expected)
    assert compared > 400


def all_finite_before(expression, x):
    """Whether the operands of the root are well-determined finite numbers."""
    parts = [expression[expression.searchSubtree(at)] for at in root_operands(expression)]
    return all(all(map(math.isfinite, condition(MaskedTree(part), x)[:2])) for part in parts)


def root_operands(expression):
    at = 1
    for _ in range(expression[0].arity):
        yield at
        at = expression.searchSubtree(at).stop


def test_values_do_not_depend_on_blocks_or_on_other_trees_of_the_list():
    X = points(3 * kernels.BLOCK + 5, 2)
    trees = [tree("sin(x1)*x2 + 1.5"), tree("x1/(x2 + C)"), tree("2.5")]
    together = evaluate(trees, X)
    for i, expression in enumerate(trees):
        np.testing.assert_array_equal(together[i], evaluate([expression], X)[0])
        np.testing.assert_array_equal(together[i][:9], evaluate([expression], X[:9])[0])


def test_derivatives_agree_with_the_numpy_model():
    rng = random.Random(5)
    X = points(kernels.BLOCK + 3, 3)
    compared = different = 0
    for _ in range(60):
        expression = random_tree(rng, 30, numbers=MODERATE_NUMBERS)
        _, J = derivatives(expression, X)
        _, expected = numpy_model(expression, X, Vocabulary())(np.array(expression.constants))
        good = np.isfinite(J) & np.isfinite(expected) & (np.abs(expected) < 1e6)
        compared += int(good.sum())
        different += int(np.sum(np.abs(J - expected)[good] > 1e-8 * np.abs(expected)[good] + 1e-12))
    assert compared > 1000
    assert different < 0.01 * compared  # ill-conditioned points; the complex-step test measures them


def test_qr_finds_rank_and_solution_whatever_the_scale_of_the_columns():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 4)) * [1e-8, 1.0, 1e8, 3.0]
    A[:, 3] = 2e8 * A[:, 0] - 1e-8 * A[:, 2]
    rows, others = np.ascontiguousarray(A.T), np.ascontiguousarray((A @ [1e8, 2.0, 3e-8, 0.0])[None, :])
    order, beta, diagonal = np.empty(4, np.int64), np.empty(4), np.empty(4)
    assert qr(rows, 1e-10, order, beta, diagonal, others) == 3
    assert np.linalg.norm(others[0, 3:]) < 1e-12 * np.linalg.norm(others[0, :3])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C + C*x1 - C*sin(x1)", [True, True, True]),
        ("(C + C*x1)*(C + x2)", [True, True, False]),
        ("C*(C + C*x1)", [False, True, True]),
        ("C/(C + x1)", [True, False]),
        ("-C*exp(C*x1)", [True, False]),
        ("sin(C)", [False]),
    ],
)
def test_constants_that_enter_linearly_are_found(text, expected):
    batch = encoder(None).encode([tree(text)])
    n = len(batch.codes)
    left, right, slot = np.empty((3, n), np.int32)
    kernels.layout(batch.codes, left, right, slot)
    linear = np.zeros(len(expected), np.bool_)
    assert find_linear(batch.codes, left, right, slot, linear) == sum(expected)
    assert linear.tolist() == expected


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("C + C*x1 + C*sin(x2)", "1 + 2*x1 - 3*sin(x2)"),
        ("C*exp(C*x1) + C", "2*exp(-0.5*x1) + 3"),
        ("sin(C*x1 + C)", "sin(1.3*x1 + 0.4)"),
        ("(C + C*x1)/(1 + C*x2)", "(1 + 2*x1)/(1 + 3*x2)"),
        ("C*x1**C", "3*x1**-1.7"),
        ("sqrt(C + C*x1**2)", "sqrt(3 + 0.2*x1**2)"),
    ],
)
def test_constants_are_fitted_exactly(text, truth):
    found = fit(tree(text), [trial(truth, points(40))], n_starts=2)
    assert found.errors[0] < 1e-24
    np.testing.assert_allclose(found.trees[0].evaluate(points(30, seed=9)), tree(truth).evaluate(points(30, seed=9)))
    assert found.ranks[0] == tree(text).n_constants
    assert found.determined.all()


def test_constants_that_the_data_cannot_determine_are_named():
    found = fit(tree("C*C*x1 + C*x2"), [trial("6*x1 + 2*x2", points(40))])
    assert found.errors[0] < 1e-24
    assert found.ranks[0] == 2
    assert found.determined.tolist() == [[False, False, True]]
    assert np.isinf(found.standard_errors[0, :2]).all()
    assert np.isfinite(found.standard_errors[0, 2])


def test_a_dataset_is_packed_once_and_a_trial_can_be_taken_out_of_it():
    data = Dataset.of([trial("x1", points(5)), trial("x2", points(7))])
    assert Dataset.of(data) is data
    assert data.trial(1).columns.shape == (2, 7)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("sin(C*x1)", "sin(2.2*x1)"),
        ("log(C*x1 + C)/x2", "log(3*x1 + 0.5)/x2"),
        ("x1**C", "x1**1.7"),
        ("abs(C*x1 - 3)", "abs(1.3*x1 - 3)"),
        ("(C - x1)**3", "(2.5 - x1)**3"),
        ("sqrt(sqrt(C*x1))", "sqrt(sqrt(2.5*x1))"),
        ("-inv(C + x1**4)", "-inv(2 + x1**4)"),
        ("(x1 + C)**5", "(x1 + 0.3)**5"),
        ("(x1*C)**6 + (C - x2)**8", "(x1*0.6)**6 + (0.9 - x2)**8"),
        ("exp(C*x1)/exp(C)", "exp(0.5*x1)/exp(2)"),
    ],
)
def test_inner_constants_are_found_from_far_off_starts(text, truth):
    skeleton = tree(text)
    starts = np.full((1, skeleton.n_constants), 37.0)
    found = fit(skeleton, [trial(truth, points(30))], starts=starts, n_starts=6)
    assert found.errors[0] < 1e-12


def test_a_form_that_cannot_fit_ends_with_a_reason():
    noisy = Trial(points(30), np.random.default_rng(0).normal(size=30))
    for text, reasons in (
        ("C*sin(C*x1 + C)", ("converged", "iterations", "stuck")),
        ("log(-exp(C*x1))", ("not finite",)),
        ("C*x1", ("converged",)),
    ):
        assert fit(tree(text), [noisy, noisy], n_starts=1, max_iterations=3).stopped[0] in reasons


def test_random_trees_agree_with_sympy_where_it_is_real_and_finite():
    rng = random.Random(3)
    trees = [random_tree(rng, 14, numbers=MODERATE_NUMBERS) for _ in range(120)]
    X = points(2, 3, 1)
    symbols = sympy.symbols("x1 x2 x3", real=True)
    compared = 0
    with mpmath.workdps(50):
        for expression, row in zip(trees, evaluate(trees, X), strict=True):
            function = sympy.lambdify(symbols, expression.to_sympy(), "mpmath")
            for value, x in zip(row, X, strict=True):
                _, bound, largest = condition(expression, x)
                if not (math.isfinite(value) and bound < 1e6 and largest < 1e100):
                    continue
                expected = function(*map(mpmath.mpf, x))
                if isinstance(expected, mpmath.mpf) and mpmath.isfinite(expected):
                    compared += 1
                    # sympy keeps 15 digits of our literals
                    assert abs(value - expected) <= 1e-12 * bound * abs(expected) + mpmath.mpf(10) ** -12
    assert compared > 80


GUARDED = [guarded(opcode) for arity in (1, 2) for opcode in every_opcode(arity)]


def guarded_set():
    pset = gp.PrimitiveSet("GUARDED", 2)
    for operator in GUARDED:
        pset.addPrimitive(operator, operator.arity, name=f"f{operator.opcode}")
    return pset


def test_every_guarded_operator_has_the_catalogue_s_value():
    pset = guarded_set()
    near = np.array([sign * value for value in (1e-12, 1e-3, np.nextafter(1e-3, 0), 0.1) for sign in (1, -1)])
    edges = np.concatenate([EDGES[~np.isnan(EDGES)], near])
    X = np.array(np.meshgrid(edges, edges)).reshape(2, -1).T
    leaves = [pset.mapping["ARG0"], pset.mapping["ARG1"]]
    trees = [MaskedTree([pset.mapping[f"f{one.opcode}"], *leaves[: one.arity]]) for one in GUARDED]
    for operator, values in zip(GUARDED, evaluate(trees, X, pset), strict=True):
        same(values, operator(*X.T[: operator.arity]))


def test_every_guarded_operator_has_the_catalogue_s_derivatives():
    pset = guarded_set()
    edges = np.array([-3.5, -1e-3, -1e-13, 0.0, 1e-12, np.nextafter(1e-3, 0), 1e-3, 0.5, 2.0])
    for arity in (1, 2):
        points = np.array(np.meshgrid(edges, edges)).reshape(2, -1).T[:, :arity]
        some = [one for one in GUARDED if one.arity == arity and (one.opcode - FIRST) % SPAN in (0, 10, 22)]
        for operator in some:  # of each kind those of three thresholds
            node = pset.mapping[f"f{operator.opcode}"]
            for arguments in points:
                expression = MaskedTree([node, *map(Constant, arguments)])
                batch = encoder(pset).encode([expression])
                r, J = np.empty(1), np.empty((arity, 1))
                kernels.residuals(
                    batch.codes, batch.literals, np.array(arguments), np.zeros((2, 1)), np.zeros(1), np.ones(1), r, J
                )
                with np.errstate(all="ignore"):
                    expected = operator.derivative(operator(*arguments), *arguments)
                same(J[:, 0], np.array([float(partial) for partial in expected]))
