"""The fuzzer: damaged files for every reader, random laws for discover, for as long as it is told to.

``make fuzz``, or ``python tests/fuzz/fuzz.py --seconds 600 --seed 1 --target store``. A document is refused with a
VsrError or read; a traceback, a crash, more than a second or 300 MB, and a file called `marker` (which only text that
was executed would leave) are failures: they are printed, and what they take is kept in a folder.

A case is known by target, seed and number, so that it can be drawn again. The work is done in a process of its own,
which may crash or hang.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

#: What one document may take: seconds, and MB above what the process holds before.
SECONDS, MEGABYTES = 1.0, 300
#: A run of discover is no reading of a file: it may take longer, and on a busy machine everything does.
GRACE = 30.0


def case(target: str, seed: int, number: int) -> random.Random:
    """Return the random stream that a case is drawn from."""
    return random.Random(f"{target}/{seed}/{number}")


def work(target: str, seed: int, first: int, shown: bool) -> None:
    """Try cases, from `first` on, and print a line of JSON for each, before and after."""
    sys.path.insert(0, str(Path(__file__).parent))
    import targets

    from deap_vsr.errors import VsrError

    warnings.simplefilter("error")  # what numpy warns of would reach a user
    if not shown:
        targets.report.have_matplotlib = lambda: False
    os.chdir(targets.FOLDER)
    chosen, number = targets.TARGETS[target], first
    chosen.document(0) if chosen.documents is not list else None
    try:
        chosen.try_one(chosen.draw(case(target, seed, -1)))  # what is loaded and made once is no document's fault
    except VsrError:
        pass
    except Exception:
        pass
    while True:
        print(json.dumps({"number": number}), flush=True)
        try:
            content = chosen.draw(case(target, seed, number))
        except RecursionError:  # too deep even to be written
            content = b"[" * 10_000
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        outcome, what = "read", ""
        try:
            chosen.try_one(content)
        except VsrError as error:
            outcome, what = "refused", str(error)
        except Exception:
            outcome, what = "failed", traceback.format_exc(limit=-4)
        seconds = time.process_time() - begun
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
        if (seconds > SECONDS and target != "discover" and "checkpoint" not in target) or grown > MEGABYTES:
            outcome, what = "failed", f"took {seconds:.1f} s of the processor and {grown:.0f} MB; {what}"
        if Path("marker").exists():
            outcome, what = "failed", "text of the file was executed"
        print(json.dumps({"number": number, "outcome": outcome, "what": what, "seconds": seconds}), flush=True)
        number += 1


class Worker:
    """The process in which cases are tried."""

    def __init__(self, target: str, seed: int, first: int, shown: bool) -> None:
        command = [sys.executable, __file__, "--work", target, str(seed), str(first), str(int(shown))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._text = b""

    def line(self, seconds: float) -> dict[str, Any] | None:
        """Return what it says next; None if it says nothing for so long, or has ended."""
        until = time.monotonic() + seconds
        while b"\n" not in self._text:
            assert self.process.stdout is not None
            ready, _, _ = select.select([self.process.stdout], [], [], max(until - time.monotonic(), 0))
            more = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not more:
                return None
            self._text += more
        first, _, self._text = self._text.partition(b"\n")
        said: dict[str, Any] = json.loads(first)
        return said

    def end(self) -> int | None:
        """End it; returns the signal that it was ended by before, if any."""
        code = self.process.poll()
        if code is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        return code


def fuzz(target: str, seed: int, seconds: float, shown: bool = False) -> dict[str, Any]:
    """Try cases of a target for so long; returns counts and failures."""
    until = time.monotonic() + seconds
    counts: dict[str, Any] = {"read": 0, "refused": 0, "failed": 0}
    failures: list[dict[str, Any]] = []
    slowest, number = 0.0, 0
    while time.monotonic() < until:
        worker = Worker(target, seed, number, shown)
        wait = 120.0  # the first one compiles, and makes its documents
        while time.monotonic() < until:
            if worker.line(wait) is None:
                failures.append({"number": number, "what": f"the process did not start: {worker.end()}"})
                number += 1
                break
            said = worker.line(GRACE)
            wait = GRACE
            if said is None:
                code = worker.end()
                what = f"no end after {GRACE:g} s" if code is None else f"the process ended with {code}"
                failures.append({"number": number, "what": what})
                counts["failed"] += 1
                number += 1
                break
            counts[said["outcome"]] += 1
            slowest = max(slowest, said["seconds"])
            if said["outcome"] == "failed":
                failures.append({"number": number, "what": said["what"]})
            number += 1
        worker.end()
    return counts | {"slowest": slowest, "failures": failures}


def main() -> int:
    """Fuzz; the exit code says whether anything failed."""
    if "--work" in sys.argv:
        target, seed, first, shown = sys.argv[2:6]
        work(target, int(seed), int(first), bool(int(shown)))
    readers = ("equation", "grammar", "log", "store", "settings", "laboratory", "measured", "asked", "table", "result")
    names = (*readers, "checkpoint gp", "checkpoint vsr-gp", "checkpoint mcts", "checkpoint vsr-mcts", "discover")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=names, default=None)
    parser.add_argument("--pictures", action="store_true", help="draw the pictures of reports too, which takes seconds")
    given = parser.parse_args()
    chosen = [given.target] if given.target else list(names)
    bad = 0
    for name in chosen:
        found = fuzz(name, given.seed, given.seconds / len(chosen), given.pictures)
        total = found["read"] + found["refused"] + found["failed"]
        print(f"{name}: {total} tried, {found['read']} read, {found['refused']} refused, {found['failed']} failed, "
              f"slowest {found['slowest']:.2f} s", flush=True)  # fmt: skip
        kinds: dict[str, dict[str, Any]] = {}
        for failure in found["failures"]:
            kinds.setdefault(" ".join(failure["what"].strip().splitlines()[-3:]), failure)
        for failure in list(kinds.values())[:20]:
            print(f"  seed {given.seed}, number {failure['number']}: {failure['what'].strip()}", flush=True)
        bad += len(found["failures"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
