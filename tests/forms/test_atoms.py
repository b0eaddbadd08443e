import itertools
import math

import numpy as np
import pytest

from deap_vsr import ExpressionError, MaskedTree, register_operator
from deap_vsr.engine.program import evaluate
from deap_vsr.forms.atoms import atoms_of, functions
from deap_vsr.tree import Constant, operators, variable
from deap_vsr.tree.operators import CATALOGUE

SETS = [
    ("add", "mul", "const"),
    ("add", "sub", "mul", "div", "const"),
    ("add", "mul", "inv", "n2", "n3", "const"),
    ("add", "mul", "sin", "cos", "const"),
    ("add", "sub", "mul", "div", "exp", "log", "sqrt", "sin", "cos", "n2", "const"),
    ("mul", "tanh", "arctan", "abs"),
    ("sub", "exp"),
    tuple(CATALOGUE),
]


@pytest.fixture
def own_operators(monkeypatch):
    """Operators registered in a test are forgotten after it; give them names of their own all the same."""
    monkeypatch.setattr(operators, "_ALIASES", dict(operators._ALIASES))
    return register_operator


def texts(*function_set, **options):
    return [MaskedTree(atom.nodes).to_infix() for atom in atoms_of(function_set, **options)]


def half_root(x):
    return x / math.sqrt(2.0 + x)


def mean_of_squares(a, b):
    return math.sqrt(a * a + b * b + 0.5)


# --- small sets, atom by atom --------------------------------------------------------------


@pytest.mark.parametrize(
    ("function_set", "expected"),
    [
        (("add", "mul", "const"), ["x1", "x1*x1", "x1*(x1*x1)", "x1*(x1*(x1*x1))"]),
        (
            ("inv", "mul"),
            [
                "x1", "inv(x1)", "x1*x1", "inv(x1*x1)", "x1*(x1*x1)", "inv(x1*(x1*x1))", "x1*(x1*(x1*x1))",
                "inv(x1*(x1*(x1*x1)))",
            ],
        ),
        (("div",), ["x1", "1/x1", "x1/(1/x1)", "1/x1/x1", "x1/(1/x1/x1)", "1/x1/x1/x1"]),
        (("add", "sin", "const"), ["x1", "sin(x1)", "sin(sin(x1))", "sin(sin(sin(x1)))", "sin(x1 + sin(x1))"]),
        (("sub", "exp"), ["x1", "exp(x1)", "exp(exp(x1))", "exp(exp(exp(x1)))", "exp(x1 - exp(x1))"]),
        (
            ("mul", "cos"),
            ["x1", "cos(x1)", "x1*x1", "x1*cos(x1)", "cos(x1*x1)", "cos(cos(x1))", "x1*(x1*x1)", "cos(x1)*cos(x1)"],
        ),
        (("n2", "n3"), ["x1", "x1**2", "x1**3", "(x1**2)**2", "(x1**3)**2", "(x1**3)**3"]),
    ],
)  # fmt: skip
def test_the_atoms_of_a_small_set_are_these(function_set, expected):
    assert texts(*function_set)[: len(expected)] == expected


@pytest.mark.parametrize("function_set", [("neg", "const"), ("pow", "const"), ("add", "sub", "const"), ("const",), ()])
def test_a_set_without_functions_and_products_has_x_alone(function_set):
    assert texts(*function_set) == ["x1"]


def test_the_set_decides_about_the_atoms_and_its_order_does_not():
    X = np.linspace(0.2, 2.9, 11)[:, None]
    values = []
    for function_set in (("add", "mul", "sin", "cos"), ("cos", "const", "mul", "sin", "add")):
        atoms = atoms_of(function_set, max_cost=5)
        values.append(sorted(tuple(np.round(row, 9)) for row in evaluate([atom.nodes for atom in atoms], X)))
    assert len(values[0]) > 15
    np.testing.assert_allclose(values[0], values[1])


def test_limits_on_cost_and_number_cut_the_list_short_and_change_nothing_else():
    everything = texts("mul", "sin", "exp")
    assert texts("mul", "sin", "exp", limit=20) == everything[:20]
    cheap = atoms_of(("mul", "sin", "exp"), max_cost=5)
    assert max(atom.cost for atom in cheap) == 5
    assert [MaskedTree(atom.nodes).to_infix() for atom in cheap] == everything[: len(cheap)]
    assert len(atoms_of(tuple(CATALOGUE))) == 150


# --- what holds for every set --------------------------------------------------------------


@pytest.mark.parametrize("function_set", SETS)
def test_atoms_hold_no_constants_but_the_literal_1_of_a_reciprocal(function_set):
    for atom in atoms_of(function_set):
        for before, node in zip((None, *atom.nodes), atom.nodes, strict=False):
            if isinstance(node, Constant):
                assert node.value == 1.0
                assert not node.fitted
                assert before is not None
                assert before.name == "div"
        assert MaskedTree(atom.nodes).n_constants == 0


@pytest.mark.parametrize("function_set", SETS)
def test_atoms_use_operators_of_the_set_and_one_variable_only(function_set):
    for atom in atoms_of(function_set):
        MaskedTree(atom.nodes).checked()
        assert {node.name for node in atom.nodes if node.arity} <= set(function_set)
        assert {node.value for node in atom.nodes if not node.arity} - {1.0} == {"x1"}


@pytest.mark.parametrize("function_set", SETS)
def test_no_two_atoms_have_the_same_values_up_to_a_factor(function_set):
    X = np.random.default_rng(0).uniform(0.15, 2.9, (60, 1))
    values = evaluate([atom.nodes for atom in atoms_of(function_set)], X)
    values = values[np.isfinite(values).all(axis=1)]
    assert len(values) > 1
    for f, g in itertools.combinations(values, 2):
        ratio = f / g
        assert np.ptp(ratio) > 1e-7 * np.max(np.abs(ratio))


@pytest.mark.parametrize("function_set", SETS)
def test_atoms_come_cheapest_first_and_x_is_the_first(function_set):
    atoms = atoms_of(function_set)
    costs = [atom.cost for atom in atoms]
    assert atoms[0].nodes == (variable(1),)
    assert costs == sorted(costs)
    assert costs[0] == 1 < costs[1]


@pytest.mark.parametrize("function_set", SETS)
def test_sums_are_no_atoms(function_set):
    assert not [atom for atom in atoms_of(function_set) if atom.nodes[0].name in ("add", "sub")]


def test_sums_are_arguments_of_functions():
    assert "sin(x1 + sin(x1))" in texts("add", "sin")
    assert "exp(x1 - exp(x1))" in texts("sub", "exp")
    assert not [text for text in texts("mul", "sin") if "+" in text or "-" in text]


@pytest.mark.parametrize("function_set", SETS)
def test_no_atom_is_a_constant_in_disguise(function_set):
    X = np.random.default_rng(1).uniform(0.15, 2.9, (60, 1))
    for values in evaluate([atom.nodes for atom in atoms_of(function_set)], X):
        finite = values[np.isfinite(values)]
        assert np.ptp(finite) > 1e-9 * np.max(np.abs(finite))


def test_an_atom_of_another_column_is_the_same_function_of_it():
    X = np.random.default_rng(2).uniform(0.5, 2.0, (20, 3))
    for atom in atoms_of(("add", "mul", "div", "sin", "n2"))[:40]:
        nodes = atom.of(2)
        np.testing.assert_array_equal(MaskedTree(nodes).evaluate(X), MaskedTree(atom.nodes).evaluate(X[:, [2]]))
        assert "x1" not in [node.value for node in nodes if not node.arity]


def test_a_sign_is_no_function_and_a_division_gives_the_reciprocal():
    assert [function.name for function in functions(("neg", "sin", "const", "add"))] == ["sin"]
    assert [function.name for function in functions(("sin", "div"))] == ["inv", "sin"]
    assert [function.name for function in functions(("sin", "div", "inv"))] == ["sin", "inv"]
    (x,) = atoms_of(())[0].nodes
    reciprocal = functions(("div",))[0]
    assert MaskedTree(reciprocal.of([x], frozenset({"div"}))).to_infix() == "1/x1"
    assert MaskedTree(reciprocal.of([x], frozenset({"div", "inv"}))).to_infix() == "inv(x1)"


# --- operators of one's own ----------------------------------------------------------------


def test_a_unary_operator_of_ones_own_makes_atoms(own_operators):
    own_operators("halfroot_atoms", half_root, 1)
    found = texts("mul", "halfroot_atoms")
    assert found[:4] == ["x1", "halfroot_atoms(x1)", "x1*x1", "x1*halfroot_atoms(x1)"]
    atom = atoms_of(("mul", "halfroot_atoms"))[1]
    np.testing.assert_allclose(evaluate([atom.nodes], np.array([[2.0], [7.0]])), [[1.0, 7.0 / 3.0]])


def test_a_binary_operator_of_ones_own_makes_atoms(own_operators):
    own_operators("meansquare_atoms", mean_of_squares, 2)
    found = texts("meansquare_atoms", "sin")
    assert found[:3] == ["x1", "sin(x1)", "meansquare_atoms(x1, x1)"]
    assert "meansquare_atoms(x1, sin(x1))" in found
    assert "sin(meansquare_atoms(x1, x1))" in found


def test_an_operator_of_ones_own_that_is_one_of_the_set_in_disguise_adds_no_atoms(own_operators):
    own_operators("thrice_atoms", lambda x: 3.0 * x, 1)
    own_operators("product_atoms", lambda a, b: a * b, 2)
    assert texts("mul", "thrice_atoms", max_cost=7) == texts("mul", max_cost=7)
    assert texts("mul", "product_atoms", max_cost=7) == texts("mul", max_cost=7)


def test_an_operator_of_ones_own_may_be_undefined_almost_everywhere(own_operators):
    def picky(x):
        raise ValueError("out of domain")

    own_operators("picky_atoms", picky, 1)
    assert texts("mul", "picky_atoms", max_cost=7) == texts("mul", max_cost=7)


def test_a_name_belongs_to_one_function_for_ever(own_operators):
    first = own_operators("only_once", half_root, 1)
    assert own_operators("only_once", half_root, 1) is first
    with pytest.raises(ExpressionError, match="cannot register 'only_once'"):
        own_operators("only_once", math.cosh, 1)
    with pytest.raises(ExpressionError, match="cannot register 'only_once'"):
        own_operators("only_once", mean_of_squares, 2)


@pytest.mark.parametrize("name", ["x1", "C", "C2", "lambda"])
def test_names_that_formulas_use_cannot_be_registered(own_operators, name):
    with pytest.raises(ExpressionError, match=f"cannot register '{name}'"):
        own_operators(name, half_root, 1)


@pytest.mark.parametrize("name", ["add", "sin", "n2", "pow", "ln", "plus", "square", "const"])
def test_names_of_the_catalogue_and_their_aliases_cannot_be_registered(own_operators, name):
    with pytest.raises(ExpressionError, match=f"cannot register '{name}'"):
        own_operators(name, half_root, 1)


@pytest.mark.parametrize("name", ["", "two words", "2nd", "a+b", "**"])
def test_a_name_that_is_no_identifier_cannot_be_registered(own_operators, name):
    with pytest.raises(ExpressionError, match="cannot register"):
        own_operators(name, half_root, 1)


@pytest.mark.parametrize("arity", [-1, 0, 3])
def test_an_operator_of_ones_own_has_one_or_two_operands(own_operators, arity):
    with pytest.raises(ExpressionError, match="1 or 2 operands"):
        own_operators("arity_atoms", half_root, arity)
    with pytest.raises(ExpressionError):
        operators.get("arity_atoms")
