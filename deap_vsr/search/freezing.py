"""The freeze: the mask that an experiment gives a candidate.

The outcome of an experiment is a :class:`deap_vsr.engine.fitting.Fit`: K trials at K settings of the controlled
variables, the candidate's constants fitted in each.
"""

from __future__ import annotations

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.lab.evidence import Evidence
from deap_vsr.tree import Constant, MaskedTree, with_flag


def freeze(outcome: Fit, data: Dataset, evidence: Evidence) -> MaskedTree:
    """Return the candidate with the mask that the experiment gives it.

    If every trial fits, all is frozen but the summary constants; stand-alone ones stay at their mean. Otherwise the
    mask is left as it was. A tree without mutable nodes passes on unchanged.
    """
    tree = outcome.tree
    if not any(tree.mask) or not evidence.fits(outcome, data):
        return tree
    nodes = [with_flag(node, False) for node in tree]
    moves = evidence.moves(outcome)
    means = evidence.mean(outcome.constants, outcome.standard_errors)
    for column, position in enumerate(tree.open_constants):
        ret = tree[position].ret
        if moves[column]:
            nodes[position] = Constant(float(outcome.constants[-1, column]), True, True, ret)
        else:
            nodes[position] = Constant(float(means[column]), False, False, ret)
    return type(tree)(nodes)
