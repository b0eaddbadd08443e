"""The generator and the data folder: the same bytes, the structure of the programs, both formulas agreeing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deap_vsr.errors import EquationError, VsrError
from deap_vsr.problems import generate, suites
from deap_vsr.problems.check import check_equation, check_file
from deap_vsr.problems.equation import MAX_BYTES, Equation, format_equation, load_equation, parse_equation
from deap_vsr.problems.generate import CONFIGURATIONS, DECORATIONS, LARGE_CONFIGURATIONS, trigonometric_program
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree

TABLES = generate.TABLES


@dataclasses.dataclass
class Program:
    """A trigonometric program taken apart: constants, and (operator or "", variable) of each factor."""

    constant: float
    singles: list[tuple[float, tuple[str, int]]]
    pairs: list[tuple[float, tuple[str, int], tuple[str, int]]]

    @property
    def coefficients(self) -> list[float]:
        return [self.constant, *(term[0] for term in self.singles), *(term[0] for term in self.pairs)]

    @property
    def factors(self) -> list[tuple[str, int]]:
        return [factor for term in (*self.singles, *self.pairs) for factor in term[1:]]


def take_apart(tree: MaskedTree) -> Program:
    """Read ``add(... add(c0, a*u(x)) ..., b*u(x)*v(x))``; anything else fails."""
    tokens = list(reversed(tree.to_tokens()))

    def take(*kinds: str) -> str:
        text, kind = tokens.pop()
        assert kind in kinds, f"{text} is {kind}, expected {kinds}"
        return text

    def factor() -> tuple[str, int]:
        text = take("unary", "var")
        return ("", int(text[1:])) if text.startswith("x") else (text, int(take("var")[1:]))

    n_terms = 0
    while tokens[-1] == ("add", "binary"):
        tokens.pop()
        n_terms += 1
    program = Program(float(take("const")), [], [])
    for _ in range(n_terms):
        assert take("binary") == "mul"
        if tokens[-1][1] == "const":
            program.singles.append((float(take("const")), factor()))
        else:
            assert take("binary") == "mul"
            program.pairs.append((float(take("const")), factor(), factor()))
    assert not tokens
    return program


# --- the data folder ----------------------------------------------------------------------


def test_the_data_folder_is_byte_for_byte_what_the_generator_writes(tmp_path: Path) -> None:
    problems = chain(generate.trigonometric_suite(), *map(generate.table_suite, TABLES))
    assert generate.write_problems(problems, tmp_path) == 673
    written = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.*")}
    root = suites.data_root()
    kept = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.json")}
    assert len(kept) == 673
    assert sorted(kept) == sorted(written)
    assert [name for name in kept if kept[name] != written[name]] == []


def test_the_data_folder_has_the_suites_of_the_paper() -> None:
    counts = Counter(name.rpartition("/")[0] for name in suites.problem_names())
    programs = {f"trigonometric/{operators}/{m}-{s}-{p}": 10 for operators in DECORATIONS for m, s, p in CONFIGURATIONS}
    livermore = {f"livermore2/Vars{m}": 25 for m in range(2, 8)}
    assert counts == programs | livermore | {"feynman": 120, "feynman-unit": 120, "classic": 73}


def test_every_list_equals_its_formula_and_every_usable_problem_is_finite() -> None:
    files = suites.problem_files(suites.data_root())
    assert len(files) == 673
    assert [line for path in files for line in check_file(path)] == []


def test_every_usable_problem_is_finite_and_not_constant_on_its_domain() -> None:
    wrong = []
    for name in suites.problem_names():
        equation = load_equation(name)
        y = equation.evaluate(draw_inputs(equation.variables, 500, np.random.default_rng(1)))
        if equation.usable and not (np.isfinite(y).all() and np.ptp(y) > 0):
            wrong.append(name)
    assert wrong == []


def test_a_problem_that_is_not_usable_says_why() -> None:
    problems = [load_equation(name) for name in suites.problem_names()]
    unusable = [equation for equation in problems if not equation.usable]
    assert unusable
    assert all(equation.reason for equation in unusable)


def test_the_writers_rules_hold_in_every_file() -> None:
    for name in suites.problem_names():
        equation = load_equation(name)
        assert generate.writer_form(equation.tree) == equation.tree, name
        assert "neg" not in equation.function_set, name


def test_a_file_is_written_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    equation = trigonometric_program("inv", (2, 1, 1), 0)
    path = tmp_path / f"{equation.name}.json"
    path.parent.mkdir(parents=True)
    path.write_text("an older file")
    assert generate.write_problems([equation], tmp_path) == 1
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]
    assert path.read_bytes() == format_equation(equation).encode()
    assert load_equation(path) == equation


# --- trigonometric programs ---------------------------------------------------------------


@pytest.mark.parametrize("operators", DECORATIONS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_kept_program_has_the_structure_of_the_paper(operators: str, configuration: tuple[int, int, int]) -> None:
    m, s, p = configuration
    for index in range(10):
        equation = load_equation(f"trigonometric/{operators}/{m}-{s}-{p}/prog_{index}")
        program = take_apart(equation.tree)
        assert equation.n_vars == m
        assert len(program.singles) == s
        assert len({factor[1] for _, factor in program.singles}) == s, "single terms on different variables"
        assert len(program.pairs) == p
        assert len({frozenset((u[1], v[1])) for _, u, v in program.pairs}) == p, "different unordered pairs"
        assert all(u[1] != v[1] for _, u, v in program.pairs)
        assert {number for _, number in program.factors} == set(range(1, m + 1)), "every variable appears"
        assert {operator for operator, _ in program.factors} <= {"", *DECORATIONS[operators]}
        for value in program.coefficients:
            assert value != 0
            assert -1 < value < 1
            assert value == round(value, 4)
        assert equation.function_set == ("add", "sub", "mul", *DECORATIONS[operators], "const")
        assert all(
            (v.low, v.high, v.sampling, v.sign) == (0.1, 10, "loguniform", "positive") for v in equation.variables
        )


@pytest.mark.parametrize("operators", DECORATIONS)
@pytest.mark.parametrize("configuration", LARGE_CONFIGURATIONS)
def test_larger_configurations_are_drawn_by_the_same_scheme(
    operators: str, configuration: tuple[int, int, int]
) -> None:
    m, s, p = configuration
    equation = trigonometric_program(operators, configuration, 3, seed=7)
    program = take_apart(equation.tree)
    assert {factor[1] for _, factor in program.singles} == set(range(1, m + 1))
    assert (len(program.singles), len({frozenset((u[1], v[1])) for _, u, v in program.pairs})) == (s, p)
    assert ("div" in equation.function_set) == ("inv" in DECORATIONS[operators])
    assert equation.group == f"({m},{s},{p})"
    assert check_equation(equation) == []


@pytest.mark.parametrize("operators", DECORATIONS)
def test_half_of_the_variables_are_plain_and_the_operators_share_the_rest(operators: str) -> None:
    programs = [trigonometric_program(operators, (6, 6, 10), index, seed=1) for index in range(200)]
    counts = Counter(operator for equation in programs for operator, _ in take_apart(equation.tree).factors)
    total = counts.total()
    assert total == 200 * 26
    assert counts[""] / total == pytest.approx(1 / 2, abs=0.03)
    for operator in DECORATIONS[operators]:
        assert counts[operator] / total == pytest.approx(1 / 2 / len(DECORATIONS[operators]), abs=0.03)


def test_coefficients_spread_evenly_over_minus_one_to_one() -> None:
    programs = [trigonometric_program("inv", (6, 6, 10), index, seed=1) for index in range(200)]
    values = np.array([value for equation in programs for value in take_apart(equation.tree).coefficients])
    assert np.mean(values) == pytest.approx(0, abs=0.03)
    assert np.std(values) == pytest.approx(1 / np.sqrt(3), abs=0.01)
    np.testing.assert_array_equal(values, np.round(values, 4))
    assert (values != 0).all()


def test_a_coefficient_that_rounds_to_zero_is_drawn_again() -> None:
    class Draws:
        values = iter([0.5, 0.50001, 0.49999, 0.75])

        def random(self) -> float:
            return next(self.values)

    assert generate._coefficient(Draws()).value == 0.5  # type: ignore[arg-type]


def test_every_pair_and_every_single_variable_is_drawn_equally_often() -> None:
    pairs: Counter[frozenset[int]] = Counter()
    singles: Counter[int] = Counter()
    for index in range(1000):
        program = take_apart(trigonometric_program("sincos", (3, 2, 2), index, seed=2).tree)
        pairs.update(frozenset((u[1], v[1])) for _, u, v in program.pairs)
        singles.update(factor[1] for _, factor in program.singles)
    for counts in (pairs, singles):
        assert len(counts) == 3
        assert all(count == pytest.approx(2000 / 3, abs=75) for count in counts.values())


def test_seed_set_configuration_and_index_each_give_another_program() -> None:
    base = ("sincosinv", (3, 2, 2), 0, 0)
    others = [("sincos", *base[1:]), ("sincosinv", (3, 2, 1), 0, 0), (*base[:2], 1, 0), (*base[:3], 1)]
    trees = [tuple(trigonometric_program(*arguments).tree.to_tokens()) for arguments in (base, *others)]
    assert len(set(trees)) == len(trees)
    assert trigonometric_program(*base) == trigonometric_program(*base)


def test_programs_do_not_depend_on_the_hash_seed(run_python: Callable[..., str]) -> None:
    script = """
import hashlib
from deap_vsr.problems.equation import format_equation
from deap_vsr.problems.generate import table_suite, trigonometric_suite
problems = [*trigonometric_suite(programs=2, seed=5, n_vars=40), *table_suite("feynman")]
print(hashlib.sha256("".join(map(format_equation, problems)).encode()).hexdigest())
"""
    here = [*generate.trigonometric_suite(programs=2, seed=5, n_vars=40), *generate.table_suite("feynman")]
    expected = hashlib.sha256("".join(map(format_equation, here)).encode()).hexdigest()
    assert [run_python(script, PYTHONHASHSEED=seed).strip() for seed in ("1", "2")] == [expected] * 2


def test_a_suite_is_every_set_and_configuration_in_order() -> None:
    drawn = list(generate.trigonometric_suite(["sincos", "inv"], [(2, 1, 1), (8, 8, 12)], programs=2, seed=3))
    assert [equation.name for equation in drawn] == [
        f"trigonometric/{operators}/{shape}/prog_{index}"
        for operators in ("sincos", "inv")
        for shape in ("2-1-1", "8-8-12")
        for index in range(2)
    ]


# --- distractors --------------------------------------------------------------------------


@pytest.mark.parametrize("total", [6, 10, 50, 1000])
def test_a_program_is_the_same_with_and_without_distractors_up_to_renaming(total: int) -> None:
    for index in range(5):
        plain = trigonometric_program("sincosinv", (5, 5, 8), index, seed=4)
        among = trigonometric_program("sincosinv", (5, 5, 8), index, seed=4, n_vars=total)
        pairs = list(zip(plain.tree.to_tokens(), among.tree.to_tokens(), strict=True))
        places = {(old, new) for (old, kind), (new, _) in pairs if kind == "var"}
        assert [(o, n) for o, n in pairs if o != n and o[1] != "var"] == [], "all but the variables is the same"
        assert len(places) == len(dict(places)) == len({new for _, new in places}) == 5, "a renaming"
        assert all(1 <= int(new[1:]) <= total for _, new in places)
        assert among.n_vars == total
        assert among.name == f"trigonometric/sincosinv/5-5-8-of-{total}/prog_{index}"
        assert among.group == f"(5,5,8) of {total}"
        assert among.function_set == plain.function_set


def test_places_among_distractors_are_random_and_not_in_order() -> None:
    orders = []
    for index in range(40):
        among = trigonometric_program("inv", (5, 5, 5), index, n_vars=50)
        plain = trigonometric_program("inv", (5, 5, 5), index)
        renamed = dict(zip(plain.tree.to_tokens(), among.tree.to_tokens(), strict=True))
        orders.append([int(renamed[f"x{i}", "var"][0][1:]) for i in range(1, 6)])
    assert sum(order == sorted(order) for order in orders) < 5
    assert len({tuple(order) for order in orders}) == 40
    assert set(chain(*orders)) >= set(range(5, 50, 5)), "no part of the range is left out"


def test_a_program_among_a_thousand_variables_is_a_file_that_loads_and_depends_on_its_own_only() -> None:
    equation = trigonometric_program("sincosinv", (5, 5, 5), 0, n_vars=1000)
    text = format_equation(equation)
    assert len(text.encode()) < MAX_BYTES
    assert parse_equation(text) == equation
    rng = np.random.default_rng(0)
    X = draw_inputs(equation.variables, 20, rng)
    used = sorted({number - 1 for _, number in take_apart(equation.tree).factors})
    other = draw_inputs(equation.variables, 20, rng)
    other[:, used] = X[:, used]
    np.testing.assert_array_equal(equation.evaluate(other), equation.evaluate(X))
    for column in used:
        moved = X.copy()
        moved[:, column] *= 1.1
        assert (equation.evaluate(moved) != equation.evaluate(X)).any()


def test_as_many_places_as_variables_means_no_distractors() -> None:
    assert trigonometric_program("inv", (5, 5, 5), 0, n_vars=5) == trigonometric_program("inv", (5, 5, 5), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tan", (2, 1, 1), 0), "unknown trigonometric set 'tan'; known are inv, sincos, sincosinv"),
        (("", (2, 1, 1), 0), "unknown trigonometric set"),
        (("inv", (2, 3, 1), 0), "at most m single"),
        (("inv", (2, 1, 2), 0), "at most m single"),
        (("inv", (2, -1, 1), 0), "at most m single"),
        (("inv", (2, 1, -1), 0), "at most m single"),
        (("inv", (2, 0, 0), 0), "at most m single"),
        (("inv", (0, 0, 0), 0), "at most m single"),
        (("inv", (-1, 0, 1), 0), "at most m single"),
        (("inv", (5, 5, 5), 0, 0, 4), "4 variables in all: expected from 5 up to 1000"),
        (("inv", (5, 5, 5), 0, 0, 1001), "1001 variables in all"),
        (("inv", (1001, 1, 0), 0), "1001 variables in all"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(VsrError, match=message.replace("(", r"\(")):
        trigonometric_program(*arguments)


# --- the table ----------------------------------------------------------------------------


def test_dummy_variables_leave_a_law_what_it_was() -> None:
    plain = {equation.name.rpartition("/")[2]: equation for equation in generate.table_suite("feynman")}
    rng = np.random.default_rng(0)
    counts = Counter()
    for law in generate.dummy_suite(seed=3):
        own = plain[law.name.removeprefix("feynman+dummy/")]
        dummies = [i for i, v in enumerate(law.variables) if v.symbol.startswith("dummy")]
        kept = [i for i in range(law.n_vars) if i not in dummies]
        assert [dataclasses.replace(law.variables[i], name="") for i in kept] == [
            dataclasses.replace(v, name="") for v in own.variables
        ]
        X = draw_inputs(law.variables, 20, rng)
        np.testing.assert_array_equal(law.evaluate(X), own.evaluate(X[:, kept]))
        assert check_equation(law) == check_equation(own)
        assert all(law.variables[i].high / law.variables[i].low == pytest.approx(100) for i in dummies)
        counts[len(dummies)] += 1
    assert sum(counts.values()) == 120
    assert min(counts[n] for n in (1, 2, 3)) > 20


def test_dummy_variables_are_at_all_places_and_another_seed_puts_them_elsewhere() -> None:
    laws = list(generate.dummy_suite())
    last = [law.variables[-1].symbol.startswith("dummy") for law in laws]
    assert 30 < sum(last) < 90
    assert laws == list(generate.dummy_suite(0))
    assert laws != list(generate.dummy_suite(1))


def test_a_row_of_the_table_is_read() -> None:
    row = {"suite": "feynman", "id": "I.1", "group": "m=2", "formula": "exp(-x1/2)*x2**1.5", "usable": "yes"}
    row |= {"variables": "T 0.1..10 loguniform both; n 1..5 integer", "operators": "exp n2", "judge": "fit", "note": ""}
    equation = generate._from_row(row)
    assert equation.name == "feynman/I.1"
    assert equation.function_set == ("add", "sub", "mul", "div", "n2", "sqrt", "exp", "const")
    assert [(v.name, v.symbol, v.bounds, v.sampling, v.sign) for v in equation.variables] == [
        ("x1", "T", (-10, 10), "loguniform", "both"),
        ("x2", "n", (1, 4), "integer", "positive"),
    ]
    assert (equation.judge, equation.usable, equation.formula) == ("fit", True, row["formula"])
    assert equation.tree.to_infix() == "exp(-1*x1/2)*(x2*sqrt(x2))"


@pytest.mark.parametrize("text", ["T 0.1 10", "T 0.1..10 normal", "T 0.1..10 loguniform negative"])
def test_a_range_in_the_table_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(EquationError, match=r"expected symbol low\.\.high"):
        generate._range(text, 1, "feynman/I.1")


# --- checking -----------------------------------------------------------------------------


def test_a_problem_that_is_right_has_nothing_to_report(make_equation: Callable[..., Equation]) -> None:
    assert check_equation(make_equation()) == []


@pytest.mark.parametrize(
    ("formula", "report"),
    [
        ("x1 + 0.26*x2", "formula: differs from the pre-order list on 1000 of 1000 points"),
        ("x1 + 0.2500001*x2", "formula: differs from the pre-order list on"),
        ("x1 + 0.25*abs(x2)", "formula: differs from the pre-order list on"),
        ("x1 + 0.25*x2 + log(-1)", "formula: differs from the pre-order list on 1000 of 1000 points"),
        ("1/0", "formula: differs from the pre-order list on 1000 of 1000 points"),
        ("x1 + 0.25*x3", "formula: the tree uses x3, X has only 2 columns"),
        ("x1 + 0.25*y", "formula: unknown name 'y'"),
        ("x1 + ", "formula: not a formula"),
        ("__import__('os')", "formula: "),
    ],
)
def test_a_wrong_formula_is_reported(formula: str, report: str, make_equation: Callable[..., Equation]) -> None:
    (line,) = check_equation(make_equation(formula=formula))
    assert line.startswith(report)


def test_a_difference_within_rounding_is_none(make_equation: Callable[..., Equation]) -> None:
    assert check_equation(make_equation(formula="(4*x1 + x2)/4")) == []


def test_a_usable_problem_that_is_not_finite_is_reported(make_equation: Callable[..., Equation]) -> None:
    tokens = [["log", "unary"], ["x2", "var"]]
    equation = make_equation(equation=tokens, function_set=["log"], formula="log(x2)")
    (line,) = check_equation(equation)
    assert line.startswith("equation: not finite on ")
    assert line.endswith(" of 1000 points, but marked usable")
    assert check_equation(dataclasses.replace(equation, usable=False, reason="x2 may be negative")) == []


def test_a_problem_not_usable_without_a_reason_is_reported(make_equation: Callable[..., Equation]) -> None:
    assert check_equation(make_equation(usable=False)) == ["reason: empty, but the problem is marked as not usable"]


def test_infinities_and_nan_in_the_same_places_agree(make_equation: Callable[..., Equation]) -> None:
    tokens = [["div", "binary"], ["x1", "var"], ["log", "unary"], ["sub", "binary"], ["x2", "var"], ["x2", "var"]]
    equation = make_equation(equation=tokens, function_set=["div", "log", "sub"], formula="x1/log(x2 - x2)")
    assert check_equation(dataclasses.replace(equation, usable=False, reason="never")) == []


def test_every_fault_of_a_problem_is_reported(make_equation: Callable[..., Equation]) -> None:
    tokens = [["log", "unary"], ["x2", "var"]]
    equation = make_equation(equation=tokens, function_set=["log"], formula="x1")
    assert [line.partition(":")[0] for line in check_equation(equation)] == ["formula", "equation"]


def test_checking_a_file_names_it_in_every_line(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document | {"formula": "x1", "usable": False}))
    lines = check_file(path)
    assert len(lines) == 2
    assert all(line.startswith(f"{path}: ") for line in lines)
    path.write_text("{")
    (line,) = check_file(path)
    assert line.startswith(f"{path}: found")


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    program = trigonometric_program("inv", (2, 1, 1), 0)
    with pytest.raises(EquationError, match="inside the folder"):
        generate.write_problems([dataclasses.replace(program, name="../escaped")], tmp_path / "data")
    assert not (tmp_path / "escaped.json").exists()
