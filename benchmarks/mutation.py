"""Mutation testing: small changes to modules on which promises rest, and whether their tests notice.

``make mutation``, or ``python benchmarks/mutation.py --per-module 10 --seed 1``. A change is one of: a comparison
turned round, + for -, `and` for `or`, a number one larger, a condition negated. A mutant is killed if one of the
module's tests fails, or takes too long. Survivors are printed with their line. It works in a copy, in processes forked
when all that is large has been loaded.
"""

import ast
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest
import typer

ROOT = Path(__file__).parents[1]
#: Modules, and the tests that are theirs, the quickest first.
_FREEZING = ["tests/search/test_freezing.py", "tests/search/test_joint.py"]
MODULES = {
    "deap_vsr/tree/masked.py": ["tests/tree/test_masked_tree.py", "tests/tree/test_stock_deap_operators.py"],
    "deap_vsr/search/freezing.py": _FREEZING,
    "deap_vsr/lab/evidence.py": ["tests/lab/test_evidence.py", "tests/lab/test_lab.py", *_FREEZING],
    "deap_vsr/search/round.py": [*_FREEZING, "tests/search/test_slotwise.py", "tests/search/test_beam.py"],
    "deap_vsr/compare/store.py": ["tests/compare/test_store.py"],
    "deap_vsr/files.py": ["tests/cli/test_odd_files.py", "tests/compare/test_store.py", "tests/lab/test_log.py"],
}
#: What tests load that takes long: once, before anything is forked.
LARGE = (
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "numba",
    "deap.gp",
    "deap.tools",
    "sympy",
    "hypothesis",
    "networkx",
)
#: What pytest says of a plugin that is there before it.
LOADED = "ignore::pytest.PytestAssertRewriteWarning"
#: How many times as long as without a change its tests may take.
SLOWER = 5.0
_TURNED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
_OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And}


def changes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the tree with one change at a time; each is undone before the next."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _TURNED:
            before = node.ops[0]
            node.ops[0] = _TURNED[type(before)]()
            yield node
            node.ops[0] = before
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OTHER:
            operator = node.op
            node.op = _OTHER[type(operator)]()
            yield node
            node.op = operator
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
        ):
            value = node.value
            node.value = value + 1
            yield node
            node.value = value
        elif isinstance(node, ast.If):
            test = node.test
            node.test = ast.UnaryOp(ast.Not(), test)
            yield ast.fix_missing_locations(node)
            node.test = test


def mutants(path: Path) -> list[tuple[str, str]]:
    """Return each change of a module, with its line, and the module with it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (f"{getattr(node, 'lineno', 0)}: {ast.unparse(node).partition(chr(10))[0]}", ast.unparse(tree))
        for node in changes(tree)
    ]


def killed_by(folder: Path, tests: list[str], seconds: float) -> str:
    """Return what kills the copy: a test that fails, or that it takes too long; nothing if its tests pass."""
    child = os.fork()
    if not child:
        _run(folder, tests)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "a test" if status else ""
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


def _run(folder: Path, tests: list[str]) -> NoReturn:
    """Run tests in the copy, and end with what they say."""
    os.chdir(folder)
    sys.dont_write_bytecode = True  # two mutants of one second and one length would be taken for each other
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    code = 1
    try:
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-W", LOADED, *tests]))
    finally:
        os._exit(code)


def main(per_module: int = 20, seed: int = 0, only: str = "", minutes: float = math.inf) -> None:
    """Try so many changes of each module (or of those whose name has `only` in it), drawn at random; 1 below 80 %.

    The tests of a change may take SLOWER times as long as without it. `minutes` is for the changes of one module.
    """
    for name in LARGE:
        import_module(name)
    killed, total = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".venv*", ".git", "results", ".*_cache", "build"))
        for module, tests in MODULES.items():
            if only in module:
                found = tried(module, tests, folder, random.Random(f"{module}/{seed}"), per_module, minutes)
                killed, total = killed + found[0], total + found[1]
    print(f"{killed} of {total} killed, {killed / max(total, 1):.0%}")
    raise typer.Exit(killed < 0.8 * total)


def tried(
    module: str, tests: list[str], folder: Path, rng: random.Random, count: int, minutes: float
) -> tuple[int, int]:
    """Try changes of a module in the copy; returns how many were killed, and how many there were."""
    path, kinds, begun = folder / module, Counter[str](), time.monotonic()
    if killed_by(folder, tests, math.inf):
        raise SystemExit(f"{module}: its tests fail as it is")
    seconds = SLOWER * (time.monotonic() - begun) + 10.0
    found, until = mutants(ROOT / module), time.monotonic() + 60.0 * minutes
    for change, text in rng.sample(found, min(count, len(found))):
        path.write_text(text, encoding="utf-8")
        kind = killed_by(folder, tests, seconds)
        kinds[kind] += 1
        if not kind:
            print(f"survived: {module}:{change}", flush=True)
        if time.monotonic() > until:
            break
    path.write_text((ROOT / module).read_text(encoding="utf-8"), encoding="utf-8")
    total = sum(kinds.values())
    slow = f" ({kinds['time']} as it took too long)" if kinds["time"] else ""
    print(f"{module}: {total - kinds['']} of {total} killed{slow}; {len(found)} changes there are", flush=True)
    return total - kinds[""], total


if __name__ == "__main__":
    typer.run(main)
