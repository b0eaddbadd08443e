"""The oracle of an external program: one process a point, or one a batch with CSV or JSON lines in and out."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deap_vsr.errors import OracleError, OracleFailure, short
from deap_vsr.lab.streams import Answer, Heard, StreamOracle, Workers, answer_of
from deap_vsr.tree.operators import Array

FORMATS = ("csv", "jsonl")
#: The place in a command of the file with the points of a batch.
POINTS = "points"
_PLACE = re.compile(r"\{(\w+)\}")
#: How much of what a program says on its way out is told.
MAX_TOLD = 300


class ProgramOracle(StreamOracle):
    """An oracle for a program that computes y.

    Parameters
    ----------
    command : text, or a list of arguments
        Text is split as a shell would split it, and no shell sees it unless `shell` is set. With ``{T}`` for each
        variable there is a process for each point, which prints a number in its last line: or a number and its
        standard error, or a JSON object or numbers for several `outputs`. Without, there is a process for each batch:
        it reads points from its standard input, or the file that ``{points}`` stands for, and prints a line for each.
    form : "csv" or "jsonl": the lines of batches, in and out
    timeout : seconds that a process may take; default: no limit
    retries : how often a process that fails is started again
    shell : whether the command is for a shell
    workers : processes at the same time
    variables, function_set, others : as of :class:`StreamOracle`
    """

    def __init__(
        self,
        command: str | Sequence[str],
        variables: Sequence[Any],
        function_set: Sequence[str],
        *,
        form: str = "csv",
        timeout: float | None = None,
        retries: int = 0,
        shell: bool = False,
        workers: int = 1,
        **others: Any,
    ) -> None:
        super().__init__(variables, function_set, workers=workers, **others)
        if form not in FORMATS:
            raise OracleError(f"form is {form!r}, expected {' or '.join(FORMATS)}")
        if timeout is not None and not timeout > 0:
            raise OracleError(f"timeout is {timeout!r}, expected a number of seconds above 0")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise OracleError(f"retries is {retries!r}, expected a whole number of at least 0")
        self.form = form
        self.per_point = self._places(command)
        self._program = Program(_arguments(command, shell), timeout, retries, shell)
        self._workers = Workers(workers)

    def _places(self, command: str | Sequence[str]) -> bool:
        """Return whether the command has places for variables, of which each must have one."""
        text = command if isinstance(command, str) else " ".join(command)
        places = set(_PLACE.findall(text.replace("{{", "")))
        wanted = {variable.name for variable in self.variables}
        unknown = places - wanted - {POINTS}
        if unknown:
            raise OracleError(
                f"the command has {{{sorted(unknown)[0]}}}, which is no variable; variables are "
                f"{', '.join(self.names)} (a brace that stands for itself is written {{{{)"
            )
        missing = wanted - places
        if places & wanted and missing:
            raise OracleError(
                f"the command has no place for {', '.join(sorted(missing))}: write {{{sorted(missing)[0]}}}"
            )
        return bool(places & wanted)

    def heard(self, X: Array) -> Iterator[Heard]:
        """Yield the answer at each point of X, (n_points, n_vars), as it comes."""
        try:
            yield from self._workers.each(self._at, list(X)) if self.per_point else self._of_batches(X)
        except BaseException:  # Ctrl-C: nobody waits for what still runs
            self._program.end()
            raise

    def _of_batches(self, X: Array) -> Iterator[Heard]:
        # As many processes at the same time as there are workers, each with its share of the points.
        shares = [share for share in np.array_split(np.arange(len(X)), self.workers) if len(share)]
        for part, told in self._workers.each(self._batch, [X[share] for share in shares]):
            share = shares[part]
            if isinstance(told, Exception) and len(share) > 1:  # one of its points may be to blame
                for place, alone in self._workers.each(self._batch, [X[at][None] for at in share]):
                    yield int(share[place]), alone if isinstance(alone, Exception) else alone[0]
                continue
            for place, at in enumerate(share.tolist()):
                yield at, told if isinstance(told, Exception) else told[place]

    def _at(self, x: Array) -> Answer:
        """Return the answer at one point, (n_vars,)."""
        values = {name: _text(value) for name, value in self.row(x).items()}
        return self._read(self._program.run(values))

    def _read(self, text: str) -> Answer:
        return answer_of(_last_line(text, self.outputs), self.outputs, self.output)

    def _batch(self, X: Array) -> list[Any]:
        """Return the answers of a batch."""
        text = self._written(X)
        with tempfile.TemporaryDirectory(prefix="vsr-") as folder:
            path = Path(folder) / f"points.{self.form}"
            path.write_text(text, encoding="utf-8")
            told = self._program.run({POINTS: str(path)}, text)
        lines = [line for line in told.splitlines() if line.strip()]
        if self.form == "csv" and len(lines) == len(X) + 1:
            header, lines = [cell.strip() for cell in next(csv.reader(lines[:1]))], lines[1:]
        else:
            header = []
        if len(lines) != len(X):
            raise OracleFailure(f"the program printed {len(lines)} line(s) for {len(X)} point(s)")
        return [self._understood(line, header) for line in lines]

    def _understood(self, line: str, header: Sequence[str]) -> Any:
        try:
            if not header:
                return self._read(line)
            row = dict(zip(header, next(csv.reader([line])), strict=False))
            named = {name: _number(row[name]) for name in self.outputs or self._answer(header) if name in row}
            return answer_of(named if self.outputs else next(iter(named.values()), None), self.outputs)
        except OracleFailure as error:
            return error

    def _answer(self, header: Sequence[str]) -> list[str]:
        """Return the column of a header that has the answer: the one of its name, y, or the last."""
        return [name for name in (self.output, "y") if name in header][:1] or [header[-1]]

    def _written(self, X: Array) -> str:
        rows = [self.row(x) for x in X]
        if self.form == "jsonl":
            return "".join(json.dumps(row) + "\n" for row in rows)
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(self.names)
        table.writerows([_text(value) for value in row.values()] for row in rows)
        return text.getvalue()


def _arguments(command: str | Sequence[str], shell: bool) -> tuple[str, ...]:
    """Return the arguments of a command, the program first; a clear error if there is no such program."""
    if shell:
        return (command if isinstance(command, str) else shlex.join(command),)
    try:
        parts = tuple(shlex.split(command)) if isinstance(command, str) else tuple(map(str, command))
    except ValueError as error:
        raise OracleError(f"command {short(command)!r}: {error}") from None
    if not parts:
        raise OracleError("the command is empty")
    if shutil.which(parts[0]) is None:
        hint = (
            "" if "/" in parts[0] or not Path(parts[0]).exists() else f"; there is a file of that name: ./{parts[0]}?"
        )
        raise OracleError(f"command: {short(parts[0])!r} is no program that can be run{hint}")
    return parts


@dataclass(frozen=True)
class Program:
    """A command with places, and how it is run."""

    arguments: tuple[str, ...]
    timeout: float | None
    retries: int
    shell: bool
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)

    def end(self) -> None:
        """End what is running."""
        for process in list(self.running):
            _end(process)

    def run(self, values: dict[str, str], given: str = "") -> str:
        """Return what it prints, with values in its places and text on its standard input; tried again if it fails."""
        filled = [_filled(argument, values) for argument in self.arguments]
        for attempt in range(self.retries + 1):
            try:
                return self._once(filled, given)
            except OracleFailure:
                if attempt == self.retries:
                    raise
        raise AssertionError  # pragma: no cover

    def _once(self, filled: list[str], given: str) -> str:
        # A shell only where the user asks for one, with a command of their own.
        process = subprocess.Popen(
            filled[0] if self.shell else filled,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            shell=self.shell,  # nosec B602
            start_new_session=True,  # so that what it has started ends with it
        )
        self.running.add(process)
        try:
            out, err = process.communicate(given, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            raise OracleFailure(f"the program took longer than {self.timeout:g} s") from None
        except BaseException:
            _end(process)
            process.communicate()
            raise
        finally:
            self.running.discard(process)
        if process.returncode:
            told = " ".join((err or out).split())[-MAX_TOLD:]
            raise OracleFailure(f"the program ended with {process.returncode}: {short(told, MAX_TOLD)}")
        return out


def _end(process: subprocess.Popen[str]) -> None:
    """End a process, and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _filled(argument: str, values: dict[str, str]) -> str:
    parts = argument.split("{{")
    return "{".join(_PLACE.sub(lambda match: values.get(match[1], match[0]), part) for part in parts).replace("}}", "}")


def _text(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return math.nan if not text.strip() else text


def _last_line(text: str, outputs: Sequence[str]) -> Any:
    """Return what the last line of a text says: numbers with commas or blanks between them, or JSON."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise OracleFailure("the program printed nothing")
    line = lines[-1]
    if line[0] in "[{":
        try:
            told = json.loads(line)
        except ValueError:
            raise OracleFailure(f"the program printed {short(line)!r}, which is no JSON") from None
        return told if outputs or not isinstance(told, dict) or "y" not in told else _y_and_sigma(told)
    numbers = [_number(cell) for cell in re.split(r"[,;\s]+", line) if cell]
    if outputs:
        return numbers
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _y_and_sigma(told: dict[str, Any]) -> Any:
    return (told["y"], told["sigma"]) if "sigma" in told else told["y"]
