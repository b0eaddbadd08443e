"""The shape of residuals: whether what a formula leaves in noise is noise."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from deap_vsr.engine.fitting import Dataset, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.lab.lab import Lab
from deap_vsr.search.anonymous import polynomials
from deap_vsr.search.finish import reopened
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array

#: Level of the test that residuals have a shape: one right formula in ten thousand is taken for a wrong one.
SHAPE_LEVEL = 1e-4
#: Residuals are compared with polynomials of this degree in each variable, and of this in each of a pair.
DEGREE, PAIR_DEGREE = 6, 2


def shape_of(formula: MaskedTree, lab: Lab) -> str:
    """Return that residuals have a shape, and along which variable, by a test against polynomials; else nothing."""
    data = Dataset.of([lab.measured()])
    outcome = lab.fit(reopened(formula), data, n_starts=0)
    residuals, J = residual_model(outcome.tree, encoder(None).encode([outcome.tree]), data, None)(outcome.constants[0])
    waves = [polynomials(variable, data.columns[i], DEGREE) for i, variable in enumerate(lab.variables)]
    names = [variable.name for variable in lab.variables]
    tests = [(names[i], wave) for i, wave in enumerate(waves)]
    for i in range(len(waves)):
        for j in range(i):
            pairs = (waves[i][:PAIR_DEGREE, None] * waves[j][None, :PAIR_DEGREE]).reshape(-1, len(data.y))
            tests.append((f"{names[j]} and {names[i]}", pairs))
    for name, basis in tests:
        if _explains(basis * data.weight, residuals, J, SHAPE_LEVEL / len(tests)):
            return f"what it leaves is no noise: it has a shape along {name}"
    return ""


def _explains(basis: Array, residuals: Array, J: Array, level: float) -> bool:
    """Whether a basis explains residuals better than chance does, beside the constants that were fitted."""
    fitted = np.linalg.qr(J.T)[0] if len(J) else np.zeros((len(residuals), 0))
    left = residuals - fitted @ (fitted.T @ residuals)
    rest = basis.T - fitted @ (fitted.T @ basis.T)
    directions, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    directions = directions[:, sizes > 1e-9 * max(float(np.max(sizes, initial=0.0)), 1e-300)]
    explained = float(np.sum((directions.T @ left) ** 2))
    n, free = directions.shape[1], len(left) - fitted.shape[1] - directions.shape[1]
    remains = float(np.sum(left**2)) - explained
    if n == 0 or free < 1 or remains <= 0.0:
        return False
    return bool(explained / (remains / free) > chdtri(n, level))
