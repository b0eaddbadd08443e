"""The anchor: one point through which every variable is swept alone, where answers are taken to be exact."""

from __future__ import annotations

import numpy as np

from deap_vsr.lab.lab import Lab
from deap_vsr.lab.precision import Precision, stated_precision
from deap_vsr.lab.trials import MAX_REDRAWS
from deap_vsr.tree.operators import Array


def anchor_of(lab: Lab, another: bool = False) -> Array | None:
    """Return the anchor, (n_vars,), a random point with an answer; None if answers are not exact, or there are none.

    Where the oracle says nothing of its answers, it is asked twice: noise shows at once, and what is the same twice
    is presumed to be exact, until a search says otherwise. With `another` a new one takes the place of the first.
    """
    if another and "anchor" in lab.facts:
        del lab.facts["anchor"]
        lab.facts["before"] = len(lab.log)
    if "anchor" in lab.facts:
        known: Array = lab.facts["anchor"]
        return known if lab.evidence.certain else None
    if "precision" not in lab.facts and stated_precision(lab.oracle) is not None:
        lab.begin()
    if not lab.evidence.certain:
        return None
    for _ in range(MAX_REDRAWS):
        X = lab.draw(1)
        y = lab.ask(X)
        if np.isfinite(y).all():
            break
    else:
        return None
    if "precision" not in lab.facts:
        if np.any(lab.log.sigma > 0.0) or not (lab.ask(X, again=True) == y).all():
            return None
        lab.presume(Precision(known_by="one repeat"))
    point: Array = X[0]
    lab.facts["anchor"] = point
    return point
