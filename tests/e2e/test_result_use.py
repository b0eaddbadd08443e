"""What one can do with a result: predict, write as code, show, save, draw, look at its data."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from deap_vsr import VsrError, discover
from deap_vsr.result import Result

GAS = {"n": (1, 3), "T": (280, 400), "V": (0.1, 2)}
X = np.array([[1.0, 300.0, 0.5], [2.0, 350.0, 1.5]])
Y = 8.314 * X[:, 0] * X[:, 1] / X[:, 2]


def gas(n, T, V):
    return 8.314 * n * T / V


@pytest.fixture(scope="module")
def found():
    return discover(gas, variables=GAS, max_queries=200, output="p", unit="Pa")


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(5)
    return discover(
        lambda a, b: 1.73 * a + 0.61 * b + rng.normal(0, 0.01),
        variables={"a": (1, 3), "b": (1, 3)},
        operators=["add", "mul", "const"],
        noise_sd=0.01,
        max_queries=600,
    )


def test_the_repr_is_one_short_line(found):
    assert repr(found).startswith("<Result found: p = 8.314")
    assert "\n" not in repr(found)
    assert len(repr(found)) < 200
    open_constants = Result(**{**vars(found), "tree": type(found.tree).from_infix("C*x1")})
    assert "p = n" in repr(open_constants), "numbers, whatever may still change"
    long = Result(**{**vars(found), "tree": type(found.tree).from_infix("+".join(["1.23456789*x1"] * 60))})
    assert len(repr(long)) < 200


def test_it_predicts_for_arrays_frames_mappings_names_and_values(found):
    frame = pd.DataFrame(X, columns=["n", "T", "V"])
    for given in (X, X.tolist(), frame, frame[["V", "T", "n"]], {name: frame[name] for name in frame}):
        np.testing.assert_allclose(found.predict(given), Y)
    assert found(1.0, 300.0, 0.5) == pytest.approx(Y[0])
    assert found(n=1.0, T=300.0, V=0.5) == pytest.approx(Y[0])
    assert found(1.0, V=0.5, T=300.0) == pytest.approx(Y[0])
    np.testing.assert_allclose(found(n=X[:, 0], T=X[:, 1], V=X[:, 2]), Y)
    np.testing.assert_allclose(found(X), Y)
    assert found(1.0, 300.0, np.full((2, 3), 0.5)).shape == (2, 3)


def test_what_cannot_be_predicted_is_told(found):
    with pytest.raises(VsrError, match="there is no column V"):
        found.predict({"n": [1], "T": [2]})
    with pytest.raises(VsrError, match=r"shape \(2, 2\), expected \(n_points, 3\)"):
        found.predict(X[:, :2])
    with pytest.raises(VsrError, match="expected n, T, V"):
        found(1.0, q=3)


def test_code_and_sympy_have_the_names(found):
    scope = {}
    exec(found.to_python(), scope)  # noqa: S102
    assert scope["p"](n=1.0, T=300.0, V=0.5) == pytest.approx(Y[0])
    exec(found.to_numpy(), scope)  # noqa: S102
    np.testing.assert_allclose(scope["p"](*X.T), Y)
    assert "double p(double n, double T, double V)" in found.to_c()
    assert {str(symbol) for symbol in found.to_sympy().free_symbols} == {"n", "T", "V"}


def test_notebooks_show_formula_status_and_path(found, noisy):
    assert found._repr_latex_().startswith("$p = ")
    page = found._repr_html_()
    for words in ("found", "reduced form", "points asked", "8.314"):
        assert words in page
    assert "standard error" in noisy._repr_html_()
    hostile = discover(lambda a: a, variables={"a": (1, 2)}, max_queries=50, output="<script>")
    assert "<script>" not in hostile._repr_html_()


def test_constants_have_standard_errors_and_a_covariance(noisy):
    assert noisy.status in ("found", "fits")
    values = sorted(constant.value for constant in noisy.constants)
    assert values == pytest.approx([0.61, 1.73], abs=0.02)
    errors = [constant.standard_error for constant in noisy.constants]
    assert all(0 < error < 0.02 for error in errors)
    np.testing.assert_allclose(np.sqrt(np.diag(noisy.covariance)), errors)
    # Of two slopes through the origin, with values of the same sign, one that is too high makes the other too low.
    assert noisy.covariance[0, 1] < 0
    good = noisy.data.good
    A = noisy.data.X[good] if noisy.constants[0].value > 1 else noisy.data.X[good][:, ::-1]
    expected = np.linalg.inv(A.T @ A)
    correlation = expected[0, 1] / math.sqrt(expected[0, 0] * expected[1, 1])
    assert noisy.correlation[0][1] == pytest.approx(correlation, abs=0.02)


def test_data_hands_the_points_out(found, tmp_path):
    assert len(found.data) == found.oracle_queries
    np.testing.assert_allclose(found.data.y, found.predict(found.data.X))
    assert list(found.data.frame()) == ["n", "T", "V", "p"]
    found.data.to_csv(tmp_path / "points.csv")
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "points.csv").to_numpy(), found.data.frame().to_numpy())


def test_rivals_have_names(noisy):
    assert len(noisy.rivals) == len(noisy.standing.rivals)
    assert all("x1" not in rival.formula for rival in noisy.rivals)


# --- files --------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["found", "noisy", "nothing", "equation"])
def test_a_result_is_read_back_as_it_was(which, request, tmp_path):
    if which == "nothing":
        result = discover(lambda a: math.nan, variables={"a": (1, 2)}, max_queries=10)
    elif which == "equation":
        result = discover("feynman-unit/I.39.22", expansion="slotwise", max_queries=800)
    else:
        result = request.getfixturevalue(which)
    result.save(tmp_path / "result.json")
    again = Result.load(tmp_path / "result.json")
    assert again.to_json() == result.to_json()
    assert again.tree == result.tree
    assert [record.tree for record in again.rounds] == [record.tree for record in result.rounds]
    np.testing.assert_array_equal(again.data.X.reshape(result.data.X.shape), result.data.X)
    np.testing.assert_array_equal(again.data.y, result.data.y)
    assert [len(record.tables) for record in again.rounds] == [len(record.tables) for record in result.rounds]
    if result.tree is not None:
        np.testing.assert_array_equal(again.predict(result.data.X), result.predict(result.data.X))
        assert repr(again) == repr(result)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c.update(kind="something"), "kind"),
        (lambda c: c.update(format=99), "format"),
        (lambda c: c.update(kept=[]), "kept"),
        (lambda c: c["kept"].pop("seed"), "kept: Object missing required field `seed`"),
        (lambda c: c["kept"].update(seed="many"), "kept.seed"),
        (lambda c: c["kept"].update(seconds="long"), "kept.seconds"),
        (lambda c: c["kept"].update(tree=[["operator", "launch", True]]), "kept.tree"),
        (lambda c: c["kept"].update(tree=[["operator", "add", True]]), "kept.tree"),
        (lambda c: c["kept"].update(variables=[{"name": "T"}]), "kept.variables"),
        (lambda c: c["kept"]["standing"].update(status="certain"), "kept.standing"),
        (lambda c: c["kept"]["data"].update(y=[1.0]), "kept.data"),
        (lambda c: c["kept"].update(rounds=[{}]), "kept.rounds"),
        (lambda c: c["kept"].update(correlation=3), "kept.correlation"),
        (lambda c: c["kept"].update(verdict={"recovered": True}), "kept.verdict"),
    ],
)
def test_a_file_that_is_no_result_is_refused_with_its_field(found, tmp_path, change, field):
    path = tmp_path / "result.json"
    found.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(VsrError) as caught:
        Result.load(path)
    assert str(caught.value).removeprefix(f"{path}: ").removeprefix("$.").startswith(field)


def test_files_that_are_not_there_or_no_json_are_refused(found, tmp_path):
    with pytest.raises(VsrError, match="cannot read the result"):
        Result.load(tmp_path / "nowhere.json")
    (tmp_path / "text").write_text("no JSON")
    with pytest.raises(VsrError, match="found no JSON"):
        Result.load(tmp_path / "text")
    with pytest.raises(VsrError, match="cannot write the result"):
        found.save(tmp_path / "no" / "folder.json")


# --- pictures -----------------------------------------------------------------------------


def test_fit_and_residuals_are_drawn(found, noisy):
    (axis,) = found.plot("fit").axes
    assert axis.get_xlabel() == "p (Pa), as the formula says"
    assert len(axis.lines[0].get_xdata()) == len(found.data)
    shown = [axis for axis in noisy.plot("residuals").axes if axis.get_xlabel()]
    assert [axis.get_xlabel() for axis in shown] == ["y", "a", "b"]
    assert found.plot().axes
    found.plot("slots")
    with pytest.raises(VsrError, match="expected path, slots, fit, residuals"):
        found.plot("portrait")


def test_a_result_without_a_formula_says_so(tmp_path):
    nothing = discover(lambda a: math.nan, variables={"a": (1, 2)}, max_queries=10)
    assert repr(nothing).startswith("<Result partial: y = ?")
    assert nothing.constants == []
    for use in (nothing.to_python, nothing.to_sympy, lambda: nothing(1.0), lambda: nothing.plot("fit")):
        with pytest.raises(VsrError, match="no formula was found"):
            use()
    assert "no formula was found" in nothing._repr_html_()
