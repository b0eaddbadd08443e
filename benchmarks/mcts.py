"""What MCTS costs: peak memory at equal roll-outs, and the share of time outside constant fitting.

Run with ``python benchmarks/mcts.py [PROBLEM]``; every measurement has a process of its own.
"""

import subprocess
import sys
import time
from typing import Annotated

import typer

import cfg_mcts.regressor as regressor
import cfg_mcts.search as search
from deap_vsr import discover
from deap_vsr.memory import forget_peak, peak_memory

METHODS = ("mcts", "vsr-mcts")


def measure(problem: str, method: str, grammar: str, rollouts: int) -> str:
    """Run a method for so many roll-outs and return a line of what it cost."""
    discover("feynman-unit/I.39.22", method, max_evaluations=3_000, grammar=grammar or None)  # warm
    count, fitting = [0], [0.0]
    backpropagate, fit = search.backpropagate, regressor.fit

    def counted(tree: search.SearchTree, path: tuple[int, ...], rewards: list[float]) -> None:
        backpropagate(tree, path, rewards)
        count[0] += len(rewards)
        if count[0] >= rollouts:
            raise KeyboardInterrupt  # as if somebody had stopped it

    def timed(*given: object, **options: object) -> object:
        begun = time.perf_counter()
        outcome = fit(*given, **options)
        fitting[0] += time.perf_counter() - begun
        return outcome

    search.backpropagate, regressor.fit = counted, timed
    forget_peak()
    before = peak_memory()
    result = discover(problem, method, max_evaluations=10**9, grammar=grammar or None)
    share = 1.0 - fitting[0] / result.seconds
    return (
        f"{method:9} {grammar or 'operators':12} {count[0]} roll-outs, {result.seconds:.1f} s, {share:.0%} of it "
        f"outside fitting, peak {peak_memory() - before:.1f} MB, stopped by {result.stopped_by}"
    )


def main(
    problem: Annotated[str, typer.Argument()] = "trigonometric/sincosinv/6-6-10/prog_0",
    rollouts: int = 40_000,
    only: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure both methods, with and without coefficient leaves."""
    if only:
        method, _, grammar = only.partition("+")
        print(measure(problem, method, grammar, rollouts))
        return
    print(problem)
    for variant in (f"{method}{grammar}" for grammar in ("", "+coefficients") for method in METHODS):
        subprocess.run([sys.executable, __file__, problem, "--rollouts", str(rollouts), "--only", variant], check=True)


if __name__ == "__main__":
    typer.run(main)
