"""The data folder: where it is, which problems and suites it holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path


def data_root() -> Path:
    """Return the data folder: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "data"
    return installed if installed.is_dir() else package.parent / "data"


def name_of(path: Path) -> str:
    """Return the name of the problem in `path`: relative to the data folder if it is in it."""
    path = path.resolve().with_suffix("") if path.suffix == ".json" else path.resolve()
    root = data_root().resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def problem_files(place: str | Path) -> list[Path]:
    """Return the problem files of a folder, file, glob pattern or suite name, in natural order."""
    for candidate in (Path(place), data_root() / place, data_root() / f"{place}.json"):
        if is_there(candidate, Path.is_dir):
            return sorted(candidate.rglob("*.json"), key=natural)
        if is_there(candidate, Path.is_file):
            return [candidate]
    pattern = str(place)
    if any(character in pattern for character in "*?["):
        base = Path("/") if Path(pattern).is_absolute() else Path()
        for folder in (base, data_root()):
            try:
                matching = list(folder.glob(pattern.lstrip("/")))
                inside = {file for match in matching if match.is_dir() for file in match.rglob("*.json")}
                found = sorted(inside.union(match for match in matching if match.is_file()), key=natural)
            except (ValueError, OSError):
                return []
            if found:
                return found
    return []


def is_there(path: Path, test: Callable[[Path], bool]) -> bool:
    """Return ``test(path)``; a name too long for a file system names nothing."""
    try:
        return test(path)
    except OSError:
        return False


@lru_cache(maxsize=1)
def problem_names() -> tuple[str, ...]:
    """Return the names of all problems in the data folder."""
    return tuple(name_of(path) for path in problem_files(data_root()))


def natural(name: object) -> list[str | int]:
    """Sort key in which prog_10 comes after prog_9: text and numbers by turns."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", str(name)))]
