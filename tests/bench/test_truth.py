"""`vsr bench truth`: what counts as found, false and right; runs that are kept are not done again."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from deap_vsr import VsrError, cli
from deap_vsr.bench import truth
from deap_vsr.bench.flaws import ROWS
from deap_vsr.bench.truth import RUNS, bench_truth, called_found, counted, judged, rows_of
from deap_vsr.problems.laws import law
from deap_vsr.tree import MaskedTree

LAW = law("decays", 0, seed=1)
WRONG = MaskedTree.from_infix("x1 + 2*x2")


def result(tree=LAW.tree, **changes):
    given = {"tree": tree, "stopped_by": "found", "oracle_queries": 100, "seconds": 0.5, "expression": "y"}
    return SimpleNamespace(**given | changes)


@pytest.fixture
def answers(monkeypatch):
    """Let runs end with what is `given`, the last first, or with a wrong formula; `asked` is what was asked for."""
    given, asked = [], []

    def discover(oracle, method, **options):
        asked.append((oracle, method, options))
        answer = given.pop() if given else result(WRONG)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(truth, "discover", discover)
    return SimpleNamespace(given=given, asked=asked)


# --- one result ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"stopped_by": "found"}, True),
        ({"stopped_by": "done"}, True),
        ({"stopped_by": "seconds"}, False),
        ({"stopped_by": "done", "status": "fits"}, False),
        ({"stopped_by": "seconds", "status": "found"}, True),
        ({"stopped_by": "done", "status": "partial"}, False),
        ({"stopped_by": "done", "status": None}, True),
    ],
)
def test_found_is_what_the_status_says_or_else_why_the_run_ended(changes, found):
    assert called_found(result(**changes)) is found


@pytest.mark.parametrize(
    ("row", "changes", "expected"),
    [
        ("exact", {}, (True, False, True)),
        ("exact", {"tree": WRONG}, (True, True, False)),
        ("exact", {"stopped_by": "seconds"}, (False, False, True)),
        ("exact", {"tree": None, "stopped_by": "exhausted"}, (False, False, False)),
        ("inexpressible", {}, (True, True, False)),
        ("inexpressible", {"stopped_by": "seconds"}, (False, False, False)),
        ("whole numbers", {"tree": WRONG}, (True, True, False)),
        ("step 5%", {}, (True, True, True)),
        ("step 5%", {"share": None}, (True, True, True)),
        ("step 5%", {"share": 0.02}, (True, True, True)),
        ("step 5%", {"share": 0.05}, (True, False, True)),
        ("step 5%", {"share": 0.2, "tree": WRONG}, (True, True, False)),
        ("step 5%", {"share": 0.02, "status": "fits"}, (False, False, True)),
    ],
)
def test_found_is_false_where_the_form_is_wrong_or_a_step_was_denied(row, changes, expected):
    told = judged(result(**changes), ROWS[row].make(LAW, 0))
    assert (told["found"], told["false"], told["right"]) == expected


# --- many ---------------------------------------------------------------------------------


def test_every_row_law_and_seed_is_run_with_the_limits_of_its_row(answers):
    news = []
    runs = bench_truth(("exact", "noise 1%, 300 points"), 3, 2, 7.0, laws_seed=4, tell=news.append)
    assert [(run["row"], run["law"], run["seed"]) for run in runs] == [
        (row, f"laws/{family}_0", seed)
        for row in ("exact", "noise 1%, 300 points")
        for seed in (0, 1)
        for family in ("products", "ratios", "decays")
    ]
    assert [(one.done, one.total) for one in news] == [(i, 12) for i in range(1, 13)]
    assert {method for _, method, _ in answers.asked} == {"vsr"}
    assert [options["max_queries"] for _, _, options in answers.asked] == [None] * 6 + [300] * 6
    assert [options["seed"] for _, _, options in answers.asked] == [0, 0, 0, 1, 1, 1] * 2
    assert all(options["time_limit"] == 7.0 for _, _, options in answers.asked)


def test_lines_are_counts_and_medians():
    base = {"row": "exact", "error": None, "points": 100, "seconds": 1.0, "found": True, "false": False, "right": True}
    failed = {"found": False, "right": False, "error": "OracleError", "points": None, "seconds": None}
    runs = [base, base | {"points": 300, "false": True, "right": False}, base | {"found": False, "points": 400}]
    runs += [base | failed, base | {"row": "step 1%"} | failed]
    first, second = counted(runs)
    assert first == {
        "row": "exact", "runs": 4, "failed": 1, "found": 2, "false": 1, "right": 2, "right_and_found": 1,
        "points": 300.0, "seconds": 1.0,
    }  # fmt: skip
    assert (second["failed"], second["found"], second["points"]) == (1, 0, None)


def test_a_run_that_raises_is_a_run_that_failed(answers):
    answers.given.append(VsrError("no answer"))
    (run,) = bench_truth(("exact",), 1)
    assert run["error"] == "VsrError: no answer"
    assert not run["found"]
    assert counted([run])[0]["failed"] == 1


def test_runs_that_are_kept_are_not_done_again(answers, tmp_path):
    out = tmp_path / "new" / "folder"
    first = bench_truth(("exact",), 2, out=out)
    assert len(answers.asked) == 2
    assert [json.loads(line) for line in (out / RUNS).read_text().splitlines()] == first
    assert bench_truth(("exact",), 2, out=out) == first
    assert len(answers.asked) == 2
    news = []
    more = bench_truth(("exact", "noise 1%"), 3, out=out, tell=news.append)
    assert len(answers.asked) == 6, "what is missing is done"
    assert [run for run in more if run in first] == first
    assert [one.done for one in news] == [3, 4, 5, 6]
    for changed in ({"laws_seed": 1}, {"time_limit": 5.0}):
        bench_truth(("exact",), 1, out=out, **changed)
    assert len(answers.asked) == 8, "another seed of the laws, or another limit, is another run"


def test_an_interrupt_ends_it_and_the_run_is_not_kept(answers, tmp_path):
    answers.given += [result(WRONG, stopped_by="interrupted"), result(WRONG)]
    with pytest.raises(KeyboardInterrupt):
        bench_truth(("exact",), 3, out=tmp_path)
    assert len((tmp_path / RUNS).read_text().splitlines()) == 1
    assert len(bench_truth(("exact",), 3, out=tmp_path)) == 3
    assert len(answers.asked) == 4


def test_a_line_cut_short_is_cut_off(answers, tmp_path):
    bench_truth(("exact",), 2, out=tmp_path)
    path = tmp_path / RUNS
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert len(bench_truth(("exact",), 2, out=tmp_path)) == 2
    assert len(answers.asked) == 3
    assert path.read_text() == whole
    path.write_text('{"row": ')
    assert len(bench_truth(("exact",), 1, out=tmp_path)) == 1


@pytest.mark.parametrize("text", ["{}\n", "nothing\n", "[1]\n"])
def test_a_file_with_something_else_is_refused(text, tmp_path):
    (tmp_path / RUNS).write_text(text)
    with pytest.raises(VsrError, match="no runs of `vsr bench truth`"):
        bench_truth(("exact",), 1, out=tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "a_file").touch()
    with pytest.raises(VsrError, match="cannot write"):
        bench_truth(("exact",), 1, out=tmp_path / "a_file" / "out")
    (tmp_path / RUNS).mkdir()
    with pytest.raises(VsrError, match="cannot be used"):
        bench_truth(("exact",), 1, out=tmp_path)


def test_rows_are_named_by_patterns():
    assert rows_of("") == tuple(ROWS)
    assert rows_of("step*; exact") == ("exact", "step 1%", "step 5%", "step 10%")
    assert rows_of("noise 1%, 300 points;") == ("noise 1%, 300 points",)
    with pytest.raises(VsrError, match="no row 'nothing'; rows are exact; noise"):
        rows_of("exact; nothing")


# --- as a user runs it --------------------------------------------------------------------


def test_laws_are_found_and_their_form_is_right(tmp_path):
    command = ["bench", "truth", "--rows", "exact", "--laws", "2", "--seed", "1", "--time-limit", "10"]
    done = CliRunner().invoke(cli.app, [*command, "--out", str(tmp_path), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    (line,) = json.loads(done.stdout)["rows"]
    assert (line["runs"], line["failed"], line["false"]) == (2, 0, 0)
    assert line["found"] == line["right"] == line["right_and_found"] == 2
    assert "2/2 exact, laws/ratios_0, seed 0: called found, form right" in done.stderr
    again = CliRunner().invoke(cli.app, [*command, "--out", str(tmp_path)], catch_exceptions=False)
    assert "exact" in again.stdout
    assert "2/2" not in again.stderr


def test_quick_is_a_few_laws_and_rows(answers):
    answers.given += [VsrError("no answer"), result(WRONG)]
    done = CliRunner().invoke(cli.app, ["bench", "truth", "--quick"], catch_exceptions=False)
    assert done.exit_code == 0
    assert len(answers.asked) == 9
    assert "FALSE" in done.stderr
    assert "failed: exact, laws/ratios_0, seed 0: VsrError: no answer" in done.stdout


def test_two_processes_give_the_same_runs():
    one, two = (bench_truth(("exact",), 2, 1, 20.0, laws_seed=1, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert [run["expression"] for run in one] == [run["expression"] for run in two]
    assert [run["points"] for run in one] == [run["points"] for run in two]
