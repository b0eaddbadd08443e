"""A finished formula as a person writes it: x1/x3**2 for x1*(1/x3/x3), x1**x2 for exp(log(x1)*x2).

Each product is taken apart into a number and powers, each sum into products, and both are put together again in as few
nodes as the operators of the set allow. Numbers must be literals. Wherever the formula has a value it keeps it, up to
rounding; where it has none, as sqrt(x1)**2 has for negative x1, it may get one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations

from deap_vsr.tree import Constant, MaskedTree, Node, format_number, is_number, is_open, node_from_name
from deap_vsr.tree.powers import Factor, Nodes, Powers, TooManyError, clean, joined, literal, text_of, times
from deap_vsr.tree.simplify import fold, without_neutral
from deap_vsr.tree.tidy import operands_of, with_squares
from deap_vsr.tree.walk import bottom_up

#: Deeper formulas are left as they are: nobody reads them, and products are taken apart by recursion.
MAX_HEIGHT = 60
#: In sums of more terms no common factors are looked for: each pair of terms is.
MAX_TERMS = 12
#: Numbers of so many digits are short: with more of them nothing is gained by another place for them.
SHORT = 6
#: How often all rules are applied, each time to what the last time left; rarely more than twice.
PASSES = 4
#: Products that are put together for a formula at the most, some 0.2 ms each: nearly all laws of `data/` take 1,700, a
#: sum of exponentials of sums took a minute.
MOST_PRODUCTS = 2_500


def as_written(tree: MaskedTree, function_set: Sequence[str]) -> MaskedTree:
    """Return the formula in as few nodes as the rules know, with operators of the set only.

    A formula with open constants, or one that is very deep, stays as it is; one that takes very long, as it was after
    the last pass that was done. It never gets longer.
    """
    if any(map(is_open, tree)) or tree.height > MAX_HEIGHT:
        return tree
    writer = _Writer(function_set)
    best = tree
    for _ in range(PASSES):
        try:
            tries = [writer.written(one) for one in (best, with_squares(best, function_set))]
        except TooManyError:
            break
        shortest = min(tries, key=length)
        if length(shortest) > length(best) or list(shortest) == list(best):
            break
        best = shortest
    return best


def length(nodes: Iterable[Node]) -> int:
    """Return how many nodes a formula has; 1/x counts as it is written, by a division or not."""
    return sum(2 if node.name == "inv" and node.arity else 1 for node in nodes)


#: Functions that are the same of -u and of u; a quarter of a turn.
EVEN, QUARTER = ("cos", "cosh", "abs"), 0.5 * math.pi

#: A term of a sum: a number and its factors.
Term = tuple[float, list[Factor]]


class _Writer:
    """The rules, for one set of operators."""

    def __init__(self, function_set: Sequence[str]) -> None:
        self.allowed = frozenset(function_set)
        self.powers = Powers(self.allowed, self._short, MOST_PRODUCTS)

    def written(self, tree: MaskedTree) -> MaskedTree:
        """Return the formula with every part put together anew, its numbers folded."""
        return without_neutral(MaskedTree(self._short(list(without_neutral(fold(tree))))))

    def _short(self, nodes: Nodes) -> Nodes:
        """Return nodes with every part put together anew, where that is no longer."""
        return bottom_up(nodes, self._rewritten)

    def _rewritten(self, position: int, node: Node, operands: list[Nodes]) -> Nodes:
        whole = [node, *chain.from_iterable(operands)]
        if not node.arity or all(map(is_number, whole[1:])):
            return whole
        if node.name in ("add", "sub"):
            sums = [one for one in (whole, self._sum(whole)) if one is not None and self._may(one, whole)]
            return min(sums, key=_price)
        tries = [self.powers.rebuilt(whole), whole, *self._with_other_sums(whole), self._double_angle(whole)]
        if node.arity == 1 and node.name not in self.powers.NAMES:
            tries.insert(0, self._function(node, operands[0]))
        return min((one for one in tries if one is not None and self._may(one, whole)), key=length)

    def _may(self, nodes: Nodes, whole: Nodes) -> bool:
        """Whether only operators are used that are allowed, or were there."""
        there = {node.name for node in whole if node.arity}
        return all(node.name in self.allowed or node.name in there for node in nodes if node.arity)

    # --- functions ---

    def _function(self, node: Node, operand: Nodes) -> Nodes | None:
        """Return a function of an operand without what it undoes; None if there is no such thing."""
        inner = operand[0].name if operand[0].arity else ""
        if (node.name, inner) in (("log", "exp"), ("exp", "log")):
            return operand[1:]
        if node.name == "abs" and inner in ("abs", "sqrt", "exp", "n2", "n4", "cosh"):
            return operand
        if node.name == "exp":
            return self._power_of_logarithm(operand)
        turned = self._turned(node.name, operand) if node.name in ("sin", "cos") else None
        if turned is not None:
            return turned
        if node.name in EVEN:
            return [node, *bare] if (bare := self._without_sign(operand)) is not None else None
        return None

    def _without_sign(self, nodes: Nodes) -> Nodes | None:
        """Return a product times -1; None if it is not negative."""
        number, factors = self.powers.taken_apart(nodes)
        return self.powers.product(-number, factors) if number < 0 else None

    def _turned(self, name: str, operand: Nodes) -> Nodes | None:
        """Return sin(u) or cos(u) without a multiple of pi/2 in u: cos(v) for sin(pi/2 - v); None if there is none."""
        terms = self._terms(operand, 1.0)
        turns = [round(number / QUARTER) if not factors else 0 for number, factors in terms]
        n = sum(turns)
        rest = [t for t, k in zip(terms, turns, strict=True) if not k]
        off = [abs(c - k * QUARTER) > 1e-12 * abs(k) for (c, _), k in zip(terms, turns, strict=True) if k]
        if not off or not rest or any(off):
            return None
        # In quarters of a turn beyond a sine; a cosine is one beyond.
        quarters = (n + (name == "cos")) % 4
        function, negative = ("sin", "cos")[quarters % 2], quarters > 1
        bare = self._put_together(rest)
        if bare is None or function not in self.allowed | {name}:
            return None
        other = self._put_together([(-c, f) for c, f in rest])
        if other is not None and length(other) < length(bare):
            bare, negative = other, negative != (function == "sin")
        return self.powers.product(-1.0 if negative else 1.0, [Factor((node_from_name(function), *bare), 1.0)])

    def _double_angle(self, whole: Nodes) -> Nodes | None:
        """Return a product with sin(u)*cos(u) in it as half of sin(2*u); None if there is none."""
        number, factors = self.powers.taken_apart(whole)
        for one in factors:
            partner = "cos" + one.text[3:] if one.base[0].name == "sin" and one.base[0].arity else ""
            other = next((f for f in factors if f.text == partner and f.exponent == one.exponent), None)
            if other is not None and one.exponent.is_integer():
                twice = self.powers.product(*_doubled(self.powers.taken_apart(list(one.base[1:]))))
                if twice is None:
                    return None
                rest = [f for f in factors if f not in (one, other)]
                sine = Factor((one.base[0], *twice), one.exponent)
                return self.powers.product(times(number, 0.5**one.exponent), joined([*rest, sine]))
        return None

    def _power_of_logarithm(self, exponent: Nodes) -> Nodes | None:
        """Return u**v for exp(v*log(u)); None if there is no logarithm in the exponent, or no power in the set."""
        number, factors = self.powers.taken_apart(exponent)
        for i, factor in enumerate(factors):
            if factor.base[0].name == "log" and factor.base[0].arity and factor.exponent == 1.0:
                rest = self.powers.product(number, factors[:i] + factors[i + 1 :])
                base = list(factor.base[1:])
                value = None if rest is None else literal(rest)
                if value is not None:
                    return self.powers.power(base, value)
                return None if rest is None or "pow" not in self.allowed else [node_from_name("pow"), *base, *rest]
        return None

    def _with_other_sums(self, whole: Nodes) -> Iterator[Nodes | None]:
        """Yield a product with one of its sums multiplied by something that is taken out of the rest.

        By what stands below in its terms, or by one of its numbers: x1*x2/(x1 + x2) for 1/(1/x1 + 1/x2), 4/(4 + x1)
        for 1/(1 + 0.25*x1).
        """
        number, factors = self.powers.taken_apart(whole)
        for i, factor in enumerate(factors):
            if not _is_sum(factor.base) or not factor.exponent.is_integer():
                continue
            terms = self._terms(list(factor.base), 1.0)
            for scale, below in [(1.0, _denominators(terms)), *((1.0 / abs(c), []) for c, _ in terms)]:
                more = [(times(c, scale), joined([*f, *below])) for c, f in terms]
                if (scale == 1.0) == (not below) or not all(_is_short(c) for c, _ in more):
                    continue
                bracket = self._put_together(_collected(more))
                outside = times(number, scale**-factor.exponent)
                if bracket is not None and _is_short(outside):
                    under = [Factor(f.base, -f.exponent * factor.exponent) for f in below]
                    again = Factor(tuple(bracket), factor.exponent)
                    yield self.powers.product(outside, joined([*factors[:i], *factors[i + 1 :], *under, again]))

    # --- sums ---

    def _sum(self, whole: Nodes) -> Nodes | None:
        terms = _collected(self._terms(whole, 1.0))
        best = self._put_together(self._joined_terms(terms))
        multiplied = _collected(list(self._multiplied_out(terms)))
        if len(terms) < len(multiplied) <= MAX_TERMS:  # squares may show
            plain = self._plain_sum(self._joined_terms(multiplied))
            squares = None if plain is None else with_squares(MaskedTree(plain), tuple(self.allowed))
            if squares is not None and (best is None or length(squares) < length(best)):
                best = self._put_together(self._terms(list(squares), 1.0))
        return best

    def _multiplied_out(self, terms: list[Term]) -> Iterator[Term]:
        """Yield terms with factors before a bracket multiplied into it."""
        for number, factors in terms:
            place = next((i for i, f in enumerate(factors) if f.exponent == 1.0 and _is_sum(f.base)), None)
            if place is None:
                yield number, factors
                continue
            rest = (number, factors[:place] + factors[place + 1 :])
            inside = self._terms(list(factors[place].base), 1.0)
            yield from self._multiplied_out([_times(rest, one, 1.0) for one in inside])

    def _terms(self, nodes: Nodes, sign: float) -> list[Term]:
        """Return the terms of a sum as numbers and factors; factors before a bracket stay there."""
        if nodes[0].name in ("add", "sub") and nodes[0].arity:
            first, second = operands_of(nodes)
            return self._terms(first, sign) + self._terms(second, -sign if nodes[0].name == "sub" else sign)
        number, factors = self.powers.taken_apart(nodes)
        if len(factors) == 1 and factors[0].exponent == 1.0 and _is_sum(factors[0].base):
            inside = self._terms(list(factors[0].base), sign)
            return [(times(number, one), more) for one, more in inside]
        return [(sign * number, factors)]

    def _put_together(self, terms: list[Term], numbers: bool = True) -> Nodes | None:
        """Return the shortest sum of terms: as they are, or with what some of them share before a bracket.

        A number comes before a bracket once: within it others could, and so on.
        """
        terms = [term for term in terms if term[0] != 0.0]
        if not terms:
            return [Constant(0.0, False, False)]
        best = self._plain_sum(terms)
        if not 2 <= len(terms) <= MAX_TERMS:
            return best
        for shared, which in _shared(terms):
            inside = [
                (c if shared[0] == 1.0 else clean(c / shared[0]), _without(f, shared[1]))
                for c, f in (terms[i] for i in which)
            ]
            if shared[0] != 1.0 and not numbers:
                continue
            bracket = self._put_together(_collected(inside), numbers and shared[0] == 1.0)
            if bracket is None:
                continue
            product = self.powers.product(shared[0], [*shared[1], Factor(tuple(bracket), 1.0)])
            if product is None:
                continue
            number, factors = self.powers.taken_apart(product)
            first = min(which)
            rest = [
                (number, factors) if i == first else terms[i] for i in range(len(terms)) if i not in which - {first}
            ]
            one = self._put_together(rest, numbers) if len(rest) > 1 else product
            if one is not None and (best is None or _price(one) < _price(best)):
                best = one
        return best

    def _plain_sum(self, terms: list[Term]) -> Nodes | None:
        """Return terms added and subtracted, a positive one first; None if the set cannot write that."""
        first = next((i for i, (number, _) in enumerate(terms) if number > 0), 0)
        ordered = [terms[first], *terms[:first], *terms[first + 1 :]]
        result: Nodes | None = self.powers.product(*ordered[0])
        for number, factors in ordered[1:]:
            less = number < 0 and "sub" in self.allowed
            if not less and "add" not in self.allowed:
                return None
            term = self.powers.product(-number if less else number, factors)
            if result is None or term is None:
                return None
            result = [node_from_name("sub" if less else "add"), *result, *term]
        return result

    def _joined_terms(self, terms: list[Term]) -> list[Term]:
        """Return terms of which two that are one function together are one, as often as there are such."""
        if len(terms) > MAX_TERMS:
            return terms
        for i, j in combinations(range(len(terms)), 2):
            for a, b in ((i, j), (j, i)):
                one = self._joined(terms[a], terms[b])
                if one is not None:
                    rest = [term for place, term in enumerate(terms) if place not in (i, j)]
                    return self._joined_terms(_collected([one, *rest]))
        return terms

    def _joined(self, one: Term, other: Term) -> Term | None:
        """Return what two terms are together: log(x1) - log(x2) is log(x1/x2), 1 - cos(x)**2 is sin(x)**2."""
        (c, ours), (d, theirs) = one, other
        mine, yours = _without(ours, theirs), _without(theirs, ours)
        common = _without(ours, mine)
        if _same(c, -d) and not mine and len(yours) == 1 and yours[0].exponent == 2.0:
            partner = {"sin": "cos", "cos": "sin"}.get(yours[0].base[0].name)
            if partner in self.allowed and partner is not None:
                return c, [*common, Factor((node_from_name(partner), *yours[0].base[1:]), 2.0)]
        if len(mine) == len(yours) == 2:
            return self._angles(c, d, common, mine, yours)
        if len(mine) != 1 or len(yours) != 1 or mine[0].exponent != yours[0].exponent:
            return None
        names = mine[0].base[0].name, yours[0].base[0].name
        if not mine[0].base[0].arity or not yours[0].base[0].arity:
            return None
        u, v = list(mine[0].base[1:]), list(yours[0].base[1:])
        if _same(c, d) and names == ("sin", "cos") and mine[0].exponent == 2.0 and text_of(u) == text_of(v):
            return c, common
        if names == ("log", "log") and _same(abs(c), abs(d)) and mine[0].exponent == 1.0:
            sign = 1.0 if c * d > 0 else -1.0
            inside = self.powers.product(*_times(self.powers.taken_apart(u), self.powers.taken_apart(v), sign))
            return None if inside is None else (c, [*common, Factor((mine[0].base[0], *inside), 1.0)])
        return None

    def _angles(self, c: float, d: float, common: list[Factor], mine: list[Factor], yours: list[Factor]) -> Term | None:
        """Return sin(u)*cos(v) + cos(u)*sin(v) as sin(u + v), and so on; None if it is not that."""
        u, v = (factor.base[1:] for factor in mine)
        if any(f.exponent != 1.0 or not f.base[0].arity for f in (*mine, *yours)) or not _same(abs(c), abs(d)):
            return None
        of_u, of_v = (next((f.base[0].name for f in yours if f.base[1:] == part), "") for part in (u, v))
        names = (mine[0].base[0].name, mine[1].base[0].name, of_u, of_v)
        if names == ("cos", "cos", "sin", "sin"):
            name, less = "cos", c == d
        elif names == ("sin", "cos", "cos", "sin"):
            name, less = "sin", c != d
        else:
            return None
        operator = "sub" if less else "add"
        if operator not in self.allowed or name not in self.allowed:
            return None
        return c, [*common, Factor((node_from_name(name), node_from_name(operator), *u, *v), 1.0)]


# --- terms --------------------------------------------------------------------------------


def _price(nodes: Nodes) -> tuple[int, int, int]:
    """Return how long nodes are and, of those of the same length, how many negative numbers they have, and digits."""
    numbers = [literal([node]) for node in nodes]
    values = [number for number in numbers if number is not None]
    digits = sum(len(format_number(abs(value))) for value in values if abs(value) != 1.0)
    return length(nodes), sum(value < 0.0 for value in values), digits


def _same(one: float, other: float) -> bool:
    """Whether numbers are the same but for rounding."""
    return abs(one - other) <= 1e-13 * abs(one)


def _is_sum(nodes: Sequence[Node]) -> bool:
    return nodes[0].arity == 2 and nodes[0].name in ("add", "sub")


def _is_short(number: float) -> bool:
    return float(f"{number:.{SHORT}g}") == number


def _denominators(terms: Sequence[Term]) -> list[Factor]:
    """Return by what terms are to be multiplied that none of them is divided by anything."""
    largest: dict[str, Factor] = {}
    for factor in chain.from_iterable(factors for _, factors in terms):
        there = largest.get(factor.text)
        if factor.exponent < 0.0 and (there is None or there.exponent < -factor.exponent):
            largest[factor.text] = Factor(factor.base, -factor.exponent)
    return list(largest.values())


def _key(factors: Sequence[Factor]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((factor.text, factor.exponent) for factor in factors))


def _collected(terms: Sequence[Term]) -> list[Term]:
    """Return terms of which no two have the same factors."""
    sums: dict[tuple[tuple[str, float], ...], Term] = {}
    for number, factors in terms:
        key = _key(factors)
        if key in sums:
            total = sums[key][0] + number
            gone = abs(total) <= 1e-14 * max(abs(number), abs(sums[key][0]))
            sums[key] = (0.0 if gone else clean(total), factors)
        else:
            sums[key] = (number, factors)
    return [term for term in sums.values() if term[0] != 0.0]


def _without(factors: Sequence[Factor], gone: Sequence[Factor]) -> list[Factor]:
    """Return factors divided by others; only those of the same base can be."""
    left = {factor.text: factor for factor in factors}
    for factor in gone:
        if factor.text in left:
            there = left[factor.text]
            exponent = there.exponent - factor.exponent
            if abs(exponent) < abs(there.exponent) and exponent * there.exponent >= 0.0:
                left[factor.text] = Factor(there.base, exponent)
    return [factor for factor in left.values() if factor.exponent != 0.0]


def _times(one: Term, other: Term, exponent: float) -> Term:
    """Return one product times, or divided by, another."""
    number = one[0] * other[0] if exponent > 0 else one[0] / other[0]
    return number, joined([*one[1], *(Factor(f.base, f.exponent * exponent) for f in other[1])])


def _doubled(term: Term) -> Term:
    return times(term[0], 2.0), term[1]


def _shared(terms: list[Term]) -> Iterator[tuple[Term, set[int]]]:
    """Yield what some terms share, a number and factors, and which terms these are.

    Powers are shared as they are, or several together: of 2*x1 + 3*x1**2 nobody takes x1 out.
    """
    seen: set[object] = set()
    for i, j in combinations(range(len(terms)), 2):
        common = _common(terms[i][1], terms[j][1])
        same = _same(abs(terms[i][0]), abs(terms[j][0]))
        number = abs(terms[i][0]) if same and abs(terms[i][0]) != 1.0 else 1.0
        least = _least_powers(terms[i][1], terms[j][1])
        several = [common, *([one] for one in common if len(common) > 1)]
        if len(least) > 1 and _key(least) != _key(common):
            several.append(least)
        for factors in several:
            which = {k for k, (_, theirs) in enumerate(terms) if _holds(theirs, factors, exactly=factors is not least)}
            alike = {k for k in which if _same(abs(terms[k][0]), number)}
            ratios = [clean(terms[k][0] / number) for k in which]
            alike = which if all(map(_is_short, ratios)) else alike
            for shared, those in ((number, alike if number != 1.0 else which), (1.0, which)):
                key = (frozenset(those), _key(factors), shared)
                if (factors or shared != 1.0) and len(those) > 1 and key not in seen:
                    seen.add(key)
                    yield (shared, factors), those


def _holds(factors: Sequence[Factor], wanted: Sequence[Factor], exactly: bool) -> bool:
    """Whether a product has all the powers that are wanted, or higher ones."""
    if exactly:
        return set(_key(wanted)) <= set(_key(factors))
    return _key(_least_powers(wanted, factors)) == _key(wanted)


def _least_powers(one: Sequence[Factor], other: Sequence[Factor]) -> list[Factor]:
    """Return the highest powers that can be taken out of both products."""
    theirs = {factor.text: factor.exponent for factor in other}
    both = [(factor, theirs.get(factor.text, 0.0)) for factor in one]
    return [Factor(f.base, min(e, f.exponent, key=abs)) for f, e in both if e * f.exponent > 0.0]


def _common(one: Sequence[Factor], other: Sequence[Factor]) -> list[Factor]:
    """Return the powers that both products have."""
    theirs = set(_key(other))
    return [factor for factor in one if (factor.text, factor.exponent) in theirs]
