"""docs/equation.schema.json describes the files that are written: no key, name or value more or less."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deap_vsr.problems import suites
from deap_vsr.problems.equation import MAX_TOKENS, MAX_VARIABLES, SAMPLINGS, SIGNS, Equation, format_equation
from deap_vsr.tree.operators import CATALOGUE

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "equation.schema.json").read_text(encoding="utf-8")
)

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Whether `value` is as `schema` says; knows the keywords that our schema uses and no others."""
    return all(holds(value, key, argument, schema) for key, argument in schema.items())


def holds(value: Any, key: str, argument: Any, schema: dict[str, Any]) -> bool:
    match key:
        case "$schema" | "$defs" | "title" | "description" | "then":
            return True
        case "$ref":
            return is_valid(value, SCHEMA["$defs"][argument.removeprefix("#/$defs/")])
        case "type":
            return TYPES[argument](value)
        case "enum":
            return value in argument
        case "const":
            return bool(value == argument)
        case "oneOf":
            return sum(is_valid(value, choice) for choice in argument) == 1
        case "allOf":
            return all(is_valid(value, part) for part in argument)
        case "if":
            return not is_valid(value, argument) or is_valid(value, schema["then"])
        case "pattern":
            return not isinstance(value, str) or re.search(argument, value) is not None
        case "minimum" | "maximum" | "exclusiveMinimum":
            least, most = (argument, math.inf) if key != "maximum" else (-math.inf, argument)
            return not TYPES["number"](value) or (
                least <= value <= most and (key, value) != ("exclusiveMinimum", least)
            )
        case "minLength":
            return not isinstance(value, str) or len(value) >= argument
        case "minItems":
            return not isinstance(value, list) or len(value) >= argument
        case "maxItems":
            return not isinstance(value, list) or len(value) <= argument
        case "uniqueItems":
            return not isinstance(value, list) or len(value) == len({json.dumps(item) for item in value})
        case "items":
            return not isinstance(value, list) or all(is_valid(item, argument) for item in value)
        case "prefixItems":
            return not isinstance(value, list) or all(map(is_valid, value, argument))
        case "required":
            return not isinstance(value, dict) or set(argument) <= set(value)
        case "properties":
            known = [name for name in argument if name in value] if isinstance(value, dict) else []
            return all(is_valid(value[name], argument[name]) for name in known)
        case "additionalProperties":
            assert argument is False
            return not isinstance(value, dict) or set(value) <= set(schema["properties"])
    raise AssertionError(f"the schema has a keyword {key!r} that this test does not know")


@pytest.fixture
def written(make_equation: Callable[..., Equation]) -> dict[str, Any]:
    """The small problem as it is written."""
    fields: dict[str, Any] = json.loads(format_equation(make_equation()))
    return fields


def test_the_schema_is_of_the_named_draft() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_required_keys_are_those_that_are_written(written: dict[str, Any]) -> None:
    assert SCHEMA["required"] == list(SCHEMA["properties"]) == list(written)
    entry = SCHEMA["$defs"]["variable"]
    assert entry["required"] == list(written["variables"][0])
    assert list(entry["properties"]) == [*entry["required"], "cost", "unit"], "which are written where there are some"
    assert entry["additionalProperties"] is False


def test_the_choices_are_those_of_the_package() -> None:
    entry = SCHEMA["$defs"]["variable"]["properties"]
    assert entry["sampling"]["enum"] == list(SAMPLINGS)
    assert entry["sign"]["enum"] == list(SIGNS)
    assert SCHEMA["properties"]["function_set"]["items"]["enum"] == [*CATALOGUE, "const"]
    for kind, arity in (("unary", 1), ("binary", 2)):
        name, word = SCHEMA["$defs"][kind]["prefixItems"]
        assert name["enum"] == [operator.name for operator in CATALOGUE.values() if operator.arity == arity]
        assert word == {"const": kind}
    assert len(SCHEMA["properties"]["equation"]["items"]["oneOf"]) == 4


def test_the_limits_are_those_of_the_package() -> None:
    properties = SCHEMA["properties"]
    assert properties["num_vars"]["maximum"] == MAX_VARIABLES
    assert properties["variables"]["maxItems"] == properties["var_domains"]["maxItems"] == MAX_VARIABLES
    assert properties["equation"]["maxItems"] == MAX_TOKENS


def test_every_file_of_the_data_folder_is_as_the_schema_says() -> None:
    files = suites.problem_files(suites.data_root())
    assert len(files) == 673
    wrong = [path.name for path in files if not is_valid(json.loads(path.read_text(encoding="utf-8")), SCHEMA)]
    assert wrong == []


@pytest.mark.parametrize("constant", ["1", "-1", "0", "-0.5", "8.314", "1.380649e-23", "1e+20", "-0.0", "5e-324"])
def test_every_constant_that_is_written_is_as_the_schema_says(
    constant: str, make_equation: Callable[..., Equation]
) -> None:
    fields = json.loads(format_equation(make_equation(equation=[[constant, "const"]])))
    assert fields["equation"] == [[constant, "const"]]
    assert is_valid(fields, SCHEMA)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"{key} missing": lambda fields, key=key: fields.pop(key) for key in SCHEMA["required"]},  # type: ignore[misc]
    "no variables": lambda fields: fields.update(num_vars=0),
    "count as text": lambda fields: fields.update(num_vars="2"),
    "count true": lambda fields: fields.update(num_vars=True),
    "domain of three": lambda fields: fields["var_domains"][0].append(1),
    "domain of texts": lambda fields: fields.update(var_domains=[["0", "1"], ["0", "1"]]),
    "unknown operator": lambda fields: fields["function_set"].append("foo"),
    "operator twice": lambda fields: fields["function_set"].append("add"),
    "alias": lambda fields: fields["function_set"].append("plus"),
    "no tokens": lambda fields: fields["equation"].clear(),
    "unknown token": lambda fields: fields["equation"].append(["foo", "unary"]),
    "wrong kind": lambda fields: fields["equation"].append(["sin", "binary"]),
    "unknown kind": lambda fields: fields["equation"].append(["x1", "variable"]),
    "variable x0": lambda fields: fields["equation"].append(["x0", "var"]),
    "variable X_0": lambda fields: fields["equation"].append(["X_0", "var"]),
    "constant nan": lambda fields: fields["equation"].append(["nan", "const"]),
    "constant 1/4": lambda fields: fields["equation"].append(["1/4", "const"]),
    "token of three": lambda fields: fields["equation"].append(["x1", "var", 1]),
    "token of one": lambda fields: fields["equation"].append(["x1"]),
    "name not text": lambda fields: fields.update(name=1),
    "formula empty": lambda fields: fields.update(formula=""),
    "unknown sampling": lambda fields: fields["variables"][0].update(sampling="normal"),
    "unknown sign": lambda fields: fields["variables"][0].update(sign="negative"),
    "low as text": lambda fields: fields["variables"][0].update(low="0.1"),
    "one key more": lambda fields: fields["variables"][0].update(colour="red"),
    "one key less": lambda fields: fields["variables"][0].pop("symbol"),
    "variable called X_0": lambda fields: fields["variables"][0].update(name="X_0"),
    "loguniform from 0": lambda fields: fields["variables"][0].update(low=0),
    "loguniform as_range": lambda fields: fields["variables"][0].update(sign="as_range"),
    "negative low with sign both": lambda fields: fields["variables"][1].update(low=-1),
    "usable as text": lambda fields: fields.update(usable="yes"),
    "unknown judge": lambda fields: fields.update(judge="none"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_as_we_write_it_is_not_valid(change: str, written: dict[str, Any]) -> None:
    assert is_valid(written, SCHEMA)
    changed = copy.deepcopy(written)
    CHANGES[change](changed)
    assert not is_valid(changed, SCHEMA)


def test_further_keys_of_a_file_are_allowed(written: dict[str, Any]) -> None:
    assert is_valid(written | {"dim": 2, "expr": "x1"}, SCHEMA)
