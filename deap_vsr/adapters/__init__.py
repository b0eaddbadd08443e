"""Benchmarks that come with an oracle of their own, read from the user's own copy of them (docs/adapters.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deap_vsr.adapters.entry import Entry
from deap_vsr.adapters.newtonbench import newtonbench
from deap_vsr.adapters.srsci import srsci
from deap_vsr.errors import VsrError
from deap_vsr.problems.equation import Variable

ADAPTERS = {"srsci": srsci, "newtonbench": newtonbench}


def entry_of(
    adapter: str,
    problem: str,
    domains: Mapping[str, Variable],
    noise: float = 0.0,
    kind: str = "normal",
    seed: int = 0,
) -> Entry:
    """Return a problem of the benchmark that `adapter` names, ``srsci:FOLDER`` or ``newtonbench:FOLDER``.

    Raises
    ------
    VsrError
        For another adapter, a folder that is none, a problem that is not there.
    """
    name, _, folder = adapter.partition(":")
    if name not in ADAPTERS or not folder:
        raise VsrError(f"--adapter {adapter}: expected {' or '.join(f'{each}:FOLDER' for each in ADAPTERS)}")
    return ADAPTERS[name](Path(folder).expanduser(), problem, domains, noise, kind, seed)
