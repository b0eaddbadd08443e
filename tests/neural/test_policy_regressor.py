"""Policies behind the shared contract, by name, in rounds, and resumed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from deap_vsr import MaskedTree, VsrError, discover
from deap_vsr.engine.fitting import fit
from deap_vsr.methods import METHODS, OURS, Options
from deap_vsr.neural.methods import BASELINES, baseline
from deap_vsr.neural.regressor import NeuralRegressor
from deap_vsr.neural.training import Training
from deap_vsr.search.checkpoint import _plain
from deap_vsr.testing import GrowingContract, HorizontalContract, RegressorContract, make_task
from deap_vsr.tree import is_mutable
from deap_vsr.tree.simplify import skeleton_key

LAW = "feynman-unit/I.39.22"


class TestDsr(RegressorContract, HorizontalContract, GrowingContract):
    def make(self):
        return BASELINES["dsr"]


class TestPqt(RegressorContract, GrowingContract):
    def make(self):
        return BASELINES["pqt"]


class TestVpg(RegressorContract):
    def make(self):
        return BASELINES["vpg"]


class TestGpMeld(RegressorContract, GrowingContract):
    def make(self):
        return BASELINES["gpmeld"]


def hard_task(**changes):
    return replace(make_task(lambda X: np.sin(9.0 * X[:, 0]) * X[:, 1], evaluations=10**7), **changes)


def test_no_formula_is_fitted_twice():
    met = []

    def spy(function, trees):
        met.extend(map(skeleton_key, trees))
        return [fit(tree, **function.keywords) for tree in trees]

    NeuralRegressor(map=spy, max_samples=3_000).regress(hard_task())
    assert len(met) == len(set(met)) > 100


def test_of_formulas_that_solve_a_task_the_shortest_of_a_batch_is_the_answer():
    task = make_task(lambda X: 0.3 + 2.0 * X[:, 0], columns=(0,), evaluations=10**6)
    best, *_ = NeuralRegressor(batch=1_000).regress(task)
    assert best.errors.max() <= task.target
    assert len(best.tree) == 5


def test_only_the_new_variable_is_written_into_slots():
    form = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
    task = hard_task(candidates=[form], columns=(1,))
    for candidate in NeuralRegressor(max_samples=1_000).regress(task):
        assert [node.name for node in candidate.tree[:2]] == ["mul", "x1"]
        assert "x1" not in [node.name for node in candidate.tree[2:]]


@pytest.mark.parametrize("frozen", [False, True])
def test_operators_are_taken_out_of_what_solves_a_task(frozen):
    long = MaskedTree.from_infix(f"{2.5 if frozen else 'C'} + (x1 - x1*C)*(x1/x1)")
    long = long.with_mask([0, 0, *[1] * (len(long) - 2)]) if frozen else long
    task = make_task(lambda X: 2.5 + 3.0 * X[:, 0], [long], (0,), evaluations=10_000)
    as_it_was, *_ = NeuralRegressor(shorten=False).regress(task)
    assert as_it_was.tree.to_infix(skeleton=True) == long.to_infix(skeleton=True)
    best, *_ = NeuralRegressor().regress(task)
    assert best.errors.max() <= task.target
    assert len(best.tree) == 5
    if frozen:
        assert [node.name for node in best.tree if not is_mutable(node)] == ["add", "2.5"]


def test_of_a_batch_the_best_are_fitted_to_the_end():
    task = make_task(lambda X: np.sin(1.3 * X[:, 0]), evaluations=10_000)
    own = NeuralRegressor(max_iterations=1)
    scorer = Training(own, task).scorer
    good, bad = (MaskedTree.from_infix(text) for text in ("sin(C*x1)", "x2*sin(C*x2)"))
    cut = fit(good, scorer.data, max_iterations=1, n_starts=0), fit(bad, scorer.data, max_iterations=1, n_starts=0)
    assert all("iterations" in one.stopped for one in cut)
    errors = scorer.score([good, bad]).errors
    assert errors[0] < 1e-20 < cut[0].error < cut[1].error
    assert errors[1] == cut[1].error
    assert len(scorer.leaders) == 2


def test_a_formula_that_did_not_hold_is_no_answer_and_is_not_lost():
    refused = MaskedTree.from_infix("x1 + C")
    task = make_task(lambda X: X[:, 0] + 2.0, [refused], (0,), evaluations=200_000)
    first, *_ = NeuralRegressor().regress(replace(task))
    assert first.tree.to_infix(skeleton=True) == "x1 + C"
    best, *others = NeuralRegressor(max_samples=2_000).regress(replace(task, refused=[refused]))
    assert best.errors.max() <= task.target
    assert skeleton_key(best.tree) != skeleton_key(refused)
    assert skeleton_key(others[-1].tree) == skeleton_key(refused)


@pytest.mark.parametrize("name", ["dsr", "gpmeld"])
def test_a_variable_whose_round_came_to_nothing_is_offered_again(name):
    form = MaskedTree.from_infix("2.5 + x1*C").with_mask([0, 0, 1, 1, 1])
    task = make_task(lambda X: 2.5 + X[:, 0] * X[:, 1], [form], (1,), evaluations=50_000)
    best, *_ = BASELINES[name].regress(task)
    assert best.errors.max() <= task.target
    assert [node.name for node in best.tree[:2]] == ["add", "2.5"]


@pytest.mark.parametrize("name", ["dsr", "vpg", "gpmeld"])
def test_a_resumed_run_ends_as_an_uninterrupted_one(name):
    told = []

    def run(resume, keep):
        own = replace(
            BASELINES[name], batch=50 if name != "gpmeld" else 20, max_samples=400 if name != "gpmeld" else 1_500
        )
        task = hard_task(resume=resume)
        if keep:
            task = replace(task, tell=lambda error, tree, state: told.append(json.dumps(state(), default=_plain)))
        return [(candidate.tree.to_infix(), candidate.errors.tolist()) for candidate in own.regress(task)]

    whole = run(None, keep=True)
    assert len(told) > 2
    assert run(json.loads(told[1]), keep=False) == whole


def test_training_does_not_bring_in_the_compiler_of_torch(run_python):
    said = run_python(
        "import sys; from deap_vsr import discover; "
        "discover('feynman-unit/I.12.1', 'dsr', max_evaluations=2000); print('torch._dynamo' in sys.modules)"
    )
    assert said.strip() == "False"


def test_the_threads_of_torch_are_as_before():
    torch.set_num_threads(2)
    seen = []
    NeuralRegressor(max_samples=400, watch=lambda news: seen.append(torch.get_num_threads())).regress(hard_task())
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


def test_an_iteration_tells_of_rewards_and_entropy():
    seen = []
    NeuralRegressor(max_samples=2_000, watch=seen.append).regress(hard_task())
    assert [news.samples for news in seen] == [200 * (i + 1) for i in range(10)]
    assert all(list(news.rewards) == sorted(news.rewards) and news.entropy > 0 for news in seen)
    assert seen[-1].error <= seen[0].error


def test_a_small_language_ends():
    task = replace(make_task(lambda X: np.sin(9 * X[:, 0]), evaluations=10**9), function_set=("sin",), columns=(0,))
    assert NeuralRegressor(rules=replace(NeuralRegressor().rules, max_length=2)).regress(task)


def test_an_unknown_objective_is_an_error():
    with pytest.raises(VsrError, match="risk, vanilla, queue"):
        NeuralRegressor(objective="best").regress(hard_task())


# --- by name ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vsr-dsr", "vsr-gpmeld", "pqt"])
def test_a_law_is_found_by_name(name):
    result = discover(LAW, name, max_evaluations=200_000)
    assert result.verdict.recovered


def test_slots_are_solved_one_by_one_if_asked_for():
    assert discover(LAW, "vsr-vpg", expansion="slotwise", max_evaluations=200_000).verdict.recovered


def test_the_published_numbers_are_those_of_the_paper():
    def paper(name):
        return baseline(name, True, {"optimizer": "BFGS"}, None, None)

    assert {paper(name).batch for name in BASELINES} == {1024}
    assert {paper(name).epsilon for name in BASELINES} == {0.02}
    assert (paper("gpmeld").meld.generations, paper("gpmeld").meld.hall, paper("gpmeld").objective) == (60, 25, "risk")
    assert paper("vpg").objective == "vanilla"
    assert {(paper(name).clip, paper(name).distinct, paper(name).rules.constants_each) for name in BASELINES} == {
        (None, False, None)
    }
    assert paper("dsr").optimizer == "BFGS"


def test_what_needs_an_extra_says_so_and_is_not_run_unasked(monkeypatch):
    monkeypatch.setattr("deap_vsr.methods.find_spec", lambda name: None)
    with pytest.raises(VsrError, match=r"vsr-dsr needs torch: pip install deap-vsr\[neural\]"):
        METHODS["vsr-dsr"].check(Options())
    assert not {"dsr", "vsr-dsr"} & set(OURS)


def test_a_grammar_of_one_s_own_is_refused():
    with pytest.raises(VsrError, match="coefficients"):
        discover(LAW, "dsr", grammar="rules.txt", max_evaluations=10)


SCRIPT = """
from deap_vsr import discover
for method in ("dsr", "pqt", "vpg", "vsr-gpmeld"):
    result = discover("feynman-unit/I.12.1", method, seed=3, max_evaluations=2000)
    print(result.expression, result.evaluations, result.oracle_queries)
"""


def test_one_seed_gives_one_result_in_five_processes(run_python):
    said = {run_python(SCRIPT, PYTHONHASHSEED=str(i), OMP_NUM_THREADS=str(1 + i % 2)) for i in range(5)}
    assert len(said) == 1
