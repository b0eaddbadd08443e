"""Broken and hostile equation files: refused with one clear line, quickly, in little memory, with nothing run."""

from __future__ import annotations

import json
import os
import re
import string
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr.errors import EquationError
from deap_vsr.problems.check import check_file
from deap_vsr.problems.equation import MAX_BYTES, MAX_TOKENS, MAX_VARIABLES, load_equation, parse_equation

MAX_SECONDS = 1.0
MAX_MEGABYTES = 200
MAX_MESSAGE = 600

MARKER = "marker"
#: Code that would leave a file called `MARKER` in the working folder, were it ever run.
CODE = f"__import__('os').system('echo > {MARKER}')"
OPEN = f"open('{MARKER}', 'w')"

GOOD: dict[str, Any] = {
    "num_vars": 2,
    "var_domains": [[0.1, 10], [0.1, 10]],
    "function_set": ["add", "mul", "sin", "const"],
    "equation": [["add", "binary"], ["x1", "var"], ["mul", "binary"], ["0.25", "const"], ["x2", "var"]],
    "name": "good",
    "group": "m=2",
    "formula": "x1 + 0.25*x2",
    "variables": [
        {"name": "x1", "symbol": "T", "low": 0.1, "high": 10, "sampling": "loguniform", "sign": "positive"},
        {"name": "x2", "symbol": "p", "low": 0.1, "high": 10, "sampling": "uniform", "sign": "both"},
    ],
    "usable": True,
    "reason": "",
    "judge": "full",
}
DELETED = object()


def ours(**changes: Any) -> str:
    """Return the good file with some keys changed or deleted."""
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not DELETED})


def python(key: str, text: str) -> str:
    """Return the good file in the Python dialect, `text` standing as it is behind `key`."""
    return repr(GOOD | {key: 12345678}).replace("12345678", text)


def raw(key: str, text: str) -> str:
    """Return the good file in JSON, `text` standing as it is behind `key`."""
    return ours(**{key: 12345678}).replace("12345678", text)


def domain(low: Any, high: Any) -> str:
    """Return the good file with the domain of x1 changed, and no `variables` to win over it."""
    return ours(var_domains=[[low, high], [0.1, 10]], variables=DELETED)


def entry(**changes: Any) -> str:
    """Return the good file with the entry of variable x1 changed."""
    first = {key: value for key, value in (GOOD["variables"][0] | changes).items() if value is not DELETED}
    return ours(variables=[first, GOOD["variables"][1]])


def ranges(first: Any) -> str:
    """Return the good file with `first` as the first of its `vars_range_and_types`."""
    second = {"name": "Uniform", "range": [1, 5], "only_positive": True}
    return ours(variables=DELETED, vars_range_and_types=[first, second])


def tokens(*items: Any) -> str:
    return ours(equation=list(items))


def nested(opening: str, depth: int, core: str = "", closing: str = "") -> str:
    return opening * depth + core + closing * depth


# --- the corpus, by kind of error ---------------------------------------------------------

UNKNOWN_OPERATORS = {
    "operator unknown": tokens(["foo", "unary"], ["x1", "var"]),
    "operator unknown binary": tokens(["atan2", "binary"], ["x1", "var"], ["x2", "var"]),
    "operator empty": tokens(["", "unary"], ["x1", "var"]),
    "operator in capitals": tokens(["SIN", "unary"], ["x1", "var"]),
    "operator with a blank": tokens(["sin ", "unary"], ["x1", "var"]),
    "operator const as operator": tokens(["const", "unary"], ["x1", "var"]),
    "operator dunder": tokens(["__class__", "unary"], ["x1", "var"]),
    "operator very long": tokens(["f" * 100_000, "unary"], ["x1", "var"]),
    "operator of many lines": tokens(["a\nb\r\nc\u2028d\x85e", "unary"], ["x1", "var"]),
    "operator with terminal escapes": tokens(["\x1b[2J\x07\x00", "unary"], ["x1", "var"]),
    "operator with a lone surrogate": tokens(["\ud800", "unary"], ["x1", "var"]),
    "operator in letters of other scripts": tokens(["\u0455in", "unary"], ["x1", "var"]),
    "operator is code": tokens([CODE, "unary"], ["x1", "var"]),
}
WRONG_ARITY = {
    "arity add as unary": tokens(["add", "unary"], ["x1", "var"]),
    "arity sin as binary": tokens(["sin", "binary"], ["x1", "var"], ["x2", "var"]),
    "arity n2 as binary": tokens(["n2", "binary"], ["x1", "var"], ["x2", "var"]),
    "arity alias as unary": tokens(["*", "unary"], ["x1", "var"]),
}
WRONG_KIND = {
    "kind unknown": tokens(["x1", "variable"]),
    "kind ternary": tokens(["add", "ternary"], ["x1", "var"], ["x1", "var"], ["x1", "var"]),
    "kind null": tokens(["x1", None]),
    "kind number": tokens(["x1", 1]),
    "kind list": tokens(["x1", ["var"]]),
    "kind object": tokens(["x1", {"kind": "var"}]),
    "kind is code": tokens(["x1", CODE]),
    "kind is a whole number of many digits": python("equation", "[('x1', 0x" + "f" * 9000 + ")]"),
}
MISSING_TOKENS = {
    "missing operand of add": tokens(["add", "binary"], ["x1", "var"]),
    "missing operand of sin": tokens(["sin", "unary"]),
    "missing both operands": tokens(["mul", "binary"]),
    "missing many operands": tokens(*[["add", "binary"]] * 1000),
}
NO_TOKENS = {
    "tokens none": tokens(),
    "tokens none as text": ours(equation="[]"),
    "tokens too many": tokens(*[["sin", "unary"]] * MAX_TOKENS, ["x1", "var"]),
    "tokens far too many": ours(equation=[["sin", "unary"]] * 45_000 + [["x1", "var"]]),
}
EXTRA_TOKENS = {
    "extra variable": tokens(["x1", "var"], ["x2", "var"]),
    "extra operator": tokens(["sin", "unary"], ["x1", "var"], ["add", "binary"], ["x1", "var"], ["x2", "var"]),
    "extra constant": tokens(["1", "const"], ["2", "const"]),
    "extra unknown operator": tokens(["x1", "var"], ["foo", "unary"]),
    "extra code": tokens(["x1", "var"], [CODE, "unary"]),
}
REVERSED_RANGES = {
    "range reversed": domain(10, 0.1),
    "range equal": domain(1, 1),
    "range reversed negative": domain(-1, -2),
    "range reversed as text": domain("10", "0.1"),
    "range reversed in variables": entry(low=10, high=0.1),
    "range equal in variables": entry(low=3, high=3),
    "range equal after rounding": raw("var_domains", "[[1, 1.00000000000000000001], [0, 1]]").replace(
        '"variables"', '"other"'
    ),
    "range reversed in their keys": ranges({"name": "Uniform", "range": [5, 1], "only_positive": True}),
}
NOT_FINITE_RANGES = {
    "range NaN": domain(float("nan"), 1),
    "range Infinity": domain(0, float("inf")),
    "range -Infinity": domain(float("-inf"), 0),
    "range 1e999": raw("var_domains", "[[0, 1e999], [0, 1]]").replace('"variables"', '"other"'),
    "range -1e999": raw("var_domains", "[[-1e999, 0], [0, 1]]").replace('"variables"', '"other"'),
    "range NaN in variables": entry(low=float("nan")),
    "range Infinity in variables": entry(high=float("inf")),
    "range 1e999 in variables": raw("variables", json.dumps(GOOD["variables"]).replace("10", "1e999")),
    "range 1e999 as text": domain(0, "1e999"),
    "range nan as text": domain("nan", 1),
    "range inf as text": domain(0, "inf"),
    "range in words": domain("low", "high"),
    "range empty text": domain("", ""),
    "range null": domain(None, 1),
    "range true": domain(False, True),
    "range list": domain([0], [1]),
    "range object": domain({}, {}),
    "range whole number of 390 digits": raw("var_domains", f"[[0, {'9' * 390}], [0, 1]]").replace(
        '"variables"', '"other"'
    ),
    "range in hexadecimal text": domain("0x1", "0x10"),
    "range is code": domain(CODE, 1),
    "range is code in variables": entry(high=CODE),
    "range NaN in their keys": ranges({"name": "Uniform", "range": [1, float("nan")], "only_positive": True}),
    "range text in their keys": ranges({"name": "Uniform", "range": ["a", "b"], "only_positive": True}),
    "range 1e999 in their keys": raw(
        "vars_range_and_types", '[{"name": "Uniform", "range": [1, 1e999]}, {"name": "Uniform", "range": [1, 5]}]'
    ).replace('"variables"', '"other"'),
}
OTHER_RANGES = {
    "range of one number": ours(var_domains=[[1], [0, 1]], variables=DELETED),
    "range of three numbers": ours(var_domains=[[1, 2, 3], [0, 1]], variables=DELETED),
    "range not a list": ours(var_domains=[1, [0, 1]], variables=DELETED),
    "range an object": ours(var_domains=[{"low": 0, "high": 1}, [0, 1]], variables=DELETED),
    "range text": ours(var_domains=["[0, 1]", [0, 1]], variables=DELETED),
    "range below 0 with sign positive": entry(low=-1),
    "range from 0 loguniform": entry(low=0),
    "range below 0 with sign both": entry(low=-1, sampling="uniform", sign="both"),
    "range loguniform as_range": entry(low=-1, sign="as_range"),
    "range without a whole number": entry(low=0.1, high=0.9, sampling="integer"),
    "range without a whole number below high": entry(low=0.5, high=1, sampling="integer"),
    "range wider than a float": domain(-1.7e308, 1.7e308),
    "range of integers too large to draw": entry(low=1, high=1e300, sampling="integer"),
    "range of three in their keys": ranges({"name": "Uniform", "range": [1, 2, 3], "only_positive": True}),
    "range missing in their keys": ranges({"name": "Uniform", "only_positive": True}),
    "range below 0 but only positive": ranges({"name": "Uniform", "range": [-1, 1], "only_positive": True}),
    "range below 0 loguniform": ranges({"name": "LogUniform", "range": [-1, 1], "only_positive": False}),
}
VARIABLES_OUTSIDE = {
    "variable x3 of 2": tokens(["x3", "var"]),
    "variable x0": tokens(["x0", "var"]),
    "variable x01": tokens(["x01", "var"]),
    "variable x00": tokens(["x00", "var"]),
    "variable X_2 of 2": tokens(["X_2", "var"]),
    "variable X2 of 2": tokens(["X2", "var"]),
    "variable X_01": tokens(["X_01", "var"]),
    "variable X00": tokens(["X00", "var"]),
    "variable X_999999999": tokens(["X_999999999", "var"]),
    "variable x of many digits": tokens(["x" + "1" * 500, "var"]),
    "variable X of many digits": tokens(["X_" + "1" * 500, "var"]),
    "variable in Arabic digits": tokens(["x\u0661", "var"]),
    "variable in superscript digits": tokens(["x²", "var"]),
    "variable in fullwidth digits": tokens(["X_\uff11", "var"]),
    "variable x1 in another script": tokens(["\u04451", "var"]),
    "variable x-1": tokens(["x-1", "var"]),
    "variable x+1": tokens(["x+1", "var"]),
    "variable x1_0": tokens(["x1_0", "var"]),
    "variable with a line break": tokens(["x1\n", "var"]),
    "variable with a blank": tokens([" x1", "var"]),
    "variable without a number": tokens(["x", "var"]),
    "variable y1": tokens(["y1", "var"]),
    "variable X_": tokens(["X_", "var"]),
    "variable empty": tokens(["", "var"]),
    "variable is code": tokens([CODE, "var"]),
    "variable __class__": tokens(["__class__", "var"]),
}
DUPLICATE_KEYS = {
    "duplicate key": ours()[:-1] + ', "num_vars": 3}',
    "duplicate key same value": ours()[:-1] + ', "num_vars": 2}',
    "duplicate unknown key": ours()[:-1] + ', "a": 1, "a": 2}',
    "duplicate key nested": raw("variables", '[{"low": 0, "low": 1, "high": 2}, {}]'),
    "duplicate key deeply nested": raw("dim", '[[{"a": {"b": 1, "b": 2}}]]'),
    "duplicate key Python": repr(GOOD)[:-1] + ", 'num_vars': 3}",
    "duplicate key Python nested": python("variables", "[{'low': 0, 'low': 1, 'high': 2}, {}]"),
    "duplicate key Python deeply nested": python("reason", "[({'a': {'b': 1, 'b': 2}},)]"),
    "duplicate key by escape": ours()[:-1] + ', "num\\u005fvars": 3}',
    "duplicate key in a list stored as text": ours(variables='[{"low": 0, "low": 1, "high": 2}, {}]'),
    "duplicate key in a wrapped object": json.dumps(ours()[:-1] + ', "num_vars": 3}'),
    "duplicate key very long": "{" + f'"{"k" * 50_000}": 1, "{"k" * 50_000}": 2' + "}",
}
ENCRYPTED = {
    "encrypted": "1\ngAAAAABkZ2Vub3VnaCBvZiB0aGlzLCBub3RoaW5nIHRvIHNlZQ==",
    "encrypted Windows": "1\r\ngAAAAABkZ2Vub3VnaA==\r\n",
    "encrypted before an object": "1\n" + ours(),
    "encrypted first line only": "1",
    "encrypted with blanks": " 1 \n" + ours(),
    "encrypted with byte order mark": "\ufeff1\nabc",
    "encrypted binary": b"1\n\xff\xfe\x00\x80",
}
TOO_LARGE = {
    "size one byte over": ours() + " " * (MAX_BYTES + 1 - len(ours())),
    "size of blanks": " " * (MAX_BYTES + 1),
    "size twice the limit": ours(reason="long " * 2 * (MAX_BYTES // 5)),
    "size binary": bytes(range(256)) * 5000,
}
NOT_TEXT = {
    "text not UTF-8": ours().encode()[:-1] + b"\xff}",
    "text Latin-1": ours(name="für").replace("\\u00fc", "ü").encode("latin-1"),
    "text UTF-16": ours().encode("utf-16"),
    "text UTF-16 without mark": ours().encode("utf-16-le"),
    "text UTF-32": ours().encode("utf-32"),
    "text NUL bytes": b"\x00" * 1000,
    "text NUL in the object": ours().encode()[:-1] + b"\x00}",
    "text NUL in a name": ours().replace('"good"', '"go\x00od"'),
    "text NUL behind the object": ours() + "\x00",
    "text encoded surrogate": b'{"name": "\xed\xa0\x80"}',
    "text overlong encoding": b'{"name": "\xc0\x80"}',
    "text two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbf" + ours().encode(),
    "text PNG": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "text gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    "text lone surrogate in the name": ours(name="\ud800"),
    "text lone surrogate in the formula": ours(formula="x1 + \udfff"),
    "text lone surrogate in a symbol": entry(symbol="\ud800"),
}
NOT_AN_OBJECT = {
    "file empty": "",
    "file of blanks": " \n\t \r\n",
    "file byte order mark only": "\ufeff",
    "file first line 0 only": "0",
    "file first line 0 and nothing": "0\n\n",
    "file first line 2": "2\n" + ours(),
    "file truncated": ours()[:200],
    "file truncated in a text": ours()[: ours().index("good") + 2],
    "file truncated Python": repr(GOOD)[:-1],
    "file truncated wrapped": json.dumps(ours())[:-1],
    "file twice": ours() + ours(),
    "file with words behind": ours() + " and more",
    "file array": json.dumps([GOOD]),
    "file array of numbers": "[1, 2, 3]",
    "file number": "12",
    "file text": '"hello"',
    "file null": "null",
    "file true": "true",
    "file None": "None",
    "file tuple": "(1, 2)",
    "file set": "{1, 2}",
    "file of pairs": json.dumps(list(GOOD.items())),
    "file empty object": "{}",
    "file wrapped twice": json.dumps(json.dumps(ours())),
    "file bytes of nothing": "b''",
    "file wrapped not UTF-8": "b'\\xff\\xfe'",
    "file words": "y = x1 + x2",
    "file comment": "# nothing",
    "file JSON with comment": "// problem\n" + ours(),
    "file XML": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "file CSV": "x1,x2,y\n1,2,3\n",
    "file keys without quotes": "{num_vars: 2}",
    "file keys not text": "{" + repr(GOOD)[1:-1].replace("'num_vars'", "1") + "}",
}
DEEP = {
    "deep lists": nested("[", 100_000, "", "]"),
    "deep lists open": nested("[", 100_000),
    "deep lists of 900": nested("[", 900, "", "]"),
    "deep lists of 60 Python": nested("[", 60, "'a'", "]"),
    "deep objects": nested('{"a":', 100_000, "1", "}"),
    "deep objects open": nested('{"a":', 100_000),
    "deep objects Python": nested("{'a':", 60_000, "1", "}"),
    "deep objects Python of 90": nested("{'a':", 90, "1", "}"),
    "deep braces": nested("{", 100_000),
    "deep braces closed": nested("{", 100, "1", "}"),
    "deep parentheses": nested("(", 100_000, "", ")"),
    "deep parentheses open": nested("(", 100_000),
    "deep parentheses of 150": nested("(", 150, "", ",)"),
    "deep mixture": nested("[{(", 30_000),
    "deep minus": nested("-", 200_000, "1"),
    "deep not": nested("not ", 60_000, "1"),
    "deep power": nested("9**", 90_000, "9"),
    "deep attributes": "x" + ".a" * 140_000,
    "deep calls": "f" + "()" * 140_000,
    "deep calls inside": nested("f(", 90, "", ")"),
    "deep sums": "1" + "+1" * 140_000,
    "deep lambda": nested("lambda:", 40_000, "1"),
    "deep conditions": nested("1 if 1 else ", 24_000, "1"),
    "deep value": raw("num_vars", nested("[", 500, "", "]")),
    "deep value as text": ours(equation=nested("[", 2000, "", "]")),
    "deep value as Python text": ours(equation=nested("(", 150, "", ",)")),
    "deep token": tokens([[[[[[[]]]]]], "const"]),
    "deep wrapped": json.dumps(nested("[", 100_000, "", "]")),
}
#: Text that costs Python's parser a great deal for its size, or a dictionary built from it.
COSTLY = {
    "costly list of numbers": "[" + "1," * 149_000 + "]",
    "costly list cut short": "[" + "1," * 149_000,
    "costly list with an error at its end": "[" + "1," * 149_000 + "$",
    "costly list of objects": "[" + "{}," * 99_000 + "]",
    "costly list in JSON": "[" + "[]," * 330_000 + "0]",
    "costly list of negative numbers": "[" + "-1," * 99_000 + "]",
    "costly comparison": "a<" * 149_000 + "a",
    "costly f-string": "f'" + "{a}" * 99_000 + "'",
    "costly f-string with formats": "f'" + "{a!r:{b}}" * 30_000 + "'",
    "costly f-string as value": python("name", "f'" + "{a}" * 90_000 + "'"),
    "costly f-string as text": ours(equation="f'" + "{a}" * 99_000 + "'"),
    "costly keys that collide": "{" + ",".join(f"{i * (2**61 - 1):#x}:0" for i in range(12_000)) + "}",
    "costly keys that collide as text": ours(
        variables="{" + ",".join(f"{i * (2**61 - 1):#x}:0" for i in range(12_000)) + "}"
    ),
    "costly lists as text, three times": ours(
        equation="[" + "['1','const']," * 20_000 + "]",
        function_set="[" + "'add'," * 49_000 + "]",
        variables="[" + "{'low':0,'high':1}," * 15_000 + "]",
    ),
    "costly text of escapes": "'" + "\\x41" * 74_000 + "'",
    "costly lines": "\n" * 299_000,
    "costly function set": ours(function_set=[f"f{i}" for i in range(80_000)]),
    "costly object": "{" + ",".join(f'"k{i}": {i}' for i in range(60_000)) + "}",
    "costly name of an operator": ours(function_set=["f" * 900_000]),
    "costly text as number": tokens(["1" * 900_000, "const"]),
    "costly text as count": ours(num_vars="1" * 900_000),
    "costly text as range": domain("1" * 900_000, 1),
    "costly number": raw("num_vars", "1" * 900_000),
    "costly fraction": raw("num_vars", "1." + "1" * 900_000),
}
NUMBERS = {
    "num_vars 0": ours(num_vars=0),
    "num_vars -1": ours(num_vars=-1),
    "num_vars 1e9": raw("num_vars", "1e9"),
    "num_vars a thousand million": ours(num_vars=10**9),
    "num_vars over the limit": ours(num_vars=MAX_VARIABLES + 1),
    "num_vars true": ours(num_vars=True),
    "num_vars true Python": python("num_vars", "True"),
    "num_vars many": ours(num_vars="many"),
    "num_vars 1.5": ours(num_vars=1.5),
    "num_vars 2.0": ours(num_vars=2.0),
    "num_vars null": ours(num_vars=None),
    "num_vars list": ours(num_vars=[2]),
    "num_vars object": ours(num_vars={"n": 2}),
    "num_vars NaN": raw("num_vars", "NaN"),
    "num_vars 1e999": raw("num_vars", "1e999"),
    "num_vars -0": raw("num_vars", "-0"),
    "num_vars empty text": ours(num_vars=""),
    "num_vars text 2.0": ours(num_vars="2.0"),
    "num_vars text -2": ours(num_vars="-2"),
    "num_vars superscript": ours(num_vars="²"),
    "num_vars of many digits": raw("num_vars", "9" * 5000),
    "num_vars of 300 digits": raw("num_vars", "9" * 300),
    "num_vars of many digits Python": python("num_vars", "9" * 5000),
    "num_vars of many digits in hexadecimal": python("num_vars", "0x" + "f" * 9000),
    "num_vars missing": ours(num_vars=DELETED),
    "num_vars 3 of 2": ours(num_vars=3),
    "num_vars 1 of 2": ours(num_vars=1),
    "num_vars 3 of 2 domains": ours(num_vars=3, variables=DELETED),
    "range of many digits in hexadecimal": python("variables", "[{'low': 0, 'high': 0x" + "f" * 9000 + "}, {}]"),
    "number imaginary": python("num_vars", "2j"),
    "number ellipsis": python("num_vars", "..."),
    "number of many digits unused": raw("dim", "9" * 5000),
    "number NaN unused": raw("dim", "NaN"),
}
CONSTANTS = {
    f"constant {text}": tokens([text, "const"])
    for text in (
        "1/0",
        "0/0",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "Infinity",
        "1/inf",
        "inf/inf",
        "1/nan",
        "0x10",
        "1e400",
        "-1e400",
        "1e308/1e-308",
        "1/1e400",
        "__class__",
        "C",
        "pi",
        "x1",
        "1/2/3",
        "1//2",
        "/",
        "1/",
        "/2",
        "1+1",
        "2**3",
        "(1)",
        "1,5",
        "1 2",
        "1j",
        "--1",
        "1e",
        "one",
        "",
        " ",
        "½",
        "9**9**9",
        "$(touch marker)",
    )
} | {
    "constant is code": tokens([CODE, "const"]),
    "constant null": tokens([None, "const"]),
    "constant true": tokens([True, "const"]),
    "constant list": tokens([[1], "const"]),
    "constant object": tokens([{"value": 1}, "const"]),
    "constant NaN": tokens([float("nan"), "const"]),
    "constant 1e999": raw("equation", '[[1e999, "const"]]'),
    "constant of 500 digits": tokens(["9" * 500, "const"]),
    "constant whole number of 390 digits": raw("equation", f'[[{"9" * 390}, "const"]]'),
    "constant of many digits in hexadecimal": python("equation", "[(0x" + "f" * 9000 + ", 'const')]"),
}
SHAPES = {
    "equation missing": ours(equation=DELETED),
    "equation null": ours(equation=None),
    "equation number": ours(equation=1),
    "equation object": ours(equation={"0": ["x1", "var"]}),
    "equation infix": ours(equation="x1 + x2"),
    "equation of texts": tokens("x1", "x2"),
    "equation of numbers": tokens(1, 2),
    "equation of nulls": tokens(None),
    "equation of objects": tokens({"text": "x1", "kind": "var"}),
    "equation text as kind": tokens(["var", "x1"]),
    "equation triples": tokens(["x1", "var", 1]),
    "equation singles": tokens(["x1"]),
    "equation nested": tokens(["add", ["x1", "x2"]]),
    "equation number as name": tokens([1, "var"]),
    "equation null as operator": tokens([None, "unary"], ["x1", "var"]),
    "equation list as operator": tokens([["add"], "binary"], ["x1", "var"], ["x2", "var"]),
    "equation as text as text": ours(equation=json.dumps(json.dumps(GOOD["equation"]))),
    "function_set missing": ours(function_set=DELETED),
    "function_set null": ours(function_set=None),
    "function_set text": ours(function_set="add, mul"),
    "function_set object": ours(function_set={"add": 1}),
    "function_set unknown": ours(function_set=["add", "mul", "foo"]),
    "function_set of lists": ours(function_set=[["add"], ["mul"]]),
    "function_set of objects": ours(function_set=[{}, {}]),
    "function_set of nulls": ours(function_set=[None]),
    "function_set empty": ours(function_set=[]),
    "function_set too small": ours(function_set=["add", "const"]),
    "function_set long name": ours(function_set=["add", "mul", "f" * 5000]),
    "function_set is code": ours(function_set=["add", "mul", CODE]),
    "function_set is code as text": ours(function_set=f"[{CODE}]"),
    "function_set with terminal escapes": ours(function_set=["add", "mul", "\x1b[2J"]),
    "var_domains missing": ours(var_domains=DELETED, variables=DELETED),
    "var_domains too few": ours(var_domains=[[0, 1]], variables=DELETED),
    "var_domains too many": ours(var_domains=[[0, 1]] * 3, variables=DELETED),
    "var_domains none": ours(var_domains=[], variables=DELETED),
    "var_domains null": ours(var_domains=None, variables=DELETED),
    "var_domains object": ours(var_domains={"x1": [0, 1], "x2": [0, 1]}, variables=DELETED),
    "var_domains is code as text": ours(var_domains=f"[[0, {CODE}], [0, 1]]", variables=DELETED),
    "variables too few": ours(variables=GOOD["variables"][:1]),
    "variables too many": ours(variables=GOOD["variables"] * 2),
    "variables null": ours(variables=None),
    "variables text": ours(variables="x1 x2"),
    "variables names": ours(variables=["x1", "x2"]),
    "variables nulls": ours(variables=[None, None]),
    "variables empty objects": ours(variables=[{}, {}]),
    "variables in another order": ours(variables=GOOD["variables"][::-1]),
    "variables named X_0": entry(name="X_0"),
    "variables name null": entry(name=None),
    "variables name is code": entry(name=CODE),
    "variables symbol a number": entry(symbol=1),
    "variables symbol null": entry(symbol=None),
    "variables low missing": entry(low=DELETED),
    "variables high missing": entry(high=DELETED),
    "sampling unknown": entry(sampling="normal"),
    "sampling in capitals": entry(sampling="LogUniform"),
    "sampling null": entry(sampling=None),
    "sampling number": entry(sampling=1),
    "sampling list": entry(sampling=["uniform"]),
    "sampling object": entry(sampling={}),
    "sampling is code": entry(sampling=CODE),
    "sign unknown": entry(sign="negative"),
    "sign plus": entry(sign="+"),
    "sign null": entry(sign=None),
    "sign number": entry(sign=-1),
    "sign list": entry(sign=["both"]),
    "sign is code": entry(sign=CODE),
    "judge unknown": ours(judge="none"),
    "judge null": ours(judge=None),
    "judge number": ours(judge=1),
    "judge list": ours(judge=["full"]),
    "judge is code": ours(judge=CODE),
    "usable text": ours(usable="yes"),
    "usable number": ours(usable=1),
    "usable null": ours(usable=None),
    "usable is code": ours(usable=CODE),
    "name number": ours(name=1),
    "name null": ours(name=None),
    "name list": ours(name=["a"]),
    "name bytes": python("name", "b'good'"),
    "group number": ours(group=2),
    "formula number": ours(formula=1.5),
    "formula null": ours(formula=None),
    "formula list": ours(formula=["x1"]),
    "reason number": ours(reason=0),
    "their variables unknown sampling": ranges({"name": "Normal", "range": [0, 1], "only_positive": True}),
    "their variables sampling null": ranges({"name": None, "range": [0, 1], "only_positive": True}),
    "their variables without name": ranges({"range": [0, 1], "only_positive": True}),
    "their variables only_positive in words": ranges({"name": "Uniform", "range": [1, 2], "only_positive": "no"}),
    "their variables not an object": ranges(["Uniform", 0, 1]),
    "their variables null": ours(variables=DELETED, vars_range_and_types=None),
    "their variables number": ours(variables=DELETED, vars_range_and_types=2),
    "their variables too few": ours(variables=DELETED, vars_range_and_types=[]),
    "their variables is code": ours(variables=DELETED, vars_range_and_types=f"[{CODE}, {CODE}]"),
    "their variables sampling is code": ranges({"name": CODE, "range": [0, 1], "only_positive": True}),
    "their variables range is code": ranges({"name": "Uniform", "range": CODE, "only_positive": True}),
    "their variables sampling of many digits": python(
        "vars_range_and_types", "[{'name': 0x" + "f" * 9000 + ", 'range': [0, 1]}, {}]"
    ),
    "their expression is code": ours(equation=DELETED, eq_expression=CODE),
}  # fmt: skip

SNIPPETS = {
    "call": CODE,
    "open": OPEN,
    "lambda": f"(lambda: {OPEN})()",
    "comprehension": f"[{OPEN} for _ in (1,)]",
    "dictionary comprehension": f"{{'num_vars': {OPEN} for _ in (1,)}}",
    "generator": f"list({OPEN} for _ in (1,))",
    "walrus": f"(m := {OPEN})",
    "f-string": f'f"{{{OPEN}}}"',
    "f-string format": f'f"{{1:{{{OPEN}}}}}"',
    "attribute": "().__class__.__base__.__subclasses__()",
    "subscript": f"[{OPEN}][0]",
    "condition": f"{OPEN} if 1 else 0",
    "and": f"1 and {OPEN}",
    "starred": f"[*[{OPEN}]]",
    "unpacked": f"{{**dict(a={OPEN})}}",
    "key": f"{{{OPEN}: 1}}",
    "set": f"{{{OPEN}}}",
    "exec": f"exec({OPEN!r})",
    "eval": f"eval({OPEN!r})",
    "await": f"await {OPEN}",
    "yield": f"(yield {OPEN})",
    "format": "'{0.__class__}'.format(1)",
    "percent": "'%999999999d' % 1",
    "huge power": "9**9**9",
    "huge shift": "1 << 10**10",
    "repeated text": "'a'*10**9",
    "repeated list": "[0]*10**9",
    "not": "not 1",
    "plus sign": "+1",
    "tilde": "~1",
    "doubled minus": "--1",
    "minus text": "-'a'",
    "sum of texts": "'a' + 'b'",
    "complex number": "1+2j",
}
INJECTIONS = (
    {f"code {name} as the file": text for name, text in SNIPPETS.items()}
    | {f"code {name} behind a first line 0": f"0\n{text}" for name, text in list(SNIPPETS.items())[:8]}
    | {f"code {name} as num_vars": python("num_vars", text) for name, text in SNIPPETS.items()}
    | {f"code {name} as equation in text": ours(equation=text) for name, text in SNIPPETS.items()}
    | {f"code as {key}": python(key, OPEN) for key in GOOD if key != "num_vars"}
    | {f"code as function {key}": python(key, f"lambda: {OPEN}") for key in GOOD}
    | {f"code as {key} in text": ours(**{key: CODE}) for key in ("function_set", "variables", "num_vars")}
    | {
        "code statement": f"import os; os.system('echo > {MARKER}')",
        "code lines": f"{{}}\n{OPEN}\n",
        "code behind a backslash": f"{{}} \\\n or {OPEN}",
        "code encoding line": "# -*- coding: utf-7 -*-\n" + OPEN,
        "code wrapped": json.dumps(CODE),
        "code wrapped as bytes": repr(CODE.encode()),
        "code YAML": f"!!python/object/apply:os.system ['echo > {MARKER}']",
        "code YAML in the equation": ours(equation=f"!!python/object/apply:os.system ['echo > {MARKER}']"),
        "code YAML anchors": "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
        "code pickle": f"cos\nsystem\n(S'echo > {MARKER}'\ntR.",
        "code pickle protocol 4": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0decho > marker\x85R.",
        "code pickle in text": ours(equation=f"cos\nsystem\n(S'echo > {MARKER}'\ntR."),
        "code JavaScript": "{__proto__: {num_vars: 2}}",
        "code shell": f"$(echo > {MARKER})",
        "code template": "{{ 7*7 }}",
    }
)

CLASSES = {
    "unknown operator": UNKNOWN_OPERATORS,
    "wrong arity": WRONG_ARITY,
    "missing tokens": MISSING_TOKENS,
    "extra tokens": EXTRA_TOKENS,
    "reversed range": REVERSED_RANGES,
    "range not finite": NOT_FINITE_RANGES,
    "variable outside": VARIABLES_OUTSIDE,
    "duplicate key": DUPLICATE_KEYS,
    "encrypted": ENCRYPTED,
    "too large": TOO_LARGE,
}
OTHERS = (
    WRONG_KIND,
    NO_TOKENS,
    OTHER_RANGES,
    NOT_TEXT,
    NOT_AN_OBJECT,
    DEEP,
    COSTLY,
    NUMBERS,
    CONSTANTS,
    SHAPES,
    INJECTIONS,
)
CORPUS: dict[str, str | bytes] = {
    name: content for files in (*CLASSES.values(), *OTHERS) for name, content in files.items()
}

#: Key words by which a user tells the kinds of errors apart.
KEY_WORDS = {
    "unknown operator": r"expected an operator: add, sub",
    "wrong arity": r"expected kind (unary|binary)$",
    "missing tokens": r"more operand",
    "extra tokens": r"extra token",
    "reversed range": r"expected low < high",
    "range not finite": r"expected (a finite number|finite numbers)$",
    "variable outside": r"x1\.\.x2",
    "duplicate key": r"expected every key once$",
    "encrypted": r"encrypted",
    "too large": rf"more than {MAX_BYTES} bytes",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(content: str | bytes, name: str = "hostile.json") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return name


def message_of(content: str | bytes) -> str:
    with pytest.raises(EquationError) as caught:
        load_equation(write(content))
    return str(caught.value)


# --- every file of the corpus -------------------------------------------------------------


def test_the_good_file_loads_and_is_right_so_that_each_change_to_it_is_what_breaks_it() -> None:
    assert load_equation(write(ours())) == load_equation(write(repr(GOOD)))
    assert check_file(Path(write(ours()))) == []


def test_the_corpus_is_large_and_no_two_files_are_the_same() -> None:
    assert len(CORPUS) >= 100
    assert len(CORPUS) == sum(map(len, (*CLASSES.values(), *OTHERS)))
    assert len(set(CORPUS.values())) == len(CORPUS)


@pytest.mark.parametrize("name", CORPUS)
def test_a_hostile_file_is_refused_with_one_clear_line_and_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        message = message_of(CORPUS[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.startswith("hostile.json: ")
    assert "found" in message
    assert "expected" in message
    assert len(message) < MAX_MESSAGE
    assert message.isprintable(), "more than one line, or characters that a terminal would obey"
    assert peak < MAX_MEGABYTES * 1e6
    assert os.listdir() == ["hostile.json"], "something in the file was run"


WATCH = """
import json, sys, time
from deap_vsr.problems.equation import load_equation
from deap_vsr.errors import EquationError

def peak():
    # Not getrusage first: its peak is inherited from the process that started this one.
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM"))
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)

load_equation("good.json")
reports, before = {}, peak()
for name in json.load(open("names.json")):
    start = time.process_time()
    try:
        load_equation(name)
        end = "loaded"
    except EquationError:
        end = "refused"
    except BaseException as error:
        end = type(error).__name__
    reports[name] = {"seconds": time.process_time() - start, "end": end}
print(json.dumps({"files": reports, "megabytes": peak() - before}))
"""


def test_the_whole_corpus_is_refused_within_a_second_each_and_200_megabytes_in_all() -> None:
    write(ours(), "good.json")
    names = {f"{i}.json": name for i, name in enumerate(CORPUS)}
    for file, name in names.items():
        write(CORPUS[name], file)
    write(json.dumps(list(names)), "names.json")
    before = set(os.listdir())
    done = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    assert set(os.listdir()) == before, "something in a file was run"
    report = json.loads(done.stdout)
    seen = {names[file]: outcome for file, outcome in report["files"].items()}
    found = {
        "not refused": {name: outcome["end"] for name, outcome in seen.items() if outcome["end"] != "refused"},
        "too slow": {name: outcome["seconds"] for name, outcome in seen.items() if outcome["seconds"] > MAX_SECONDS},
        "too many megabytes": [report["megabytes"]] if report["megabytes"] > MAX_MEGABYTES else [],
        "warnings": done.stderr,
    }
    assert found == {"not refused": {}, "too slow": {}, "too many megabytes": [], "warnings": ""}


def test_a_file_of_many_gigabytes_is_refused_without_reading_it() -> None:
    with open("hostile.json", "wb") as file:
        file.truncate(8 * 2**30)  # a hole, not data
    tracemalloc.start()
    try:
        with pytest.raises(EquationError, match="more than 1000000 bytes"):
            load_equation("hostile.json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MAX_BYTES


# --- what the messages say ----------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, files in CLASSES.items() for name in files])
def test_each_kind_of_error_has_a_message_of_its_own(kind: str, name: str) -> None:
    message = message_of(CORPUS[name])
    assert [k for k, words in KEY_WORDS.items() if re.search(words, message)] == [kind]


@pytest.mark.parametrize(
    ("name", "field", "found"),
    [
        ("operator unknown", "equation[0]", "foo"),
        ("arity sin as binary", "equation[0]", "sin as binary"),
        ("missing operand of add", "equation", "2 tokens"),
        ("extra variable", "equation[1]", "'x2'"),
        ("range reversed", "var_domains[0]", "low 10, high 0.1"),
        ("range reversed in variables", "variables[0]", "low 10, high 0.1"),
        ("range inf as text", "var_domains[0]", "inf"),
        ("range Infinity in variables", "", "Infinity"),
        ("range is code in variables", "variables[0].high", "__import__"),
        ("variable x3 of 2", "equation[0]", "x3"),
        ("variable X_2 of 2", "equation[0]", "X_2"),
        ("duplicate key", "", "'num_vars' twice"),
        ("duplicate key in a list stored as text", "variables", "'low' twice"),
        ("kind unknown", "equation[0][1]", "variable"),
        ("constant 1/0", "equation[0][0]", "1/0"),
        ("num_vars many", "num_vars", "many"),
        ("num_vars 3 of 2", "variables", "2 entries"),
        ("sampling unknown", "variables[0].sampling", "normal"),
        ("sign unknown", "variables[0].sign", "negative"),
        ("judge unknown", "judge", "none"),
        ("usable text", "usable", "yes"),
        ("variables low missing", "variables[0].low", "no such key"),
        ("variables symbol a number", "variables[0].symbol", "1"),
        ("function_set unknown", "function_set", "foo"),
        ("function_set too small", "function_set", "add"),
        ("their variables unknown sampling", "vars_range_and_types[0].name", "Normal"),
    ],
)
def test_an_error_names_the_file_the_field_and_the_value_found(name: str, field: str, found: str) -> None:
    with pytest.raises(EquationError) as caught:
        load_equation(write(CORPUS[name]))
    error = caught.value
    assert (error.source, error.field) == ("hostile.json", field)
    assert found in str(error)
    assert found in str(error.found)
    assert error.expected in str(error)


# --- text is text -------------------------------------------------------------------------


@pytest.mark.parametrize("snippet", SNIPPETS)
@pytest.mark.parametrize("key", ["name", "group", "formula", "reason", "symbol"])
def test_code_in_a_text_field_stays_text(key: str, snippet: str) -> None:
    text = SNIPPETS[snippet]
    if key == "symbol":
        found = load_equation(write(entry(symbol=text))).variables[0].symbol
    else:
        found = getattr(load_equation(write(ours(**{key: text}))), key)
    assert found == text
    assert os.listdir() == ["hostile.json"]


@pytest.mark.parametrize(
    "formula",
    [
        *(text for name, text in SNIPPETS.items() if name not in ("huge power", "plus sign", "doubled minus")),
        "x" * 100_000,
        "x1" * 50_000,
        "-" * 100_000 + "x1",
        "(" * 10_000 + "x1" + ")" * 10_000,
        "x1" + "+x1" * 60_000,
        "x1 +",
        "x1\nx2",
        "x9",
        "C1",
        "",
        "\x1b[2J",
        "\x00",
        "f'" + "{x1}" * 5_000 + "'",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_checking_reports_a_formula_that_is_none_in_short_lines(formula: str) -> None:
    path = Path(write(ours(formula=formula or " ")))
    lines = check_file(path)
    assert lines
    assert all(line.startswith("hostile.json: formula: ") for line in lines)
    assert all(line.isprintable() and len(line) < MAX_MESSAGE for line in lines)
    assert os.listdir() == ["hostile.json"]


# --- broken at random ---------------------------------------------------------------------

TEXT = ours()


def loads(text: str) -> bool:
    """Whether `text` loads; if not, it must be refused in one short line. Any other error goes through."""
    try:
        parse_equation(text, "hostile.json")
    except EquationError as error:
        message = str(error)
        assert message.startswith("hostile.json: ")
        assert len(message) < MAX_MESSAGE
        assert message.isprintable()
        return False
    return True


def test_a_file_cut_short_anywhere_is_refused() -> None:
    loaded = [end for end in range(len(TEXT)) if loads(TEXT[:end])]
    assert loaded == []


def test_a_value_nested_to_any_depth_is_refused() -> None:
    loaded = [
        (key, depth)
        for depth in range(1, 1100, 3)
        for key in ("num_vars", "equation", "function_set", "variables", "name")
        if loads(raw(key, nested("[", depth, "", "]")))
    ]
    assert loaded == []


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.integers(0, len(TEXT) - 1), st.text(max_size=4), st.integers(0, 5))
def test_a_file_changed_anywhere_loads_or_is_refused(start: int, replacement: str, length: int) -> None:
    changed = TEXT[:start] + replacement + TEXT[start + length :]
    loads(changed)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(exclude_categories=()), max_size=10)
    | st.sampled_from([token for pair in GOOD["equation"] for token in pair]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "low", "a"]), inner),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.sampled_from([*GOOD, "vars_range_and_types", "eq_expression", "eq_name"]), JSON_VALUES)
def test_a_file_with_any_value_at_any_key_loads_or_is_refused(key: str, value: Any) -> None:
    for text in (ours(**{key: value}), ours(**{key: json.dumps(value)}), python(key, repr(value))):
        loads(text)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "sin", "x1", "x2", "x3", "X_0", "X_9", "1/4", "2", "nan", "foo"])
            | st.text(string.printable, max_size=5),
            st.sampled_from(["binary", "unary", "const", "var", "other"]),
        ),
        max_size=7,
    )
)
def test_a_token_list_that_loads_is_one_complete_expression(items: list[tuple[str, str]]) -> None:
    text = ours(equation=items)
    if loads(text):
        tree = parse_equation(text).tree
        assert tree.checked().to_tokens()
        assert len(tree) == len(items)
        assert all(1 <= int(node.value[1:]) <= 2 for node in tree if not node.arity and isinstance(node.value, str))
