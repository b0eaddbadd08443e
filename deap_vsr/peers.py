"""Other people's methods beside ours: gplearn, pyoperon and PySR, one small adapter each.

Each gets the oracle's data as a sample of points drawn from the domains, the same limits and the same judge. PySR's has
never been run with PySR itself, as Julia could not be had: it is tested with a stand-in. They
are optional: ``pip install deap-vsr[peers]``, or the packages one by one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from deap_vsr.errors import VsrError
from deap_vsr.lab.lab import Lab
from deap_vsr.search.records import Found
from deap_vsr.tree import Constant, MaskedTree, Node, node_from_name, variable
from deap_vsr.tree.operators import Array

#: Seconds of a run that has a limit on neither seconds nor evaluations: it would go on for ever.
DEFAULT_SECONDS = 60.0
#: Points of the sample where no limit on queries is given, and the most that are drawn.
SAMPLE_POINTS, MAX_POINTS = 1_000, 10_000
#: Normalised error at which a method may stop, where it can be told.
TARGET = 1e-14
#: Normalised error on the sample at which a formula is called found.
EXACT = 1e-12


@dataclass(frozen=True)
class Sample:
    """What a peer is given: the data, the operators allowed, and the limits."""

    X: Array
    y: Array
    function_set: tuple[str, ...]
    seed: int
    time_limit: float | None
    max_evaluations: int | None

    @property
    def enough(self) -> float:
        """The mean squared error at which a method may stop."""
        return TARGET * float(np.var(self.y))


@dataclass(frozen=True)
class Peer:
    """A method of another package: `fit` returns the formula and the number of evaluations."""

    package: str
    fit: Callable[[Sample], tuple[MaskedTree, int]]
    needs: str = ""
    """A program that has to be there as well."""

    def check(self) -> None:
        """Raise VsrError if the package is not installed."""
        if find_spec(self.package) is None:
            raise VsrError(
                f"method {self.package} needs the package {self.package}: pip install {self.package}, "
                "or deap-vsr[peers] for all of them"
            )
        if self.needs and shutil.which(self.needs) is None:
            raise VsrError(f"method {self.package} needs {self.needs}, which is not on this machine")

    def __call__(self, lab: Lab) -> tuple[Found, dict[str, Any]]:
        """Draw a sample, and let the package find a formula; returns it, and the numbers that were used."""
        self.check()
        limits, seed = lab.budget.limits, int(lab.rng.integers(2**31))
        n_points = int(min(SAMPLE_POINTS if limits["queries"] is None else limits["queries"], MAX_POINTS))
        X = lab.draw(n_points)
        y = lab.ask(X)
        good = np.isfinite(y)
        if not good.any():
            raise VsrError(f"none of {n_points} points has a finite y")
        evaluations = None if limits["evaluations"] is None else int(limits["evaluations"])
        seconds = DEFAULT_SECONDS if limits["seconds"] is None and evaluations is None else limits["seconds"]
        sample = Sample(X[good], y[good], lab.function_set, seed, seconds, evaluations)
        tree, spent = self.fit(sample)
        lab.budget.count(spent)
        with np.errstate(all="ignore"):
            error = float(np.mean((tree.evaluate(sample.X) - sample.y) ** 2) / (np.var(sample.y) or 1.0))
        late = sample.time_limit is not None and (
            evaluations is None or lab.budget.spent["seconds"] >= sample.time_limit
        )
        stopped_by = "found" if error <= EXACT else "seconds" if late else "evaluations"
        used = {"package": self.package, "version": version(self.package), "points": int(good.sum())}
        return Found(tree, [(error, tree)], [], stopped_by, 0.0), used


# --- gplearn ------------------------------------------------------------------------------

_GPLEARN_POPULATION = 500
_GPLEARN = ("add", "sub", "mul", "div", "sqrt", "log", "abs", "neg", "inv", "max", "min", "sin", "cos", "tan")


def _fit_gplearn(sample: Sample) -> tuple[MaskedTree, int]:
    """Fit generation by generation, as gplearn itself knows no limit in seconds or evaluations."""
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    functions: list[Any] = [name for name in sample.function_set if name in _GPLEARN]
    if "n2" in sample.function_set:
        functions.append(make_function(function=np.square, name="n2", arity=1))
    if "exp" in sample.function_set:  # gplearn wants functions that are finite everywhere
        functions.append(make_function(function=lambda x: np.exp(np.clip(x, -700, 700)), name="exp", arity=1))
    population = min(_GPLEARN_POPULATION, sample.max_evaluations or _GPLEARN_POPULATION)
    most = (sample.max_evaluations or 10**9) // population
    model = SymbolicRegressor(
        population_size=max(population, 2),
        generations=1,
        tournament_size=min(20, max(population, 2)),
        function_set=functions,
        metric="mse",
        stopping_criteria=sample.enough,
        const_range=(-1.0, 1.0) if "const" in sample.function_set else None,
        warm_start=True,
        low_memory=True,
        random_state=sample.seed,
    )
    begun = time.perf_counter()
    for generation in range(1, max(most, 1) + 1):
        model.set_params(generations=generation)
        with np.errstate(all="ignore"):
            model.fit(sample.X, sample.y)
        spent = time.perf_counter() - begun
        # The next generation takes about as long as those before.
        late = sample.time_limit is not None and spent * (generation + 1) / generation > sample.time_limit
        if late or model.run_details_["best_fitness"][-1] <= sample.enough:
            break
    return MaskedTree(_gplearn_nodes(model._program.program)).checked(), generation * population


def _gplearn_nodes(program: list[Any]) -> Iterator[Node]:
    for item in program:
        if isinstance(item, int):
            yield variable(item + 1)
        elif isinstance(item, float):
            yield Constant(float(item), fitted=False)
        else:
            yield node_from_name(item.name)
            if item.name in ("sqrt", "log"):  # gplearn takes them of magnitudes
                yield node_from_name("abs")


# --- pyoperon -----------------------------------------------------------------------------

#: Operon's names of our operators, where they differ; it has no inv, and divides instead.
_OPERON = {"n2": "square", "inv": "div"}
_OPERON_SAME = ("add", "sub", "mul", "div", "pow", "abs", "cos", "exp", "log", "sin", "sqrt", "tan", "tanh")


def _fit_operon(sample: Sample) -> tuple[MaskedTree, int]:
    from pyoperon.sklearn import SymbolicRegressor

    symbols = [_OPERON.get(name, name) for name in sample.function_set if name in (*_OPERON, *_OPERON_SAME)]
    symbols += ["variable"] + (["constant"] if "const" in sample.function_set else [])
    model = SymbolicRegressor(
        allowed_symbols=",".join(dict.fromkeys(symbols)),
        optimizer_iterations=5,
        generations=10**6,
        max_evaluations=sample.max_evaluations or 10**9,
        max_time=None if sample.time_limit is None else max(1, int(sample.time_limit)),
        epsilon=TARGET,
        n_threads=1,
        random_state=sample.seed,
    )
    model.fit(sample.X, sample.y)
    names = [f"x{column + 1}" for column in range(sample.X.shape[1])]
    text = model.get_model_string(model.model_, 17, names).replace("^", "**")
    counts = model.stats_
    return MaskedTree.from_infix(text), int(counts["residual_evaluations"] + counts["jacobian_evaluations"])


# --- PySR ---------------------------------------------------------------------------------

_PYSR_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}
_PYSR_UNARY = {"n2": "square", "n3": "cube", "inv": "inv(x) = 1/x"}
_PYSR_SAME = ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "abs")


def _fit_pysr(sample: Sample) -> tuple[MaskedTree, int]:
    from pysr import PySRRegressor

    model = PySRRegressor(
        binary_operators=[_PYSR_BINARY[name] for name in sample.function_set if name in _PYSR_BINARY],
        unary_operators=[
            _PYSR_UNARY.get(name, name) for name in sample.function_set if name in (*_PYSR_UNARY, *_PYSR_SAME)
        ],
        extra_sympy_mappings={"inv": lambda x: 1 / x},
        niterations=10**6,
        max_evals=sample.max_evaluations,
        timeout_in_seconds=sample.time_limit,
        early_stop_condition=sample.enough,
        parallelism="serial",
        deterministic=True,
        random_state=sample.seed,
        progress=False,
        verbosity=0,
        temp_equation_file=True,
    )
    names = [f"x{column + 1}" for column in range(sample.X.shape[1])]
    model.fit(sample.X, sample.y, variable_names=names)
    # Evaluations are not told: the limit is given where there was one.
    return MaskedTree.from_sympy(model.sympy()), sample.max_evaluations or 0


#: The packages by name.
PEERS = {
    "gplearn": Peer("gplearn", _fit_gplearn),
    "pyoperon": Peer("pyoperon", _fit_operon),
    "pysr": Peer("pysr", _fit_pysr, needs="julia"),
}
