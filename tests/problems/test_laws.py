"""Laws to judge on: the same bytes for a seed, finite, every variable mattering, none of them in the data folder."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deap_vsr.errors import VsrError
from deap_vsr.problems import generate, laws, suites
from deap_vsr.problems.check import check_equation
from deap_vsr.problems.equation import Equation, Variable, format_equation, load_equation, parse_equation
from deap_vsr.problems.laws import BROAD, FAMILIES, N_VARS, effects, law, laws_suite
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree, is_number
from deap_vsr.tree.simplify import structural_hash, with_sums

COUNT = 120


@pytest.fixture(scope="module")
def drawn() -> list[Equation]:
    return list(laws_suite(COUNT, seed=5))


# --- the same for a seed ------------------------------------------------------------------


def test_a_seed_gives_the_same_bytes_whatever_the_hash_seed(
    drawn: list[Equation], run_python: Callable[..., str]
) -> None:
    script = """
import hashlib
from deap_vsr.problems.equation import format_equation
from deap_vsr.problems.laws import laws_suite
print(hashlib.sha256("".join(map(format_equation, laws_suite(30, seed=5))).encode()).hexdigest())
"""
    expected = hashlib.sha256("".join(map(format_equation, drawn[:30])).encode()).hexdigest()
    assert run_python(script, PYTHONHASHSEED="1").strip() == expected


def test_another_seed_gives_other_laws(drawn: list[Equation]) -> None:
    other = list(laws_suite(30, seed=6))
    assert [a.name for a in other] == [b.name for b in drawn[:30]]
    assert not {a.formula for a in other} & {b.formula for b in drawn[:30]}


def test_a_law_does_not_depend_on_what_else_is_drawn(drawn: list[Equation]) -> None:
    of_two = list(laws_suite(6, seed=5, families=["decays", "sums"]))
    assert [equation.name for equation in of_two] == [
        f"laws/{family}_{number}" for number in range(3) for family in ("decays", "sums")
    ]
    by_name = {equation.name: equation for equation in drawn}
    assert all(equation == by_name[equation.name] for equation in of_two)


# --- what is drawn ------------------------------------------------------------------------


def test_families_come_by_turns_with_every_number_of_variables(drawn: list[Equation]) -> None:
    assert [equation.group for equation in drawn[:12]] == list(FAMILIES) * 2
    counts = Counter((equation.group, equation.n_vars) for equation in drawn)
    assert set(counts) == {(family, n_vars) for family in FAMILIES for n_vars in N_VARS}
    assert len(set(counts.values())) == 1
    assert {equation.n_vars for equation in drawn[:6]} == {2, 3, 4, 5, 6}


def test_laws_of_a_seed_are_different(drawn: list[Equation]) -> None:
    assert len({equation.formula for equation in drawn}) == len(drawn)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_template_is_used(family: str) -> None:
    formulas = [law(family, number, seed=1).formula for number in range(60)]
    for template in FAMILIES[family]:
        shape = re.sub(r"\\{[0-9]\\}", ".+", re.escape(template.text))
        assert any(re.fullmatch(shape, formula) for formula in formulas), template.text


def test_operators_allowed_are_many_more_than_a_law_needs(drawn: list[Equation]) -> None:
    for equation in drawn:
        needed = {node.name for node in equation.tree if node.arity}
        assert needed | set(BROAD) | {"const"} <= set(equation.function_set)
        assert len(equation.function_set) >= 13
    assert len({equation.function_set for equation in drawn}) > 5


def test_numbers_have_few_digits_and_common_sizes(drawn: list[Equation]) -> None:
    numbers = [abs(node.value) for equation in drawn for node in equation.tree if is_number(node)]
    assert len(numbers) > COUNT
    assert all(value == float(f"{value:.3g}") and 1e-4 <= value <= 1e4 for value in numbers)
    assert len(set(numbers)) > 100
    assert numbers.count(2.0) + numbers.count(0.5) > 3


def test_every_variable_is_used_and_its_range_is_positive(drawn: list[Equation]) -> None:
    for equation in drawn:
        names = {node.value for node in equation.tree if not node.arity and not is_number(node)}
        assert names == {v.name for v in equation.variables}
        assert all(0 < v.low < v.high for v in equation.variables)


# --- what can serve -----------------------------------------------------------------------


def test_laws_are_finite_over_the_domain_and_within_six_decades(drawn: list[Equation]) -> None:
    for equation in drawn:
        y = np.abs(equation.evaluate(draw_inputs(equation.variables, 5000, np.random.default_rng(1))))
        assert np.isfinite(y).all(), equation.formula
        assert np.log10(np.max(y) / np.quantile(y, 0.02)) < 6.1, equation.formula


def test_every_variable_matters(drawn: list[Equation]) -> None:
    for equation in drawn:
        X, other = draw_inputs(equation.variables, 10_000, np.random.default_rng(2)).reshape(2, 5000, -1)
        assert min(effects(equation, X, other)) > 0.04, equation.formula  # other points than the draw looked at


def test_effects_are_in_units_of_the_spread() -> None:
    variables = (Variable("x1", 0.0, 1.0), Variable("x2", 0.0, 1.0), Variable("x3", 0.0, 1.0))
    tree = MaskedTree.from_infix("10*x1 + 0.01*x2")
    equation = Equation("made up", variables, ("add", "mul", "const"), tree, "10*x1 + 0.01*x2")
    X, other = draw_inputs(variables, 10_000, np.random.default_rng(0)).reshape(2, 5000, 3)
    assert effects(equation, X, other) == pytest.approx([np.sqrt(2.0), 0.001 * np.sqrt(2.0), 0.0], rel=0.05)


@pytest.mark.parametrize(
    "formula",
    [
        "x1*x2/(x1 - x2)",
        "log(x1 - 2)*x2",
        "x1 + 0.001*x2",
        "exp(9*x1)*x2",
        "x1*x2*123456",
        "x1 + 0.00001*x2**8",
    ],
)
def test_what_cannot_serve_is_seen(formula: str) -> None:
    variables = (Variable("x1", 1.0, 3.0), Variable("x2", 1.0, 3.0))
    equation = Equation("made up", variables, BROAD, MaskedTree.from_infix(formula), formula)
    assert not laws._serves(equation, laws.random.Random(0))
    good = Equation("made up", variables, BROAD, MaskedTree.from_infix("x1*x2/(x1 + x2)"), "")
    assert laws._serves(good, laws.random.Random(0))


def test_none_is_in_the_data_folder(drawn: list[Equation]) -> None:
    kept = {structural_hash(with_sums(load_equation(path).tree)) for path in suites.problem_files(suites.data_root())}
    assert len(kept) > 300
    assert not kept & {structural_hash(with_sums(equation.tree)) for equation in drawn}


@pytest.mark.parametrize(
    ("formula", "known"),
    [
        ("x1*x2", True),
        ("x1*(x2 + x3*x4*sin(x5))", True),
        ("x5*(x3 + x1*x4*sin(x2))", True),  # with its variables in another order
        ("(x2 + x3*x4*sin(x5))*x1", True),
        ("1.7*x1*x2*(1/x4 - 1/x3)", True),  # with other numbers
        ("x1*(x2 + x3*x4*sin(x1))", False),
        ("0.3*x1*exp(-0.2*x2*x3)/x4", False),
    ],
)
def test_a_formula_of_the_data_folder_is_known(formula: str, known: bool) -> None:
    assert laws._is_known(generate.writer_form(MaskedTree.from_infix(formula))) is known


def test_files_pass_the_check_and_read_back(drawn: list[Equation], tmp_path: Path) -> None:
    for equation in drawn:
        assert check_equation(equation) == []
        assert parse_equation(format_equation(equation)) == equation
    assert generate.write_problems(drawn[:7], tmp_path) == 7
    assert (tmp_path / "laws" / "products_1.json").is_file()


# --- bad arguments ------------------------------------------------------------------------


def test_unknown_and_no_families_are_refused() -> None:
    with pytest.raises(VsrError, match="unknown family of laws 'nothing'; known are products, ratios"):
        list(laws_suite(1, families=["nothing"]))
    with pytest.raises(VsrError, match="no family of laws"):
        list(laws_suite(1, families=[]))


def test_a_law_that_never_serves_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "MAX_DRAWS", 3)
    monkeypatch.setattr(laws, "_serves", lambda equation, rng: False)
    with pytest.raises(VsrError, match="no law decays_0 with 4 variables in 3 draws"):
        law("decays", 0)
