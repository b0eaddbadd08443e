"""Checks of what a run, or a comparison of runs, is asked to do; each raises VsrError."""

from __future__ import annotations

from collections.abc import Sequence

from deap_vsr.engine.optimizers import NAMES as OPTIMIZERS
from deap_vsr.errors import VsrError

#: Seconds of a run that is given no limit at all.
DEFAULT_SECONDS = 60.0


def check_preset(preset: str | None) -> None:
    """Refuse a preset that is not known."""
    if preset not in (None, "paper"):
        raise VsrError(f"unknown preset {preset!r}; known is paper")


def check_optimizer(optimizer: str | None) -> None:
    """Refuse an optimizer that is not known; None is a method's own."""
    if optimizer is not None and optimizer not in ("lm", *OPTIMIZERS):
        raise VsrError(f"unknown optimizer {optimizer!r}; known are lm, {', '.join(OPTIMIZERS)}")


def check_expansion(method: str, expansion: str | None, known: Sequence[str]) -> None:
    """Refuse an expansion that is not among those `known` of a method; None is its own."""
    if expansion is not None and expansion not in known:
        raise VsrError(f"method {method} has no expansion {expansion!r}; it has {' or '.join(known) or 'none'}")
