"""Boyle's experiment: hold n and T, vary V, and see which constant hides the rest of the law."""

import numpy as np

from deap_vsr import EquationOracle, MaskedTree, fit, load_equation, sample_trials

law = load_equation("feynman-unit/I.39.22")  # p = n T / V, hidden behind an oracle
oracle = EquationOracle(law)
trials = sample_trials(oracle, free=[2], n_trials=3, n_points=20, rng=np.random.default_rng(0))

boyle = fit(MaskedTree.from_infix("C/x3"), trials)  # only V varies: Boyle's p = C / V ...
print("errors   ", boyle.errors)  # ... fits every trial exactly,
print("constants", boyle.constants.ravel())  # with a constant that moves from trial to trial:
print("n * T    ", np.array([trial.X[0, 0] * trial.X[0, 1] for trial in trials]))  # it hides n T
print("queries  ", oracle.queries)
