"""The methods by name, and `discover`: find a formula for a problem."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from deap_vsr.doors import Asked, Door, Problem, doors
from deap_vsr.engine.optimizers import NAMES as OPTIMIZERS
from deap_vsr.engine.warm import compile_kernels
from deap_vsr.errors import OutOfQueriesError, VsrError
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.searches import searches
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.domains import Domains
from deap_vsr.lab.evidence import FreezeRule
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.oracle import Noise
from deap_vsr.loading import attribute_of
from deap_vsr.memory import peak_memory
from deap_vsr.narrate import hint, logger, narrated
from deap_vsr.peers import DEFAULT_SECONDS, PEERS
from deap_vsr.problems.equation import Equation
from deap_vsr.result import Result, Results
from deap_vsr.search.before import with_measured_before
from deap_vsr.search.checkpoint import Checkpoint
from deap_vsr.search.contract import Regressor
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.pool import Schedule
from deap_vsr.search.records import Found, Progress
from deap_vsr.search.sequence import in_sequence
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.standing import THOROUGH, Standing, points_to_attack, points_to_keep, standing
from deap_vsr.search.vertical import simplest_first, vertical

if TYPE_CHECKING:
    from cfg_mcts import Grammar

#: The named grammar whose leaves are C*x, C*sin(x), ...
COEFFICIENTS = "coefficients"

#: The paper's settings; batch size, population, offspring, limits of size, shares of leaves and c are not from it.
_PAPER = JointOptions(
    n_trials=5, n_points=256, hall_size=50, rule=FreezeRule(error=1e-6, spread=1e-3, raw=True), restart=False,
    published=True,
)  # fmt: skip
_PAPER_FIT: dict[str, Any] = {"optimizer": "BFGS", "gradient": "finite", "max_iterations": 500, "n_starts": 0}


@dataclass(frozen=True)
class Options:
    """What a run was asked for beside its problem, method and limits; a method says which of these it takes."""

    expansion: str | None = None
    schedule: str | Sequence[str] | None = None
    preset: str | None = None
    optimizer: str | None = None
    grammar: str | Path | Grammar | None = None
    checkpoint: str | Path | None = None
    resume: bool = False


class Search(Protocol):
    """A method that searches by itself."""

    def check(self) -> None:
        """Raise VsrError if it cannot be used here."""

    def __call__(self, lab: Lab) -> tuple[Found, dict[str, Any]]:
        """Return what was found with the laboratory, and the numbers that were used."""


@dataclass(frozen=True)
class Method:
    """A way to find formulas.

    Attributes
    ----------
    name : as people type it
    make : what makes its regressor; that of joint expansion, where slots have one of their own
    vertical : whether it frees variables one by one, or all at once
    expansions : how a round may grow a formula, its own way first: "joint", "slotwise"
    takes : names of the :class:`Options` that it understands, beside `expansion`, and `schedule` of vertical ones
    slots : what makes the regressor of slots; default: `make`
    then : searches of slotwise expansion, one after the other; "anchored" asks few points of exact answers, "sums" is
        for noise
    joint : numbers of joint search
    search : for a method that needs no round of ours: called instead of all this
    extra : a package that it needs, and the extra of ours that brings it
    """

    name: str
    make: Callable[[Options], Regressor] | None = None
    vertical: bool = True
    expansions: tuple[str, ...] = ("joint", "slotwise")
    takes: frozenset[str] = frozenset()
    slots: Callable[[], Regressor] | None = None
    then: tuple[str, ...] = ("anchored", "slotwise", "joint")
    joint: JointOptions = field(default_factory=JointOptions)
    search: Search | None = None
    extra: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        unknown = {*self.expansions, *self.then} - {"anchored", "sums", "slotwise", "joint"}
        if unknown or (self.make is None and self.search is None):
            what = f"knows no {', '.join(sorted(unknown))}" if unknown else "has nothing that searches"
            raise VsrError(f"method {self.name} {what}; expansions are sums, slotwise and joint")

    def check(self, options: Options) -> None:
        """Raise VsrError for an option that the method does not take, or does not know."""
        if options.expansion is not None and options.expansion not in self.expansions:
            known = " or ".join(self.expansions) or "none"
            raise VsrError(f"method {self.name} has no expansion {options.expansion!r}; it has {known}")
        check_preset(options.preset)
        check_optimizer(options.optimizer)
        if options.schedule is not None and not self.vertical:
            raise VsrError(f"method {self.name} frees all variables at once: it has no schedule")
        for name in ("preset", "optimizer", "grammar", "checkpoint"):
            if getattr(options, name) is not None and name not in self.takes:
                others = " and ".join(own for own in OURS if name in METHODS[own].takes)
                raise VsrError(f"method {self.name} has no {name}; {others} have")
        if self.search is not None:
            self.search.check()
        if self.extra is not None and find_spec(self.extra[0]) is None:
            raise VsrError(f"method {self.name} needs {self.extra[0]}: pip install deap-vsr[{self.extra[1]}]")
        if options.checkpoint is not None and self.expansion(options) == "slotwise":
            raise VsrError("checkpoints are for joint expansion; a slotwise run goes on from its log: give log")

    def expansion(self, options: Options) -> str | None:
        """Return the expansion of a run; None where all variables are free at once."""
        return options.expansion or (self.expansions[0] if self.expansions else None)


def _gp(options: Options) -> GpRegressor:
    paper = options.preset == "paper"
    regressor = GpRegressor(generations=200, cxpb=0.8, mutpb=0.8, **_PAPER_FIT) if paper else GpRegressor()
    return regressor if options.optimizer is None else replace(regressor, optimizer=options.optimizer)


def _mcts(options: Options) -> Regressor:
    from cfg_mcts import Grammar, MctsRegressor

    paper, grammar = options.preset == "paper", options.grammar
    regressor = MctsRegressor(reward="neg_mse", climb=0, stay=0.0, **_PAPER_FIT) if paper else MctsRegressor()
    if grammar == COEFFICIENTS:
        regressor = replace(regressor, coefficients=True)
    elif grammar is not None:
        own = Grammar.from_file(grammar) if isinstance(grammar, str | Path) else grammar
        regressor = replace(regressor, grammar=own)
    return regressor if options.optimizer is None else replace(regressor, optimizer=options.optimizer)


def _neural(options: Options, name: str) -> Regressor:
    from deap_vsr.neural.methods import baseline

    how = _PAPER_FIT if options.preset == "paper" else {}
    return baseline(name, options.preset == "paper", how, options.optimizer, options.grammar)


#: Roll-outs bring forms with many constants, some of which pass for a smooth law to 13 digits.
_MCTS = JointOptions(rule=FreezeRule(error=1e-18))
_COMMON = frozenset({"preset", "optimizer", "checkpoint"})

#: The methods there are by name: our own, vertical GP and vertical MCTS, GP and MCTS over all variables at once, and
#: those of other packages, which are asked for a formula of a sample of points.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "vsr", _gp, expansions=("slotwise",), slots=FormsRegressor, then=("anchored", "sums", "slotwise", "joint")
        ),
        Method("vsr-gp", _gp, takes=_COMMON),
        Method("gp", _gp, vertical=False, expansions=(), takes=_COMMON),
        Method("vsr-mcts", _mcts, takes=_COMMON | {"grammar"}, joint=_MCTS),
        Method("mcts", _mcts, vertical=False, expansions=(), takes=_COMMON | {"grammar"}, joint=_MCTS),
        *(
            Method(f"vsr-{name}" if is_vertical else name, partial(_neural, name=name), vertical=is_vertical,
                   expansions=("joint", "slotwise") if is_vertical else (), takes=_COMMON | {"grammar"}, joint=_MCTS,
                   extra=("torch", "neural"))
            for is_vertical in (True, False) for name in ("dsr", "pqt", "vpg", "gpmeld")
        ),
        *(Method(name, vertical=False, expansions=(), search=peer) for name, peer in PEERS.items()),
    )
}  # fmt: skip

#: Those of this package that need no extra.
OURS = tuple(name for name, method in METHODS.items() if method.search is None and method.extra is None)


def method_of(method: str | Method | Regressor) -> Method:
    """Return a method by its name, or by ``module:attribute`` in a module of one's own; a regressor makes one too."""
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        return Method(type(method).__name__, lambda options: method)
    if method in METHODS:
        return METHODS[method]
    if ":" not in method:
        raise VsrError(f"unknown method {method!r}; known are {', '.join(METHODS)}, and module:attribute of your own")
    found = attribute_of(method, "method")
    own = method_of(found() if isinstance(found, type) else found)
    return replace(own, name=method)


@overload
def discover(
    problem: Problem, method: str | Method | Regressor = "vsr", *, outputs: None = None, **options: Any
) -> Result: ...


@overload
def discover(
    problem: Problem, method: str | Method | Regressor = "vsr", *, outputs: Sequence[str], **options: Any
) -> Results: ...


def discover(
    problem: Problem,
    method: str | Method | Regressor = "vsr",
    *,
    variables: Domains | None = None,
    outputs: Sequence[str] | None = None,
    workers: int = 1,
    processes: bool = False,
    feasible: Callable[[Mapping[str, float]], Any] | None = None,
    limits: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | None = None,
    call: str = "auto",
    expansion: str | None = None,
    schedule: str | Sequence[str] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    max_queries: int | None = None,
    max_memory: float | None = None,
    batch: int | None = None,
    noise: Noise | float = 0.0,
    verify: int | str | None = None,
    preset: str | None = None,
    optimizer: str | None = None,
    operators: str | Sequence[str] | None = None,
    grammar: str | Path | Grammar | None = None,
    log: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] = lambda news: None,
    tick: Callable[[], None] = lambda: None,
    verbose: bool = False,
    **about: Any,
) -> Result | Results:
    """Find a formula.

    Parameters
    ----------
    problem : a function, name or path of an equation file, Equation, or any oracle
        A function is called with named arguments, with values, a row, or a whole batch, whichever it takes
        (:class:`deap_vsr.lab.functions.FunctionOracle`). An oracle needs `variables` and ``evaluate(X)``
        (:class:`deap_vsr.lab.lab.Lab`).
    method : name, Method, or a regressor of one's own
        "vsr" (slots solved one by one), "vsr-gp", "vsr-mcts" (the paper's), "gp", "mcts" (all variables at once),
        "dsr", "pqt", "vpg", "gpmeld", each also as "vsr-dsr", ... (docs/neural.md), or ``module:attribute`` of a module
        of one's own.
    variables : of a function: ``{"T": (280, 400), "p": (0.1, 10, "log"), "n": (1, 9, "integer")}``
        A Variable, a range, or a list of words for a category: then there is a formula for each word.
    outputs : names of the outputs of a function that has several: one search each, over shared points
        Returns Results, by name. Limits are those of each search.
    workers, processes : of a function: how many points are asked at the same time, by threads or by processes
        The result does not depend on it.
    feasible : of a function: says of a setting, ``{"T": 300.0, ...}``, whether it can be asked; if not it costs nothing
    limits : of a function: how far outside of the domains it may be asked, ``{"T": (250, 450)}``; default: not at all
        A formula that also holds outside is hardly a surrogate.
    call : how a function is called: "named", "values", "row", "batch", or "auto"
    expansion : "slotwise" or "joint", for vertical methods: how a round grows the formula
    schedule : "numeric" (x1, x2, ...), "auto", or names in the order in which they are freed
        By default auto for slotwise, numeric for joint expansion.
    time_limit, max_evaluations, max_queries : limits, whichever comes first; without any, 60 s
    max_memory : MB that the process may hold, optional
        A search that would need more ends with the best so far. It is looked at every few milliseconds between
        evaluations, so that one step (some MB) may go beyond. It is no limit of its own: without others, 60 s.
    batch : points that are handed to the oracle at once, at the most: a sheet of a laboratory, a simulator in parallel
        Within a batch variables that have a cost are changed seldom. `batches` of the result counts them; those that
        are wholly read from `log` do not count.
    noise : added to the answers of an equation file's oracle, or a function's, to try a method out
    verify : fresh points to attack an answer with before it is called found; "thorough" for a cheap function
        By default 8, and 2 for each variable.
    preset : "paper" for the published settings
    optimizer : how constants are fitted, see :func:`deap_vsr.fit`
    operators : function set, or the name of one ("science"), instead of the problem's own
    grammar : of mcts and vsr-mcts: a Grammar, a file of rules (docs/mcts.md); of these and of policies: "coefficients"
        By default the operators of the problem. With "coefficients" leaves are C*x, C*sin(x), ...: it knows the shape
        of sums of terms, so compare it only with methods that know it too.
    log : a CSV file in which every measurement is kept, as it comes
        A run goes on from it by replay: what it holds is not asked again. If the run is bounded by counts, the result
        is that of an uninterrupted one.
    checkpoint : a file in which the state of GP and MCTS is kept, every few seconds
    resume : go on from that file, if there is one
        The result is that of an uninterrupted run, if the run is bounded by counts.
    progress, tick : called in each round, and after every few evaluations
    verbose : whether to show reduced forms on stderr as they are found; the logger `deap_vsr` has them in any case
    about : what is known of a function's answers, and what they are called: noise_sd, tolerance, resolution,
        repeatable, errors (:class:`deap_vsr.CallableOracle`), output, unit

    Returns
    -------
    Result
        With the judge's verdict, if the problem is an equation. Ctrl-C returns the best so far. Results, by name, where
        a function has several outputs or categories.
    """
    chosen = method_of(method)
    options = Options(expansion, schedule, preset, optimizer, grammar, checkpoint, resume)
    chosen.check(options)
    check_limits(seed, time_limit, max_evaluations, max_queries, max_memory)
    n_points = _points_to_verify(verify, chosen, options)
    asked = Asked(variables, outputs, workers, processes, feasible, limits, call, about)
    found = doors(problem, noise, seed, operators, log, asked)
    results = Results()
    with narrated(verbose, progress) as tell:
        for door in found:
            budget = _budget(time_limit, max_evaluations, max_queries, max_memory, tick)
            lab = Lab(door.oracle, budget, np.random.default_rng(seed), log=door.log, batch=batch, verify=n_points)
            results[door.label] = _result(problem, door, lab, chosen, options, seed, noise, tell)
            if results[door.label].stopped_by == "interrupted":
                break
    return results if found[0].label else results[""]


def _budget(
    seconds: float | None,
    evaluations: int | None,
    queries: int | None,
    memory: float | None,
    tick: Callable[[], None],
) -> Budget:
    """Return what a run may spend; a minute, where nothing else limits it."""
    if seconds is None and evaluations is None and queries is None:
        seconds = DEFAULT_SECONDS
    return Budget(seconds, evaluations, queries, tick=tick, memory=memory)


@np.errstate(all="ignore")  # what overflows or is no number is seen by its value; an oracle may still warn
def _result(
    problem: Problem,
    door: Door,
    lab: Lab,
    method: Method,
    options: Options,
    seed: int,
    noise: Noise | float,
    tell: Callable[[Progress], None],
) -> Result:
    """Search behind one door, and attack what is found."""
    # Whoever hands an Equation over runs a benchmark, and knows what few points are.
    hinted = _is_attacked(method, options) and not isinstance(problem, Equation)
    if hinted and (few := hint(lab, points_to_attack(lab, lab.n_vars))):
        logger.warning(few)
    compile_kernels()  # on nobody's clock
    if method.extra is not None:
        import_module(method.extra[0])
    memory = peak_memory()
    lab.budget.restart()
    known = _identity(door.equation, lab, seed, noise)
    lab.budget.kept = points_to_keep(lab) if _is_attacked(method, options) else 0
    freed, found, used = _search(method, options, lab, tell, known)
    found, stands = _attacked(found, lab, method, options)
    stands = with_measured_before(found, stands, lab)
    result = Result.of(
        found,
        stands,
        lab,
        door.equation,
        method=method.name,
        expansion=method.expansion(options),
        schedule=freed,
        seed=seed,
        settings=used,
        memory=peak_memory() - memory,
    )
    logger.info("%s%r", f"{door.label}: " if door.label else "", result)
    return result


def _points_to_verify(verify: int | str | None, method: Method, options: Options) -> int | None:
    """Return how many points an answer is attacked with, None for the default; VsrError for what is no number."""
    if verify is not None and not _is_attacked(method, options):
        raise VsrError("verify: answers of the published settings and of other packages are not attacked")
    if verify == "thorough":
        return THOROUGH
    if verify is None or (isinstance(verify, int) and not isinstance(verify, bool) and verify >= 1):
        return verify
    raise VsrError(f"verify is {verify!r}, expected a number of points of at least 1, or thorough")


def _is_attacked(method: Method, options: Options) -> bool:
    """Whether answers are attacked: those of the published settings, and of other packages, are taken as they come."""
    return method.search is None and options.preset is None


def _attacked(found: Found, lab: Lab, method: Method, options: Options) -> tuple[Found, Standing]:
    """Return an answer, and how it stands."""
    if _is_attacked(method, options):
        return standing(found, lab)
    if found.tree is None or found.stopped_by != "found":
        return found, Standing("partial", "the search ended before a formula held")
    return found, Standing("fits", "as the method has found it: it was not attacked")


def _identity(equation: Equation | None, lab: Lab, seed: int, noise: Noise | float) -> dict[str, Any]:
    """Return what tells a run from others of its method, for checkpoints."""
    law = repr((lab.variables, lab.limits, equation.tree.to_tokens() if equation is not None else None))
    return {
        "problem": equation.name if equation is not None else [variable.name for variable in lab.variables],
        "law": hashlib.sha256(law.encode()).hexdigest()[:16],  # another one may have the same name
        "seed": seed,
        "noise": asdict(noise) if isinstance(noise, Noise) else float(noise),
    }


def check_preset(preset: str | None) -> None:
    """Raise VsrError for a preset that there is not."""
    if preset not in (None, "paper"):
        raise VsrError(f"unknown preset {preset!r}; known is paper")


def check_optimizer(optimizer: str | None) -> None:
    """Raise VsrError for an optimizer that there is not; None is a method's own."""
    if optimizer is not None and optimizer not in ("lm", *OPTIMIZERS):
        raise VsrError(f"unknown optimizer {optimizer!r}; known are lm, {', '.join(OPTIMIZERS)}")


def check_limits(seed: int, *limits: float | None) -> None:
    """Raise VsrError for numbers below 0."""
    if seed < 0 or any(limit is not None and limit < 0 for limit in limits):
        raise VsrError("the seed and limits are numbers of at least 0")


def _search(
    method: Method, options: Options, lab: Lab, tell: Callable[[Progress], None], known: dict[str, Any]
) -> tuple[Schedule, Found, dict[str, Any]]:
    """Run a method; returns the order of variables, what was found, and the numbers that were used."""
    everything = tuple(range(lab.n_vars))
    if method.make is None:
        assert method.search is not None
        try:
            return ((everything,), *method.search(lab))
        except (OutOfQueriesError, KeyboardInterrupt) as end:
            return (everything,), Found.nothing(end), {}
    regressor = method.make(options)
    joint = Joint(regressor, _PAPER if options.preset == "paper" else method.joint)
    numbers: dict[str, Any] = getattr(regressor, "settings", dict)()
    used = {"preset": options.preset, **asdict(joint.options), **numbers}
    if method.expansion(options) != "slotwise":
        try:
            schedule = _schedule(options.schedule or "numeric", lab) if method.vertical else (everything,)
        except KeyboardInterrupt as end:
            return (), Found.nothing(end), used
        kept = None
        if options.checkpoint is not None:
            identity = {**known, "method": method.name, "function_set": lab.function_set, "preset": options.preset}
            identity |= {"schedule": schedule, "settings": asdict(joint.options), "regressor": numbers}
            kept = Checkpoint(Path(options.checkpoint), identity, options.resume)
        found = vertical(lab, joint, schedule, tell, kept)
        return schedule, replace(found, search="joint", tried=("joint",)), used
    slots = regressor if method.slots is None else method.slots()
    fixed = None if options.schedule in (None, "auto") else _schedule(options.schedule, lab)
    exact = SlotOptions.within(lab.budget.queries_left(), lab.n_vars)
    used = {"slotwise": asdict(exact), "slotwise_in_noise": asdict(SlotOptions.in_noise()), **used}
    try:
        schedule, found = in_sequence(lab, searches(method.then, slots, lab, joint), fixed, tell)
    except (OutOfQueriesError, KeyboardInterrupt) as end:  # before anything could be found
        schedule, found = (), Found.nothing(end)
    return schedule, found, used


def _schedule(wanted: str | Sequence[str], lab: Lab) -> Schedule:
    """Return the order in which variables are freed, as asked for."""
    names = [variable.name for variable in lab.variables]
    if wanted == "numeric":
        return tuple((column,) for column in range(lab.n_vars))
    if wanted == "auto":
        try:
            order = simplest_first(lab, FormsRegressor())
        except OutOfQueriesError:
            order = tuple(range(lab.n_vars))
        return tuple((column,) for column in order)
    listed = [name.strip() for name in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    if sorted(listed) != sorted(names):
        raise VsrError(f"schedule {', '.join(listed)}: expected each of {', '.join(names)} once, or numeric, or auto")
    return tuple((names.index(name),) for name in listed)
