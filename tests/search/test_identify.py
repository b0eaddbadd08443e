"""Formulas rewritten into constants that the data determine."""

import numpy as np

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.engine import Dataset
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.finish import reopened
from deap_vsr.search.identify import identified

OPERATORS = ("add", "sub", "mul", "div", "n2", "n4", "exp", "cos", "const")


def lab_and_fit(text, **limits):
    tree = MaskedTree.from_infix(text)
    oracle = CallableOracle(tree.evaluate, [(0.5, 2.0)] * 2, OPERATORS, noise=0.01)
    lab = Lab(oracle, Budget(**limits), np.random.default_rng(0))
    lab.begin()
    data = Dataset.of(lab.trials(range(2), 2, 80))
    return lab, lab.fit(reopened(tree), data, n_starts=0), data


def test_what_has_hundreds_of_constants_when_it_is_multiplied_out_stays_as_it_is():
    # Took 25 s before for a formula of 529 constants, whatever the limit was.
    wave = "cos(1.1*x1 + 0.7*x2 + 0.3)"
    text = f"0.5*exp(0.1*(0.4*x1 + 0.6*{wave} + 0.2)**4*(0.3*x2 + 0.5*{wave} + 0.7)**4)"
    lab, outcome, data = lab_and_fit(text)
    before = lab.budget.evaluations
    assert identified(outcome, data, lab) is outcome
    assert lab.budget.evaluations == before


def test_when_the_time_is_up_nothing_is_rewritten():
    lab, outcome, data = lab_and_fit("(1.5 + 0.5*x1)*(2.0 + 0.3*x2)")
    assert identified(outcome, data, lab) is not outcome
    assert identified(outcome, data, lab.within(Budget(seconds=0.0))) is outcome
