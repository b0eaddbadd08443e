"""What a DEAP script brings to a vertical search: checked before anything runs, and made ready for its rounds."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deap import base, gp

from deap_vsr.errors import VsrError
from deap_vsr.gp.algorithms import selBestDistinct
from deap_vsr.gp.scoring import scored
from deap_vsr.gp.toolbox import has_ephemeral, meaning, primitive_set_of, with_ephemeral, with_set
from deap_vsr.lab.oracle import Oracle
from deap_vsr.search.pool import Schedule
from deap_vsr.tree import Constant, is_ephemeral
from deap_vsr.tree.operators import from_function
from deap_vsr.tree.recognise import Own

#: How constants are fitted while a population evolves: few steps, as most individuals are forgotten.
FITTING = {"n_starts": 0, "max_iterations": 5}


@dataclass(frozen=True)
class Script:
    """A script's toolbox, made ready: its copy evaluates on trials.

    Attributes
    ----------
    toolbox : the copy, with `evaluate` and `select`
    pset : the script's primitive set, with an ephemeral constant if it had none
    given : the script's own toolbox and set
    kind : class of the individuals
    weights : of their fitness
    beginners : the first population, copied
    own_select : whether the script has a `select`
    """

    toolbox: base.Toolbox
    pset: gp.PrimitiveSetTyped
    given: tuple[base.Toolbox, gp.PrimitiveSetTyped]
    kind: type[Any]
    weights: tuple[float, ...]
    beginners: list[Any]
    own_select: bool
    fit_constants: bool | str = True

    @classmethod
    def of(
        cls, population: Sequence[Any], toolbox: base.Toolbox, oracle: Oracle, fit_constants: bool | str = True
    ) -> Script:
        """Check what a script brings, and make it ready; VsrError for what cannot be searched with."""
        pset = primitive_set_of(toolbox)
        _check_oracle(oracle)
        _check_set(pset)
        if len(pset.arguments) != len(oracle.variables):
            raise VsrError(
                f"the primitive set has {len(pset.arguments)} arguments, the oracle {len(oracle.variables)} variables"
            )
        _check_population(population)
        beginners = [toolbox.clone(individual) for individual in population]
        mine = pset
        if not has_ephemeral(pset):
            warnings.warn(
                "the primitive set has no ephemeral constant, without which nothing can be fitted; one is added for "
                "the search (addEphemeralConstant adds one of your own)",
                stacklevel=3,
            )
            mine = with_ephemeral(pset)
            beginners = [_opened(one) if i % 2 else one for i, one in enumerate(beginners)]
        weights = tuple(population[0].fitness.weights)
        script = cls(toolbox, mine, (toolbox, pset), type(population[0]), weights, beginners, False, fit_constants)
        return script._ready(mine)

    def _ready(self, pset: gp.PrimitiveSetTyped) -> Script:
        """Return the script with a primitive set in the place of its own."""
        toolbox, given = self.given
        mine = with_set(toolbox, given, pset)
        mine.register("evaluate", scored(toolbox, meaning(pset), self.weights, self.fit_constants, **FITTING))
        own_select = hasattr(toolbox, "select")
        if not own_select:
            mine.register("select", selBestDistinct)
        return replace(self, toolbox=mine, pset=pset, own_select=own_select)

    def taken_back(self, names: Sequence[str]) -> Script:
        """Return the script with some of its primitives called as they are, whatever they look like."""
        pset = copy.copy(self.pset)
        pset.context = {**pset.context, **{name: Own(pset.context[name]) for name in names}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all of it was said before
            return self._ready(pset)

    def recognised(self, tree: Sequence[Any]) -> list[str]:
        """Return the primitives of a tree that go by what they were recognised as, by behaviour."""
        names = dict.fromkeys(node.name for node in tree if node.arity)
        return [name for name in names if _is_recognised(name, self.pset.context[name], tree)]


def _is_recognised(name: str, function: Any, tree: Sequence[Any]) -> bool:
    arity = next(node.arity for node in tree if node.arity and node.name == name)
    operator = from_function(name, function, arity)
    return operator.known and operator is not function and not any(function is twin for twin in operator.twins)


def _opened(individual: Any) -> Any:
    """Return an individual with its literals as constants that are fitted, which an added ephemeral stands for."""
    for position, node in enumerate(individual):
        if not node.arity and not is_ephemeral(node) and isinstance(node.value, int | float):
            list.__setitem__(individual, position, Constant(float(node.value), True, True, node.ret))
    return individual


def _check_oracle(oracle: Any) -> None:
    if hasattr(oracle, "evaluate") and hasattr(oracle, "variables"):
        return
    if callable(oracle):
        raise VsrError(
            f"the oracle is a bare function ({getattr(oracle, '__name__', oracle)}), which does not say where it may "
            f"be asked: give CallableOracle(function, [(low, high), ...]), a range for each variable"
        )
    raise VsrError(f"an oracle has variables and evaluate(X); a {type(oracle).__name__} has not: see CallableOracle")


def _check_population(population: Sequence[Any]) -> None:
    if not len(population):
        raise VsrError("the population is empty; make one, of 50 individuals say")
    first = population[0]
    if not isinstance(first, gp.PrimitiveTree):
        adfs = isinstance(first, list) and first and isinstance(first[0], gp.PrimitiveTree)
        what = "lists of trees, as with ADFs, which cannot be grown vertically" if adfs else f"a {type(first).__name__}"
        raise VsrError(f"individuals are {what}; expected trees, gp.PrimitiveTree")
    if not hasattr(first, "fitness"):
        raise VsrError("individuals have no fitness; make their class with creator.create(..., fitness=...)")


def _check_set(pset: gp.PrimitiveSetTyped) -> None:
    """Raise VsrError for a set whose trees are no functions of numbers."""
    primitives = {p.name: p for found in pset.primitives.values() for p in found}
    adfs = [name for name in primitives if name not in pset.context]
    if adfs:
        raise VsrError(
            f"the primitive set has ADFs ({', '.join(adfs)}), which cannot be grown vertically; leave them out"
        )
    kinds = [pset.ret, *getattr(pset, "ins", [])]
    if any(isinstance(kind, type) and issubclass(kind, bool | str) for kind in kinds):
        names = ", ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
        raise VsrError(
            f"the primitive set is not of numbers ({names}): arguments and result must be, booleans may be between"
        )
    if primitives and not any(_takes_numbers(p, pset) for p in primitives.values()):
        raise VsrError(
            f"none of the primitives ({', '.join(primitives)}) takes numbers: a vertical search is for functions of "
            f"numbers"
        )


def _takes_numbers(primitive: gp.Primitive, pset: gp.PrimitiveSetTyped) -> bool:
    function = pset.context[primitive.name]
    try:
        function(*([0.7] * primitive.arity))
    except TypeError:
        return False
    except Exception:  # 0.7 may be out of its domain
        return True
    return True


def _columns_of(schedule: Any, names: Sequence[str], n_vars: int) -> tuple[tuple[int, ...], ...]:
    """Return a schedule as groups of columns: given as such, as columns, or as names of the set's arguments."""
    groups = [name.strip() for name in schedule.split(",")] if isinstance(schedule, str) else list(schedule)

    def column(item: Any) -> int:
        if isinstance(item, str) and item in names:
            return list(names).index(item)
        if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < n_vars:
            return item
        raise VsrError(
            f"schedule {schedule!r}: {item!r} is no variable; expected each of {', '.join(names)} once (or its column, "
            f"from 0), alone or in groups, numeric, or auto"
        )

    found = tuple((column(g),) if isinstance(g, str | int) else tuple(column(item) for item in g) for g in groups)
    if sorted(c for group in found for c in group) != list(range(n_vars)):
        raise VsrError(f"schedule {schedule!r} does not free each of {', '.join(names)} once")
    return found


def groups_of(schedule: str | Sequence[Any] | None, script: Script, oracle: Any) -> Schedule | None:
    """Return the groups of columns that are freed, in order; None for "auto"."""
    n_vars = len(oracle.variables)
    numeric = tuple((column,) for column in range(n_vars))
    if schedule is None and hasattr(oracle, "schedule"):
        if not oracle.has_control:
            warnings.warn(
                "the rows of the table hold nothing constant while something else varies, so nothing can be "
                "controlled: all variables are free in one round, and constants are fitted",
                stacklevel=3,
            )
        return tuple(oracle.schedule())
    if schedule is None or schedule == "numeric":
        return numeric
    return (
        None
        if isinstance(schedule, str) and schedule == "auto"
        else _columns_of(schedule, script.pset.arguments, n_vars)
    )
