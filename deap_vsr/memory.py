"""How much memory this process has held at most."""

from __future__ import annotations

import os
import re
import resource
import sys
from pathlib import Path
from typing import Any

_PROC = Path("/proc/self")


def peak_memory() -> float:
    """Return the most memory this process has held so far, in MB.

    Where there is /proc its figure is taken: that of getrusage begins, in a process that was just started, with the
    size of the one that started it.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", (_PROC / "status").read_text(encoding="ascii", errors="replace"))
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024 / 1e6
    peak: Any = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1e6 if sys.platform == "darwin" else 1e3)


def held_memory() -> float:
    """Return the memory that this process holds now, in MB; its peak where there is no /proc."""
    try:
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return peak_memory()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forget_peak() -> None:
    """Let the peak begin anew at what is held now, where the system can do that."""
    try:
        (_PROC / "clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass
