"""Other notations of a tree: infix text, LaTeX, sympy, networkx graphs.

Infix text is read by our own walk over Python's ``ast`` with a white list; nothing is ever
evaluated. All walks but sympy's are iterative, so depth alone cannot crash them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deap import gp

from deap_vsr.errors import ExpressionError, short
from deap_vsr.tree import (
    Constant,
    MaskedTree,
    Node,
    Vocabulary,
    format_number,
    is_mutable,
    is_number,
    is_open,
    is_variable,
    node_from_name,
    operators,
    variable,
    with_flag,
)
from deap_vsr.tree.names import Names, latex_name
from deap_vsr.tree.operators import ATOM, INTEGER_POWERS, PRODUCT, SIGN, Operator
from deap_vsr.tree.walk import bottom_up, operand_positions

if TYPE_CHECKING:
    import networkx
    import sympy

#: Longest infix text that is read; Python's parser is never shown more.
MAX_TEXT = 200_000
#: Deepest tree that is handed to sympy, whose own walks are recursive.
MAX_SYMPY_DEPTH = 150

_PLAIN = Names()
_NAMED_NUMBERS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
}


# --- reading infix text -------------------------------------------------------------------


def parse(text: str, names: Mapping[str, Node] | None = None) -> MaskedTree:
    """Read infix text such as ``2.5*x1**2 + sin(x2)`` into a tree.

    Numbers become literals (a sign directly before a number belongs to it), ``C`` an open
    constant, ``x1, x2, ...`` variables; ``**2 3 4 5 6 8`` become n2 .. n8, any other ``**`` pow.
    `names` are further leaves that the text may name.

    Raises
    ------
    ExpressionError
        For anything else, and for text too long or too deep for Python's parser.
    """
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"formula of {len(text)} characters is too long, at most {MAX_TEXT} are read")
    foreign = re.search(r"[^A-Za-z0-9_\s.+\-*/(),]", text)
    if foreign:
        column = foreign.start() + 1
        raise ExpressionError(f"{foreign[0]!r} at column {column} does not belong in a formula").at(column)
    if re.search(r"[-+~]{200}|\*\*(?:[-+~\s]*\w+\s*\*\*){200}", text):
        raise ExpressionError("formula is nested too deeply for the parser")
    try:
        root = ast.parse(text.strip(), mode="eval").body
    except (RecursionError, MemoryError):
        raise ExpressionError("formula is nested too deeply for the parser") from None
    except (SyntaxError, ValueError) as error:
        if "nested" in str(error):
            raise ExpressionError("formula is nested too deeply for the parser") from None
        at = f" at column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        column = (isinstance(error, SyntaxError) and error.offset) or 1
        raise ExpressionError(f"not a formula{at}: {text[:60]!r} ({error.args[0]})").at(column) from None
    nodes: list[Node] = []
    pending: list[ast.expr] = [root]
    while pending:
        item = pending.pop()
        if names and isinstance(item, ast.Name) and item.id in names:
            nodes.append(names[item.id])
            continue
        try:
            node, operands = _read(item)
        except ExpressionError as error:
            raise error.at(item.col_offset + 1) from None
        nodes.append(node)
        pending.extend(reversed(operands))
    return MaskedTree(nodes)


def _read(item: ast.expr) -> tuple[Node, Sequence[ast.expr]]:
    """Return the node that `item` stands for and its operands, still to be read."""
    match item:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _number(value), ()
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(
            value, bool
        ):
            return _number(-value), ()
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return Constant(-math.inf, fitted=False), ()
        case ast.UnaryOp(op=ast.USub()):
            return node_from_name("neg"), (item.operand,)
        case ast.UnaryOp(op=ast.UAdd()):
            return _read_sign(item)
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() as power)) if power in INTEGER_POWERS:
            return node_from_name(INTEGER_POWERS[power].name), (item.left,)
        case ast.BinOp() if type(item.op) in _BINARY:
            return node_from_name(_BINARY[type(item.op)]), (item.left, item.right)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            operator = operators.get(name)
            if len(item.args) != operator.arity:
                raise ExpressionError(f"{name} takes {operator.arity} operand(s), found {len(item.args)}")
            return node_from_name(operator.name), item.args
        case ast.Name(id="C"):
            return Constant(1.0), ()
        case ast.Name(id=name) if name in _NAMED_NUMBERS:
            return Constant(_NAMED_NUMBERS[name], fitted=False), ()
        case ast.Name(id=name) if re.fullmatch(r"x[1-9][0-9]{0,8}", name):
            return variable(int(name[1:])), ()
        case ast.Name(id=name):
            raise ExpressionError(f"unknown name {short(name)!r} in a formula; variables are called x1, x2, ...")
    raise ExpressionError(f"{type(item).__name__} at column {item.col_offset + 1} does not belong in a formula")


def _read_sign(item: ast.UnaryOp) -> tuple[Node, Sequence[ast.expr]]:
    """Read what stands behind one or more plus signs."""
    operand: ast.expr = item
    while isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.UAdd):
        operand = operand.operand
    return _read(operand)


def _number(value: float) -> Constant:
    try:
        return Constant(float(value), fitted=False)
    except OverflowError:
        raise ExpressionError("a whole number in the formula is too large for a float") from None


# --- printing -----------------------------------------------------------------------------


def infix(
    tree: Sequence[Node],
    pset: gp.PrimitiveSetTyped | None = None,
    skeleton: bool = False,
    mark: Callable[[Node, str], str] = lambda node, text: text,
) -> str:
    """Return Python-like text that :func:`parse` reads back to the same tokens.

    With `skeleton` open constants are printed as C, and read back as open ones. ``mark(node, text)`` is asked for the
    text of every sub-tree, to colour it, say.
    """
    meaning = Vocabulary(pset)

    def printed(position: int, node: Node, operands: list[tuple[str, int, Node]]) -> tuple[str, int, Node]:
        """Return the text of a sub-tree, its precedence and its root."""
        if not node.arity:
            leaf, binding = ("C", ATOM) if skeleton and is_open(node) else _leaf_text(node)
            return mark(node, leaf), binding, node
        operator = meaning.operator(node)
        if _call_form(operator, operands):
            text = f"{operator.name}({', '.join(operand[0] for operand in operands)})"
            return mark(node, text), ATOM, node
        texts = [
            text if precedence >= least else f"({text})"
            for (text, precedence, _), least in zip(operands, operator.operands, strict=False)
        ]
        return mark(node, operator.infix.format(*texts)), operator.precedence, node

    return bottom_up(MaskedTree(tree).checked(), printed)[0]


def _leaf_text(node: Node) -> tuple[str, int]:
    if is_variable(node):
        return node.value, ATOM
    text = format_number(node.value)
    return text, SIGN if text.startswith("-") else ATOM


def _call_form(operator: Operator, operands: Sequence[tuple[str, int, Node]]) -> bool:
    """Whether the usual notation would be read back as something else: -(2) and x**(2)."""
    last = operands[-1][2]
    if not is_number(last):
        return False
    return operator.name == "neg" or (operator.name == "pow" and last.value in INTEGER_POWERS)


def short_numbers(tree: MaskedTree, names: Names = _PLAIN) -> MaskedTree:
    """Return the tree for reading: literals of 4 digits, slots as C1, C2, ...; node for node the same shape.

    Variables are called by their `names`; if C1 is one of them, slots have another letter.
    """
    slots = set(tree.slots)
    numbers = iter(range(1, len(slots) + 1))

    def shown(position: int, node: Node) -> Node:
        if position in slots:
            return gp.Terminal(f"{names.letter}{next(numbers)}", True, node.ret)
        if not isinstance(node, Constant):
            return node
        return Constant(float(f"{node.value:.4g}"), fitted=False, mutable=node.mutable)

    return MaskedTree([shown(position, node) for position, node in enumerate(names.named(tree))])


def short_formula(tree: MaskedTree, names: Names = _PLAIN) -> str:
    """Return the formula for reading: as :func:`short_numbers`, without factors of 1 and terms of 0."""
    from deap_vsr.tree.simplify import without_neutral

    return infix(without_neutral(short_numbers(tree, names)))


def latex(tree: Sequence[Node], pset: gp.PrimitiveSetTyped | None = None) -> str:
    """Return the formula in LaTeX."""
    meaning = Vocabulary(pset)

    def printed(position: int, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
        """Return the text of a sub-tree and its precedence."""
        if not node.arity:
            return _latex_leaf(node)
        operator = meaning.operator(node)
        texts = []
        for i, (text, precedence) in enumerate(operands):
            least = (operator.latex_operands or operator.operands)[i]
            bare = precedence >= least and not (i and least and text.startswith("-"))
            texts.append(text if bare else rf"\left({text}\right)")
        precedence = operator.precedence if operator.latex_precedence is None else operator.latex_precedence
        return operator.latex.format(*texts), precedence

    return bottom_up(MaskedTree(tree).checked(), printed)[0]


def _latex_leaf(node: Node) -> tuple[str, int]:
    if is_variable(node):
        return latex_name(node.value), ATOM
    mantissa, _, exponent = format_number(node.value).partition("e")
    precedence = SIGN if mantissa.startswith("-") else ATOM
    if not exponent:
        return {"inf": r"\infty", "-inf": r"-\infty"}.get(mantissa, mantissa), precedence
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRODUCT


# --- sympy --------------------------------------------------------------------------------


def to_sympy(tree: MaskedTree, pset: gp.PrimitiveSetTyped | None = None) -> sympy.Expr:
    """Return the formula as a sympy expression in real symbols x1, x2, ...

    With `pset` in the names of its arguments; a user's own functions become undefined functions.
    """
    import sympy

    if tree.height > MAX_SYMPY_DEPTH:
        raise ExpressionError(f"a tree {tree.height} deep is too deep for sympy, at most {MAX_SYMPY_DEPTH}")
    meaning = Vocabulary(pset)

    def written(position: int, node: Node, operands: list[Any]) -> Any:
        if node.arity:
            fraction = node.name == "div" and all(operand.is_Integer and operand for operand in operands)
            if all(operand.is_number for operand in operands) and not fraction:
                # Not digit by digit: the whole number 10**10**10 would never be done.
                operands = [operand.evalf() for operand in operands]
            return meaning.operator(node).sympy(sympy, *operands)
        if is_variable(node):
            return sympy.Symbol(node.value, real=True)
        whole = float(node.value).is_integer() and abs(node.value) < 1e15
        return sympy.Integer(int(node.value)) if whole else sympy.Float(node.value)

    expression: sympy.Expr = bottom_up(tree.checked(), written)
    return expression


def from_sympy(expression: sympy.Expr) -> MaskedTree:
    """Build a tree from a sympy expression in symbols x1, x2, ...

    Raises
    ------
    ExpressionError
        For functions outside the catalogue, complex or infinite numbers, other symbols.
    """
    if not hasattr(expression, "is_Symbol"):
        raise ExpressionError(f"{short(expression)} is no sympy expression")
    try:
        return MaskedTree(_from_sympy(expression))
    except RecursionError:
        raise ExpressionError("sympy expression is nested too deeply") from None


def _from_sympy(expression: Any) -> list[Node]:
    import sympy

    if expression.is_Symbol:
        return list(parse(expression.name))
    if expression.is_number:
        return [_real_number(expression)]
    if expression.is_Add:
        return _sum(expression.args)
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow and expression.base is not sympy.E:
        return _power(*expression.as_base_exp())
    for operator in operators.CATALOGUE.values():
        if operator.arity == 1 and operator.symbolic == expression.func.__name__:
            return [node_from_name(operator.name), *_from_sympy(expression.args[0])]
    if expression.is_Pow:
        return [node_from_name("exp"), *_from_sympy(expression.exp)]
    if expression.func is sympy.re:  # all our values are real
        return _from_sympy(expression.args[0])
    raise ExpressionError(f"sympy's {expression.func.__name__} is not in the operator catalogue")


def _real_number(expression: Any) -> Constant:
    value = complex(expression)
    if value.imag or not math.isfinite(value.real):
        raise ExpressionError(f"{expression} is not a finite real number")
    return Constant(value.real, fitted=False)


def _chain(name: str, parts: Iterable[list[Node]]) -> list[Node]:
    """Return ``parts`` joined from the left by the binary operator `name`."""
    joined, *rest = parts
    for part in rest:
        joined = [node_from_name(name), *joined, *part]
    return joined


def _sum(terms: Sequence[Any]) -> list[Node]:
    """Return the sum of `terms`; those with a negative factor are subtracted."""
    ordered = sorted(terms, key=lambda term: bool(term.could_extract_minus_sign()))
    result = _from_sympy(ordered[0])
    for term in ordered[1:]:
        minus = term.could_extract_minus_sign()
        result = [node_from_name("sub" if minus else "add"), *result, *_from_sympy(-term if minus else term)]
    return result


def _product(expression: Any) -> list[Node]:
    """Return a product as numerator over denominator."""
    above: list[list[Node]] = []
    below: list[list[Node]] = []
    for factor in expression.as_ordered_factors():
        base, exponent = factor.as_base_exp()
        if exponent.is_number and exponent.is_real and exponent < 0 and not factor.is_number:
            below.append(_power(base, -exponent))
        else:
            above.append(_from_sympy(factor))
    if not below:
        return _chain("mul", above)
    if not above:
        return [node_from_name("inv"), *_chain("mul", below)]
    return [node_from_name("div"), *_chain("mul", above), *_chain("mul", below)]


def _power(base: Any, exponent: Any) -> list[Node]:
    """Return base**exponent with nK, sqrt and inv where they serve."""
    if exponent == 1:
        return _from_sympy(base)
    if exponent in INTEGER_POWERS:
        return [node_from_name(INTEGER_POWERS[int(exponent)].name), *_from_sympy(base)]
    if exponent.is_number and exponent.is_real and exponent < 0:
        return [node_from_name("inv"), *_power(base, -exponent)]
    if exponent.is_number and exponent.is_real and float(exponent) == 0.5:
        return [node_from_name("sqrt"), *_from_sympy(base)]
    return [node_from_name("pow"), *_from_sympy(base), *_from_sympy(exponent)]


# --- networkx -----------------------------------------------------------------------------


def to_networkx(tree: MaskedTree) -> networkx.DiGraph[int]:
    """Return a directed graph: nodes numbered in prefix order, edges from parent to child.

    Node attributes: ``token``, ``kind``, ``mutable``, ``fitted``; edge attribute: ``position``.
    """
    import networkx

    graph: networkx.DiGraph[int] = networkx.DiGraph()
    for i, (node, (token, kind)) in enumerate(zip(tree, tree.to_tokens(), strict=True)):
        graph.add_node(i, token=token, kind=kind, mutable=is_mutable(node), fitted=is_open(node))
    for parent, operands in enumerate(operand_positions(tree.checked())):
        for position, child in enumerate(operands):
            graph.add_edge(parent, child, position=position)
    return graph


def from_networkx(graph: networkx.DiGraph[int]) -> MaskedTree:
    """Build the tree of a graph made by :func:`to_networkx`."""
    roots = [node for node in graph if graph.in_degree(node) == 0]
    if len(roots) != 1 or graph.number_of_edges() != graph.number_of_nodes() - 1:
        raise ExpressionError("the graph is not a tree with one root")
    nodes: list[Node] = []
    pending = roots
    while pending:
        name = pending.pop()
        data = graph.nodes[name]
        (node,) = MaskedTree.from_tokens([(data["token"], "const")]) if data["kind"] == "const" else _bare(data)
        if data["kind"] == "const":
            node = Constant(node.value, data["fitted"], data["mutable"])
        nodes.append(with_flag(node, data["mutable"]))
        operands = {graph.edges[name, child]["position"]: child for child in graph.successors(name)}
        if sorted(operands) != list(range(node.arity)):
            raise ExpressionError(f"node {name!r} of the graph needs operands at positions 0 to {node.arity - 1}")
        pending.extend(operands[position] for position in reversed(range(node.arity)))
    if len(nodes) != graph.number_of_nodes():
        raise ExpressionError("the graph is not a tree with one root")
    return MaskedTree(nodes)


def _bare(data: dict[str, Any]) -> tuple[Node]:
    return (node_from_name(data["token"]) if data["kind"] in ("unary", "binary") else parse(data["token"])[0],)
