"""What people give as the variables of a function: pairs, ranges, words, categories; and what `--domain` says."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deap_vsr.errors import OracleError, short
from deap_vsr.problems.equation import Variable

#: A domain as people give it.
Domain = Any
Domains = Mapping[str, Domain] | Sequence[Domain]

_WORDS = {"log": "loguniform", "loguniform": "loguniform", "integer": "integer", "int": "integer"}
_EXPECTED = (
    '(low, high), (low, high, "log"), (low, high, "integer"), a range, a Variable, or a list of words for a category'
)


@dataclass(frozen=True)
class Inputs:
    """The inputs of a function: numbers, which formulas are about, and categories, for each of which there is one."""

    variables: tuple[Variable, ...]
    categories: dict[str, tuple[Any, ...]]


def inputs_of(domains: Domains, names: Sequence[str] = ()) -> Inputs:
    """Return the inputs that are meant.

    Parameters
    ----------
    domains : mapping from names to domains, or a sequence of domains or of Variables
        A domain is ``(low, high)``; ``(low, high, "log")`` for one that spans decades; ``(low, high, "integer")`` for
        whole numbers, both ends among them, or a range; a Variable; a list of words for a category.
    names : of a sequence's domains, where they are known; default: x1, x2, ...

    Raises
    ------
    OracleError
        Naming the variable, what was found and what was expected.
    """
    if isinstance(domains, str) or not isinstance(domains, Mapping | Sequence):
        raise OracleError(f"variables: found {short(domains)}, expected a mapping such as {{'T': (280, 400)}}")
    if isinstance(domains, Mapping):
        listed = [(name, domain) for name, domain in domains.items()]
    else:
        known = list(names) if len(names) == len(domains) else [f"x{i + 1}" for i in range(len(domains))]
        listed = [
            (domain.name if isinstance(domain, Variable) else known[i], domain) for i, domain in enumerate(domains)
        ]
    variables, categories = [], {}
    for name, domain in listed:
        if _is_category(domain):
            if len(set(domain)) != len(domain):
                raise OracleError(f"variables: {name}: a word is there twice in {short(list(domain))}")
            categories[name] = tuple(domain)
        else:
            variables.append(variable_of(name, domain))
    if not variables:
        raise OracleError("variables: there is no number among them, and a formula needs at least one")
    return Inputs(tuple(variables), categories)


def _is_category(domain: Domain) -> bool:
    return isinstance(domain, list | tuple) and bool(domain) and all(isinstance(value, str) for value in domain)


def variable_of(name: str, domain: Domain) -> Variable:
    """Return the variable that a name and a domain stand for."""
    if isinstance(domain, Variable):
        return domain if domain.name == name else replace(domain, name=name)
    if isinstance(domain, range):
        if abs(domain.step) != 1 or len(domain) < 2:
            raise OracleError(f"variables: {name}: {domain!r}: expected a range of at least two numbers, in steps of 1")
        return Variable(name, min(domain), max(domain) + 1, "integer", symbol=name)
    parts = list(domain) if isinstance(domain, list | tuple) else [domain]
    sampling = "uniform"
    if len(parts) == 3 and isinstance(parts[2], str):
        word = parts.pop()
        if word not in _WORDS:
            raise OracleError(f"variables: {name}: found {short(word)!r}, expected log or integer")
        sampling = _WORDS[word]
    if len(parts) != 2 or not all(_is_number(part) for part in parts):
        raise OracleError(f"variables: {name}: found {short(domain)}, expected {_EXPECTED}")
    low, high = float(parts[0]), float(parts[1])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise OracleError(f"variables: {name}: found ({low:g}, {high:g}), expected finite numbers low < high")
    if sampling == "loguniform" and low <= 0:
        raise OracleError(f"variables: {name}: found ({low:g}, {high:g}, log), expected numbers above 0")
    return Variable(name, low, high + 1 if sampling == "integer" else high, sampling, symbol=name)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def domain_of_text(text: str) -> tuple[str, Domain]:
    """Return the name and the domain of ``T=280:400``, ``p=0.1:10:log``, ``n=1:9:integer`` or ``material=steel,wood``.

    ``T[K]=280:400`` has a unit.
    """
    name, equals, rest = text.partition("=")
    name, _, unit = name.strip().partition("[")
    name, unit = name.strip(), unit.rstrip("] ").strip()
    if not equals or not name or not rest.strip():
        raise OracleError(f"--domain {short(text)}: expected NAME=LOW:HIGH, as in T=280:400")
    parts = [part.strip() for part in rest.split(":")]
    if len(parts) == 1:
        words = [word.strip() for word in rest.split(",")]
        if len(words) < 2 or not all(words):
            raise OracleError(f"--domain {short(text)}: expected LOW:HIGH, or words with commas between them")
        return name, words
    try:
        domain: tuple[Any, ...] = (float(parts[0]), float(parts[1]), *parts[2:])
    except ValueError:
        raise OracleError(f"--domain {short(text)}: found {short(rest)!r}, expected numbers LOW:HIGH") from None
    try:
        return name, replace(variable_of(name, domain), unit=unit)
    except OracleError as error:
        raise OracleError(f"--domain {short(text)}: {str(error).removeprefix('variables: ')}") from None
