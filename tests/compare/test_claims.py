"""In how many cells vertical search is no worse than horizontal, and ours than the paper's figure."""

import math

import pytest
from rows import row_of

from deap_vsr.compare.claims import Claim, claims, in_words
from deap_vsr.compare.tables import claim_table

OTHER = {"group": "(3,2,2)", "problem": "trigonometric/inv/3-2-2/prog_0"}


def found(rows):
    return {(claim.method, claim.other): claim for claim in claims(rows)}


def test_a_vertical_method_is_set_against_its_horizontal_half_and_vsr_against_both():
    methods = [
        "gp",
        "vsr-gp",
        "vsr-gp+slotwise",
        "mcts",
        "vsr-mcts",
        "mcts+coefficients",
        "vsr-mcts+coefficients",
        "vsr",
    ]
    pairs = [pair for pair in found([row_of(method) for method in methods]) if "paper" not in pair[1]]
    assert pairs == [
        ("vsr-gp", "gp"),
        ("vsr-gp+slotwise", "gp"),
        ("vsr-mcts", "mcts"),
        ("vsr-mcts+coefficients", "mcts+coefficients"),
        ("vsr", "gp"),
        ("vsr", "mcts"),
    ]


def test_cells_in_which_it_is_worse_are_named_and_ties_below_1e_6_are_none():
    rows = [row_of("gp", 1e-9), row_of("vsr-gp", 1e-7), row_of("gp", 0.1, **OTHER), row_of("vsr-gp", 0.2, **OTHER)]
    claim = found(rows)["vsr-gp", "gp"]
    assert (claim.n_cells, claim.no_worse, claim.behind) == (2, 1, ("trigonometric/inv (3,2,2)",))


def test_levels_of_noise_are_cells_of_their_own():
    rows = [row_of(method, 0.1, noise=noise) for method in ("gp", "vsr-gp") for noise in (0.0, 0.1)]
    assert found(rows)["vsr-gp", "gp"].n_cells == 2


def test_only_runs_that_both_have_are_compared_so_that_a_comparison_may_be_going_on():
    rows = [row_of("gp", 0.1, problem=0), row_of("gp", 1e-9, problem=1), row_of("vsr-gp", 0.05, problem=0)]
    assert found(rows)["vsr-gp", "gp"].no_worse == 1
    apart = [*rows[:2], row_of("vsr-gp", 0.05, **OTHER)]
    assert found(apart)["vsr-gp", "gp"].n_cells == 0


def test_a_failed_run_is_worse():
    assert found([row_of("gp", 0.9), row_of("vsr-gp", None)])["vsr-gp", "gp"].no_worse == 0


def test_points_are_compared_run_by_run():
    rows = [row_of("gp", oracle_queries=100), row_of("vsr-gp", oracle_queries=250)]
    rows += [row_of("gp", problem=1, oracle_queries=1000), row_of("vsr-gp", problem=1, oracle_queries=1500)]
    assert found(rows)["vsr-gp", "gp"].points == pytest.approx(2.0)
    assert math.isnan(found([row_of("gp", None), row_of("vsr-gp", None)])["vsr-gp", "gp"].points)


@pytest.mark.parametrize(("nmse", "no_worse"), [(1.9e-3, 1), (2.1e-3, 0)])
def test_against_the_paper_any_difference_counts(nmse, no_worse):  # which has 2E-3 for GP there
    assert found([row_of("gp", nmse)])["gp", "the paper's GP"].no_worse == no_worse


def test_the_paper_s_upper_bound_is_a_tie():
    assert found([row_of("vsr-gp", 1e-12)])["vsr-gp", "the paper's VSR-GP"].no_worse == 1
    assert found([row_of("vsr-gp", 2e-6)])["vsr-gp", "the paper's VSR-GP"].no_worse == 0


def test_the_paper_says_nothing_of_other_methods_sets_and_noise_that_is_a_share_of_y():
    assert claims([row_of("vsr")]) == []
    assert claims([row_of("gp", set="my/folder")]) == []
    assert claims([row_of("gp", noise=0.1, noise_of="rms")]) == []
    assert claims([row_of("gp", noise=0.1)])[0].other == "the paper's GP"


def test_two_sentences_say_where_it_is_behind_and_what_it_costs():
    rows = [row_of("gp", 0.1), row_of("vsr-gp", 0.2, oracle_queries=750)]
    ahead, costs = in_words(rows)
    assert "vsr-gp than gp in 0 of 1 cells (not in trigonometric/inv (2,1,1))" in ahead
    assert "1.5 times as many for vsr-gp as for gp" in costs
    assert in_words([row_of("gp", 0.1)]) == []


def test_of_many_cells_it_is_behind_in_four_are_named():
    rows = [row_of(method, nmse, group=f"g{i}") for i in range(9) for method, nmse in (("gp", 0.1), ("vsr-gp", 0.2))]
    assert "g3 and 5 more)" in in_words(rows)[0]


def test_the_table_has_every_claim_with_all_cells_that_are_behind():
    rows = [row_of(method, nmse, group=f"g{i}") for i in range(9) for method, nmse in (("gp", 0.1), ("vsr-gp", 0.2))]
    (line,) = claim_table(rows).rows
    assert [cell.text for cell in line[:5]] == ["vsr-gp", "gp", "9", "0", "1"]
    assert line[5].text.count("trigonometric/inv") == 9
    assert Claim("a", "b", 3, ("x",)).no_worse == 2
