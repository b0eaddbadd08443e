"""The store of a comparison: one JSON line for each finished run, on the disk before the next is waited for.

``pandas.read_json("DIR/runs.jsonl", lines=True)`` reads it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from deap_vsr.compare.job import COLUMNS, NEW_COLUMNS, key_of
from deap_vsr.compare.schema import RunRow, Settings
from deap_vsr.errors import VsrError, short
from deap_vsr.files import checked, finite_json, read_bytes, write_atomically
from deap_vsr.terminal import make_folder

Row = dict[str, Any]

RUNS, SETTINGS = "runs.jsonl", "comparison.json"


class Store:
    """The runs of one comparison, in a folder; to be used in a ``with`` statement.

    A line that was being written when the process was killed is cut off, and its run is missing again. Only one
    process can have the folder open.

    Parameters
    ----------
    settings : what the comparison is of; kept in the folder, and must be the same when it is gone on with
    resume : whether the folder may hold runs already
    retry_failed : whether runs that failed are taken out, and so are missing again
    """

    def __init__(self, folder: Path, settings: Row, resume: bool = False, retry_failed: bool = False) -> None:
        self.folder = folder
        self.path = folder / RUNS
        self.rows: dict[str, Row] = {}
        make_folder(folder)
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise VsrError(f"{self.path}: cannot write: {error.strerror}") from None
        try:
            self._lock()
            self._check_settings(settings, resume)
            rows, good = _read(self.path)
            os.ftruncate(self._fd, good)
            if retry_failed and any(row["status"] == "failed" for row in rows):
                rows = [row for row in rows if row["status"] != "failed"]
                _write(self.path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
                os.close(self._fd)  # of the file that was replaced
                self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND)
                self._lock()
            self.rows = {key_of(row): row for row in rows}
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def append(self, row: Row) -> bool:
        """Write a row to the disk; a run that is there already is not counted twice, and False is returned."""
        if key_of(row) in self.rows:
            return False
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        before = os.fstat(self._fd).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            os.fsync(self._fd)
        except OSError as error:
            with suppress(OSError):  # a torn line is cut off when the folder is opened again
                os.ftruncate(self._fd, before)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            todo = "make room on the disk" if full else "see to the disk"
            raise VsrError(
                f"{self.path}: cannot write: {error.strerror}. {len(self.rows)} runs are safe; {todo} and go on with "
                "the same command and --resume"
            ) from None
        self.rows[key_of(row)] = row
        return True

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise VsrError(f"{self.folder}: another comparison is writing there; give another --out") from None

    def _check_settings(self, settings: Row, resume: bool) -> None:
        path = self.folder / SETTINGS
        if not path.exists():
            if os.fstat(self._fd).st_size:
                raise VsrError(f"{self.folder}: holds runs but no {SETTINGS}, so of what they are is not known")
            _write(path, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
            return
        if not resume:
            raise VsrError(f"{self.folder}: holds a comparison already; go on with --resume, or give another --out")
        found = read_settings(self.folder)
        wanted = json.loads(json.dumps(settings))
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise VsrError(
                    f"{self.folder}: holds another comparison: {key} is {short(found.get(key))} there and "
                    f"{short(wanted[key])} here; give the same settings, or another --out"
                )


def read_settings(folder: Path) -> Row:
    """Return the settings of the comparison in a folder."""
    path = folder / SETTINGS
    try:
        found = finite_json(read_bytes(path))
    except OSError as error:
        raise VsrError(f"{path}: cannot read: {error.strerror}; is this a folder of `vsr compare`?") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise VsrError(f"{path}: these are no settings of a comparison")
    found = {"noise_of": None} | found  # settings of earlier versions do not say it
    checked(found, Settings, str(path))
    return found


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of the comparison in a folder, in the order in which they were finished."""
    return _read(folder / RUNS)[0]


def _read(path: Path) -> tuple[list[Row], int]:
    """Return the rows of a file and how many bytes of it are whole; VsrError for damage but at its very end."""
    try:
        content = read_bytes(path)
    except OSError as error:
        raise VsrError(f"{path}: cannot read: {error.strerror}") from None
    rows: list[Row] = []
    good = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            row = finite_json(line) if line.endswith(b"\n") else None
        except ValueError:
            row = None
        if row is None and number == len(lines):
            break
        if not isinstance(row, dict):
            raise VsrError(f"{path}: line {number} is damaged; take it out and go on with --resume")
        row = dict.fromkeys(NEW_COLUMNS) | row
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise VsrError(f"{path}: line {number} has no {missing[0]}; were these runs made by another version?")
        checked(row, RunRow, f"{path}: line {number}")
        rows.append(row)
        good += len(line)
    return rows, good


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        raise VsrError(f"{path}: cannot write: {error.strerror}") from None
