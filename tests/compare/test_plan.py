"""Which runs a comparison consists of."""

import json
from collections import Counter

import pytest

from deap_vsr import VsrError
from deap_vsr.compare.job import Job, key_of, parts_of
from deap_vsr.compare.paper import NAMES, SUITES, compared, published
from deap_vsr.compare.plan import plan
from deap_vsr.methods import OURS
from deap_vsr.problems import suites


def test_every_problem_meets_every_method_with_every_seed_and_the_same_limits():
    found = plan(["trigonometric/inv/2-1-1"], methods=["gp", "vsr"], n_seeds=3, max_evaluations=500, max_queries=900)
    assert len(found.jobs) == 10 * 2 * 3
    assert {(job.time_limit, job.max_evaluations, job.max_queries) for job in found.jobs} == {(None, 500, 900)}
    assert Counter(job.seed for job in found.jobs) == {0: 20, 1: 20, 2: 20}
    assert len({job.key for job in found.jobs}) == 60
    problem = found.problems["trigonometric/inv/2-1-1/prog_3"]
    assert (problem.set, problem.group, problem.n_vars) == ("trigonometric/inv", "(2,1,1)", 2)


def test_without_any_limit_runs_have_sixty_seconds():
    assert {job.time_limit for job in plan(["trigonometric/inv/2-1-1"]).jobs} == {60.0}


def test_levels_of_noise_can_be_shares_of_the_root_mean_square():
    found = plan(["feynman-unit/I.39.22"], methods=["vsr"], noise=(0.001, 0.1), noise_of="rms")
    assert [(job.noise, job.noise_of) for job in found.jobs] == [(0.001, "rms"), (0.1, "rms")]
    assert found.settings["noise_of"] == "rms"
    assert "0.1 of rms" in found.jobs[1].title
    plain = plan(["feynman-unit/I.39.22"], methods=["vsr"], noise=(0.001, 0.1))
    assert not {job.key for job in found.jobs} & {job.key for job in plain.jobs}


def test_problems_of_two_suites_that_overlap_are_run_once():
    single = plan(["trigonometric/inv/2-1-1"], methods=["gp"])
    double = plan(["trigonometric/inv/2-1-1", "trigonometric/*/2-1-1/prog_0.json"], methods=["gp"])
    assert len(single.jobs) == 10
    assert len(double.jobs) == 12


def test_by_default_all_methods_that_discover_has_are_compared():
    assert plan(["feynman-unit/I.39.22"]).methods == tuple(OURS)


def test_presets_and_optimizers_go_to_methods_that_have_them():
    found = plan(["feynman-unit/I.39.22"], methods=["vsr", "gp"], preset="paper", optimizers=["lm", "BFGS"])
    settings = [(job.method, job.preset, job.optimizer) for job in found.jobs]
    assert settings == [("vsr", None, None), ("gp", "paper", "lm"), ("gp", "paper", "BFGS")]


def test_problems_that_are_not_usable_are_left_out_and_named():
    found = plan(["feynman"], methods=["vsr"])
    assert len(found.left_out) == 1
    assert not set(found.left_out) & set(found.problems)


def test_two_files_of_one_name_in_different_folders_are_two_problems(tmp_path):
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        text = suites.problem_files("feynman-unit/I.39.22")[0].read_text()
        (tmp_path / folder / "law.json").write_text(text)
    found = plan([str(tmp_path)], methods=["gp"])
    assert len(found.jobs) == 2
    assert sorted(problem.set for problem in found.problems.values()) == [
        (tmp_path / "one").as_posix(),
        (tmp_path / "other").as_posix(),
    ]


def test_settings_tell_files_of_other_content_apart(tmp_path):
    law = tmp_path / "law.json"
    text = suites.problem_files("feynman-unit/I.39.22")[0].read_text()
    law.write_text(text)
    before = plan([str(law)]).settings
    law.write_text(text + "\n")
    assert plan([str(law)]).settings != before
    assert json.loads(json.dumps(before)) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"places": ["nowhere"]}, "nowhere: no equation files there"),
        ({"places": ["paper:table9"]}, "unknown suite paper:table9; known are paper:table1"),
        ({"methods": ["magic"]}, "unknown method 'magic'; known are vsr"),
        ({"methods": ["gp+slotwise"]}, "method gp has no expansion 'slotwise'; it has none"),
        (
            {"methods": ["gp+coefficients"]},
            "method gp has no grammar; vsr-mcts and mcts have",
        ),
        ({"methods": ["vsr-mcts+joint+slotwise"]}, "at most one expansion and one grammar"),
        ({"optimizers": ["ADAM"]}, "unknown optimizer 'ADAM'"),
        ({"preset": "mine"}, "unknown preset 'mine'"),
        ({"n_seeds": 0}, "at least one seed"),
        ({"max_evaluations": 0}, "limits above 0"),
        ({"noise": [-0.1]}, "levels of noise"),
        ({"noise": [0.1], "noise_of": "spread"}, "a share of rms, not of 'spread'"),
        ({"methods": ["gplearn"], "max_queries": 500}, "gplearn needs --time-limit or --max-evaluations beside"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(options, message):
    with pytest.raises(VsrError, match=message.replace("(", r"\(")):
        plan(options.pop("places", ["feynman-unit/I.39.22"]), **options)


def test_a_job_and_its_row_have_the_same_key_also_after_json():
    job = Job("p", "gp", 1, 0.1, "BFGS")
    assert key_of(json.loads(json.dumps(vars(job)))) == job.key != Job("p", "gp", 1, 0.1).key
    assert Job("p", "gp", 1, 0.02).key != Job("p", "gp", 1, 0.020000001).key


@pytest.mark.parametrize(
    ("variant", "parts"),
    [
        ("gp", ("gp", None, None)),
        ("vsr-gp+slotwise", ("vsr-gp", "slotwise", None)),
        ("mcts+coefficients", ("mcts", None, "coefficients")),
        ("vsr-mcts+slotwise+coefficients", ("vsr-mcts", "slotwise", "coefficients")),
    ],
)
def test_a_variant_names_method_expansion_and_grammar(variant, parts):
    assert parts_of(variant) == parts
    assert plan(["feynman-unit/I.39.22"], methods=[variant]).methods == (variant,)


# --- the paper ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_problems", "noise"),
    [
        ("table1", 210, [0.0]),
        ("table2", 270, [0.0]),
        ("table3", 210, [0.1]),
        ("table4", 60, [0.0]),
        ("optimizers", 10, [0.0]),
        ("noise", 10, [0.02, 0.04, 0.08, 0.1, 0.12, 0.14]),
        ("quartiles", 70, [0.0, 0.1]),
        ("metrics", 20, [0.0]),
        ("memory", 60, [0.0]),
    ],
)
def test_the_paper_s_suites_hold_its_problems_and_noise(name, n_problems, noise):
    found = plan([f"paper:{name}"])
    assert len(found.problems) == n_problems
    assert found.settings["noise"] == noise


def test_the_case_study_of_optimizers_has_those_of_the_paper_and_ours():
    found = plan(["paper:optimizers"]).settings["optimizers"]
    assert found == ["lm", "BFGS", "CG", "Nelder-Mead", "basinhopping", "shgo", "dual_annealing", "direct"]


def test_what_is_asked_for_goes_before_what_a_suite_brings():
    found = plan(["paper:noise"], methods=["gp"], noise=[0.5])
    assert (found.methods, found.settings["noise"]) == (("gp",), [0.5])


def test_every_cell_of_the_paper_s_tables_is_there_and_meets_a_group_of_ours():
    figures = published()
    assert len(figures) == 528
    assert figures["trigonometric/inv", "(3,2,2)", 0.0, "nmse", "GP"].value == 0.015
    assert figures["trigonometric/inv", "(2,1,1)", 0.0, "nmse", "VSR-GP"].upper_bound
    assert figures["trigonometric/sincos", "(3,2,2)", 0.0, "minutes", "MCTS"].value == 249
    everything = plan([name for name in SUITES if name.startswith("paper:table")], methods=["gp"])
    ours = {(problem.set, problem.group) for problem in everything.problems.values()}
    assert {key[:2] for key in figures} <= ours
    assert set(NAMES.values()) <= {key[4] for key in figures}


def test_about_the_same_is_within_a_factor_of_two_or_below_the_paper_s_bound():
    exact = published()["trigonometric/inv", "(3,2,2)", 0.0, "nmse", "GP"]
    assert [compared(value, exact) for value in (0.007, 0.008, 0.029, 0.031)] == ["<", "=", "=", ">"]
    bound = published()["trigonometric/inv", "(2,1,1)", 0.0, "nmse", "VSR-GP"]
    assert [compared(value, bound) for value in (0.0, 1e-6, 1.1e-6)] == ["=", "=", ">"]
