"""Imports of version 0.1 keep working: where its modules are now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGES = {
    "tree": ("operators", "notation", "simplify", "expand", "tidy"),
    "judge": ("metrics",),
    "gp": ("variation", "algorithms"),
}
_CONTROL = {
    "problems": ("equation", "dialects", "generate", "suites", "check"),
    "lab": ("oracle", "relevance"),
    "search": (
        "contract",
        "vertical",
        "checkpoint",
        "freezing",
        "hall",
        "identify",
        "short",
        "ties",
        "finish",
        "tables",
    ),
}

#: For each module that was somewhere else in version 0.1, where it is now.
MOVED = {
    **{f"deap_vsr.{name}": f"deap_vsr.{room}.{name}" for room, names in _PACKAGES.items() for name in names},
    **{f"deap_vsr.control.{name}": f"deap_vsr.{room}.{name}" for room, names in _CONTROL.items() for name in names},
    "deap_vsr.control": "deap_vsr.search",
    "deap_vsr.control.experiment": "deap_vsr.lab.trials",
    "deap_vsr.control.outcome": "deap_vsr.search.records",
    "deap_vsr.control.criterion": "deap_vsr.lab.criterion",
    "deap_vsr.forms.selection": "deap_vsr.search.selection",
    "deap_vsr.compare.external": "deap_vsr.peers",
    "deap_vsr.gp_regressor": "deap_vsr.gp.regressor",
}


#: Where else parts of a module are.
SPLIT = {
    "deap_vsr.algorithms": ("deap_vsr.gp.vertical",),
    "deap_vsr.control.contract": ("deap_vsr.lab.budget",),
    "deap_vsr.control.freezing": ("deap_vsr.lab.evidence",),
}


#: What is no longer there, and what is instead.
GONE = {
    "deap_vsr.control.slots": "vertical(lab, Slotwise(...), schedule) in deap_vsr.search.vertical",
    "deap_vsr.control.noisy_slots": "vertical(lab, Slotwise(...), schedule) in deap_vsr.search.vertical",
    "deap_vsr.control.noisy_finish": "deap_vsr.search.finish",
    "deap_vsr.forms.noisy": "vertical(lab, Sums(...), schedule) in deap_vsr.search.vertical",
    "deap_vsr.engine.cache": "nothing used it",
}


class _Finder:
    """Finds modules by the names they had. Its base classes would take longer to import than all of this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in MOVED:
            return ModuleSpec(fullname, self, is_package=fullname == "deap_vsr.control")  # type: ignore[arg-type]
        if fullname in GONE:
            raise ModuleNotFoundError(
                f"{fullname} is gone since version 0.2: {GONE[fullname]}; docs/search.md says what is where"
            )
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        home = MOVED[spec.name]
        warnings.warn(f"{spec.name} is {home} since version 0.2", DeprecationWarning, stacklevel=3)
        return None

    def exec_module(self, module: ModuleType) -> None:
        for name in (*SPLIT.get(module.__name__, ()), MOVED[module.__name__]):
            home = vars(import_module(name))
            module.__dict__.update({key: value for key, value in home.items() if not key.startswith("__")})


def install() -> None:
    """Let the names of version 0.1 be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
