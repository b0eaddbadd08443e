"""Promises that take minutes to try: kills, interrupts, bad places, determinism, memory; a line for each that is seen.

``python benchmarks/dependable.py kills --what compare --count 50``; `interrupts`, `places`, `determinism`, `memory`,
`limits` likewise. The exit code is 1 where a promise was not kept.
"""

import csv
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(help=(__doc__ or "").partition("\n")[0], pretty_exceptions_enable=False)
PROBLEM = "trigonometric/inv/3-2-2/prog_1"
METHODS = ("vsr", "vsr-gp", "vsr-mcts", "gp", "mcts")
#: What two runs of the same seed may differ in; of the rows of a comparison too.
VOLATILE = ("seconds", "peak_memory_mb", "points_read", "batches")
ROW_VOLATILE = ("seconds", "peak_memory_mb", "trace", "result")
SUITE = ("trigonometric/inv/2-1-1/prog_[01].json", "--methods", "gp,vsr", "--max-evaluations", "3000")
#: By which processes that a command leaves behind are known.
MARK = "VSR_DEPENDABLE"


def vsr(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "deap_vsr", *map(str, arguments)]


def done(command: Sequence[str], **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)


def command(method: str, *more: str, evaluations: int = 20_000) -> list[str]:
    limits = ["--max-evaluations", str(evaluations), "--max-queries", "6000"]
    return vsr("discover", PROBLEM, "--method", method, *limits, "--json", *more)


def outcome(text: str) -> dict[str, Any]:
    """Return the result that a command printed, without what may differ."""
    found = json.loads(text)
    found["oracle_queries"] += found["points_read"]  # what a log holds is not asked again
    for record in found["rounds"]:
        record.pop("seconds")
    return {key: value for key, value in found.items() if key not in VOLATILE}


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a comparison, in an order of their own, without what may differ."""
    lines = (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    found = [{key: value for key, value in json.loads(line).items() if key not in ROW_VOLATILE} for line in lines]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


@cache
def loaded() -> Callable[[], None]:
    """Return the command; all that it loads has been loaded then."""
    from deap_vsr import cli, discover, terminal  # noqa: F401
    from deap_vsr.__main__ import main

    for method in METHODS:
        discover(PROBLEM, method, max_evaluations=500)
    return main


class Forked:
    """A command in a process that is forked where all modules are loaded: what takes two seconds is done once.

    It has of `subprocess.Popen` what is needed here.
    """

    def __init__(self, given: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        main = loaded()
        self.out, self.said = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            os.environ.update(environment or {})
            os.dup2(self.out.fileno(), 1)
            os.dup2(self.said.fileno(), 2)
            sys.argv = ["vsr", *given[3:]]  # behind python -m deap_vsr
            code: Any = 1
            try:
                main()
            except SystemExit as leaving:
                code = leaving.code or 0
            except BaseException:
                traceback.print_exc()
            finally:
                with suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)

    def wait(self, timeout: float = math.inf) -> int:
        """Return the exit code, as Popen does."""
        until = time.monotonic() + timeout
        while self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise subprocess.TimeoutExpired("vsr", timeout)
            else:
                time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it, if it has not ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float = math.inf) -> tuple[str, str]:
        """Return what it has printed and said, when it has ended."""
        self.wait(timeout)
        told = []
        for file in (self.out, self.said):
            file.seek(0)
            told.append(file.read())
        return told[0], told[1]


# --- kills --------------------------------------------------------------------------------


class Killer:
    """Runs commands, and kills them (-9) at random moments until there have been enough."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.killed, self.rng = count, 0, random.Random(seed)
        self.left: list[str] = []

    def run(self, given: Sequence[str], took: float, most: int = 3) -> None:
        """Start a command up to so many times, and kill it each time; `took` is about how long it takes."""
        for _ in range(self.rng.randint(1, most)):
            mark = f"kill-{os.getpid()}-{self.killed}"
            nowhere, environment = subprocess.DEVNULL, os.environ | {MARK: mark}
            process: Any
            if given[3] == "discover":
                process = Forked(given)
            else:
                process = subprocess.Popen(given, stdout=nowhere, stderr=nowhere, env=environment)
            try:
                process.wait(self.rng.uniform(0.05, 1.0) * took)
            except subprocess.TimeoutExpired:
                self.killed += 1
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.left += left_behind(mark)


def forked(given: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command where all modules are loaded."""
    process = Forked(given)
    out, said = process.communicate()
    return subprocess.CompletedProcess(given, process.wait(), out, said)


def kept(method: str, folder: Path) -> list[str]:
    """Return options with which a run that was killed goes on."""
    return (
        ["--log", str(folder / "log.csv")]
        if method == "vsr"
        else ["--checkpoint", str(folder / "run.json"), "--resume"]
    )


def killed_searches(killer: Killer) -> int:
    """Kill discover, method by method; returns how many runs came to something else."""
    wrong, tried, whole, took = 0, 0, {}, {}
    for method in METHODS:
        begun = time.perf_counter()
        whole[method] = outcome(forked(command(method)).stdout)
        took[method] = time.perf_counter() - begun
    while killer.killed < killer.count:
        method, tried = METHODS[tried % len(METHODS)], tried + 1
        with tempfile.TemporaryDirectory() as name:
            given = command(method, *kept(method, Path(name)))
            killer.run(given, took[method])
            end = forked(given)
        if end.returncode or outcome(end.stdout) != whole[method]:
            wrong += 1
            print(f"{method}: another result after a kill: {end.stderr[-300:]}", flush=True)
    return wrong


def killed_comparisons(killer: Killer) -> int:
    """Kill comparisons, with --resume after each; returns how many came to something else."""
    with tempfile.TemporaryDirectory() as name:
        begun = time.perf_counter()
        end = done(vsr("compare", *SUITE, "--jobs", "2", "--out", f"{name}/whole"))
        took, whole, wrong = time.perf_counter() - begun, rows(Path(name) / "whole"), int(end.returncode != 0)
        while killer.killed < killer.count:
            folder = Path(name) / str(killer.killed)
            given = vsr("compare", *SUITE, "--jobs", "2", "--out", folder, "--resume")
            killer.run(given, took, 8)
            end = done(given)
            print(f"compare: {killer.killed} kills so far", flush=True)
            if end.returncode or rows(folder) != whole:
                wrong += 1
                print(f"compare: something else after a kill: {end.stderr[-300:]}", flush=True)
    return wrong


def campaign(folder: Path, run: Callable[[Sequence[str]], subprocess.CompletedProcess[str]]) -> str:
    """Run a campaign of y = 3.4*E*S/(0.8 + S) to its end; returns what was asked and measured."""
    limits = ["--noise", "exact", "--points", "60", "--operators", "add,mul,div,const", "--sheet", "6"]
    done(vsr("lab", "init", folder, "--knob", "E=0.1:2", "--knob", "S=0.1:5", "--output", "v", *limits))
    while True:
        end = run(vsr("lab", "ask", folder, "--json"))
        if end.returncode:
            return end.stderr
        sheet = json.loads(end.stdout)
        if not sheet["rows"]:
            break
        answers = [{**row, "v": 3.4 * row["E"] * row["S"] / (0.8 + row["S"])} for row in sheet["rows"]]
        filled = folder / "filled.csv"
        with filled.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(answers[0]))
            writer.writeheader()
            writer.writerows(answers)
        end = run(vsr("lab", "tell", folder, filled))
        if end.returncode:
            return end.stderr
    return "".join((folder / name).read_text(encoding="utf-8") for name in ("asked.csv", "measured.csv"))


def killed_campaigns(killer: Killer) -> int:
    """Kill the commands of a laboratory; returns how many campaigns came to something else."""
    with tempfile.TemporaryDirectory() as name:
        begun, n_commands = time.perf_counter(), Counter[str]()

        def plainly(given: Sequence[str]) -> subprocess.CompletedProcess[str]:
            n_commands["all"] += 1
            return done(given)

        whole, wrong = campaign(Path(name) / "whole", plainly), 0
        took = (time.perf_counter() - begun) / n_commands["all"]

        def killed(given: Sequence[str]) -> subprocess.CompletedProcess[str]:
            killer.run(given, took)
            return done(given)

        while killer.killed < killer.count:
            found = campaign(Path(name) / str(killer.killed), killed)
            if found != whole:
                wrong += 1
                print(f"lab: something else after a kill: {found[-300:]}", flush=True)
    return wrong


@app.command()
def kills(what: str = "discover", count: int = 50, seed: int = 0) -> None:
    """Kill runs at random moments (kill -9): they come to what an uninterrupted run comes to.

    `what` is discover (every method in turn), compare or lab.
    """
    killer = Killer(count, seed)
    each = {"discover": killed_searches, "compare": killed_comparisons, "lab": killed_campaigns}
    wrong = each[what](killer)
    print(f"{what}: {killer.killed} kills, {wrong} with another result, left behind: {killer.left or 'nothing'}")
    raise typer.Exit(bool(wrong or killer.left))


# --- interrupts ---------------------------------------------------------------------------


def prepared(folder: Path) -> dict[str, list[str]]:
    """Return every command but long ones of `discover`, with what they need in a folder."""
    done(vsr("compare", *SUITE, "--out", folder / "store"))
    knobs = ["--knob", "E=0.1:2", "--knob", "S=0.1:5"]
    done(vsr("lab", "init", folder / "lab", *knobs))
    done(vsr("lab", "ask", folder / "lab"))
    table = folder / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{a},{b},{a * b + 0.1 * a}\n" for a in range(1, 30) for b in range(1, 9)))
    return {
        "compare": vsr("compare", *SUITE, "--jobs", "2", "--out", folder / "new"),
        "report": vsr("report", folder / "store"),
        "lab init": vsr("lab", "init", folder / "new", *knobs),
        "lab ask": vsr("lab", "ask", folder / "lab"),
        "lab tell": vsr("lab", "tell", folder / "lab", "1=2.5"),
        "lab status": vsr("lab", "status", folder / "lab"),
        "lab report": vsr("lab", "report", folder / "lab", "--out", folder / "new"),
        "lab page": vsr("lab", "page", folder / "lab", "--out", folder / "new"),
        "data list": vsr("data", "list"),
        "data show": vsr("data", "show", PROBLEM),
        "data check": vsr("data", "check", "feynman"),
        "data make": vsr("data", "make", folder / "new"),
        "warm-up": vsr("warm-up"),
        "table": vsr("discover", table, "--target", "y", "--time-limit", "10"),
        "bench engine": vsr("bench", "engine", "--quick"),
        "bench scaling": vsr("bench", "scaling", "--quick"),
        "bench truth": vsr("bench", "truth", "--laws", "2", "--time-limit", "2", "--out", folder / "new"),
        "bench points": vsr("bench", "points", "feynman-unit/I.39.22", "--out", folder / "new"),
    }


def left_behind(mark: str, places: Path | None = None) -> list[str]:
    """Return processes and temporary files of a command that are still there after some seconds."""
    found: list[str] = []
    for _ in range(50):
        found = [f"file {path}" for path in places.iterdir()] if places is not None else []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append(f"process {(process / 'cmdline').read_bytes().decode(errors='replace')[:200]}")
            except OSError:
                pass
        if not found:
            break
        time.sleep(0.1)
    return found


def wait_and_signal(
    given: Sequence[str], kind: signal.Signals, seconds: float, mark: str, places: Path
) -> tuple[int, str, str, list[str]]:
    """Run a command, signal it after so long; returns its exit code, what it printed and said, and what is left."""
    environment = os.environ | {"TMPDIR": str(places), MARK: mark}
    pipe = subprocess.PIPE
    process: Any
    if given[3] == "discover" and "--target" not in given:
        process = Forked(given, environment)
    else:
        process = subprocess.Popen(given, stdout=pipe, stderr=pipe, text=True, env=environment)
    try:
        out, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(kind)
        out, said = process.communicate()
    memory = [path.name for path in Path("/dev/shm").glob("*") if str(process.pid) in path.name]
    return process.returncode, out, said, left_behind(mark, places) + memory


@app.command()
def interrupts(what: str = "discover", count: int = 100, seed: int = 0) -> None:
    """Send SIGINT or SIGTERM at random moments; the exit code, the result, and that nothing is left are looked at.

    `what` is discover (every method in turn), others (every other command in turn), or the name of one.
    """
    rng, wrong, seen = random.Random(seed), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        long = ["trigonometric/inv/6-6-10/prog_0", "--time-limit", "30", "--json"]
        each = {method: vsr("discover", *long, "--method", method) for method in METHODS}
        if what != "discover":
            each = prepared(Path(name))
            each = each if what == "others" else {what: each[what]}
        took = dict.fromkeys(each, 5.0 if what == "discover" else 10.0)
        for number in range(count):
            called = list(each)[number % len(each)]
            kind, code = rng.choice(((signal.SIGINT, 130), (signal.SIGTERM, 143)))
            shutil.rmtree(Path(name) / "new", ignore_errors=True)
            (Path(name) / "new").unlink(missing_ok=True) if (Path(name) / "new").is_file() else None
            begun = time.perf_counter()
            with tempfile.TemporaryDirectory() as places:
                seconds = rng.uniform(0.05, took[called])
                found, out, said, left = wait_and_signal(each[called], kind, seconds, f"{seed}-{number}", Path(places))
            ended = found != code
            if ended:
                took[called] = min(took[called], time.perf_counter() - begun)
            formula = what == "discover" and out.strip() and json.loads(out)["expression"]
            if number % 10 == 9:
                print(f"{number + 1} signals so far, {wrong} wrong", flush=True)
            seen["done before" if ended else "with a formula" if formula else "without one" if out else "early"] += 1
            bad = [f"exit code {found} instead of {code}"] if found not in (code, 0) else []
            bad += ["a traceback"] if "Traceback" in said or "Exception ignored" in said else []
            bad += [f"left: {', '.join(left)}"] if left else []
            if bad:
                wrong += 1
                print(f"{called}, {kind.name} after {seconds:.2f} s: {'; '.join(bad)}: {said[-600:]}", flush=True)
    print(f"{what}: {count} signals, {wrong} wrong; {', '.join(f'{n} {kind}' for kind, n in seen.items())}")
    raise typer.Exit(bool(wrong))


# --- places -------------------------------------------------------------------------------

_MOUNT = "mount -t tmpfs -o size=48k tmpfs {place} && "
_READ_ONLY = _MOUNT + "mount -o remount,ro {place} && "
_NO_TEMPORARY = (
    " && ".join(f"mount -t tmpfs -o ro tmpfs {place}" for place in ("/tmp", "/var/tmp", "/dev/shm")) + " && "
)
#: What is done before the command, in a shell with mounts of its own, and the exit code that is expected.
PLACES = {
    "log, full disk": (_MOUNT, ["--log", "{place}/log.csv", "--max-queries", "20000", "--method", "gp"], 2),
    "checkpoint, full disk": (_MOUNT, ["--checkpoint", "{place}/run.json", "--method", "gp"], 2),
    "log, read-only": (_READ_ONLY, ["--log", "{place}/log.csv"], 2),
    "checkpoint, read-only": (_READ_ONLY, ["--checkpoint", "{place}/run.json", "--method", "gp"], 2),
    "out, read-only": (_READ_ONLY, ["--out", "{place}/out"], 2),
    "no home": ("unset HOME XDG_CACHE_HOME XDG_CONFIG_HOME; ", [], 0),
    "a home that is not there": ("export HOME=/nowhere; ", [], 0),
    "no temporary folder": (_NO_TEMPORARY + "export TMPDIR=/nowhere; cd / && ", [], 0),
}


@app.command()
def places() -> None:
    """Run discover where it cannot write: one clear line, or a result. Needs the right to mount (root)."""
    wrong = 0
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        for name, (before, options, code) in PLACES.items():
            limits = ["--max-evaluations", "60000", "--time-limit", "20", "--json", *options]
            given = " ".join(["exec", *vsr("discover", "trigonometric/inv/3-2-2/prog_1", *limits)])
            end = done(["unshare", "-m", "sh", "-c", (before + given).format(place=place)])
            good = end.returncode == code and "Traceback" not in end.stderr and len(end.stderr.splitlines()) <= 1
            wrong += not good
            print(
                f"{name}: exit code {end.returncode}{'' if good else ', WRONG'}; {end.stderr.strip()[-300:]}",
                flush=True,
            )
    raise typer.Exit(bool(wrong))


# --- determinism and memory ---------------------------------------------------------------

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")


@app.command()
def determinism(count: int = 20, cold: bool = True) -> None:
    """Run with different PYTHONHASHSEED, threads, workers and kernels compiled anew: one result for each method."""
    wrong = 0
    for method in METHODS:
        found = Counter[str]()
        for number in range(count):
            threads = ("1", "4")[number % 2]
            environment = os.environ | dict.fromkeys(_THREADS, threads) | {"PYTHONHASHSEED": str(number + 1)}
            end = done(command(method, evaluations=15_000), env=environment)
            found[json.dumps(outcome(end.stdout), sort_keys=True)] += 1
        if cold:
            with tempfile.TemporaryDirectory() as folder:
                end = done(command(method, evaluations=15_000), env=os.environ | {"NUMBA_CACHE_DIR": folder})
            found[json.dumps(outcome(end.stdout), sort_keys=True)] += 1
        wrong += len(found) != 1
        processes = f"{sum(found.values())} processes{', one with cold kernels' * cold}"
        print(f"{method}: {processes}, {len(found)} results", flush=True)
    with tempfile.TemporaryDirectory() as name:
        wrong += _by_workers(Path(name)) != 1
        wrong += _by_jobs(Path(name)) != 1
    raise typer.Exit(bool(wrong))


def _by_workers(folder: Path) -> int:
    """Return how many results a function has that is asked by several workers."""
    (folder / "law.py").write_text("def law(a, b):\n    return 2.5 * a * b / (a + b)\n", encoding="utf-8")
    given = vsr("discover", "law.py:law", "--domain", "a=1:5", "--domain", "b=1:5", "--json", "--max-queries", "500")
    found = set()
    for workers in ((), ("--workers", "2"), ("--workers", "4"), ("--workers", "2", "--processes")):
        found.add(json.dumps(outcome(done([*given, *workers], cwd=folder).stdout), sort_keys=True))
    print(f"1, 2 and 4 workers, threads and processes: {len(found)} results", flush=True)
    return len(found)


def _by_jobs(folder: Path) -> int:
    """Return how many results a comparison has with several jobs at a time."""
    found = set()
    for jobs in (1, 2, 4):
        done(vsr("compare", *SUITE, "--jobs", jobs, "--out", folder / str(jobs)))
        found.add(json.dumps(rows(folder / str(jobs))))
    print(f"compare with 1, 2 and 4 jobs: {len(found)} results", flush=True)
    return len(found)


@app.command()
def memory(count: int = 500) -> None:
    """Call discover again and again in one process; growth after the first tenth, files and threads that are left."""
    import threading

    from deap_vsr import discover
    from deap_vsr.memory import held_memory

    held, files = 0.0, 0
    for number in range(count):
        discover(PROBLEM, METHODS[number % len(METHODS)], seed=number, max_evaluations=2_000, max_queries=1_000)
        if number == max(count // 10, len(METHODS)):
            held, files = held_memory(), len(os.listdir("/proc/self/fd"))
        if number % 50 == 0:
            print(f"{number}: {held_memory():.1f} MB", flush=True)
    growth = held_memory() / held - 1.0
    more = len(os.listdir("/proc/self/fd")) - files
    print(f"{count} calls: growth {growth:+.1%}, {more} files more, {threading.active_count()} threads")
    raise typer.Exit(growth > 0.05 or more > 0)


# --- limits -------------------------------------------------------------------------------

#: Every method as it is typed, with its expansion.
VARIANTS = (*METHODS, "vsr-gp+slotwise", "vsr-mcts+slotwise", "dsr", "gpmeld", "vsr-dsr", "vsr-gpmeld+slotwise")
NEURAL = re.compile("dsr|meld")
#: A law that is not found soon, one in noise, and the seconds that an answer takes of an oracle that is slow.
HARD, NOISY, SLOW = ("livermore2/Vars7/Vars7-13", 0.0), ("trigonometric/sincosinv/6-6-10/prog_3", 0.1), 0.15


@app.command()
def limits(
    seconds: str = "1,2,5", evaluations: str = "30,300,3000,30000", queries: str = "5,30,300,3000", methods: str = ""
) -> None:
    """Run every method within limits, and see how far it goes beyond: 5 % or a second; 5 % or what a check takes; 0."""
    from importlib.util import find_spec

    from deap_vsr.engine.warm import compile_kernels

    compile_kernels()
    known = [name for name in VARIANTS if find_spec("torch") is not None or not NEURAL.search(name)]
    wrong = 0
    for variant in methods.split(",") if methods else known:
        for law, noise in (HARD, NOISY):
            _limited(variant, law, noise, max_evaluations=10)  # what is imported is no part of a run
            for limit in map(float, seconds.split(",")):
                for pause in (0.0, SLOW):
                    _, took = _limited(variant, law, noise, pause, time_limit=limit)
                    what = f"{variant}, {law}, {limit:g} seconds{', slow' * bool(pause)}"
                    wrong += _beyond(what, took, limit + max(0.05 * limit, 1.0) + pause)
            for limit in map(float, evaluations.split(",")):
                result, _ = _limited(variant, law, noise, max_evaluations=int(limit))
                most = max(1.05 * limit, limit + 300)
                wrong += _beyond(f"{variant}, {law}, {limit:g} evaluations", result.evaluations, most)
            for limit in map(float, queries.split(",")):
                result, _ = _limited(variant, law, noise, max_queries=int(limit), time_limit=10.0)
                wrong += _beyond(f"{variant}, {law}, {limit:g} queries", result.oracle_queries, limit)
    print(f"{wrong} limits were not kept")
    raise typer.Exit(bool(wrong))


def _limited(variant: str, law: str, noise: float, pause: float = 0.0, **limit: float) -> tuple[Any, float]:
    """Return what a method finds within a limit, and how long it took; every call of the oracle takes `pause`."""
    from deap_vsr import CallableOracle, discover, load_equation

    equation = load_equation(law)

    def answer(X: Any) -> Any:
        time.sleep(pause)
        return equation.evaluate(X)

    oracle = CallableOracle(answer, equation.variables, equation.function_set, noise=noise, seed=0)
    method, _, expansion = variant.partition("+")
    begun = time.monotonic()
    result = discover(oracle, method, expansion=expansion or None, **limit)
    return result, time.monotonic() - begun


def _beyond(what: str, used: float, most: float) -> bool:
    """Say what was used; whether that is too much."""
    print(f"{what}: {used:.6g}{'  NOT KEPT' * (used > most)}", flush=True)
    return used > most


if __name__ == "__main__":
    app()
