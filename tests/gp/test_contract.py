import pytest
from deap import base, gp, tools

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.testing import OPERATORS, GrowingContract, HorizontalContract, RegressorContract


class TestGp(RegressorContract, HorizontalContract, GrowingContract):
    def make(self):
        return GpRegressor()


class TestToolbox(RegressorContract, HorizontalContract, GrowingContract):
    def make(self):
        pset = vsr.primitive_set(OPERATORS, 2)
        toolbox = base.Toolbox()
        toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
        toolbox.register("individual", tools.initIterate, Individual, toolbox.expr)
        toolbox.register("mate", vsr.cxOnePoint)
        toolbox.register("mutate", vsr.mutGrow, expr=lambda pset, type_: gp.genFull(pset, 0, 1, type_), pset=pset)
        toolbox.decorate("mutate", vsr.staticLimit(len, 30))
        toolbox.register("evaluate", vsr.evaluateFit, n_starts=0, max_iterations=5)
        toolbox.register("select", vsr.selBestDistinct, n_random=5)
        return vsr.ToolboxRegressor(toolbox, 0.3, 0.9, 40)


def test_the_contract_needs_a_regressor():
    with pytest.raises(TypeError, match="make"):
        RegressorContract()


class _Cheat(GpRegressor):
    """Forgets the mask."""

    def regress(self, task):
        from dataclasses import replace

        bare = [tree.with_mask([1] * len(tree)) for tree in task.candidates]
        return super().regress(replace(task, candidates=bare))


def test_the_contract_notices_a_regressor_that_forgets_the_mask():
    class Cheating(GrowingContract):
        def make(self):
            return _Cheat()

    with pytest.raises(AssertionError):
        Cheating().test_respects_the_mask()


def test_the_contract_notices_a_regressor_that_returns_its_worst_first():
    class Backwards(GpRegressor):
        def regress(self, task):
            return super().regress(task)[::-1]

    class Wrong(RegressorContract):
        def make(self):
            return Backwards()

    with pytest.raises(AssertionError):
        Wrong().test_returns_complete_trees_best_first()
