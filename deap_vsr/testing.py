"""Contract tests for regressors: inherit them, and run them on your own.

::

    from deap_vsr.testing import RegressorContract

    class TestMine(RegressorContract):
        def make(self):
            return MyRegressor()
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from deap_vsr.lab.budget import Budget
from deap_vsr.lab.oracle import CallableOracle
from deap_vsr.lab.trials import Trial
from deap_vsr.search.contract import Candidate, Regressor, Task
from deap_vsr.tree import MaskedTree, Node, is_mutable
from deap_vsr.tree.operators import Array

OPERATORS = ("add", "sub", "mul", "const")


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


class RegressorContract(ABC):
    """What the orchestrator relies on."""

    @abstractmethod
    def make(self) -> Regressor:
        """Return the regressor under test."""

    def test_finds_a_small_formula(self) -> None:
        """A linear law of one variable, from nothing."""
        found = self.make().regress(make_task(lambda X: 3.0 * X[:, 0] + 1.0, columns=(0,)))
        assert found
        assert found[0].errors[0] <= 1e-12

    def test_returns_complete_trees_best_first(self) -> None:
        """Every candidate is a complete masked tree with one error per trial and a row of constants."""
        found = self.make().regress(make_task(lambda X: X[:, 0] * X[:, 1] + X[:, 0], evaluations=5_000))
        for candidate in found:
            assert isinstance(candidate, Candidate)
            candidate.tree.checked()
            assert candidate.errors.shape == (1,)
            assert candidate.constants.shape == (1, candidate.tree.n_constants)
        errors = [float(candidate.errors[0]) for candidate in found]
        assert min(errors) <= 10.0 * errors[0] + 1e-12

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

    def test_uses_only_the_variables_and_operators_it_is_given(self) -> None:
        """New material holds the task's columns and function set only."""
        found = self.make().regress(make_task(lambda X: X[:, 1] ** 2, columns=(1,), evaluations=5_000))
        for candidate in found:
            for node in candidate.tree:
                assert node.name in OPERATORS if node.arity else node.value != "x1"

    def test_passes_a_tree_without_mutable_nodes_on(self) -> None:
        """What is finished stays as it is."""
        tree = MaskedTree.from_infix("x1 + 0.25").with_mask([0, 0, 0])
        found = self.make().regress(make_task(lambda X: X[:, 0] + 0.25, [tree], columns=(1,), evaluations=2_000))
        assert found
        assert list(found[0].tree) == list(tree)

    def test_keeps_to_its_budget_and_counts(self) -> None:
        """Evaluations are counted, and it stops soon after they are used up."""
        task = make_task(lambda X: np.sin(9.0 * X[:, 0]) * X[:, 1], evaluations=4_000)
        self.make().regress(task)
        assert 0 < task.budget.evaluations < 20_000

    def test_does_not_change_its_candidates(self) -> None:
        """Trees share nodes: what is handed in is left alone."""
        tree = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
        before = list(tree)
        self.make().regress(make_task(lambda X: X[:, 0] * X[:, 1], [tree], columns=(1,), evaluations=3_000))
        assert list(tree) == before

    def test_same_seed_same_result_and_the_standard_random_restored(self) -> None:
        """All randomness comes from the task's generator."""
        texts = []
        for _ in range(2):
            state = random.getstate()
            found = self.make().regress(make_task(lambda X: X[:, 0] * X[:, 1] + 1.0, seed=5, evaluations=4_000))
            assert random.getstate() == state
            random.random()  # another state of the standard random must not matter
            texts.append([candidate.tree.to_infix() for candidate in found])
        assert texts[0] == texts[1]
