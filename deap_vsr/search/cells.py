"""Slots at values of the next variable, from as few rows of the freed ones as tell them apart."""

from __future__ import annotations

from collections.abc import Sequence, Set
from copy import copy

import numpy as np
from scipy.linalg import qr

from deap_vsr.engine.fitting import Dataset, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.engine.trials import spread
from deap_vsr.lab.evidence import ROUNDING, STILL, STILL_ERRORS
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.records import State
from deap_vsr.search.tables import SlotTables
from deap_vsr.search.ties import factor_ties
from deap_vsr.tree import Constant, MaskedTree, is_open
from deap_vsr.tree.operators import Array, Flags
from deap_vsr.tree.tidy import operands_of

#: A row tells of a constant if it tells at least this share of what the best row does.
TELLS = 1e-3
#: At a random setting a number of so few digits is no accident: it is one of the law's own.
SHORT_DIGITS, SHORT_ROOM = 3, 1e-11
#: Values without an answer are replaced so often, and so many of the nearest are tried to follow constants from.
RETRIES = 3
#: Rows beyond the constants that check them, where they do not enter linearly, and within what oscillates: sin(C*x)
#: fits two rows with many C.
CHECKS, CHECKS_OF_WAVES = 1, 2
#: From one value to the next constants within what oscillates are followed by halving the way, so often at the most: a
#: phase of 200 radians may move by one.
HALVINGS = 9
WAVES = {"sin", "cos", "tan"}
#: A phase is the same a turn further, and no row tells: it is followed from near, the first of these parts of the way
#: to the nearest value from which it can be, in steps that are so many times as long as the one before at the most.
NEAR, STRIDE = (2.0**-4, 2.0**-8, 2.0**-12, 2.0**-16, 2.0**-20), 2.0
#: Phases are extrapolated by polynomials through so many known values at the most, and a stride is as long as those
#: through all and through one less agree to so many radians; what is found is within so many of them.
MOST_KNOWN, AGREED, TURNED = 6, 0.3, 1.5
#: Steps to a value at the most: most values take some five; and by how much a step is shortened that cannot be told. By
#: hand.
MOST_STEPS, SHORTER = 36, 0.7


class Cells:
    """The open constants of a formula at values of the next variable, from as few rows of the freed ones as do."""

    def __init__(self, state: State, column: int, anchor: Array, lab: Lab, checked: bool) -> None:
        self.freed, self.column, self.anchor, self.lab, self.checked = state.freed, column, anchor, lab, checked
        self.careful = self.shifted = False
        self._take(state.tree)

    def _take(self, tree: MaskedTree) -> None:
        """Fit a formula at the anchor's own value of the new variable, to all that is known there."""
        self.tree = tree
        self.at_anchor, self.here, self.errors_here = self._fitted(tree, self._rows(self.anchor[self.column]))

    def _rows(self, value: float) -> Array:
        """Return the rows that are known at a value of the new variable, what is held at the anchor."""
        there = self.anchor.copy()
        there[self.column] = value
        X = self.lab.log.X[self.lab.log.good]
        return np.unique(X[is_held(X, there, self.freed)], axis=0)

    def _fitted(self, tree: MaskedTree, rows: Array, starts: Array | None = None) -> tuple[Trial, Array | None, Array]:
        """Return answers at rows, the constants that fit them, None if none do, and how far rounding moves those."""
        lab = self.lab
        trial = Trial(rows, lab.ask(rows), tuple(self.freed))
        nothing = np.full(tree.n_constants, np.nan)
        if not np.isfinite(trial.y).all():
            return trial, None, nothing
        data = Dataset.of([lab.evidence.weighted(trial)])
        outcome = lab.fit(tree, data, starts=np.array([tree.constants]) if starts is None else starts, n_starts=2)
        if not (lab.evidence.fits(outcome, data) and outcome.determined.all()):
            return trial, None, nothing
        return trial, outcome.constants[0], self._uncertain(tree, outcome.constants[0], trial)

    def _jacobian(self, tree: MaskedTree, constants: Array, trial: Trial) -> Array:
        """Return how answers depend on the constants, relative to their own size: (L, n)."""
        data = Dataset.of([trial])
        _, J = residual_model(tree, encoder(self.lab.pset).encode([tree]), data, self.lab.pset)(constants)
        size = np.abs(trial.y)
        return np.asarray(J * spread(data.y, data.weight) / np.maximum(size, 1e-12 * np.max(size, initial=1e-300)))

    def _uncertain(self, tree: MaskedTree, constants: Array, trial: Trial) -> Array:
        """Return how far rounding of the answers may move the constants, (L,)."""
        J = self._jacobian(tree, constants, trial)
        unit = np.maximum(np.linalg.norm(J, axis=1), 1e-300)
        inverse = np.linalg.pinv((J / unit[:, None]).T)  # (L, n)
        return np.asarray(ROUNDING * np.linalg.norm(inverse, axis=1) / unit)

    def begin(self, outwards: Array) -> bool:
        """Find out which constants move at the nearest value from which they can be followed; None may be left."""
        nearest = [float(value) for value in outwards[1 : RETRIES + 1]]
        seen = any(self.look(value) for value in nearest)
        variable = self.lab.variables[self.column]
        anywhere = variable.sampling != "integer" and variable.sign != "both" and not variable.stepped
        if not (self.checked and nearest and anywhere) or (seen and not self.turning.any()):
            return seen
        arguments = arguments_of_waves(self.tree)
        if not any(is_open(node) for argument in arguments for node in argument):
            return seen
        self.careful, self.shifted = True, any(map(has_shift, arguments))
        here, way = float(self.anchor[self.column]), nearest[0] - float(self.anchor[self.column])
        if not self.shifted and any(self.look(here + way / 2.0**k) for k in range(HALVINGS + 1)):
            return True
        return self._begin_near(here, way)

    def _begin_near(self, here: float, way: float) -> bool:
        """Find out which constants move, where a phase can be followed, then further away, where more do."""
        first = next((k for k, part in enumerate(NEAR) if self.look(here + part * way)), None)
        if first is None:
            return False
        for part in NEAR[:first][::-1]:
            assert self.here is not None
            before = copy(self)
            ahead = self.here + (self.there - self.here) * (part * way / (self.first - here))
            if len(ahead) != self.tree.n_constants or not self.look(here + part * way, ahead):
                self.__dict__.update(before.__dict__)
                break
        return True

    @property
    def turning(self) -> Flags:
        """Which of the constants that move are within what oscillates."""
        within = np.zeros(len(self.tree), bool)
        for place, node in enumerate(self.tree):
            if node.arity and node.name in WAVES:
                within[self.tree.searchSubtree(place)] = True
        return np.asarray(self.moving & within[self.tree.open_constants])

    def look(self, value: float, start: Array | None = None) -> bool:
        """Find out which constants move with the new variable, at one value of it, and tie those that move as one."""
        if self.here is None:
            return False
        while True:
            everything = np.ones(self.tree.n_constants, bool)
            spare = CHECKS_OF_WAVES if self.careful else 0
            rows = self._answered(everything, value, self.tree.n_constants + spare)
            if rows is None:
                return False
            begin = self.here if start is None else start
            _, there, errors = self._fitted(self.tree, rows, begin[None])
            if there is None or self.here is None:
                return False
            floor = np.maximum(
                STILL * np.maximum(np.abs(self.here), np.abs(there)), STILL_ERRORS * np.hypot(errors, self.errors_here)
            )
            self.moving: Flags = np.abs(there - self.here) > floor
            self.first, self.there = value, there
            if self.moving.sum() < 2:
                return bool(self.moving.any())
            both, unsure = np.array([self.here, there]), np.array([self.errors_here, errors])
            tied = self._tied(both, unsure)
            if tied is None:
                return True
            self._take(tied)
            start = None
            if self.here is None:
                return False

    def _tied(self, constants: Array, errors: Array) -> MaskedTree | None:
        """Return the formula with slots that move as one made one, their ratios open; None if there are none."""
        constants = np.where(self.moving, constants, np.nan)  # what is still is tied to nothing
        tied = factor_ties(self.tree, constants, errors, self.lab.evidence, self.lab.function_set)
        old = set(map(id, self.tree))
        ratios = [isinstance(node, Constant) and id(node) not in old and not is_short(node.value) for node in tied]
        opened = MaskedTree(
            Constant(node.value, True, True, node.ret) if ratio else node
            for node, ratio in zip(tied, ratios, strict=True)
        )
        return opened if opened.n_constants < len(self.moving) or any(ratios) else None

    def _answered(self, which: Flags, value: float, count: int) -> Array | None:
        """Return rows at a value of the new variable that tell the constants `which` apart, and have answers."""
        useless: set[int] = set()
        for _ in range(RETRIES):
            chosen = self._telling(which, value, count, useless)
            if chosen is None:
                return None
            there = self._at(value)[chosen]
            y = self.lab.ask(there)
            # Where y is nothing, as exp(-1000) is, it tells nothing.
            bad = ~np.isfinite(y) | (np.abs(y) < np.finfo(float).tiny)
            if not bad.any():
                return there
            useless |= {i for i, without in zip(chosen, bad, strict=True) if without}
        return None

    def _at(self, value: float) -> Array:
        """Return the rows that are known at the anchor's value of the new variable, with another value of it."""
        there = self.at_anchor.X.copy()
        there[:, self.column] = value
        return there

    def _telling(self, which: Flags, value: float, count: int, useless: Set[int]) -> list[int] | None:
        """Return `count` rows that tell the constants `which` apart; None if there are none.

        By a pivoted QR decomposition of the Jacobian at the rows that are known at the anchor's value: those that are
        known at `value` too come first, then the others that tell most. Rows beyond as many as there are constants
        are there to check.
        """
        assert self.here is not None
        J = self._jacobian(self.tree, self.here, self.at_anchor)[which]
        J = J / np.maximum(np.linalg.norm(J, axis=1), 1e-300)[:, None]
        _, asked = self.lab.log.known(self._at(value))
        least = TELLS * float(np.max(np.linalg.norm(J, axis=0)))
        chosen: list[int] = []
        for group in (np.flatnonzero(asked), np.arange(J.shape[1])):
            rows = [int(i) for i in group if i not in chosen and i not in useless]
            wanted = min(count, len(J)) - len(chosen)
            if not rows or wanted <= 0:
                continue
            rest = J[:, rows]
            if chosen:
                basis = np.linalg.qr(J[:, chosen])[0]
                rest = rest - basis @ (basis.T @ rest)
            _, R, order = qr(rest, mode="economic", pivoting=True)
            n_good = int(np.sum(np.abs(np.diag(R)) > least))
            chosen += [rows[i] for i in order[: min(n_good, wanted)]]
        if len(chosen) < min(count, len(J)):
            return None
        if self.careful:
            return self._apart(chosen, count, useless)
        others = [i for i in np.argsort(~asked, kind="stable") if i not in chosen and i not in useless]
        return chosen + [int(i) for i in others[: count - len(chosen)]]

    def _apart(self, chosen: list[int], count: int, useless: Set[int]) -> list[int]:
        """Return rows and others, `count` in all, at which what oscillates is taken of something else.

        sin(C + x) with the same x everywhere has two C, whatever it is multiplied with.
        """
        assert self.here is not None
        arguments = arguments_of_waves(self.tree.with_constants(self.here))
        values = np.array([argument.evaluate(self.at_anchor.X, self.lab.pset) for argument in arguments])
        chosen = list(chosen)
        while len(chosen) < min(count, values.shape[1] - len(useless)):
            apart = np.min(np.max(np.abs(values[:, :, None] - values[:, None, chosen]), axis=0), axis=1)
            apart[[*chosen, *useless]] = -1.0
            apart[np.isnan(apart)] = -1.0
            chosen.append(int(np.argmax(apart)))
        return chosen

    def tables(self, grid: Array, outwards: Array) -> SlotTables | None:
        """Return the constants at all values of the grid; they are followed from one to the next, `outwards`."""
        assert self.here is not None
        slots, errors = np.tile(self.here, (1, len(grid), 1)), np.tile(self.errors_here, (1, len(grid), 1))
        known = {float(self.anchor[self.column]): self.here[self.moving], float(self.first): self.there[self.moving]}
        for value in outwards[1:]:
            there, unsure = self._followed(float(value), known)
            if there is None:
                return None
            j = int(np.flatnonzero(grid == value)[0])
            slots[0, j, self.moving], errors[0, j, self.moving] = there, unsure
        return SlotTables(self.column, grid, slots, errors, self.anchor[None], self.lab.evidence, self.tree)

    def _followed(self, value: float, known: dict[float, Array]) -> tuple[Array | None, Array]:
        """Return the moving constants at a value, and how far rounding moves them; what is `known` of others grows.

        At once where no phase may be a turn off, else, and where that fails within a wave, step by step.
        """
        there, unsure = (None, np.empty(0)) if self.shifted else self._at_once(value, known)
        return self._by_steps(value, known) if there is None and self.careful else (there, unsure)

    @property
    def _n_rows(self) -> int:
        """Rows at a value: as many as there are constants, and some to check them."""
        checks = 0 if not self.checked or self._is_linear() else CHECKS_OF_WAVES if self.careful else CHECKS
        return int(self.moving.sum()) + checks

    def _at_once(self, value: float, known: dict[float, Array]) -> tuple[Array | None, Array]:
        """Follow constants from the nearest values, halving the way within waves."""
        assert self.here is not None
        tree, goal = with_literals(self.tree, self.here, ~self.moving), value
        for _ in range(2 * HALVINGS if self.careful else 1):
            if self.lab.budget.used_up(asking=False) is not None:
                break
            rows = self._answered(self.moving, goal, self._n_rows)
            if rows is None:
                break
            _, there, unsure = self._fitted(tree, rows, _extrapolated(known, goal))
            if there is None:
                goal = 0.5 * (goal + min(known, key=lambda other: abs(other - goal)))
                continue
            known[goal] = there
            if goal == value:
                return there, unsure
            goal = value
        return None, np.empty(0)

    def _by_steps(self, value: float, known: dict[float, Array]) -> tuple[Array | None, Array]:
        """Follow constants within waves by steps as long as what they are taken of can be told beforehand."""
        assert self.here is not None
        tree = with_literals(self.tree, self.here, ~self.moving)
        goal = self._ahead(value, known, tree)
        for _ in range(MOST_STEPS):
            if self.lab.budget.used_up(asking=False) is not None:
                break
            rows = self._answered(self.moving, goal, self._n_rows)
            if rows is None:
                break
            start = _predicted(known, goal)[0]
            _, there, unsure = self._fitted(tree, rows, start[None])
            if there is None or self._turned(tree, there, start, goal) > TURNED:
                goal = 0.5 * (goal + min(known, key=lambda other: abs(other - goal)))
                continue
            known[goal] = there
            if goal == value:
                return there, unsure
            goal = self._ahead(value, known, tree)
        return None, np.empty(0)

    def _ahead(self, value: float, known: dict[float, Array], tree: MaskedTree) -> float:
        """Return the value, or one on the way to it that is not too far from what is known."""
        near, other = sorted(known, key=lambda known_value: abs(known_value - value))[:2]
        stride = STRIDE * abs(near - other)
        if abs(value - near) <= stride:
            return value
        shortest = near + float(np.copysign(stride, value - near))
        goal = value
        while len(known) > 2 and abs(goal - near) > stride:
            all_of_them, one_less = _predicted(known, goal)
            if self._turned(tree, all_of_them, one_less, goal) <= AGREED:
                return goal
            goal = near + SHORTER * (goal - near)
        return shortest

    def _turned(self, tree: MaskedTree, one: Array, other: Array, value: float) -> float:
        """Return by how many radians what waves are taken of differs at a value, with two sets of constants."""
        X = self._at(value)
        arguments = (arguments_of_waves(tree.with_constants(constants)) for constants in (one, other))
        with np.errstate(all="ignore"):
            apart = [
                np.max(np.abs(first.evaluate(X, self.lab.pset) - second.evaluate(X, self.lab.pset)))
                for first, second in zip(*arguments, strict=True)
            ]
        return float(np.nan_to_num(np.max(apart, initial=0.0), nan=np.inf))

    def _is_linear(self) -> bool:
        """Whether the formula is linear in the constants that move: its Jacobian is the same at both values."""
        assert self.here is not None
        one, other = (
            self._jacobian(self.tree, constants, self.at_anchor)[self.moving]
            for constants in (self.here, np.where(self.moving, self.there, self.here))
        )
        return bool(np.allclose(one, other, rtol=1e-6, atol=0.0))


def arguments_of_waves(tree: MaskedTree) -> list[MaskedTree]:
    """Return what functions that oscillate are taken of."""
    places = [i + 1 for i, node in enumerate(tree) if node.arity and node.name in WAVES]
    return [MaskedTree(tree[tree.searchSubtree(place)]) for place in places]


def has_shift(tree: MaskedTree) -> bool:
    """Whether one of the terms of a sum is an open constant."""
    if tree[0].name not in ("add", "sub") or not tree[0].arity:
        return is_open(tree[0])
    return any(has_shift(MaskedTree(operand)) for operand in operands_of(tree))


def _extrapolated(known: dict[float, Array], value: float) -> Array:
    """Return starts for constants at a value of the variable: by a power of it, a line, and the nearest."""
    near, far = map(np.float64, sorted(known, key=lambda other: abs(other - value))[:2])  # either may be 0
    one, other = known[near], known[far]
    with np.errstate(all="ignore"):
        exponent = np.log(np.abs(other / one)) / np.log(abs(far / near))
        power = one * np.abs(value / near) ** exponent
        line = one + (other - one) / (far - near) * (value - near)
    return np.array([row for row in (power, line, one) if np.isfinite(row).all()])


def _predicted(known: dict[float, Array], value: float) -> Array:
    """Return constants at a value by polynomials through the nearest known values, and through one less of them."""
    nearest = sorted(known, key=lambda other: abs(other - value))[:MOST_KNOWN]
    x, y = np.array(nearest), np.array([known[other] for other in nearest])
    rows = []
    for n in (len(x), len(x) - 1):
        shares = [np.prod([(value - x[k]) / (x[j] - x[k]) for k in range(n) if k != j]) for j in range(n)]
        rows.append(np.array(shares) @ y[:n])
    return np.array(rows)


def short_value(value: float) -> float:
    """Return a number with few digits."""
    return float(f"{value:.{SHORT_DIGITS - 1}e}")


def is_short(value: float) -> bool:
    """Whether a number has few digits, but for rounding."""
    return abs(value - short_value(value)) <= SHORT_ROOM * abs(value)


def is_held(X: Array, anchor: Array, freed: Sequence[int]) -> Flags:
    """Return which points have everything but `freed` at the anchor."""
    held = [column for column in range(len(anchor)) if column not in freed]
    return np.asarray((X[:, held] == anchor[held]).all(axis=1), dtype=bool)


def with_literals(tree: MaskedTree, values: Array, which: Flags) -> MaskedTree:
    """Return the tree with some of its open constants at values that are no longer fitted."""
    nodes = list(tree)
    for position, value, fixed in zip(tree.open_constants, values, which, strict=True):
        if fixed:
            nodes[position] = Constant(float(value), False, False, nodes[position].ret)
    return MaskedTree(nodes)
