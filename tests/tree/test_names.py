import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deap_vsr import Variable, VsrError
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.names import Names, formula_names, latex_name
from deap_vsr.tree.notation import parse, short_formula


def names(*given, units=()):
    return Names(given, units)


def test_a_formula_is_written_in_the_names_of_its_variables():
    tree = MaskedTree.from_infix("2*x1**2 + sin(x2)/x10")
    called = names("T", "p", *(f"a{i}" for i in range(7)), "rho")
    assert called.named(tree).to_infix() == "2*T**2 + sin(p)/rho"
    assert called.named(tree).to_latex() == r"2 \cdot T^{2} + \frac{\sin\left(p\right)}{\rho}"
    assert str(called.named(tree).to_sympy()) == "2*T**2 + sin(p)/rho"
    assert tree.to_infix() == "2*x1**2 + sin(x2)/x10"  # which stays as it was


def test_variables_without_a_name_stay_x1_x2():
    assert names("T").named(MaskedTree.from_infix("x1 + x2")).to_infix() == "T + x2"
    assert Names().plain
    assert names("x1", "x2").plain
    assert not names("x2", "x1").plain


@pytest.mark.parametrize(
    ("given", "symbol"),
    [
        ("T", "T"),
        ("T_in", "T_in"),
        ("λ", "λ"),
        ("flow rate", "flow_rate"),
        ("p [bar]", "p_bar"),
        ("2nd", "v_2nd"),
        ("%", "v"),
        ("µ", "μ"),  # as Python reads it
        ("exp", "exp_"),
        ("lambda", "lambda_"),
        ("pi", "pi_"),
        ("nan", "nan_"),
        ("np", "np_"),
        ("power", "power"),  # no formula is written so
        ("C1", "C1"),
        ("y", "y"),
        ("é²", "é2"),
    ],
)
def test_any_name_has_a_form_that_can_stand_in_a_formula(given, symbol):
    assert formula_names([given]) == (symbol,)


def test_names_that_would_become_the_same_stay_apart():
    assert formula_names(["a b", "a_b", "a-b"]) == ("a_b_", "a_b", "a_b__")
    assert formula_names(["exp", "exp_"]) == ("exp__", "exp_")


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique=True))
@settings(max_examples=500)
def test_formula_names_are_distinct_identifiers(given):
    symbols = formula_names(given)
    assert len(set(symbols)) == len(given)
    assert all(symbol.isidentifier() and not keyword.iskeyword(symbol) for symbol in symbols)


def test_a_formula_in_names_is_read_back():
    called = names("T", "exp", "C", "x1")
    tree = MaskedTree.from_infix("x1*x4 + exp(x2) - x3/x4")
    leaves = {symbol: MaskedTree.from_infix(f"x{i}")[0] for i, symbol in enumerate(called.symbols, 1)}
    assert parse(called.named(tree).to_infix(), leaves) == tree


def test_slots_have_a_letter_that_no_variable_has():
    tree = MaskedTree.from_infix("C*x1 + C")
    assert short_formula(tree, names("T")) == "C1*T + C2"
    assert short_formula(tree, names("C2")) == "K1*C2 + K2"
    assert short_formula(tree, names("C", "K1")) == "c1*C + c2"


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("T", "T"),
        ("x1", "x_{1}"),
        ("T_1", "T_{1}"),
        ("T_in", r"T_{\mathrm{in}}"),
        ("rho", r"\rho"),
        ("rho_0", r"\rho_{0}"),
        ("lambda_", r"\lambda"),
        ("λ", r"\lambda"),
        ("Ω", r"\Omega"),
        ("μ", r"\mu"),
        ("omicron", "o"),
        ("k_B", "k_{B}"),
        ("flow_rate_2", r"\mathrm{flow}_{\mathrm{rate},2}"),
        ("pressure", r"\mathrm{pressure}"),
        ("theta12", r"\theta_{12}"),
        ("_", r"\_"),
    ],
)
def test_a_name_in_latex(name, latex):
    assert latex_name(name) == latex


def test_units_are_shown_beside_names_and_stay_out_of_formulas():
    called = Names.of([Variable("T", 280, 400, unit="K"), Variable("n", 1, 2)], "p", "Pa")
    assert [called.label(0), called.label(1), called.answer] == ["T (K)", "n", "p (Pa)"]
    assert called.named(MaskedTree.from_infix("x1*x2")).to_infix() == "T*n"


def test_the_answer_is_called_y_unless_a_variable_is():
    assert Names.of([Variable("x", 0, 1)]).output == "y"
    assert Names.of([Variable("x", 0, 1), Variable("y", 0, 1)]).output == "f"
    assert Names.of([Variable(n, 0, 1) for n in ("f", "y", "answer")]).output not in ("f", "y", "answer")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 61, 7, None])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(VsrError, match="name of variable 2"):
        Names.of([Variable("T", 0, 1), Variable(name, 0, 1)])


def test_the_same_name_twice_is_refused():
    with pytest.raises(VsrError, match="T is there twice"):
        Names.of([Variable("T", 0, 1), Variable("T", 0, 1)])
    with pytest.raises(VsrError, match="T is there twice"):
        Names.of([Variable("T", 0, 1)], "T")
