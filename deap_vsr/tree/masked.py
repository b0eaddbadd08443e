"""Masked trees: DEAP trees whose nodes know whether search may change them.

Nodes are immutable and carry the flag themselves. So any list operation, stock DEAP operator,
copy or pickle keeps mask and tree in step by construction; there is no second list to lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from deap import gp

from deap_vsr.errors import ExpressionError, short
from deap_vsr.tree import operators
from deap_vsr.tree.operators import Array, Operator
from deap_vsr.tree.walk import bottom_up

if TYPE_CHECKING:
    import networkx
    import sympy

Node = gp.Primitive | gp.Terminal
Token = tuple[str, str]

_VARIABLE = re.compile(r"x([1-9][0-9]{0,8})\Z")
_KIND = {1: "unary", 2: "binary"}


# Sub-classes without __slots__ on purpose: DEAP's __eq__ compares what self.__slots__ names.
class FrozenPrimitive(gp.Primitive):
    """An operator node that search may not change."""


class FrozenTerminal(gp.Terminal):
    """A variable (or a user's terminal) that search may not change."""


class Constant(gp.Terminal):
    """A constant: its value, whether it is fitted (open) or literal, and mutable or not.

    A *slot* (summary constant) is fitted and mutable. A stand-alone constant is frozen at its
    value: neither. Fitting replaces constants and never edits them, as copies share nodes.
    """

    def __init__(self, value: float, fitted: bool = True, mutable: bool = True, ret: type = object) -> None:
        super().__init__(float(value), False, ret)
        self.fitted = fitted
        self.mutable = mutable

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return (self.value, self.fitted, self.mutable, self.ret) == (
            other.value,
            other.fitted,
            other.mutable,
            other.ret,
        )

    def __hash__(self) -> int:
        return hash((self.value, self.fitted, self.mutable))

    def __repr__(self) -> str:
        return f"Constant({self.value!r}, fitted={self.fitted}, mutable={self.mutable})"


def is_mutable(node: Node) -> bool:
    """Whether search may change `node`."""
    kind = type(node)  # asked for every node of every child: types are compared, which is faster than isinstance
    if kind is Constant:
        return bool(node.mutable)  # type: ignore[union-attr]
    return kind is not FrozenPrimitive and kind is not FrozenTerminal


def is_ephemeral(node: Node) -> bool:
    """Whether `node` is one of DEAP's ephemeral constants."""
    return isinstance(type(node), gp.MetaEphemeral)


def is_variable(node: Node) -> bool:
    """Whether `node` is a leaf with a name: a variable, or a terminal that a user's primitive set has named."""
    return not node.arity and isinstance(node.value, str)


def is_number(node: Node) -> bool:
    """Whether `node` is a leaf with a value: a constant, literal or fitted."""
    return not node.arity and not isinstance(node.value, str)


def is_open(node: Node) -> bool:
    """Whether `node` is a constant whose value is fitted; a user's ephemeral constants are."""
    kind = type(node)
    return bool(node.fitted) if kind is Constant else isinstance(kind, gp.MetaEphemeral)  # type: ignore[union-attr]


def with_flag(node: Node, mutable: bool) -> Node:
    """Return `node`, or a node like it, with the mutability flag set to `mutable`."""
    if is_mutable(node) == mutable:
        return node
    if isinstance(node, Constant):
        return Constant(node.value, node.fitted, mutable, node.ret)
    if is_ephemeral(node):
        return Constant(node.value, True, mutable, node.ret)
    if isinstance(node, gp.Primitive):
        return (gp.Primitive if mutable else FrozenPrimitive)(node.name, node.args, node.ret)
    copy = (gp.Terminal if mutable else FrozenTerminal)(node.value, node.conv_fct is str, node.ret)
    copy.name = node.name
    return copy


@cache
def _primitive(name: str) -> gp.Primitive:
    return gp.Primitive(name, [object] * operators.get(name).arity, object)


@lru_cache(maxsize=4096)
def variable(index: int) -> gp.Terminal:
    """Return the node of variable ``x{index}``, counted from 1."""
    return gp.Terminal(f"x{index}", True, object)


class Vocabulary:
    """What the nodes of a tree mean: with a DEAP primitive set, what they mean in that set.

    Without one, operators are those of the catalogue and variables are called x1, x2, ...
    """

    def __init__(self, pset: gp.PrimitiveSetTyped | None = None) -> None:
        self.pset = pset
        self._columns = {name: i for i, name in enumerate(pset.arguments)} if pset else {}
        self._operators: dict[str, Operator] = {}

    def operator(self, node: Node) -> Operator:
        """Return the operator of an inner node."""
        entry = self._operators.get(node.name)
        if entry is None or entry.arity != node.arity:
            if self.pset is None:
                entry = operators.get(node.name)
            elif node.name in self.pset.context:
                entry = operators.from_function(node.name, self.pset.context[node.name], node.arity)
            else:
                raise ExpressionError(f"primitive {node.name!r} is not in the primitive set {self.pset.name!r}")
            if entry.arity != node.arity:
                raise ExpressionError(f"operator {node.name!r} takes {entry.arity} operands, its node has {node.arity}")
            self._operators[node.name] = entry
        return entry

    def column(self, node: Node) -> int | None:
        """Return the column of X that a leaf stands for; None if it is a number."""
        if not isinstance(node.value, str):
            return None
        if self.pset is not None:
            return self._columns.get(node.value)
        match = _VARIABLE.match(node.value)
        if match is None:
            raise ExpressionError(f"unknown variable {short(node.value)!r}; variables are called x1, x2, ...")
        return int(match[1]) - 1

    def number(self, node: Node) -> float:
        """Return the value of a leaf that is no variable."""
        value = node.value
        if isinstance(value, str) and self.pset is not None:
            value = self.pset.context.get(value, value)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ExpressionError(f"terminal {node.value!r} is neither a variable nor a number") from None


_STANDARD = Vocabulary()


class MaskedTree(gp.PrimitiveTree):
    """A ``gp.PrimitiveTree`` with one mutability flag per node, and constants.

    It is a plain list of nodes in prefix order and works wherever DEAP expects a tree. Nodes
    are never edited in place; what changes a tree replaces nodes.
    """

    @property
    def mask(self) -> list[int]:
        """One flag per node: 1 if search may change it, 0 if not."""
        return [int(is_mutable(node)) for node in self]

    def with_mask(self, flags: Iterable[int | bool]) -> MaskedTree:
        """Return the tree with the mask `flags`, one per node."""
        flags = list(flags)
        if len(flags) != len(self):
            raise ExpressionError(f"a mask for {len(self)} nodes has {len(flags)} flags")
        return type(self)(with_flag(node, bool(flag)) for node, flag in zip(self, flags, strict=True))

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self)

    @property
    def depth(self) -> int:
        """Depth of the deepest node, the root's being 0 (DEAP's ``height``)."""
        return self.height

    @property
    def open_constants(self) -> list[int]:
        """Positions of the constants whose values are fitted, in prefix order."""
        return [i for i, node in enumerate(self) if is_open(node)]

    @property
    def n_constants(self) -> int:
        """Number of open constants."""
        return sum(map(is_open, self))

    @property
    def slots(self) -> list[int]:
        """Positions of the summary constants, where later rounds may grow the formula."""
        return [i for i in self.open_constants if is_mutable(self[i])]

    @property
    def constants(self) -> list[float]:
        """Values of the open constants, in prefix order."""
        return [float(self[i].value) for i in self.open_constants]

    def with_constants(self, values: Sequence[float] | Array) -> MaskedTree:
        """Return the tree with the open constants at `values`; flags stay as they are."""
        positions = self.open_constants
        if len(values) != len(positions):
            raise ExpressionError(f"{len(values)} values for {len(positions)} open constants")
        copy = type(self)(self)
        for position, value in zip(positions, values, strict=True):
            node = self[position]
            list.__setitem__(copy, position, Constant(float(value), True, is_mutable(node), node.ret))
        return copy

    def evaluate(self, X: Array, pset: gp.PrimitiveSetTyped | None = None) -> Array:
        """Evaluate with numpy.

        Parameters
        ----------
        X : array of shape (n_points, n_vars)
        pset : primitive set, optional
            What the nodes mean; by default the catalogue and x1, x2, ...

        Returns
        -------
        array of shape (n_points,)
            inf and NaN where the formula is out of its domain.
        """
        X = np.asarray(X, dtype=float)
        if X.ndim != 2:
            raise ExpressionError(f"X has shape {X.shape}, expected (n_points, n_vars)")
        meaning = _STANDARD if pset is None else Vocabulary(pset)

        def value(position: int, node: Node, operands: list[Any]) -> Any:
            if node.arity:
                return meaning.operator(node).function(*operands)
            column = meaning.column(node)
            if column is None:
                return np.float64(meaning.number(node))
            if column >= X.shape[1]:
                raise ExpressionError(f"the tree uses x{column + 1}, X has only {X.shape[1]} columns")
            return X[:, column]

        with np.errstate(all="ignore"):
            values = bottom_up(self.checked(), value)
        return np.array(np.broadcast_to(values, len(X)), dtype=float)

    def checked(self) -> MaskedTree:
        """Return the tree itself if it is one complete expression, else raise ExpressionError."""
        missing = 1
        for position, node in enumerate(self):
            if missing == 0:
                raise ExpressionError(f"extra token {node.name!r} at position {position} behind a complete expression")
            missing += node.arity - 1
        if missing:
            raise ExpressionError(f"incomplete expression: {missing} more operand(s) expected after {len(self)} tokens")
        return self

    @classmethod
    def from_tokens(cls, tokens: Iterable[Sequence[str]]) -> MaskedTree:
        """Build from prefix tokens ``(text, kind)``, kind being unary, binary, const or var.

        Constants become literals; the text ``C`` makes an open constant (starting at 1).
        """
        return cls(_node_from_token(*token) for token in tokens).checked()

    def to_tokens(self) -> list[Token]:
        """Return the prefix tokens of the equation file."""
        return [_token(node) for node in self]

    @classmethod
    def from_infix(cls, text: str) -> MaskedTree:
        """Read a formula such as ``2.5*x1**2 + sin(x2)``; see :func:`deap_vsr.tree.notation.parse`."""
        from deap_vsr.tree.notation import parse

        return cls(parse(text))

    def to_infix(self, pset: gp.PrimitiveSetTyped | None = None, skeleton: bool = False) -> str:
        """Return the formula as Python-like text; reading it back gives the same tokens.

        With `skeleton` open constants are printed as C, and read back as open ones.
        """
        from deap_vsr.tree.notation import infix

        return infix(self, pset, skeleton)

    def to_latex(self, pset: gp.PrimitiveSetTyped | None = None) -> str:
        """Return the formula in LaTeX."""
        from deap_vsr.tree.notation import latex

        return latex(self, pset)

    @classmethod
    def from_sympy(cls, expression: sympy.Expr) -> MaskedTree:
        """Build from a sympy expression in symbols x1, x2, ..."""
        from deap_vsr.tree.notation import from_sympy

        return cls(from_sympy(expression))

    def to_sympy(self, pset: gp.PrimitiveSetTyped | None = None) -> sympy.Expr:
        """Return the formula as a sympy expression in real symbols x1, x2, ..."""
        from deap_vsr.tree.notation import to_sympy

        return to_sympy(self, pset)

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph[int]) -> MaskedTree:
        """Build from a graph made by :meth:`to_networkx`; its mask comes along."""
        from deap_vsr.tree.notation import from_networkx

        return cls(from_networkx(graph)).checked()

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return the tree as a directed graph from the root to the leaves."""
        from deap_vsr.tree.notation import to_networkx

        return to_networkx(self)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as `value`; whole numbers without ``.0``."""
    whole = float(value).is_integer() and abs(value) < 1e16 and (value != 0 or np.copysign(1, value) > 0)
    return str(int(value)) if whole else repr(float(value))


def node_from_name(name: str) -> gp.Primitive:
    """Return the (shared) node of the catalogue operator called `name` or an alias of it."""
    return _primitive(operators.get(name).name)


def _node_from_token(text: str, kind: str) -> Node:
    if kind == "var":
        match = _VARIABLE.match(text)
        if match is None:
            raise ExpressionError(f"unknown variable {short(text)!r}; variables are called x1, x2, ...")
        return variable(int(match[1]))
    if kind == "const":
        if text == "C":
            return Constant(1.0)
        try:
            return Constant(float(text), fitted=False)
        except ValueError:
            raise ExpressionError(f"constant {short(text)!r} is not a number") from None
    if kind not in ("unary", "binary"):
        raise ExpressionError(f"unknown kind {kind!r} of token {text!r}; kinds are unary, binary, const, var")
    entry = operators.get(text)
    if _KIND[entry.arity] != kind:
        raise ExpressionError(f"operator {text!r} is {_KIND[entry.arity]}, its token says {kind}")
    return _primitive(entry.name)


def _token(node: Node) -> Token:
    if node.arity:
        return node.name, _KIND.get(node.arity, f"{node.arity}-ary")
    return (node.value, "var") if is_variable(node) else (format_number(node.value), "const")


def random_constant() -> float:
    """Return a start value for an ephemeral constant, from the standard ``random`` module."""
    import random

    return random.uniform(-1.0, 1.0)


def primitive_set(
    function_set: Iterable[str], n_vars: int, name: str = "vsr", typed: bool = False
) -> gp.PrimitiveSetTyped:
    """Build a DEAP primitive set of catalogue operators.

    Parameters
    ----------
    function_set : names such as ``["add", "mul", "sin", "const"]``
        ``const`` adds an ephemeral constant, which fitting treats as an open constant.
    n_vars : int
        Its arguments are called x1 .. x{n_vars}.
    typed : bool
        Whether to build a ``PrimitiveSetTyped`` in which everything is a float.
    """
    kind: type = float if typed else object
    pset = gp.PrimitiveSetTyped(name, [kind] * n_vars, kind) if typed else gp.PrimitiveSet(name, n_vars)
    pset.renameArguments(**{f"ARG{i}": f"x{i + 1}" for i in range(n_vars)})
    for argument in pset.arguments:
        pset.mapping[argument].name = argument  # DEAP renames the value only
    for entry in operators.normalise_function_set(function_set):
        if entry == "const":
            gp.PrimitiveSetTyped.addEphemeralConstant(pset, "vsr_const", random_constant, kind)
        else:
            operator = operators.get(entry)
            gp.PrimitiveSetTyped.addPrimitive(pset, operator, [kind] * operator.arity, kind, operator.name)
    return pset
