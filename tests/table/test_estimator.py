"""VsrRegressor: scikit-learn's contract, what it finds, and the right answer to hopeless tables."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from deap_vsr import VsrError, VsrRegressor

QUICK = ("add", "mul", "div", "const")

#: Checks that cannot hold, and why: at most three.
EXCEPTIONS: dict[str, str] = {
    "check_sample_weight_equivalence_on_dense_data": "rows are held out by number: a row twice is no row of weight 2",
}


@parametrize_with_checks(
    [VsrRegressor(operators=QUICK, time_limit=None, max_evaluations=300)], expected_failed_checks=lambda e: EXCEPTIONS
)
def test_what_scikit_learn_expects_of_estimators(estimator, check):
    check(estimator)


def test_there_are_at_most_three_exceptions():
    assert len(EXCEPTIONS) <= 3


@pytest.fixture(scope="module")
def gas():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1.0, 5.0, (120, 3)), columns=["n", "T", "V"])
    return frame, 8.314 * frame["n"] * frame["T"] / frame["V"]


@pytest.fixture(scope="module")
def fitted(gas):
    return VsrRegressor(time_limit=20).fit(*gas)


def test_a_law_is_found_with_the_names_of_the_columns_and_never_called_found(fitted, gas):
    assert fitted.expression_ == "8.314*n*T/V"
    assert fitted.status_ == "fits"
    assert "table alone" in fitted.reason_
    assert str(fitted.sympy()) == "8.314*T*n/V"
    assert r"\frac" in fitted.latex()
    assert fitted.score(*gas) == pytest.approx(1.0)
    assert "8.314*n*T/V" in fitted.report()


def test_the_front_is_a_table(fitted, gas):
    front = fitted.equations_
    assert {"complexity", "error", "error_held_out", "expression", "sympy", "latex", "status"} <= set(front.columns)
    assert (front["complexity"].diff().dropna() >= 0).all()
    assert front.loc[fitted.best_index_, "status"] == "fits"
    assert np.allclose(fitted.predict(gas[0], index=fitted.best_index_), gas[1])


def test_it_is_pickled_and_cloned(fitted, gas):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(gas[0]), fitted.predict(gas[0]))
    assert clone(fitted).get_params() == fitted.get_params()


def test_it_works_in_pipelines_searches_and_cross_validation(gas):
    X, y = gas
    model = VsrRegressor(operators=QUICK, time_limit=None, max_evaluations=300)
    assert cross_val_score(model, X, y, cv=2).min() > 0.999
    assert make_pipeline(StandardScaler(with_mean=False), model).fit(X, y).score(X, y) > 0.999
    grid = GridSearchCV(model, {"max_size": [1, 30]}, cv=2).fit(X, y)
    assert grid.best_params_ == {"max_size": 30}


def test_a_noisy_law_keeps_its_form_and_has_standard_errors():
    rng = np.random.default_rng(1)
    X = rng.uniform(1.0, 5.0, (300, 2))
    y = 3.0 * X[:, 0] / X[:, 1] ** 2
    y = y + 0.01 * np.std(y) * rng.standard_normal(len(y))
    model = VsrRegressor(operators=(*QUICK, "n2"), time_limit=20).fit(X, y)
    assert np.corrcoef(model.predict(X), 3.0 * X[:, 0] / X[:, 1] ** 2)[0, 1] > 0.99999
    errors = model.equations_.loc[model.best_index_, "standard_errors"]
    assert len(errors) >= 1
    assert max(errors) < 0.1


def test_what_is_known_is_used(gas):
    X, y = gas
    model = VsrRegressor(operators=QUICK, time_limit=None, max_evaluations=0, start_from=["C*n*T/V"]).fit(X, y)
    assert model.expression_ == "8.314*n*T/V"
    form = VsrRegressor(operators=QUICK, time_limit=10, form="n*F(T, V)").fit(X, y)
    assert form.score(X, y) == pytest.approx(1.0)
    with pytest.raises(VsrError, match="one unknown function"):
        VsrRegressor(form="n*T").fit(X, y)
    with pytest.raises(VsrError, match="columns are n, T, V"):
        VsrRegressor(start_from=["C*mass"]).fit(X, y)
    without = VsrRegressor(operators=QUICK, time_limit=2, forbidden=["V"]).fit(X, y)
    assert "V" not in without.expression_
    with pytest.raises(VsrError, match="column 'mass' is not in the table"):
        VsrRegressor(forbidden=["mass"]).fit(X, y)
    falling = VsrRegressor(operators=QUICK, time_limit=2, monotonic={"T": -1}).fit(X, y)
    assert falling.score(X, y) < 0.9


def test_warm_start_goes_on_from_the_formulas_before(gas):
    X, y = gas
    model = VsrRegressor(operators=QUICK, time_limit=10, warm_start=True).fit(X, y)
    model.set_params(max_evaluations=0).fit(X, y)
    assert model.expression_ == "8.314*n*T/V"


def test_pictures_show_the_front_the_fit_and_what_is_left_by_column(fitted, gas):
    (axis,) = fitted.plot().axes
    assert axis.get_yscale() == "log"
    assert len(axis.lines[0].get_xdata()) == len(fitted.equations_)
    (axis,) = fitted.plot("fit", *gas).axes
    assert np.allclose(axis.lines[0].get_xdata(), axis.lines[0].get_ydata())
    shown = [axis.get_xlabel() for axis in fitted.plot("residuals", *gas).axes if axis.get_xlabel()]
    assert shown == ["y", "n", "T", "V"]
    with pytest.raises(VsrError, match=r"the fit needs rows: plot\('fit', X, y\)"):
        fitted.plot("fit")
    with pytest.raises(VsrError, match="found 'portrait', expected front, fit or residuals"):
        fitted.plot("portrait")


def test_what_would_decide_is_the_first_sheet_of_a_laboratory(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.uniform(1.0, 2.0, (30, 2)), columns=["a", "b"])
    y = frame["a"] * frame["b"] + rng.normal(0, 0.2, 30)
    model = VsrRegressor(operators=QUICK, time_limit=None, max_evaluations=400).fit(frame, y)
    assert len(model.rivals_) > 1
    campaign = model.laboratory(tmp_path / "lab", frame, y, "speed", noise=0.2)
    assert len(campaign.state.before) == 30
    sheet = campaign.ask()
    assert len(sheet) == len(model.measurements_) == 5
    wanted = np.array([[row["a"], row["b"]] for row in sheet])
    assert np.allclose(wanted, model.measurements_, rtol=0.01)
    assert all("rivals" in row["why"] for row in sheet)
    campaign.tell([{"id": row["id"], "speed": row["a"] * row["b"]} for row in sheet])
    assert len(campaign.state.before) == 35
    assert not campaign.state.open
    assert len(campaign.ask()) > 0


# --- hopeless tables ----------------------------------------------------------------------


def test_constant_y_and_one_row_have_the_mean_for_an_answer():
    X = np.arange(20.0)[:, None]
    model = VsrRegressor(time_limit=2).fit(X, np.full(20, 3.0))
    assert model.status_ == "partial"
    assert "same in all rows" in model.reason_
    assert model.predict(X).tolist() == [3.0] * 20


def test_missing_values_and_text_are_refused_in_words():
    X = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match="NaN"):
        VsrRegressor().fit(X, X["b"])
    with pytest.raises(ValueError, match="could not convert"):
        VsrRegressor().fit(pd.DataFrame({"a": ["x", "y"]}), [1.0, 2.0])


def test_a_column_of_text_is_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "place": ["here", "there"], "told": ["1.5", "2.5"]})
    with pytest.raises(ValueError, match=r"column place: could not convert string to float: 'here'; leave it out"):
        VsrRegressor().fit(frame, [1.0, 2.0])
    assert VsrRegressor(time_limit=2).fit(frame[["a", "told"]], [1.0, 2.0]).n_features_in_ == 2


def test_a_constant_is_the_number_itself():
    model = VsrRegressor().fit(np.arange(30.0).reshape(-1, 1), np.full(30, 3.2))
    assert model.expression_ == "3.2"


def test_copies_of_a_column_and_too_few_rows_are_told(gas):
    X, y = gas
    twice = X.assign(copy=2.0 * X["n"], same=1.0)
    model = VsrRegressor(operators=QUICK, time_limit=10).fit(twice, y)
    assert "copy cannot be told from n: not used" in model.report()
    assert "same is the same in all rows" in model.report()
    rng = np.random.default_rng(0)
    few = VsrRegressor(operators=QUICK, time_limit=2).fit(rng.normal(size=(10, 10)), rng.normal(size=10))
    assert few.status_ == "partial"
    assert "too few" in few.report()


def test_of_very_many_rows_a_sample_is_used_and_told():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (200_000, 2))
    model = VsrRegressor(operators=QUICK, time_limit=10).fit(X, X[:, 0] / X[:, 1])
    assert "20000 of 200000 rows" in model.report()
    assert model.expression_ == "x1/x2"
