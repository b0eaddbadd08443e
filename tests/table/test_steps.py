"""Each step of the search on a table, alone: what it finds, and what it does not claim."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from deap_vsr.lab.budget import Budget
from deap_vsr.table import search
from deap_vsr.table.climb import climbed
from deap_vsr.table.control import controlled
from deap_vsr.table.evolve import evolve
from deap_vsr.table.exponentials import exponentials
from deap_vsr.table.field import Field
from deap_vsr.table.floor import noise_floor, structure
from deap_vsr.table.index import separable, separable_forms
from deap_vsr.table.powers import power_laws, products
from deap_vsr.table.rows import Rows
from deap_vsr.table.search import concluded, held_out, run
from deap_vsr.table.sums import linear, polynomials, ratios, sums
from deap_vsr.table.surrogate import _likeliest, surrogate_slots
from deap_vsr.tree import MaskedTree

OPERATORS = ("add", "sub", "mul", "div", "n2", "n3", "sqrt", "exp", "log", "sin", "cos", "const")


def rows_of(law, n_vars, n_rows=200, noise=0.0, operators=OPERATORS, seed=0, seconds=20.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (n_rows, n_vars))
    y = law(*X.T)
    y = y + noise * np.std(y) * rng.standard_normal(n_rows)
    return Rows.of(X, y, operators, budget=Budget(seconds), rng=np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("step", "law", "n_vars"),
    [
        (power_laws, lambda a, b, c: 2.5 * a * b**2 / np.sqrt(c), 3),
        (power_laws, lambda a, b: np.exp(-1.3 * a / b), 2),
        (separable, lambda a, b, c: a**2 * (1.0 - np.exp(-0.7 * b / c)), 3),
        (separable, lambda a, b, c, d: a * b + 3.7 * c**2 / d, 4),
        (separable_forms, lambda a, b, c: a / (b**2 + 0.6 * c), 3),
        (products, lambda a, b, c: a * np.exp(-0.3 * b) * np.exp(-0.8 * c / a), 3),
        (climbed, lambda a, b, c, d, e: a * b**2 * c * np.cos(d) / e + 0.7 * a, 5),
        (exponentials, lambda a, b, c: a * np.exp(-(((b - c) / a) ** 2) / 3.0) / np.sqrt(b), 3),
        (products, lambda a, b, c: a / (1.0 + 0.3 * b * np.cos(c)), 3),
        (polynomials, lambda a, b, c, d: np.sqrt((a - b) ** 2 + (c - d) ** 2), 4),
        (ratios, lambda a, b: 2.0 * a / (1.0 + 0.5 * a * b), 2),
        (sums, lambda a, b, c: 2.0 * a * b + 0.3 * a * np.sin(c), 3),
    ],
)
def test_a_step_finds_what_it_is_for(step, law, n_vars):
    field = Field(rows_of(law, n_vars))
    step(field)
    assert field.exact, field.best and field.best.tree.to_infix()


def test_terms_climb_past_columns_that_hold_zeros():
    rows = rows_of(lambda a, b, c: a * b**2 * c, 3)
    X = np.column_stack([rows.X, np.arange(rows.n_rows) % 3])
    field = Field(Rows.of(X, rows.y + X[:, 3] * X[:, 0], OPERATORS, budget=Budget(20.0)))
    climbed(field)
    assert field.exact


def test_a_noisy_sum_of_columns_is_told_from_those_that_do_not_matter():
    field = Field(rows_of(lambda a, b, c, d: 2.0 * a - b + 0.0 * c * d, 4, noise=0.8))
    linear(field)
    assert field.best.tree.to_infix(skeleton=True) == "C*x1 + C*x2"


def test_control_in_the_rows_is_used():
    X = np.array(list(itertools.product(np.linspace(1, 3, 8), np.linspace(1, 2, 4), np.linspace(1, 4, 4))))
    y = X[:, 1] * np.sin(X[:, 0]) + X[:, 2] ** 2 / X[:, 1]
    field = Field(Rows.of(X, y, OPERATORS, budget=Budget(20.0)))
    controlled(field)
    assert field.exact
    assert field.best.by == "control"
    nothing = Field(rows_of(lambda a, b: a * b, 2))
    controlled(nothing)
    assert nothing.best is None


def test_a_surrogate_proposes_and_rows_decide():
    field = Field(rows_of(lambda a, b: a * b, 2, operators=("add", "mul", "div", "const")))
    surrogate_slots(field, 2000)
    assert field.best is not None
    assert field.best.by == "surrogate"


def test_gp_begins_with_what_the_field_has():
    field = Field(rows_of(lambda a, b: a * b + b / a, 2, operators=("add", "mul", "div", "const")))
    field.offer(MaskedTree.from_infix("C*x1*x2 + C"), "start")
    before = field.best.price
    evolve(field, epochs=1, evaluations=3000)
    assert field.best.price < before


def test_populations_are_the_same_in_processes_side_by_side():
    fronts = []
    for n_jobs in (None, 2):
        rows = rows_of(lambda a, b: a * np.sin(b + a), 2, operators=("add", "mul", "div", "const"), seconds=None)
        field = Field(rows, n_jobs=n_jobs)
        evolve(field, epochs=1, evaluations=400)
        fronts.append([(item.tree.to_infix(), item.price) for item in field.ranked])
        assert rows.budget.evaluations > 4 * 400
    assert fronts[0] == fronts[1]


def test_a_run_bounded_by_counts_is_the_same_however_long_it_takes(monkeypatch):
    slow = iter(range(10**9))
    fronts = []
    for clock in (time.perf_counter, lambda: 1.7 * next(slow)):
        monkeypatch.setattr("time.perf_counter", clock)
        rows = rows_of(lambda a, b: np.sin(a + b) / b, 2, 60, operators=("add", "mul", "sin", "const"), seconds=None)
        rows = replace(rows, budget=Budget(None, 3000))
        field = Field(rows)
        fronts.append((run(rows, field), [(item.tree.to_infix(), item.price) for item in field.ranked]))
    assert fronts[0] == fronts[1]


def test_a_surrogate_is_cut_where_time_is_up(monkeypatch):
    rows = rows_of(lambda a, b: np.sin(9.0 * a) / b, 2)
    monkeypatch.setattr(Rows, "late", property(lambda self: True))
    steps = []
    search = _likeliest(rows)
    theta, value = search(lambda t: (steps.append(t), (float(t @ t), 2.0 * t))[1], np.ones(3), [(-2.0, 2.0)] * 3)
    assert len(steps) == 1
    assert (theta.tolist(), value) == ([1.0, 1.0, 1.0], 3.0)


def test_the_noise_floor_comes_from_repeats_or_neighbours():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(1, 2, (60, 2)), 3, axis=0)
    repeated = noise_floor(Rows.of(X, X[:, 0] + rng.normal(0, 0.1, len(X))))
    assert repeated.known_by == "repeats"
    assert repeated.noise == pytest.approx(0.1, rel=0.25)
    near = noise_floor(rows_of(np.sin, 1, 500, noise=0.2))
    assert near.known_by == "neighbours"
    assert near.noise == pytest.approx(0.2 * np.std(np.sin(rows_of(np.sin, 1, 500).X)), rel=0.4)
    assert noise_floor(rows_of(lambda a: a, 1, 5)).known_by == "nothing"


def test_what_is_left_is_told_from_noise():
    rows = rows_of(lambda a, b: a * b, 2, 400, noise=0.5)
    truth = rows.X[:, 0] * rows.X[:, 1]
    assert structure(rows, truth - rows.y) < 4.0
    assert structure(rows, np.sin(3.0 * rows.X[:, 0])) > 10.0


def test_noise_where_most_values_are_alike_is_noise():
    # Rows in the order of y are there in the order of their noise.
    steep = rows_of(lambda a, b: np.exp(8.0 * a) * b, 2, 400, noise=0.01)
    truth = np.exp(8.0 * steep.X[:, 0]) * steep.X[:, 1]
    assert structure(steep, truth - steep.y) < 4.0


def test_rows_are_held_out_at_random_and_at_the_edge():
    rows = rows_of(lambda a, b: a * b, 2, 100)
    train, random, edge = held_out(rows)
    assert sorted([*train, *random, *edge]) == list(range(100))
    inside = rows.X[train]
    assert any(
        rows.X[edge][:, c].min() >= inside[:, c].max() or rows.X[edge][:, c].max() <= inside[:, c].min() for c in (0, 1)
    )


def concluded_for(law, **how):
    rows = rows_of(law, 2, **how)
    parts = held_out(rows)
    train = rows.part(parts[0])
    field = Field(train)
    return concluded(field, rows, parts, run(train, field))


def test_nothing_is_ever_found_on_a_table():
    assert concluded_for(lambda a, b: a / b).status == "fits"
    noisy = concluded_for(lambda a, b: a / b, noise=0.02, n_rows=300)
    assert noisy.status in ("fits", "partial")
    assert noisy.formulas[noisy.best].tree.to_infix(skeleton=False).count("x") == 2
    assert noisy.lead > 0.0


def test_the_best_alone_is_finished_where_the_time_is_up(monkeypatch):
    # Fails at 7ff2e9b: 30 s were spent on the others, of a limit of 10.
    done, finish = [], search._finished

    def counted(formula, *given):
        done.append(formula.price)
        return finish(formula, *given)

    def late(rows):
        rows.budget.started -= 100.0
        return rows

    monkeypatch.setattr(search, "_finished", counted)
    rows = rows_of(lambda a, b: a / (b + 0.3 * np.sin(a)), 2, noise=0.02, seconds=3.0)
    parts = held_out(rows)
    train = rows.part(parts[0])
    field = Field(train)
    taken = run(train, field)
    answer = concluded(field, late(rows), parts, taken)
    assert done == [min(answer.prices)]
    assert len(answer.formulas) > 1


def test_the_lead_is_taken_on_the_same_rows_and_not_over_the_same_form():
    rows = rows_of(lambda a, b: a / b, 2, 200, noise=0.05, operators=("add", "mul", "div", "const"))
    parts = held_out(rows)
    field = Field(rows.part(parts[0]))
    for text in ("C*x1/x2", "C*x1/x2 + C", "C*x1/(C*x2 + C)"):
        field.offer(MaskedTree.from_infix(text), "start", n_starts=2)
    answer = concluded(field, rows, parts, [])
    # One constant more costs some nats; 160 rows beside 200 would make it hundreds.
    assert 0.0 < answer.lead < 20.0
    forms = [tree.to_infix(skeleton=True) for _, tree in answer.rivals]
    assert answer.formulas[answer.best].tree.to_infix(skeleton=True) not in forms


def test_a_formula_that_explains_a_few_rows_alone_is_partial():
    rng = np.random.default_rng(4)
    X = rng.uniform(1.0, 2.0, (200, 2))
    y = 1e4 * np.where(X[:, 0] > X[:, 0].max() - 1e-9, X[:, 1], 0.0) + rng.normal(size=200)
    rows = Rows.of(X, y, ("add", "mul", "div", "const"))
    field = Field(rows)
    field.offer(MaskedTree.from_infix("C*x2*exp(900*x1 - 1800)"), "start")
    answer = concluded(field, rows, held_out(rows), [])
    assert answer.status == "partial"
    assert "a few rows" in answer.reason


def test_noise_alone_is_partial():
    rng = np.random.default_rng(3)
    rows = Rows.of(
        rng.uniform(1, 2, (100, 2)), rng.normal(size=100), ("add", "mul", "div", "const"), budget=Budget(4.0)
    )
    parts = held_out(rows)
    train = rows.part(parts[0])
    field = Field(train)
    answer = concluded(field, rows, parts, run(train, field))
    assert answer.status == "partial"
