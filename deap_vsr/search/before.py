"""Measurements that were in the log before a run, and that it has not asked for: they may refute it, for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deap_vsr.lab.lab import Lab
from deap_vsr.search.records import Found
from deap_vsr.search.standing import Attack, Standing


def with_measured_before(found: Found, stands: Standing, lab: Lab) -> Standing:
    """Return how an answer stands once the rest of the log's file is compared with it.

    At the end, when a run that goes on has read all that is its own: what is left was measured for something else.
    """
    n_before = len(lab.log)
    lab.budget.count_queries(lab.log.take_rest())
    formula = found.tree if found.inner is None else found.inner
    if len(lab.log) == n_before or formula is None or stands.status == "partial":
        return stands
    trial = lab.measured()
    good = np.flatnonzero(lab.log.good)
    rest = np.flatnonzero(good >= n_before)
    if not len(rest) or len(trial.y) != len(good):  # so many points that not all of them are looked at
        return stands
    attack = Attack(formula, lab)
    off, allowed = attack.off(trial)[rest], attack.allowed(len(trial.y))
    n_off = int(np.sum(~(off <= allowed)))
    if not n_off:
        return replace(stands, reason=f"{stands.reason}; {len(rest)} points of the log from before agree with it")
    X = trial.X[rest[int(np.argmax(off))]]
    where = ", ".join(f"{v.name}={x:.6g}" for v, x in zip(lab.variables, X, strict=True))
    reason = f"{n_off} of {len(rest)} points of the log from before disagree with it, the most at {where}"
    return replace(stands, status="fits", reason=reason)
