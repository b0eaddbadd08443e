"""What is fuzzed: every reader of files, and discover with laws drawn at random.

A target makes its sound documents once, draws a damaged one from a seed, and reads it: VsrError is a refusal, anything
else that is raised is a failure.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mutate

import deap_vsr.compare.report as report
from cfg_mcts import Grammar
from deap_vsr import Campaign, Result, discover
from deap_vsr.campaign.folder import State, load, save_measured
from deap_vsr.compare.job import key_of
from deap_vsr.compare.store import Store, read_rows, read_settings
from deap_vsr.lab.log import Log
from deap_vsr.problems.equation import load_equation, parse_equation
from deap_vsr.problems.suites import data_root
from deap_vsr.search.checkpoint import Checkpoint, digest
from deap_vsr.table_command import columns_of, read_table

FOLDER = Path(tempfile.mkdtemp(prefix="vsr-fuzz-"))
PROBLEM = "trigonometric/inv/3-2-2/prog_1"
METHODS = ("vsr", "vsr-gp", "vsr-mcts", "gp", "mcts")


@dataclass
class Target:
    """A reader: sound documents, how one is written, and what reads it.

    Attributes
    ----------
    documents : makes the sound ones, JSON values or text
    read : reads a file; raises VsrError where it refuses it
    write : JSON value to text
    """

    documents: Callable[[], list[Any]]
    read: Callable[[Path], Any]
    write: Callable[[Any], str] = mutate.dumps
    _made: list[Any] = field(default_factory=list)
    _spots: dict[int, list[Any]] = field(default_factory=dict)

    def document(self, number: int) -> Any:
        """Return one of the sound documents."""
        self._made = self._made or self.documents()
        return self._made[number % len(self._made)]

    def draw(self, rng: random.Random) -> bytes:
        """Return a damaged document."""
        self.document(0)
        number = rng.randrange(len(self._made))
        whole = self._made[number]
        if isinstance(whole, str):
            text = whole.encode()
            for _ in range(rng.randint(1, 3)):
                text = mutate.torn(text, rng)
            return text
        if rng.random() < 0.15:
            return mutate.torn(self.write(whole).encode("utf-8", "surrogatepass"), rng)
        spots = self._spots.setdefault(number, mutate.places(whole))
        return self.write(mutate.damaged(whole, rng, spots)).encode("utf-8", "surrogatepass")

    def try_one(self, content: bytes) -> None:
        """Read a document; whatever is raised, but for VsrError, is a failure."""
        path = FOLDER / "document"
        path.write_bytes(content)
        self.read(path)


# --- equation files -----------------------------------------------------------------------


def _equations() -> list[Any]:
    names = ("feynman/I.39.22", "livermore2/Vars3/Vars3-1", "trigonometric/inv/2-1-1/prog_0")
    ours = [json.loads((data_root() / f"{name}.json").read_text()) for name in names]
    first = ours[0]
    theirs = {
        "num_vars": first["num_vars"], "function_set": str(first["function_set"]), "eq_name": "a law",
        "eq_expression": str(first["equation"]),
        "vars_range_and_types": [
            {"name": "LogUniform", "range": [0.1, 10], "only_positive": True} for _ in first["variables"]
        ],
    }  # fmt: skip
    tuples = repr(
        {**{key: first[key] for key in ("num_vars", "var_domains", "function_set")}, "equation": [("x1", "var")]}
    )
    return [*ours, theirs, tuples, "0\n" + tuples]


# --- checkpoints --------------------------------------------------------------------------


class _EnoughError(Exception):
    pass


def checkpoint_of(method: str, saves: int = 4) -> dict[str, Any]:
    """Return what is in the file after so many writes of a run."""
    path = FOLDER / f"{method}.json"
    save, left = Checkpoint.save, [saves]

    def counted(self: Checkpoint, state: Any) -> None:
        self.every, self._next = 0.0, 0.0
        save(self, state)
        left[0] -= 1
        if not left[0]:
            raise _EnoughError

    Checkpoint.save = counted  # type: ignore[method-assign]
    try:
        discover(PROBLEM, method, checkpoint=path, max_evaluations=30_000, max_queries=4_000)
    except _EnoughError:
        pass
    finally:
        Checkpoint.save = save  # type: ignore[method-assign]
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def _signed(content: Any) -> str:
    """Return the text of a checkpoint, with a digest that is right, so that what is behind it is reached."""
    if isinstance(content, dict) and {"identity", "extra", "state"} <= set(content):
        content = content | {"digest": digest(content["identity"], content["extra"], content["state"])}
    return mutate.dumps(content)


def _resume(method: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        return discover(PROBLEM, method, checkpoint=path, resume=True, max_evaluations=9_000, max_queries=1_500)

    return read


# --- stores -------------------------------------------------------------------------------


def _rows() -> list[Any]:
    result = {"rounds": [_round()], "rivals": [], "reason": "why", "share": 0.1}
    found = [
        {"status": "done", "standing": "found", "result": result},
        {"status": "failed", "error": "no reason", "expression": None, "result": None, "trace": []},
    ]  # fmt: skip
    row = {
        "problem": "trigonometric/inv/2-1-1/prog_0", "method": "gp", "seed": 0, "noise": 0.0, "optimizer": None,
        "preset": None, "time_limit": None, "max_evaluations": 1000, "max_queries": None, "set": "trigonometric/inv",
        "group": "(2,1,1)", "n_vars": 2, "digest": "0", "error": None, "recovered": False, "standing": None,
        "false_found": False, "mse": 0.1, "nmse": 0.1, "rmse": 0.3, "nrmse": 0.3, "inv_nmse": 0.9, "inv_nrmse": 0.8,
        "r2": 0.9, "stopped_by": "evaluations", "expression": "x1 + 2*x2", "seconds": 1.5, "evaluations": 1000,
        "oracle_queries": 500, "peak_memory_mb": 3.0,
        "trace": [{"round": 1, "error": 0.5, "seconds": 0.1, "evaluations": 10, "queries": 40}],
        "versions": {"python": "3"}, "machine": {"processor": "some", "cores": 2, "system": "Linux"},
    }  # fmt: skip
    done = [row | found[0] | {"method": method, "seed": seed} for method in ("gp", "vsr") for seed in (0, 1)]
    return [[*done, row | found[1] | {"seed": 2}]]


def _round() -> dict[str, Any]:
    nodes = [["operator", "add", False], ["leaf", "x1", False], ["constant", 1.0, True, True, "object"]]
    return {
        "freed": ["x1"], "controlled": ["x2"], "expression": "x1 + C", "nodes": nodes, "errors": [1e-9, None],
        "constants": [], "slots": 1, "accepted": True, "queries": 1, "seconds": 0.1,
    }  # fmt: skip


SETTINGS = {
    "version": "0.2.0", "suites": ["trigonometric/inv/2-1-1"], "methods": ["gp", "vsr"], "seeds": [0, 1],
    "noise": [0.0], "optimizers": [None], "preset": None, "time_limit": None, "max_evaluations": 1000,
    "max_queries": None, "runs": 5, "left_out": [], "problems": {},
}  # fmt: skip


def _lines(rows: Any) -> str:
    return "".join(mutate.dumps(row) + "\n" for row in rows) if isinstance(rows, list) else mutate.dumps(rows)


def _store(settings: bytes, runs: bytes) -> Path:
    folder = FOLDER / "store"
    folder.mkdir(exist_ok=True)
    (folder / "comparison.json").write_bytes(settings)
    (folder / "runs.jsonl").write_bytes(runs)
    return folder


def _report(path: Path) -> Any:
    folder = _store(json.dumps(SETTINGS).encode(), path.read_bytes())
    report.write_report(folder)
    with Store(folder, SETTINGS, resume=True) as store:
        return [key_of(row) for row in store.rows.values()]


def _settings(path: Path) -> Any:
    folder = _store(path.read_bytes(), _lines(_rows()[0]).encode())
    report.write_report(folder)
    return read_settings(folder), read_rows(folder)


# --- logs and grammars --------------------------------------------------------------------


def _grammar(path: Path) -> Any:
    grammar = Grammar.from_file(path)
    return discover(PROBLEM, "mcts", grammar=grammar, max_evaluations=30, max_queries=400)


def _log(path: Path) -> Any:
    Log(["x1", "x2"], path)
    return Log(["x1", "x2"], path)


# --- laboratories, tables and results -----------------------------------------------------

ASKED = "id,batch,why,E,S,status\n1,1,first,0.5,1.0,open\n2,1,second,1.0,2.0,done\n"
MEASURED = "id,E,S,v,sigma,valid,comment\n2,1.0,2.0,2.43,0.02,1,\n,0.7,1.5,1.9,,1,by hand\n1,0.5,1.0,,,0,spilt\n"
SHEETS = (MEASURED, "id;E;S;v\n1;0,5;1,0;0,94\n2;1,0;2,0;2,4\n", "v [mM/s],S,E\n1e-3,2,1\n")
TABLES = ("a,b,y\n1,2,3.5\n2,3,\n4,5.5,1e300\n", "a;b;y\n1,5;2;3\n")


def laboratory(lab: str | bytes, asked: str | bytes, measured: str | bytes) -> State:
    """Return what a folder of these files says, written once more."""
    folder = FOLDER / "lab"
    folder.mkdir(exist_ok=True)
    for name, content in (("lab.json", lab), ("asked.csv", asked), ("measured.csv", measured)):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    save_measured(folder, load(folder))
    return load(folder)


def made_laboratory() -> str:
    """Return the lab.json of a sound one."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    Campaign(folder, {"E": (0.1, 2.0), "S": {"low": 0.1, "high": 5.0, "unit": "mM", "cost": 3}}, output="v", noise="1%")
    return (folder / "lab.json").read_text()


def _seen(state: State) -> Any:
    return state.open, state.answers, state.repeats, state.before, state.everything


def _lab(path: Path) -> Any:
    return _seen(laboratory(path.read_bytes(), ASKED, MEASURED))


def _measured(path: Path) -> Any:
    return _seen(laboratory(made_laboratory(), ASKED, path.read_bytes()))


def _asked(path: Path) -> Any:
    return _seen(laboratory(made_laboratory(), path.read_bytes(), MEASURED))


def _table(path: Path) -> Any:
    table = path.with_name("table.csv")
    table.write_bytes(path.read_bytes())
    return columns_of(read_table(table), table, "y", "", [])


def _results() -> list[Any]:
    found = []
    for method, noise in (("vsr", 0.0), ("gp", 0.1)):
        discover(PROBLEM, method, noise=noise, max_evaluations=3_000, max_queries=300).save(FOLDER / "result.json")
        found.append(json.loads((FOLDER / "result.json").read_text()))
    return found


def _result(path: Path) -> Any:
    result = Result.load(path)
    shown = repr(result), result._repr_html_(), result.latex, result.formula
    return shown, json.dumps(result.to_json()), [record.tree.to_infix() for record in result.rounds]


# --- discover -----------------------------------------------------------------------------

_OPERATORS = ("add", "sub", "mul", "div", "inv", "sqrt", "n2", "n3", "exp", "log", "sin", "cos", "abs", "pow")


def _law(path: Path) -> Any:
    drawn = json.loads(path.read_text())
    equation = parse_equation(json.dumps(drawn["equation"]), "law")
    return discover(equation, **drawn["options"])


class Laws(Target):
    """Laws, domains and operator sets drawn at random, with extreme numbers among them."""

    def draw(self, rng: random.Random) -> bytes:
        """Return a law with options of discover."""
        n_vars = rng.randint(1, 3)
        size = rng.choice((1.0, 1.0, 1.0, 1e-300, 1e-30, 1e14, 1e80, 1e150, 1e300))
        used: list[str] = []
        tokens = self._tokens(rng, n_vars, size, rng.randint(0, 3), used)
        extra = rng.sample(_OPERATORS, rng.randint(0, 4))
        options: dict[str, Any] = {"method": rng.choice(METHODS), "seed": rng.randrange(100)}
        options["max_evaluations"] = rng.choice((1, 10, 100, 300))
        if rng.random() < 0.5:
            options["max_queries"] = rng.choice((1, 10, 100, 300))
        if rng.random() < 0.2:
            options["noise"] = rng.choice((1e-12, 0.01, 1.0))
        equation = {
            "num_vars": n_vars, "equation": tokens, "variables": [self._variable(rng, i) for i in range(n_vars)],
            "function_set": sorted({*used, *extra, *rng.choice(((), ("const",)))}) or ["const"],
        }  # fmt: skip
        return json.dumps({"equation": equation, "options": options}).encode()

    def _tokens(self, rng: random.Random, n_vars: int, size: float, depth: int, used: list[str]) -> list[list[str]]:
        if not depth:
            constant = repr(rng.choice((size, -size, rng.uniform(-3, 3), 2.0, 0.0)))
            return [[constant, "const"]] if rng.random() < 0.4 else [[f"x{rng.randint(1, n_vars)}", "var"]]
        name = rng.choice(_OPERATORS)
        used.append(name)
        arity = 2 if name in ("add", "sub", "mul", "div", "pow") else 1
        inner = [self._tokens(rng, n_vars, size, depth - 1, used) for _ in range(arity)]
        return [[name, "binary" if arity == 2 else "unary"], *(token for part in inner for token in part)]

    def _variable(self, rng: random.Random, i: int) -> dict[str, Any]:
        low = rng.choice((0.0, 0.1, 1.0, 1e-300, 1e-12, 1e10, 1e150))
        high = low + rng.choice((1.0, 1e-9, 1e-3)) * max(low, 1.0) * rng.choice((1.0, 10.0, 1e5, 1e100))
        sampling = "loguniform" if low > 0 and rng.random() < 0.3 else "uniform"
        return {
            "name": f"x{i + 1}",
            "low": low,
            "high": high,
            "sampling": sampling,
            "sign": rng.choice(("positive", "both")),
        }


GRAMMARS = (
    "# products\nA -> C * P\nP -> P * P | V | V**2\n   | inv(V)\nV -> x1 | x2\n",
    "A -> A + A | sin(A) | x3 | C\n",
)
LOGS = ("x1,x2,y\n1.0,2.0,3.0\n1.5,2.5,nan\n", "x1,x2,y,sigma\n1.0,2.0,3.0,0.1\n1.5,2.5,1e300,\n")

TARGETS: dict[str, Target] = {
    "equation": Target(_equations, load_equation),
    "grammar": Target(
        lambda: [*GRAMMARS],
        _grammar,
    ),
    "log": Target(lambda: [*LOGS], _log),
    **{
        f"checkpoint {method}": Target(lambda method=method: [checkpoint_of(method)], _resume(method), _signed)
        for method in ("gp", "vsr-gp", "mcts", "vsr-mcts")
    },
    "store": Target(_rows, _report, _lines),
    "settings": Target(lambda: [SETTINGS], _settings),
    "laboratory": Target(lambda: [json.loads(made_laboratory())], _lab),
    "measured": Target(lambda: [*SHEETS], _measured),
    "asked": Target(lambda: [ASKED], _asked),
    "table": Target(lambda: [*TABLES], _table),
    "result": Target(_results, _result),
    "discover": Laws(list, _law),
}  # fmt: skip
