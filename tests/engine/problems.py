"""Helpers of the engine's tests."""

from __future__ import annotations

import numpy as np

from deap_vsr import MaskedTree, Trial


def tree(text):
    return MaskedTree.from_infix(text)


def points(n=100, n_vars=2, seed=0, low=0.2, high=4.0):
    return np.random.default_rng(seed).uniform(low, high, (n, n_vars))


def trial(truth, X=None, **options):
    """A trial whose y is the formula `truth`."""
    X = points() if X is None else X
    return Trial(X, tree(truth).evaluate(X), **options)
