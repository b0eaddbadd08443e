"""Checkpoints: everything a run needs to go on where it was, in one JSON file. Nothing in it is executed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from deap import gp

from deap_vsr.engine.fitting import Dataset
from deap_vsr.engine.program import as_columns
from deap_vsr.errors import VsrError, short
from deap_vsr.files import Owned, checked, read_text
from deap_vsr.search.schema import DataState, File
from deap_vsr.tree import Constant, MaskedTree, Node, is_ephemeral, is_mutable, node_from_name, variable, with_flag

Json = dict[str, Any]

#: What a checkpoint holds; those of version 0.1 have no number.
FORMAT = 4


@dataclass
class Checkpoint:
    """A file in which the state of a run is kept.

    Attributes
    ----------
    path : where; written anew and put in place at once, so that a kill leaves the last complete one
    identity : what must be the same for a run to be gone on with (method, seed, settings, ...)
    resume : whether to go on from what is in the file; where there is none, the run starts
    every : float
        Seconds between two writes, at least; a file that takes long to write is written less often.
    extra : callable
        Returns more to be kept, for whoever drives the search; `extra_state` is what the file held.
    """

    path: Path
    identity: Json
    resume: bool = False
    every: float = 5.0
    extra: Callable[[], Json] = dict
    extra_state: Json = field(default_factory=dict)
    _next: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        if not self.path.name:
            raise VsrError("checkpoint: found an empty name, expected the path of a file")
        self._file = Owned(self.path)

    def load(self) -> Json | None:
        """Return the state in the file, or None if the run starts; VsrError if it is of another run."""
        if not self.resume or not self.path.exists():
            return None
        try:
            content = json.loads(read_text(self.path))
        except OSError as error:
            raise VsrError(f"{self.path}: cannot read the checkpoint: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise self.broken() from None
        if isinstance(content, dict) and "identity" in content and content.get("format") != FORMAT:
            raise VsrError(
                f"{self.path}: the checkpoint is of another version of deap_vsr; start anew, without --resume"
            )
        try:
            file = checked(content, File, "")
        except VsrError as error:
            raise self.broken(str(error)) from None
        found, state, self.extra_state = file["identity"], file["state"], file["extra"]
        if file["digest"] != digest(found, self.extra_state, state):
            raise self.broken("its digest is not that of its content, which was changed or damaged")
        wanted = json.loads(json.dumps(self.identity, default=_plain))
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise VsrError(
                    f"{self.path}: the checkpoint is of another run: {key} is {_shown(found.get(key))} there "
                    f"and {_shown(wanted[key])} here"
                )
        return state

    def broken(self, why: str = "") -> VsrError:
        """Return the error to raise for a file that is no checkpoint."""
        what = f" ({why.removeprefix(': ')})" if why else ""
        return VsrError(f"{self.path}: this is no checkpoint{what}; give another file, or leave out --resume")

    def save(self, state: Callable[[], Json]) -> None:
        """Write what `state` returns, if it is time."""
        begun = time.perf_counter()
        if begun < self._next:
            return
        parts = self.identity, self.extra(), state()
        content = dict(zip(("identity", "extra", "state"), parts, strict=True))
        try:
            text = json.dumps({"format": FORMAT, "digest": digest(*parts), **content}, default=_plain)
            self._file.replace(text)
        except OSError as error:
            raise VsrError(f"{self.path}: cannot write the checkpoint: {error.strerror}") from None
        now = time.perf_counter()
        self._next = now + max(self.every, 20.0 * (now - begun) if self.every else 0.0)


def digest(*parts: Json) -> str:
    """Return what tells the parts of a checkpoint from others, the same before they are written and after."""
    return hashlib.sha256(json.dumps(parts, default=_plain).encode()).hexdigest()


class DamagedError(VsrError):
    """A part of a checkpoint that makes no sense; whoever knows the file says which it is."""


@contextmanager
def restoring() -> Iterator[None]:
    """Take over a part of a checkpoint: where what it holds makes no sense, DamagedError says what."""
    try:
        yield
    except DamagedError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, VsrError) as error:
        what = str(error) if isinstance(error, VsrError) else f"{type(error).__name__}: {error}"
        raise DamagedError(short(what.removeprefix(": "), 200)) from None


def expect(holds: bool, what: str) -> None:
    """Raise DamagedError unless something holds that must hold in every checkpoint."""
    if not holds:
        raise DamagedError(f"expected {what}")


def data_from(state: DataState, n_vars: int, weight: Sequence[float] | None = None) -> Dataset:
    """Return the trials of a checkpoint; `weight` has roots of weights, default: 1."""
    X, y, offsets = np.array(state["X"], float), np.array(state["y"], float), np.array(state["offsets"], np.int64)
    roots = np.ones(len(y)) if weight is None else np.array(weight, float)
    expect(len(y) > 0 and X.shape == (len(y), n_vars) and roots.shape == y.shape, f"X of {n_vars} columns, and y")
    increasing = len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(y) and bool((np.diff(offsets) > 0).all())
    expect(increasing, "offsets from 0 to the number of points, each larger than the one before")
    return Dataset(as_columns(X, 0), y, roots, offsets)


def points_from(points: tuple[list[list[float]], list[float]], n_vars: int) -> tuple[Any, Any]:
    """Return X, (n, n_vars), and y, (n,), of a checkpoint."""
    X, y = np.array(points[0], float).reshape(-1, n_vars), np.array(points[1], float)
    expect(len(X) == len(y), "as many answers as points")
    return X, y


def check_trees(trees: Iterable[Sequence[Node]], n_vars: int) -> None:
    """Raise DamagedError where a tree has a variable that there is not."""
    names = {f"x{column + 1}" for column in range(n_vars)}
    for tree in trees:
        for node in tree:
            if not node.arity and isinstance(node.value, str):
                expect(node.value in names, f"variables up to x{n_vars}, not {short(node.value)}")


def _shown(value: Any) -> str:
    return short(repr(value), 400)


def _plain(value: Any) -> Any:
    """What json does not know: numpy's numbers and arrays, sets."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


def tree_state(tree: Sequence[Node]) -> list[Any]:
    """Return a tree with its mask as JSON values; :func:`tree_from` reads it."""
    return [_node_state(node) for node in tree]


def _node_state(node: Node) -> list[Any]:
    if isinstance(node, Constant):
        return ["constant", node.value, node.fitted, node.mutable, node.ret.__name__]
    if is_ephemeral(node):
        return ["ephemeral", type(node).__name__, node.value]
    return ["operator" if node.arity else "leaf", node.name if node.arity else node.value, is_mutable(node)]


def tree_from(state: Sequence[Any], pset: gp.PrimitiveSetTyped | None = None) -> MaskedTree:
    """Return the tree that :func:`tree_state` wrote, its nodes those of `pset`."""
    return MaskedTree(_node_from(item, pset) for item in state).checked()


def _node_from(item: Sequence[Any], pset: gp.PrimitiveSetTyped | None) -> Node:
    kind, name, ret = item[0], item[1], object if pset is None else pset.ret
    if kind == "constant":
        types = {} if pset is None else {kind.__name__: kind for kind in (*pset.terminals, *pset.primitives)}
        expect(len(item) == 5 and _is_number(name), "a constant with its value")
        return Constant(float(name), bool(item[2]), bool(item[3]), types.get(item[4], ret))
    if kind == "ephemeral":
        if pset is None:
            expect(_is_number(item[2]), "a constant with its value")
            return Constant(float(item[2]), ret=ret)
        if name not in pset.mapping:
            raise VsrError(f"the checkpoint has an ephemeral constant {name}, which the primitive set has not")
        drawn = pset.mapping[name].__new__(pset.mapping[name])  # calling the class would draw a number
        gp.Terminal.__init__(drawn, item[2], False, pset.mapping[name].ret)
        node: Node = drawn
        return node
    expect(kind in ("operator", "leaf"), f"a node that is operator, leaf, constant or ephemeral, not {short(kind)}")
    if pset is not None:
        known = str(name) in pset.mapping
        expect(known or (kind == "leaf" and _is_number(name)), f"a primitive of the set, not {short(name)}")
        found = pset.mapping[str(name)] if known else gp.Terminal(name, False, ret)
        return with_flag(found, bool(item[2]))
    if kind == "operator":
        return with_flag(node_from_name(name), bool(item[2]))
    number = str(name)[1:]
    expect(number.isascii() and number.isdecimal() and len(number) < 10, f"a variable such as x1, not {short(name)}")
    return with_flag(variable(int(number)), bool(item[2]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
