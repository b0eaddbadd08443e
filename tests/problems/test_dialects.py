"""One problem, written in our JSON and in every dialect found in the wild, is the same problem."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deap_vsr.errors import EquationError
from deap_vsr.problems.equation import Equation, load_equation, parse_equation

# y = 0.25*x1 - sin(x2)/8.314, in our format.
FUNCTIONS = ["sub", "mul", "div", "sin", "const"]
OURS: dict[str, Any] = {
    "num_vars": 2,
    "var_domains": [[0.1, 10], [1, 5]],
    "function_set": FUNCTIONS,
    "equation": [
        ["sub", "binary"],
        ["mul", "binary"],
        ["0.25", "const"],
        ["x1", "var"],
        ["div", "binary"],
        ["sin", "unary"],
        ["x2", "var"],
        ["8.314", "const"],
    ],
    "name": "gas",
    "variables": [
        {"name": "x1", "low": 0.1, "high": 10, "sampling": "loguniform", "sign": "positive"},
        {"name": "x2", "low": 1, "high": 5, "sampling": "uniform", "sign": "both"},
    ],
}
THEIR_VARIABLES = [
    {"name": "LogUniform", "range": [0.1, 10], "only_positive": True},
    {"name": "Uniform", "range": [1, 5], "only_positive": False},
]
EXTRA = {"dim": 2, "expr": "0.25*X_0 - sin(X_1)/8.314", "simulated_exec": True, "expr_obj_thres": 1e-6}


@dataclass(frozen=True)
class Dialect:
    """How a file differs from ours."""

    python: bool = False  # single quotes and tuples instead of JSON
    zero: str = ""  # what stands before the object
    their_keys: bool = False
    strings: str = ""  # lists stored as "json" or "python" text
    variable: str = "x{one}"  # or X_{zero}, X{zero}
    quarter: Any = "0.25"
    extra: bool = False
    wrap: str = ""  # the object inside one more pair of quotes: double, single or bytes
    bom: bool = False

    def write(self) -> bytes:
        fields = dict(OURS)
        fields["equation"] = [self._token(*token) for token in OURS["equation"]]
        if self.their_keys:
            fields = {"eq_name": fields["name"], "num_vars": 2, "vars_range_and_types": THEIR_VARIABLES} | {
                "function_set": fields["function_set"],
                "eq_expression": fields["equation"],
            }
        if self.strings:
            write = json.dumps if self.strings == "json" else _python_text
            fields = {key: write(value) if isinstance(value, list) else value for key, value in fields.items()}
        if self.extra:
            fields |= EXTRA
        text = _python_text(fields) if self.python else json.dumps(fields)
        wrapped = {"": text, "double": json.dumps(text), "single": repr(text), "bytes": repr(text.encode())}
        return (b"\xef\xbb\xbf" if self.bom else b"") + (self.zero + wrapped[self.wrap]).encode()

    def _token(self, text: str, kind: str) -> list[Any]:
        if kind == "var":
            return [self.variable.format(one=int(text[1:]), zero=int(text[1:]) - 1), kind]
        return [self.quarter if text == "0.25" else text, kind]


def _python_text(value: Any) -> str:
    """Return Python literals: single quotes, tuples for the innermost lists."""

    def tuples(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: tuples(inner) for key, inner in item.items()}
        if isinstance(item, list):
            inner = [tuples(entry) for entry in item]
            return inner if any(isinstance(entry, list | tuple | dict) for entry in inner) else tuple(inner)
        return item

    return repr(tuples(value))


@pytest.fixture(scope="module")
def ours() -> Equation:
    return parse_equation(json.dumps(OURS))


def assert_same(found: Equation, expected: Equation) -> None:
    assert found.variables == expected.variables
    assert found.function_set == expected.function_set
    assert found.tree == expected.tree
    X = np.random.default_rng(0).uniform(1, 5, (20, 2))
    np.testing.assert_array_equal(found.evaluate(X), expected.evaluate(X))
    assert found == expected


def test_our_own_file_says_what_the_dialects_must_say(ours: Equation) -> None:
    X = np.array([[2.0, 1.0], [8.0, 3.0]])
    np.testing.assert_allclose(ours.evaluate(X), 0.25 * X[:, 0] - np.sin(X[:, 1]) / 8.314, rtol=1e-15)
    assert ours.function_set == tuple(FUNCTIONS)
    assert [v.bounds for v in ours.variables] == [(0.1, 10), (-5, 5)]


@pytest.mark.parametrize(
    "dialect",
    [
        pytest.param(Dialect(python=True), id="single-quotes-and-tuples"),
        pytest.param(Dialect(zero="0\n"), id="first-line-0"),
        pytest.param(Dialect(zero="0\r\n"), id="first-line-0-windows"),
        pytest.param(Dialect(zero=" 0 \n\n"), id="first-line-0-spaces"),
        pytest.param(Dialect(their_keys=True), id="other-keys"),
        pytest.param(Dialect(strings="json"), id="lists-as-json-strings"),
        pytest.param(Dialect(strings="python"), id="lists-as-python-strings"),
        pytest.param(Dialect(variable="X_{zero}"), id="X_0"),
        pytest.param(Dialect(variable="X{zero}"), id="X0"),
        pytest.param(Dialect(quarter="1/4"), id="constant-1/4"),
        pytest.param(Dialect(quarter="2.5/10"), id="constant-2.5/10"),
        pytest.param(Dialect(quarter=0.25), id="constant-as-number"),
        pytest.param(Dialect(quarter="25e-2"), id="constant-with-exponent"),
        pytest.param(Dialect(extra=True), id="extra-keys"),
        pytest.param(Dialect(wrap="double"), id="wrapped-in-double-quotes"),
        pytest.param(Dialect(wrap="single"), id="wrapped-in-single-quotes"),
        pytest.param(Dialect(wrap="bytes"), id="wrapped-as-bytes"),
        pytest.param(Dialect(python=True, wrap="double"), id="python-in-double-quotes"),
        pytest.param(Dialect(bom=True), id="byte-order-mark"),
        pytest.param(
            Dialect(True, "0\n", True, "json", "X_{zero}", "1/4", True, "bytes", True), id="everything-at-once"
        ),
    ],
)
def test_a_dialect_loads_as_the_same_problem(dialect: Dialect, ours: Equation, tmp_path: Path) -> None:
    path = tmp_path / "wild.json"
    path.write_bytes(dialect.write())
    assert_same(load_equation(path), ours)


def test_every_combination_of_dialects_loads_as_the_same_problem(ours: Equation) -> None:
    combinations = itertools.product(
        (False, True),
        ("", "0\n"),
        (False, True),
        ("", "json", "python"),
        ("x{one}", "X_{zero}", "X{zero}"),
        ("0.25", "1/4", 0.25),
        (False, True),
        ("", "double", "single", "bytes"),
    )
    wrong = [d for d in itertools.starmap(Dialect, combinations) if parse_equation(d.write().decode()) != ours]
    assert wrong == []


def test_a_file_as_found_in_the_wild_loads(ours: Equation) -> None:
    text = r"""0
{'eq_name': 'gas', 'num_vars': 2, 'dim': [(1,), (1,)], 'function_set': ('sub', 'mul', 'div', 'sin', 'const'),
 'vars_range_and_types': '[{"name": "LogUniform", "range": [0.1, 10], "only_positive": true},\
                           {"name": "Uniform", "range": [1, 5], "only_positive": false}]',
 'eq_expression': "[('sub', 'binary'), ('mul', 'binary'), ('1/4', 'const'), ('X_0', 'var'),\
                    ('div', 'binary'), ('sin', 'unary'), ('X_1', 'var'), ('8.314', 'const')]",
 'simulated_exec': None, 'expr': 'X_0/4 - sin(X_1)/8.314', 'expr_obj_thres': 0.01,}
"""
    assert_same(parse_equation(text), ours)


@pytest.mark.parametrize(
    ("name", "sampling"),
    [
        ("LogUniform", "loguniform"),
        ("LogUniformSampling", "loguniform"),
        ("loguniform", "loguniform"),
        ("Uniform", "uniform"),
        ("UniformSampling", "uniform"),
        ("IntegerUniform", "integer"),
        ("IntegerUniformSampling", "integer"),
        ("Integer", "integer"),
    ],
)
@pytest.mark.parametrize("write", [list, json.dumps, str], ids=["list", "json-string", "python-string"])
def test_ranges_and_types_give_the_sampling(name: str, sampling: str, write: Callable[[Any], Any]) -> None:
    entries = [{"name": name, "range": [1, 10], "only_positive": True}, THEIR_VARIABLES[1]]
    fields = {"num_vars": 2, "vars_range_and_types": write(entries), "function_set": FUNCTIONS}
    first = parse_equation(json.dumps(fields | {"eq_expression": [["X_0", "var"]]})).variables[0]
    assert (first.name, first.low, first.high, first.sampling, first.sign) == ("x1", 1, 10, sampling, "positive")


@pytest.mark.parametrize(
    ("bounds", "only_positive", "sign"),
    [
        ([1, 5], True, "positive"),
        ([1, 5], False, "both"),
        ([-1, 5], False, "as_range"),
        (["1", "5"], True, "positive"),
        (["1", "5"], False, "both"),
        (["-1", "5"], False, "as_range"),
    ],
)
def test_only_positive_and_the_range_give_the_sign(bounds: list[Any], only_positive: bool, sign: str) -> None:
    entries = [{"name": "Uniform", "range": bounds, "only_positive": only_positive}]
    fields = {"num_vars": 1, "vars_range_and_types": entries, "function_set": ["sin"]}
    variable = parse_equation(json.dumps(fields | {"eq_expression": [["X0", "var"]]})).variables[0]
    assert variable.sign == sign
    assert (variable.low, variable.high) == (float(bounds[0]), float(bounds[1]))


def test_only_positive_is_false_where_it_is_not_given() -> None:
    fields = {"num_vars": 1, "vars_range_and_types": [{"name": "Uniform", "range": [1, 5]}], "function_set": ["sin"]}
    assert parse_equation(json.dumps(fields | {"eq_expression": [["X0", "var"]]})).variables[0].sign == "both"


def test_operators_that_a_foreign_file_forgot_are_added_behind_its_own() -> None:
    foreign = Dialect(their_keys=True).write().decode().replace('["sub", "mul", ', '["mul", "cos", ')
    assert parse_equation(foreign).function_set == ("mul", "cos", "div", "sin", "const", "sub")


def test_operators_missing_in_our_own_file_are_an_error() -> None:
    with pytest.raises(EquationError, match="also sub, sin, which the equation uses"):
        parse_equation(json.dumps(OURS | {"function_set": ["mul", "div", "const"]}))


def test_operators_under_other_names_are_those_of_the_catalogue(ours: Equation) -> None:
    text = json.dumps(OURS).replace('"sub"', '"-"').replace('"mul"', '"*"').replace('"div"', '"/"')
    assert_same(parse_equation(text), ours)


def test_our_keys_win_over_theirs(ours: Equation) -> None:
    theirs = {"eq_name": "other", "eq_expression": [["X_0", "var"]], "vars_range_and_types": []}
    assert_same(parse_equation(json.dumps(OURS | theirs)), ours)


def test_variables_win_over_var_domains(ours: Equation) -> None:
    assert_same(parse_equation(json.dumps(OURS | {"var_domains": [[3, 4], [3, 4]]})), ours)


def test_a_file_without_a_name_is_called_after_its_path(tmp_path: Path) -> None:
    path = tmp_path / "I.6.20.json"
    path.write_text(json.dumps({key: value for key, value in OURS.items() if key != "name"}))
    assert load_equation(path).name == "I.6.20"


@pytest.mark.parametrize(("written", "value"), [("1/4", 0.25), ("-1/4", -0.25), ("3/2.5", 1.2)])
def test_a_constant_may_be_a_quotient_without_quotes(written, value):
    # Fails at 95877ac: refused, as 73 files of the paper's authors were.
    text = f"""0
{{'num_vars': 1, 'var_domains': [[0.1, 10]], 'function_set': ['mul', 'const'],
  'equation': [('mul', 'binary'), ({written}, 'const'), ('X_0', 'var')]}}"""
    assert parse_equation(text, "law").tree[1].value == value


@pytest.mark.parametrize("written", ["1/0", "1/x", "'a'/2", "1e308/1e-308", "1//4", "(1/4)/[2]"])
def test_another_quotient_is_refused(written):
    text = "{'num_vars': 1, 'var_domains': [[0.1, 10]], 'function_set': ['const'], 'equation': [(%s, 'const')]}"
    with pytest.raises(EquationError):
        parse_equation(text % written, "law")
