"""Formulas as code: a function in Python, numpy or C, in the names of the variables."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from deap_vsr.errors import ExpressionError
from deap_vsr.tree.masked import MaskedTree, Node, is_variable
from deap_vsr.tree.names import Names, greek_name
from deap_vsr.tree.operators import ATOM, CATALOGUE, PRODUCT, SIGN, SUM
from deap_vsr.tree.walk import bottom_up

#: What is written with signs in all three languages, with the precedence of what comes out and of its operands.
_SIGNS = {
    "add": ("{0} + {1}", SUM, (SUM, PRODUCT)),
    "sub": ("{0} - {1}", SUM, (SUM, PRODUCT)),
    "mul": ("{0}*{1}", PRODUCT, (PRODUCT, SIGN)),
    "div": ("{0}/{1}", PRODUCT, (PRODUCT, SIGN)),
    "inv": ("1.0/{0}", PRODUCT, (SIGN,)),
    "neg": ("-{0}", SIGN, (SIGN,)),
}
_SHORT = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
#: Functions of C's mathematics, and words of the language, that a function or an argument of ours cannot be called.
_C_WORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main", "y0",
    "y1", "yn", "j0", "j1", "jn", "gamma", "lgamma", "tgamma", "signgam", "drem", "significand", "erf", "erfc",
    "ceil", "floor", "round", "rint", "trunc", "fabs", "fmod", "hypot", "cbrt", "remainder", "logb", "ilogb", "scalb",
    "ldexp", "frexp", "modf", "nan", "fma", "fdim", "fmin", "fmax", "abs", "div", "exp2", "log2", "log10", "expm1",
    "log1p", "asin", "acos", "atan", "atan2", "pow",
))  # fmt: skip


@dataclass(frozen=True)
class Language:
    """How a language writes a function: a template with name, arguments and formula, and how it calls functions."""

    template: str
    functions: str
    power: str
    absolute: str
    numbers: dict[str, str]


PYTHON = Language(
    'import math\n\n\ndef {name}({arguments}):\n    """{text}"""\n    return {formula}\n',
    "math.{}", "math.pow({0}, {1})", "abs({0})", {"inf": "math.inf", "nan": "math.nan"},
)  # fmt: skip
NUMPY = Language(
    'import numpy as np\n\n\ndef {name}({arguments}):\n    """{text}"""\n    return {formula}\n',
    "np.{}", "np.float_power({0}, {1})", "np.abs({0})", {"inf": "np.inf", "nan": "np.nan"},
)  # fmt: skip
C = Language(
    "#include <math.h>\n\n/* {text} */\ndouble {name}({arguments})\n{{\n    return {formula};\n}}\n",
    "{}", "pow({0}, {1})", "fabs({0})", {"inf": "INFINITY", "nan": "NAN"},
)  # fmt: skip


def python_code(tree: MaskedTree, names: Names) -> str:
    """Return the source of a Python function of numbers."""
    return _code(tree, names, PYTHON, lambda name: name)


def numpy_code(tree: MaskedTree, names: Names) -> str:
    """Return the source of a Python function of numbers or arrays."""
    return _code(tree, names, NUMPY, lambda name: name)


def c_code(tree: MaskedTree, names: Names) -> str:
    """Return the source of a C function of doubles."""
    return _code(tree, names, C, _in_c)


def _code(tree: MaskedTree, names: Names, language: Language, called: Callable[[str], str]) -> str:
    arguments: list[str] = []
    for symbol in names.symbols:
        name = called(symbol)
        while name in arguments:
            name += "_"
        arguments.append(name)
    function = called(_identifier(names.output))
    while function in arguments:
        function += "_"
    units = [f"{names.label(i)}" for i in range(len(arguments))]
    text = f"{names.answer} of {', '.join(units)}".replace("*/", "* /").replace("\\", "/").replace('"', "'")
    listed = [f"double {name}" for name in arguments] if language is C else arguments
    formula = _formula(tree, language, arguments)
    return language.template.format(name=function, arguments=", ".join(listed), text=text, formula=formula)


def _identifier(output: str) -> str:
    return Names((output,)).symbols[0]


def _in_c(name: str) -> str:
    """Return a name in the letters that C has: Greek ones by their names, others by their numbers."""
    letters = []
    for letter in name:
        if letter.isascii():
            letters.append(letter)
        else:
            plain = greek_name(letter)
            stripped = unicodedata.normalize("NFKD", letter)[0]
            letters.append(plain if plain != letter else stripped if stripped.isascii() else f"u{ord(letter):x}")
    text = "".join(letters)
    return f"{text}_" if text in _C_WORDS else text


def _formula(tree: MaskedTree, language: Language, arguments: list[str]) -> str:
    def written(position: int, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
        """Return the text of a sub-tree and its precedence."""
        if not node.arity:
            return _leaf(node, language, arguments)
        texts = [text for text, _ in operands]
        if node.name in _SIGNS:
            template, precedence, least = _SIGNS[node.name]
            return template.format(*(t if p >= m else f"({t})" for (t, p), m in zip(operands, least, strict=True))), (
                precedence
            )
        if node.name not in CATALOGUE:
            raise ExpressionError(f"{node.name} is an operator of your own: there is no code for it")
        if node.name == "pow":
            return language.power.format(*texts), ATOM
        if node.name == "abs":
            return language.absolute.format(*texts), ATOM
        if node.name[0] == "n" and node.name[1:].isdigit():
            return language.power.format(texts[0], f"{float(node.name[1:])}"), ATOM
        function = node.name if language is NUMPY else _SHORT.get(node.name, node.name)
        return f"{language.functions.format(function)}({texts[0]})", ATOM

    return bottom_up(tree.checked(), written)[0]


def _leaf(node: Node, language: Language, arguments: list[str]) -> tuple[str, int]:
    if is_variable(node):
        column = int(node.value[1:]) - 1
        if column >= len(arguments):
            raise ExpressionError(f"the formula uses {node.value}, there are {len(arguments)} variables")
        return arguments[column], ATOM
    value = float(node.value)
    text = repr(abs(value))
    text = language.numbers.get(text, text)
    return (f"-{text}", SIGN) if value < 0 else (text, ATOM)
