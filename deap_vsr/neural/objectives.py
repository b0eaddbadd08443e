"""What a policy is trained for: losses, baselines, and which samples count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deap_vsr.tree.operators import Array, Flags

#: risk: the best share of a batch, against its worst (DSR). vanilla: the whole batch, against a moving average (VPG).
#: queue: imitation of the best formulas so far (PQT).
OBJECTIVES = ("risk", "vanilla", "queue")


def reward_of(errors: Array) -> Array:
    """Return 1/(1 + NRMSE) for normalised squared errors (n,); 0 for what is not finite."""
    bounded = np.where(np.isfinite(errors), errors, np.inf)
    return np.asarray(1.0 / (1.0 + np.sqrt(bounded)))


def quantile(rewards: Array, epsilon: float) -> float:
    """Return the reward that the best share `epsilon` of a batch has at least: one of the batch."""
    return float(np.quantile(rewards, 1.0 - epsilon, method="higher"))


def kept(rewards: Array, epsilon: float | None) -> Flags:
    """Return which samples count: all, or the best share; ties at its edge are kept."""
    if epsilon is None:
        return np.ones(len(rewards), np.bool_)
    return rewards >= quantile(rewards, epsilon)


@dataclass
class Average:
    """A moving average that begins at 0: each new value counts for `weight` of it."""

    weight: float = 0.5
    value: float = 0.0

    def update(self, value: float) -> float:
        """Take a new value into account, and return the average."""
        self.value = self.weight * value + (1.0 - self.weight) * self.value
        return self.value


def gradient_loss(rewards: Array, baseline: float, neglogp: Tensor) -> Tensor:
    """Return what policy gradient minimises: mean of (R - b) * -log p over the samples that count."""
    advantage = torch.from_numpy(np.clip(rewards, -1e6, 1e6) - baseline).to(neglogp.dtype)
    return (advantage * neglogp).mean()


def queue_loss(neglogp: Tensor, weight: float) -> Tensor:
    """Return what imitation minimises: -log p of formulas drawn from the queue."""
    return weight * neglogp.mean()


def entropy_loss(entropy: Tensor, weight: float) -> Tensor:
    """Return the price of being sure: it keeps a policy exploring."""
    return -weight * entropy.mean()
