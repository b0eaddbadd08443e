"""The operator catalogue: the one place that knows what `add`, `sin` or `n2` mean.

One :class:`Operator` holds arity, numpy function, partial derivatives, inverse, op-code, sympy form,
infix and LaTeX form, and the names and functions under which it is met elsewhere. Out of
domain is as in numpy: ``1/0`` is inf, ``log(-1)`` is NaN; nothing raises, nothing is "protected". What a user's
primitive set protects is in :mod:`deap_vsr.tree.guarded`.
"""

from __future__ import annotations

import keyword
import math
import operator as py
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deap_vsr.errors import ExpressionError, UnknownOperatorError

Array = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]

# Precedence of printed text, as in Python: a + b < a * b < -a < a ** b < atom.
SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 6)


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator, with everything the packages need to know about it.

    Attributes
    ----------
    name : str
        Its name in equation files, primitive sets and grammars.
    arity : int
    function : callable
        numpy function of `arity` arrays.
    derivative : callable or None
        ``derivative(value, *arguments)`` gives the `arity` partial derivatives, `value` being
        the operator's own result. None for a user's function that we know nothing about.
    symbolic : str or callable
        The name of the sympy function, or a function of `arity` sympy expressions.
    infix, latex : str
        Templates for printing; `precedence` is that of the printed infix text and `operands`
        the least precedence each operand may have without parentheses (`latex_precedence`
        and `latex_operands` where LaTeX differs).
    opcode : int
        The number under which the compiled kernel knows it; -1 if it does not.
    commutative : bool
    aliases : tuple of str
        Other spellings found in equation files.
    twins : tuple of callables
        Functions that mean the same in a user's own primitive set.
    inverse : callable or None
        Of a unary operator, what undoes it on its principal branch; NaN where the operator has no such value.
    plain : str
        Of a guarded operator, the one that it guards.
    called : str
        Of a guarded operator, the name that it is printed under.
    """

    name: str
    arity: int
    function: Callable[..., Any]
    derivative: Callable[..., tuple[Any, ...]] | None
    symbolic: str | Callable[..., Any]
    infix: str
    latex: str
    precedence: int = ATOM
    operands: tuple[int, ...] = (0, 0)
    latex_precedence: int | None = None
    latex_operands: tuple[int, ...] | None = None
    opcode: int = -1
    commutative: bool = False
    aliases: tuple[str, ...] = ()
    twins: tuple[Callable[..., Any], ...] = ()
    inverse: Callable[[Array], Array] | None = None
    plain: str = ""
    called: str = ""

    def __call__(self, *arguments: Any) -> Any:
        """Apply to scalars or arrays, as floats and silently: out of domain is inf or NaN."""
        with np.errstate(all="ignore"):
            return self.function(*(a if type(a) is float else np.asanyarray(a, dtype=float) for a in arguments))

    def sympy(self, sympy: ModuleType, *arguments: Any) -> Any:
        """Apply to sympy expressions; `sympy` is the module, imported by the caller."""
        function = getattr(sympy, self.symbolic) if isinstance(self.symbolic, str) else self.symbolic
        return function(*arguments)

    @property
    def known(self) -> bool:
        """Whether the compiled kernel knows it: an operator of the catalogue, or a guarded one."""
        return self.opcode >= 0

    def __reduce__(self) -> Any:
        if self.plain:
            from deap_vsr.tree.guarded import restored

            return restored, (self.opcode, self.called)
        if self.known:
            return get, (self.name,)
        return foreign, (self.name, self.twins[0], self.arity)

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"


def _unary(
    name: str,
    function: Callable[[Any], Any],
    derivative: Callable[[Any, Any], Any],
    symbolic: str | None = None,
    latex: str | None = None,
    twins: tuple[Callable[..., Any], ...] = (),
    aliases: tuple[str, ...] = (),
    inverse: Callable[[Array], Array] | None = None,
) -> Operator:
    """Entry of a function printed as ``name(x)``."""
    return Operator(
        name,
        1,
        function,
        lambda value, x: (derivative(value, x),),
        symbolic or name,
        name + "({0})",
        latex or "\\" + name + r"\left({0}\right)",
        latex_operands=(0,),
        aliases=aliases,
        twins=(function, *twins),
        inverse=inverse,
    )


def _integer_power(exponent: int, function: Callable[[Any], Any], aliases: tuple[str, ...] = ()) -> Operator:
    """Entry of nK, the K-th power, computed by multiplications."""
    return Operator(
        f"n{exponent}",
        1,
        function,
        lambda value, x: (exponent * x ** (exponent - 1),),
        lambda x: x**exponent,
        "{0}**" + str(exponent),
        "{0}^{{" + str(exponent) + "}}",
        precedence=POWER,
        operands=(ATOM,),
        aliases=aliases,
        twins=(np.square,) if exponent == 2 else (),
        inverse=_root(exponent),
    )


def _root(exponent: int) -> Callable[[Array], Array]:
    if exponent % 2:
        return lambda y: np.sign(y) * np.abs(y) ** (1.0 / exponent)
    return lambda y: np.where(y >= 0, np.abs(y), np.nan) ** (1.0 / exponent)


def _square(x: Any) -> Any:
    return x * x


def _fourth(x: Any) -> Any:
    return _square(x * x)


def _unit_circle(x: Any) -> Any:
    return np.sqrt((1.0 - x) * (1.0 + x))  # 1 - x * x would cancel near 1


def _pow_derivative(value: Any, base: Any, exponent: Any) -> tuple[Any, Any]:
    return exponent * np.float_power(base, exponent - 1), np.where(value == 0, 0.0, value * np.log(base))


_ENTRIES = (
    Operator(
        "add", 2, np.add, lambda v, a, b: (1.0, 1.0), py.add, "{0} + {1}", "{0} + {1}",
        SUM, (SUM, PRODUCT), None, (SUM, SUM), commutative=True, aliases=("+", "plus"), twins=(np.add, py.add),
    ),
    Operator(
        "sub", 2, np.subtract, lambda v, a, b: (1.0, -1.0), py.sub, "{0} - {1}", "{0} - {1}",
        SUM, (SUM, PRODUCT), aliases=("-", "minus", "subtract"), twins=(np.subtract, py.sub),
    ),
    Operator(
        "mul", 2, np.multiply, lambda v, a, b: (b, a), py.mul, "{0}*{1}", r"{0} \cdot {1}",
        PRODUCT, (PRODUCT, SIGN), None, (PRODUCT, PRODUCT), commutative=True, aliases=("*", "times", "multiply"),
        twins=(np.multiply, py.mul),
    ),
    Operator(
        "div", 2, np.divide, lambda v, a, b: (1.0 / b, -v / b), py.truediv, "{0}/{1}", r"\frac{{{0}}}{{{1}}}",
        PRODUCT, (PRODUCT, SIGN), None, (0, 0),
        aliases=("/", "divide", "truediv"), twins=(np.divide, py.truediv),
    ),
    Operator(
        "inv", 1, lambda x: np.divide(1.0, x), lambda v, x: (-v * v,), lambda x: 1 / x, "inv({0})",
        r"\frac{{1}}{{{0}}}", latex_precedence=PRODUCT, aliases=("reciprocal",), twins=(np.reciprocal,),
        inverse=np.reciprocal,
    ),
    Operator(
        "neg", 1, np.negative, lambda v, x: (-1.0,), py.neg, "-{0}", "-{0}", SIGN, (SIGN,),
        aliases=("negative",), twins=(np.negative, py.neg), inverse=np.negative,
    ),
    _integer_power(2, _square, ("sqr", "square", "pow2")),
    _integer_power(3, lambda x: x * x * x, ("cube", "pow3")),
    _integer_power(4, _fourth, ("pow4",)),
    _integer_power(5, lambda x: _fourth(x) * x, ("pow5",)),
    _integer_power(6, lambda x: _square(x * x * x), ("pow6",)),
    _integer_power(8, lambda x: _square(_fourth(x)), ("pow8",)),
    Operator(
        "pow", 2, np.float_power, _pow_derivative, py.pow, "{0}**{1}", "{0}^{{{1}}}",
        POWER, (ATOM, SIGN), None, (ATOM, 0), aliases=("**", "^", "power"),
        twins=(np.power, np.float_power, py.pow, math.pow),
    ),
    _unary(
        "sqrt", np.sqrt, lambda v, x: 0.5 / v, latex=r"\sqrt{{{0}}}", twins=(math.sqrt,),
        inverse=lambda y: np.where(y >= 0, y * y, np.nan),
    ),
    _unary("exp", np.exp, lambda v, x: v, twins=(math.exp,), inverse=np.log),
    _unary("log", np.log, lambda v, x: 1.0 / x, twins=(math.log,), aliases=("ln",), inverse=np.exp),
    _unary("sin", np.sin, lambda v, x: np.cos(x), twins=(math.sin,), inverse=np.arcsin),
    _unary("cos", np.cos, lambda v, x: -np.sin(x), twins=(math.cos,), inverse=np.arccos),
    _unary("tan", np.tan, lambda v, x: 1.0 + v * v, twins=(math.tan,), inverse=np.arctan),
    _unary(
        "arcsin", np.arcsin, lambda v, x: 1.0 / _unit_circle(x), "asin", twins=(math.asin,), aliases=("asin",),
        inverse=np.sin,
    ),
    _unary(
        "arccos", np.arccos, lambda v, x: -1.0 / _unit_circle(x), "acos", twins=(math.acos,), aliases=("acos",),
        inverse=np.cos,
    ),
    _unary(
        "arctan", np.arctan, lambda v, x: 1.0 / (1.0 + x * x), "atan", twins=(math.atan,), aliases=("atan",),
        inverse=np.tan,
    ),
    _unary("sinh", np.sinh, lambda v, x: np.cosh(x), twins=(math.sinh,), inverse=np.arcsinh),
    _unary("cosh", np.cosh, lambda v, x: np.sinh(x), twins=(math.cosh,), inverse=np.arccosh),
    _unary("tanh", np.tanh, lambda v, x: 1.0 / np.cosh(x) ** 2, twins=(math.tanh,), inverse=np.arctanh),
    Operator(
        "abs", 1, np.abs, lambda v, x: (np.sign(x),), "Abs", "abs({0})", r"\left|{0}\right|",
        aliases=("Abs", "fabs"), twins=(np.abs, abs, np.fabs, math.fabs),
    ),
)  # fmt: skip


#: Op-codes are for ever: compiled kernels are cached on disk with these numbers in them. New operators go to the end.
_OPCODES = (
    "add", "sub", "mul", "div", "inv", "neg", "n2", "n3", "n4", "n5", "n6", "n8", "pow", "sqrt", "exp", "log", "sin",
    "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "abs",
)  # fmt: skip


def _numbered(entry: Operator) -> Operator:
    object.__setattr__(entry, "opcode", _OPCODES.index(entry.name))
    return entry


#: Every operator of the catalogue by name.
CATALOGUE: dict[str, Operator] = {entry.name: _numbered(entry) for entry in _ENTRIES}

#: The integer powers nK by their exponent K.
INTEGER_POWERS: dict[int, Operator] = {k: CATALOGUE[f"n{k}"] for k in (2, 3, 4, 5, 6, 8)}

_ALIASES = {alias: entry for entry in _ENTRIES for alias in (entry.name, *entry.aliases)}
_TWINS = {id(twin): entry for entry in _ENTRIES for twin in (*entry.twins, entry.function)}


def get(name: str) -> Operator:
    """Return the operator called `name` or one of its aliases.

    Raises
    ------
    UnknownOperatorError
        If the catalogue has no such operator.
    """
    try:
        return _ALIASES[name]
    except (KeyError, TypeError):
        raise UnknownOperatorError(name, ", ".join(CATALOGUE)) from None


def is_operator(name: str) -> bool:
    """Whether formulas have an operator that is written so: one of the catalogue, or of a user's own."""
    return name in CATALOGUE or (name in _ALIASES and not _ALIASES[name].known)


def register(name: str, function: Callable[..., Any], arity: int) -> Operator:
    """Make a function of your own an operator that function sets may name; returns it.

    It is called with arrays where it has the same values for them as for numbers, or says that it takes them
    (``function.takes_arrays = True``), else point by point. It works everywhere, if more slowly than what the kernel
    knows. A name is for ever: it cannot be given to another function; the same function may come again, also written
    anew, as when a notebook runs a cell twice.
    """
    mine = _ALIASES.get(name)
    if mine is not None and not mine.known and mine.arity == arity and _is_same(mine.twins[0], function):
        return mine
    reserved = re.fullmatch(r"x[0-9]*|C[0-9]*|const", name) or keyword.iskeyword(name)
    if not name.isidentifier() or mine is not None or arity not in (1, 2) or reserved:
        raise ExpressionError(f"cannot register {name!r} with {arity} operand(s): expected a new name, 1 or 2 operands")
    _ALIASES[name] = foreign(name, function, arity)
    return _ALIASES[name]


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether two functions are one, or compiled from the same text."""
    if one is other:
        return True
    codes = [getattr(function, "__code__", None) for function in (one, other)]
    if None in codes or any(getattr(function, "__closure__", None) for function in (one, other)):
        return False
    parts = [(c.co_code, c.co_consts, c.co_names, c.co_varnames, c.co_argcount) for c in codes if c is not None]
    return parts[0] == parts[1] and getattr(one, "__defaults__", None) == getattr(other, "__defaults__", None)


def scalar_function(function: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """Make an array function of a user's `function` of numbers, called with Python floats; NaN out of its domain."""

    def call(*arguments: float) -> float:
        numbers = [float(a) for a in arguments]
        try:
            result = function(*numbers)
        except TypeError:
            if not all(number in (0.0, 1.0) for number in numbers):
                raise
            result = function(*map(bool, numbers))  # a logical operator, such as and_
        except (ArithmeticError, ValueError):
            return math.nan  # out of the function's domain
        return math.nan if isinstance(result, complex | np.complexfloating) else float(result)

    return lambda *arguments: np.asarray(np.frompyfunc(call, arity, 1)(*arguments), dtype=float)


def _on_arrays(function: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """Return `function` for arrays: itself, where it has the same values for them as for numbers, else point by point.

    A protected division may catch an exception that arrays never raise. ``function.takes_arrays`` says what it is for
    where that cannot be seen.
    """
    from deap_vsr.tree.recognise import takes_arrays

    told = getattr(function, "takes_arrays", None)
    if isinstance(function, np.ufunc) or (takes_arrays(function, arity) if told is None else told):
        return lambda *arguments: np.asarray(function(*arguments), dtype=float)
    return scalar_function(function, arity)


def foreign(name: str, function: Callable[..., Any], arity: int) -> Operator:
    """Return an operator for a user's own `function`, which the catalogue does not know."""
    places = ", ".join(f"{{{i}}}" for i in range(arity))

    def symbolic(*arguments: Any) -> Any:
        import sympy

        return sympy.Function(name)(*arguments)

    latex = rf"\operatorname{{{{{name}}}}}\left({places}\right)"
    evaluate = _on_arrays(function, arity)
    operands = (0,) * arity
    return Operator(
        name, arity, evaluate, None, symbolic, f"{name}({places})", latex, operands=operands, twins=(function,)
    )


def from_function(name: str, function: Callable[..., Any], arity: int) -> Operator:
    """Return what `function` is in the catalogue, a guarded operator, or else a foreign one.

    Functions are recognised by identity and by what they do, never by `name`: a user's protected ``div`` is not ours.
    """
    if isinstance(function, Operator):
        return function
    entry = _TWINS.get(id(function))
    if entry is not None and entry.arity == arity:
        return entry
    from deap_vsr.tree.recognise import recognised

    return recognised(name, function, arity) or foreign(name, function, arity)


#: Sets of operators by name.
NAMED_SETS: dict[str, tuple[str, ...]] = {
    "science": (
        "add", "sub", "mul", "div", "n2", "n3", "sqrt", "pow", "exp", "log", "sin", "cos", "tan", "arcsin", "arccos",
        "arctan", "sinh", "cosh", "tanh", "abs", "const",
    ),
}  # fmt: skip


def named_set(name: str) -> tuple[str, ...]:
    """Return the set of operators of this name.

    Raises
    ------
    UnknownOperatorError
        If there is none; a single operator is no set.
    """
    try:
        return NAMED_SETS[name]
    except (KeyError, TypeError):
        known = "sets " + ", ".join(NAMED_SETS)
        raise UnknownOperatorError(name, f"{known}; a single operator goes in a list") from None


def normalise_function_set(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return catalogue names for `names`: aliases and sets by name resolved, each once, ``const`` kept.

    A text is the name of a set: "science".
    """
    if isinstance(names, str):
        return named_set(names)
    resolved: list[str] = []
    for name in names:
        if isinstance(name, str) and name in NAMED_SETS:
            resolved += NAMED_SETS[name]
        else:
            resolved.append(name if name == "const" else get(name).name)
    return tuple(dict.fromkeys(resolved))
