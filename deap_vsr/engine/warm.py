"""Compiling the kernels: once a machine, before any clock runs."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numba.core import event

from deap_vsr.engine.fitting import Dataset, fit, residual_model
from deap_vsr.engine.householder import dot
from deap_vsr.engine.kernels import layout
from deap_vsr.engine.levenberg import damped_step, solve_linear
from deap_vsr.engine.program import encoder, evaluate
from deap_vsr.engine.subsets import scan_subsets
from deap_vsr.engine.trials import find_linear, fit_trials, spread, standard_errors_of
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.operators import Array, Indices

#: What is said where kernels must be compiled.
NOTICE = "compiling the kernels, once on this machine, which takes half a minute; no run's clock goes meanwhile"


@cache
def compile_kernels() -> bool:
    """Compile the kernels, or read them from their cache on disk; returns whether they had to be compiled.

    Every kernel is called with every kind of arguments that Python calls it with, so that nothing is left to be
    compiled within a run. Where something must be compiled a line on stderr says so.
    """
    x: Array = 1.0 + np.arange(8) / 8
    data = Dataset(x[None], np.exp(x), np.ones(8), np.array([0, 8]))
    tree = MaskedTree.from_infix("C*exp(C*x1)")
    notice = _Notice()
    with event.install_listener("numba:compile", notice):
        fit(tree, data, n_starts=1)
        residual_model(tree, encoder(None).encode([tree]), data, None)(np.ones(2))
        evaluate([tree], data.columns.T)
        _call_subsets()
        _call_linear_algebra(data)
    return notice.given


class _Notice(event.Listener):
    """Says so, once, when something is compiled."""

    def __init__(self) -> None:
        self.given = False

    def on_start(self, event: Any) -> None:
        """Say so."""
        if not self.given:
            print(NOTICE, file=sys.stderr, flush=True)
        self.given = True

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def cache_folder() -> str | None:
    """Return where compiled kernels are kept; None where nothing can be written, or nothing is compiled."""
    stats = getattr(fit_trials, "stats", None)
    return None if stats is None else stats.cache_path


def _call_subsets() -> None:
    best: Indices = np.empty((1, 2, 2), np.int64)
    scan_subsets(np.ones((1, 2, 3)), np.ones(3), np.array([2, 2]), 2, best, np.empty((1, 2)))


def _call_linear_algebra(data: Dataset) -> None:
    """Call what fits with scipy, and of foreign primitives, take one by one."""
    n, one, flags = len(data.y), np.ones(1), np.ones(1, np.bool_)
    spread(data.y, data.weight)
    dot(data.y, data.y, 0)
    J: Array = np.ones((1, n))
    standard_errors_of(J, data.weight, 1.0, np.empty(1), np.empty(1, np.bool_))
    rows, work, order = np.empty((1, n)), np.empty((1, n)), np.empty(1, np.int64)
    solve_linear(J, np.zeros(n), data.y, data.weight, flags, np.zeros(1), rows, work, order, np.empty(1), np.empty(1))
    damped_step(np.ones((1, 1)), one, 1.0, one, np.empty(1))
    codes = encoder(None).encode([MaskedTree.from_infix("C*x1")]).codes
    left, right, slot = (np.zeros(len(codes), np.int32) for _ in range(3))
    layout(codes, left, right, slot)
    find_linear(codes, left, right, slot, flags)
