"""Whether GP's memory grows with its generations: one long round on noisy data, which no formula ever fits.

Run with ``python benchmarks/memory.py [--generations N] [--offspring N]``. Growth is counted from the first tenth on,
by when everything that is made once has been made.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from deap_vsr import MaskedTree
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.testing import make_task


def resident_memory() -> float:
    """Return the memory that this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(generations: int = 10_000, population: int = 50, offspring: int = 50, rows: int = 10) -> None:
    noise = np.random.default_rng(1)
    task = make_task(lambda X: np.sin(3.0 * X[:, 0]) * X[:, 1] + noise.normal(0.0, 0.3, len(X)), evaluations=10**15)
    each = max(generations // rows, 1)
    told, held = 0, [resident_memory()]
    begun = time.perf_counter()
    print(f"{'generation':>10} {'MB':>8} {'seconds':>8} {'evaluations':>12}  best error\n{0:>10} {held[0]:8.1f}")

    def tell(error: float, tree: MaskedTree, state: Callable[[], dict[str, Any]]) -> None:
        nonlocal told
        told += 1
        if told % each == 0:
            held.append(resident_memory())
            seconds = time.perf_counter() - begun
            print(f"{told:10} {held[-1]:8.1f} {seconds:8.1f} {task.budget.evaluations:12}  {error:.3g}", flush=True)

    # The generation after which a round ends is not told.
    regressor = GpRegressor(population=population, offspring=offspring, generations=generations)
    regressor.regress(replace(task, target=0.0, tell=tell))
    print(f"growth from generation {each} to {told}: {100.0 * (held[-1] / held[1] - 1.0):+.1f} %")


if __name__ == "__main__":
    typer.run(main)
