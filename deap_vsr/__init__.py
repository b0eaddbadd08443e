"""Vertical symbolic regression for DEAP: hold variables constant, grow formulas one variable at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deap_vsr import metrics
from deap_vsr.control.equation import Equation, Variable, load_equation
from deap_vsr.control.experiment import Trial, sample_trials
from deap_vsr.control.oracle import CallableOracle, EquationOracle, Noise
from deap_vsr.errors import EquationError, ExpressionError, OracleError, VsrError
from deap_vsr.tree import MaskedTree, primitive_set

if TYPE_CHECKING:
    from deap_vsr.engine import fit
    from deap_vsr.methods import discover

__version__ = "0.1.0"

__all__ = [
    "CallableOracle",
    "Equation",
    "EquationError",
    "EquationOracle",
    "ExpressionError",
    "MaskedTree",
    "Noise",
    "OracleError",
    "Trial",
    "Variable",
    "VsrError",
    "discover",
    "fit",
    "load_equation",
    "metrics",
    "primitive_set",
    "sample_trials",
]


def __getattr__(name: str) -> Any:
    if name == "fit":  # not before it is used: it needs numba
        from deap_vsr.engine import fit

        return fit
    if name == "discover":
        from deap_vsr.methods import discover

        return discover
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
