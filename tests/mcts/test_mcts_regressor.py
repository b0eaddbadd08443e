"""MCTS behind the shared contract, in rounds and on the command line."""

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

from cfg_mcts import Grammar, GrammarError, MctsRegressor
from cfg_mcts.grammar import NonTerminal
from cfg_mcts.regressor import _Round
from deap_vsr import MaskedTree, VsrError, discover
from deap_vsr.search.checkpoint import Checkpoint
from deap_vsr.testing import GrowingContract, HorizontalContract, RegressorContract, make_task
from deap_vsr.tree import is_mutable

LAW = "feynman-unit/I.39.22"


class TestMcts(RegressorContract, HorizontalContract, GrowingContract):
    def make(self):
        return MctsRegressor()


class TestMctsAsPublished(RegressorContract, GrowingContract):
    def make(self):
        return MctsRegressor(climb=0)


# --- where it starts ----------------------------------------------------------------------


def start_of(candidates, columns=(1,)):
    task = make_task(lambda X: X[:, 0] * X[:, 1], candidates, columns)
    return _Round(MctsRegressor(), task).own.tree.derivations[0].form


def opened(form):
    return [position for position, node in enumerate(form) if isinstance(node, NonTerminal)]


def test_the_root_is_the_best_expression_with_its_summary_constants_open():
    frozen = MaskedTree.from_infix("x1*C + 0.25").with_mask([0, 0, 0, 1, 0])
    other = MaskedTree.from_infix("x1*C")
    assert opened(start_of([frozen, other])) == [3]


def test_an_expression_that_did_not_pass_has_every_open_constant_open():
    assert opened(start_of([MaskedTree.from_infix("C*x1 + sin(C)")])) == [2, 5]


def test_an_expression_without_open_constants_starts_anew():
    assert len(start_of([MaskedTree.from_infix("x1 + 2.5")])) == 1
    assert len(start_of([])) == 1


def test_only_the_new_variable_comes_in_at_a_slot():
    frozen = MaskedTree.from_infix("x1*C").with_mask([0, 0, 1])
    task = make_task(lambda X: X[:, 0] * X[:, 1], [frozen], (1,))
    rules = [str(rule) for rule in _Round(MctsRegressor(), task).grammar.rules]
    assert "A -> x2" in rules
    assert "A -> x1" not in rules


def test_one_expression_comes_back():
    found = MctsRegressor().regress(make_task(lambda X: np.sin(5 * X[:, 0]), evaluations=3_000))
    assert len(found) == 1


# --- rewards, grammars, limits ------------------------------------------------------------


@pytest.mark.parametrize(("reward", "low", "high"), [("inv_nmse", 0.0, 1.0), ("neg_mse", -np.inf, 0.0)])
def test_rewards_are_bounded_and_the_better_fit_has_the_larger(reward, low, high):
    task = make_task(lambda X: 3.0 * X[:, 0] + 1.0, columns=(0,))
    run = _Round(MctsRegressor(reward=reward), task)
    texts = ("C*x1 + C", "C", "1000000000000*x1", "inv(x1 - x1)")
    exact, mean, far, broken = run._evaluate([MaskedTree.from_infix(text) for text in texts])
    assert exact > mean >= far >= broken >= max(low, -np.var(run.data.y) * 1.0001)
    assert exact <= high


def test_a_grammar_of_one_s_own_is_kept_to():
    grammar = Grammar.from_text("A -> C * P\nP -> P * P | x1 | x2 | inv(x1) | inv(x2)")
    task = make_task(lambda X: 2.0 * X[:, 0] / X[:, 1])
    (found,) = MctsRegressor(grammar=grammar).regress(task)
    assert found.errors[0] < 1e-20
    assert {node.name for node in found.tree if node.arity} <= {"mul", "inv"}


RATES = """
Rate -> C * Factor
Factor -> Factor * Factor | Saturation | x1 | x2
Saturation -> x1/(C + x1) | x2/(C + x2)
"""


def test_nothing_outside_a_grammar_of_one_s_own_is_ever_fitted():
    grammar = Grammar.from_text(RATES)
    task = make_task(lambda X: np.sin(3 * X[:, 0]) * X[:, 1], evaluations=3_000)
    tried = []

    def spy(function, trees):
        tried.extend(trees)
        return map(function, trees)

    MctsRegressor(grammar=grammar, max_size=8, map=spy).regress(task)
    language = {MaskedTree(nodes).to_infix(skeleton=True) for nodes in grammar.expressions(11)}
    assert len(tried) > 5
    assert {tree.to_infix(skeleton=True) for tree in tried} <= language


def test_a_run_bounded_by_evaluations_ends_where_nothing_new_is_left_to_fit():
    task = make_task(lambda X: np.sin(9 * X[:, 0]) * X[:, 1], evaluations=10**9)
    (found,) = MctsRegressor(grammar=Grammar.from_text(RATES), max_size=12).regress(task)
    assert found.errors[0] > 1e-3


def test_a_small_language_of_operators_ends_as_well():
    task = make_task(lambda X: np.sin(9 * X[:, 0]) * X[:, 1], evaluations=10**9)
    found = MctsRegressor(max_size=2, climb_size=0).regress(replace(task, function_set=("add", "const")))
    assert found


def test_frozen_functions_of_a_slot_outlive_a_climb():
    frozen = MaskedTree.from_infix("C*x1 + 0.5*sin(C)").with_mask([0, 0, 1, 0, 0, 0, 0, 1])
    task = make_task(lambda X: np.exp(X[:, 1]) * X[:, 0] + np.log(X[:, 1]), [frozen], (1,), evaluations=60_000)
    tried = []

    def spy(function, trees):
        tried.extend(trees)
        return map(function, trees)

    MctsRegressor(map=spy).regress(task)
    assert len(tried) > 1_000
    for tree in tried:
        kept = [node for node in tree if node.name == "sin" and not is_mutable(node)]
        assert len(kept) == 1


def test_a_grammar_with_long_expressions_is_searched_at_several_slots():
    grammar = Grammar.from_text("A -> C*x2/(C + C*x2*x2)")
    forms = [MaskedTree.from_infix("C*x1 + C*x1*x1 + C").with_mask([0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1])]
    found = MctsRegressor(grammar=grammar).regress(make_task(lambda X: X[:, 0] * X[:, 1], forms, (1,)))
    assert found


def test_a_variable_that_the_problem_has_not_is_refused():
    with pytest.raises(GrammarError, match="names x7, the problem has 2 variables"):
        MctsRegressor(grammar=Grammar.from_text("A -> x1 | x7")).regress(make_task(lambda X: X[:, 0]))


def test_cheap_effort_is_cheap():
    task = make_task(lambda X: np.sin(9 * X[:, 0]) * X[:, 1], evaluations=10**9)
    MctsRegressor(climb=100).regress(replace(task, effort="cheap"))
    assert 0 < task.budget.evaluations < 200_000


def test_a_law_outside_the_grammar_ends_when_everything_was_tried():
    grammar = Grammar.from_text("A -> C * x1 | C + x1 | x2")
    task = make_task(lambda X: np.sin(X[:, 0]) * X[:, 1])
    (found,) = MctsRegressor(grammar=grammar, climb=0).regress(task)
    assert task.budget.used_up() is None
    assert found.errors[0] > 1e-3


def test_the_clock_is_looked_at_within_a_batch_of_slow_fits():
    task = make_task(lambda X: np.sin(9.0 * X[:, 0]) * X[:, 1])
    task.budget.limits |= {"seconds": 0.5, "evaluations": None}
    MctsRegressor(optimizer="dual_annealing", max_iterations=500).regress(task)
    assert task.budget.spent["seconds"] < 1.5


# --- the same result, everywhere ----------------------------------------------------------


def outcome(**options):
    task = make_task(lambda X: X[:, 0] * X[:, 1] + np.sin(X[:, 0]), seed=4, evaluations=6_000)
    (found,) = MctsRegressor(**options).regress(task)
    return found.tree.to_infix(), found.errors.tolist(), task.budget.evaluations


def test_the_number_of_workers_does_not_matter():
    serial = outcome()
    with ThreadPoolExecutor(3) as pool:
        assert outcome(map=pool.map) == serial
    with get_context("spawn").Pool(2) as pool:
        assert outcome(map=pool.map) == serial


PROGRAM = """
from deap_vsr import discover
for grammar in (None, "coefficients"):
    result = discover("trigonometric/inv/2-1-1/prog_0", "vsr-mcts", seed=3, max_evaluations=4000, grammar=grammar)
    print(result.expression, result.evaluations, result.oracle_queries)
"""


def test_the_hash_seed_does_not_matter():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4294967295")
    }
    assert len(outputs) == 1
    assert "x1" in outputs.pop()


class KilledError(Exception):
    """The end of a process, as far as a run can tell."""


@pytest.mark.parametrize("method", ["mcts", "vsr-mcts"])
def test_a_run_that_is_killed_and_resumed_ends_as_an_uninterrupted_one(method, monkeypatch, tmp_path):
    save, left = Checkpoint.save, [0]

    def counted(self, state):
        self.every, self._next = 0.0, 0.0
        save(self, state)
        left[0] -= 1
        if left[0] == 0:
            raise KilledError

    monkeypatch.setattr(Checkpoint, "save", counted)

    def run(name):
        return discover(
            "trigonometric/sincosinv/3-2-2/prog_1",
            method,
            max_evaluations=60_000,
            checkpoint=tmp_path / name,
            resume=True,
        )

    whole = run("whole")
    rng, killed, result = random.Random(5), 0, None
    while result is None:
        left[0] = rng.choice([2, 3, 5])
        try:
            result = run("killed")
        except KilledError:
            killed += 1
    assert killed >= 3
    assert (result.expression, result.evaluations, result.oracle_queries) == (
        whole.expression,
        whole.evaluations,
        whole.oracle_queries,
    )


# --- discover -----------------------------------------------------------------------------


def test_the_gas_law_is_found_along_boyle_gay_lussac_and_avogadro():
    result = discover(LAW, "vsr-mcts", schedule="x3,x2,x1", max_evaluations=300_000)
    assert result.verdict.recovered
    assert [len(record.tree.slots) for record in result.rounds[-3:]] == [1, 1, 0]
    assert result.settings["grammar"] is None
    assert result.settings["coefficients"] is False
    json.dumps(result.to_json())


@pytest.mark.parametrize("method", ["mcts", "vsr-mcts"])
def test_horizontal_and_vertical_search_find_a_small_law(method):
    result = discover("feynman-unit/I.12.1", method, max_evaluations=300_000)
    assert result.verdict.recovered
    assert len(result.schedule) == (1 if method == "mcts" else 2)


def test_slotwise_expansion_takes_this_regressor_too():
    result = discover(LAW, "vsr-mcts", expansion="slotwise", max_evaluations=300_000)
    assert result.verdict.recovered
    assert any(record.tables for record in result.rounds)


def test_the_grammar_is_shown_in_results(tmp_path):
    rules = tmp_path / "powers.txt"
    rules.write_text("A -> C * P\nP -> P * P | V | inv(V)\nV -> x1 | x2 | x3\n")
    result = discover(LAW, "mcts", grammar=rules, max_evaluations=100_000)
    assert result.verdict.recovered
    shown = result.to_json()["settings"]["grammar"]
    assert shown["name"] == "powers"
    assert shown["rules"].startswith("A -> C*P\n")
    named = discover(LAW, "vsr-mcts", grammar="coefficients", max_evaluations=2_000)
    assert named.settings["coefficients"] is True


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "vsr-gp", "grammar": "coefficients"}, VsrError, "has no grammar; vsr-mcts and mcts have"),
        ({"method": "mcts", "grammar": "no/such/file"}, GrammarError, "cannot read the grammar"),
        ({"method": "mcts", "schedule": "numeric"}, VsrError, "frees all variables at once"),
        ({"method": "mcts", "expansion": "joint"}, VsrError, "no expansion"),
        ({"method": "vsr-mcts", "grammar": Grammar.from_text("A -> x1*x2")}, GrammarError, "no expression of A in x1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        discover(LAW, **options, max_evaluations=1_000)


def test_the_preset_is_the_published_search():
    result = discover(LAW, "vsr-mcts", preset="paper", max_evaluations=2_000)
    assert result.settings["climb"] == 0
    assert result.settings["reward"] == "neg_mse"
    assert result.settings["optimizer"] == "BFGS"
    assert replace(MctsRegressor(), climb=0).settings()["n_sim"] == 10
