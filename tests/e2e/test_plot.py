"""Pictures of a result: one tree for each round, its nodes coloured by what may still change."""

import json

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from deap_vsr import VsrError, plot
from deap_vsr.plot import FROZEN, OPEN, SLOT, plot_path
from deap_vsr.result import Result, path_of
from deap_vsr.search.records import Round
from deap_vsr.terminal import write_result
from deap_vsr.tree import Constant, MaskedTree


def tree(text, mask=None):
    found = MaskedTree.from_infix(text)
    return found.with_mask(mask or [1] * len(found))


def round_of(freed, formula, accepted=True, n_vars=3):
    controlled = tuple(column for column in range(n_vars) if column not in freed)
    return Round(tuple(freed), controlled, formula, (1e-30,), ((),), len(formula.slots), accepted, 240, 0.1)


def result_of(*rounds):
    return Result(
        tree=rounds[-1].tree if rounds else None, method="vsr-gp", expansion="joint", schedule=((0,), (1,), (2,)),
        seed=0, noise=0.0, budget={}, settings={}, seconds=1.0, evaluations=1, oracle_queries=1, peak_memory_mb=1.0,
        stopped_by="done", rounds=list(rounds), equation="some law",
    )  # fmt: skip


#: Boyle, Gay-Lussac, Avogadro.
PATH = (
    round_of([0], tree("x1*C", [0, 0, 1])),
    round_of([0, 1], tree("x1*(C*x2)", [0, 0, 0, 1, 0])),
    round_of([0, 1, 2], tree("x1*(x2/x3) + 0.25", [0] * 7)),
)


def drawn(axis):
    """Return (label, colour of its box) of every node."""
    return [(text.get_text(), text.get_bbox_patch().get_facecolor()) for text in axis.texts]


def test_one_panel_is_drawn_for_each_round():
    figure = plot_path(result_of(*PATH))
    assert len(figure.axes) == 3
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert [title.splitlines()[0] for title in titles] == [
        "free: x1; held: x2 x3",
        "free: x1 x2; held: x3",
        "free: x1 x2 x3; held: nothing",
    ]
    assert titles[2].splitlines()[1] == "y = x1*(x2/x3) + 0.25"
    assert figure.get_suptitle().splitlines()[0] == "some law"


def test_frozen_nodes_slots_and_open_nodes_have_colours_of_their_own():
    mixed = MaskedTree.from_infix("C*x1 + sin(x2)").with_mask([0, 0, 1, 0, 1, 1])
    (axis,) = plot_path(result_of(round_of([0], mixed))).axes
    names = {to_rgba(FROZEN): "frozen", to_rgba(SLOT): "slot", to_rgba(OPEN): "open"}
    assert len(names) == 3
    assert [(label, names[colour]) for label, colour in drawn(axis)] == [
        ("+", "frozen"),
        ("*", "frozen"),
        ("C1", "slot"),
        ("x1", "frozen"),
        ("sin", "open"),
        ("x2", "open"),
    ]


def test_a_fitted_constant_that_is_frozen_and_a_literal_that_may_change_are_no_slots():
    nodes = [*MaskedTree.from_infix("x1 + 2")[:2], Constant(2.0, fitted=True, mutable=False)]
    (axis,) = plot_path(result_of(round_of([0], MaskedTree(nodes)))).axes
    assert drawn(axis)[2] == ("2", to_rgba(FROZEN))
    nodes[2] = Constant(2.0, fitted=False, mutable=True)
    (axis,) = plot_path(result_of(round_of([0], MaskedTree(nodes)))).axes
    assert drawn(axis)[2] == ("2", to_rgba(OPEN))


def test_every_node_but_the_root_is_joined_to_its_parent_and_no_two_nodes_lie_on_each_other():
    formula = tree("sin(x1*x2 + C)*(x1 - x3/C) + exp(x2)")
    (axis,) = plot_path(result_of(round_of([0, 1, 2], formula))).axes
    places = [text.get_position() for text in axis.texts]
    assert len(places) == len(formula)
    assert len(set(places)) == len(formula)
    assert len(axis.lines) == len(formula) - 1
    for line in axis.lines:
        (x0, x1), (y0, y1) = line.get_data()
        assert (x0, y0) in places
        assert (x1, y1) in places
        assert y1 == y0 - 1, "operands are drawn one row below"
    root = max(places, key=lambda place: place[1])
    assert places[0] == root
    x_low, x_high = axis.get_xlim()
    y_low, y_high = axis.get_ylim()
    assert all(x_low < x < x_high and y_low < y < y_high for x, y in places)


def test_a_round_that_did_not_fit_says_so():
    (axis,) = plot_path(result_of(round_of([0], tree("x1"), accepted=False))).axes
    assert axis.get_title(loc="left").splitlines()[0] == "free: x1; held: x2 x3; does not fit"


def test_a_long_formula_is_cut_in_the_title_and_not_in_the_tree():
    long = tree(" + ".join(f"sin(x1*{i}.5)" for i in range(1, 30)))
    (axis,) = plot_path(result_of(round_of([0], long))).axes
    title = axis.get_title(loc="left").splitlines()[1]
    assert title.endswith(" ...")
    assert len(title) <= plot.MAX_FORMULA + len("y = ")
    assert len(axis.texts) == len(long)


@pytest.mark.parametrize(
    ("freed", "accepted", "expected"),
    [
        ([], [], []),
        (["1"], [False], [0]),
        (["1", "12", "123"], [True, False, True], [0, 1, 2]),
        (["1", "12", "123", "1", "12"], [True] * 5, [3, 4]),
        (["1", "12", "123", "1", "12", "123", "1"], [True] * 7, [6]),
        (["1", "1", "1"], [True] * 3, [2]),
        (["123", "123"], [False] * 2, [1]),  # horizontal search frees all at once
        (["1", "12", "13", "132"], [True, False, True, True], [0, 2, 3]),  # x2 did not get on
        (["1", "1", "1", "12"], [True, True, False, True], [1, 3]),
        (["2", "21", "1", "1", "12", "12"], [True] * 6, [3, 5]),
    ],
)
def test_the_path_is_of_rounds_each_with_a_part_of_the_variables_of_the_next(freed, accepted, expected):
    assert path_of(freed, accepted) == expected


def test_of_a_search_of_several_passes_the_last_is_drawn():
    first = [round_of(range(n), tree("x1 + x2")) for n in (1, 2, 3)]
    figure = plot_path(result_of(*first, *PATH[:2]))
    assert len(figure.axes) == 2
    assert [label for label, _ in drawn(figure.axes[0])] == ["*", "x1", "C1"]


def test_a_result_without_rounds_is_a_picture_that_says_so(tmp_path):
    figure = plot_path(result_of())
    assert figure.axes == []
    assert figure.get_suptitle() == "no round was finished"
    figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_are_short_in_the_picture_and_the_tree_is_left_as_it_was():
    formula = tree("0.30000000000000004*x1 + 123.456789012345")
    before = list(formula)
    (axis,) = plot_path(result_of(round_of([0], formula))).axes
    labels = [label for label, _ in drawn(axis)]
    assert labels == ["+", "*", "0.3", "x1", "123.5"]
    assert list(formula) == before


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    assert not plot.have_matplotlib()
    with pytest.raises(VsrError, match=r"pip install matplotlib, or deap-vsr\[plot\]"):
        plot_path(result_of(*PATH))
    with pytest.raises(VsrError, match="matplotlib"):
        plot_path(result_of())


def test_a_tree_of_a_hundred_nodes_is_drawn_within_a_picture_that_can_be_written(tmp_path):
    deep = tree("sin(" * 20 + "x1" + ")" * 20 + " + " + " + ".join(["C*x1*x2"] * 20))
    figure = plot_path(result_of(round_of([0, 1], deep)))
    figure.savefig(tmp_path / "path.png", dpi=40)
    assert (tmp_path / "path.png").stat().st_size > 1000
    assert np.isfinite(figure.get_size_inches()).all()


def test_a_result_without_a_formula_is_written_too(tmp_path):
    written = write_result(result_of(), tmp_path)
    assert [path.name for path in written] == ["result.json", "formula.tex", "path.png"]
    assert json.loads(written[0].read_text())["expression"] == ""
    assert written[1].read_text() == "\n"
    assert written[2].read_bytes().startswith(b"\x89PNG")
