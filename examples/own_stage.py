"""A shape that you expect, as a stage of your own: the radiation of a black body, C*x**3/(exp(C*x) - 1).

The stages of the package have it too, but late, where they scan a constant within a function. As an entry of its own it
is tried as early as you like, on exact data and in noise.
"""

import numpy as np

from deap_vsr import CallableOracle, MaskedTree, sample_trials
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.stage import STAGES, Stage
from deap_vsr.forms.table import Form
from deap_vsr.lab.budget import Budget
from deap_vsr.search.contract import Task

OPERATORS = ["add", "sub", "mul", "div", "n3", "exp", "const"]
PLANCK = MaskedTree.from_infix("C*x1**3/(exp(C*x1) - 1)")


def planck(target):
    """Propose the shape, from starts that are spread over decades in units of x."""
    starts = [[1.0, 10.0**power / np.max(np.abs(target.table.x))] for power in (-1, 0, 1, 2)]
    yield [Form(target.wrap(PLANCK), np.array(starts), cost=len(PLANCK))], 0  # the regressor fits it, and counts that


def main():
    oracle = CallableOracle(lambda X: 0.8 * X[:, 0] ** 3 / np.expm1(1.7 * X[:, 0]), [(0.2, 5.0)], OPERATORS)
    rng = np.random.default_rng(0)
    trials = sample_trials(oracle, free=[0], n_trials=1, n_points=30, rng=rng)
    task = Task([], lambda rng: trials, tuple(oracle.function_set), (0,), 1, Budget(), 1e-12, rng, effort="cheap")
    assert FormsRegressor().regress(task) == []
    mine = Stage("planck", planck, effort="cheap", few_constants=True)
    (found,) = FormsRegressor(stages=(*STAGES, mine)).regress(task)
    print("found:", found.tree.with_constants(found.constants[0]).to_infix())
    return found


if __name__ == "__main__":
    main()
