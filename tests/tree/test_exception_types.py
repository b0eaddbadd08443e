import pickle

import pytest

from deap_vsr.errors import EquationError, ExpressionError, OracleError, VsrError
from deap_vsr.tree import operators


@pytest.mark.parametrize(
    ("kind", "builtin"), [(ExpressionError, ValueError), (EquationError, ValueError), (OracleError, RuntimeError)]
)
def test_every_error_is_ours_and_a_builtin_one(kind, builtin):
    assert issubclass(kind, VsrError)
    assert issubclass(kind, builtin)


def unknown_operator():
    with pytest.raises(ExpressionError) as caught:
        operators.get("sinus")
    return caught.value


@pytest.mark.parametrize(
    "error",
    [ExpressionError("no formula"), EquationError("a.json", "num_vars", 0, "1 or more"), OracleError("no answer")],
    ids=lambda error: type(error).__name__,
)
def test_error_survives_pickle_with_its_message(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_unknown_operator_survives_pickle_with_its_message():
    error = unknown_operator()
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ExpressionError)
    assert str(again) == str(error)
    assert "'sinus'" in str(again)


def test_equation_error_names_file_field_value_and_expectation():
    error = EquationError("a.json", "num_vars", "three", "a whole number")
    assert str(error) == "a.json: num_vars: found three, expected a whole number"
    assert str(EquationError("a.json", "", [1], "an object")) == "a.json: found [1], expected an object"


@pytest.mark.parametrize(
    "found",
    ["x" * 10_000, ["long"] * 10_000, 10**10_000, "line\nbreak \x1b[2J"],
    ids=["long text", "long list", "long number", "control characters"],
)
def test_message_is_one_short_printable_line(found):
    text = str(EquationError("a.json", "equation", found, "tokens"))
    assert len(text) < 200
    assert text.isprintable()
