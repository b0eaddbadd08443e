"""Drawing inputs from the domains of variables: the only place where that is done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deap_vsr.problems.equation import Variable
from deap_vsr.tree.operators import Array


def draw_inputs(variables: Sequence[Variable], n_points: int, rng: np.random.Generator) -> Array:
    """Draw points from the domains, each variable with its own sampling.

    Returns
    -------
    array of shape (n_points, n_vars)
    """
    X = np.empty((n_points, len(variables)))
    for column, variable in enumerate(variables):
        if variable.sampling == "loguniform":
            values = np.exp(rng.uniform(np.log(variable.low), np.log(variable.high), n_points))
            values = np.clip(values, variable.low, variable.high)  # exp(log(x)) may step over the edge
        elif variable.sampling == "integer":
            values = rng.integers(int(np.ceil(variable.low)), int(np.ceil(variable.high)), n_points).astype(float)
        else:
            values = rng.uniform(variable.low, variable.high, n_points)
        if variable.sign == "both":
            values *= rng.choice([-1.0, 1.0], n_points)
        X[:, column] = on_grid(variable, values)
    return X


def on_grid(variable: Variable, values: Array) -> Array:
    """Return the values that a variable can be set to, nearest to others, (n,) -> (n,), within its domain."""
    if variable.step > 0:
        low, high = (np.ceil(variable.low / variable.step - 1e-9), np.floor(variable.high / variable.step + 1e-9))
        places = np.round(np.abs(values) / variable.step) * np.sign(values)
        places = np.clip(places, -high if variable.sign == "both" else low, high)
        values = places * variable.step
    elif not variable.digits:
        return values
    digits = 12 if variable.step > 0 else variable.digits  # 3 steps of 0.1 are 0.3
    return np.clip([float(f"{value:.{digits - 1}e}") for value in values], *variable.bounds)
