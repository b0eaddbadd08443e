"""Helpers of the tests of forms: tables of laws with constants of their own at each setting."""

from __future__ import annotations

import numpy as np

from deap_vsr import MaskedTree, Trial
from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.forms.table import Table
from deap_vsr.lab.evidence import Exact, Noisy

ALGEBRA = ("add", "sub", "mul", "div", "const")
USUAL = ("add", "sub", "mul", "div", "n2", "sqrt", "exp", "log", "sin", "cos", "const")


def make_trials(law, constants, low=0.4, high=2.6, n_points=30, noise=0.0, told=None, seed=0):
    """Trials of ``law(x, *row)`` for each row of constants; with noise weighted by `told`, or else the true error."""
    rng = np.random.default_rng(seed)
    trials = []
    for row in constants:
        x = rng.uniform(low, high, n_points)
        y = law(x, *row) + noise * rng.standard_normal(n_points)
        weights = np.full(n_points, 1.0 / (told or noise) ** 2) if noise else None
        trials.append(Trial(x[:, None], y, (0,), weights))
    return trials


def make_table(law, constants, function_set=USUAL, **options):
    """The same as a table."""
    return Table.of(make_trials(law, constants, **options), 0, function_set, evidence_of(options.get("noise")))


def evidence_of(noise):
    """What a table tells whose weights are inverse variances, or, without noise, inverse squares of tolerances."""
    return Noisy(1.0) if noise else Exact()


def skeleton(form):
    return MaskedTree(form.nodes).to_infix(skeleton=True)


def operators_of(form):
    return {node.name for node in form.nodes if node.arity}


def fit_error(form, table):
    """The largest NMSE over the settings, from the starts that the form has."""
    settings = zip(table.x, table.y, table.tolerance, strict=True)
    data = Dataset.of([Trial(x[:, None], y, (0,), 1.0 / t**2) for x, y, t in settings])
    return float(np.max(fit(form.nodes, data, starts=form.starts, n_starts=0).errors))
