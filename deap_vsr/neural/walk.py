"""Writing many formulas at once, token by token: what is open, parents, siblings, and what the form forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deap_vsr.neural.tokens import Form, Library
from deap_vsr.tree.operators import Flags, Indices

#: Among the items of a form.
SLOT = -1


@dataclass(frozen=True, eq=False)
class State:
    """Where n formulas are: all that priors and policy see of them, arrays (n,).

    Attributes
    ----------
    parent, sibling : tokens, or L where there is none
    parent_arity : 0 where there is none
    in_trig : whether a trigonometric function is somewhere above
    open : nodes that are to be written in the present slot, the next one included
    room : tokens that the present slot may still get, as many as later slots need kept back
    at_root : whether the next token is the first of its slot
    grown : tokens that the present slot has got
    sampled : tokens that were sampled, in all slots
    constants : open constants among them, those that stay in a slot not counted
    has_variable : whether one of them has a variable
    last_untouched : whether the present slot is the last one, and all others have stayed as they were
    fresh : whether there is no form
    """

    parent: Indices
    sibling: Indices
    parent_arity: Indices
    in_trig: Flags
    open: Indices
    room: Indices
    at_root: Flags
    grown: Indices
    sampled: Indices
    constants: Indices
    has_variable: Flags
    last_untouched: Flags
    fresh: bool


class Walk:
    """B formulas that are being written into the slots of a form, all at once.

    Each has a stack of nodes that are waited for: under which parent, beside which sibling, within a trigonometric
    function or not, and whether it is a left operand, whose token will be the sibling of the node below it.
    """

    def __init__(self, library: Library, form: Form, max_length: int, n_rows: int) -> None:
        self.library, self.form = library, form
        tokens = [SLOT if node is None else library.tokens([node])[0] for node in form.nodes]
        self.items = np.array([*tokens, SLOT])  # one more, so that what is finished may look
        slots = self.items[:-1] == SLOT
        self.slots_after = np.append(slots.sum() - np.cumsum(slots), 0)
        self.n_slots = int(slots.sum())
        self.max_length = max(max_length, self.n_slots)
        self.max_steps = int((~slots).sum()) + self.max_length
        self.parent = np.full((n_rows, self.max_steps + 2), library.empty)
        self.sibling = np.full_like(self.parent, library.empty)
        self.in_trig = np.zeros(self.parent.shape, np.bool_)
        self.is_left = np.zeros_like(self.in_trig)
        self.height = np.ones(n_rows, np.int64)
        self.place, self.open, self.grown, self.sampled, self.constants = np.zeros((5, n_rows), np.int64)
        self.has_variable = np.zeros(n_rows, np.bool_)
        self.rows: Indices = np.arange(n_rows)
        """Those that are not finished."""
        self._enter()

    def _enter(self) -> None:
        """Go on to the next item of the form, where a slot has been filled."""
        rows = self.rows
        between = rows[self.open[rows] == 0]
        begun = between[self.items[self.place[between]] == SLOT]
        self.open[begun] = 1
        self.grown[begun] = 0

    @property
    def forced(self) -> Indices:
        """For each of `rows` the token that the form has there, or SLOT where one is sampled."""
        return np.where(self.open[self.rows] > 0, SLOT, self.items[self.place[self.rows]])

    def state(self) -> State:
        """Return where those that are not finished are."""
        rows = self.rows
        top = self.height[rows] - 1
        parent = self.parent[rows, top]
        arities = np.append(self.library.arities, 0)
        grown, sampled = self.grown[rows], self.sampled[rows]
        after = self.slots_after[self.place[rows]]
        untouched = (sampled == self.n_slots - 1) & ~self.has_variable[rows]
        return State(
            parent,
            self.sibling[rows, top],
            arities[parent],
            self.in_trig[rows, top],
            self.open[rows],
            self.max_length - sampled - after,
            grown == 0,
            grown,
            sampled,
            self.constants[rows],
            self.has_variable[rows],
            (after == 0) & (grown == 0) & untouched,
            self.form.fresh,
        )

    def take(self, tokens: Indices) -> None:
        """Write the next token of each of `rows`: (n,)."""
        library, rows = self.library, self.rows
        arity = library.arities[tokens]
        top = self.height[rows] - 1
        left = self.is_left[rows, top]
        self.sibling[rows[left], top[left] - 1] = tokens[left]
        inside = self.in_trig[rows, top] | library.trigonometric[tokens]
        for operand in (1, 2):
            some = arity >= operand
            at = rows[some], top[some] + operand - 1
            self.parent[at] = tokens[some]
            self.sibling[at] = library.empty
            self.in_trig[at] = inside[some]
            self.is_left[at] = operand == 2
        self.height[rows] += arity - 1

        free = self.open[rows] > 0
        own, token = rows[free], tokens[free]
        self.constants[own] += library.constants[token] & ((self.grown[own] > 0) | self.form.fresh)
        self.has_variable[own] |= library.variables[token]
        self.grown[own] += 1
        self.sampled[own] += 1
        self.open[own] += arity[free] - 1
        filled = rows[self.open[rows] == 0]
        self.place[filled] = np.minimum(self.place[filled] + 1, len(self.items) - 1)
        self.rows = rows[self.height[rows] > 0]
        self._enter()
