"""Contract tests for regressors and oracles: inherit those of what yours can do, and run them.

::

    from deap_vsr.testing import GrowingContract, RegressorContract

    class TestMine(RegressorContract):
        def make(self):
            return MyRegressor()

A regressor that solves slots need not grow formulas that are there (:class:`GrowingContract`), or make do with several
variables (:class:`HorizontalContract`). An oracle need only answer (:class:`OracleContract`).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import CallableOracle, Oracle
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.tree import MaskedTree, Node, is_mutable
from deap_vsr.tree.operators import Array

OPERATORS = ("add", "sub", "mul", "const")

#: GP and MCTS charge for nodes: of two formulas that fit about as well, the shorter one is first.
WORSE = 10.0


def make_task(
    law: Callable[[Array], Array],
    candidates: Sequence[MaskedTree] = (),
    columns: tuple[int, ...] = (0, 1),
    seed: int = 0,
    evaluations: int = 30_000,
) -> Task:
    """Return a task on two variables in [0.5, 3], bounded by evaluations."""
    oracle = CallableOracle(law, [(0.5, 3.0)] * 2, OPERATORS)

    def draw(rng: np.random.Generator) -> list[Trial]:
        X = rng.uniform(0.5, 3.0, (30, 2))
        return [Trial(X, oracle.evaluate(X), (0, 1))]

    budget = Budget(evaluations=evaluations)
    return Task(list(candidates), draw, OPERATORS, columns, 2, budget, 1e-12, np.random.default_rng(seed))


def _frozen(tree: Sequence[Node]) -> list[str]:
    return [node.name if node.arity else str(node.value) for node in tree if not is_mutable(node)]


class _Contract(ABC):
    @abstractmethod
    def make(self) -> Regressor:
        """Return the regressor under test."""


class RegressorContract(_Contract):
    """What every search relies on: one variable, from nothing."""

    def test_finds_a_small_formula(self) -> None:
        """A linear law of one variable, from nothing."""
        found = self.make().regress(make_task(lambda X: 3.0 * X[:, 0] + 1.0, columns=(0,)))
        assert found
        assert found[0].errors[0] <= 1e-12

    def test_returns_complete_trees_best_first(self) -> None:
        """Every candidate is a complete masked tree with one error per trial and a row of constants.

        What solves the task, if something does, is first.
        """
        task = make_task(lambda X: X[:, 0] ** 2 + X[:, 0] + 1.0, columns=(0,), evaluations=5_000)
        found = self.make().regress(task)
        for candidate in found:
            assert isinstance(candidate, Candidate)
            candidate.tree.checked()
            assert candidate.errors.shape == (1,)
            assert candidate.constants.shape == (1, candidate.tree.n_constants)
        errors = [float(candidate.errors[0]) for candidate in found]
        assert not errors or max(errors[0], task.target) <= max(min(errors), task.target) * WORSE

    def test_uses_only_the_variables_and_operators_it_is_given(self) -> None:
        """New material holds the task's columns and function set only."""
        found = self.make().regress(make_task(lambda X: X[:, 1] ** 2, columns=(1,), evaluations=5_000))
        for candidate in found:
            for node in candidate.tree:
                assert node.name in OPERATORS if node.arity else node.value != "x1"

    def test_keeps_to_its_budget_and_counts(self) -> None:
        """Evaluations are counted, and it stops soon after they are used up."""
        task = make_task(lambda X: np.sin(9.0 * X[:, 0]) * np.exp(X[:, 0]), columns=(0,), evaluations=4_000)
        self.make().regress(task)
        assert 0 < task.budget.evaluations < 40_000

    def test_same_seed_same_result_and_the_standard_random_restored(self) -> None:
        """All randomness comes from the task's generator."""
        texts = []
        for _ in range(2):
            state = random.getstate()
            task = make_task(lambda X: X[:, 0] ** 2 + 1.0, columns=(0,), seed=5, evaluations=4_000)
            found = self.make().regress(task)
            assert random.getstate() == state
            random.random()  # another state of the standard random must not matter
            texts.append([candidate.tree.to_infix() for candidate in found])
        assert texts[0] == texts[1]


class HorizontalContract(_Contract):
    """What joint search relies on: several variables at once."""

    def test_finds_a_small_formula_of_two_variables(self) -> None:
        """A product and a term, from nothing."""
        found = self.make().regress(make_task(lambda X: X[:, 0] * X[:, 1] + X[:, 0], evaluations=20_000))
        assert found
        assert found[0].errors[0] <= 1e-12

    def test_keeps_to_its_budget_with_several_variables(self) -> None:
        """Evaluations are counted, and it stops soon after they are used up."""
        task = make_task(lambda X: np.sin(9.0 * X[:, 0]) * X[:, 1], evaluations=4_000)
        self.make().regress(task)
        assert 0 < task.budget.evaluations < 20_000


class GrowingContract(_Contract):
    """What joint search relies on: formulas that are there grow at their mutable nodes, and only there."""

    def test_respects_the_mask(self) -> None:
        """Frozen nodes are in every candidate, in their order."""
        tree = MaskedTree.from_infix("x1*C + 0.25").with_mask([0, 0, 0, 1, 0])
        task = make_task(lambda X: X[:, 0] * (1.0 + 2.0 * X[:, 1]) + 0.25, [tree], columns=(1,))
        found = self.make().regress(task)
        assert found
        assert found[0].errors[0] <= 1e-12
        assert all(_frozen(candidate.tree) == _frozen(tree) for candidate in found)

    def test_keeps_frozen_functions_around_a_slot(self) -> None:
        """Also where everything below a frozen node is constants."""
        tree = MaskedTree.from_infix("x1*C + 0.5*n2(C)").with_mask([0, 0, 0, 1, 0, 0, 0, 1])
        task = make_task(lambda X: X[:, 0] * X[:, 1] + X[:, 1] ** 2, [tree], columns=(1,), evaluations=10_000)
        for candidate in self.make().regress(task):
            assert _frozen(candidate.tree) == _frozen(tree)

    def test_passes_a_tree_without_mutable_nodes_on(self) -> None:
        """What is finished stays as it is."""
        tree = MaskedTree.from_infix("x1 + 0.25").with_mask([0, 0, 0])
        found = self.make().regress(make_task(lambda X: X[:, 0] + 0.25, [tree], columns=(1,), evaluations=2_000))
        assert found
        assert list(found[0].tree) == list(tree)

    def test_does_not_change_its_candidates(self) -> None:
        """Trees share nodes: what is handed in is left alone."""
        tree = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
        before = list(tree)
        self.make().regress(make_task(lambda X: X[:, 0] * X[:, 1], [tree], columns=(1,), evaluations=3_000))
        assert list(tree) == before


class OracleContract(ABC):
    """What a laboratory relies on: `variables`, and ``evaluate(X)``."""

    @abstractmethod
    def make(self) -> Oracle:
        """Return a fresh oracle; those made one after the other answer alike."""

    def _points(self, oracle: Oracle, n_points: int = 7) -> Array:
        return draw_inputs(oracle.variables, n_points, np.random.default_rng(0))

    def test_has_variables_with_names_of_their_own(self) -> None:
        """At least one, and domains that are not empty."""
        variables = tuple(self.make().variables)
        assert variables
        assert len({variable.name for variable in variables}) == len(variables)
        assert all(variable.low < variable.high for variable in variables)

    def test_answers_every_point_with_a_number(self) -> None:
        """X of shape (n_points, n_vars) gives floats of shape (n_points,), NaN and inf among them."""
        oracle = self.make()
        for n_points in (1, 7):
            y = np.asarray(oracle.evaluate(self._points(oracle, n_points)))
            assert y.shape == (n_points,)
            assert y.dtype.kind == "f"

    def test_leaves_the_points_alone(self) -> None:
        """X belongs to who asks."""
        oracle = self.make()
        X = self._points(oracle)
        before = X.copy()
        oracle.evaluate(X)
        assert np.array_equal(X, before)

    def test_a_laboratory_can_be_opened(self) -> None:
        """It asks, counts and keeps what was answered."""
        lab = Lab(self.make())
        lab.begin()
        (trial,) = lab.trials(range(lab.n_vars), 1, 5)
        assert len(trial.y) == 5
        assert lab.budget.queries == len(lab.log) > 5


class RepeatingOracleContract(OracleContract):
    """Of an oracle whose answers repeat: a point asked again gives the same number, whatever was asked between."""

    def test_gives_the_same_answer_each_time(self) -> None:
        """Alone or among others, in any order."""
        oracle = self.make()
        X = self._points(oracle)
        y = np.asarray(oracle.evaluate(X))
        assert np.array_equal(oracle.evaluate(X[::-1])[::-1], y, equal_nan=True)
        assert np.array_equal([float(oracle.evaluate(x[None])[0]) for x in X], y, equal_nan=True)


class NoisyOracleContract(OracleContract):
    """Of an oracle with noise of its own: asking again measures again, and a fresh one begins anew."""

    def test_measures_again(self) -> None:
        """A point asked twice has two answers."""
        oracle = self.make()
        X = np.repeat(self._points(oracle, 1), 8, axis=0)
        assert np.ptp(oracle.evaluate(X)) > 0

    def test_a_fresh_one_answers_alike(self) -> None:
        """Its noise is seeded: a run can be repeated."""
        first, second = self.make(), self.make()
        X = self._points(first)
        assert np.array_equal(first.evaluate(X), second.evaluate(X), equal_nan=True)

    def test_skips_what_was_read_from_a_log(self) -> None:
        """``skip(n)``, where it has one: the noise of the next points is what it would have been."""
        first, second = self.make(), self.make()
        skip = getattr(second, "skip", None)
        X = self._points(first, 6)
        y = np.asarray(first.evaluate(X))
        if skip is not None:
            skip(4)
            assert np.array_equal(second.evaluate(X[4:]), y[4:], equal_nan=True)
