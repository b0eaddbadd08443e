"""How the errors of a formula's constants go together."""

from __future__ import annotations

import numpy as np

from deap_vsr.engine.fitting import Dataset, residual_model
from deap_vsr.engine.program import encoder
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.records import Found
from deap_vsr.tree import Constant, MaskedTree


def fitted_places(tree: MaskedTree) -> list[int]:
    """Return the places of constants that have a standard error: 1 and -1 are none."""
    return [i for i, node in enumerate(tree) if isinstance(node, Constant) and (node.fitted or abs(node.value) != 1.0)]


def correlation(found: Found, lab: Lab) -> tuple[tuple[float, ...], ...] | None:
    """Return the correlation of the errors of a formula's constants, from all that was measured."""
    tree = found.tree if found.inner is None else found.inner
    if tree is None or not found.standard_errors or len(fitted_places(tree)) != len(found.standard_errors):
        return None
    skeleton, measured = reopened(tree), lab.measured()
    if len(measured.y) <= skeleton.n_constants or lab.pset is not None:
        return None
    data = Dataset.of([measured])
    _, J = residual_model(skeleton, encoder(None).encode([skeleton]), data, None)(np.array(skeleton.constants))
    with np.errstate(all="ignore"):
        size = np.sqrt(np.sum(J**2, axis=1))
        scaled = J / size[:, None]
    if not np.isfinite(scaled).all():
        return None
    inverse = np.linalg.pinv(scaled @ scaled.T, hermitian=True)
    spread = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    return tuple(map(tuple, np.clip(inverse / np.outer(spread, spread), -1.0, 1.0).tolist()))
