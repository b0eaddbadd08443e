"""Mutation testing: small changes to modules on which promises rest, and whether their tests notice.

``make mutation``, or ``python benchmarks/mutation.py --per-module 10 --seed 1``. A change is one of: a comparison
turned round, + for -, `and` for `or`, a number one larger, a condition negated. A mutant is killed if a test of the
module's room fails, or takes too long. Survivors are printed with their line. It works in a copy.
"""

import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

ROOT = Path(__file__).parents[1]
#: Modules, and the tests that are theirs.
_SEARCH = [f"tests/search/test_{name}.py" for name in ("freezing", "joint", "slotwise", "beam")]
MODULES = {
    "deap_vsr/tree/masked.py": ["tests/tree/test_masked_tree.py", "tests/tree/test_stock_deap_operators.py"],
    "deap_vsr/search/freezing.py": _SEARCH,
    "deap_vsr/lab/evidence.py": ["tests/lab/test_evidence.py", "tests/lab/test_lab.py", *_SEARCH],
    "deap_vsr/search/round.py": _SEARCH,
    "deap_vsr/compare/store.py": ["tests/compare/test_store.py"],
    "deap_vsr/files.py": ["tests/fuzz/test_corpus.py", "tests/compare/test_store.py"],
}
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


def mutants(path: Path) -> list[tuple[int, str]]:
    """Return the line of each change of a module, and the module with it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(getattr(node, "lineno", 0), ast.unparse(tree)) for node in changes(tree)]


def is_killed(folder: Path, tests: list[str], seconds: float) -> bool:
    """Whether a test fails in the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=seconds, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main(per_module: int = 20, seed: int = 0, seconds: float = 300.0) -> None:
    """Try so many changes of each module, drawn at random; exit code 1 below 80 %."""
    rng, killed, total = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".venv*", ".git", "results", ".*_cache", "build"))
        for module, tests in MODULES.items():
            path, whole = folder / module, (ROOT / module).read_text(encoding="utf-8")
            found = mutants(ROOT / module)
            for line, text in rng.sample(found, min(per_module, len(found))):
                path.write_text(text, encoding="utf-8")
                dead = is_killed(folder, tests, seconds)
                killed, total = killed + dead, total + 1
                if not dead:
                    print(f"survived: {module}:{line}: {whole.splitlines()[line - 1].strip()}", flush=True)
            path.write_text(whole, encoding="utf-8")
    print(f"{killed} of {total} killed, {killed / total:.0%}")
    raise typer.Exit(killed < 0.8 * total)


if __name__ == "__main__":
    typer.run(main)
