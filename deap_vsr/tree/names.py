"""What people call their variables: in formulas, in LaTeX, with units; beside it the form in x1, x2, ... stays."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from deap import gp

from deap_vsr.errors import VsrError, short
from deap_vsr.tree.masked import MaskedTree, Node, is_variable, with_flag
from deap_vsr.tree.operators import is_operator

#: What a name in a formula would be taken for.
_NUMBERS = ("pi", "inf", "nan", "const")
#: Words that mean something in the code that a formula is written out as.
_WORDS = ("np", "math")
#: A longer name fits no line of a table.
MAX_NAME = 60
#: What the answer is called, unless a variable is called so: the first that is free.
_ANSWERS = ("y", "f", "answer")

_LETTERS = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
)  # fmt: skip
#: Capitals that LaTeX has commands for; the others look like Latin letters.
_CAPITALS = ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega")


class Named(Protocol):
    """Something with a name, as a variable has; its `unit` is optional."""

    @property
    def name(self) -> str:
        """What it is called."""


@dataclass(frozen=True)
class Names:
    """What the variables and the answer of a problem are called.

    Attributes
    ----------
    given : names of the variables as people gave them, any text
    units : of the variables, as text; empty where there is none
    output : what the answer is called
    unit : of the answer
    """

    given: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    output: str = "y"
    unit: str = ""

    @classmethod
    def of(cls, variables: Sequence[Named], output: str = "", unit: str = "") -> Names:
        """Return those of variables; the answer is called y, or f where a variable is.

        Raises
        ------
        VsrError
            For what is no text, empty, too long, or there twice.
        """
        given = tuple(variable.name for variable in variables)
        _check(given)
        symbols = formula_names(given)
        free = next(
            name for name in (*_ANSWERS, "_".join(["y", *symbols])) if name not in symbols and name not in given
        )
        if output:
            _check((*given, output))
        units = tuple(str(getattr(variable, "unit", "")) for variable in variables)
        return cls(given, units, output or free, unit)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """What variables are called in formulas (:func:`formula_names`)."""
        return formula_names(self.given)

    @cached_property
    def letter(self) -> str:
        """The letter of slots, C unless a variable is called C, C1, ..."""
        return next(
            letter
            for letter in ("C", "K", "c", "k", "slot", "_slot")
            if not any(re.fullmatch(rf"{letter}[0-9]*", symbol) for symbol in self.symbols)
        )

    @property
    def plain(self) -> bool:
        """Whether they are x1, x2, ..., as in equation files."""
        return all(symbol == f"x{column + 1}" for column, symbol in enumerate(self.symbols))

    def name(self, column: int) -> str:
        """Return what a variable is called in formulas."""
        return self.symbols[column] if column < len(self.symbols) else f"x{column + 1}"

    def label(self, column: int) -> str:
        """Return the name of a variable as it was given, with its unit, for tables and pictures."""
        given = self.given[column] if column < len(self.given) else f"x{column + 1}"
        return _with_unit(given, self.units[column] if column < len(self.units) else "")

    @property
    def answer(self) -> str:
        """The name of the answer with its unit."""
        return _with_unit(self.output, self.unit)

    def named(self, tree: MaskedTree) -> MaskedTree:
        """Return a tree in x1, x2, ... for reading: its variables by their names, node for node the same shape."""
        return MaskedTree([self._named(node) for node in tree])

    def _named(self, node: Node) -> Node:
        match = re.fullmatch(r"x([1-9][0-9]{0,8})", node.value) if is_variable(node) else None
        if match is None or self.name(int(match[1]) - 1) == node.value:
            return node
        return with_flag(gp.Terminal(self.name(int(match[1]) - 1), True, node.ret), True)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _check(names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise VsrError(f"variables: the name of variable {i + 1} is {short(name)}, expected a text")
        if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
            raise VsrError(
                f"variables: the name of variable {i + 1} is {short(name)!r}, expected 1 to {MAX_NAME} printable signs"
            )
    twice = {name for name in names if names.count(name) > 1} if isinstance(names, tuple) else set()
    if twice:
        raise VsrError(f"variables: {', '.join(sorted(twice))} is there twice; each variable has a name of its own")


def formula_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return for each name one that can stand in a formula and in code: itself, if it can.

    What is no identifier becomes one (``flow rate`` is flow_rate, ``2nd`` is v_2nd); what a reader would take for a
    function, a number or a word of Python gets a ``_`` behind it (``exp_``, ``lambda_``); so does what is there twice.
    """
    taken: set[str] = set()
    symbols = []
    for name in given:
        symbol = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name)).strip("_") or "v"
        symbol = name if name.isidentifier() and unicodedata.is_normalized("NFKC", name) else symbol
        symbol = symbol if symbol.isidentifier() else f"v_{symbol}"
        if not symbol.isidentifier():  # signs that are words of text and not of code
            symbol = re.sub(r"[^A-Za-z0-9_]+", "_", symbol)
        while symbol in taken or _is_taken(symbol) or (symbol != name and symbol in given):
            symbol += "_"
        taken.add(symbol)
        symbols.append(symbol)
    return tuple(symbols)


def _is_taken(symbol: str) -> bool:
    return symbol in _NUMBERS or symbol in _WORDS or keyword.iskeyword(symbol) or is_operator(symbol)


# --- LaTeX --------------------------------------------------------------------------------


def latex_name(name: str) -> str:
    r"""Return a name in LaTeX: Greek letters as such, digits and what stands behind a ``_`` as index.

    ``T1`` is T_{1}, ``T_in`` T_{\mathrm{in}}, ``lambda_`` and ``λ`` are \lambda.
    """
    front, _, index = name.strip("_").partition("_")
    match = re.fullmatch(r"([^\W\d]+)([0-9]+)", front)
    if match and not index:
        front, index = match[1], match[2]
    if not front:
        return r"\_"
    return _latex_word(front) + (f"_{{{_latex_index(index)}}}" if index else "")


def _latex_index(index: str) -> str:
    return ",".join(_latex_word(part) for part in index.split("_") if part)


def _latex_word(word: str) -> str:
    if len(word) == 1 and not word.isascii():
        word = greek_name(word)
    if word in _LETTERS or word in _CAPITALS:
        return r"o" if word == "omicron" else f"\\{word}"
    if word.isdecimal() or len(word) == 1:
        return word
    return rf"\mathrm{{{word}}}"


def greek_name(letter: str) -> str:
    """Return the English name of a Greek letter, ``lambda`` for λ; what is none stays as it is."""
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)|(MICRO) SIGN", unicodedata.name(letter, ""))
    if match is None:
        return letter
    name = "mu" if match[3] else {"lamda": "lambda"}.get(match[2].lower(), match[2].lower())
    if name not in _LETTERS:
        return letter
    return name.capitalize() if match[1] == "CAPITAL" else name
