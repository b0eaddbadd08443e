import numpy as np
import pytest
from one_variable import ALGEBRA, USUAL, fit_error, make_table, make_trials, operators_of, skeleton
from scipy.stats import chi2

from deap_vsr import MaskedTree, Trial, register_operator
from deap_vsr.forms.inner import TRIPLES, inner_constants
from deap_vsr.forms.peeling import divided, peeled
from deap_vsr.forms.ratios import ratios
from deap_vsr.forms.sums import sparse_sums
from deap_vsr.forms.table import Form, Table, Target
from deap_vsr.tree import operators

EXACT = 1e-20


def sums_of(table, *counts):
    return next(sparse_sums(Target.plain(table), *([counts] if counts else [])))[0]


def sums_behind(targets, counts=(30, 24)):
    return [form for target in targets for form in next(sparse_sums(target, counts))[0]]


def inner_forms(target, *options):
    return [form for forms, _ in inner_constants(target, *options) for form in forms]


# --- tables ---------------------------------------------------------------------------------


def test_the_tolerance_of_a_table_is_relative_to_the_spread_of_y_and_to_y():
    x = np.linspace(0.0, 1.0, 5)[:, None]
    table = Table.of([Trial(x, 1e6 + x[:, 0]), Trial(x, 1e-6 * x[:, 0])], 0, ALGEBRA)
    np.testing.assert_allclose(table.tolerance[:, 0], [1e-11 + 2e-8, 1e-17 + 2e-20], rtol=1e-5)
    assert (table.tolerance == table.tolerance[:, :1]).all()
    constant = Table.of([Trial(x, np.zeros(5))], 0, ALGEBRA)
    assert (constant.tolerance > 0).all()


def test_weights_are_inverse_squares_of_the_tolerance_and_trials_are_cut_to_the_shortest():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (8, 3))
    weights = rng.uniform(1.0, 100.0, 8)
    table = Table.of([Trial(X, X[:, 1], (1,), weights), Trial(X[:6], X[:6, 0], (1,), weights[:6])], 1, ALGEBRA)
    assert table.x.shape == table.y.shape == table.tolerance.shape == (2, 6)
    assert table.n_points == 6
    np.testing.assert_array_equal(table.x[0], X[:6, 1])
    np.testing.assert_allclose(table.tolerance[0], weights[:6] ** -0.5)


def test_limits_are_those_of_chi_squared_with_noise_and_the_number_of_points_without():
    exact = make_table(lambda x, a: a * x, [(1.0,)], n_points=12)
    np.testing.assert_array_equal(exact.limits(3), [12.0, 12.0, 12.0])
    noisy = make_table(lambda x, a: a * x, [(1.0,)], n_points=12, noise=0.1)
    np.testing.assert_allclose(noisy.limits(3), chi2.isf(1e-3, [11, 10, 9]))


def test_atoms_that_are_not_finite_on_a_table_are_not_used():
    table = make_table(lambda x, a, b: a + b * x, [(1.0, 2.0), (3.0, -1.0)], low=-1.0, high=1.0)
    texts = [MaskedTree(atom.nodes).to_infix() for atom in table.atoms[:12]]
    useless = np.isnan(table.values(12)).all(axis=(1, 2))
    assert np.isfinite(table.values(12)[~useless]).all()
    assert useless[texts.index("sqrt(x1)")]
    assert useless[texts.index("log(x1)")]
    assert not useless[texts.index("x1")]
    assert [skeleton(form) for form in sums_of(table)] == ["C + C*x1"]


# --- sparse sums ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "constants", "expected"),
    [
        (lambda x, a: a * np.sin(x), [(2.0,), (-0.3,), (7.0,)], "C*sin(x1)"),
        (lambda x, a: a + 0 * x, [(2.0,), (-0.3,)], "C"),
        (lambda x, a, b: a + b / x, [(1.0, 2.0), (3.0, -1.0)], "C + C/x1"),
        (lambda x, a, b: a * x * np.sin(x) + b * x**2, [(1.0, 2.0), (0.1, -4.0)], "C*x1**2 + C*(x1*sin(x1))"),
        (
            lambda x, a, b, c: a + b * np.exp(x) + c * np.sqrt(x),
            [(1.0, 2.0, 3.0), (-2.0, 0.4, 1.0), (9.0, 3.0, 0.2)],
            "C + C*sqrt(x1) + C*exp(x1)",
        ),
    ],
)
def test_a_sum_of_atoms_is_found_with_constants_of_its_own_in_each_setting(law, constants, expected):
    table = make_table(law, constants)
    found = sums_of(table)
    assert expected in [skeleton(form) for form in found]
    form = next(form for form in found if skeleton(form) == expected)
    assert form.starts.shape == (len(constants), MaskedTree(form.nodes).n_constants)
    np.testing.assert_allclose(np.sort(form.starts, axis=1), np.sort(constants, axis=1), rtol=1e-7)
    assert fit_error(form, table) < EXACT


def test_sums_of_four_and_five_terms_are_found_among_the_first_atoms():
    constants = np.random.default_rng(4).uniform(1.0, 3.0, (3, 5))
    table = make_table(lambda x, a, b, c, d, e: a + b * x + c * x**2 + d / x + e * x**3, constants, ALGEBRA)
    for form in sums_of(table):
        assert MaskedTree(form.nodes).n_constants == 5
        assert fit_error(form, table) < EXACT
    assert [skeleton(form) for form in sums_of(table)] == ["C + C*x1 + C/x1 + C*(x1*x1) + C*(x1*(x1*x1))"]
    assert sums_of(table, 10, 10, 10, 10) == []


def test_the_smallest_sum_wins_and_the_cheapest_of_its_size_comes_first():
    table = make_table(lambda x, a: a * x**2, [(1.0,), (3.0,)], ("add", "mul", "n2", "sin", "const"))
    found = sums_of(table)
    assert [skeleton(form) for form in found] == ["C*x1**2"]
    table = make_table(lambda x, a, b: a * np.sin(x) ** 2 + b, [(1.0, 2.0), (3.0, 0.5)])
    costs = [form.cost for form in sums_of(table)]
    assert costs == sorted(costs)
    assert len(costs) > 1


@pytest.mark.parametrize(
    "law",
    [
        lambda x, a, b: a * np.exp(b * x),
        lambda x, a, b: 1.0 / (a + b * x),
        lambda x, a, b: np.sqrt(a + b * x),
        lambda x, a, b: a * np.sin(b * x),
    ],
)
def test_a_law_with_a_constant_inside_is_no_sum(law):
    assert sums_of(make_table(law, [(1.3, 0.7), (2.1, 0.4), (0.9, 0.55)]), 60, 40, 20) == []


def test_a_sum_that_fits_the_first_setting_only_is_none():
    rows = [(1.0, 0.0), (2.0, 0.4)]
    assert sums_of(make_table(lambda x, a, b: a * x + b * np.tanh(3 * x), rows[:1])) != []
    assert sums_of(make_table(lambda x, a, b: a * x + b * np.tanh(3 * x), rows), 40, 30) == []


def test_a_term_that_is_missing_in_the_first_setting_is_not_needed_for_the_others():
    table = make_table(lambda x, a, b: a * x + b * np.sin(x), [(1.0, 2.0), (3.0, 0.0), (0.0, 5.0)])
    assert "C*x1 + C*sin(x1)" in [skeleton(form) for form in sums_of(table)]


def test_a_term_of_the_size_of_rounding_is_left_out_in_a_form_of_its_own():
    # The second term is within nothing but rounding of y: both forms are handed on, the shorter one first.
    table = make_table(lambda x, a, b: a * x + b * np.sin(x), [(1.0, 2e-10), (3.0, 5e-10)])
    found = sums_of(table)
    by_text = {skeleton(form): form for form in found}
    assert by_text["C*x1"].pruned
    assert not by_text["C*x1 + C*sin(x1)"].pruned
    assert by_text["C*x1"].cost < by_text["C*x1 + C*sin(x1)"].cost


def test_what_was_tried_is_counted_for_every_setting():
    table = make_table(lambda x, a, b: np.tan(a * x) ** b, [(0.3, 1.5)] * 2, ("add", "mul", "const"))
    forms, tried = next(sparse_sums(Target.plain(table), (5, 4, 3)))
    assert forms == []
    assert tried == 2 * (5 + 6 + 1)


def test_no_sum_has_as_many_terms_as_there_are_points():
    table = make_table(lambda x, a: np.tanh(a * x), [(1.0,), (2.0,)], ALGEBRA, n_points=5)
    for form in sums_of(table):
        assert MaskedTree(form.nodes).n_constants <= 3
    assert sums_of(table) == []


def test_a_polynomial_does_not_pass_for_the_lorentz_factor():
    def law(x, a):
        return a / np.sqrt(1.0 - x**2 / 2.0)

    for function_set in (("add", "mul", "const"), ("add", "mul", "n2", "n3", "n4", "n5", "n6", "n8", "const")):
        table = make_table(law, [(1.0,), (1.0,)], function_set, low=0.1, high=0.9)
        assert next(sparse_sums(Target.plain(table)))[0] == []
    # It would at a looser tolerance, with a normalised error that looks like success.
    X, y = table.x[0], table.y[0]
    A = np.array([X**k for k in range(9)]).T
    left = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    assert np.var(left) / np.var(y) < 1e-9


@pytest.mark.parametrize("scale_x", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scale_y", [1e-100, 1e-12, 1.0, 1e12, 1e100])
def test_sums_do_not_depend_on_the_scale_of_x_or_y(scale_x, scale_y):
    trials = make_trials(lambda x, a, b: a * x + b / x, [(1.0, 2.0), (3.0, -0.4)])
    table = Table.of([Trial(t.X * scale_x, t.y * scale_y, t.free) for t in trials], 0, ALGEBRA)
    assert "C*x1 + C/x1" in [skeleton(form) for form in sums_of(table)]


def test_without_mul_only_constants_and_quotients_are_terms():
    rows = [(1.0, 2.0), (3.0, -0.4)]
    without = ("add", "div", "sin", "const")
    assert [skeleton(f) for f in sums_of(make_table(lambda x, a, b: a + b / x, rows, without))] == ["C + C/x1"]
    assert [skeleton(f) for f in sums_of(make_table(lambda x, a, b: b / np.sin(x), rows, without))] == ["C/sin(x1)"]
    assert sums_of(make_table(lambda x, a, b: a + b * np.sin(x), rows, without)) == []


def test_without_add_only_single_terms_are_found():
    rows = [(1.0, 2.0), (3.0, -0.4)]
    without = ("mul", "div", "sin", "const")
    assert [skeleton(f) for f in sums_of(make_table(lambda x, a, b: a * np.sin(x), rows, without))] == ["C*sin(x1)"]
    assert sums_of(make_table(lambda x, a, b: a + b * np.sin(x), rows, without)) == []


# --- sparse sums in noise -------------------------------------------------------------------


def test_in_noise_of_known_standard_error_the_law_is_found():
    table = make_table(lambda x, a, b: a + b * np.sin(x), [(1.0, 2.0), (3.0, -4.0), (0.5, 3.0)], noise=0.01)
    found = sums_of(table)
    assert "C + C*sin(x1)" in [skeleton(form) for form in found]
    form = next(form for form in found if skeleton(form) == "C + C*sin(x1)")
    np.testing.assert_allclose(form.starts, [(1.0, 2.0), (3.0, -4.0), (0.5, 3.0)], atol=0.05)


def test_with_a_standard_error_that_is_too_small_nothing_fits():
    rows = [(1.0, 2.0), (3.0, -4.0), (0.5, 3.0)]
    law = make_table(lambda x, a, b: a + b * np.sin(x), rows, noise=0.01, told=0.01 / 3)
    assert sums_of(law) == []


def test_a_form_that_is_off_by_more_than_the_noise_does_not_fit():
    # b*x**2 is 0 in the first setting, where a*x fits; in the second it is ten standard errors.
    table = make_table(lambda x, a, b: a * x + b * x**2, [(1.0, 0.0), (1.0, 0.3)], ALGEBRA, noise=0.01)
    assert "C*x1" not in [skeleton(form) for form in sums_of(table)]


# --- peeling --------------------------------------------------------------------------------

#: For each function, rows (a, b) so that a + b*x is within its principal branch for x in (0.4, 2.6).
ROWS = {
    "arcsin": [(0.1, 0.2), (-0.4, 0.3)],
    "arccos": [(0.1, 0.2), (-0.4, 0.3)],
    "sin": [(0.1, 0.3), (-0.4, 0.5)],
    "cos": [(0.1, 0.3), (0.4, 0.5)],
    "tan": [(0.1, 0.3), (-0.4, 0.5)],
}


@pytest.mark.parametrize(
    "name", [name for name, entry in operators.CATALOGUE.items() if entry.inverse and name != "neg"]
)
def test_each_outer_function_is_undone(name):
    rows = ROWS.get(name, [(0.7, 0.4), (0.2, 0.9)])
    function = operators.get(name).function
    table = make_table(lambda x, a, b: function(a + b * x), rows, ("add", "mul", name, "const"))
    (target,) = peeled(Target.plain(table))
    np.testing.assert_allclose(target.z[1], rows[1][0] + rows[1][1] * table.x[1], rtol=1e-12)
    found = [form for form in next(sparse_sums(target))[0] if MaskedTree(form.nodes).n_constants == 2]
    form = next(form for form in found if form.nodes[0].name in (name, "mul"))
    assert operators_of(form) <= {"add", "mul", name}
    assert fit_error(form, table) < EXACT


def test_only_functions_of_the_set_are_undone():
    table = make_table(lambda x, a, b: np.sqrt(a + b * x), [(1.0, 2.0), (3.0, 0.5)], ("add", "mul", "exp", "const"))
    targets = list(peeled(Target.plain(table)))
    assert len(targets) == 1
    np.testing.assert_allclose(targets[0].z, np.log(table.y))
    assert sums_behind(targets) == []
    bare = make_table(lambda x, a, b: np.sqrt(a + b * x), [(1.0, 2.0)], ("add", "mul", "sub", "const"))
    assert list(peeled(Target.plain(bare))) == []


def test_a_division_undoes_a_reciprocal():
    table = make_table(lambda x, a, b: 1.0 / (a + b * x), [(1.0, 2.0), (3.0, 0.5)], ALGEBRA)
    (form,) = sums_behind(peeled(Target.plain(table)))
    assert skeleton(form) == "1/(C + C*x1)"
    np.testing.assert_allclose(form.starts, [(1.0, 2.0), (3.0, 0.5)])


def test_a_root_of_negative_values_is_undone_behind_a_sign():
    rows = [(1.0, 2.0), (3.0, 0.5)]
    table = make_table(lambda x, a, b: -np.sqrt(a + b * x), rows)
    (form,) = [form for form in sums_behind(peeled(Target.plain(table))) if "sqrt" in operators_of(form)]
    assert skeleton(form) == "-1*sqrt(C + C*x1)"
    assert fit_error(form, table) < EXACT
    without = make_table(lambda x, a, b: -np.sqrt(a + b * x), rows, ("add", "sqrt", "div", "const"))
    assert not [form for form in sums_behind(peeled(Target.plain(without))) if "mul" in operators_of(form)]


def test_values_out_of_the_range_of_a_function_give_no_target():
    table = make_table(lambda x, a: a * x, [(-3.0,), (-5.0,)], ("add", "exp", "sin", "sqrt", "const"))
    assert list(peeled(Target.plain(table))) == []
    mixed = make_table(lambda x, a: a * (x - 1.0), [(-3.0,), (5.0,)], ("add", "mul", "exp", "const"))
    assert list(peeled(Target.plain(mixed))) == []


def test_the_tolerance_follows_the_slope_of_the_function_that_is_undone():
    table = make_table(lambda x, a, b: np.exp(a + b * x), [(1.0, 2.0), (3.0, -0.5)], ("add", "mul", "exp", "const"))
    (target,) = peeled(Target.plain(table))
    np.testing.assert_allclose(target.tolerance, table.tolerance / table.y, rtol=1e-6)


def test_a_constant_comes_out_of_the_exponential():
    table = make_table(lambda x, a, b, c: np.exp(a + b * x + c * x**2), [(1.0, 2.0, -1.0), (3.0, -0.5, 0.4)])
    found = sums_behind(peeled(Target.plain(table)), (30, 24, 12))
    (form,) = [form for form in found if "exp" in operators_of(form)]
    assert skeleton(form) == "C*exp(C*x1 + C*x1**2)"
    np.testing.assert_allclose(form.starts, [(np.e, 2.0, -1.0), (np.e**3, -0.5, 0.4)])
    # Where the set has no product to put it in front it stays inside.
    table = make_table(lambda x, a, b: np.exp(a + b / x), [(1.0, 2.0), (3.0, -0.5)], ("add", "div", "exp", "const"))
    (form,) = [form for form in sums_behind(peeled(Target.plain(table))) if "exp" in operators_of(form)]
    assert skeleton(form) == "exp(C + C/x1)"


def test_two_functions_are_undone_one_after_the_other():
    table = make_table(lambda x, a, b: 1.0 / np.sqrt(a + b * x**2), [(1.0, 2.0), (3.0, 0.5)])
    targets = [inner for target in peeled(Target.plain(table)) for inner in peeled(target)]
    found = {skeleton(form): form for form in sums_behind(targets)}
    assert "1/sqrt(C + C*x1**2)" in found
    np.testing.assert_allclose(found["1/sqrt(C + C*x1**2)"].starts, [(1.0, 2.0), (3.0, 0.5)])
    assert all(fit_error(form, table) < EXACT for form in found.values())


def test_a_function_of_ones_own_has_no_inverse_and_is_left_alone(monkeypatch):
    monkeypatch.setattr(operators, "_ALIASES", dict(operators._ALIASES))
    register_operator("softplus_stages", lambda x: float(np.log1p(np.exp(x))), 1)
    table = make_table(lambda x, a: a * x, [(1.0,), (2.0,)], ("add", "mul", "softplus_stages", "sqrt", "const"))
    assert len(list(peeled(Target.plain(table)))) == 1


def test_peeling_in_noise_carries_the_standard_error_through():
    rows = [(1.0, 2.0), (3.0, 0.5)]
    for told, expected in ((0.002, True), (0.0005, False)):
        table = make_table(lambda x, a, b: np.sqrt(a + b * x), rows, noise=0.002, told=told)
        found = [skeleton(form) for form in sums_behind(peeled(Target.plain(table)))]
        assert ("sqrt(C + C*x1)" in found) is expected


# --- factors --------------------------------------------------------------------------------


def test_a_factor_is_divided_out():
    table = make_table(lambda x, a, b: x * np.exp(a + b * x), [(1.0, 0.2), (3.0, -0.5), (0.1, 0.4)])
    targets = [inner for target in divided(table, 12) for inner in peeled(target)]
    found = {skeleton(form): form for form in sums_behind(targets)}
    form = found["x1*(C*exp(C*x1))"]
    np.testing.assert_allclose(form.starts, [(np.e, 0.2), (np.e**3, -0.5), (np.exp(0.1), 0.4)])
    assert fit_error(form, table) < EXACT
    assert sums_behind([Target.plain(table), *peeled(Target.plain(table))]) == []


def test_only_as_many_factors_as_asked_for_are_divided_out_and_none_that_vanishes():
    table = make_table(lambda x, a: a * x, [(1.0,), (2.0,)])
    assert len(list(divided(table, 3))) == 3
    target = next(divided(table, 3))
    np.testing.assert_allclose(target.z, table.y / table.x)
    np.testing.assert_allclose(target.tolerance, table.tolerance / table.x)
    x = np.linspace(-1.0, 1.0, 11)[:, None]  # x is 0 in the middle
    through_zero = Table.of([Trial(x, 1.0 + x[:, 0])], 0, ("mul", "cos", "const"))
    assert len(list(divided(through_zero, 2))) == 1


def test_without_mul_nothing_is_divided_out():
    table = make_table(lambda x, a: a * x, [(1.0,), (2.0,)], ("add", "div", "sin", "const"))
    assert list(divided(table, 8)) == []


# --- ratios ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "constants", "expected"),
    [
        (lambda x, a, b: a / (1.0 + b * x), [(1.0, 0.2), (3.0, 0.5)], "C/(1 + C*x1)"),
        (
            lambda x, a, b, c: (a + b * x) / (1.0 + c * x**2),
            [(1.0, 0.2, 3.0), (3.0, 0.5, 1.0), (2.0, -4.0, 0.4)],
            "(C + C*x1)/(1 + C*(x1*x1))",
        ),
    ],
)
def test_a_ratio_of_sums_is_found(law, constants, expected):
    table = make_table(law, constants, ALGEBRA)
    found, tried = next(ratios(Target.plain(table)))
    assert tried > 0
    assert skeleton(found[0]) == expected
    np.testing.assert_allclose(found[0].starts, constants, rtol=1e-5)
    assert all(fit_error(form, table) < EXACT for form in found)
    assert all(operators_of(form) <= set(ALGEBRA) for form in found)


def test_a_ratio_of_two_and_two_terms_is_found_in_one_of_its_ways_of_writing():
    rows = [(1.0, 0.2, 3.0, 0.7), (3.0, 0.5, 1.0, 0.4)]
    table = make_table(lambda x, a, b, c, d: (a + b * x) / (1.0 + c * x + d * x**2), rows, ALGEBRA)
    found, _ = next(ratios(Target.plain(table)))
    assert found
    assert all(MaskedTree(form.nodes).n_constants == 4 for form in found)
    assert all(fit_error(form, table) < EXACT for form in found)


def test_ratios_are_no_polynomials():
    table = make_table(lambda x, a, b, c: (a + b * x) / (1.0 + c * x**2), [(1.0, 0.2, 3.0), (2.0, 4.0, 0.4)], ALGEBRA)
    assert sums_of(table) == []


def test_a_ratio_is_found_behind_a_function():
    table = make_table(lambda x, a, b: np.sqrt((1.0 + a * x) / (1.0 + b * x**2)), [(1.0, 0.2), (3.0, 0.5)])
    found = [form for target in peeled(Target.plain(table)) for form in next(ratios(target))[0]]
    assert "sqrt" in {form.nodes[0].name for form in found}
    assert all(fit_error(form, table) < EXACT for form in found)


def test_with_inv_a_ratio_is_a_product():
    function_set = ("add", "mul", "inv", "const")
    table = make_table(lambda x, a, b: (a + x) / (1.0 + b * x * x), [(1.0, 0.2), (3.0, 0.5)], function_set)
    found, _ = next(ratios(Target.plain(table)))
    assert skeleton(found[0]) == "(C + C*x1)*inv(1 + C*(x1*x1))"
    assert operators_of(found[0]) <= set(function_set)


def test_without_mul_a_ratio_is_one_of_quotients():
    function_set = ("add", "div", "const")
    table = make_table(lambda x, a, b: a / (1.0 + b / x), [(1.0, 0.2), (3.0, 0.5)], function_set)
    found, _ = next(ratios(Target.plain(table)))
    assert skeleton(found[0]) == "C/(1 + C/x1)"
    assert all(operators_of(form) <= set(function_set) for form in found)


@pytest.mark.parametrize(
    "function_set", [("add", "mul", "const"), ("mul", "div", "const"), ("sub", "mul", "div", "const"), ("add", "inv")]
)
def test_a_set_without_sums_or_quotients_has_no_ratios(function_set):
    table = make_table(lambda x, a, b: a / (1.0 + b * x), [(1.0, 0.2), (3.0, 0.5)], function_set)
    assert next(ratios(Target.plain(table)))[0] == []


@pytest.mark.parametrize("law", [lambda x, a, b: a * np.exp(b * x), lambda x, a, b: np.tanh(a * x) + b])
def test_a_law_that_is_no_ratio_is_not_found(law):
    assert next(ratios(Target.plain(make_table(law, [(1.0, 0.8), (2.0, 1.1)], ALGEBRA))))[0] == []


def test_ratios_leave_noise_to_others():
    table = make_table(lambda x, a, b: a / (1.0 + b * x), [(1.0, 0.2), (3.0, 0.5)], ALGEBRA, noise=0.001)
    assert next(ratios(Target.plain(table))) == ([], 0)


# --- one inner constant ---------------------------------------------------------------------


def has_fit(forms, table, n_constants):
    return any(MaskedTree(f.nodes).n_constants == n_constants and fit_from_first(f, table) < 1e-18 for f in forms)


def fit_from_first(form, table):
    """The error in the first setting: the scan sees no other."""
    first = Table(table.x[:1], table.y[:1], table.tolerance[:1], table.function_set, table.evidence)
    return fit_error(form, first)


INNER = {
    "decay with an offset": (lambda x, a, b, c: a + b * np.exp(c * x), [(1.0, 2.0, -0.7), (3.0, 0.5, -1.3)], USUAL, 3),
    "growth": (lambda x, a, b: a * np.exp(b * x), [(1.0, 0.8), (2.0, 0.3)], USUAL, 2),
    "a wave": (lambda x, a, b: a * np.sin(b * x), [(2.0, 3.3), (1.0, 2.9)], USUAL, 2),
    "a fast wave": (lambda x, a, b: a + np.sin(b * x), [(2.0, 11.3), (1.0, 12.9)], ("add", "mul", "sin", "const"), 3),
    "a shifted wave": (lambda x, a, b: a * np.sin(x + b), [(2.0, 1.3), (1.0, 0.9)], ("add", "mul", "sin", "const"), 2),
    "a shifted logarithm": (lambda x, a, b: b * np.log(x + a), [(1.7, 2.0), (0.6, 3.0)], USUAL, 2),
    "a shifted root and a line": (
        lambda x, a, b, c: b * np.sqrt(x + a) + c * x,
        [(0.2, 1.0, 1.0), (0.6, 3.0, -1.0)],
        USUAL,
        3,
    ),
    "a power": (lambda x, a, b: a * x**b, [(2.0, 1.7), (3.0, -0.6)], ("add", "mul", "pow", "const"), 2),
    "a hyperbolic tangent": (lambda x, a, b: a * np.tanh(b * x), [(2.0, 0.7), (3.0, 1.6)], (*USUAL, "tanh"), 2),
    "a function in a denominator": (
        lambda x, a, b, c: a / (1.0 + b * np.exp(c * x)),
        [(1.96, 0.27, 1.15), (3.0, 0.6, 0.8)],
        ("add", "mul", "div", "exp", "const"),
        3,
    ),
    "of a square": (lambda x, a, b: a + np.cos(b * x**2), [(2.0, 1.7), (3.0, 0.6)], USUAL, 3),
}


INNER["a decay, without quotients"] = (*INNER["decay with an offset"][:2], ("add", "mul", "exp", "const"), 3)


@pytest.mark.parametrize("name", INNER)
def test_a_law_with_one_inner_constant_is_found(name):
    law, constants, function_set, n_constants = INNER[name]
    table = make_table(law, constants, function_set)
    forms = inner_forms(Target.plain(table))
    assert has_fit(forms, table, n_constants)
    assert all(operators_of(form) <= set(function_set) for form in forms)
    assert all(form.starts.shape == (1, MaskedTree(form.nodes).n_constants) for form in forms)


# Between two steps of the scan another pair, such as sin(theta*x) and cos(x), comes closer than the pair of the law.
@pytest.mark.parametrize(
    ("law", "row", "function_set", "seed"),
    [
        (lambda x, a, b, c: a * np.sin(b * x) + c, (2.57, 2.23, 0.2), ("add", "sub", "mul", "sin", "cos", "const"), 2),
        (INNER["a function in a denominator"][0], (0.71, 0.37, 1.7), ("add", "mul", "div", "exp", "const"), 0),
        (INNER["a shifted root and a line"][0], (1.7, 2.0, 0.3), USUAL, 0),
    ],
)
def test_the_law_is_found_where_another_sum_comes_closer_between_two_steps_of_the_scan(law, row, function_set, seed):
    table = make_table(law, [row], function_set, seed=seed)
    assert has_fit(inner_forms(Target.plain(table)), table, 3)


def test_sums_of_three_terms_are_found_where_they_are_asked_for():
    table = make_table(
        lambda x, a, b, c, d: a + b * x + c * np.exp(d * x), [(1.0, 2.0, 3.0, -1.3), (2.0, 1.0, 0.4, -0.6)]
    )
    assert not has_fit(inner_forms(Target.plain(table), 1), table, 4)
    assert has_fit(inner_forms(Target.plain(table), 1, TRIPLES), table, 4)


@pytest.mark.parametrize(
    "law",
    [
        lambda x, a, b: np.exp(a * np.sin(b * x)),
        lambda x, a, b: np.sin(a * x) * np.tanh(b * x),
        lambda x, a, b: np.exp(-a * x) + np.exp(-b * x) ** 1.5 + x**1.3,
    ],
)
def test_laws_with_more_inner_constants_are_out_of_reach(law):
    table = make_table(law, [(1.3, 2.7), (0.8, 3.1)])
    assert not any(fit_from_first(form, table) < 1e-18 for form in inner_forms(Target.plain(table), 2))


@pytest.mark.parametrize("function_set", [("mul", "sin", "div", "const"), ("add", "sin", "div", "const"), ("exp",)])
def test_without_sums_or_products_there_are_no_inner_constants(function_set):
    table = make_table(lambda x, a, b: a * np.sin(b * x), [(2.0, 3.3), (1.0, 2.9)], function_set)
    assert list(inner_constants(Target.plain(table))) == []


def test_the_subsets_of_a_scan_are_counted():
    table = make_table(lambda x, a, b: a * np.sin(b * x), [(2.0, 3.3)], ("add", "mul", "sin", "const"))
    assert all(tried > 0 for _, tried in inner_constants(Target.plain(table)))


def test_an_inner_constant_is_found_in_noise():
    table = make_table(lambda x, a, b: a * np.sin(b * x), [(2.0, 3.3), (1.0, 2.9)], noise=0.01, n_points=60)
    forms = [form for form in inner_forms(Target.plain(table), 1) if skeleton(form) == "C*sin(C*x1)"]
    best = min(forms, key=lambda form: fit_from_first(form, table))
    np.testing.assert_allclose(np.abs(best.starts[0]), [2.0, 3.3], rtol=0.1)
    assert fit_from_first(best, table) < 1e-3


# --- forms ----------------------------------------------------------------------------------


def test_a_form_starts_where_the_constants_of_each_setting_are():
    nodes = [MaskedTree.from_infix("C*x1 + C + 0.5").with_constants(row) for row in ([1.0, 2.0], [3.0, 4.0])]
    form = Form.of([tuple(tree) for tree in nodes], 7, True)
    np.testing.assert_array_equal(form.starts, [[1.0, 2.0], [3.0, 4.0]])
    assert (form.cost, form.pruned) == (7, True)
    assert form.nodes == tuple(nodes[0])
