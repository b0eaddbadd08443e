"""How an answer stands: attacked before it is called found, compared with rivals, and never found for some reasons."""

import numpy as np
import pytest
from scipy import special

from deap_vsr import CallableOracle, MaskedTree, Variable, discover
from deap_vsr.engine import Dataset
from deap_vsr.errors import VsrError
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.outliers import without_outliers
from deap_vsr.search.anonymous import anonymous
from deap_vsr.search.doubts import _crowded, _n_constants_of, _series, _untold, never_found
from deap_vsr.search.finish import reopened
from deap_vsr.search.records import Found
from deap_vsr.search.rivals import lead, turned_over
from deap_vsr.search.standing import CLEARLY, Attack, standing
from deap_vsr.tree.simplify import structural_hash

BROAD = ("add", "sub", "mul", "div", "inv", "n2", "n3", "sqrt", "exp", "log", "sin", "cos", "tanh", "const")


def lab_of(law, n_vars=2, noise=0.0, asked=4000, domains=None, seed=0, **how):
    function = MaskedTree.from_infix(law).evaluate if isinstance(law, str) else law
    oracle = CallableOracle(function, domains or [(0.5, 3.0)] * n_vars, BROAD, noise=noise, seed=seed, **how)
    lab = Lab(oracle, Budget(), np.random.default_rng(seed))
    lab.begin()
    lab.trials(range(n_vars), 1, asked)
    return lab


def answer(text, search="slotwise", tried=("slotwise",), stopped_by="found"):
    tree = MaskedTree.from_infix(text)
    return Found(tree, [(0.0, tree)], [], stopped_by, 0.0, search=search, tried=tried)


# --- exact answers ------------------------------------------------------------------------


def test_a_right_formula_is_found_and_says_what_it_survived():
    lab = lab_of("x1*exp(-x2)", asked=30)
    before = lab.budget.queries
    found, stands = standing(answer("x1*exp(-x2)"), lab)
    assert stands.status == "found"
    assert found.tree.to_infix() == "x1*exp(-x2)"
    assert stands.survived == 12, "8, and 2 for each variable"
    assert stands.share == pytest.approx(3 / 12)
    assert not stands.outside
    assert "12 fresh points" in stands.reason
    assert lab.budget.queries - before < 30


def test_more_points_leave_less_of_the_domain():
    lab = lab_of("x1*exp(-x2)", asked=30)
    lab.verify = 300
    _, stands = standing(answer("x1*exp(-x2)"), lab)
    assert stands.survived == 300
    assert stands.share == pytest.approx(0.01)


def test_outside_is_asked_where_it_may_be():
    lab = lab_of("x1*exp(-x2)", asked=30, limits=[(0.0, 9.0)] * 2)
    _, stands = standing(answer("x1*exp(-x2)"), lab)
    assert stands.outside
    assert (lab.log.X > 3.0).any()
    surrogate = lab_of(lambda X: np.where(X[:, 0] > 3.0, 0.0, X[:, 0]), asked=30, limits=[(0.0, 9.0)] * 2)
    _, stands = standing(answer("x1"), surrogate)
    assert stands.status == "fits"


def stepped(X, low=1.0, high=1.3):
    return X[:, 0] * X[:, 1] * np.where((X[:, 1] > low) & (X[:, 1] < high), 1.5, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_step_in_a_part_of_the_domain_is_named_and_counted_or_not_ruled_out(seed):
    lab = lab_of(stepped, asked=1, seed=seed)
    lab.verify = 40
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "found"
    assert "but where x2 is from 1" in stands.reason
    assert "(12% of the domain)" in stands.reason
    assert 0.12 + 3 / 40 < stands.share < 0.12 + 3 / 20
    assert stands.survived < 40
    assert not stepped_points(lab).any(), "they are of another law"
    assert not lab.log.outliers[1].size, "and no outliers"


def stepped_points(lab):
    x = lab.measured().X[:, 1]
    return (x > 1.0) & (x < 1.3)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X[:, 0] * (X[:, 1] + np.exp(-(((X[:, 1] - 2.0) / 0.02) ** 2))),
        lambda X: X[:, 0] * np.maximum(X[:, 1], 0.8),
        lambda X: X[:, 0] * X[:, 1] * np.where((X[:, 1] > 0.8) & (X[:, 1] < 2.5), 1.5, 1.0),
        lambda X: X[:, 0] * X[:, 1] * np.where(X[:, 1] > 2.7, 1.5, 1.0),
        lambda X: X[:, 0] * X[:, 1] * np.where((X[:, 0] > 2.0) & (X[:, 1] > 1.6), 1.5, 1.0),
    ],
    ids=["a bump", "a kink", "most of the domain", "an end", "a corner"],
)
def test_what_is_no_step_in_one_variable_refutes_a_formula(function):
    lab = lab_of(function, asked=1)
    lab.verify = 120
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "fits"
    assert "disagree" in stands.reason


def test_without_points_to_look_for_it_a_region_is_not_named():
    lab = lab_of(stepped, asked=1)
    lab.verify = 40
    lab = lab.within(Budget(queries=50))
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "fits"


def test_a_measurement_of_before_may_refute_it_too():
    lab = lab_of("x1*x2", asked=10)
    lab.log.add(np.array([[1.0, 1.0]]), np.array([7.0]), np.array([False]))
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "fits"
    assert "1 of" in stands.reason


@pytest.mark.parametrize(
    ("ended", "reason"),
    [("seconds", "time"), ("queries", "points"), ("interrupted", "interrupted"), ("exhausted", "everything")],
)
def test_what_was_not_brought_to_its_end_is_partial(ended, reason):
    _, stands = standing(answer("x1", stopped_by=ended), lab_of("x1*x2", asked=5))
    assert stands.status == "partial"
    assert reason in stands.reason


def test_without_points_nothing_is_found():
    lab = lab_of("x1*x2", asked=10)
    lab = lab.within(Budget(queries=0))
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "fits"
    assert "points" in stands.reason


def test_the_form_of_a_variable_of_few_values_is_not_found():
    domains = [(0.5, 3.0), Variable("x2", 1, 4, "integer", "positive", "")]
    lab = lab_of("x1*(1 + 2*x2**2)", asked=40, domains=domains)
    _, stands = standing(
        answer("x1*(1.7 + 2.3*x2**2 - 1.1*x2)"), lab_of("x1*(1.7 + 2.3*x2**2 - 1.1*x2)", domains=domains)
    )
    assert stands.status == "fits"
    assert "x2 has 3 values" in stands.reason
    _, stands = standing(answer("x1*(1 + 2*x2**2)"), lab)
    assert stands.status == "found"


# --- noise --------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["2.5*x1*exp(-0.7*x2)", "x1/sqrt(x2)", "1.3*sin(2.1*x1) + x2**2", "3*log(1 + 4*x1)*x2"])
def test_a_law_leads_clearly_in_noise(law):
    lab = lab_of(law, noise=0.01)
    found, stands = standing(answer(law), lab)
    assert stands.status == "found", stands.reason
    assert stands.lead >= CLEARLY
    assert found.tree.to_infix() == MaskedTree.from_infix(law).to_infix()


@pytest.mark.parametrize(
    ("law", "other", "noise", "domains"),
    [
        ("x1/(x2 + 0.02*x1)", "x1/(x2 - 1 + exp(0.02*x1))", 0.05, [(0.5, 3.0)] * 2),
        ("11.2/(sqrt(87 + x2)*x1**2)", "11.9*inv(sqrt(127 + x2))/x1**2", 3.5e-4, [(2.0, 20.0), (280.0, 380.0)]),
    ],
    ids=["longer", "in other words"],
)
def test_what_no_data_tell_from_a_formula_and_is_no_shorter_is_no_rival(law, other, noise, domains):
    lab = lab_of(law, noise=noise, domains=domains, asked=9000)
    lab.facts["others"] = [MaskedTree.from_infix(other)]
    _, rivals = lead(MaskedTree.from_infix(law), Dataset.of([lab.measured()]), lab)
    texts = [reopened(tree).to_infix(skeleton=True) for _, tree in rivals]
    assert reopened(MaskedTree.from_infix(other)).to_infix(skeleton=True) not in texts


@pytest.mark.parametrize(("seed", "expected"), [(0, True), (3, False)], ids=["data speak for it", "against it"])
def test_what_is_longer_and_hardly_told_is_a_rival_if_data_speak_for_it(seed, expected):
    lab = lab_of("x1/(x2 + 0.03*x1)", noise=0.05, asked=9000, seed=seed)
    lab.facts["others"] = [MaskedTree.from_infix("x1/(x2 - 1 + exp(0.03*x1))")]
    _, rivals = lead(MaskedTree.from_infix("x1/(x2 + 0.03*x1)"), Dataset.of([lab.measured()]), lab)
    assert any("exp" in tree.to_infix() for _, tree in rivals) == expected


def test_what_no_data_tell_from_a_formula_and_is_shorter_is_a_rival():
    lab = lab_of("x1/(x2 - 1 + exp(0.02*x1))", noise=0.05, asked=9000)
    lab.facts["others"] = [MaskedTree.from_infix("x1/(x2 + 0.02*x1)")]
    ahead, rivals = lead(MaskedTree.from_infix("x1/(x2 - 1 + exp(0.02*x1))"), Dataset.of([lab.measured()]), lab)
    assert ahead < 0.0
    assert len(rivals[0][1]) == 7


def test_a_rival_that_takes_the_place_at_last_is_compared_as_the_formula_was(monkeypatch):
    lab, asked = lab_of("x1*exp(-0.7*x2)", noise=0.01), []
    law, other = MaskedTree.from_infix("x1*exp(-0.7*x2)"), MaskedTree.from_infix("x1*(0.9 - 0.2*x2)")

    def scripted(formula, data, lab):
        asked.append(formula.to_infix())
        ahead = (1.0, 1.0, -1.0, 30.0)[len(asked) - 1]
        return ahead, [(ahead, law)]

    monkeypatch.setattr("deap_vsr.search.standing.lead", scripted)
    monkeypatch.setattr(Attack, "_ask", lambda attack: None)
    found, stands = standing(answer("x1*(0.9 - 0.2*x2)"), lab)
    assert asked[:3] == [other.to_infix()] * 3
    assert len(asked) == 4
    assert stands.status == "found"
    assert "exp" in found.tree.to_infix()
    assert other in lab.facts["others"], "whose place was taken is a rival"


def test_a_rival_that_takes_the_place_must_agree_with_all_answers_too(monkeypatch):
    lab = lab_of("x1*exp(-0.7*x2)", noise=0.01)
    ahead = iter((-1.0, 30.0))
    wrong = MaskedTree.from_infix("x1*x2")
    monkeypatch.setattr("deap_vsr.search.standing.lead", lambda *what: (next(ahead), [(0.0, wrong)]))
    _, stands = standing(answer("x1*exp(-0.7*x2)"), lab)
    assert stands.status == "fits"
    assert "answers disagree with it" in stands.reason


def test_an_approximation_is_not_found_however_well_it_fits():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.5, 3.0, 4000)
    atoms = [np.ones(4000), x, np.sqrt(x), np.log(x)]
    numbers = np.linalg.lstsq(np.array(atoms).T, np.tanh(0.8 * x), rcond=None)[0]
    text = "x2*({:.6g} + {:.6g}*x1 + {:.6g}*sqrt(x1) + {:.6g}*log(x1))".format(*numbers)
    lab = lab_of("x2*tanh(0.8*x1)", noise=0.02)
    _, stands = standing(answer(text), lab)
    assert stands.status == "fits"
    assert anonymous(MaskedTree.from_infix(text), lab).startswith("4 fitted numbers along x1")


@pytest.mark.parametrize(("own", "factor", "reason"), [("0.59", "0.3", ""), ("0.591234", "0.301234", "along x2")])
def test_numbers_that_are_short_by_no_chance_are_not_fitted(own, factor, reason):
    law = f"(1 - exp(-{own}*x4**2))*({factor}*x3*sqrt(x2)/(exp({own}*x4**2) - 1) + x1)/sqrt(x2)"
    domains = [(0.5, 3.0), (60.0, 80.0), (0.5, 3.0), (0.1, 2.0)]
    lab = lab_of(law, n_vars=4, noise=0.002, asked=20_000, domains=domains)
    told = anonymous(MaskedTree.from_infix(law), lab)
    assert reason in told if reason else not told


def test_a_polynomial_law_is_no_approximation():
    lab = lab_of("1.234 + 0.567*x1 - 0.891*x1**2", n_vars=1, noise=0.001)
    _, stands = standing(answer("1.234 + 0.567*x1 - 0.891*x1**2"), lab)
    assert stands.status == "found", stands.reason


def test_what_has_a_shape_is_no_noise():
    lab = lab_of("x1 + 0.02*sin(9*x2) + x2", noise=0.03)
    _, stands = standing(answer("x1 + x2"), lab)
    assert stands.status == "fits"
    assert "shape along x2" in stands.reason


def test_a_rival_that_does_as_well_is_told_and_one_that_does_better_takes_its_place():
    narrow = [(1.0, 1.2), (0.5, 3.0)]
    lab = lab_of("x2*sqrt(x1)", noise=0.05, asked=300, domains=narrow)
    _, stands = standing(answer("x2*sin(x1)"), lab)
    assert stands.status == "fits"
    wide = lab_of("x2*sqrt(x1)", noise=0.01)
    found, stands = standing(answer("1.02*x2*log(x1)"), wide)
    assert found.tree.to_infix() in ("x2*sqrt(x1)", "1.02*x2*log(x1)")
    assert stands.status != "found" or found.tree.to_infix() == "x2*sqrt(x1)"


def test_what_came_up_is_a_rival_also_with_more_numbers_unless_it_can_say_all_that_the_formula_says():
    lab = lab_of(lambda X: special.erf(X[:, 0]), n_vars=1, noise=0.002, asked=1000, domains=[(0.2, 2.5)])
    bent = "sin(x1*(0.85267 + 0.27643*cos(x1)))"
    lab.facts["others"] = [
        MaskedTree.from_infix(text)
        for text in ("0.0047*x1**3 - 0.9112*arctan(x1) + 2.0395*tanh(x1)", "1.01*sin(x1*(0.85 + 0.276*cos(x1))) + 0.01")
    ]
    data = Dataset.of([lab.measured()])
    ahead, rivals = lead(MaskedTree.from_infix(bent), data, lab)
    assert 0.0 < ahead < 20.0
    assert "arctan" in rivals[0][1].to_infix()
    assert not any(tree.n_constants == 4 for _, tree in rivals), "it holds the formula"


def test_a_rival_is_told_where_no_points_are_left_to_tell_it_apart():
    lab = lab_of("1.5*x2*sqrt(x1)", noise=0.2, asked=300, domains=[(1.0, 1.2), (0.5, 3.0)])
    lab.budget = Budget(queries=20, whole=lab.budget)
    _, stands = standing(answer("1.5*x2*sqrt(x1)"), lab)
    assert stands.status == "fits"
    assert "does nearly as well" in stands.reason
    assert stands.rivals


@pytest.mark.parametrize("law", ["1.5*x2*sqrt(x1)", "1.5*sqrt(x1)*x2"])
def test_every_factor_has_rivals_wherever_it_stands(law):
    lab = lab_of(law, noise=0.1, asked=300, domains=[(1.0, 1.2), (0.5, 3.0)])
    _, rivals = lead(MaskedTree.from_infix(law), Dataset.of([lab.measured()]), lab)
    assert any("sin(x1)" in tree.to_infix() for _, tree in rivals)


def test_rivals_have_no_more_nodes_and_constants():
    lab = lab_of("2.5*x2*sqrt(x1)", noise=0.05, asked=500)
    ahead, rivals = lead(MaskedTree.from_infix("2.5*x2*sqrt(x1)"), Dataset.of([lab.measured()]), lab)
    assert ahead == (rivals[0][0] if rivals else np.inf)
    for behind, tree in rivals:
        assert behind >= ahead
        assert len(tree) <= 6
        assert tree.n_constants <= 1


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"search": "joint", "tried": ("sums", "slotwise", "joint")}, "joint search after slots"),
        ({"search": "sums", "tried": ("sums",)}, "slots were not tried"),
    ],
)
def test_some_answers_are_never_found_in_noise(how, reason):
    law = "1.234*x1 + 0.5678*x2 + 2.345*sin(x1) + 3.456*x2**2"
    _, stands = standing(answer(law, **how), lab_of(law, noise=0.01))
    assert stands.status == "fits"
    assert reason in stands.reason


def test_a_sum_of_functions_of_one_variable_with_several_fitted_numbers_may_approximate():
    lab = lab_of(
        lambda X: 6.0 * X[:, 0] * special.erf(X[:, 1]), noise=0.06, asked=9000, domains=[(0.5, 3.0), (0.2, 2.0)]
    )
    _, stands = standing(answer("x1*(0.0098675*x2**6 + 6.76786*sin(sin(x2)))"), lab)
    assert stands.status == "fits"
    assert "a sum of functions of x2 with several fitted numbers may approximate many" in stands.reason


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        ("x2*(0.3019 - 0.2886*cos((-0.971)**x1))", 2),
        ("x2*exp(-0.049*x1)", 0),
        ("0.146*exp(-0.049*x1)*x2", 1),
        ("x1*(1 + x2)", 0),
        ("x2", 0),
        ("2*x1**2 + 3*x1*x2", 2),
    ],
)
def test_all_numbers_that_bend_with_a_variable_count(formula, count):
    # The first was called found before, for x2*exp(-0.049*x1) where x1 is 0, 1 or 2.
    assert _n_constants_of(MaskedTree.from_infix(formula), 0) == count


@pytest.mark.parametrize(
    ("formula", "column"),
    [
        ("(0.15025 + 13.777/(2202.8 + x2**4)**0.35887)*x1**3", 1),
        ("(0.15 + 13.8/(2200 + x2**4)**0.36)*x1**3", None),
        ("1.2345*exp(-0.1234*x1)*cos(3.4567*x1 + 0.5678)*x2", None),
        ("1.2345 + 2.3456*x1 + 3.4567*x2 + 4.5678*x1*x2", None),
    ],
)
def test_a_sum_in_one_variable_with_many_fitted_numbers_bends_as_any_curve_does(formula, column):
    # Fails before: the first was called found for x1**3/(1 + 6.4*exp(-23.5/x2)) in noise of 1 %.
    assert _crowded(MaskedTree.from_infix(formula)) == column


@pytest.mark.parametrize(
    ("formula", "column"),
    [
        ("x2 + x1*x2*(0.01 + 0.00006651*x1)", 0),
        ("x1*(1.234 + 0.5678*x2 + 0.9876*x2**2)", None),
        ("x1*(1.234 + 0.0567*x2 + 0.001234*x2**2)", 1),
        ("x1*(1 + 0.01*x2 + 0.0001*x2**2)", None),
        ("1.2345*(x1 - x2)**2", None),
        ("x1*(1.234 + 0.5678*x2)", None),
        ("1.2345*x1*x2**2", None),
        ("x1*exp(-0.5678*x2)", None),
    ],
)
def test_dwindling_powers_of_one_variable_with_fitted_numbers_may_begin_a_series(formula, column):
    assert _series(MaskedTree.from_infix(formula), lab_of("x1*x2", noise=0.01)) == column


def test_a_number_that_the_data_hardly_tell_is_never_found():
    # Fails before: a step, in noise, was found to be tanh(7000*x6 - 4200).
    lab = lab_of(lambda X: np.where(X[:, 0] > 1.3, 2.0, 1.0) * X[:, 1], noise=0.02, asked=3000)
    assert _untold(MaskedTree.from_infix("x2*(1.5 + 0.5*tanh(7000*x1 - 9100))"), lab) in (7000.0, -9100.0)
    assert _untold(MaskedTree.from_infix("1.2345*x2"), lab) is None
    told = answer("x2*(1.5 + 0.5*tanh(7000*x1 - 9100))")
    assert "the number" in never_found(told, told.tree, lab)


def test_a_sum_that_begins_as_a_fraction_has_it_for_a_rival():
    # Fails before: the first terms were called found.
    (fraction, *_) = turned_over(MaskedTree.from_infix("1/sqrt(x1) - 0.963*x2/x1"), BROAD)
    assert fraction.to_infix() == "1/(sqrt(x1) + 0.963*x2)"
    assert list(turned_over(MaskedTree.from_infix("x1 - 2.5"), BROAD)) == []
    assert list(turned_over(MaskedTree.from_infix("x1 - x2"), ("add", "sub", "const"))) == []
    lab = lab_of("1/(sqrt(x1) + x2)", noise=0.002, asked=2000, domains=[(1.0, 4.0), (0.01, 0.1)])
    found, stands = standing(answer("1/sqrt(x1) - 0.963*x2/x1"), lab)
    assert stands.status != "found" or found.tree.to_infix() == "1/(sqrt(x1) + x2)"


def test_three_fitted_numbers_that_nothing_was_compared_with_may_come_close(monkeypatch):
    law = "1.2345*x1/(0.8765 + 0.67891*x2**2)"
    monkeypatch.setattr("deap_vsr.search.standing.lead", lambda formula, data, lab: (np.inf, []))
    _, stands = standing(answer(law), lab_of(law, noise=0.01))
    assert (stands.status, stands.reason) == ("fits", "nothing else came up to compare its 3 fitted numbers with")


@pytest.mark.parametrize(
    "law",
    [
        "x1*(1.2345 + 0.67891*x2)",
        "1.2345*x1 + 0.67891*sin(x2)",
        "2*x1*(1.2345 + sin(x2))",
        "x1*(1.2345 + 0.67891/x2)",
    ],
)
def test_other_sums_with_fitted_numbers_are_found(law):
    _, stands = standing(answer(law), lab_of(law, noise=0.01))
    assert stands.status == "found", stands.reason


def test_where_there_was_no_time_to_look_for_rivals_nothing_is_found():
    law = "2.5*x1*exp(-0.7*x2)"
    lab = lab_of(law, noise=0.01)
    lab.facts["cut"] = {structural_hash(reopened(MaskedTree.from_infix(law)))}
    _, stands = standing(answer(law), lab)
    assert stands.status == "fits"
    assert "no time to look" in stands.reason


# --- outliers -----------------------------------------------------------------------------


def with_outlier(number, noise=0.01, size=5.0, again=False):
    """Return a function whose answer of a number is off; with `again`, whenever that point is asked."""
    rng, asked, bad = np.random.default_rng(3), [0], set()

    def measure(X):
        y = X[:, 0] * X[:, 1] + noise * rng.standard_normal(len(X))
        for i, point in enumerate(X):
            asked[0] += 1
            if asked[0] == number:
                bad.add(point.tobytes())
                y[i] += size
            elif again and point.tobytes() in bad:
                y[i] += size
        return y

    return measure


def test_an_answer_that_is_not_confirmed_is_left_out_and_listed():
    lab = lab_of(with_outlier(1000))
    trial = lab.measured()
    cleaned = without_outliers(MaskedTree.from_infix("x1*x2"), trial, lab)
    assert len(cleaned.y) == len(trial.y) - 1
    X, y = lab.log.outliers
    assert len(y) == 1
    assert abs(y[0] - X[0].prod()) > 4.0
    assert np.isfinite(lab.measured().y).all()
    assert without_outliers(MaskedTree.from_infix("x1*x2"), lab.measured(), lab) is None


def test_an_answer_that_is_confirmed_speaks_against_the_formula():
    lab = lab_of(with_outlier(1000, again=True))
    assert without_outliers(MaskedTree.from_infix("x1*x2"), lab.measured(), lab) is None
    assert len(lab.log.outliers[1]) == 0


def test_where_many_answers_are_off_the_formula_is_to_blame():
    lab = lab_of("x1*x2", noise=0.01)
    before = lab.budget.queries
    assert without_outliers(MaskedTree.from_infix("x1*x2 + 0.5*x1"), lab.measured(), lab) is None
    assert lab.budget.queries == before


@pytest.mark.parametrize("number", [20, 700])
def test_a_law_is_found_beside_an_outlier_which_the_result_names(number):
    oracle = CallableOracle(with_outlier(number, size=80.0), [(0.5, 3.0)] * 2, BROAD)
    result = discover(oracle, seed=0, max_queries=9000)
    assert result.status == "found", result.reason
    assert result.expression in ("x1*x2", "x2*x1")
    assert len(result.outliers) <= 1
    assert number == 700 or result.noise == pytest.approx(0.01, rel=0.15)


# --- in a result --------------------------------------------------------------------------


def test_a_result_says_how_it_stands():
    result = discover(
        CallableOracle(lambda X: X[:, 0] * X[:, 1], [(0.5, 3.0)] * 2), seed=0, max_queries=2000, verify=50
    )
    assert result.status == "found"
    told = result.to_json()
    assert told["status"] == "found"
    assert told["survived"] == result.standing.survived >= 50
    assert told["found_by"] == "anchored"
    assert told["error"] < 1e-12
    assert told["rivals"] == []
    assert "found" in repr(result)
    assert "x1*x2" in repr(result).replace("x2*x1", "x1*x2")


@pytest.mark.parametrize("verify", [0, -3, "much"])
def test_verify_is_a_number_of_points_or_thorough(verify):
    with pytest.raises(VsrError, match="thorough"):
        discover(CallableOracle(lambda X: X[:, 0], [(0.5, 3.0)]), seed=0, max_queries=200, verify=verify)


def test_the_published_method_is_not_attacked():
    result = discover("trigonometric/inv/2-1-1/prog_0", "vsr-gp", preset="paper", seed=0, max_evaluations=3000)
    assert result.status in ("fits", "partial")


# --- drift --------------------------------------------------------------------------------


def test_answers_that_drift_are_noticed():
    asked = [0]
    rng = np.random.default_rng(2)

    def drifting(X):
        asked[0] += len(X)
        return X[:, 0] * X[:, 1] + 0.01 * rng.standard_normal(len(X)) + 1e-5 * asked[0]

    lab = lab_of(drifting, asked=8000)
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "fits"
    assert "drift" in stands.reason


@pytest.mark.parametrize("seed", range(4))
def test_answers_that_do_not_drift_are_not_said_to(seed):
    lab = lab_of("x1*x2", noise=0.01, seed=seed)
    _, stands = standing(answer("x1*x2"), lab)
    assert stands.status == "found", stands.reason


def test_small_values_of_one_sign_must_agree_as_large_ones_do():
    lab = lab_of("exp(-8*x1)", n_vars=1, asked=50)
    _, stands = standing(answer("exp(-8*x1) + 1e-11*x1"), lab)
    assert stands.status == "fits"


@pytest.mark.parametrize("share", [0.03, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_a_variable_that_matters_near_the_end_of_its_range_only_is_not_found_away(seed, share):
    # Fails at 95877ac in 3 of 10: the variable was dropped, and no fresh point was where it matters.
    def law(X):
        return X[:, 0] * X[:, 1] + np.where(X[:, 2] > 1.0 - share, 5.0 * X[:, 0], 0.0)

    oracle = CallableOracle(law, [(0.0, 1.0)] * 3, ["add", "mul", "const"])
    assert discover(oracle, seed=seed, max_evaluations=5_000).status != "found"
