"""DSR, PQT, VPG and GPMeld: recovery of the classic laws, samples per second, and where the time goes.

``python benchmarks/neural.py [dsr,pqt,...] [--laws 1,2,3,4] [--seeds 3] [--samples 200000] [--picture FILE.png]``
"""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import typer

import deap_vsr.neural.policy as policy
import deap_vsr.neural.scoring as scoring
import deap_vsr.neural.training as training
from deap_vsr import EquationOracle, load_equation
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.trials import Trial
from deap_vsr.neural.methods import BASELINES
from deap_vsr.neural.plot import plot_training
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.search.contract import Task

#: As published: so many points, drawn once.
POINTS = 20
SPENT: Counter[str] = Counter()


def timed(module: object, name: str, what: str) -> None:
    function = getattr(module, name)

    def call(*given: object, **options: object) -> object:
        begun = time.perf_counter()
        outcome = function(*given, **options)
        SPENT[what] += time.perf_counter() - begun
        return outcome

    setattr(module, name, call)


def task_of(problem: str, seed: int) -> Task:
    equation = load_equation(problem)
    oracle = EquationOracle(equation)

    def draw(rng: np.random.Generator) -> list[Trial]:
        X = draw_inputs(equation.variables, POINTS, rng)
        return [Trial(X, oracle.evaluate(X))]

    columns = tuple(range(equation.n_vars))
    rng = np.random.default_rng(seed)
    return Task([], draw, equation.function_set, columns, equation.n_vars, Budget(), 1e-12, rng)


def main(
    methods: str = typer.Argument("dsr"),
    laws: str = "1,2,3,4",
    seeds: int = 3,
    samples: int = 200_000,
    picture: Path | None = None,
) -> None:
    """Run methods on Nguyen's laws, and say what came out."""
    timed(policy, "prior_logits", "priors")
    timed(policy.Writer, "sample", "writing")
    timed(training.Training, "_learn", "learning")
    timed(scoring, "fit", "fitting")
    timed(scoring.Scorer, "score", "scoring")
    for name in methods.split(","):
        for law in laws.split(","):
            for seed in range(seeds):
                SPENT.clear()
                told: list[training.Iteration] = []
                regressor = replace(BASELINES[name], max_samples=samples, watch=told.append)
                begun = time.perf_counter()
                best = regressor.regress(task_of(f"classic/Nguyen-{law}", seed))[0]
                seconds = time.perf_counter() - begun
                n = told[-1].samples if told else regressor.batch
                shares = ", ".join(f"{what} {spent / seconds:.0%}" for what, spent in SPENT.items())
                verdict = "solved" if best.errors[0] <= 1e-12 else f"{best.errors[0]:.1e}"
                print(f"{name} Nguyen-{law} seed {seed}: {verdict}, {n} samples, {n / seconds:.0f}/s ({shares})")
                if picture is not None:
                    plot_training(told).savefig(picture, dpi=75)


if __name__ == "__main__":
    typer.run(main)
