"""Whether answers are as short as they can be written: against sympy's simplify and factor, and our own rules.

Run with ``python benchmarks/written.py ROWS.jsonl``, rows of benchmarks/reach.py; only answers that are right
are looked at. sympy's forms are counted as we write them, in the operators of "science", and get so many seconds each.
"""

import json
import multiprocessing
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from deap_vsr import MaskedTree
from deap_vsr.errors import VsrError
from deap_vsr.tree.notation import from_sympy
from deap_vsr.tree.operators import named_set
from deap_vsr.tree.written import as_written, length

SCIENCE = named_set("science")


def shortest(text: str) -> int:
    """Return the length of the shortest form that sympy, and our rules after it, know."""
    import sympy

    tree = MaskedTree.from_infix(text)
    known = [tree, as_written(tree, SCIENCE)]
    expression = tree.to_sympy()
    for rule in (lambda e: e, sympy.simplify, sympy.factor, sympy.trigsimp, sympy.powsimp, sympy.together):
        try:
            known.append(as_written(from_sympy(rule(expression)), SCIENCE))
        except (VsrError, ValueError, TypeError, ArithmeticError, AttributeError):
            continue
    return min(map(length, known))


def main(
    rows: Path, at_most: int = 100, seconds: Annotated[float, typer.Option(help="For each answer.")] = 20.0
) -> None:
    """Compare the answers of a file with their shortest forms, and print those that are longer."""
    found = [row for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines()) if row["right"]][:at_most]
    longer: dict[int, int] = {}
    n_undecided = 0
    pool = multiprocessing.Pool(1)
    for row in track(found, "comparing"):
        own = length(MaskedTree.from_infix(row["expression"]))
        try:
            least = pool.apply_async(shortest, (row["expression"],)).get(seconds)
        except multiprocessing.TimeoutError:  # the worker is busy with it: another one
            pool.terminate()
            pool = multiprocessing.Pool(1)
            n_undecided += 1
            continue
        longer[own - least] = longer.get(own - least, 0) + 1
        if own - least > 2:
            print(f"{own - least} nodes longer: {row['expression']}")
    pool.terminate()
    table = ", ".join(f"{n} by {nodes}" for nodes, n in sorted(longer.items()))
    print(f"{len(found)} answers; longer than the shortest form known: {table}; sympy was too slow for {n_undecided}")


if __name__ == "__main__":
    typer.run(main)
