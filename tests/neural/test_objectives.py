"""Losses, which samples count, the queue, and GP between writing and learning."""

import numpy as np
import pytest
import torch

from deap_vsr import MaskedTree
from deap_vsr.neural.adam import Adam
from deap_vsr.neural.meld import Meld, melded, toolbox_of
from deap_vsr.neural.objectives import (
    Average,
    entropy_loss,
    gradient_loss,
    kept,
    quantile,
    queue_loss,
    reward_of,
)
from deap_vsr.neural.policy import Policy, Writer, score
from deap_vsr.neural.priors import Rules
from deap_vsr.neural.queue import Queue
from deap_vsr.neural.regressor import NeuralRegressor
from deap_vsr.neural.tokens import Form, Library
from deap_vsr.neural.training import Training
from deap_vsr.testing import make_task
from deap_vsr.tree import is_mutable


def test_ties_at_the_quantile_are_all_kept():
    rewards = np.array([0.1, 0.5, 0.5, 0.5, 0.2, 0.9, 0.3, 0.4, 0.0, 0.5])
    assert quantile(rewards, 0.2) == 0.5
    assert kept(rewards, 0.2).sum() == 5
    assert kept(rewards, None).all()


def test_what_is_not_finite_has_no_reward():
    assert reward_of(np.array([0.0, 1.0, np.inf, np.nan])).tolist() == [1.0, 0.5, 0.0, 0.0]


def test_the_moving_average_persists_from_step_to_step():
    average = Average(0.5)
    assert [average.update(1.0) for _ in range(3)] == [0.5, 0.75, 0.875]


REWARDS = np.array([0.9, 0.4, 0.7])
LOSSES = {
    "risk": lambda neglogp, entropy: gradient_loss(REWARDS, 0.4, neglogp) + entropy_loss(entropy, 0.03),
    "vanilla": lambda neglogp, entropy: gradient_loss(REWARDS, 0.61, neglogp) + entropy_loss(entropy, 0.03),
    "queue": lambda neglogp, entropy: queue_loss(neglogp, 200.0) + entropy_loss(entropy, 0.03),
}


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_of_each_loss_is_that_of_finite_differences(name, clip):
    rng = np.random.default_rng(0)
    form = Form.of(MaskedTree.from_infix("x1*C").with_mask([0, 0, 1]))
    writer = Writer(Library.of(("add", "const"), (0,), form.frozen), form, Rules(max_length=5, stay=0.1))
    policy = Policy(len(writer.library), 3, rng, clip, torch.float64)
    for weight in policy.weights.values():
        weight.data += torch.tensor(rng.normal(0.0, 0.5, weight.shape))
    samples = writer.sample(policy, 30, rng)
    samples = samples[np.argsort(-samples.lengths)[:3]]
    assert samples.free.sum() > 3

    def loss():
        return LOSSES[name](*score(policy, samples, 0.7))

    loss().backward()
    for weight in policy.weights.values():
        at = tuple(rng.integers(size) for size in weight.shape)
        exact, before = weight.grad[at].item(), weight.data[at].item()
        values = []
        for step in (1e-5, -1e-5):
            weight.data[at] = before + step
            values.append(loss().item())
        weight.data[at] = before
        assert exact == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-8)


def test_adam_takes_the_steps_of_that_of_torch():
    rng = np.random.default_rng(0)
    start = {"a": rng.normal(size=(3, 2)), "b": rng.normal(size=4)}
    ours, theirs = ({name: torch.tensor(value, requires_grad=True) for name, value in start.items()} for _ in range(2))
    reference = torch.optim.Adam(list(theirs.values()), lr=0.1)
    own = Adam(ours, 0.1)

    def loss(weights):
        return (weights["a"] ** 2).sum() * (1.0 + weights["b"][0] ** 2) + torch.sin(weights["b"]).sum()

    for _ in range(5):
        own.step(loss(ours))
        reference.zero_grad()
        loss(theirs).backward()
        reference.step()
        for name in start:
            assert ours[name].detach().numpy() == pytest.approx(theirs[name].detach().numpy(), rel=1e-12)


def test_forced_tokens_have_no_part_in_the_log_probability():
    rng = np.random.default_rng(0)
    tree = MaskedTree.from_infix("x1*C*x2").with_mask([0, 0, 0, 1, 1])
    form = Form.of(tree)
    writer = Writer(Library.of(("const",), (1,), form.frozen), form, Rules(stay=0.25))
    # One slot stays; that in the other one x2 is written is no choice then.
    neglogp, _ = score(Policy(len(writer.library), 4, rng), writer.replay([writer.library.tokens(tree)]), 0.7)
    assert neglogp.item() == pytest.approx(-np.log(0.25), rel=1e-5)


def test_a_formula_is_learnt_from_once():
    task = make_task(lambda X: X[:, 0], evaluations=1_000)
    scorer = Training(NeuralRegressor(), task).scorer
    trees = [MaskedTree.from_infix(text) for text in ("sin(x1)", "x1*x2", "x2*x1")]
    assert scorer.score(trees).first_met().tolist() == [0, 1]
    trees.insert(1, MaskedTree.from_infix("cos(x1)"))
    assert scorer.score(trees).first_met().tolist() == [1]
    assert scorer.score(trees).first_met().tolist() == [0, 1, 2]  # where nothing is new, from all of them


def test_logits_stay_where_they_are_kept():
    rng = np.random.default_rng(0)
    h = torch.tensor(rng.normal(size=(50, 4)), dtype=torch.float32)
    loose, kept = (Policy(6, 4, np.random.default_rng(1), clip) for clip in (None, 3.0))
    for policy in (loose, kept):
        policy.weights["output"].data *= 100.0
    assert loose.logits(h).abs().max() > 30.0
    assert kept.logits(h).abs().max() <= 3.0
    assert torch.equal(loose.logits(h).sign(), kept.logits(h).sign())


def test_the_queue_holds_the_best_distinct_formulas():
    queue = Queue(3)
    for error, key in [(0.5, 1), (0.1, 2), (0.1, 2), (0.3, 3), (0.2, 4), (np.inf, 5), (0.9, 6)]:
        queue.push(error, key, [key])
    assert [entry[1] for entry in queue.entries] == [2, 4, 3]
    drawn = queue.draw(200, np.random.default_rng(0))
    assert {sequence[0] for sequence in drawn} == {2, 3, 4}


# --- GPMeld -------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_meld_returns_legal_formulas_that_the_policy_did_not_write(frozen):
    form = [MaskedTree.from_infix("x1*C + 0.25").with_mask([0, 0, 0, 1, 0])] if frozen else []
    columns = (1,) if frozen else (0, 1)
    task = make_task(lambda X: np.sin(5.0 * X[:, 0]) * X[:, 1], form, columns, evaluations=100_000)
    run = Training(NeuralRegressor(batch=60, meld=Meld(3, 20)), task)
    samples = run.writer.sample(run.policy, 60, run.rng)
    trees = run._trees(samples)
    batch = run.scorer.score(trees)
    found = melded(trees, batch, toolbox_of(task, Meld(3)), Meld(3, 20), run.writer, run.scorer, 5)
    keys = found.scored.keys
    assert 5 < len(keys) <= 20
    assert not set(keys) & set(batch.keys)
    assert len(set(keys)) == len(keys)
    assert found.scored.new.all()
    assert found.samples.legal.all()
    again = [run.writer.form.tree(found.samples.sequence(row), run.writer.library) for row in range(len(keys))]
    assert run.scorer.score(again).keys == keys
    if frozen:
        assert all([n.name for n in tree if not is_mutable(n)] == ["add", "mul", "x1", "0.25"] for tree in again)


def test_meld_finds_better_formulas_than_it_was_given():
    task = make_task(lambda X: X[:, 0] * X[:, 1] * X[:, 1] + np.sin(X[:, 0]), evaluations=100_000)
    run = Training(NeuralRegressor(batch=60, meld=Meld(5)), task)
    trees = run._trees(run.writer.sample(run.policy, 60, run.rng))
    batch = run.scorer.score(trees)
    found = melded(trees, batch, run.toolbox, Meld(5), run.writer, run.scorer, 5)
    assert found.scored.errors.min() < batch.errors.min()


def test_what_gp_meets_again_is_not_new():
    task = make_task(lambda X: np.sin(5.0 * X[:, 0]) * X[:, 1], evaluations=100_000)
    run = Training(NeuralRegressor(batch=60, meld=Meld(3, 20)), task)
    trees = run._trees(run.writer.sample(run.policy, 60, run.rng))
    batch = run.scorer.score(trees)
    for new in (True, False):
        found = melded(trees, batch, run.toolbox, Meld(3, 20), run.writer, run.scorer, 5)
        assert set(found.scored.new) == {new}
