"""A trained policy as a regressor of the shared contract: from nothing, or at the slots of a frozen form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from deap_vsr.neural.meld import Meld
from deap_vsr.neural.policy import one_thread
from deap_vsr.neural.priors import Rules
from deap_vsr.neural.scoring import Map
from deap_vsr.neural.training import Iteration, Training
from deap_vsr.search.contract import Candidate, Task


@dataclass(frozen=True)
class NeuralRegressor:
    """A policy that writes formulas and learns from how well they fit.

    DSO has batches of 500 to 1000, a learning rate of 0.0005 or 0.0025 and no new policies, for 2 million samples. With
    200,000 samples that, but for `distinct`, found 1 of 6 runs of x**5 + x**3 + x, x**5 - x**4 + x**3 - x,
    cos(x**2) + x sin(x) (two seeds each); batch, learning rate, entropy and patience here were chosen on those and on
    x**6 + x**4 + x**2 + x.

    Attributes
    ----------
    objective : "risk" (DSR), "vanilla" (VPG) or "queue" (PQT)
    batch : int
        Formulas of an iteration.
    epsilon : float, optional
        The share of a batch that is learnt from; None: all of it.
    distinct : bool
        Whether a formula is learnt from once, when it is first met; otherwise, as published, whenever it is written:
        then short ones that fit fairly well soon are all that is written.
    learning_rate : float
        Of Adam.
    entropy, gamma : float
        Weight of the entropy in the loss, and its discount from token to token.
    hidden : int
        Units of the LSTM.
    clip : float, optional
        Within which the logits stay, C tanh(logits / C); None, as published: wherever they get. Then the soft length is
        soon overruled, and every formula is as long as may be: its tail changes little, and so many fit as well.
    average : float
        Weight of the newest mean in the moving average of "vanilla".
    queue, queue_draws, queue_weight : of "queue"
        How many formulas are remembered, how many of them are imitated in an iteration, weight of that.
    meld : Meld
        GP between writing and learning (GPMeld).
    rules : Rules
        Numbers of the priors.
    coefficients : bool
        Whether C*x and C*f(x) are leaves as well.
    patience : int, optional
        Samples without a better one after which a new policy begins; None: never.
    shorten : bool
        Whether operators are taken out of what solves a task, as long as it does.
    max_samples : int, optional
        Formulas of a round, those of GP included.
    optimizer, gradient, max_iterations, n_starts : how constants are fitted
    map : callable
        Where fits run; results do not depend on it.
    watch : callable
        Called with an :class:`~deap_vsr.neural.training.Iteration` after each.
    """

    objective: str = "risk"
    batch: int = 200
    epsilon: float | None = 0.05
    distinct: bool = True
    learning_rate: float = 0.01
    entropy: float = 0.01
    gamma: float = 0.7
    hidden: int = 32
    clip: float | None = 3.0
    average: float = 0.5
    queue: int = 10
    queue_draws: int = 1
    queue_weight: float = 200.0
    meld: Meld = field(default_factory=Meld)
    rules: Rules = field(default_factory=Rules)
    coefficients: bool = False
    patience: int | None = 20_000
    shorten: bool = True
    max_samples: int | None = None
    optimizer: str = "lm"
    gradient: str = "exact"
    max_iterations: int = 8
    n_starts: int = 0
    map: Map = field(default=map, repr=False, compare=False)
    watch: Callable[[Iteration], None] = field(default=lambda news: None, repr=False, compare=False)

    def settings(self) -> dict[str, Any]:
        """Return its numbers, for results."""
        shown = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("map", "watch")}
        return shown | {"meld": asdict(self.meld), "rules": asdict(self.rules)}

    def regress(self, task: Task) -> list[Candidate]:
        """Write formulas around what is frozen of the task's best candidate; the best that came out, best first."""
        with one_thread():
            leaders = Training(self, task).go()
        return [replace(Candidate.of(outcome), tree=outcome.trees[0]) for outcome in leaders]
