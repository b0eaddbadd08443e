"""The methods by name, and `discover`: find a formula for a problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import deap_vsr
from deap_vsr.engine.fitting import compile_kernels
from deap_vsr.engine.optimizers import NAMES as OPTIMIZERS
from deap_vsr.errors import OutOfQueriesError, VsrError
from deap_vsr.forms.noisy import search_noisy
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.judge.metrics import judge
from deap_vsr.lab.oracle import EquationOracle, Limited, Noise, Oracle, View
from deap_vsr.memory import peak_memory
from deap_vsr.problems.equation import Equation, load_equation
from deap_vsr.result import Result
from deap_vsr.search.checkpoint import Checkpoint
from deap_vsr.search.contract import Budget, Regressor
from deap_vsr.search.freezing import FreezeRule, measure_noise
from deap_vsr.search.noisy_finish import better_in_noise
from deap_vsr.search.noisy_slots import NoisySlotSettings, search_noisy_slots
from deap_vsr.search.records import Outcome, Progress
from deap_vsr.search.slots import SlotSettings, search_slotwise, simplest_first
from deap_vsr.search.vertical import Schedule, Settings, search
from deap_vsr.tree import Constant
from deap_vsr.tree.operators import normalise_function_set

if TYPE_CHECKING:
    from cfg_mcts import Grammar, MctsRegressor

#: The methods there are, and the expansions each has, its own first: our own method, vertical GP and vertical MCTS, and
#: GP and MCTS over all variables at once.
METHODS: dict[str, tuple[str, ...]] = {
    "vsr": ("slotwise",),
    "vsr-gp": ("joint", "slotwise"),
    "gp": (),
    "vsr-mcts": ("joint", "slotwise"),
    "mcts": (),
}

#: The named grammar whose leaves are C*x, C*sin(x), ...
COEFFICIENTS = "coefficients"

#: Evaluations for looking for something shorter than a sum of products that holds in noise.
SECOND_LOOK = 4_000_000

#: The paper's settings; batch size, population, offspring, limits of size, shares of leaves and c are not from it.
_PAPER = Settings(
    n_trials=5, n_points=256, hall_size=50, rule=FreezeRule(error=1e-6, spread=1e-3, raw=True), restart=False
)
#: Roll-outs bring forms with many constants, some of which pass for a smooth law to 13 digits.
_MCTS = Settings(rule=FreezeRule(error=1e-18))
_PAPER_FIT: dict[str, Any] = {"optimizer": "BFGS", "gradient": "finite", "max_iterations": 500, "n_starts": 0}


def discover(
    problem: str | Path | Equation | Oracle,
    method: str = "vsr",
    *,
    expansion: str | None = None,
    schedule: str | Sequence[str] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    max_queries: int | None = None,
    noise: Noise | float = 0.0,
    preset: str | None = None,
    optimizer: str | None = None,
    operators: Sequence[str] | None = None,
    grammar: str | Path | Grammar | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] = lambda news: None,
    tick: Callable[[], None] = lambda: None,
) -> Result:
    """Find a formula.

    Parameters
    ----------
    problem : name or path of an equation file, Equation, or any oracle
    method : "vsr" (slots solved one by one), "vsr-gp", "vsr-mcts" (the paper's), "gp" or "mcts" (all at once)
    expansion : "slotwise" or "joint", for vertical methods: how a round grows the formula
    schedule : "numeric" (x1, x2, ...), "auto", or names in the order in which they are freed
        By default auto for slotwise, numeric for joint expansion.
    time_limit, max_evaluations, max_queries : limits, whichever comes first; without any, 60 s
    noise : of an equation file's oracle
    preset : "paper" for the published settings
    optimizer : how constants are fitted, see :func:`deap_vsr.fit`
    operators : function set, instead of the problem's own
    grammar : of mcts and vsr-mcts: a Grammar, a file of rules (docs/mcts.md), or "coefficients"
        By default the operators of the problem. With "coefficients" leaves are C*x, C*sin(x), ...: it knows the shape
        of sums of terms, so compare it only with methods that know it too.
    checkpoint : a file in which the state of the run is kept, every few seconds
    resume : go on from that file, if there is one
        The result is that of an uninterrupted run, if the run is bounded by counts.
    progress, tick : called in each round, and after every few evaluations

    Returns
    -------
    Result
        With the judge's verdict, if the problem is an equation. Ctrl-C returns the best so far.
    """
    if method not in METHODS:
        raise VsrError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    expansions = METHODS[method]
    if expansion is not None and expansion not in expansions:
        known = " or ".join(expansions) or "none"
        raise VsrError(f"method {method} has no expansion {expansion!r}; it has {known}")
    expansion = expansion or (expansions[0] if expansions else None)
    if preset not in (None, "paper"):
        raise VsrError(f"unknown preset {preset!r}; known is paper")
    if optimizer is not None and optimizer not in ("lm", *OPTIMIZERS):
        raise VsrError(f"unknown optimizer {optimizer!r}; known are lm, {', '.join(OPTIMIZERS)}")
    if method == "vsr" and (preset is not None or optimizer is not None):
        raise VsrError("presets and optimizers are for vsr-gp, vsr-mcts, gp and mcts; vsr has neither")
    if grammar is not None and "mcts" not in method:
        raise VsrError(f"grammars are for vsr-mcts and mcts; {method} has none")
    if seed < 0 or any(limit is not None and limit < 0 for limit in (time_limit, max_evaluations, max_queries)):
        raise VsrError("the seed and limits are numbers of at least 0")
    if schedule is not None and not method.startswith("vsr"):
        raise VsrError(f"method {method} frees all variables at once: it has no schedule")
    equation = problem if isinstance(problem, Equation) else None
    if isinstance(problem, str | Path):
        equation = load_equation(problem)
    elif equation is None and not hasattr(problem, "evaluate"):
        raise VsrError(f"a problem is a name, a path, an Equation or an oracle, not a {type(problem).__name__}")
    if equation is None and noise:
        raise VsrError("noise is for equation files; give an oracle of your own its noise when you make it")
    if operators is not None and not set(normalise_function_set(operators)) - {"const"}:
        raise VsrError("operators: no operator among them, only const")
    if equation is not None and operators is not None:
        equation = replace(equation, function_set=normalise_function_set(operators))
    oracle: Any = EquationOracle(equation, noise, seed) if equation is not None else problem
    if equation is None and operators is not None:
        oracle = View(oracle, function_set=normalise_function_set(operators))
    if time_limit is None and max_evaluations is None and max_queries is None:
        time_limit = 60.0
    if expansion == "slotwise" and checkpoint is not None:
        raise VsrError("checkpoints are for joint expansion; slotwise runs take seconds and are started anew")
    settings = _PAPER if preset == "paper" else _MCTS if "mcts" in method else Settings()
    regressor = _regressor(method, preset, optimizer, grammar)
    if max_queries is not None:
        oracle = Limited(oracle, limit=oracle.queries + max_queries)
    rng = np.random.default_rng(seed)
    compile_kernels()  # on nobody's clock
    memory = peak_memory()
    budget = Budget(oracle, time_limit, max_evaluations, max_queries, tick=tick)
    numbers = regressor.settings()
    used: dict[str, Any] = {"preset": preset, **asdict(settings), **numbers}
    plan: Schedule = ()
    if expansion == "slotwise":
        exact = asdict(SlotSettings.within(max_queries, len(oracle.variables)))
        used = {"slotwise": exact, "slotwise_in_noise": asdict(NoisySlotSettings()), **used}
        order = None if schedule in (None, "auto") else _columns(_schedule(schedule, method, oracle, budget, rng))
        try:
            plan, outcome = _slotwise(oracle, method, regressor, budget, rng, settings, progress, order)
        except OutOfQueriesError:  # before anything could be found
            outcome = Outcome(None, [], [], "queries", 0.0)
    else:
        plan = _schedule(schedule or "numeric", method, oracle, budget, rng)
        kept = None
        if checkpoint is not None:
            identity: dict[str, Any] = {
                "problem": equation.name if equation is not None else list(oracle.names),
                "method": method,
                "seed": seed,
                "noise": asdict(noise) if isinstance(noise, Noise) else float(noise),
                "function_set": oracle.function_set,
                "preset": preset,
                "schedule": plan,
                "settings": asdict(settings),
                "regressor": numbers,
            }
            kept = Checkpoint(Path(checkpoint), identity, resume)
        outcome = search(oracle, regressor, plan, budget, rng, settings, progress, checkpoint=kept)
    seconds = time.perf_counter() - budget.started
    return Result(
        tree=outcome.tree,
        method=method,
        expansion=expansion,
        schedule=plan,
        seed=seed,
        noise=outcome.noise,
        budget=dict(budget.limits),
        settings=used,
        seconds=seconds,
        evaluations=budget.evaluations,
        oracle_queries=int(budget.spent["queries"]),
        peak_memory_mb=peak_memory() - memory,
        stopped_by=outcome.stopped_by,
        rounds=outcome.rounds,
        standard_errors=outcome.standard_errors,
        equation=equation.name if equation is not None else "",
        verdict=judge(outcome.tree, equation) if equation is not None and outcome.tree is not None else None,
        version=deap_vsr.__version__,
    )


def _regressor(
    method: str, preset: str | None, optimizer: str | None, grammar: str | Path | Grammar | None
) -> GpRegressor | MctsRegressor:
    """Return the regressor of a method; of vsr, the one that takes over where forms end."""
    paper = preset == "paper"
    regressor: GpRegressor | MctsRegressor
    if "mcts" not in method:
        regressor = GpRegressor(generations=200, cxpb=0.8, mutpb=0.8, **_PAPER_FIT) if paper else GpRegressor()
    else:
        from cfg_mcts import Grammar, MctsRegressor

        regressor = MctsRegressor(reward="neg_mse", climb=0, stay=0.0, **_PAPER_FIT) if paper else MctsRegressor()
        if grammar == COEFFICIENTS:
            regressor = replace(regressor, coefficients=True)
        elif isinstance(grammar, str | Path):
            regressor = replace(regressor, grammar=Grammar.from_file(grammar))
        elif grammar is not None:
            regressor = replace(regressor, grammar=grammar)
    return regressor if optimizer is None else replace(regressor, optimizer=optimizer)


def _slotwise(
    oracle: Oracle,
    method: str,
    regressor: Regressor,
    budget: Budget,
    rng: np.random.Generator,
    settings: Settings,
    progress: Callable[[Progress], None],
    order: tuple[int, ...] | None,
) -> tuple[Schedule, Outcome]:
    """Search slotwise and, with what is left of the budget, jointly; returns the order of variables and the outcome."""
    noise = measure_noise(oracle, rng, 4, 2)
    if noise > 0:
        noise = measure_noise(oracle, rng, 40 if budget.queries_left() > 8_000 else 16, 8) or noise
        outcome = _in_noise(oracle, method, regressor, budget, rng, noise, progress, order)
    else:
        forms = FormsRegressor() if method == "vsr" else regressor
        outcome = search_slotwise(oracle, forms, budget, rng, progress=progress, order=order)
    freed = outcome.rounds[-1].freed if outcome.rounds else ()
    plan = tuple((column,) for column in (*freed, *(c for c in range(len(oracle.variables)) if c not in freed)))
    # In noise a table may want more points than there are, and what is left may do for joint expansion.
    if outcome.stopped_by not in (("exhausted", "queries") if noise > 0 else ("exhausted",)):
        return plan, outcome
    least = settings.hall_points + (settings.n_trials + 1) * settings.n_points  # of a joint search of one round
    if budget.queries_left() < least:
        return plan, replace(outcome, stopped_by="queries")
    return plan, _together(outcome, search(oracle, regressor, plan, budget, rng, settings, progress))


def _in_noise(
    oracle: Oracle,
    method: str,
    regressor: Regressor,
    budget: Budget,
    rng: np.random.Generator,
    noise: float,
    progress: Callable[[Progress], None],
    order: tuple[int, ...] | None,
) -> Outcome:
    """Search slotwise in noise; vsr looks for a sum of products first, of all slots at once."""
    if not 1e-60 < noise < 1e60:
        raise VsrError(f"the noise is {noise:g}: its square is beyond any number; let the oracle answer in other units")
    if method != "vsr":
        return search_noisy_slots(oracle, regressor, budget, rng, noise, progress=progress, order=order)
    sums = search_noisy(oracle, budget, rng, noise, progress=progress, order=order)
    if sums.stopped_by not in ("found", "exhausted"):
        return sums
    # Short numbers, or a single term, are hardly there by chance. Another sum that holds may only approximate something
    # shorter; twice as many points will tell.
    part = budget
    if sums.stopped_by == "found" and sums.tree is not None:
        numbers = [node.value for node in sums.tree if isinstance(node, Constant) and abs(node.value) != 1.0]
        if len(numbers) <= 1 or all(float(f"{number:.1e}") == number for number in numbers):
            return sums
        part = Budget(oracle, evaluations=SECOND_LOOK, queries=2 * int(budget.spent["queries"]), whole=budget)
    forms = FormsRegressor(keep=6, noisy=True)
    other = search_noisy_slots(oracle, forms, part, rng, noise, progress=progress, order=order)
    if sums.stopped_by != "found":
        return _together(sums, other)
    shorter = False
    if other.stopped_by == "found" and other.tree is not None and sums.tree is not None:
        shorter = better_in_noise([sums.tree, other.tree], oracle, noise, budget, rng) == 1
    stopped_by = "interrupted" if other.stopped_by == "interrupted" else "found"
    best, second = (other, sums) if shorter else (sums, other)
    return replace(best, rounds=[*second.rounds, *best.rounds], stopped_by=stopped_by)


def _together(first: Outcome, second: Outcome) -> Outcome:
    """Return the outcome of two searches one after the other: what the second has found, else the better of both."""
    if second.stopped_by == "found" or not first.hall:
        return replace(second, rounds=[*first.rounds, *second.rounds])
    hall = sorted([*first.hall, *second.hall], key=lambda entry: entry[0])
    better, other = (first, second) if hall[0] in first.hall else (second, first)
    return replace(
        second,
        tree=hall[0][1],
        hall=hall,
        rounds=[*other.rounds, *better.rounds],
        standard_errors=better.standard_errors,
    )


def _columns(schedule: Schedule) -> tuple[int, ...]:
    return tuple(column for group in schedule for column in group)


def _schedule(
    wanted: str | Sequence[str], method: str, oracle: Oracle, budget: Budget, rng: np.random.Generator
) -> Schedule:
    names = [variable.name for variable in oracle.variables]
    everything = tuple(range(len(names)))
    if not method.startswith("vsr"):
        return (everything,)
    if wanted == "numeric":
        return tuple((column,) for column in everything)
    if wanted == "auto":
        try:
            order = simplest_first(oracle, FormsRegressor(), budget, rng)
        except OutOfQueriesError:
            order = everything
        return tuple((column,) for column in order)
    listed = [name.strip() for name in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    if sorted(listed) != sorted(names):
        raise VsrError(f"schedule {', '.join(listed)}: expected each of {', '.join(names)} once, or numeric, or auto")
    return tuple((names.index(name),) for name in listed)
