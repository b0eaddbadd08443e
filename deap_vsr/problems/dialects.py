"""Reading the text of an equation file, in our JSON or in a dialect found in the wild.

Known dialects: Python quotes and tuples instead of JSON; the whole object inside one more pair
of quotes; a first line ``0``; other key names; lists stored as strings; variables ``X_0`` or
``X0`` counted from 0; constants written ``1/4``. Text is only ever parsed, never evaluated.
"""

from __future__ import annotations

import ast
import json
import math
import re
from contextlib import suppress
from typing import Any, NoReturn

from deap_vsr.errors import EquationError

#: Longest text read as Python literals: Python's parser needs some hundred bytes per character.
MAX_LITERAL_TEXT = 120_000

#: What the text of Python literals is made of; Python's parser is never shown anything else, as f-strings
#: and the like can keep it busy for seconds.
_LITERAL = re.compile(
    r"""
    [\s\[\](){},:\\/-]+                 # brackets and separators, and the stroke of 1/4
    | b?'(?:[^'\\]|\\.)*'               # strings
    | b?"(?:[^"\\]|\\.)*"
    | [0-9.][0-9a-zA-Z_.]{0,400}(?:(?<=[eE])[+-][0-9]+)?(?![0-9a-zA-Z_.])   # numbers
    | (?:None|True|False)\b
    """,
    re.DOTALL | re.VERBOSE,
)

_DEEP = "at most 50 levels of nesting"
_SAMPLINGS = {"uniform": "uniform", "loguniform": "loguniform", "integeruniform": "integer", "integer": "integer"}


def read_document(text: str, source: str) -> dict[str, Any]:
    """Return the object in `text` with our key names, tokens and variable entries.

    Values are those of the file; :mod:`deap_vsr.problems.equation` checks them.
    """
    first, _, rest = text.partition("\n")
    if first.strip() == "1":
        raise EquationError(source, "first line", "1 (an encrypted file)", "a file that is not encrypted")
    body = rest if first.strip() == "0" else text
    document = _literal(body, source, "")
    if isinstance(document, str | bytes):  # the whole object was stored as a string
        document = _literal(
            document.decode("utf-8", "replace") if isinstance(document, bytes) else document, source, ""
        )
    if not isinstance(document, dict):
        raise EquationError(source, "", f"a {type(document).__name__}", "one object with the keys of an equation file")
    return _our_keys(document, source)


def _our_keys(document: dict[str, Any], source: str) -> dict[str, Any]:
    """Rename keys and unpack lists that are stored as strings."""
    ours = dict(document)
    foreign = "eq_expression" in document and "equation" not in document
    for theirs, key in (("eq_name", "name"), ("eq_expression", "equation")):
        if theirs in ours:
            ours.setdefault(key, ours.pop(theirs))
    for key in ("equation", "function_set", "var_domains", "variables", "vars_range_and_types"):
        if isinstance(ours.get(key), str):
            ours[key] = _literal(ours[key], source, key)
    if "vars_range_and_types" in ours:
        ours.setdefault("variables", _variables(ours.pop("vars_range_and_types"), source))
    if isinstance(ours.get("equation"), list | tuple):
        ours["equation"] = [_token(token, i, source) for i, token in enumerate(ours["equation"])]
    ours["complete_function_set"] = not foreign  # others list fewer operators than they use
    return ours


def _variables(entries: Any, source: str) -> Any:
    """Turn ``{'name': 'LogUniform', 'range': [0.1, 10], 'only_positive': True}`` into our form."""
    if not isinstance(entries, list | tuple):
        return entries
    ours = []
    for i, entry in enumerate(entries):
        field = f"vars_range_and_types[{i}]"
        if not isinstance(entry, dict) or "range" not in entry or "name" not in entry:
            raise EquationError(source, field, entry, "an object with name, range and only_positive")
        sampling = _SAMPLINGS.get(str(entry["name"]).lower().removesuffix("sampling"))
        if sampling is None:
            raise EquationError(source, f"{field}.name", entry["name"], "Uniform, LogUniform or IntegerUniform")
        bounds = entry["range"]
        if not isinstance(bounds, list | tuple) or len(bounds) != 2:
            raise EquationError(source, f"{field}.range", bounds, "[low, high]")
        negative = bounds[0] < 0 if isinstance(bounds[0], int | float) else str(bounds[0]).strip().startswith("-")
        if not isinstance(entry.get("only_positive", False), bool):
            raise EquationError(source, f"{field}.only_positive", entry["only_positive"], "true or false")
        sign = "positive" if entry.get("only_positive", False) else "as_range" if negative else "both"
        ours.append({"name": f"x{i + 1}", "low": bounds[0], "high": bounds[1], "sampling": sampling, "sign": sign})
    return ours


def _token(token: Any, index: int, source: str) -> tuple[str, str]:
    """Return ``(text, kind)`` with constants as decimal text."""
    field = f"equation[{index}]"
    if not isinstance(token, list | tuple) or len(token) != 2:
        raise EquationError(source, field, token, "a pair [text, kind]")
    text, kind = token
    if kind not in ("binary", "unary", "const", "var"):
        raise EquationError(source, f"{field}[1]", kind, "binary, unary, const or var")
    if kind == "const":
        return repr(_number(text, field, source)), kind
    if not isinstance(text, str):
        raise EquationError(source, f"{field}[0]", text, "a name in quotes")
    return text, kind


def _number(value: Any, field: str, source: str) -> float:
    """Return a constant given as a number, ``"8.314"`` or ``"1/4"``."""
    expected = 'a finite number such as 8.314, "8.314" or "1/4"'
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > 400:
        raise EquationError(source, f"{field}[0]", value, expected)
    try:
        above, slash, below = str(value).partition("/")
        if "_" in above + below or not (above + below).isascii():
            raise ValueError  # Python would read 1_0 and other alphabets' digits
        number = float(above)
        if slash:
            number = number / float(below) if math.isfinite(float(below)) else math.nan
    except (ValueError, ZeroDivisionError):
        raise EquationError(source, f"{field}[0]", value, expected) from None
    if not math.isfinite(number):
        raise EquationError(source, f"{field}[0]", value, expected)
    return number


# --- JSON and Python literals -------------------------------------------------------------


def _literal(text: str, source: str, field: str) -> Any:
    """Parse `text` as JSON or, failing that, as Python literals."""
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _unique(pairs, source, field),
            parse_constant=lambda word: _refuse_word(word, source, field),
            parse_int=lambda digits: _whole(digits, source, field),
        )
    except RecursionError:
        raise EquationError(source, field, "too deep a nesting", _DEEP) from None
    except json.JSONDecodeError as error:
        json_error = error
    if len(text) > MAX_LITERAL_TEXT:
        raise EquationError(source, field, f"{len(text)} characters that are not JSON", f"JSON ({json_error})")
    position = 0
    while position < len(text):
        literal = _LITERAL.match(text, position)
        if literal is None:
            raise EquationError(source, field, text[position : position + 60], f"JSON ({json_error})")
        position = literal.end()
    try:
        root = ast.parse(text.strip(), mode="eval").body
    except (RecursionError, MemoryError):
        raise EquationError(source, field, "too deep a nesting", _DEEP) from None
    except (SyntaxError, ValueError):
        raise EquationError(source, field, text[:60], f"JSON ({json_error})") from None
    return _python_literal(root, source, field)


def _python_literal(node: ast.expr, source: str, field: str, depth: int = 0) -> Any:
    if depth > 50:
        raise EquationError(source, field, "too deep a nesting", _DEEP)

    def inner(item: ast.expr) -> Any:
        return _python_literal(item, source, field, depth + 1)

    match node:
        case ast.Constant(value=int() | float() | str() | bytes() | None):
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.BinOp(op=ast.Div(), left=above, right=ast.Constant(value=int() | float() as below)):
            return _quotient(inner(above), below, node, source, field)
        case ast.List() | ast.Tuple():
            return [inner(item) for item in node.elts]
        case ast.Dict() if all(isinstance(key, ast.Constant) for key in node.keys):
            return _unique(
                [(inner(k), inner(v)) for k, v in zip(node.keys, node.values, strict=True) if k], source, field
            )
    found = f"{type(node).__name__} at column {node.col_offset + 1}"
    raise EquationError(source, field, found, "only objects, lists, strings and numbers")


def _quotient(above: Any, below: Any, node: ast.BinOp, source: str, field: str) -> float:
    """Return the number that is written 1/4."""
    number = math.nan
    if isinstance(above, int | float) and not isinstance(above, bool) and below:
        with suppress(OverflowError):
            number = above / below
    if not math.isfinite(number):
        found = f"a quotient at column {node.col_offset + 1}"
        raise EquationError(source, field, found, "a quotient of numbers such as 1/4")
    return number


def _unique(pairs: list[tuple[Any, Any]], source: str, field: str) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise EquationError(source, field, f"key {key!r}", "keys in quotes")
        if key in result:
            raise EquationError(source, field, f"key {key!r} twice", "every key once")
        result[key] = value
    return result


def _refuse_word(word: str, source: str, field: str) -> NoReturn:
    raise EquationError(source, field, word, "finite numbers")


def _whole(digits: str, source: str, field: str) -> int:
    if len(digits) > 400:
        raise EquationError(source, field, f"a whole number of {len(digits)} digits", "numbers that fit a float")
    return int(digits)
