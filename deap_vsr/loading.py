"""Objects of a user's own by name: ``module:attribute``, or ``file.py:attribute``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from deap_vsr.errors import VsrError


def attribute_of(name: str, what: str) -> Any:
    """Return the attribute that ``module:attribute`` names; `what` it is for, for a message.

    Raises
    ------
    VsrError
        If there is no such module or attribute.
    """
    module, _, attribute = name.rpartition(":")
    try:
        found: Any = _module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, SyntaxError, FileNotFoundError) as error:
        raise VsrError(f"{what} {name}: {error}") from None
    return found


def _module(name: str) -> ModuleType:
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {name}")
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)  # so that other processes can be handed its functions
        spec.loader.exec_module(module)
        return module
    here = os.getcwd()
    sys.path.insert(0, here)  # as for a script that stands beside it
    try:
        return import_module(name)
    finally:
        sys.path.remove(here)
