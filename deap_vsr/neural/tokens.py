"""Tokens: what a policy writes formulas with, and the form whose slots it writes into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from deap_vsr.gp.variation import open_positions
from deap_vsr.tree import Constant, MaskedTree, Node, is_number, is_open, node_from_name, variable
from deap_vsr.tree.operators import Flags, Indices, get

#: A node of each pair undoes the other one, and is not put directly below it.
INVERSES = (
    ("exp", "log"), ("n2", "sqrt"), ("neg", "neg"), ("inv", "inv"), ("sin", "arcsin"), ("cos", "arccos"),
    ("tan", "arctan"),
)  # fmt: skip
TRIGONOMETRIC = ("sin", "cos", "tan")

#: A frozen number, whatever its value; it is never sampled.
NUMBER = "number"
CONST = "const"


@dataclass(frozen=True, eq=False)
class Library:
    """The L tokens of a task: variables, operators, the open constant, and what only a frozen form has.

    Attributes
    ----------
    names : of the tokens
    nodes : for each token the nodes that it stands for, in prefix order
    arities : (L,) operands that are still to come behind these nodes
    offered : (L,) whether it may be sampled
    variables, constants, trigonometric : (L,) whether it has a variable, is a number, is a trigonometric function
    inverses : (L,) the token that undoes it, or L
    """

    names: tuple[str, ...]
    nodes: tuple[tuple[Node, ...], ...]
    arities: Indices
    offered: Flags
    variables: Flags
    constants: Flags
    trigonometric: Flags
    inverses: Indices

    @classmethod
    def of(
        cls, function_set: Iterable[str], columns: Iterable[int], form: Sequence[Node] = (), coefficients: bool = False
    ) -> Library:
        """Return the tokens of a task.

        Parameters
        ----------
        function_set : names of the operators that may be sampled, ``const`` among them
        columns : variables that may be sampled, from 0
        form : the formula that is grown; what it has beside is known, and not sampled
        coefficients : whether C*x and C*f(x), for the unary operators f, are leaves as well
        """
        function_set, columns = tuple(function_set), tuple(columns)
        operators = [name for name in function_set if name != CONST]
        found: dict[str, tuple[Node, ...]] = {f"x{column + 1}": (variable(column + 1),) for column in columns}
        if coefficients and CONST in function_set and "mul" in function_set:
            scale = node_from_name("mul"), Constant(1.0)
            for column in columns:
                leaf = variable(column + 1)
                found[f"C*x{column + 1}"] = (*scale, leaf)
                for name in operators:
                    if get(name).arity == 1:
                        found[f"C*{name}(x{column + 1})"] = (*scale, node_from_name(name), leaf)
        found |= {name: (node_from_name(name),) for name in operators}
        if CONST in function_set:
            found[CONST] = (Constant(1.0),)
        n_offered = len(found)
        for node in form:
            found.setdefault(_name(node), (node,))
        return cls._made(found, n_offered)

    @classmethod
    def _made(cls, found: dict[str, tuple[Node, ...]], n_offered: int) -> Library:
        names = tuple(found)
        inverse = dict(chain(INVERSES, (pair[::-1] for pair in INVERSES)))
        place = {name: i for i, name in enumerate(names)}
        numbers = [name in (CONST, NUMBER) for name in names]
        arities = [1 + sum(node.arity - 1 for node in nodes) for nodes in found.values()]
        return cls(
            names,
            tuple(found.values()),
            np.array(arities),
            np.arange(len(names)) < n_offered,
            np.array([not arity and not number for arity, number in zip(arities, numbers, strict=True)]),
            np.array(numbers),
            np.array([name in TRIGONOMETRIC for name in names]),
            np.array([place.get(inverse.get(name, ""), len(names)) for name in names]),
        )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def n_variables(self) -> int:
        """How many variables may be sampled."""
        alone = np.array([len(nodes) == 1 for nodes in self.nodes])
        return int((self.variables & self.offered & alone).sum())

    @property
    def empty(self) -> int:
        """What stands for no parent, or no sibling."""
        return len(self.names)

    def knows(self, tree: Sequence[Node]) -> bool:
        """Whether all nodes of a tree have a token."""
        return all(_name(node) in self.names for node in tree)

    def tokens(self, tree: Sequence[Node]) -> list[int]:
        """Return the tokens of a tree, one a node; ValueError for a node that the library does not know."""
        return [self.names.index(_name(node)) for node in tree]


def _name(node: Node) -> str:
    if is_open(node):
        return CONST
    return NUMBER if is_number(node) else node.name if node.arity else str(node.value)


@dataclass(frozen=True, eq=False)
class Form:
    """What is written around: frozen nodes in prefix order, None for each slot.

    A slot is where nothing is frozen: a summary constant, or a whole sub-tree that may change. Without anything frozen
    the form is one slot, and formulas are written from nothing.
    """

    nodes: tuple[Node | None, ...] = (None,)

    @classmethod
    def of(cls, tree: MaskedTree | None) -> Form:
        """Return the form of a masked tree; a tree that is all mutable, or has no slot, is none."""
        if tree is None or all(tree.mask):
            return cls()
        opened = set(open_positions(tree))
        nodes: list[Node | None] = []
        position = 0
        while position < len(tree):
            nodes.append(None if position in opened else tree[position])
            position = tree.searchSubtree(position).stop if position in opened else position + 1
        return cls(tuple(nodes)) if None in nodes else cls()

    @property
    def fresh(self) -> bool:
        """Whether formulas are written from nothing."""
        return len(self.nodes) == 1

    @property
    def frozen(self) -> list[Node]:
        """Its nodes, without the slots."""
        return [node for node in self.nodes if node is not None]

    def tree(self, tokens: Iterable[int], library: Library) -> MaskedTree:
        """Return the formula that a sequence of tokens, those of the form among them, stands for."""
        nodes: list[Node] = []
        items = iter(self.nodes)
        missing = 0  # operands of the slot that is being written
        for token in tokens:
            frozen = next(items) if not missing else None
            if frozen is not None:
                nodes.append(frozen)
                continue
            missing += library.arities[token] - (missing > 0)
            nodes.extend(library.nodes[token])
        return MaskedTree(nodes)
