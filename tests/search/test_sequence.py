"""Searches one after the other: which come, and when one goes on with the next."""

import numpy as np
import pytest

import deap_vsr.search.sequence as sequence
from deap_vsr import CallableOracle, MaskedTree
from deap_vsr.errors import OutOfTimeError
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.searches import searches
from deap_vsr.forms.widening import atoms_in_noise
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.records import Found
from deap_vsr.search.sequence import in_order, in_sequence
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import Slotwise
from deap_vsr.search.sums import Sums

OPERATORS = ("add", "mul", "exp", "sin", "const")
ALL = ("anchored", "sums", "slotwise", "joint")


def lab_of(noise=0.05, scale=1.0, **limits):
    def law(x1, x2):
        return scale * 2.5 * np.exp(-0.7 * x1) * x2

    oracle = CallableOracle(lambda X: law(*X.T), [(0.5, 5.0)] * 2, OPERATORS, noise=noise * scale, seed=1)
    lab = Lab(oracle, Budget(**limits), np.random.default_rng(0))
    lab.begin()
    lab.trials(range(2), 1, 800)
    return lab


def found_by(monkeypatch, lab, *texts, inner=None):
    """Run slots, sums and slots where each says that it has found one of the texts; return the answer and its tries."""
    said = iter(texts)

    def vertical(part, expansion, order, tell):
        text = next(said)
        if text is None:
            return Found(None, [], [], "exhausted", 0.05)
        tree = MaskedTree.from_infix(text)
        own = None if inner is None else MaskedTree.from_infix(inner[text])
        return Found(tree, [(0.0, tree)], [], "found", 0.05, inner=own)

    monkeypatch.setattr(sequence, "vertical", vertical)
    slots, sums = Slotwise(FormsRegressor(), SlotOptions.in_noise()), Sums(atoms_in_noise)
    return in_sequence(lab, [slots, sums, slots][: len(texts)], None, lambda news: None)[1]


@pytest.mark.parametrize(
    ("limits", "noise", "expected"),
    [
        ({}, 0.05, ["slotwise", "sums", "slotwise", "joint"]),
        ({"queries": 2000}, 0.05, ["slotwise", "sums", "joint"]),
        ({}, 0.0, ["slotwise", "sums", "joint"]),
    ],
)
def test_slots_come_first_and_once_more_in_noise_with_many_points(limits, noise, expected):
    assert in_order(ALL, lab_of(noise, **limits)) == expected


@pytest.mark.parametrize(
    ("law", "first"),
    [
        (lambda a, b: 0.7 * a + 0.9 * np.sin(a) - 0.8 * b * np.sin(a) + 0.5 * b - 0.6 * np.sin(b) * a, "Sums"),
        (lambda a, b: 2.5 * np.exp(-0.7 * a) * b, "Slotwise"),
        (lambda a, b: 2.5 * a * b + 1.4, "Slotwise"),
    ],
)
def test_sums_come_first_where_reduced_forms_have_many_terms(law, first):
    oracle = CallableOracle(lambda X: law(*X.T), [(0.5, 5.0)] * 2, OPERATORS, noise=0.02, seed=1)
    lab = Lab(oracle, Budget(queries=5000), np.random.default_rng(0))
    tried = [type(expansion).__name__ for expansion in searches(ALL, FormsRegressor(), lab)]
    assert tried[1:3] == [first, "Slotwise" if first == "Sums" else "Sums"]
    assert lab.budget.queries < 1000


def test_where_points_are_few_variables_are_not_tried_alone():
    lab = lab_of(queries=1500)
    asked = lab.budget.queries
    names = [type(expansion).__name__ for expansion in searches(("sums", "slotwise"), FormsRegressor(), lab)]
    assert names == ["Slotwise", "Sums"]
    assert lab.budget.queries == asked


def test_an_answer_that_leaves_noise_is_the_last(monkeypatch):
    found = found_by(monkeypatch, lab_of(), "2.5*exp(-0.7*x1)*x2", "2*x1")
    assert found.tried == ("slotwise",)


def test_where_what_an_answer_leaves_has_a_shape_the_search_goes_on(monkeypatch):
    found = found_by(monkeypatch, lab_of(), "2.5*x2 + -0.5*x1", None, "2.5*exp(-0.7*x1)*x2")
    assert found.tried == ("slotwise", "sums", "slotwise")
    assert found.tree.to_infix() == "2.5*exp(-0.7*x1)*x2"


def test_answers_in_other_units_are_compared_in_those_of_the_laboratory(monkeypatch):
    lab = lab_of(scale=1e200)
    assert lab.scale != 1.0
    wrong, right = f"{lab.scale}*x2", f"{2.5e200}*exp(-0.7*x1)*x2"
    inner = {wrong: "x2", right: f"{2.5e200 / lab.scale}*exp(-0.7*x1)*x2"}
    found = found_by(monkeypatch, lab, wrong, right, inner=inner)
    assert found.tree.to_infix() == MaskedTree.from_infix(right).to_infix()


def test_where_trying_variables_alone_takes_too_long_the_searches_go_on(monkeypatch):
    # A slow oracle uses up the part of the time that is for it in the middle of a batch; that ended the whole run.
    def used_up(*arguments, **options):
        raise OutOfTimeError("the time was up")

    monkeypatch.setattr("deap_vsr.search.slotwise.settings_that_show", used_up)
    names = [type(expansion).__name__ for expansion in searches(("sums", "slotwise"), FormsRegressor(), lab_of())]
    assert names == ["Slotwise", "Sums", "Slotwise"]
