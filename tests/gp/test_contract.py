import pytest

from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.testing import RegressorContract


class TestGp(RegressorContract):
    def make(self):
        return GpRegressor()


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
    class Cheating(RegressorContract):
        def make(self):
            return _Cheat()

    with pytest.raises(AssertionError):
        Cheating().test_respects_the_mask()
