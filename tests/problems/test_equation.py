"""Equation files: what is written is what is read; names, errors, defaults, the writer's rules."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr.errors import EquationError, VsrError
from deap_vsr.problems import suites
from deap_vsr.problems.equation import (
    MAX_BYTES,
    MAX_TOKENS,
    MAX_VARIABLES,
    SAMPLINGS,
    SIGNS,
    Equation,
    Variable,
    format_equation,
    load_equation,
    parse_equation,
)
from deap_vsr.problems.generate import writer_form
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name, variable
from deap_vsr.tree.operators import CATALOGUE

KEYS = ["num_vars", "var_domains", "function_set", "equation", "name", "group", "formula", "variables"]
KEYS += ["usable", "reason", "judge"]


# --- any equation -------------------------------------------------------------------------


def variables() -> st.SearchStrategy[Variable]:
    def build(sampling: str, sign: str, low: float, width: float, symbol: str) -> Variable:
        low = low if sign == "as_range" else abs(low) + (0.001 if sampling == "loguniform" else 0)
        return Variable("", low, low + width, sampling, sign, symbol)

    kinds = st.tuples(st.sampled_from(SAMPLINGS), st.sampled_from(SIGNS)).filter(
        lambda kind: kind != ("loguniform", "as_range")
    )
    return kinds.flatmap(
        lambda kind: st.builds(build, *map(st.just, kind), st.floats(-1e6, 1e6), st.floats(1.5, 1e6), st.text())
    )


def trees(n_vars: int) -> st.SearchStrategy[list[Node]]:
    numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: [Constant(value, fitted=False)])
    leaves = st.integers(1, n_vars).map(lambda index: [variable(index)]) | numbers

    def grow(inner: st.SearchStrategy[list[Node]]) -> st.SearchStrategy[list[Node]]:
        def node(name: str) -> st.SearchStrategy[list[Node]]:
            operands = st.tuples(*[inner] * CATALOGUE[name].arity)
            return operands.map(lambda parts: [node_from_name(name), *(item for part in parts for item in part)])

        return st.sampled_from(sorted(CATALOGUE)).flatmap(node)

    return st.recursive(leaves, grow, max_leaves=8)


@st.composite
def equations(draw: st.DrawFn) -> Equation:
    n_vars = draw(st.integers(1, 4))
    tree = MaskedTree(draw(trees(n_vars)))
    others = draw(st.lists(st.sampled_from([*CATALOGUE, "const"]), max_size=5))
    drawn = [draw(variables()) for _ in range(n_vars)]
    return Equation(
        name=draw(st.text(min_size=1)),
        variables=tuple(
            Variable(f"x{i}", v.low, v.high, v.sampling, v.sign, v.symbol) for i, v in enumerate(drawn, start=1)
        ),
        function_set=tuple(dict.fromkeys([*others, *(node.name for node in tree if node.arity)])),
        tree=tree,
        formula=draw(st.just(tree.to_infix()) | st.text(min_size=1)),
        group=draw(st.text()),
        usable=draw(st.booleans()),
        reason=draw(st.text()),
        judge=draw(st.sampled_from(["full", "fit"])),
    )


@settings(deadline=None, max_examples=100)
@given(equations())
def test_what_is_written_is_read_back_the_same(equation: Equation) -> None:
    text = format_equation(equation)
    again = parse_equation(text)
    assert again == equation
    assert [repr(node) for node in again.tree] == [repr(node) for node in equation.tree]  # -0.0 is not 0.0
    assert format_equation(again) == text


@settings(deadline=None, max_examples=50)
@given(equations())
def test_a_written_file_is_one_json_object_with_the_papers_four_keys_first(equation: Equation) -> None:
    text = format_equation(equation)
    fields = json.loads(text)
    assert list(fields) == KEYS
    assert fields["num_vars"] == len(fields["variables"]) == len(fields["var_domains"])
    assert text.endswith("}\n")
    for domain, entry in zip(fields["var_domains"], fields["variables"], strict=True):
        assert domain == [entry["low"], entry["high"]]


@settings(deadline=None, max_examples=50)
@given(equations())
def test_a_written_file_names_every_operator_that_it_uses(equation: Equation) -> None:
    fields = json.loads(format_equation(equation))
    assert {text for text, kind in fields["equation"] if kind in ("unary", "binary")} <= set(fields["function_set"])


def test_the_file_of_the_documentation_loads_as_it_says() -> None:
    text = """
{"num_vars": 2, "var_domains": [[0.1, 10], [0.1, 10]], "function_set": ["add", "sub", "mul", "div", "const"],
 "equation": [["mul","binary"], ["8.314","const"], ["div","binary"], ["x1","var"], ["x2","var"]],
 "name": "feynman-unit/example", "group": "m=2", "formula": "8.314*x1/x2",
 "variables": [{"name": "x1", "symbol": "T", "low": 0.1, "high": 10, "sampling": "loguniform", "sign": "positive"},
               {"name": "x2", "symbol": "V", "low": 0.1, "high": 10, "sampling": "loguniform", "sign": "positive"}],
 "usable": true, "reason": "", "judge": "full"}"""
    equation = parse_equation(text)
    assert equation.name == "feynman-unit/example"
    assert equation.n_vars == 2
    assert equation.variables[1] == Variable("x2", 0.1, 10, "loguniform", "positive", "V")
    assert equation.function_set == ("add", "sub", "mul", "div", "const")
    np.testing.assert_allclose(equation.evaluate(np.array([[2.0, 4.0]])), [8.314 / 2], rtol=1e-15)
    assert json.loads(format_equation(equation)) == json.loads(text)


def test_whole_numbers_are_written_without_a_point(make_equation: Callable[..., Equation]) -> None:
    text = format_equation(make_equation(variables=[{"low": 1.0, "high": 10.0}, {"low": 0.5, "high": 1e20}]))
    assert '"var_domains": [[1, 10], [0.5, 1e+20]]' in text


def test_letters_of_all_scripts_are_written_as_they_are(make_equation: Callable[..., Equation]) -> None:
    equation = make_equation(name="θ/λ", reason="größer")
    assert '"θ/λ"' in format_equation(equation)
    assert parse_equation(format_equation(equation)) == equation


# --- defaults -----------------------------------------------------------------------------


def test_the_papers_four_keys_are_enough() -> None:
    fields = {"num_vars": 2, "var_domains": [[0.1, 10], [-1, 1]], "function_set": ["mul"]}
    fields |= {"equation": [["mul", "binary"], ["x1", "var"], ["x2", "var"]]}
    equation = parse_equation(json.dumps(fields), "some.json")
    assert equation == Equation(
        name="some.json",
        variables=(
            Variable("x1", 0.1, 10, "uniform", "positive", "x1"),
            Variable("x2", -1, 1, "uniform", "as_range", "x2"),
        ),
        function_set=("mul",),
        tree=MaskedTree.from_infix("x1*x2"),
        formula="x1*x2",
        group="m=2",
        usable=True,
        reason="",
        judge="full",
    )


def test_a_variable_needs_only_its_range(make_equation: Callable[..., Equation]) -> None:
    equation = make_equation(variables=[{"low": 0, "high": 1}, {"low": "2", "high": "3e2"}])
    assert equation.variables == (
        Variable("x1", 0, 1, "uniform", "positive", "x1"),
        Variable("x2", 2, 300, "uniform", "positive", "x2"),
    )


def test_counts_and_bounds_may_be_text(make_equation: Callable[..., Equation], document: dict[str, Any]) -> None:
    del document["variables"]
    plain = make_equation()
    assert make_equation(num_vars="2", var_domains=[["0.1", "10"], ["1e-1", " 10 "]]) == plain


def test_domains_stand_in_for_their_variables_in_old_files(make_equation: Callable[..., Equation]) -> None:
    equation = make_equation(var_domains=[["a", "b"]])
    assert equation.variables[0].sampling == "loguniform", "`variables` wins, `var_domains` is not even read"


def test_other_spellings_of_operators_become_their_names(make_equation: Callable[..., Equation]) -> None:
    equation = make_equation(function_set=["plus", "+", "*", "const", "mul"])
    assert equation.function_set == ("add", "mul", "const")


@pytest.mark.parametrize(
    ("entry", "bounds"),
    [
        (Variable("x1", 0.5, 3.5), (0.5, 3.5)),
        (Variable("x1", 0.5, 3.5, sign="both"), (-3.5, 3.5)),
        (Variable("x1", -2.5, 3.5, sign="as_range"), (-2.5, 3.5)),
        (Variable("x1", 0.5, 3.5, "integer"), (1, 3)),
        (Variable("x1", 1, 4, "integer"), (1, 3)),
        (Variable("x1", 1, 4, "integer", "both"), (-3, 3)),
        (Variable("x1", -2.5, 4, "integer", "as_range"), (-2, 3)),
    ],
)
def test_bounds_are_the_least_and_the_largest_value_that_can_be_drawn(
    entry: Variable, bounds: tuple[float, float]
) -> None:
    assert entry.bounds == bounds


# --- limits that good files keep ----------------------------------------------------------


def test_a_file_of_exactly_the_largest_size_loads(document: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(document)
    path = tmp_path / "large.json"
    path.write_text(text + " " * (MAX_BYTES - len(text)))
    assert load_equation(path).n_vars == 2


def test_the_largest_number_of_variables_and_tokens_loads() -> None:
    fields: dict[str, Any] = {"num_vars": MAX_VARIABLES, "var_domains": [[0, 1]] * MAX_VARIABLES}
    tokens = [["neg", "unary"]] * (MAX_TOKENS - 1) + [[f"x{MAX_VARIABLES}", "var"]]
    fields |= {"function_set": ["neg"], "equation": tokens, "formula": "see the list"}
    equation = parse_equation(json.dumps(fields))
    assert equation.n_vars == MAX_VARIABLES
    X = np.linspace(0, 1, MAX_VARIABLES)[None, :]
    assert equation.evaluate(X)[0] == (-1) ** (MAX_TOKENS - 1) * X[0, -1]


# --- names and paths ----------------------------------------------------------------------


def test_a_problem_loads_by_name_and_by_path() -> None:
    name = "feynman/I.39.22"
    by_name = load_equation(name)
    assert by_name == load_equation(suites.data_root() / f"{name}.json")
    assert by_name == load_equation(str(suites.data_root() / f"{name}.json"))
    assert by_name.name == name


def test_a_path_wins_over_a_name(document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("feynman").mkdir()
    Path("feynman/I.39.22").write_text(json.dumps(document))
    assert load_equation("feynman/I.39.22").name == "small"


def test_every_problem_is_called_after_its_place_in_the_data_folder() -> None:
    names = suites.problem_names()
    assert len(names) == len(set(names)) == 673
    assert [load_equation(name).name for name in names] == list(names)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("feynman/I.39.2", "feynman/I.39.22"),
        ("feynman-unit/I.39.23", "feynman-unit/I.39.22"),
        ("trigonometric/sincos/3-2-2/prg_1", "trigonometric/sincos/3-2-2/prog_1"),
        ("livermore2/Vars2/Var2-1", "livermore2/Vars2/Vars2-1"),
        ("feynman/I.39.22.json", "feynman/I.39.22"),
    ],
)
def test_an_unknown_name_suggests_close_ones(wrong: str, right: str) -> None:
    assert right in suites.problem_names()
    with pytest.raises(EquationError, match="did you mean") as caught:
        load_equation(wrong)
    assert str(caught.value).startswith(f"{wrong}: ")
    suggested = str(caught.value).partition("did you mean ")[2].rstrip("?").split(", ")
    assert right in suggested
    assert set(suggested) <= set(suites.problem_names())


@pytest.mark.parametrize(
    "name",
    ["nothing like it", "", ".", "/", "a\0b", "feynman", "a" * 5000, "a/" * 3000, "two\nlines"],
    ids=lambda name: repr(name[:20]),
)
def test_a_name_that_is_none_is_refused_in_one_line_that_says_where_names_are_shown(name: str) -> None:
    with pytest.raises(EquationError, match=r"vsr data list|did you mean") as caught:
        load_equation(name)
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_problem(tmp_path: Path) -> None:
    with pytest.raises(EquationError, match="neither a file nor the name of a problem"):
        load_equation(tmp_path)


def test_a_file_that_cannot_be_read_is_an_error_of_ours(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret.json"
    path.write_text(json.dumps(document))

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(EquationError, match=r"secret\.json: found Permission denied, expected a file that"):
        load_equation(path)


# --- errors -------------------------------------------------------------------------------


def test_an_error_carries_source_field_found_and_expected(make_equation: Callable[..., Equation]) -> None:
    with pytest.raises(EquationError) as caught:
        make_equation(num_vars=0)
    error = caught.value
    assert (error.source, error.field, error.found) == ("small.json", "num_vars", 0)
    assert error.expected == f"a whole number from 1 to {MAX_VARIABLES}"
    assert str(error) == f"small.json: num_vars: found 0, expected a whole number from 1 to {MAX_VARIABLES}"
    assert isinstance(error, VsrError)
    assert isinstance(error, ValueError)


def test_an_error_without_a_field_names_the_file_alone() -> None:
    assert str(EquationError("a.json", "", "nothing", "an object")) == "a.json: found nothing, expected an object"


def test_an_error_comes_back_from_another_process_with_its_message(make_equation: Callable[..., Equation]) -> None:
    with pytest.raises(EquationError) as caught:
        make_equation(function_set=["x" * 1000] * 3)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is EquationError
    assert str(again) == str(caught.value)
    assert (again.source, again.field, again.expected) == ("small.json", "function_set", caught.value.expected)


@pytest.mark.parametrize(
    "found", ["x" * 10_000, ["x"] * 10_000, {"a": "b\nc" * 999}, b"x" * 10_000, 10**5000], ids=type
)
def test_a_long_value_is_shortened_to_one_line(found: Any) -> None:
    message = str(EquationError("a.json", "name", found, "less"))
    assert len(message) < 150
    assert "\n" not in message
    assert message.startswith("a.json: name: found ")
    assert message.endswith(", expected less")


# --- the writer's rules -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "tokens"),
    [
        ("-x1", "mul -1 x1"),
        ("-(x1 + x2)", "mul -1 add x1 x2"),
        ("-(-x1)", "mul -1 mul -1 x1"),
        ("x1 - -x2", "sub x1 mul -1 x2"),
        ("exp(-x1)", "exp mul -1 x1"),
        ("-3*x1", "mul -3 x1"),
        ("x1**0.5", "sqrt x1"),
        ("x1**1.5", "mul x1 sqrt x1"),
        ("x1**0.25", "sqrt sqrt x1"),
        ("(x1 + x2)**1.5", "mul add x1 x2 sqrt add x1 x2"),
        ("(x1**0.25)**1.5", "mul sqrt sqrt x1 sqrt sqrt sqrt x1"),
        ("(-x1)**0.5", "sqrt mul -1 x1"),
        ("x1**(1/4)", "sqrt sqrt x1"),
        ("x1**(3/2)", "mul x1 sqrt x1"),
        ("x1**0.3", "pow x1 0.3"),
        ("x1**-0.5", "pow x1 -0.5"),
        ("x1**x2", "pow x1 x2"),
        ("x1**2", "n2 x1"),
        ("x1**7", "pow x1 7"),
        ("2*3*x1", "mul 6 x1"),
        ("x1*(2*3)", "mul x1 6"),
        ("x1/sqrt(16)", "div x1 4"),
        ("sin(0)*x1", "mul 0 x1"),
        ("2**0.5*x1", f"mul {math.sqrt(2)!r} x1"),
        ("-(2 + 3)", "-5"),
        ("1/0 + x1", "add div 1 0 x1"),
        ("x1", "x1"),
        ("2.5", "2.5"),
    ],
)
def test_the_writers_rules(formula: str, tokens: str) -> None:
    assert " ".join(text for text, _ in writer_form(MaskedTree.from_infix(formula)).to_tokens()) == tokens


@settings(deadline=None, max_examples=200)
@given(trees(2))
def test_the_writers_form_is_final_and_has_no_minus(nodes: list[Node]) -> None:
    written = writer_form(MaskedTree(nodes))
    assert not any(node.arity and node.name == "neg" for node in written)
    assert writer_form(written) == written


@settings(deadline=None, max_examples=200)
@given(trees(2).filter(lambda nodes: not any(node.name == "pow" for node in nodes)))
def test_the_writers_form_keeps_the_values(nodes: list[Node]) -> None:
    X = np.random.default_rng(0).uniform(0.1, 3, (20, 2))
    np.testing.assert_array_equal(writer_form(MaskedTree(nodes)).evaluate(X), MaskedTree(nodes).evaluate(X))


@pytest.mark.parametrize("power", [0.5, 0.25, 1.5])
def test_roots_in_the_writers_form_keep_the_values_of_powers(power: float) -> None:
    X = np.array([[0.0], [1e-300], [0.3], [7.0], [1e200], [np.inf]])
    written = writer_form(MaskedTree.from_infix(f"x1**{power}"))
    np.testing.assert_allclose(written.evaluate(X), X[:, 0] ** power, rtol=1e-14)


# --- the data folder ----------------------------------------------------------------------


def test_a_copy_of_a_problem_outside_the_data_folder_keeps_its_name(tmp_path: Path) -> None:
    copy = shutil.copy(suites.data_root() / "feynman" / "I.39.22.json", tmp_path / "copy.json")
    assert load_equation(copy).name == "feynman/I.39.22"
