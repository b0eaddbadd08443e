"""A stand-in of our own for SRSci's evaluator: the same class, arguments and methods; laws that are not its own."""

import numpy as np
from laws_of_ours import LAWS

NOISE = {
    "normal": lambda scale, n: np.random.normal(0.0, scale, n),
    "exponential": np.random.exponential,
    "uniform": lambda scale, n: np.random.uniform(-scale, scale, n),
    "laplace": lambda scale, n: np.random.laplace(0.0, scale, n),
    "logistic": lambda scale, n: np.random.logistic(0.0, scale, n),
}


class Equation_evaluator:  # noqa: N801 - their name
    def __init__(self, equation_name, noise_type="normal", noise_scale=0.1, metric_name="neg_nmse"):
        if equation_name not in LAWS:
            raise FileNotFoundError(f"{equation_name} is not a valid equation name!")
        self.law, self.n_vars, self.operators, self.columns = LAWS[equation_name]
        self.noise, self.scale = NOISE[noise_type], noise_scale

    def get_nvars(self):
        return self.n_vars

    def get_function_set(self):
        return self.operators

    def evaluate(self, X):
        if not self.columns:
            X = X.T
        _, n_points = X.shape
        return self.law(*[X[i] for i in range(self.n_vars)]) + self.noise(self.scale, n_points)
