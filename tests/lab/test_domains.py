import pytest

from deap_vsr import OracleError, Variable, VsrError
from deap_vsr.lab.domains import domain_of_text, inputs_of, variable_of


def test_pairs_words_ranges_and_variables_are_domains():
    inputs = inputs_of(
        {
            "T": (-20, 40),
            "p": (0.1, 10, "log"),
            "n": (1, 9, "integer"),
            "k": range(3, 6),
            "v": Variable("speed", 1, 2, unit="m/s"),
            "material": ["steel", "wood"],
        }
    )
    T, p, n, k, v = inputs.variables
    assert (T.low, T.high, T.sign, T.sampling) == (-20, 40, "as_range", "uniform")
    assert (p.sampling, p.bounds) == ("loguniform", (0.1, 10))
    assert n.bounds == (1, 9), "both ends"
    assert k.bounds == (3, 5)
    assert (v.name, v.unit) == ("v", "m/s")
    assert inputs.categories == {"material": ("steel", "wood")}


def test_a_sequence_has_the_names_of_the_function_or_x1_x2():
    assert [v.name for v in inputs_of([(0, 1), (1, 2)], ["T", "p"]).variables] == ["T", "p"]
    assert [v.name for v in inputs_of([(0, 1), (1, 2)]).variables] == ["x1", "x2"]
    assert [v.name for v in inputs_of([(0, 1), Variable("q", 0, 1)], ["T"]).variables] == ["x1", "q"]


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ((1, 0), "low < high"),
        ((1, float("inf")), "finite numbers"),
        (("a", 2), "expected \\(low, high\\)"),
        ((1, 2, 3), "expected \\(low, high\\)"),
        ((1, 2, "cubic"), "log or integer"),
        (5, "expected \\(low, high\\)"),
        (None, "expected \\(low, high\\)"),
        ((True, 2), "expected \\(low, high\\)"),
        (range(1), "at least two"),
        ((-5, -1, "log"), "above 0"),
        ((0, 1, "log"), "above 0"),
    ],
)
def test_what_is_no_domain_is_refused_with_its_variable(domain, message):
    with pytest.raises(VsrError, match=message) as caught:
        inputs_of({"T": domain})
    assert "T" in str(caught.value)


def test_words_twice_categories_alone_and_text_are_refused():
    with pytest.raises(OracleError, match="material: a word is there twice"):
        inputs_of({"x": (0, 1), "material": ["steel", "steel"]})
    with pytest.raises(OracleError, match="no number among them"):
        inputs_of({"material": ["steel", "wood"]})
    with pytest.raises(OracleError, match="expected a mapping"):
        inputs_of("T")


@pytest.mark.parametrize(
    ("text", "name", "domain"),
    [
        ("T=280:400", "T", (280, 400)),
        (" T [K] = -5 : 5 ", "T", (-5, 5)),
        ("p=1e-3:10:log", "p", (1e-3, 10, "log")),
        ("n=1:9:integer", "n", (1, 9, "integer")),
    ],
)
def test_a_domain_as_text(text, name, domain):
    found, variable = domain_of_text(text)
    assert found == name
    assert variable == variable_of(name, domain) or variable.unit == "K"


def test_categories_and_units_as_text():
    assert domain_of_text("material=steel, wood") == ("material", ["steel", "wood"])
    assert domain_of_text("T[K]=1:2")[1].unit == "K"


@pytest.mark.parametrize("text", ["T", "T=", "=1:2", "T=1", "T=a:b", "T=2:1", "T=1:2:cubic", "T=a,", "T=1:2:3:4"])
def test_what_is_no_domain_as_text_is_refused(text):
    with pytest.raises(OracleError, match="--domain"):
        domain_of_text(text)
