import numpy as np
from scipy.linalg import qr

from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.relevance import settings_that_show
from deap_vsr.search.finish import reopened
from deap_vsr.search.rows import pivots, telling_rows


def lab_of(law=lambda X: X[:, 0], n_vars=3, noise=0.01):
    limits = [(0.1, 10.0)] * n_vars
    lab = Lab(CallableOracle(law, [(0.5, 3.0)] * n_vars, noise=noise, limits=limits), rng=np.random.default_rng(5))
    lab.begin()
    return lab


def test_rows_are_those_that_tell_most_and_hold_the_setting():
    lab, setting = lab_of(), np.array([1.0, 1.0, 2.2])
    tree = reopened(MaskedTree.from_infix("2.0*exp(2.0*x1) + 3.0*x2"))
    rows = telling_rows(tree, setting, (0, 1), 8, lab)
    assert rows.shape == (8, 3)
    assert (rows[:, 2] == 2.2).all()

    def told(X):
        c, theta = 2.0, 2.0
        J = np.array([np.exp(theta * X[:, 0]), c * X[:, 0] * np.exp(theta * X[:, 0]), X[:, 1]])
        return np.linalg.slogdet(J @ J.T)[1]

    drawn = [np.column_stack([lab.draw(8)[:, :2], np.full(8, 2.2)]) for _ in range(20)]
    assert told(rows) > max(map(told, drawn))


def test_where_a_formula_has_hardly_any_values_rows_are_drawn():
    tree = reopened(MaskedTree.from_infix("2.0*log(x1 - 30.0)"))
    assert len(telling_rows(tree, np.ones(3), (0,), 8, lab_of())) == 0


def test_settings_that_show_differ_in_every_variable():
    lab = lab_of(lambda X: X[:, 0] * X[:, 1] ** 4 * X[:, 2])
    X = np.repeat(lab.draw(1), 200, axis=0)
    X[:, 0] = lab.draw(200)[:, 0]
    lab.ask(X)  # a table at one setting
    settings = settings_that_show(lab, 1, 3)
    assert all(len(np.unique(settings[:, column])) == 3 for column in (1, 2))


def test_settings_that_show_are_inside_the_domain_although_more_was_asked():
    lab = lab_of(lambda X: X[:, 0] * X[:, 1] ** 4 * X[:, 2])
    lab.ask(np.random.default_rng(0).uniform(3.0, 6.0, (200, 3)))
    lab.ask(lab.draw(200))
    settings = settings_that_show(lab, 1, 3)
    assert settings.min() >= 0.5
    assert settings.max() <= 3.0


def test_pivots_are_those_of_a_pivoted_decomposition():
    J = np.random.default_rng(3).standard_normal((5, 400))
    assert pivots(J, 5).tolist() == qr(J, mode="economic", pivoting=True)[2][:5].tolist()
