"""The training loop: write a batch, fit it, learn from its best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from deap_vsr.engine.fitting import Dataset, Fit
from deap_vsr.errors import VsrError
from deap_vsr.files import checked
from deap_vsr.neural.adam import Adam, AdamState
from deap_vsr.neural.meld import melded, toolbox_of
from deap_vsr.neural.objectives import (
    OBJECTIVES,
    Average,
    entropy_loss,
    gradient_loss,
    kept,
    quantile,
    queue_loss,
    reward_of,
)
from deap_vsr.neural.policy import Policy, Samples, Writer, score
from deap_vsr.neural.queue import Queue
from deap_vsr.neural.scoring import Scorer, ScorerState
from deap_vsr.neural.shorten import shorter
from deap_vsr.neural.tokens import Form, Library
from deap_vsr.search.checkpoint import check_trees, data_from, expect, restoring
from deap_vsr.search.contract import Task
from deap_vsr.search.schema import Count
from deap_vsr.tree import MaskedTree, Vocabulary, is_mutable, is_variable
from deap_vsr.tree.operators import Array, Flags
from deap_vsr.tree.simplify import skeleton_key

if TYPE_CHECKING:
    from deap_vsr.neural.regressor import NeuralRegressor

#: Formulas written without a new one after which a policy is done with; as for MCTS.
MAX_STALE = 20_000

#: Batches of a task that only wants what is cheap.
CHEAP = 2

#: Of the rewards of a batch these quantiles are told.
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class Iteration:
    """One iteration of a training run, for pictures.

    Attributes
    ----------
    samples : formulas written so far, those of GP included
    known : distinct ones among them
    error : normalised error of the best
    rewards : quantiles (:data:`QUANTILES`) of the batch
    entropy : mean of what was learnt from
    length : mean number of tokens
    """

    samples: int
    known: int
    error: float
    rewards: tuple[float, ...]
    entropy: float
    length: float


class TrainingState(TypedDict):
    """What a training run keeps in a checkpoint."""

    rng: dict[str, Any]
    scorer: ScorerState
    policy: dict[str, list[Any]]
    adam: AdamState
    queue: list[tuple[float, int, list[Count]]]
    numbers: tuple[float, Count, Count, Count, float, Count]


def with_what_is_open(task: Task) -> Task:
    """Return a task that offers the variables of the sub-trees that are written anew as well.

    They are there where a round before came to no form that holds: the next one has to find their part, too.
    """
    grown = task.candidates[0] if task.candidates else None
    if grown is None or all(grown.mask):
        return task
    column = Vocabulary().column
    lost = [column(node) for node in grown if is_mutable(node) and is_variable(node)]
    return replace(task, columns=tuple(sorted({*task.columns, *(i for i in lost if i is not None)})))


class Training:
    """One task: its data, its policy, and the best so far.

    ::

        evaluate the candidates
        until solved, or the budget is used up:
            write a batch around what is frozen of the first candidate
            fit what has not been met before;  reward = 1/(1 + NRMSE)
            GPMeld: let GP go on from the batch, and add the best that came out
            one step of Adam: the loss of the objective on the samples that count, less their entropy
    """

    def __init__(self, regressor: NeuralRegressor, task: Task) -> None:
        if regressor.objective not in OBJECTIVES:
            raise VsrError(f"objective is {regressor.objective!r}, expected one of {', '.join(OBJECTIVES)}")
        task = with_what_is_open(task)
        self.regressor, self.task = regressor, task
        form = Form.of(task.candidates[0] if task.candidates else None)
        library = Library.of(task.function_set, task.columns, form.frozen, regressor.coefficients)
        self.writer = Writer(library, form, regressor.rules)
        self.toolbox = toolbox_of(task, regressor.meld) if regressor.meld.generations else None
        self.samples = self.stale = self.iterations = 0
        resume = None
        if task.resume is None:
            data = Dataset.of(task.draw(task.rng))
        else:
            with restoring():
                resume = checked(task.resume, TrainingState, "")
                kept = resume["scorer"]["data"]
                data = data_from(kept, task.n_vars, kept["weight"])
        self.rng = np.random.default_rng(int(task.rng.integers(2**63)) if resume is None else 0)
        names = ("optimizer", "gradient", "max_iterations", "n_starts")
        how = {name: getattr(regressor, name) for name in names}
        refused = frozenset(map(skeleton_key, task.refused))
        self.scorer = Scorer(data, task.budget, task.target, how, regressor.map, refused=refused)
        self._begin()
        if resume is not None:
            with restoring():
                self._restore(resume)

    def _begin(self) -> None:
        """Begin with a policy that has learnt nothing."""
        regressor = self.regressor
        self.policy = Policy(len(self.writer.library), regressor.hidden, self.rng, regressor.clip)
        self.adam = Adam(self.policy.weights, regressor.learning_rate)
        self.queue, self.average = Queue(regressor.queue), Average(regressor.average)
        self.reached, self.waited = math.inf, 0

    def go(self) -> list[Fit]:
        """Train until the task is solved, the budget used up, or nothing new is written."""
        if self.task.resume is None:
            self.scorer.score(self.task.candidates)  # what is finished may be the answer
        while not self._over():
            samples = self.writer.sample(self.policy, self.regressor.batch, self.rng)
            trees = self._trees(samples)
            scored = self.scorer.score(trees)
            if scored is None or self.scorer.over:
                break
            self.samples += len(samples)
            if self.toolbox is not None:
                seed = int(self.rng.integers(2**63))
                more = melded(trees, scored, self.toolbox, self.regressor.meld, self.writer, self.scorer, seed)
                self.samples += len(samples) * self.regressor.meld.generations
                if self.scorer.over:
                    break
                if more is not None:
                    samples, scored = Samples.joined([samples, more.samples]), scored + more.scored
            errors = scored.errors
            self.stale = 0 if scored.new.any() else self.stale + len(samples)
            best = int(np.argmin(errors))
            self.queue.push(float(errors[best]), scored.keys[best], samples.sequence(best))
            rows = scored.first_met() if self.regressor.distinct else np.arange(len(samples))
            entropy = self._learn(samples[rows], reward_of(errors[rows]))
            self.iterations += 1
            self.waited = 0 if errors[best] < self.reached else self.waited + len(samples)
            self.reached = min(self.reached, float(errors[best]))
            if self.waited >= (self.regressor.patience or math.inf):
                self._begin()
            self._tell(samples, errors, entropy)
        if self.regressor.shorten:
            self._shorten()
        return self.scorer.candidates

    def _shorten(self) -> None:
        """Take operators out of what solves the task, as long as it does.

        The first formula that does is seldom short, and its constants hide one another: what they are of the next
        variable is then no simple formula.
        """
        best = None
        while self.scorer.solved and self.scorer.best is not best:
            best = self.scorer.best
            assert best is not None
            trees = list(filter(self.writer.library.knows, shorter(best.tree)))
            if not trees:
                break
            legal = self.writer.replay([self.writer.library.tokens(tree) for tree in trees]).legal
            if self.scorer.score([tree for tree, keeps in zip(trees, legal, strict=True) if keeps]) is None:
                break

    def _over(self) -> bool:
        most = self.regressor.max_samples
        enough = (most is not None and self.samples >= most) or self.stale >= MAX_STALE
        cheap = self.task.effort == "cheap" and self.iterations >= CHEAP
        return enough or cheap or self.scorer.over

    def _trees(self, samples: Samples) -> list[MaskedTree]:
        """Return the formula of each sample; those that are written alike are one object."""
        made: dict[tuple[int, ...], MaskedTree] = {}
        found = []
        for row in range(len(samples)):
            sequence = tuple(samples.sequence(row))
            if sequence not in made:
                made[sequence] = self.writer.form.tree(sequence, self.writer.library)
            found.append(made[sequence])
        return found

    def _learn(self, samples: Samples, rewards: Array) -> float:
        """Take one step of Adam; returns the mean entropy of the samples that count."""
        regressor = self.regressor
        counted: Flags = kept(rewards, regressor.epsilon)
        neglogp, entropy = score(self.policy, samples[counted], regressor.gamma)
        loss = entropy_loss(entropy, regressor.entropy)
        if regressor.objective == "risk":
            edge = quantile(rewards, regressor.epsilon) if regressor.epsilon is not None else float(rewards.min())
            loss = loss + gradient_loss(rewards[counted], edge, neglogp)
        elif regressor.objective == "vanilla":
            average = self.average.update(float(rewards[counted].mean()))
            loss = loss + gradient_loss(rewards[counted], average, neglogp)
        elif len(self.queue):
            drawn = self.writer.replay(self.queue.draw(regressor.queue_draws, self.rng))
            loss = loss + queue_loss(score(self.policy, drawn, regressor.gamma)[0], regressor.queue_weight)
        self.adam.step(loss)
        return float(entropy.detach().mean())

    # --- progress and checkpoints ---

    def _tell(self, samples: Samples, errors: Array, entropy: float) -> None:
        best = self.scorer.best
        if best is None:
            return
        rewards = tuple(float(value) for value in np.quantile(reward_of(errors), QUANTILES))
        length = float(samples.lengths.mean())
        known = len(self.scorer.errors)
        self.regressor.watch(Iteration(self.samples, known, best.error, rewards, entropy, length))
        self.task.tell(best.error, best.trees[0], self._state)

    def _state(self) -> dict[str, Any]:
        return {
            "rng": self.rng.bit_generator.state,
            "scorer": self.scorer.state(),
            "policy": self.policy.state(),
            "adam": self.adam.state(),
            "queue": self.queue.state(),
            "numbers": [self.average.value, self.samples, self.stale, self.iterations, self.reached, self.waited],
        }

    def _restore(self, state: TrainingState) -> None:
        self.rng.bit_generator.state = state["rng"]
        self.scorer.restore(state["scorer"])
        check_trees([outcome.tree for outcome in self.scorer.candidates], self.task.n_vars)
        known = len(self.writer.library)
        expect(all(max(tokens, default=0) < known for *_, tokens in state["queue"]), f"tokens below {known}")
        self.policy.restore(state["policy"])
        self.adam.restore(state["adam"])
        self.queue.restore(state["queue"])
        self.average.value, self.samples, self.stale, self.iterations, self.reached, self.waited = state["numbers"]
