"""What users know beforehand, and names: formulas to begin with, a form with an unknown part, monotonic columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deap_vsr.errors import ExpressionError, VsrError
from deap_vsr.search.finish import reopened
from deap_vsr.table.field import Field
from deap_vsr.table.rows import Rows
from deap_vsr.tree import Constant, MaskedTree, Node, is_variable, operators, variable
from deap_vsr.tree.operators import Array

if TYPE_CHECKING:
    import sympy

#: The unknown function of a form, and the variable that stands for it.
UNKNOWN = re.compile(r"\bF\(([^()]*)\)")


def opened(tree: MaskedTree) -> MaskedTree:
    """Return a formula with its constants open."""
    return reopened(tree)


def formula(text: str, names: Sequence[str]) -> MaskedTree:
    """Return a formula written with the names of columns; C is a constant to be fitted."""
    known: dict[str, Node] = {name: variable(i + 1) for i, name in enumerate(names)}
    plain = text
    for i, name in sorted(enumerate(names), key=lambda item: -len(item[1])):
        if not name.isidentifier():
            plain = plain.replace(name, f"x{i + 1}")
    from deap_vsr.tree.notation import parse

    try:
        return parse(plain, {**known, "C": Constant(1.0)})
    except ExpressionError as error:
        raise VsrError(f"formula {text!r}: {error}; columns are {', '.join(names[:10])}, C is a constant") from None


@dataclass(frozen=True)
class Known:
    """A form with one unknown function, at `position` of `tree`, of some columns."""

    tree: MaskedTree
    position: int
    columns: tuple[int, ...]

    def target(self, rows: Rows) -> Rows:
        """Return rows of the unknown function: y with all around it undone."""
        z, at = rows.y, 0
        while at != self.position:
            z, at = self._step(z, at, rows.X)
        if not np.isfinite(z).all():
            raise VsrError("the form cannot be undone on all rows: leave out those where it has no value")
        return replace(rows, y=z, columns=tuple(c for c in self.columns if np.ptp(rows.X[:, c]) > 0))

    def _step(self, z: Array, at: int, X: Array) -> tuple[Array, int]:
        """Undo one operator."""
        node = self.tree[at]
        first = self.tree.searchSubtree(at + 1)
        if node.arity == 1:
            inverse = operators.get(node.name).inverse
            if inverse is None:
                raise VsrError(f"{node.name} around F cannot be undone")
            with np.errstate(all="ignore"):
                return np.asarray(inverse(z)), at + 1
        left = first.start <= self.position < first.stop
        other = self.tree[first.stop : self.tree.searchSubtree(at).stop] if left else self.tree[first]
        with np.errstate(all="ignore"):
            known = MaskedTree(other).evaluate(X)
            undo: dict[str, Callable[[], Array]] = {
                "add": lambda: z - known,
                "sub": lambda: z + known if left else known - z,
                "mul": lambda: z / known,
                "div": lambda: z * known if left else known / z,
            }
            if node.name not in undo:
                raise VsrError(f"{node.name} around F cannot be undone")
            return undo[node.name](), first.start if left else first.stop

    def nodes(self, inner: Sequence[Node]) -> list[Node]:
        """Return the whole formula with the unknown function filled in."""
        return [*self.tree[: self.position], *inner, *self.tree[self.position + 1 :]]

    def wrapped(self, arena: Field, rows: Rows) -> Field:
        """Return the field of whole formulas, fitted to y."""
        whole = Field(rows, arena.max_size + len(self.tree))
        for item in [*arena.front(), *arena.ranked[:10]]:
            whole.offer(self.nodes(item.fit.trees[0]), item.by)
        return whole


def parsed(form: str, names: Sequence[str]) -> Known:
    """Return a form such as ``a*F(b, c)``, its frozen part and where it may grow."""
    found = UNKNOWN.findall(form)
    if len(found) != 1:
        raise VsrError(f"form {form!r} needs one unknown function, F(column, ...); found {len(found)}")
    wanted = [name.strip() for name in found[0].split(",") if name.strip()]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise VsrError(f"form {form!r}: F is of {', '.join(unknown) or 'nothing'}, columns are {', '.join(names[:10])}")
    place = len(names) + 1
    tree = formula(UNKNOWN.sub(f"x{place}", form), [*names, f"x{place}"])
    position = next(i for i, node in enumerate(tree) if is_variable(node) and node.value == f"x{place}")
    if any(isinstance(node, Constant) and node.fitted for node in tree):
        raise VsrError(f"form {form!r}: constants outside of F must be numbers")
    return Known(tree, position, tuple(list(names).index(name) for name in wanted))


def monotonic_only(arena: Field, rows: Rows, wanted: Mapping[int, int]) -> None:
    """Leave formulas out that are not monotonic in a column, with the others as in the rows."""
    if not wanted:
        return
    X = rows.screen.X
    for key, item in list(arena.formulas.items()):
        for column, sign in wanted.items():
            grid = np.linspace(X[:, column].min(), X[:, column].max(), 12)
            values = []
            for value in grid:
                moved = X.copy()
                moved[:, column] = value
                with np.errstate(all="ignore"):
                    values.append(item.tree.evaluate(moved))
            steps = sign * np.diff(np.array(values), axis=0)
            if not (steps >= -1e-9 * float(np.std(rows.y))).all():
                del arena.formulas[key]
                break


# --- names --------------------------------------------------------------------------------


def text(tree: MaskedTree, names: Sequence[str]) -> str:
    """Return a formula with the names of columns."""
    return re.sub(r"\bx(\d+)\b", lambda match: _name(match, names), tree.to_infix())


def _name(match: re.Match[str], names: Sequence[str]) -> str:
    number = int(match.group(1)) - 1
    return names[number] if number < len(names) else match.group(0)


def as_sympy(tree: MaskedTree, names: Sequence[str]) -> sympy.Expr:
    """Return a formula in symbols that have the names of columns."""
    import sympy

    expression = tree.to_sympy()
    symbols = {f"x{i + 1}": sympy.Symbol(name, real=True) for i, name in enumerate(names)}
    renamed: sympy.Expr = expression.xreplace(
        {s: symbols[s.name] for s in expression.free_symbols if s.name in symbols}
    )
    return renamed
