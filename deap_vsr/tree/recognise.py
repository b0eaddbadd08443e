"""What a user's own function is: an operator of the catalogue, a guarded one, or something we only call.

By behaviour, never by name: the function is called with numbers at which the usual protected operators differ, and is
recognised only if it has the values of an operator at all of them. Whoever uses an answer calls the function itself
once more (:func:`deap_vsr.gp.answers.differs`); where it then differs, :class:`Own` takes the recognition back.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from deap_vsr.tree.guarded import THRESHOLDS, called, every_opcode, guarded
from deap_vsr.tree.operators import CATALOGUE, Array, Operator, scalar_function

#: Values at which functions are looked at: around 0 and every threshold, ordinary ones, and very large ones.
_NEAR = [0.0, 1e-320, 1e-300, 1e-100, *(f * t for t in THRESHOLDS[1:13] for f in (1.0, 3.0))]
_NEAR += [float(np.nextafter(t, to)) for t in THRESHOLDS[1:13] for to in (0.0, 1.0)]
_ORDINARY = [0.25, 0.7, 1.0, 1.5, 2.0, 2.718281828459045, 3.0, 10.5, 30.0, 709.0, 711.0, 1e5, 1e10, 1e160]
_VALUES = [sign * value for value in (*_NEAR, *_ORDINARY) for sign in (1.0, -1.0)]
_FIRST = [0.0, 1.0, -2.5, 3.7, 1e-5, -1e200]
_PROBES: dict[int, Array] = {
    1: np.array([_VALUES]),
    2: np.array(list(product(_FIRST, _VALUES)) + list(product(_ORDINARY, _ORDINARY))).T,
}
#: What two ways to compute the same may differ by: x**2 and x*x, a few units of the last place.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Own:
    """A user's function that is called as it is, whatever it looks like."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)


@dataclass(frozen=True)
class _Looked:
    """What looking at a function showed; it is kept alive, as it is known by its id."""

    function: Callable[..., Any]
    opcode: int | None
    takes_arrays: bool


_LOOKED: dict[tuple[int, int], _Looked] = {}


def recognised(name: str, function: Callable[..., Any], arity: int) -> Operator | None:
    """Return the operator that has the values of `function`, printed as `name` if it is guarded; None if none has."""
    opcode = _look(function, arity).opcode
    if opcode is None:
        return None
    plain = _BY_OPCODE.get(opcode)
    return plain if plain is not None else called(guarded(opcode), name)


def takes_arrays(function: Callable[..., Any], arity: int) -> bool:
    """Whether `function` has for an array the values that it has for each of its numbers."""
    return _look(function, arity).takes_arrays


def _look(function: Callable[..., Any], arity: int) -> _Looked:
    key = (id(function), arity)
    if key not in _LOOKED:
        inner = function.function if isinstance(function, Own) else function
        _LOOKED[key] = _looked(inner, arity, isinstance(function, Own), function)
    return _LOOKED[key]


def _looked(inner: Callable[..., Any], arity: int, own: bool, function: Callable[..., Any]) -> _Looked:
    """Look at a function; the random streams that it may draw from are left as they were."""
    if arity not in _PROBES:
        return _Looked(function, None, False)
    before, numpy_before = random.getstate(), np.random.get_state()  # noqa: NPY002 - a user's function may use it
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            singly = _by_numbers(inner, arity)
            together = _by_arrays(inner, arity)
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)  # noqa: NPY002
    arrays = together is not None and (singly is None or _same(singly, together))
    values = together if singly is None else singly
    return _Looked(function, None if own or values is None else _opcode(values, arity), arrays)


def _by_numbers(function: Callable[..., Any], arity: int) -> Array | None:
    """Return the values (n_probes,) that a function has when it is called with numbers; None where it cannot be."""
    try:
        return np.asarray(scalar_function(function, arity)(*_PROBES[arity]), dtype=float)
    except Exception:  # whatever a user's function may raise
        return None


def _by_arrays(function: Callable[..., Any], arity: int) -> Array | None:
    """Return the values (n_probes,) that it has when it is called with arrays; None where it is not for that."""
    given = [row.copy() for row in _PROBES[arity]]
    try:
        found = function(*given)
        if not isinstance(found, np.ndarray) or found.shape != given[0].shape or found.dtype.kind not in "biuf":
            return None
    except Exception:
        return None
    unchanged = all(np.array_equal(row, probe) for row, probe in zip(given, _PROBES[arity], strict=True))
    return found.astype(float) if unchanged else None


def _same(a: Array, b: Array) -> bool:
    """Whether values are the same but for rounding; one that is not finite is as good as another."""
    finite = np.isfinite(a)
    return bool((finite == np.isfinite(b)).all() and np.allclose(a[finite], b[finite], rtol=_ROUNDING, atol=0.0))


def _opcode(values: Array, arity: int) -> int | None:
    """Return the op-code of the operator that has these values at the probes."""
    with np.errstate(all="ignore"):
        for opcode, operator in _BY_OPCODE.items():
            if operator.arity == arity and _same(values, np.asarray(operator(*_PROBES[arity]), dtype=float)):
                return opcode
        for opcode in every_opcode(arity):
            if _same(values, np.asarray(guarded(opcode)(*_PROBES[arity]), dtype=float)):
                return opcode
    return None


_BY_OPCODE = {operator.opcode: operator for operator in CATALOGUE.values()}
