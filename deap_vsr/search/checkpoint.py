"""Checkpoints: everything a run needs to go on where it was, in one JSON file. Nothing in it is executed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from deap import gp

from deap_vsr.errors import VsrError
from deap_vsr.files import write_atomically
from deap_vsr.tree import Constant, MaskedTree, Node, is_ephemeral, is_mutable, node_from_name, variable, with_flag

Json = dict[str, Any]

#: What a checkpoint holds; those of version 0.1 have no number.
FORMAT = 3


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

    def load(self) -> Json | None:
        """Return the state in the file, or None if the run starts; VsrError if it is of another run."""
        if not self.resume or not self.path.exists():
            return None
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if content.get("format") != FORMAT and "identity" in content:
                raise VsrError(
                    f"{self.path}: the checkpoint is of another version of deap_vsr; start anew, without --resume"
                )
            found, state, self.extra_state = dict(content["identity"]), dict(content["state"]), content["extra"]
        except OSError as error:
            raise VsrError(f"{self.path}: cannot read the checkpoint: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self.broken() from None
        wanted = json.loads(json.dumps(self.identity, default=_plain))
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise VsrError(
                    f"{self.path}: the checkpoint is of another run: {key} is {found.get(key)!r} there "
                    f"and {wanted[key]!r} here"
                )
        return state

    def broken(self) -> VsrError:
        """Return the error to raise for a file that is no checkpoint."""
        return VsrError(f"{self.path}: this is no checkpoint; give another file, or leave out --resume")

    def save(self, state: Callable[[], Json]) -> None:
        """Write what `state` returns, if it is time."""
        begun = time.perf_counter()
        if begun < self._next:
            return
        content = {"format": FORMAT, "identity": self.identity, "extra": self.extra(), "state": state()}
        try:
            write_atomically(self.path, json.dumps(content, default=_plain))
        except OSError as error:
            raise VsrError(f"{self.path}: cannot write the checkpoint: {error.strerror}") from None
        now = time.perf_counter()
        self._next = now + max(self.every, 20.0 * (now - begun) if self.every else 0.0)


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
    kind, name = item[0], item[1]
    ret = object if pset is None else pset.ret
    if kind == "constant":
        types = {} if pset is None else {kind.__name__: kind for kind in (*pset.terminals, *pset.primitives)}
        return Constant(float(name), bool(item[2]), bool(item[3]), types.get(item[4], ret))
    if kind == "ephemeral":
        if pset is None:
            return Constant(float(item[2]), ret=ret)
        if name not in pset.mapping:
            raise VsrError(f"the checkpoint has an ephemeral constant {name}, which the primitive set has not")
        drawn = pset.mapping[name].__new__(pset.mapping[name])  # calling the class would draw a number
        gp.Terminal.__init__(drawn, item[2], False, pset.mapping[name].ret)
        node: Node = drawn
        return node
    if pset is not None:
        found = pset.mapping[str(name)] if str(name) in pset.mapping else gp.Terminal(name, False, ret)
        return with_flag(found, bool(item[2]))
    return with_flag(node_from_name(name) if kind == "operator" else variable(int(name[1:])), bool(item[2]))
