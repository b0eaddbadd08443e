"""Compiled evaluation, derivatives and constant fitting. Knows trees, nothing of search.

Importing this package is cheap; numba is imported, and kernels are compiled or read from their
cache on disk, when something is first evaluated or fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deap_vsr.engine.fitting import Dataset, Fit, fit
    from deap_vsr.engine.program import evaluate

__all__ = ["Dataset", "Fit", "evaluate", "fit"]

_HOME = {
    "Dataset": "fitting",
    "Fit": "fitting",
    "evaluate": "program",
    "fit": "fitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
