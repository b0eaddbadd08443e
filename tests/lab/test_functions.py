import math
import threading

import numpy as np
import pytest

from deap_vsr import OracleError
from deap_vsr.errors import OracleFailure
from deap_vsr.lab.domains import inputs_of
from deap_vsr.lab.functions import FunctionOracle
from deap_vsr.testing import RepeatingOracleContract

VARIABLES = inputs_of({"T": (1, 2), "p": (3, 5)}).variables
X = np.array([[1.0, 3.0], [1.5, 4.0], [2.0, 5.0]])


def oracle(function, variables=VARIABLES, **options):
    return FunctionOracle(function, variables, ["add", "mul"], **options)


class TestContract(RepeatingOracleContract):
    def make(self):
        return oracle(lambda T, p: T * p)


def total(T, p=1.0):
    return math.sqrt(T) * p


FUNCTIONS = {
    "names": (lambda T, p: T * p, "named"),
    "names in another order": (lambda p, T: T * p, "named"),
    "names with a default": (lambda T, p=1.0, scale=1.0: scale * T * p, "named"),
    "any names": (lambda **row: row["T"] * row["p"], "named"),
    "values": (lambda a, b: a * b, "values"),
    "any values": (lambda *values: values[0] * values[1], "values"),
    "ufunc": (np.multiply, "values"),
    "row": (lambda x: x[0] * x[1], "row"),
    "row, unpacked": (math.prod, "row"),
    "batch": (lambda X: X[:, 0] * X[:, 1], "batch"),
    "batch of one column": (lambda X: X[:, :1] * X[:, 1:], "batch"),
    "row or batch": (lambda X: X[..., 0] * X[..., 1], "row"),
    "with an option": (lambda X, scale=1.0: scale * X[:, 0] * X[:, 1], "batch"),
}


@pytest.mark.parametrize(("function", "how"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_is_called_as_it_wants_to_be(function, how):
    asked = oracle(function)
    np.testing.assert_allclose(asked.evaluate(X), X[:, 0] * X[:, 1])
    assert asked.how == how
    assert asked.queries == 3


@pytest.mark.parametrize(
    "function", [lambda x: x**2, lambda x: x[0] ** 2, lambda X: X[:, 0] ** 2, np.square], ids=range(4)
)
def test_a_function_of_one_variable(function):
    asked = oracle(function, inputs_of([(1, 2)]).variables)
    np.testing.assert_allclose(asked.evaluate([[1.0], [2.0]]), [1.0, 4.0])


def test_python_functions_of_numbers_are_handed_numbers_and_whole_ones_where_they_are_whole():
    seen = []
    variables = inputs_of({"T": (1, 2), "n": (1, 5, "integer")}).variables
    oracle(lambda T, n: seen.append((type(T), type(n))) or sum([T] * n), variables).evaluate([[1.5, 2.0]])
    assert seen == [(float, int)]


@pytest.mark.parametrize("call", ["named", "values", "row", "batch"])
def test_how_it_is_called_can_be_said(call):
    functions = {"named": total, "values": total, "row": lambda x: x[0], "batch": lambda X: X[:, 0]}
    assert oracle(functions[call], call=call).evaluate(X).shape == (3,)


def test_other_arguments_than_variables_are_refused_with_both():
    for function in (lambda T, pressure: T, lambda T: T, lambda a, b, c: a):
        with pytest.raises(OracleError, match=r"the function takes .* the variables are T, p"):
            oracle(function)
    with pytest.raises(OracleError, match="call is 'loud'"):
        oracle(total, call="loud")
    with pytest.raises(OracleError, match="workers is 0"):
        oracle(total, workers=0)
    with pytest.raises(OracleError, match="nothing is known of colour"):
        oracle(total, colour="red")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_point_that_raises_has_no_answer_and_the_others_are_asked_once(workers):
    asked = []

    def fails(T, p):
        asked.append(T)
        if T == 1.5:
            raise ValueError("does not converge")
        return T

    heard = dict(oracle(fails, workers=workers).stream(X))
    assert [heard[0].values, heard[2].values] == [(1.0,), (2.0,)]
    assert str(heard[1]) == "does not converge"
    assert sorted(asked) == [1.0, 1.5, 2.0]
    with pytest.raises(OracleFailure, match=r"ValueError: does not converge; at T=1\.5, p=4"):
        oracle(fails).evaluate(X)


def test_a_batch_that_raises_is_asked_point_by_point():
    def fails(X):
        if (X[:, 0] == 1.5).any():
            raise ValueError("does not converge")
        return X[:, 0]

    heard = dict(oracle(fails).stream(X))
    assert [heard[0].values, heard[2].values] == [(1.0,), (2.0,)]
    assert isinstance(heard[1], ValueError)


@pytest.mark.parametrize("answer", [None, "text", 1j, [1.0, 2.0, 3.0], {}])
def test_what_is_no_number_is_no_answer(answer):
    if answer == {}:
        with pytest.raises(OracleError, match="0 outputs"):
            list(oracle(lambda T, p: answer).stream(X))
        return
    assert all(isinstance(heard, OracleFailure) for _, heard in oracle(lambda T, p: answer).stream(X))


def test_numbers_of_any_kind_are_answers():
    for answer in (1, True, np.float32(1), np.array([1.0]), {"y": 1.0}):
        assert oracle(lambda T, p, answer=answer: answer).evaluate(X).tolist() == [1.0] * 3


def test_a_number_and_its_standard_error():
    y, sigma = oracle(lambda T, p: (T, 0.1)).evaluate(X)
    assert (y.tolist(), sigma.tolist()) == (X[:, 0].tolist(), [0.1] * 3)
    y, sigma = oracle(lambda X: (X[:, 0], 0.1 * X[:, 1])).evaluate(X)
    assert (y.tolist(), sigma.tolist()) == (X[:, 0].tolist(), (0.1 * X[:, 1]).tolist())


@pytest.mark.parametrize(
    "function",
    [
        lambda T, p: {"a": T, "b": p, "more": 0},
        lambda T, p: (T, p),
        lambda T, p: np.array([T, p]),
        lambda X: {"a": X[:, 0], "b": X[:, 1]},
        lambda X: np.column_stack([X[:, 0], X[:, 1]]),
        lambda X: (X[:, 0], X[:, 1]),
    ],
    ids=["mapping", "tuple", "array", "mapping of columns", "columns", "tuple of columns"],
)
def test_several_outputs(function):
    heard = dict(oracle(function, outputs=["a", "b"]).stream(X))
    assert [heard[i].values for i in range(3)] == [tuple(row) for row in X.tolist()]


def test_outputs_that_are_not_there_are_told_of():
    heard = [str(heard) for _, heard in oracle(lambda T, p: {"a": T}, outputs=["a", "b"]).stream(X)]
    assert all("the answer has no b" in each for each in heard)
    with pytest.raises(OracleError, match=r"2 outputs \(a, b\): say which"):
        oracle(lambda T, p: {"a": T, "b": p}).evaluate(X)


# --- several at the same time -------------------------------------------------------------


def test_answers_are_told_in_the_order_in_which_they_come():
    gate = threading.Event()

    def waits(T, p):
        if T == 1.0:
            assert gate.wait(30)
        return T

    stream = oracle(waits, workers=2).stream(X[:2])
    assert next(stream)[0] == 1
    gate.set()
    assert next(stream)[0] == 0


def test_noise_is_that_of_the_place_of_a_point_whoever_answers_first():
    alone = oracle(lambda T, p: T, noise=0.5, seed=4).evaluate(X)
    gates = [threading.Event() for _ in range(3)]

    def backwards(T, p):
        place = [1.0, 1.5, 2.0].index(T)
        assert place == 2 or gates[place + 1].wait(30)
        gates[place].set()
        return T

    assert oracle(backwards, noise=0.5, seed=4, workers=3).evaluate(X).tolist() == alone.tolist()


def test_processes_and_joblib_share_a_program():
    from joblib import Parallel, delayed

    asked = oracle(lambda T, p: T * p, workers=2, processes=True)
    assert np.array_equal(asked.evaluate(X), X[:, 0] * X[:, 1])
    assert Parallel(n_jobs=2)(delayed(abs)(-i) for i in range(3)) == [0, 1, 2]
    assert np.array_equal(asked.evaluate(X), X[:, 0] * X[:, 1])


def test_processes_answer_as_threads_do():
    many = np.random.default_rng(0).uniform([1, 3], [2, 5], (20, 2))
    asked = oracle(lambda T, p: math.exp(T) * p, workers=2, processes=True)
    np.testing.assert_allclose(asked.evaluate(many), np.exp(many[:, 0]) * many[:, 1])


def dies(T, p):
    if T == 1.5:
        import os

        os._exit(3)
    return T


def test_a_point_that_ends_its_process_has_no_answer_and_the_others_have():
    heard = dict(oracle(dies, workers=2, processes=True).stream(X))
    assert [heard[0].values, heard[2].values] == [(1.0,), (2.0,)]
    assert isinstance(heard[1], Exception)


# --- what cannot be asked -----------------------------------------------------------------


def test_settings_that_exclude_each_other_are_known_before():
    asked = oracle(lambda T, p: T, feasible=lambda row: row["T"] + row["p"] < 6)
    assert asked.reachable(X).tolist() == [True, True, False]
    with pytest.raises(OracleError, match="feasible raised KeyError"):
        oracle(lambda T, p: T, feasible=lambda row: row["q"]).reachable(X)
