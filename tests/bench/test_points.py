"""`vsr bench points`: what counts as recovered and as falsely found; runs that are kept are not done again."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from deap_vsr import VsrError, cli
from deap_vsr.bench import commands, points
from deap_vsr.bench.points import (
    LIMITS,
    NOISE,
    RUNS,
    bench_points,
    counted,
    judged,
    limits_of,
    noise_of,
    plot_points,
    problems_of,
    tables,
)
from deap_vsr.problems.laws import law
from deap_vsr.problems.suites import data_root
from deap_vsr.tree import MaskedTree

LAW = law("decays", 0, seed=1)
PROBLEMS = [LAW, law("products", 0, seed=1)]
WRONG = MaskedTree.from_infix("x1 + 2*x2")
#: The law with numbers as noise leaves them: the form is right, the law is not recovered.
NOISY = MaskedTree.from_infix("0.8512*x3/x4**2*exp(-0.5587*x2) + 2001*x1")


def result(tree=WRONG, **changes):
    given = {"tree": tree, "stopped_by": "done", "oracle_queries": 100, "seconds": 0.5, "expression": "y"}
    given |= {"status": "found", "reason": "", "verdict": SimpleNamespace(recovered=False)}
    return SimpleNamespace(**given | changes)


RECOVERED = result(LAW.tree, verdict=SimpleNamespace(recovered=True))


@pytest.fixture
def answers(monkeypatch):
    """Let runs end with what is `given`, the last first, or with a wrong formula; `asked` is what was asked for."""
    given, asked = [], []

    def discover(problem, method, **options):
        asked.append((problem.name, method, options))
        answer = given.pop() if given else result()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(points, "discover", discover)
    return SimpleNamespace(given=given, asked=asked)


def run(**changes):
    """Return a finished run as it is counted."""
    given = {"noise": 0.0, "limit": 30, "seed": 0, "good": True, "found": True, "false": False}
    return given | {"points": 20, "seconds": 1.0, "error": None} | changes


# --- one result ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "answer", "expected"),
    [
        (0.0, RECOVERED, (True, True, True, False)),
        (0.01, RECOVERED, (True, True, True, False)),
        (0.0, result(NOISY), (True, False, True, True)),
        (0.01, result(NOISY), (True, True, True, False)),
        (0.0, result(), (False, False, True, True)),
        (0.01, result(), (False, False, True, True)),
        (0.01, result(status="fits"), (False, False, False, False)),
        (0.01, result(NOISY, status="partial"), (True, True, False, False)),
        (0.0, result(None, status="partial", verdict=None), (False, False, False, False)),
    ],
)
def test_found_is_false_where_the_law_is_not_recovered_and_in_noise_where_its_form_is_wrong(noise, answer, expected):
    told = judged(answer, LAW, noise)
    assert (told["right"], told["good"], told["found"], told["false"]) == expected


# --- many ---------------------------------------------------------------------------------


def test_every_problem_is_run_with_every_limit_noise_and_seed(answers):
    news = []
    runs = bench_points(PROBLEMS, (None, 50, 30), (0.01, 0.0), 2, 7.0, tell=news.append)
    assert [(run["noise"], run["limit"], run["seed"], run["problem"]) for run in runs] == [
        (level, limit, seed, problem.name)
        for level in (0.0, 0.01)
        for limit in (30, 50, None)
        for seed in (0, 1)
        for problem in PROBLEMS
    ]
    assert [(one.done, one.total) for one in news] == [(i, 24) for i in range(1, 25)]
    assert {method for _, method, _ in answers.asked} == {"vsr"}
    for run, (name, _, options) in zip(runs, answers.asked, strict=True):
        assert (name, options["max_queries"], options["seed"]) == (run["problem"], run["limit"], run["seed"])
        assert (options["noise"].scale, options["noise"].relative) == (run["noise"], run["noise"] > 0)
        assert options["time_limit"] == 7.0


def test_a_run_that_raises_is_a_row_that_is_not_recovered(answers):
    answers.given.append(VsrError("no answer"))
    (run,) = bench_points([LAW], (30,), (0.0,))
    assert run["error"] == "VsrError: no answer"
    assert (run["recovered"], run["right"], run["status"], run["false"]) == (False, False, None, False)
    (line,) = counted([run])
    assert (line["failed"], line["problems"], line["good"], line["points"]) == (1, 1, 0, None)


def test_a_killed_benchmark_goes_on_from_its_finished_runs(answers, tmp_path):
    answers.given += [result(stopped_by="interrupted"), result()]
    with pytest.raises(KeyboardInterrupt):
        bench_points(PROBLEMS, (30, None), (0.0,), out=tmp_path)
    assert len((tmp_path / RUNS).read_text().splitlines()) == 1, "the interrupted run is not kept"
    runs = bench_points(PROBLEMS, (30, None), (0.0,), out=tmp_path)
    assert len(answers.asked) == 5
    assert [json.loads(line) for line in (tmp_path / RUNS).read_text().splitlines()] == runs
    assert bench_points(PROBLEMS, (30, None), (0.0,), out=tmp_path) == runs
    assert len(answers.asked) == 5
    bench_points([law("decays", 0, seed=2)], (30,), (0.0,), out=tmp_path)
    assert len(answers.asked) == 6, "another law of the same name is another problem"


def test_a_file_of_another_benchmark_is_refused(tmp_path):
    (tmp_path / RUNS).write_text('{"row": "exact", "law": "laws/decays_0", "laws_seed": 0, "seed": 0}\n')
    with pytest.raises(VsrError, match="no runs of `vsr bench points`"):
        bench_points([LAW], (30,), (0.0,), out=tmp_path)


# --- tables and the picture ---------------------------------------------------------------

FAILED = {"points": None, "seconds": None, "error": "no answer", "found": False, "good": False}
TWO_SEEDS = [
    *(run(), run(points=24), run(seed=1, points=30), run(seed=1, good=False, false=True, points=8)),
    *(run(limit=None), run(limit=None), run(limit=None, seed=1) | FAILED, run(limit=None, seed=1, found=False)),
    *(run(noise=0.01, limit=30, seed=seed, good=False, found=False) for seed in (0, 0, 1, 1)),
    *(run(noise=0.01, limit=None, seed=seed, good=False, found=False) for seed in (0, 0, 1, 1)),
]


def test_lines_are_means_over_seeds_and_medians_of_points_over_recovered_runs():
    first, second, *others = counted(TWO_SEEDS)
    assert first == {
        "noise": 0.0, "limit": 30, "problems": 2, "seeds": 2, "failed": 0, "good": 1.5, "found": 2.0, "false": 0.5,
        "points": 24.0, "seconds": 1.0,
    }  # fmt: skip
    assert (second["limit"], second["failed"], second["good"], second["found"]) == (None, 1, 1.5, 1.0)
    assert [line["points"] for line in others] == [None, None]


def test_tables_have_a_row_for_each_noise_and_a_column_for_each_limit():
    recovered, asked, found = tables(counted(TWO_SEEDS))
    assert recovered.title == "recovered (in noise: right form), of 2 problems, means over seeds"
    assert recovered.heads == ("30", "none")
    assert recovered.rows == {"exact": ["1.5", "1.5"], "noise 1%": ["0", "0"]}
    assert asked.rows == {"exact": ["24", "20"], "noise 1%": ["-", "-"]}
    assert found.rows == {"exact": ["2, 0.5", "1, 0"], "noise 1%": ["0, 0", "0, 0"]}
    assert recovered.markdown().splitlines()[2:] == [
        "| limit | 30 | none |",
        "| --- | ---: | ---: |",
        "| exact | 1.5 | 1.5 |",
        "| noise 1% | 0 | 0 |",
    ]


def test_the_picture_has_a_line_for_each_noise_and_no_limit_at_the_right():
    pytest.importorskip("matplotlib")
    (axis,) = plot_points(counted(TWO_SEEDS)).axes
    exact, noisy = axis.lines
    assert list(exact.get_xdata()) == [30.0, 90.0]
    assert list(exact.get_ydata()) == [0.75, 0.75]
    assert list(noisy.get_ydata()) == [0.0, 0.0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["30", "none"]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["exact", "noise 1%"]
    assert axis.get_xscale() == "log"


# --- what was asked for -------------------------------------------------------------------


def test_limits_and_levels_are_read_from_text():
    assert limits_of("20, 30,none") == (20, 30, None)
    assert limits_of("0") == (None,)
    assert limits_of(commands.LIMITS) == LIMITS
    assert noise_of("0, 0.01") == (0.0, 0.01)
    assert noise_of(commands.NOISE) == NOISE


@pytest.mark.parametrize("text", ["-1", "1.5", "all", "30,,50"])
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(VsrError, match="expected numbers of points, or none"):
        limits_of(text)


@pytest.mark.parametrize("text", ["-0.1", "nan", "inf", "much", "0,"])
def test_what_is_no_level_of_noise_is_refused(text):
    with pytest.raises(VsrError, match="expected shares of the spread of y"):
        noise_of(text)


def test_problems_are_those_of_suites_globs_and_fresh_laws(tmp_path):
    names = [problem.name for problem in problems_of(["feynman-unit/I.12.*", "laws"], 2, 1)]
    assert names[0] == "feynman-unit/I.12.1"
    assert names[-2:] == ["laws/products_0", "laws/ratios_0"]
    assert problems_of(["laws"], 1, 1) != problems_of(["laws"], 1, 2)
    with pytest.raises(VsrError, match="nothing: no equation files there"):
        problems_of(["nothing"])
    known = json.loads((data_root() / "feynman-unit" / "I.12.1.json").read_text())
    (tmp_path / "not.json").write_text(json.dumps(known | {"usable": False}))
    with pytest.raises(VsrError, match="none of the problems is usable"):
        problems_of([str(tmp_path)])


# --- as a user runs it --------------------------------------------------------------------


def vsr(*arguments):
    done = CliRunner().invoke(cli.app, ["bench", "points", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done


def test_a_law_is_recovered_with_many_points_and_not_with_few(tmp_path):
    command = ("feynman-unit/I.12.1", "--limits", "3,1000,none", "--noise", "0", "--out", tmp_path)
    done = vsr(*command, "--json")
    few, many, _ = json.loads(done.stdout)["rows"]
    assert (few["limit"], few["good"], few["found"], few["false"]) == (3, 0, 0, 0)
    assert (many["limit"], many["good"], many["found"], many["false"]) == (1000, 1, 1, 0)
    assert many["points"] <= 1000
    assert "3/3 exact, limit none, feynman-unit/I.12.1, seed 0: recovered, called found" in done.stderr
    again = vsr(*command)
    assert "3/3" not in again.stderr
    assert "exact" in again.stdout
    table = (tmp_path / "points.md").read_text()
    assert "| limit | 3 | 1000 | none |" in table
    assert "| exact | 0 | 1 | 1 |" in table


def test_quick_is_a_few_problems(answers):
    answers.given += [VsrError("no answer"), result()]
    done = vsr("--quick")
    assert len(answers.asked) == 8 * 4 * 2
    assert "called found, FALSE, 100 points" in done.stderr
    assert "failed: exact, limit 30, feynman-unit/" in done.stdout


def test_laws_alone_are_meant_where_their_number_is_given(answers):
    vsr("--laws", 2, "--seed", 3, "--limits", "30", "--noise", "0", "--seeds", 2)
    assert [name for name, _, _ in answers.asked] == ["laws/products_0", "laws/ratios_0"] * 2
    del answers.asked[:]
    vsr("laws", "feynman-unit/I.12.1", "--laws", 1, "--limits", "30", "--noise", "0")
    assert [name for name, _, _ in answers.asked] == ["laws/products_0", "feynman-unit/I.12.1"]


def test_without_matplotlib_there_is_a_table_and_no_picture(answers, tmp_path, monkeypatch):
    monkeypatch.setattr("deap_vsr.plot.have_matplotlib", lambda: False)
    vsr("feynman-unit/I.12.1", "--limits", "30", "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["points.jsonl", "points.md"]
    assert "points.png" not in (tmp_path / "points.md").read_text()


def test_a_table_that_cannot_be_written_is_told(answers, tmp_path):
    (tmp_path / "points.md").mkdir()
    with pytest.raises(VsrError, match="cannot write"):
        vsr("feynman-unit/I.12.1", "--limits", "30", "--out", tmp_path)
