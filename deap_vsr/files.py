"""Files that are written whole or not at all, and read with care: somebody may have changed them."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from deap_vsr.errors import VsrError, short

T = TypeVar("T")

#: The largest file of a run (checkpoint, log, store) that is read, in bytes: several times what the longest runs write.
MAX_BYTES = 1_000_000_000
#: Whole numbers of more digits are nothing that a store holds, and no float.
_MAX_DIGITS = 18


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a kill, or a loss of power, leaves all of it or what was there before.

    Raises
    ------
    OSError
        If it cannot be written; what was there before stays.
    """
    content = text.encode()
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Owned:
    """A file that one run writes, after it has read it: what another run writes meanwhile is noticed, not mixed in.

    No lock outlives a write, so a run that is killed keeps nobody out.

    Raises
    ------
    OSError
        By each write, if it cannot be done, or somebody else has written there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = _stamp(path)

    def append(self, text: str) -> None:
        """Write text at the end."""
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._expect_known()
            file.write(text.encode())
            file.flush()
            self._known = _stamp(self.path)

    def replace(self, text: str) -> None:
        """Write the file anew, whole or not at all."""
        self._expect_known()
        write_atomically(self.path, text)
        self._known = _stamp(self.path)

    def _expect_known(self) -> None:
        if _stamp(self.path) != self._known:
            raise OSError(errno.EBUSY, "another run writes there, or it was changed by hand; give each run its own")


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what a file is known by, which another writer changes; None where there is none."""
    try:
        found = path.stat()
    except OSError:  # where it cannot be, writing will say why
        return None
    return found.st_ino, found.st_size


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return what a file holds; a pipe or device, which may never end, is no file.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, or is larger than `most`.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would wait for its writer
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return content


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """Return the UTF-8 text of a file (:func:`read_bytes`); UnicodeDecodeError, a ValueError, where it is none."""
    return read_bytes(path, most).decode("utf-8")


def checked(value: Any, kind: type[T], source: str) -> T:
    """Return a value read from a file, which is of a `kind` (a TypedDict, say); its lists and dicts are copies.

    Raises
    ------
    VsrError
        Naming the file, the place in it, what was found there and what was expected.
    """
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        raise VsrError(f"{source}: {short(place.strip('`') or '$')}: {short(what, 200)}") from None
    except RecursionError:
        raise VsrError(f"{source}: it is nested too deeply") from None
    except UnicodeEncodeError:
        raise VsrError(f"{source}: there is text in it that cannot be written in UTF-8") from None


def finite_json(text: str | bytes) -> Any:
    """Return the JSON value of a text in which every number is finite, and fits a float; else ValueError.

    Escapes that stand for no text (half of a pair of surrogates) are refused as well: they could not be written again.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
        if (b"\\u" if isinstance(text, bytes) else "\\u") in text:  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no finite number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(short(digits))


def _whole(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else _refuse(short(digits))
