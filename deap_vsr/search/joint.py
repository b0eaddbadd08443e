"""Joint expansion, as published: a regressor searches all slots of a formula at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.errors import NoValuesError
from deap_vsr.lab.evidence import FreezeRule
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Regressor, Task
from deap_vsr.search.identify import identified
from deap_vsr.search.records import State
from deap_vsr.search.tables import NOTHING, Grown, Known


@dataclass(frozen=True)
class JointOptions:
    """Numbers of joint search. The paper gives K = 5 and a hall of 50; the others are ours.

    What the published method has not is off with ``published``: irrelevant variables ruled out, tied slots, other units
    for y, constants that trade off rewritten, an answer refitted and shortly written, acceptance on a wider domain.
    """

    n_trials: int = 5
    n_points: int = 40
    search_trials: int = 1
    pool_size: int = 10
    hall_size: int = 50
    hall_points: int = 256
    rule: FreezeRule = field(default_factory=FreezeRule)
    restart: bool = True
    published: bool = False


@dataclass(frozen=True)
class Joint:
    """A pool of candidates that a regressor grows on the data of the new split."""

    regressor: Regressor
    options: JointOptions = field(default_factory=JointOptions)

    @property
    def n_starts(self) -> int:
        """Starts, beside the known ones, for fitting what has grown."""
        return 1

    def expand(
        self,
        states: Sequence[State],
        new: tuple[int, ...],
        lab: Lab,
        effort: str = "all",
        known: Known = NOTHING,
    ) -> Iterator[list[Grown]]:
        """Yield the pool that the regressor makes of `states`; those without a formula are none."""
        pool = [state.tree for state in states if not state.empty]
        freed = (*states[0].freed, *new)

        def draw(rng: np.random.Generator) -> list[Trial]:
            return lab.trials(freed, self.options.search_trials, self.options.n_points, rng=rng)

        # Where nothing is frozen nothing is known to be right, and a pool without slots cannot grow: all may be needed.
        columns = new if any(tree.slots and not all(tree.mask) for tree in pool) else freed
        refused = [state.tree for state in states if not state.holds]
        task = Task(
            pool, draw, lab.function_set, columns, lab.n_vars, lab.budget, known.target, lab.rng, effort, lab.evidence,
            tell=known.tell, resume=known.resume, refused=refused,
        )  # fmt: skip
        found = self.regressor.regress(task)[: self.options.pool_size]
        yield [Grown(candidate.tree, states[0], candidate.constants[:1]) for candidate in found]

    def check(self, grown: Sequence[Grown], freed: Sequence[int], lab: Lab, times: int = 1) -> Dataset | None:
        """Return K fresh trials, each at a setting of its own; None if there are none."""
        try:
            return Dataset.of(lab.trials(freed, self.options.n_trials, times * self.options.n_points))
        except NoValuesError:
            return None

    def settled(self, outcome: Fit, data: Dataset, lab: Lab) -> Fit | None:
        """Return the fit rewritten into constants that the data determine; as published, as it is."""
        return identified(outcome, data, lab) if lab.pset is None and not self.options.published else outcome
