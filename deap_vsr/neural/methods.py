"""The paper's four baselines by name: our numbers, and the published ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deap_vsr.errors import VsrError
from deap_vsr.neural.meld import Meld
from deap_vsr.neural.priors import Rules
from deap_vsr.neural.regressor import NeuralRegressor

#: Each by what tells it from the others.
BASELINES: dict[str, NeuralRegressor] = {
    "dsr": NeuralRegressor(objective="risk"),
    "pqt": NeuralRegressor(objective="queue"),
    "vpg": NeuralRegressor(objective="vanilla", epsilon=None),
    "gpmeld": NeuralRegressor(objective="queue", meld=Meld(generations=20)),
}

#: The paper's table has batch, epsilon, generations and hall; the authors' public files the rest, and 150,000 samples
#: for the trigonometric sets. Duplicates count, and there is one policy a round. Their VPG learns from the best 2 % as
#: well, and their GPMeld with the loss of DSR.
_PAPER: dict[str, Any] = {
    "batch": 1024,
    "epsilon": 0.02,
    "distinct": False,
    "clip": None,
    "patience": None,
    "shorten": False,
    "learning_rate": 0.0025,
    "entropy": 0.03,
    "gamma": 0.7,
    "max_samples": 150_000,
    "rules": Rules(min_length=4, max_length=256, max_constants=10, constants_each=None, uniform_arity=False),
}
_PAPER_MELD: dict[str, Any] = {"objective": "risk", "meld": Meld(generations=60, hall=25)}


def baseline(name: str, paper: bool, how: dict[str, Any], optimizer: str | None, grammar: object) -> NeuralRegressor:
    """Return one of the baselines.

    Parameters
    ----------
    paper : whether its numbers are the published ones; `how` says how constants are fitted then
    optimizer : how constants are fitted, where it is not its own way
    grammar : None, or "coefficients" for leaves C*x, C*f(x)
    """
    regressor = BASELINES[name]
    if grammar not in (None, "coefficients"):
        raise VsrError(f"method {name} writes tokens, not a grammar of your own; it knows grammar coefficients")
    if paper:
        regressor = replace(regressor, **_PAPER, **how, **(_PAPER_MELD if regressor.meld.generations else {}))
    if optimizer is not None:
        regressor = replace(regressor, optimizer=optimizer)
    return replace(regressor, coefficients=grammar is not None)
