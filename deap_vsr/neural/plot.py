"""Pictures of a training run; needs matplotlib (``pip install deap-vsr[plot]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deap_vsr.neural.training import QUANTILES, Iteration
from deap_vsr.plot import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_training(iterations: Sequence[Iteration]) -> Figure:
    """Draw what ``NeuralRegressor(watch=iterations.append)`` has told: rewards, entropy, best so far, lengths."""
    figure = figure_of(11.0, 3.6)
    left, middle, right = figure.subplots(1, 3)
    samples = [news.samples for news in iterations]
    for i, share in enumerate(QUANTILES):
        left.plot(samples, [news.rewards[i] for news in iterations], label=f"{share:.0%}", linewidth=1.0)
    left.set_title("rewards of a batch, quantiles")
    left.legend(fontsize=7)
    middle.plot(samples, [news.entropy for news in iterations], label="entropy of what is learnt from")
    middle.plot(samples, [news.length for news in iterations], label="mean length")
    middle.set_title("entropy and length")
    middle.legend(fontsize=7)
    right.semilogy(samples, [max(news.error, 1e-32) for news in iterations])
    right.set_title("normalised error, best so far")
    for axis in (left, middle, right):
        axis.set_xlabel("formulas written")
    return figure
