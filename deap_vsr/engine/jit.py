"""numba's compiler with our settings: cached on disk wherever a place for that can be found.

What a machine compiles at first use is kept small (:mod:`deap_vsr.engine.warm` measures it): a kernel is called with
types of one kind only, and slices are not assigned to slices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

#: Where kernels are, and the numbers that they know operators by. One has others, and their numbers, compiled into it.
SOURCES = (
    *(f"engine/{name}.py" for name in ("guards", "householder", "jit", "kernels", "levenberg", "subsets", "trials")),
    *(f"tree/{name}.py" for name in ("guarded", "operators")),
)
#: What compiles them. numba looks at its own version only, and what numpy's functions do in a kernel is numpy's.
COMPILERS = (numba.__version__, np.__version__)


def jit(function: F) -> F:
    """Compile `function` on first use; divisions by zero give inf as in numpy, threads may run it."""
    return _compile(function, {})


def jit_sums(function: F) -> F:
    """The same for functions that only add up: the order of additions is the compiler's choice."""
    return _compile(function, {"fastmath": {"reassoc", "contract"}})


def jit_within(function: F) -> F:
    """The same for a part of one kernel: compiled as lines of that, and not by itself before."""
    return _compile(function, {"inline": "always"})


def _compile(function: F, extra: dict[str, Any]) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **extra}
    name = function.__qualname__
    function.__qualname__ = f"{name}-{DIGEST}"  # what its file in the cache is called
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the install folder nor the user's cache folder can be written
        compiled = numba.njit(**options)(function)
    finally:
        function.__qualname__ = name
    return compiled


def digest_of(folder: Path, compilers: Sequence[str] = COMPILERS) -> str:
    """Return what tells the kernels of one version of the package, and of what compiles it, from those of another.

    numba compiles a kernel anew where its own file has changed, and not where one that it calls has.
    """
    texts = (folder / source for source in SOURCES)
    parts = [*(text.read_bytes() for text in texts if text.exists()), " ".join(compilers).encode()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


DIGEST = digest_of(Path(__file__).parents[1])
