"""The systematic regressor: stages in order, from cheap to expensive, behind the shared contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit, fit
from deap_vsr.forms.rewording import reworded
from deap_vsr.forms.stage import STAGES, Stage
from deap_vsr.forms.table import Form, Step, Table, starts_of
from deap_vsr.forms.widening import lean, widened
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.search.identify import without_idle_terms
from deap_vsr.search.prune import unlike
from deap_vsr.tree import MaskedTree, variable

#: In noise, so many steps of a stage, or of all cheap ones, are looked through once a form fits.
STEPS_IN_NOISE = 60
#: And where rivals are wanted: of those of error functions, taken for a law, more than half came up between the two.
STEPS_FOR_RIVALS = 400
#: Where a form of so few constants fits in noise, the rarer functions of a large set are not tried.
SHORT = 2
#: A form of one constant and so many nodes at most is plain: C*x**2, C/sqrt(x). Where one fits in noise, one step is
#: taken of each stage that is not cheap.
PLAIN_NODES = 5
#: What a step of a stage that is not cheap tries, about: 1,200 were seen. Those of sums try no more than is left.
LARGE_STEP = 1_500


@dataclass(frozen=True)
class FormsRegressor:
    """One-variable forms as a regressor of the shared contract.

    A task is solved that asks for a formula of one variable with nothing to start from: a slot's table. ``keep`` forms
    are returned at most, in noise ``keep_in_noise``. ``stages`` are tried in their order;
    :mod:`deap_vsr.forms.stage` says how to write one.
    """

    keep: int = 3
    keep_in_noise: int = 12
    stages: tuple[Stage, ...] = field(default=STAGES, repr=False)

    def regress(self, task: Task) -> list[Candidate]:
        """Return the first forms that fit in every trial, cheapest first; none if there are none."""
        if task.candidates or len(task.columns) != 1:
            return []
        left = task.budget.evaluations_left
        table = Table.of(task.draw(task.rng), task.columns[0], task.function_set, task.evidence, left)
        data = table.dataset()
        found = self._first(table, data, task) if task.evidence.certain else self._best(table, data, task)
        return [_candidate(outcome, task.columns[0]) for outcome in found]

    def _first(self, table: Table, data: Dataset, task: Task) -> list[Fit]:
        """Return the fits of the first step that has some."""
        wanted = [stage for stage in self.stages if stage.is_wanted(task.effort)]
        for forms, tried in (step for _, _, steps in _tried(wanted, table) for step in steps):
            task.budget.count(tried)
            good = []
            for form in forms:
                if task.budget.evaluations_left() <= 0:
                    break
                outcome = self._fitted(form, table, data, task)
                if outcome is not None:
                    good.append((not outcome.determined.all(), outcome.tree.n_constants, form.cost, outcome))
            if good:
                good.sort(key=lambda item: item[:3])
                distinct = {item[3].tree.to_infix(skeleton=True): item[3] for item in reversed(good)}
                best = list(reversed(distinct.values()))[: self.keep]
                return self._with_other_words(best, table, data, task)
            if task.budget.used_up():
                break
        return []

    def _with_other_words(self, best: list[Fit], table: Table, data: Dataset, task: Task) -> list[Fit]:
        """Return fits, and those of the first in other words: its slots may have forms where the first's have none."""
        before: list[Fit] = []
        behind: list[Fit] = []
        for tree, starts, first in reworded(best[0].tree, best[0].constants, table.allowed):
            again = fit(tree, data, starts=starts, n_starts=0)
            task.budget.count(again.evaluations)
            if table.holds(again, data) and again.determined.all():
                (before if first else behind).append(again)
        return [*before, *best, *behind]

    def _best(self, table: Table, data: Dataset, task: Task) -> list[Fit]:
        """Return the best fits of all stages by what they leave and how long they are: in noise many forms fit."""
        good: list[Fit] = []
        seen: Counter[str] = Counter()
        wanted = [stage for stage in self.stages if stage.few_constants and stage.is_wanted(task.effort)]
        in_a_row = [place for place, (_, group) in enumerate(groupby(self.stages, key=_effort)) for _ in group]
        place = dict(zip(map(id, self.stages), in_a_row, strict=True))
        for stage, names, steps in _tried(wanted, table):
            row = f"{names} {place[id(stage)] if stage.effort == 'cheap' else stage.name}"
            most = STEPS_FOR_RIVALS if task.rivals else STEPS_IN_NOISE
            if stage.effort != "cheap" and any(map(_is_plain, good)):
                most = 0
            if (good and seen[row] > most) or (names != lean(names) and any(map(_is_short, good))):
                continue  # what rare functions say as well is no shorter
            if not task.rivals and any(outcome.tree.n_constants < stage.n_constants for outcome in good):
                continue
            for forms, tried in steps:
                task.budget.count(tried)
                fitted = [self._fitted(form, table, data, task) for form in forms if task.budget.evaluations_left() > 0]
                good += [outcome for outcome in fitted if outcome is not None and outcome.determined.all()]
                seen[row] += 1
                if task.budget.used_up(asking=False) or (good and seen[row] > most):
                    break
            if task.budget.used_up(asking=False):
                break
        good.sort(key=lambda outcome: task.evidence.price(outcome, data, tied=False))
        return unlike(good, self.keep_in_noise)

    def _fitted(self, form: Form, table: Table, data: Dataset, task: Task) -> Fit | None:
        """Return the fit of a form, without terms that do nothing; None if it does not hold in every trial."""
        tree = MaskedTree(form.nodes)
        if tree.n_constants >= table.n_points - 1:
            return None
        starts = form.starts
        if form.elsewhere is not None:  # first where it was found, and only then everywhere
            first = fit(tree, data.trial(0), starts=starts, n_starts=0)
            task.budget.count(first.evaluations)
            if not table.holds(first, data.trial(0)):
                return None
            starts = np.concatenate([first.constants, starts_of(form.elsewhere()).reshape(-1, starts.shape[1])])
        outcome = fit(tree, data, starts=starts, n_starts=0)
        task.budget.count(outcome.evaluations)
        if not table.holds(outcome, data, 1e8 if form.pruned else 4.0):
            return None
        shorter = without_idle_terms(outcome, data)
        if shorter is not None:
            again = fit(shorter[0], data, starts=shorter[1], n_starts=0)
            task.budget.count(again.evaluations)
            if table.holds(again, data, 1e8):
                return again
        return outcome


def _tried(stages: Iterable[Stage], table: Table) -> Iterator[tuple[Stage, tuple[str, ...], Iterator[Step]]]:
    """Yield one stage after the other with its operators and its steps; of many operators with the core first.

    What tries much at once is not begun when little is left.
    """
    tables: dict[tuple[str, ...], Table] = {}
    for stage, names in widened(list(stages), table.function_set):
        steps = stage.steps(tables.setdefault(names, table.in_operators(names)))
        yield stage, names, steps if stage.effort == "cheap" else _while_affordable(steps, table)


def _while_affordable(steps: Iterator[Step], table: Table) -> Iterator[Step]:
    while table.left() >= LARGE_STEP:
        step = next(steps, None)
        if step is None:
            return
        yield step


def _effort(stage: Stage) -> str:
    return stage.effort


def _is_short(outcome: Fit) -> bool:
    return outcome.tree.n_constants <= SHORT


def _is_plain(outcome: Fit) -> bool:
    return outcome.tree.n_constants <= 1 and len(outcome.tree) <= PLAIN_NODES


def _candidate(outcome: Fit, column: int) -> Candidate:
    nodes = [node if node.arity or not isinstance(node.value, str) else variable(column + 1) for node in outcome.tree]
    return Candidate(MaskedTree(nodes), outcome.errors, outcome.constants)


@dataclass(frozen=True)
class Chain:
    """Regressors one after the other: the first that solves the task, else the best of all."""

    regressors: tuple[Regressor, ...]

    def regress(self, task: Task) -> list[Candidate]:
        """Return the candidates of the first regressor one of which reaches the target."""
        everything: list[Candidate] = []
        for regressor in self.regressors:
            found = regressor.regress(task)
            if found and (found[0].errors <= task.target).all():
                return found
            everything += found
            if task.effort != "all" or task.budget.used_up():
                break
        return sorted(everything, key=lambda candidate: float(np.max(candidate.errors)))
