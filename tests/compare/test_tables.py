"""Statistics over rows, and tables in the paper's layout."""

import csv
import io
import math

import pytest
from rows import old_row_of, row_of

from deap_vsr.compare import tables
from deap_vsr.compare.job import NEW_COLUMNS
from deap_vsr.compare.statistics import accurate, called_found, cost, false_found, ordered, paired, recovered, summary
from deap_vsr.compare.tables import Cell, Table, all_tables
from deap_vsr.compare.writers import to_csv, to_html, to_latex, to_markdown


def column(table, name):
    return [row[table.columns.index(name)] for row in table.rows]


# --- statistics ---------------------------------------------------------------------------


def test_wins_ties_and_losses_are_counted_run_by_run_with_ties_below_1e_6():
    ours = {0: 1e-7, 1: 1e-30, 2: 0.1, 3: 0.2, 4: None, 5: 0.3}
    theirs = {0: 1e-9, 1: 0.5, 2: 0.5, 3: 0.1, 4: 9.0, 5: None}
    rows = [row_of("vsr-gp", nmse, problem) for problem, nmse in ours.items()]
    rows += [row_of("gp", nmse, problem) for problem, nmse in theirs.items()]
    found = paired(rows, "vsr-gp", "gp")
    assert (found.wins, found.ties, found.losses, found.n_problems) == (3, 1, 2, 6)
    mirrored = paired(rows, "gp", "vsr-gp")
    assert (mirrored.wins, mirrored.losses) == (2, 3)
    assert mirrored.p_value == pytest.approx(found.p_value)


def test_the_signed_rank_test_is_that_of_its_definition():
    # 8 problems, all in favour of one method, with different differences: p = 2 / 2**8.
    rows = [row_of(method, 10.0 ** (-1 - step * (method == "vsr-gp") * (problem + 1)), problem)
            for problem in range(8) for method in ("vsr-gp", "gp") for step in [0.3]]  # fmt: skip
    assert paired(rows, "vsr-gp", "gp").p_value == pytest.approx(2 / 2**8)
    same = [row_of(method, 0.1, problem) for problem in range(8) for method in ("vsr-gp", "gp")]
    assert paired(same, "vsr-gp", "gp").p_value == 1.0


@pytest.mark.parametrize(("ties", "losses", "p"), [(18, 2, 0.5), (15, 5, 0.0625), (11, 9, 2 / 2**9), (4, 0, 1.0)])
def test_problems_that_do_not_tell_the_methods_apart_say_nothing(ties, losses, p):
    rows = []
    for problem in range(ties + losses):
        rows += [row_of("gp", 0.1 if problem < ties else 0.1 * (problem + 1), problem), row_of("vsr", 0.1, problem)]
    found = paired(rows, "gp", "vsr")
    assert (found.n_problems, found.n_untied) == (ties + losses, losses)
    assert found.p_value == pytest.approx(p)


def test_equal_differences_share_their_ranks():
    # Five equal losses and one win of the same size: of 64 signs, 7 have a sum as small, on either side.
    rows = [row_of("gp", 0.2 if problem else 0.1, problem) for problem in range(6)]
    rows += [row_of("vsr", 0.1 if problem else 0.2, problem) for problem in range(6)]
    assert paired(rows, "gp", "vsr").p_value == pytest.approx(2 * 7 / 64)


def test_seeds_of_one_problem_count_once_in_the_test():
    rows = [row_of(method, 0.1 if method == "gp" else 0.01, 0, seed) for seed in range(9) for method in ("gp", "vsr")]
    found = paired(rows, "gp", "vsr")
    assert (found.losses, found.n_problems, found.p_value) == (9, 1, 1.0)


def test_only_runs_that_both_have_are_compared():
    found = paired([row_of("gp", 0.1, 0), row_of("gp", 0.1, 1), row_of("vsr", 0.2, 1)], "gp", "vsr")
    assert (found.wins, found.ties, found.losses) == (1, 0, 0)


def test_failed_runs_count_as_the_worst_and_have_no_cost():
    rows = [row_of(nmse=0.1), row_of(nmse=0.2), row_of(nmse=None)]
    assert summary(rows, "nmse").median == 0.2
    assert summary(rows, "r2").median == 0.8
    assert summary([row_of(nmse=None)], "r2").median == -math.inf
    assert cost(rows, "seconds") == 1.5
    assert math.isnan(cost([row_of(nmse=None)], "seconds"))
    assert recovered([row_of(nmse=0.0), *rows]) == 0.25
    assert accurate([row_of(nmse=1e-4), *rows]) == 0.25


def old_rows(*nmse):
    return [dict.fromkeys(NEW_COLUMNS) | old_row_of("gp", error) for error in nmse]


def test_formulas_called_found_are_counted_and_those_that_are_so_falsely():
    rows = [row_of(nmse=0.0), row_of(nmse=0.1, standing="found", false_found=True), row_of(nmse=0.1), row_of(nmse=None)]
    assert (called_found(rows), false_found(rows)) == (2, 1)
    assert (called_found([row_of(nmse=None)]), false_found([row_of(nmse=None)])) == (0, 0)
    assert (called_found([*rows, *old_rows(0.0, None)]), false_found([*rows, *old_rows(0.0, None)])) == (2, 1)
    assert math.isnan(called_found(old_rows(0.0, 0.1, None)))
    assert math.isnan(false_found(old_rows(0.0, 0.1, None)))


def test_the_order_of_rows_is_not_the_order_in_which_they_were_finished():
    rows = [row_of(method, 0.1, problem, seed) for method in ("vsr", "gp") for problem in (2, 10) for seed in (0, 1)]
    assert ordered(rows[::-1], ["vsr", "gp"]) == rows
    assert ordered(rows[3:] + rows[:3], ["vsr", "gp"]) == rows


# --- tables -------------------------------------------------------------------------------


def test_medians_stand_in_the_paper_s_layout_with_its_figures_beside_them():
    rows = [row_of("gp", 0.5), row_of("vsr-gp", 1e-8), row_of("vsr", 1e-9)]
    rows += [row | {"group": "(3,2,2)", "problem": "q"} for row in (row_of("gp", 0.008), row_of("vsr-gp", 1e-8))]
    (table,) = tables.median_tables(rows)
    assert table.columns == ("set", "noise", "method", "(2,1,1)", "(3,2,2)")
    assert column(table, "(2,1,1)")[:3] == [
        Cell("0.5", 0.5, False, "2E-3", ">", False),
        Cell("<1e-6", 1e-8, True, "<1E-6", "=", False),
        Cell("<1e-6", 1e-9, True),
    ]
    assert column(table, "(3,2,2)")[:3] == [
        Cell("0.008", 0.008, False, "0.015", "=", False),
        Cell("<1e-6", 1e-8, True, "1E-3", "<", True),
        Cell("", None),
    ]
    others = [cell.text for cell in column(table, "method")[3:]]
    assert "DSR (paper only)" in others
    assert "GP (paper only)" not in others
    assert "other draws of the same distribution" in table.note


def test_the_rows_of_the_paper_s_policies_are_ours_with_its_figures_beside_them():
    names = {"dsr": "DSR", "pqt": "PQT", "vpg": "VPG", "gpmeld": "GPMeld"}
    rows = [row_of(prefix + name, 0.5, set="trigonometric/sincosinv") for prefix in ("", "vsr-") for name in names]
    (table,) = tables.median_tables(rows)
    methods = [cell.text for cell in column(table, "method")]
    beside = dict(zip(methods, (cell.paper for cell in column(table, "(2,1,1)")), strict=True))
    assert {name: beside[name] for name in names} == {"dsr": "0.439", "pqt": "0.485", "vpg": "0.008", "gpmeld": "<1E-6"}
    assert not any(beside[f"vsr-{name}"] for name in names)  # the paper has no vertical search over them
    assert not {f"{theirs} (paper only)" for theirs in names.values()} & set(methods)


def test_where_the_paper_has_no_figures_none_are_shown():
    (table,) = tables.median_tables([row_of("gp", 0.5, set="my/folder", group="", problem="my/folder/a.json")])
    assert table.columns == ("set", "noise", "method", "all")
    assert table.rows == ((Cell("my/folder", "my/folder"), Cell("0", 0.0), Cell("gp", "gp"), Cell("0.5", 0.5, True)),)
    assert "paper" not in table.note


def test_noise_that_is_a_share_of_y_is_not_the_paper_s():
    plain, share = (row_of("gp", 0.5, noise=0.1, noise_of=of) for of in (None, "rms"))
    assert "(paper only)" in to_markdown(tables.median_tables([plain])[0])
    assert "paper" not in to_markdown(tables.median_tables([share])[0])
    assert "In brackets" not in tables.recovery([share]).note


def test_in_noise_answers_of_the_right_form_are_counted():
    rows = [row_of("vsr", 0.01, noise=0.1, right_form=right) for right in (True, True, False)]
    table = tables.overview([*rows, row_of("gp", 0.1, noise=0.1)])
    assert [cell.text for cell in column(table, "right form")] == ["67%", ""]
    assert "right form" not in tables.overview([row_of("vsr", 0.0)]).columns


def test_sets_of_different_groups_have_tables_of_their_own():
    rows = [row_of("gp", 0.5), row_of("gp", 0.5, set="livermore2", group="m=2", problem="livermore2/Vars2/1")]
    assert [table.name for table in tables.median_tables(rows)] == ["nmse-trigonometric", "nmse-livermore2"]


def test_recovery_time_and_memory_stand_beside_the_paper_s():
    table = tables.recovery([row_of("gp", 1e-4), row_of("gp", 0.5, seed=1)])
    (accuracy,), (minutes,), (held,) = (column(table, name) for name in ("R2 >= 0.999", "minutes", "memory (MB)"))
    assert (accuracy.text, accuracy.paper, accuracy.sign) == ("50%", "40%", "=")
    assert (minutes.value, minutes.paper, minutes.sign) == (0.025, "2", "")  # another machine, other limits
    assert (held.value, held.paper, held.sign, held.better) == (3.0, "42", "", False)


def test_more_is_better_where_shares_are_compared():
    (cell,) = column(tables.recovery([row_of("gp", 1e-4)]), "R2 >= 0.999")
    assert (cell.text, cell.sign, cell.better) == ("100%", ">", True)


def test_quartiles_metrics_failures_and_pairs_are_those_of_the_rows():
    rows = [row_of(m, e, p) for p, e in enumerate((0.1, 0.2, 0.3, 0.4, None)) for m in ("gp", "vsr-gp")]
    rows = ordered(rows, ["gp", "vsr-gp"])
    found = {table.name: table for table in all_tables(rows)}
    line = found["quartiles"].rows[0]
    assert [cell.text for cell in line[4:]] == ["5", "0.2", "0.3", "0.4"]
    assert [cell.value for cell in column(found["metrics"], "R2")] == pytest.approx([0.7, 0.7])
    assert [cell.text for cell in column(found["overview"], "failed")] == ["1", "1"]
    assert [cell.text for cell in column(found["pairs"], "ties")] == ["5"]


def test_groups_tell_how_many_are_found_and_found_falsely_and_nothing_where_that_is_not_known():
    rows = [row_of("vsr", 0.0), row_of("vsr", 0.1, standing="found", false_found=True), row_of("vsr", None)]
    table = tables.overview([*rows, *old_rows(0.0, 0.1)])
    assert [cell.value for cell in column(table, "found")] == [2, None]
    assert [cell.value for cell in column(table, "false found")] == [1, None]
    new, old = csv.DictReader(io.StringIO(to_csv(table)))
    assert (new["found"], new["false found"], old["found"], old["false found"]) == ("2", "1", "", "")


def test_optimizers_and_noise_are_kept_apart():
    rows = [row_of("gp", 0.1, optimizer=o, noise=n) for o in ("lm", "BFGS") for n in (0.0, 0.1)]
    table = tables.overview(ordered(rows, ["gp"]))
    assert [(a.text, b.text) for a, b in zip(column(table, "noise"), column(table, "method"), strict=True)] == [
        ("0", "gp [BFGS]"), ("0", "gp [lm]"), ("0.1", "gp [BFGS]"), ("0.1", "gp [lm]"),
    ]  # fmt: skip


# --- writers ------------------------------------------------------------------------------

TABLE = Table(
    "name", "A <title> & 50%_", ("set", "a|b"), ((Cell("x_1", "x_1"), Cell("<1e-6", 1e-9, True, "2E-3", "<", True)),)
)


def test_markdown_escapes_and_marks():
    assert to_markdown(TABLE).splitlines()[2:] == [r"| set | a\|b |", "|---|---|", r"| x\_1 | **\<1e-6** ▼ (2E-3) |"]


def test_latex_escapes_and_marks():
    text = to_latex(TABLE)
    assert r"\caption{A \textless{}title\textgreater{} \& 50\%\_.}" in text
    assert r"x\_1 & \textbf{\textless{}1e-6} $\downarrow$ (2E-3) \\" in text
    assert text.count("{") == text.count("}")


def test_csv_has_numbers_in_full_and_the_paper_s_in_columns_of_their_own():
    assert list(csv.reader(io.StringIO(to_csv(TABLE)))) == [
        ["set", "a|b", "a|b: paper", "a|b: difference"],
        ["x_1", "1e-09", "2E-3", "<"],
    ]


def test_html_escapes_text_and_carries_what_to_sort_by():
    text = to_html(TABLE)
    assert "A &lt;title&gt; &amp; 50%_" in text
    assert '<td class="number" data-value="1e-09"><b>&lt;1e-6</b> <small><span class="better">▼</span> (2E-3)' in text
    hostile = Table("n", "t", ("c",), ((Cell("<script>alert(1)</script>", '"><script>'),),))
    assert "<script" not in to_html(hostile)
