"""Vertical symbolic regression for DEAP: hold variables constant, grow formulas one variable at a time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deap_vsr import _moved
from deap_vsr.errors import EquationError, ExpressionError, OracleError, VsrError

if TYPE_CHECKING:
    from deap_vsr.campaign.campaign import Campaign
    from deap_vsr.engine import fit
    from deap_vsr.estimator import VsrRegressor
    from deap_vsr.gp.algorithms import assignFit, eaMasked, evaluateFit, selBestDistinct
    from deap_vsr.gp.regressor import ToolboxRegressor
    from deap_vsr.gp.rounds import freeze, rounds
    from deap_vsr.gp.variation import (
        cxOnePoint,
        cxOnePointLeafBiased,
        mutEphemeral,
        mutGrow,
        mutInsert,
        mutNodeReplacement,
        mutShrink,
        mutTerm,
        mutUniform,
        staticLimit,
    )
    from deap_vsr.gp.vertical import eaVertical
    from deap_vsr.judge import metrics
    from deap_vsr.lab.oracle import CallableOracle, Digits, EquationOracle, Noise, Relative
    from deap_vsr.lab.programs import ProgramOracle
    from deap_vsr.lab.table import TableOracle
    from deap_vsr.lab.trials import Trial, sample_trials
    from deap_vsr.methods import discover
    from deap_vsr.problems.equation import Equation, Variable, load_equation
    from deap_vsr.result import Result
    from deap_vsr.tree import MaskedTree, primitive_set
    from deap_vsr.tree.operators import register as register_operator
    from deap_vsr.tree.translate import from_individual, to_individual

__version__ = "0.2.0.dev0"

_moved.install()

__all__ = [
    "CallableOracle",
    "Campaign",
    "Digits",
    "Equation",
    "EquationError",
    "EquationOracle",
    "ExpressionError",
    "MaskedTree",
    "Noise",
    "OracleError",
    "ProgramOracle",
    "Relative",
    "Result",
    "TableOracle",
    "ToolboxRegressor",
    "Trial",
    "Variable",
    "VsrError",
    "VsrRegressor",
    "assignFit",
    "cxOnePoint",
    "cxOnePointLeafBiased",
    "discover",
    "eaMasked",
    "eaVertical",
    "evaluateFit",
    "fit",
    "freeze",
    "from_individual",
    "load_equation",
    "metrics",
    "mutEphemeral",
    "mutGrow",
    "mutInsert",
    "mutNodeReplacement",
    "mutShrink",
    "mutTerm",
    "mutUniform",
    "primitive_set",
    "register_operator",
    "rounds",
    "sample_trials",
    "selBestDistinct",
    "staticLimit",
    "to_individual",
]

#: Where the names live. A module is imported when one of its names is used: the ``vsr`` command must hear signals
#: before anything large is loaded, and numba takes a second.
_LAZY = {
    "campaign.campaign": ("Campaign",),
    "engine": ("fit",),
    "estimator": ("VsrRegressor",),
    "gp.algorithms": ("assignFit", "eaMasked", "evaluateFit", "selBestDistinct"),
    "gp.regressor": ("ToolboxRegressor",),
    "gp.rounds": ("freeze", "rounds"),
    "gp.vertical": ("eaVertical",),
    "gp.variation": (
        "cxOnePoint",
        "cxOnePointLeafBiased",
        "mutEphemeral",
        "mutGrow",
        "mutInsert",
        "mutNodeReplacement",
        "mutShrink",
        "mutTerm",
        "mutUniform",
        "staticLimit",
    ),
    "judge.metrics": ("metrics",),
    "lab.oracle": ("CallableOracle", "Digits", "EquationOracle", "Noise", "Relative"),
    "lab.programs": ("ProgramOracle",),
    "lab.table": ("TableOracle",),
    "lab.trials": ("Trial", "sample_trials"),
    "methods": ("discover",),
    "problems.equation": ("Equation", "Variable", "load_equation"),
    "result": ("Result",),
    "tree": ("MaskedTree", "primitive_set"),
    "tree.operators": ("register_operator",),
    "tree.translate": ("from_individual", "to_individual"),
}
#: What is called otherwise where it lives.
_CALLED = {"register_operator": "register"}


def __getattr__(name: str) -> Any:
    for place, names in _LAZY.items():
        if name in names:
            module = import_module(f"{__name__}.{place}")
            return getattr(module, _CALLED.get(name, name), module)  # a module is asked for by its own name
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
