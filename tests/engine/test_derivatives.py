"""Derivatives against complex-step differentiation, on trees of analytic operators."""

import numpy as np

from deap_vsr.bench.derivatives import compare_derivatives


def test_derivatives_agree_with_complex_steps():
    report = compare_derivatives(n_trees=400, seed=1)
    assert report["compared"] > 800
    assert report["worst"] < 1e-8
    assert report["ill_conditioned"] < 0.2 * report["compared"]


def test_the_comparison_would_notice_a_wrong_derivative(monkeypatch):
    from deap_vsr.bench import derivatives

    honest = derivatives.kernel_derivatives

    def wrong(tree, X):
        return honest(tree, X) * (1 + 1e-6)

    monkeypatch.setattr(derivatives, "kernel_derivatives", wrong)
    assert compare_derivatives(n_trees=100, seed=1)["worst"] > 1e-8


def test_complex_steps_are_exact_on_a_formula_known_by_hand():
    from deap_vsr.bench.derivatives import complex_step, kernel_derivatives
    from deap_vsr.tree import MaskedTree

    tree = MaskedTree.from_infix("C*exp(C*x1)").with_constants([2.0, -0.5])
    X = np.linspace(0.1, 3, 7)[:, None]
    expected = np.array([np.exp(-0.5 * X[:, 0]), 2 * X[:, 0] * np.exp(-0.5 * X[:, 0])])
    np.testing.assert_allclose(complex_step(tree, X), expected, rtol=1e-14)
    np.testing.assert_allclose(kernel_derivatives(tree, X), expected, rtol=1e-14)
