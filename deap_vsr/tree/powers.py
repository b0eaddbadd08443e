"""Products as a number and powers: taken apart, and put together in as few nodes as a set of operators allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import inf, isfinite
from typing import ClassVar

from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name
from deap_vsr.tree.simplify import canonical
from deap_vsr.tree.tidy import operands_of

Nodes = list[Node]

#: Functions of which a sign comes out.
ODD = frozenset({"sin", "tan", "arcsin", "arctan", "sinh", "tanh"})
#: What the quotient of two functions of the same is.
QUOTIENTS = {("sin", "cos"): "tan", ("sinh", "cosh"): "tanh"}
#: A number whose inverse has so many digits, where it has more itself, is written by its inverse.
SHORT = 4
#: Exponents beyond this are not put together from smaller ones.
MAX_EXPONENT = 12.0


class TooManyError(Exception):
    """More products were put together than a formula is worth."""


@dataclass(frozen=True)
class Factor:
    """A power: what it is a power of, and its exponent."""

    base: tuple[Node, ...]
    exponent: float

    @cached_property
    def text(self) -> str:
        """The base as text: the same for the same base."""
        return text_of(self.base)


def text_of(nodes: Sequence[Node]) -> str:
    """Return nodes as text, the same in whatever order sums and products are."""
    tree = MaskedTree(nodes)
    return tree.to_infix() if len(tree) < 3 else canonical(tree).to_infix()


def literal(nodes: Sequence[Node]) -> float | None:
    """Return the value of nodes that are one literal; None if they are not."""
    node = nodes[0]
    return float(node.value) if isinstance(node, Constant) and not node.fitted else None


def clean(number: float) -> float:
    """Return a computed number without its last digit, which is rounding: 0.1 + 0.2 is 0.3."""
    return float(f"{number:.15g}")


def fraction(number: float) -> tuple[int, int] | None:
    """Return 2 and 3 for 0.6666666666666666; None for what is no quotient of small numbers, or has few digits."""
    near = Fraction(number).limit_denominator(12)
    exact = abs(number - float(near)) <= 1e-13 * abs(number) and abs(near.numerator) < 100
    long = float(f"{number:.10g}") != number
    return (near.numerator, near.denominator) if exact and long else None


def times(one: float, other: float) -> float:
    """Return a product of numbers, clean if it is one at all."""
    return one * other if abs(one) == 1.0 or abs(other) == 1.0 else clean(one * other)


def joined(factors: Iterable[Factor]) -> list[Factor]:
    """Return factors of which no two have the same base."""
    result: dict[str, Factor] = {}
    for factor in factors:
        there = result.get(factor.text)
        result[factor.text] = factor if there is None else Factor(there.base, there.exponent + factor.exponent)
    return [factor for factor in result.values() if factor.exponent != 0.0]


class Powers:
    """Products in the operators of a set; `short` writes what has been put together anew.

    Of no more than `most` products, if there is a limit; then TooManyError is raised.
    """

    #: Operators that products are made of.
    NAMES: ClassVar[frozenset[str]] = frozenset(
        {"mul", "div", "inv", "neg", "n2", "n3", "n4", "n5", "n6", "n8", "pow", "sqrt"}
    )

    def __init__(self, allowed: frozenset[str], short: Callable[[Nodes], Nodes], most: float = inf) -> None:
        self.allowed, self._short, self._left = allowed, short, most

    def rebuilt(self, nodes: Nodes) -> Nodes | None:
        """Return a product put together anew; None if the set cannot write it."""
        return self.product(*self.taken_apart(nodes))

    # --- taking apart ---

    def taken_apart(self, nodes: Nodes) -> tuple[float, list[Factor]]:
        """Return a product as a number and powers of different bases."""
        number, factors = self._parts(nodes)
        return (number, joined(factors)) if isfinite(number) and number else (1.0, [Factor(tuple(nodes), 1.0)])

    def _parts(self, nodes: Nodes) -> tuple[float, list[Factor]]:
        node, opaque = nodes[0], (1.0, [Factor(tuple(nodes), 1.0)])
        value = literal(nodes)
        if value is not None:
            return value, []
        if not node.arity or node.name not in self.NAMES | ODD | {"exp", "abs", "add", "sub"}:
            return opaque
        operands = operands_of(nodes)
        if node.name in ("mul", "div"):
            (c, first), (d, second) = map(self._parts, operands)
            if node.name == "div":
                d, second = 1.0 / d if d else 0.0, [Factor(f.base, -f.exponent) for f in second]
            return times(c, d), [*first, *second]
        if node.name in ("add", "sub"):
            return self._negative_sum(nodes, operands)
        if node.name in ODD:
            number, factors = self._parts(operands[0])
            inside = self.product(-number, joined(factors)) if number < 0 and factors else None
            return opaque if inside is None else (-1.0, [Factor((node, *inside), 1.0)])
        if node.name == "neg":
            number, factors = self._parts(operands[0])
            return -number, factors
        exponent = self._exponent(node, operands)
        return opaque if exponent is None else self._raised(operands[0], exponent, nodes)

    def _negative_sum(self, nodes: Nodes, operands: list[Nodes]) -> tuple[float, list[Factor]]:
        """Return a sum that begins with a negative number, its sign before it: -1 + x1 is 1 - x1, with a sign."""
        first, second = operands
        if nodes[0].name == "sub" and "add" in self.allowed:
            number, factors = self._parts(first)
            positive = self.product(-number, joined(factors)) if number < 0 and factors else None
            if positive is not None:
                return -1.0, [Factor((node_from_name("add"), *positive, *second), 1.0)]
        return 1.0, [Factor(tuple(nodes), 1.0)]

    @staticmethod
    def _exponent(node: Node, operands: list[Nodes]) -> float | None:
        if node.name == "pow":
            return literal(operands[1])
        named = {"inv": -1.0, "sqrt": 0.5}.get(node.name)
        if named is not None:
            return named
        return float(node.name[1:]) if node.name[0] == "n" and node.name[1:].isdigit() else None

    def _raised(self, base: Nodes, exponent: float, nodes: Nodes) -> tuple[float, list[Factor]]:
        """Return a power of a product: a whole power of each factor, any other only of what is a power itself."""
        number, factors = self._parts(base)
        if exponent.is_integer():
            with_number = number**exponent if number else 0.0
            return with_number, [Factor(f.base, f.exponent * exponent) for f in factors]
        if len(factors) == 1 and number == 1.0:
            (factor,) = factors
            if not (factor.exponent / 2.0).is_integer():  # a root of it takes positive numbers only
                return 1.0, [Factor(factor.base, factor.exponent * exponent)]
            if "abs" in self.allowed and factor.base[0].name not in ("abs", "exp", "sqrt"):
                return 1.0, [Factor((node_from_name("abs"), *factor.base), factor.exponent * exponent)]
        root = number**exponent if number > 0.0 else 0.0
        no_longer = float(f"{root:.4g}") == root or float(f"{number:.6g}") != number
        if root and factors and no_longer:  # a number comes out where it is as short outside
            inside = self.product(1.0, joined(factors))
            if inside is not None:
                return root, [Factor(tuple(inside), exponent)]
        return 1.0, [Factor(tuple(base), exponent)]

    # --- putting together ---

    def product(self, number: float, factors: Sequence[Factor]) -> Nodes | None:
        """Return a product in few nodes; None if the set cannot write it."""
        self._left -= 1
        if self._left < 0:
            raise TooManyError
        factors = self._one_exponential(self._quotients(self._without_abs(factors)))
        number, factors = self._with_sign_inside(number, factors)
        above: list[Nodes] = []
        below: list[Nodes] = []
        for exponent in dict.fromkeys(abs(factor.exponent) for factor in factors):
            over = [list(f.base) for f in factors if f.exponent == exponent]
            under = [list(f.base) for f in factors if f.exponent == -exponent]
            if exponent == 1.0:
                above += over
                below += under
                continue
            for these, those in self._together(over, under, exponent):
                whole = self._over(these, those) if these else self._times(those)
                if whole is not None and len(these) + len(those) > 1:
                    whole = self._short(whole)
                power = None if whole is None else self.power(whole, exponent)
                if power is None:
                    return None
                (above if these else below).append(power)
        return self._with_number(number, above, below)

    @staticmethod
    def _together(over: list[Nodes], under: list[Nodes], exponent: float) -> list[tuple[list[Nodes], list[Nodes]]]:
        """Return what one power is taken of: of all where it is no whole one, else of all variables."""
        if not exponent.is_integer():
            return [(over, under)]
        alone: list[tuple[list[Nodes], list[Nodes]]]
        alone = [([base], []) for base in over if base[0].arity] + [([], [base]) for base in under if base[0].arity]
        leaves = [base for base in over if not base[0].arity], [base for base in under if not base[0].arity]
        return [leaves, *alone] if leaves[0] or leaves[1] else alone

    def _with_number(self, number: float, above: list[Nodes], below: list[Nodes]) -> Nodes | None:
        if number == 1.0 and above:
            return self._over(above, below)
        inverse = float(f"{1.0 / number:.{SHORT}g}")
        short = abs(number * inverse - 1.0) <= 1e-13 and (inverse.is_integer() or fraction(number) is None)
        if above and short and float(f"{number:.10g}") != number and "div" in self.allowed:
            return self._over(above, [[Constant(inverse, False, False)], *below])  # x1/3, x1/9.81
        constant: Nodes = [Constant(number, False, False)]
        if number == 1.0 and len(below) == 1 and "inv" in self.allowed and "div" not in self.allowed:
            return [node_from_name("inv"), *below[0]]
        return self._over([constant, *above], below)

    def _times(self, parts: list[Nodes]) -> Nodes | None:
        if len(parts) > 1 and "mul" not in self.allowed:
            return None
        return [*(node_from_name("mul") for _ in parts[1:]), *chain.from_iterable(parts)]

    def _over(self, above: list[Nodes], below: list[Nodes]) -> Nodes | None:
        if not below:
            return self._times(above)
        over, under = self._times(above), self._times(below)
        if over is None or under is None:
            return None
        if "div" in self.allowed:
            return [node_from_name("div"), *over, *under]
        if not {"mul", "inv"} <= self.allowed:
            return None
        return [node_from_name("mul"), *over, node_from_name("inv"), *under]

    def power(self, base: Nodes, exponent: float) -> Nodes | None:
        """Return a power in as few nodes as can be; None if the set has none."""
        if exponent == 1.0:
            return base
        if exponent < 0.0:
            under = self.power(base, -exponent)
            return None if under is None else self._with_number(1.0, [], [under])
        tries: list[Nodes | None] = []
        if exponent == 0.5 and "sqrt" in self.allowed:
            return [node_from_name("sqrt"), *base]
        if exponent.is_integer() and f"n{int(exponent)}" in self.allowed:
            return [node_from_name(f"n{int(exponent)}"), *base]
        if "pow" in self.allowed:
            tries.append([node_from_name("pow"), *base, Constant(exponent, False, False)])
        if exponent <= MAX_EXPONENT and (4.0 * exponent).is_integer():
            tries += self._composed(base, exponent)
        return min((one for one in tries if one is not None), key=len, default=None)

    def _composed(self, base: Nodes, exponent: float) -> list[Nodes | None]:
        """Return powers made of smaller ones: roots of roots, squares of cubes, products."""
        if exponent < 1.0:
            whole = self.power(base, 2.0 * exponent)
            return [None if whole is None or "sqrt" not in self.allowed else [node_from_name("sqrt"), *whole]]
        tries: list[Nodes | None] = []
        for inner in (2, 3):
            outer = exponent / inner
            if f"n{inner}" in self.allowed and outer.is_integer() and outer > 1.0:
                tries.append(self.power([node_from_name(f"n{inner}"), *base], outer))
        part = exponent % 1.0 or 1.0
        one, rest = self.power(base, part), self.power(base, exponent - part)
        tries.append(None if one is None or rest is None else self._times([rest, one]))
        return tries

    # --- rules ---

    def _without_abs(self, factors: Sequence[Factor]) -> list[Factor]:
        """Return factors without absolute values of which the square is taken."""
        return joined(
            Factor(f.base[1:], f.exponent) if f.base[0].name == "abs" and (f.exponent / 2.0).is_integer() else f
            for f in factors
        )

    def _quotients(self, factors: list[Factor]) -> list[Factor]:
        """Return factors with tangents in place of sines over cosines, where the set has them."""
        for one in factors:
            for other in factors:
                name = QUOTIENTS.get((one.base[0].name, other.base[0].name))
                same = name in self.allowed and one.exponent == -other.exponent and one.base[1:] and name is not None
                if same and text_of(one.base[1:]) == text_of(other.base[1:]) and name is not None:
                    rest = [factor for factor in factors if factor not in (one, other)]
                    tangent = Factor((node_from_name(name), *one.base[1:]), one.exponent)
                    return self._quotients(joined([*rest, tangent]))
        return factors

    def _one_exponential(self, factors: list[Factor]) -> list[Factor]:
        """Return factors with one exponential in place of several, and none below that can be above: by its number."""
        which = [f for f in factors if f.base[0].name == "exp" and f.base[0].arity]
        if not which or "add" not in self.allowed or "mul" not in self.allowed:
            return factors
        if len(which) == 1:
            (one,) = which
            number, inside = self.taken_apart(list(one.base[1:]))
            if number == 1.0 or one.exponent == 1.0:
                return factors
            exponent = self.product(times(number, one.exponent), inside)
        else:
            terms = [
                self.product(times(n, f.exponent), i) for f in which for n, i in [self.taken_apart(list(f.base[1:]))]
            ]
            if any(term is None for term in terms):
                return factors
            adds = [node_from_name("add") for _ in terms[1:]]
            exponent = self._short([*adds, *chain.from_iterable(term for term in terms if term is not None)])
        if exponent is None:
            return factors
        rest = [factor for factor in factors if factor not in which]
        return [*rest, Factor((node_from_name("exp"), *exponent), 1.0)]

    def _with_sign_inside(self, number: float, factors: list[Factor]) -> tuple[float, list[Factor]]:
        """Return a negative product with its sign in a difference: 3*(x2 - x1) for -3*(x1 - x2)."""
        if number >= 0.0:
            return number, factors
        for i, factor in enumerate(factors):
            if factor.base[0].name == "sub" and factor.base[0].arity == 2 and factor.exponent % 2.0 == 1.0:
                first, second = operands_of(factor.base)
                turned = Factor((factor.base[0], *second, *first), factor.exponent)
                return -number, [*factors[:i], turned, *factors[i + 1 :]]
        return number, factors
