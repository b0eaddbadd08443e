"""Trees as op-code arrays, and evaluation of whole lists of trees."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from deap import gp

from deap_vsr.engine import kernels
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import Constant, MaskedTree, Node, Vocabulary, is_open
from deap_vsr.tree.operators import Array, Indices
from deap_vsr.tree.walk import operand_positions

#: Code of a primitive that the catalogue, and so the kernel, does not know.
FOREIGN = -1


@dataclass(frozen=True)
class Batch:
    """Trees one behind the other: tree t at offsets[t] .. offsets[t + 1] of codes, and so on."""

    codes: Indices
    offsets: Indices
    literals: Array
    literal_offsets: Indices
    constants: Array
    constant_offsets: Indices
    foreign: tuple[int, ...] = ()


class Encoder:
    """Turns trees over one vocabulary into op-codes."""

    def __init__(self, pset: gp.PrimitiveSetTyped | None = None) -> None:
        self.vocabulary = Vocabulary(pset)
        self._codes: dict[int, int] = {}
        self._nodes: list[Node] = []  # keeps the nodes alive whose id is a key
        self.signature = _signature(pset)

    def encode(self, trees: Sequence[Sequence[Node]]) -> Batch:
        """Return the op-codes of `trees`; those with foreign primitives are listed, and empty."""
        codes: list[int] = []
        literals: list[float] = []
        constants: list[float] = []
        offsets, literal_offsets, constant_offsets = [0], [0], [0]
        foreign: list[int] = []
        known = self._codes.get
        for t, tree in enumerate(trees):
            begin = len(codes)
            for node in tree:
                code = known(id(node))
                if code is None:
                    if type(node) is Constant:
                        code = kernels.OPEN if node.fitted else kernels.LITERAL
                        (constants if node.fitted else literals).append(node.value)
                    else:
                        code = self._code(node, literals, constants)
                codes.append(code)
            if FOREIGN in codes[begin:]:
                foreign.append(t)
                del codes[begin:], literals[literal_offsets[-1] :], constants[constant_offsets[-1] :]
                codes.append(kernels.LITERAL)  # a place holder
                literals.append(np.nan)
            offsets.append(len(codes))
            literal_offsets.append(len(literals))
            constant_offsets.append(len(constants))
        batch = Batch(
            np.array(codes, np.int32),
            np.array(offsets, np.int64),
            np.array(literals, float),
            np.array(literal_offsets, np.int64),
            np.array(constants, float),
            np.array(constant_offsets, np.int64),
            tuple(foreign),
        )
        bad = kernels.first_incomplete(batch.codes, batch.offsets)
        if bad >= 0:
            MaskedTree(trees[bad]).checked()
        return batch

    def _code(self, node: Node, literals: list[float], constants: list[float]) -> int:
        if node.arity:
            operator = self.vocabulary.operator(node)
            return self._remember(node, operator.opcode if operator.known else FOREIGN)
        column = self.vocabulary.column(node)
        if column is not None:
            return self._remember(node, kernels.VARIABLE + column)
        if is_open(node):
            constants.append(float(node.value))
            return kernels.OPEN
        literals.append(self.vocabulary.number(node))
        return kernels.LITERAL

    def _remember(self, node: Node, code: int) -> int:
        """Primitives and variables are shared between trees: look each up by name only once."""
        if len(self._nodes) < 10_000:
            self._codes[id(node)] = code
            self._nodes.append(node)
        return code


def _signature(pset: gp.PrimitiveSetTyped | None) -> tuple[Any, ...]:
    return () if pset is None else (*pset.arguments, *pset.context, *map(id, pset.context.values()))


#: The encoders of the primitive sets used last; few, as each keeps its set alive.
_ENCODERS: OrderedDict[int, Encoder] = OrderedDict()
_MAX_ENCODERS = 16
_STANDARD = Encoder()


def encoder(pset: gp.PrimitiveSetTyped | None) -> Encoder:
    """Return the encoder of `pset` (made anew if the set was changed since)."""
    if pset is None:
        return _STANDARD
    found = _ENCODERS.get(id(pset))
    if found is None or found.vocabulary.pset is not pset or found.signature != _signature(pset):
        found = _ENCODERS[id(pset)] = Encoder(pset)
        while len(_ENCODERS) > _MAX_ENCODERS:
            _ENCODERS.popitem(last=False)
    return found


def columns_used(batch: Batch) -> int:
    """Return how many columns of X the trees need."""
    return int(np.max(batch.codes, initial=0)) - kernels.VARIABLE + 1


def as_columns(X: Any, needed: int) -> Array:
    """Return X of shape (n_points, n_vars) as contiguous columns (n_vars, n_points)."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2:
        raise ExpressionError(f"X has shape {X.shape}, expected (n_points, n_vars)")
    if needed > X.shape[1]:
        raise ExpressionError(f"a tree uses variable {needed}, X has only {X.shape[1]} columns")
    return np.ascontiguousarray(X.T)


def evaluate(trees: Sequence[Sequence[Node]], X: Array, pset: gp.PrimitiveSetTyped | None = None) -> Array:
    """Evaluate a list of trees over the same points.

    Parameters
    ----------
    trees : masked or plain DEAP trees
    X : array of shape (n_points, n_vars)
    pset : the trees' primitive set; by default the catalogue and x1, x2, ...

    Returns
    -------
    array of shape (n_trees, n_points); inf and NaN where a formula is out of its domain
    """
    batch = encoder(pset).encode(trees)
    columns = as_columns(X, columns_used(batch))
    out = np.empty((len(trees), columns.shape[1]))
    kernels.evaluate_many(
        batch.codes,
        batch.offsets,
        batch.literals,
        batch.literal_offsets,
        batch.constants,
        batch.constant_offsets,
        columns,
        out,
    )
    for t in batch.foreign:
        out[t] = MaskedTree(trees[t]).evaluate(X, pset)
    return out


#: Values and derivatives of a model at given constants: c -> (f (n_points,), J (n_constants, n_points)).
Model = Callable[[Array], tuple[Array, Array]]


def numpy_model(tree: Sequence[Node], X: Array, vocabulary: Vocabulary) -> Model:
    """Return values and derivatives of a tree through numpy, foreign primitives included.

    Slower than the kernel, same answers: known operators have exact derivatives, a user's own
    functions central differences.
    """
    X = np.asarray(X, dtype=float)
    nodes = list(MaskedTree(tree).checked())
    children = operand_positions(nodes)

    def model(constants: Array) -> tuple[Array, Array]:
        values: list[Any] = [None] * len(nodes)
        remaining = list(constants)
        for i in range(len(nodes) - 1, -1, -1):
            node = nodes[i]
            if node.arity:
                values[i] = vocabulary.operator(node).function(*(values[c] for c in children[i]))
            elif is_open(node):
                values[i] = np.full(len(X), remaining.pop())
            else:
                column = vocabulary.column(node)
                values[i] = np.full(len(X), vocabulary.number(node)) if column is None else X[:, column]
        adjoints: list[Any] = [np.ones(len(X))] + [None] * (len(nodes) - 1)
        rows = []
        for i, node in enumerate(nodes):
            if node.arity:
                arguments = [values[c] for c in children[i]]
                partials = _partials(vocabulary.operator(node), values[i], arguments)
                for c, partial in zip(children[i], partials, strict=True):
                    adjoints[c] = adjoints[i] * partial
            elif is_open(node):
                rows.append(adjoints[i])
        J = np.array(rows, dtype=float).reshape(len(rows), len(X))
        return np.asarray(values[0], dtype=float), J

    def quiet(constants: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            return model(constants)

    return quiet


def _partials(operator: Any, value: Any, arguments: Sequence[Any]) -> Sequence[Any]:
    if operator.derivative is not None:
        exact: Sequence[Any] = operator.derivative(value, *arguments)
        return exact
    partials = []
    for k, argument in enumerate(arguments):
        step = 6e-6 * np.where(argument == 0, 1.0, np.abs(argument))
        above, below = ([*arguments[:k], argument + sign * step, *arguments[k + 1 :]] for sign in (1, -1))
        partials.append((operator.function(*above) - operator.function(*below)) / (2 * step))
    return partials
