"""Adam (Kingma and Ba 2015, algorithm 1).

PyTorch's own brings its compiler with it when it is made: 2,000 modules, which took half the time of a run of 20 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import torch
from torch import Tensor

from deap_vsr.neural.policy import as_lists, taken_over
from deap_vsr.search.schema import Count

#: How much of the moments is kept, and what keeps the step finite; as published.
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8


class AdamState(TypedDict):
    """An :class:`Adam` in a checkpoint."""

    steps: Count
    first: dict[str, list[Any]]
    second: dict[str, list[Any]]


class Adam:
    """Steps along gradients, each weight's by its own scale."""

    def __init__(self, weights: Mapping[str, Tensor], rate: float) -> None:
        self.weights, self.rate, self.steps = weights, rate, 0
        self.first = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.second = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def step(self, loss: Tensor) -> None:
        """Change the weights so that a loss becomes less."""
        gradients = torch.autograd.grad(loss, list(self.weights.values()), allow_unused=True)
        self.steps += 1
        size = self.rate / (1.0 - FIRST**self.steps)
        root = (1.0 - SECOND**self.steps) ** 0.5
        with torch.no_grad():
            for (name, weight), gradient in zip(self.weights.items(), gradients, strict=True):
                if gradient is None:
                    continue
                self.first[name].mul_(FIRST).add_(gradient, alpha=1.0 - FIRST)
                self.second[name].mul_(SECOND).addcmul_(gradient, gradient, value=1.0 - SECOND)
                weight.addcdiv_(self.first[name], self.second[name].sqrt() / root + TINY, value=-size)

    def state(self) -> dict[str, Any]:
        """Return its moments in JSON values."""
        return {"steps": self.steps, "first": as_lists(self.first), "second": as_lists(self.second)}

    def restore(self, state: AdamState) -> None:
        """Take over what :meth:`state` returned."""
        self.steps = state["steps"]
        taken_over(self.first, state["first"])
        taken_over(self.second, state["second"])
