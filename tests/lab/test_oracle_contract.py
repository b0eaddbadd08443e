"""Oracles of ours against the contract for everybody's."""

import numpy as np

from deap_vsr import CallableOracle, EquationOracle, Noise, load_equation
from deap_vsr.problems.equation import Variable
from deap_vsr.testing import NoisyOracleContract, OracleContract, RepeatingOracleContract

VARIABLES = [(0.5, 3.0), Variable("x2", 0.1, 10.0, "loguniform", "both"), Variable("x3", 1, 5, "integer")]


def law(X):
    return X[:, 0] * np.log(X[:, 1]) + X[:, 2]  # has no value where x2 < 0


class TestCallableOracle(RepeatingOracleContract):
    def make(self):
        return CallableOracle(law, VARIABLES)


class TestCallableOracleOfOnePoint(RepeatingOracleContract):
    def make(self):
        return CallableOracle(lambda x: x[0] + x[1], [(0.0, 1.0)] * 2, vectorized=False)


class TestNoisyCallableOracle(NoisyOracleContract):
    def make(self):
        return CallableOracle(lambda X: X[:, 0] ** 2, [(0.5, 3.0)] * 2, noise=0.1, seed=3)


class TestCallableOracleWithNoiseOfAnotherKind(NoisyOracleContract):
    def make(self):
        return CallableOracle(lambda X: X[:, 0] ** 2, [(0.5, 3.0)] * 2, noise=Noise(0.1, "laplace"))


class TestEquationOracle(RepeatingOracleContract):
    def make(self):
        return EquationOracle(load_equation("feynman/I.39.22"))


class TestNoisyEquationOracle(NoisyOracleContract):
    def make(self):
        return EquationOracle(load_equation("feynman-unit/I.39.22"), Noise(0.1, relative=True), seed=2)


class Plain:
    """No more than an oracle needs."""

    variables = (Variable("x1", 0.5, 3.0), Variable("x2", 0.5, 3.0))

    def evaluate(self, X):
        return X[:, 0] + 2.0 * X[:, 1]


class TestAnOracleWithNoMoreThanItNeeds(RepeatingOracleContract):
    def make(self):
        return Plain()


class TestAnOracleWithNoiseAndNoMoreThanItNeeds(OracleContract):
    def make(self):
        class Noisy(Plain):
            rng = np.random.default_rng(0)

            def evaluate(self, X):
                return super().evaluate(X) + self.rng.normal(0.0, 0.1, len(X))

        return Noisy()
