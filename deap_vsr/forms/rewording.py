"""The same form in other words: C*(C + u)**C is C*(1 + C*u)**C, (C*u)**2 is C*u**2, and exp(C*u) is C**u.

On a table one is as good as the other, and the slots are not: of a/(1 + b*x*z)**(1/b) the first has (b*z)**(-1/b)
before the bracket, the second has a, b*z and -1/b. Where the slots of one have no form, those of the other may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deap_vsr.forms.inner import FACTOR_COMES_OUT
from deap_vsr.tree import Constant, MaskedTree, Node, is_open, node_from_name
from deap_vsr.tree.operators import Array
from deap_vsr.tree.tidy import operands_of

Nodes = tuple[Node, ...]

#: Functions from which a factor comes out, with the power of it that does.
POWERS = {"n2": 2, "n3": 3, "n4": 4, "n5": 5, "n6": 6, "n8": 8, "inv": -1}


def reworded(tree: MaskedTree, constants: Array, allowed: frozenset[str]) -> Iterator[tuple[MaskedTree, Array, bool]]:
    """Yield the form in other words, with starts for its constants (n_settings, L), and whether these come first.

    Which of them fit is to be seen: C*(C + u)**C can be said in other words, and (C + u)**C cannot. The power of a pure
    number comes first, as where the exponent is a slot a law has no other; and a factor before a power, whose sign the
    data cannot tell within it.

    Parameters
    ----------
    constants : (n_settings, L), what was fitted
    allowed : operators that a form may have
    """
    for position in range(len(tree)):
        written = []
        for row in constants:
            nodes = tree.with_constants(row)
            part = nodes.searchSubtree(position)
            other = _other_words(tuple(nodes[part]), allowed)
            if other is not None:
                written.append((*nodes[: part.start], *other, *nodes[part.stop :]))
        if len(written) == len(constants):
            starts = [[n.value for n in nodes if isinstance(n, Constant) and n.fitted] for nodes in written]
            yield (
                MaskedTree(written[0]),
                np.array(starts, dtype=float),
                tree[position].name not in ("sqrt", "log", "exp"),
            )


def _other_words(nodes: Nodes, allowed: frozenset[str]) -> Nodes | None:
    """Return a function of a sum, or an exponential, in other words; None if it has none."""
    name = nodes[0].name if nodes[0].arity else ""
    if name in POWERS and "mul" in allowed:
        (argument,) = operands_of(nodes)
        if argument[0].name == "mul" and is_open(argument[1]):
            factor = Constant(float(argument[1].value) ** POWERS[name])
            return (node_from_name("mul"), factor, nodes[0], *argument[2:])
    if (name == "pow" or name in FACTOR_COMES_OUT - {"inv", "abs"}) and "mul" in allowed:
        argument, *rest = operands_of(nodes)
        inner = _from_one(argument)
        if inner is not None and all(len(other) == 1 and is_open(other[0]) for other in rest):
            return (nodes[0], *inner, *(node for other in rest for node in other))
    if name == "exp" and "pow" in allowed and "log" not in allowed:
        (argument,) = operands_of(nodes)
        if argument[0].name in ("mul", "div") and is_open(argument[1]) and abs(argument[1].value) < 600.0:
            base, above = Constant(float(np.exp(argument[1].value))), Constant(1.0, fitted=False)
            exponent = argument[2:] if argument[0].name == "mul" else (argument[0], above, *argument[2:])
            return (node_from_name("pow"), base, *exponent)
    return None


def _from_one(nodes: Sequence[Node]) -> Nodes | None:
    """Return C + u, or C - u, as 1 + C*u, but for a factor; None if it is no such sum, or u has a factor."""
    if nodes[0].name not in ("add", "sub"):
        return None
    first, second = operands_of(nodes)
    sign = 1.0 if nodes[0].name == "add" else -1.0
    if len(second) == 1 and is_open(second[0]) and nodes[0].name == "add":
        first, second = second, first
    if len(first) != 1 or not is_open(first[0]) or first[0].value == 0.0 or any(map(is_open, second[:2])):
        return None
    one, factor = Constant(1.0, fitted=False), Constant(sign / float(first[0].value))
    return (node_from_name("add"), one, node_from_name("mul"), factor, *second)
