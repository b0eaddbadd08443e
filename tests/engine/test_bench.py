import json
import subprocess
import sys

from deap_vsr.bench.bank import FAMILIES, fit_bank
from deap_vsr.bench.engine import bench_engine
from deap_vsr.tree.operators import CATALOGUE

RATIOS = ("evaluate_vs_compile", "fit_vs_bfgs", "fit_vs_least_squares", "fit_vs_operon")


def test_the_report_has_the_promised_keys_and_successes_are_shares():
    said = []
    report = bench_engine(n_trees=20, n_problems=10, repeats=1, progress=said.append)
    for key in (*RATIOS, "success_ours", "success_bfgs"):
        assert key in report
    assert all(report[key] is None or report[key] > 0 for key in RATIOS)
    assert 0 <= report["success_bfgs"] <= report["success_ours"] <= 1
    assert said


def test_the_bank_holds_the_five_families_and_each_problem_can_be_fitted():
    problems = fit_bank(25)
    assert [problem.family for problem in problems] == list(FAMILIES) * 5
    assert all(problem.starts.shape == (4, problem.tree.n_constants) for problem in problems)
    assert [p.tree.to_infix() for p in fit_bank(25)] == [p.tree.to_infix() for p in problems]


def test_vsr_bench_engine_quick_prints_one_json_object():
    run = subprocess.run(
        [sys.executable, "-m", "deap_vsr", "bench", "engine", "--quick", "--json"], capture_output=True, text=True
    )
    assert run.returncode == 0
    assert json.loads(run.stdout)["success_ours"] > 0.9


def test_op_codes_are_for_ever_as_kernels_are_cached_with_them():
    codes = {name: operator.opcode for name, operator in CATALOGUE.items()}
    assert (codes["add"], codes["pow"], codes["exp"], codes["log"], codes["abs"]) == (0, 12, 14, 15, 25)
    assert sorted(codes.values()) == list(range(len(codes)))
