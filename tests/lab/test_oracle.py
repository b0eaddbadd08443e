"""Oracles: counting, noise, limits, and what happens when a function does not do as it should."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deap_vsr.errors import ExpressionError, OracleError, VsrError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import CallableOracle, EquationOracle, Noise
from deap_vsr.problems.equation import Equation, Variable, load_equation
from deap_vsr.problems.sampling import draw_inputs

KINDS = ("normal", "uniform", "laplace", "exponential", "logistic")
UNIT = [(0.0, 1.0), (0.0, 1.0)]
POINTS = np.array([[0.5, 0.25], [0.125, 0.75], [1.0, 0.0]])


def total(X: Any) -> Any:
    return X.sum(axis=1)


def noise_of(oracle: CallableOracle, n_points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what the oracle adds to a function that is 0."""
    return oracle.evaluate(np.full((n_points, oracle.n_vars), 0.5))


def flat(**options: Any) -> CallableOracle:
    return CallableOracle(lambda X: np.zeros(len(X)), UNIT, **options)


# --- asking -------------------------------------------------------------------------------


def test_an_oracle_answers_and_says_what_it_is() -> None:
    oracle = CallableOracle(total, [Variable("x1", 1, 2, "integer"), (-1, 1)], ["plus", "sin", "const", "add"])
    np.testing.assert_array_equal(oracle.evaluate(np.array([[1.0, -0.5], [1.0, 1.0]])), [0.5, 2.0])
    assert oracle.n_vars == 2
    assert oracle.names == ("x1", "x2")
    assert oracle.variables == (Variable("x1", 1, 2, "integer"), Variable("x2", -1, 1, "uniform", "as_range", "x2"))
    assert oracle.function_set == ("add", "sin", "const")
    assert oracle.limits == ((1, 1), (-1, 1))
    assert oracle.repeatable


def test_a_bare_pair_is_sampled_uniformly_with_its_own_signs() -> None:
    oracle = CallableOracle(total, [(0, 1), (-2, 3)])
    assert [(v.sampling, v.sign, v.bounds) for v in oracle.variables] == [
        ("uniform", "positive", (0, 1)),
        ("uniform", "as_range", (-2, 3)),
    ]


def test_every_point_asked_is_counted() -> None:
    oracle = CallableOracle(total, UNIT)
    assert oracle.queries == 0
    oracle.evaluate(POINTS)
    oracle.evaluate(POINTS[:1])
    assert oracle.queries == 4
    oracle.evaluate(POINTS)
    assert oracle.queries == 7, "the same points asked again are asked again"
    oracle.evaluate(np.empty((0, 2)))
    assert oracle.queries == 7


def test_points_with_no_finite_answer_are_counted() -> None:
    oracle = CallableOracle(lambda X: np.full(len(X), np.nan), UNIT)
    assert np.isnan(oracle.evaluate(POINTS)).all()
    assert oracle.queries == 3


def test_points_at_which_the_function_raises_are_counted() -> None:
    oracle = CallableOracle(lambda X: 1 / 0, UNIT)
    with pytest.raises(OracleError):
        oracle.evaluate(POINTS)
    assert oracle.queries == 3


def test_points_that_are_refused_are_not_counted() -> None:
    oracle = CallableOracle(total, UNIT)
    for X in (POINTS + 5, POINTS[:, :1], POINTS[0]):
        with pytest.raises(OracleError):
            oracle.evaluate(X)
    assert oracle.queries == 0


def test_infinite_and_undefined_answers_are_data() -> None:
    oracle = CallableOracle(lambda X: np.log(X[:, 0]) / X[:, 1], UNIT)
    y = oracle.evaluate(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(y, [-np.inf, np.nan, -np.inf, 0.0])


def test_no_points_give_no_answers() -> None:
    assert CallableOracle(total, UNIT, noise=1.0).evaluate(np.empty((0, 2))).shape == (0,)
    assert CallableOracle(sum, UNIT, vectorized=False).evaluate(np.empty((0, 2))).shape == (0,)


def test_lists_of_whole_numbers_may_be_asked() -> None:
    y = CallableOracle(total, UNIT).evaluate([[0, 1], [1, 1]])  # type: ignore[arg-type]
    assert y.dtype == float
    np.testing.assert_array_equal(y, [1, 2])


def test_a_function_of_one_point_is_called_for_each() -> None:
    shapes = []

    def one(point: Any) -> float:
        shapes.append(point.shape)
        return float(point[0] - point[1])

    oracle = CallableOracle(one, UNIT, vectorized=False)
    np.testing.assert_array_equal(oracle.evaluate(POINTS), POINTS[:, 0] - POINTS[:, 1])
    assert shapes == [(2,)] * 3
    assert oracle.queries == 3


@pytest.mark.parametrize("vectorized", [True, False])
def test_the_callers_points_are_not_changed_even_if_the_function_writes_into_them(vectorized: bool) -> None:
    def greedy(X: Any) -> Any:
        X += 1
        return X.sum(axis=-1)

    X = POINTS.copy()
    y = CallableOracle(greedy, UNIT, vectorized=vectorized).evaluate(X)
    np.testing.assert_array_equal(X, POINTS)
    np.testing.assert_array_equal(y, POINTS.sum(axis=1) + 2)


def test_an_answer_is_not_changed_by_the_next_question() -> None:
    buffer = np.empty(3)

    def simulator(X: Any) -> Any:
        buffer[:] = X.sum(axis=1)  # the same memory for every answer
        return buffer

    oracle = CallableOracle(simulator, UNIT)
    first = oracle.evaluate(POINTS)
    oracle.evaluate(POINTS / 2)
    np.testing.assert_array_equal(first, POINTS.sum(axis=1))


# --- limits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "named"),
    [
        ([1.01, 0.5], "x1 = 1.01"),
        ([0.5, -0.01], "x2 = -0.01"),
        ([np.nan, 0.5], "x1 = nan"),
        ([0.5, np.inf], "x2 = inf"),
    ],
)
def test_a_point_outside_the_limits_is_refused_by_name(point: list[float], named: str) -> None:
    asked: list[Any] = []
    oracle = CallableOracle(asked.append, UNIT)
    with pytest.raises(OracleError, match=f"{named} is outside the oracle's limits"):
        oracle.evaluate(np.array([[0.5, 0.5], point]))
    assert asked == [], "the function was not asked"


def test_limits_may_be_wider_or_narrower_than_the_domain() -> None:
    oracle = CallableOracle(total, UNIT, limits=[(-5, 5), (0.4, 0.6)])
    np.testing.assert_array_equal(oracle.evaluate(np.array([[-5, 0.5], [5, 0.4]])), [-4.5, 5.4])
    with pytest.raises(OracleError, match=r"x2 = 0\.3"):
        oracle.evaluate(np.array([[0.5, 0.3]]))


def test_the_limits_are_by_default_what_can_be_drawn() -> None:
    variables = [Variable("x1", 1, 5, "integer", "both"), Variable("x2", 0.1, 10, "loguniform")]
    oracle = CallableOracle(total, variables)
    assert oracle.limits == ((-4, 4), (0.1, 10))
    assert np.isfinite(oracle.evaluate(draw_inputs(variables, 500, np.random.default_rng(0)))).all()


def test_an_equation_answers_at_any_real_inputs() -> None:
    oracle = EquationOracle(load_equation("feynman/I.39.22"))
    far = np.full((1, oracle.n_vars), 1e6)
    np.testing.assert_array_equal(oracle.evaluate(far), oracle.equation.evaluate(far))
    with pytest.raises(OracleError, match="nan is outside"):
        oracle.evaluate(far * np.nan)


# --- functions that do not do as they should ----------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda X: X,
        lambda X: X[:, :1],
        lambda X: X[:-1, 0],
        lambda X: X[0, 0],
        lambda X: 1.0,
        lambda X: None,
        lambda X: [],
        lambda X: [[1.0]] * len(X),
        lambda X: np.zeros((len(X), 1, 1)),
        lambda X: "abc",
        lambda X: [1.0, [2.0], 3.0],
        lambda X: ["a"] * len(X),
        lambda X: ["1.5"] * len(X),
        lambda X: np.array(["1.5"] * len(X)),
        lambda X: np.array([b"1"] * len(X)),
        lambda X: [None] * len(X),
        lambda X: {0: 1.0},
        lambda X: object(),
        lambda X: [object()] * len(X),
        lambda X: total(X) + 1j,
        lambda X: total(X) + 0j,
        lambda X: [1j] * len(X),
        lambda X: [10**400] * len(X),
        lambda X: np.array(["2020-01-01"] * len(X), dtype="datetime64[D]"),
        lambda X: iter(X[:, 0]),
    ],
    ids=[
        "X itself",
        "a column",
        "too few",
        "one value",
        "one number",
        "nothing",
        "empty",
        "nested",
        "three dimensions",
        "text",
        "ragged",
        "texts",
        "numbers as texts",
        "array of texts",
        "bytes",
        "Nones",
        "dictionary",
        "object",
        "objects",
        "complex array",
        "complex array without imaginary part",
        "complex list",
        "too large for a float",
        "dates",
        "iterator",
    ],
)
def test_an_answer_that_is_not_one_real_number_for_each_point_is_an_error(answer: Callable[[Any], Any]) -> None:
    oracle = CallableOracle(answer, UNIT)
    with pytest.raises(OracleError, match=r"asked for 3 point\(s\), the first at x1=0\.5, x2=0\.25"):
        oracle.evaluate(POINTS)


@pytest.mark.parametrize("answer", ["1.5", 1j, None, [1.0], np.zeros(1), "abc", object()])
def test_an_answer_for_one_point_that_is_no_real_number_is_an_error(answer: Any) -> None:
    oracle = CallableOracle(lambda point: answer, UNIT, vectorized=False)
    with pytest.raises(OracleError, match=r"asked for 3 point\(s\), the first at x1=0\.5, x2=0\.25"):
        oracle.evaluate(POINTS)


@pytest.mark.parametrize(
    "answer",
    [
        lambda X: list(X[:, 0]),
        lambda X: X[:, 0].astype(np.float32),
        lambda X: X[:, 0] > 0.3,
        lambda X: (X[:, 0] * 8).astype(int),
        lambda X: tuple(range(len(X))),
        lambda X: np.array([1, 2.5, True], dtype=object),
    ],
    ids=["list", "single precision", "truth values", "whole numbers", "tuple", "objects that are numbers"],
)
def test_any_sequence_of_real_numbers_is_an_answer(answer: Callable[[Any], Any]) -> None:
    y = CallableOracle(answer, UNIT).evaluate(POINTS)
    assert y.dtype == float
    np.testing.assert_array_equal(y, np.array(answer(POINTS), dtype=float))


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("error", [ValueError("bad flask"), KeyError("x"), ZeroDivisionError(), VsrError("ours")])
def test_a_function_that_raises_is_an_error_that_says_what_and_where(error: Exception, vectorized: bool) -> None:
    def broken(X: Any) -> Any:
        raise error

    oracle = CallableOracle(broken, UNIT, vectorized=vectorized)
    with pytest.raises(OracleError, match=rf"raised {type(error).__name__}.*x1=0\.5, x2=0\.25") as caught:
        oracle.evaluate(POINTS)
    assert str(error) in str(caught.value)
    assert caught.value.__cause__ is error


def test_an_interrupt_is_not_taken_for_an_answer() -> None:
    def interrupted(X: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CallableOracle(interrupted, UNIT).evaluate(POINTS)


def test_a_point_of_many_variables_is_named_briefly() -> None:
    oracle = CallableOracle(lambda X: 1 / 0, [(0, 1)] * 500)
    with pytest.raises(OracleError, match=r"x1=0\.5, x2=0\.5") as caught:
        oracle.evaluate(np.full((2, 500), 0.5))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("X", [POINTS[0], POINTS[:, :1], np.zeros((2, 3)), np.zeros((1, 2, 2)), np.float64(1)])
def test_points_in_the_wrong_shape_are_refused(X: Any) -> None:
    with pytest.raises(OracleError, match=r"X has shape .*, expected \(n_points, 2\)"):
        CallableOracle(total, UNIT).evaluate(X)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((total, []), {}, "at least one variable"),
        ((total, [(1, 0)]), {}, "domain of variable 1"),
        ((total, [(0, 1), (2, 2)]), {}, "domain of variable 2"),
        ((total, [(0, np.inf)]), {}, "finite numbers low < high"),
        ((total, [(np.nan, 1)]), {}, "finite numbers low < high"),
        ((total, UNIT), {"limits": [(0, 1)]}, "1 limits for 2 variables"),
        ((total, UNIT), {"noise": -1.0}, "noise scale -1.0"),
        ((total, UNIT), {"noise": float("nan")}, "noise scale nan"),
        ((total, UNIT), {"noise": float("inf")}, "noise scale inf"),
        ((total, UNIT), {"noise": Noise(0.1, relative=True)}, "needs the spread of y"),
        ((total, UNIT), {"noise": Noise(0.1, relative=True), "spread": np.nan}, "needs the spread of y"),
        ((total, UNIT), {"noise": Noise(0.1, relative="rms")}, "root mean square"),
        ((total, UNIT), {"noise": Noise(0.1, relative=True), "spread": -1.0}, "needs the spread of y"),
    ],
)
def test_an_oracle_that_cannot_be_is_refused(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(OracleError, match=message):
        CallableOracle(*arguments, **options)


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ExpressionError, match="unknown operator 'foo'"):
        CallableOracle(total, UNIT, ["add", "foo"])


# --- noise --------------------------------------------------------------------------------


def test_the_kinds_of_noise_are_known() -> None:
    for kind in KINDS:
        assert Noise(0.1, kind).kind == kind
    with pytest.raises(OracleError, match=f"unknown noise 'pink'; known are {', '.join(KINDS)}"):
        Noise(0.1, "pink")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_noise_has_mean_0_and_its_scale_as_standard_deviation(kind: str, scale: float) -> None:
    n = 200_000
    noise = noise_of(flat(noise=Noise(scale, kind), seed=1), n)
    assert np.mean(noise) == pytest.approx(0, abs=5 * scale / np.sqrt(n))
    assert np.std(noise) == pytest.approx(scale, rel=0.015)


@pytest.mark.parametrize(
    ("kind", "kurtosis", "skewness"),
    [("normal", 3, 0), ("uniform", 1.8, 0), ("laplace", 6, 0), ("exponential", 9, 2), ("logistic", 4.2, 0)],
)
def test_each_kind_of_noise_has_its_own_shape(kind: str, kurtosis: float, skewness: float) -> None:
    noise = noise_of(flat(noise=Noise(1.0, kind), seed=1), 400_000)
    assert np.mean(noise**4) == pytest.approx(kurtosis, rel=0.08)
    assert np.mean(noise**3) == pytest.approx(skewness, abs=0.1)


def test_a_number_is_the_standard_deviation_of_normal_noise() -> None:
    np.testing.assert_array_equal(noise_of(flat(noise=0.5, seed=3), 50), noise_of(flat(noise=Noise(0.5), seed=3), 50))


def test_noise_is_added_to_the_functions_values() -> None:
    y = CallableOracle(total, UNIT, noise=0.1, seed=2).evaluate(POINTS)
    np.testing.assert_allclose(y - total(POINTS), noise_of(flat(noise=0.1, seed=2), 3), atol=1e-15)


def test_without_noise_the_values_are_exact() -> None:
    np.testing.assert_array_equal(CallableOracle(total, UNIT).evaluate(POINTS), total(POINTS))
    np.testing.assert_array_equal(
        CallableOracle(total, UNIT, noise=Noise(0, "laplace")).evaluate(POINTS), total(POINTS)
    )


def test_a_point_asked_twice_is_measured_twice() -> None:
    oracle = CallableOracle(total, UNIT, noise=0.1)
    assert (oracle.evaluate(POINTS) != oracle.evaluate(POINTS)).all()
    twice = oracle.evaluate(np.vstack([POINTS[:1], POINTS[:1]]))
    assert twice[0] != twice[1]


@pytest.mark.parametrize("kind", KINDS)
def test_noise_does_not_depend_on_how_points_are_grouped(kind: str) -> None:
    X = np.random.default_rng(0).uniform(0, 1, (100, 2))
    whole = CallableOracle(total, UNIT, noise=Noise(0.3, kind), seed=4).evaluate(X)
    oracle = CallableOracle(total, UNIT, noise=Noise(0.3, kind), seed=4)
    parts = [oracle.evaluate(part) for part in np.split(X, [1, 2, 2, 30, 99])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_noise_does_not_depend_on_which_answers_are_finite() -> None:
    def holes(X: Any) -> Any:
        return np.where(X[:, 0] > 0.4, total(X), np.nan)

    with_holes = CallableOracle(holes, UNIT, noise=0.1, seed=5).evaluate(POINTS)
    without = CallableOracle(total, UNIT, noise=0.1, seed=5).evaluate(POINTS)
    np.testing.assert_array_equal(with_holes[[0, 2]], without[[0, 2]])
    assert np.isnan(with_holes[1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_fixes_the_noise(kind: str) -> None:
    same = [noise_of(flat(noise=Noise(1.0, kind), seed=6), 20) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert (noise_of(flat(noise=Noise(1.0, kind), seed=7), 20) != same[0]).all()


def test_the_noise_of_two_oracles_does_not_interfere() -> None:
    alone = noise_of(flat(noise=1.0, seed=1), 10)
    first, second = flat(noise=1.0, seed=1), flat(noise=1.0, seed=2)
    np.random.seed(0)  # noqa: NPY002
    mixed = [noise_of(oracle, 5) for oracle in (first, second, first)]
    np.testing.assert_array_equal(np.concatenate([mixed[0], mixed[2]]), alone)


@pytest.mark.parametrize("kind", KINDS)
def test_an_oracle_goes_on_from_its_state_with_the_same_noise_and_count(kind: str) -> None:
    oracle, other = flat(noise=Noise(1.0, kind), seed=6), flat(noise=Noise(1.0, kind), seed=99)
    noise_of(oracle, 7)
    state = json.loads(json.dumps(oracle.state()))
    expected = noise_of(oracle, 5)
    other.restore(state)
    assert other.queries == 7
    np.testing.assert_array_equal(noise_of(other, 5), expected)
    assert other.queries == oracle.queries == 12


def test_noise_is_the_same_under_every_hash_seed(run_python: Callable[..., str]) -> None:
    script = """
import numpy as np
from deap_vsr import CallableOracle, EquationOracle, Noise, load_equation, sample_trials
problem = load_equation("feynman/I.39.22")
for kind in ("normal", "uniform", "laplace", "exponential", "logistic"):
    oracle = EquationOracle(problem, Noise(0.1, kind, relative=True), seed=3)
    for trial in sample_trials(oracle, [0], 2, 3, np.random.default_rng(8)):
        print(trial.X.tolist(), trial.y.tolist())
"""
    printed = [run_python(script, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 10


# --- relative noise and equations ---------------------------------------------------------


def test_relative_noise_is_scaled_by_the_spread() -> None:
    relative = noise_of(flat(noise=Noise(0.1, relative=True), spread=50.0, seed=1), 100)
    np.testing.assert_allclose(relative, noise_of(flat(noise=5.0, seed=1), 100), rtol=1e-12)


def test_relative_noise_of_scale_0_needs_no_spread() -> None:
    np.testing.assert_array_equal(noise_of(flat(noise=Noise(0.0, relative=True)), 5), np.zeros(5))


@pytest.mark.parametrize("name", ["feynman-unit/I.39.22", "trigonometric/sincosinv/4-4-6/prog_3"])
def test_relative_noise_of_an_equation_follows_the_spread_over_its_domain(name: str) -> None:
    equation = load_equation(name)
    X = draw_inputs(equation.variables, 50_000, np.random.default_rng(9))
    y = equation.evaluate(X)
    noise = EquationOracle(equation, Noise(0.2, relative=True), seed=1).evaluate(X) - y
    assert np.std(noise) == pytest.approx(0.2 * np.std(y), rel=0.1)


def test_noise_can_be_a_share_of_the_root_mean_square_as_srbench_has_it() -> None:
    equation = load_equation("feynman-unit/I.6.20b")
    X = draw_inputs(equation.variables, 50_000, np.random.default_rng(9))
    y = equation.evaluate(X)
    noise = EquationOracle(equation, Noise(0.2, relative="rms"), seed=1).evaluate(X) - y
    assert np.std(noise) == pytest.approx(0.2 * np.sqrt(np.mean(y**2)), rel=0.1)
    assert np.mean(y**2) > 1.1 * np.var(y)  # so that it is not the standard deviation


def test_noise_relative_to_anything_else_is_refused() -> None:
    with pytest.raises(OracleError, match="relative to 'max'"):
        Noise(0.1, relative="max")


def test_relative_noise_passes_over_points_where_the_formula_is_not_finite(
    make_equation: Callable[..., Equation],
) -> None:
    equation = make_equation(equation=[["log", "unary"], ["x2", "var"]], function_set=["log"], formula="log(x2)")
    X = draw_inputs(equation.variables, 50_000, np.random.default_rng(9))
    y = equation.evaluate(X)
    noise = EquationOracle(equation, Noise(0.2, relative=True), seed=1).evaluate(X) - y
    good = np.isfinite(y)
    assert 0 < good.sum() < len(y)
    assert np.std(noise[good]) == pytest.approx(0.2 * np.std(y[good]), rel=0.1)


def test_an_equations_oracle_is_its_formula_with_noise(make_equation: Callable[..., Equation]) -> None:
    equation = make_equation()
    oracle = EquationOracle(equation, 0.1, seed=5)
    assert oracle.variables == equation.variables
    assert oracle.function_set == equation.function_set
    assert oracle.repeatable
    X = draw_inputs(equation.variables, 10, np.random.default_rng(0))
    noise = oracle.evaluate(X) - equation.evaluate(X)
    np.testing.assert_allclose(noise, noise_of(flat(noise=0.1, seed=5), 10), atol=1e-14)
    assert oracle.queries == 10, "what the oracle itself needed is not counted"


def test_working_out_the_spread_is_no_query(make_equation: Callable[..., Equation]) -> None:
    assert EquationOracle(make_equation(), Noise(0.1, relative=True)).queries == 0


def test_noise_is_a_value_that_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Noise(0.1).scale = 0.2  # type: ignore[misc]


@pytest.mark.parametrize(
    "arguments",
    [(5.0, 1.0), (0.0, 1.0, "loguniform"), (0.0, 1.0, "gauss"), (float("nan"), 1.0), (0.0, 1.0, "uniform", "odd")],
)
def test_a_variable_that_cannot_be_drawn_is_refused_when_it_is_made(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(VsrError, match="variable x1"):
        Variable("x1", *arguments)


def test_masked_answers_are_none() -> None:
    # Fails at 7ff2e9b: what is below the mask was taken.
    def law(X: np.ndarray) -> np.ndarray:
        return np.ma.masked_where(X[:, 0] > 1.0, X[:, 0])

    y = Lab(CallableOracle(law, [(0.0, 2.0)])).ask(np.array([[0.5], [1.5]]))
    np.testing.assert_array_equal(y, [0.5, np.nan])
