import numpy as np
import pytest
from one_variable import ALGEBRA, USUAL, fit_error, make_table, make_trials, operators_of, skeleton

from deap_vsr import MaskedTree
from deap_vsr.forms.inner import inner_constants
from deap_vsr.forms.peeling import peeled
from deap_vsr.forms.ratios import ratios
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.roots import roots
from deap_vsr.forms.sums import sparse_sums
from deap_vsr.forms.table import Target
from deap_vsr.lab.budget import Budget
from deap_vsr.search.contract import Task

EXACT = 1e-20

#: A law, its constants at the settings, and a way of writing it that is found.
LAWS = {
    "a line and a root": (
        lambda x, a, b, c: a * x + np.sqrt(b + c * x),
        [(1.3, 0.5, 0.7), (0.4, 1.0, 2.0), (-2.2, 0.6, 3.0)],
        "C*x1 + sqrt(C + C*x1)",
    ),
    "the inverse hyperbolic sine within": (
        lambda x, a: x + np.sqrt(x * x + a),
        [(1.3,), (0.4,), (2.2,)],
        "C*x1 + sqrt(C + C*x1**2)",
    ),
    "a quadratic below": (
        lambda x, a, b, c, d: a * x + np.sqrt(b + c * x + d * x * x),
        [(1.3, 0.5, 0.7, 2.0), (0.4, 1.0, 2.0, 1.0), (2.2, 0.6, 3.0, 0.4)],
        "C*x1 + sqrt(C + C*x1 + C*x1**2)",
    ),
    "the lower branch": (
        lambda x, a, b, c, d: a + b * x - np.sqrt(c + d * x * x),
        [(1.3, 0.5, 0.7, 2.0), (0.4, 1.0, 2.0, 1.0)],
        "C + C*x1 - sqrt(C + C*x1**2)",
    ),
    "a coefficient of x before the square": (
        lambda x, a, b: (-1.0 + np.sqrt(1.0 + a * x)) / (b * x),
        [(1.3, 0.5), (0.4, 1.0), (2.2, 0.6)],
        "(1 - sqrt(C + C*x1))/(C*x1)",
    ),
    "beside another function": (
        lambda x, a, b: np.sin(x) + np.sqrt(a + b / x),
        [(1.3, 0.5), (0.4, 1.0), (2.2, 0.6)],
        "C*sin(x1) + sqrt(C + C/x1)",
    ),
}


@pytest.mark.parametrize("n_points", [12, 30])
@pytest.mark.parametrize("name", LAWS)
def test_a_root_of_a_quadratic_is_found(name, n_points):
    law, rows, expected = LAWS[name]
    table = make_table(law, rows, n_points=n_points)
    found, tried = next(roots(Target.plain(table)))
    assert tried > 0
    assert expected in {skeleton(form) for form in found}
    assert all(fit_error(form, table) < EXACT for form in found)
    assert all(operators_of(form) <= set(USUAL) for form in found)


def test_the_constants_are_those_of_the_law_before_any_fit():
    law, rows, _ = LAWS["a line and a root"]
    (form,) = next(roots(Target.plain(make_table(law, rows))))[0]
    np.testing.assert_allclose(form.starts, rows, rtol=1e-6)


def test_no_stage_before_finds_a_quadratic_below_a_root_in_a_sum():
    law, rows, _ = LAWS["a quadratic below"]
    plain = Target.plain(make_table(law, rows))
    assert next(sparse_sums(plain))[0] == next(ratios(plain))[0] == []
    assert not any(next(sparse_sums(target))[0] for target in peeled(plain))
    forms = [form for forms, _ in inner_constants(plain, 2) for form in forms]
    assert not any(fit_error(form, plain.table) < EXACT for form in forms)


@pytest.mark.parametrize("scale", [1e-40, 1e-9, 1e12, 1e40])
def test_the_scale_of_y_does_not_matter(scale):
    law, rows, expected = LAWS["a line and a root"]
    found, _ = next(roots(Target.plain(make_table(lambda x, *row: scale * law(x, *row), rows))))
    assert expected in {skeleton(form) for form in found}


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_squares_that_are_no_numbers_any_more_are_left_alone(scale):  # warnings are errors
    law, rows, _ = LAWS["a line and a root"]
    for form in next(roots(Target.plain(make_table(lambda x, *row: scale * law(x, *row), rows))))[0]:
        assert np.isfinite(form.starts).all()
    decades = make_table(lambda x, a: np.exp(a * x), [(250.0,), (100.0,), (-250.0,)])
    assert next(roots(Target.plain(decades)))[0] == []


def test_a_root_is_found_behind_a_function():
    table = make_table(lambda x, a: np.log(x + np.sqrt(x * x + a)), [(1.3,), (0.4,), (2.2,)])
    found = [form for target in peeled(Target.plain(table)) for form in next(roots(target))[0]]
    assert "log(C*x1 + sqrt(C + C*x1**2))" in {skeleton(form) for form in found}
    assert all(fit_error(form, table) < EXACT for form in found)


@pytest.mark.parametrize("function_set", [ALGEBRA, ("mul", "div", "sqrt", "const"), ("add", "div", "sqrt", "const")])
def test_a_set_that_cannot_write_a_root_has_none(function_set):
    law, rows, _ = LAWS["a line and a root"]
    assert next(roots(Target.plain(make_table(law, rows, function_set)))) == ([], 0)


def test_without_differences_the_lower_branch_is_a_sum():
    law, rows, _ = LAWS["the lower branch"]
    table = make_table(law, rows, ("add", "mul", "sqrt", "const"))
    (form,) = next(roots(Target.plain(table)))[0]
    assert skeleton(form) == "C + C*x1 + -1*sqrt(C + C*(x1*x1))"
    assert fit_error(form, table) < EXACT


def test_without_quotients_only_roots_without_a_denominator_are_written():
    law, rows, _ = LAWS["a coefficient of x before the square"]
    allowed = {"add", "sub", "mul", "sqrt"}
    found, _ = next(roots(Target.plain(make_table(law, rows, (*allowed, "const")))))
    assert all(operators_of(form) <= allowed for form in found)
    with_inv = make_table(law, rows, ("add", "sub", "mul", "sqrt", "inv", "const"))
    assert "(1 - sqrt(C + C*x1))*inv(C*x1)" in {skeleton(form) for form in next(roots(Target.plain(with_inv)))[0]}


@pytest.mark.parametrize(
    "law",
    [
        lambda x, a, b: a * np.exp(b * x) + np.sin(a * x),
        lambda x, a, b: np.where(x < 1.5, a * x - np.sqrt(b + x), a * x + np.sqrt(b + x)),  # both branches
    ],
)
def test_what_is_on_no_branch_of_a_root_is_not_found(law):
    table = make_table(law, [(1.0, 0.8), (2.0, 1.1)])
    assert not any(fit_error(form, table) < EXACT for form in next(roots(Target.plain(table)))[0])


def test_a_law_that_is_no_root_at_one_setting_is_not_found():
    law, rows, _ = LAWS["a line and a root"]
    table = make_table(lambda x, a, b, c, d: law(x, a, b, c) + d * np.exp(x), [(*row, row[0] < 0) for row in rows])
    assert next(roots(Target.plain(table)))[0] == []


def test_roots_leave_noise_to_others():
    law, rows, _ = LAWS["a line and a root"]
    assert next(roots(Target.plain(make_table(law, rows, noise=0.001)))) == ([], 0)


@pytest.mark.parametrize("name", ["a line and a root", "a quadratic below", "a coefficient of x before the square"])
def test_the_regressor_finds_roots_without_an_expensive_stage(name):
    law, rows, expected = LAWS[name]
    trials = make_trials(law, rows, n_points=12)
    rng = np.random.default_rng(0)
    task = Task([], lambda rng: trials, USUAL, (0,), 1, Budget(), 1e-18, rng, "cheap")
    found = FormsRegressor().regress(task)
    assert expected in {candidate.tree.to_infix(skeleton=True) for candidate in found}
    assert (found[0].errors < EXACT).all()
    assert found[0].tree.n_constants == MaskedTree.from_infix(expected).n_constants
