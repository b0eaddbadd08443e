"""Twenty functions with named arguments (own_laws.py), each handed to `discover` as its owner would: what comes out.

``python benchmarks/simulators.py`` prints a table for benchmarks/simulators.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from deap_vsr import Equation, Variable, discover
from deap_vsr.judge.metrics import judge
from deap_vsr.tree import variable
from deap_vsr.tree.notation import parse

sys.path.insert(0, str(Path(__file__).parent))
from own_laws import LAWS, OwnLaw

TIME_LIMIT = 60.0


def equation_of(law: OwnLaw) -> Equation:
    """Return the law as a problem, for the judge."""
    leaves = {name: variable(i) for i, name in enumerate(law.variables, 1)}
    domains = tuple(Variable(f"x{i}", *pair) for i, pair in enumerate(law.variables.values(), 1))
    tree = parse(law.formula, leaves)
    return Equation(law.name, domains, law.operators, tree, tree.to_infix())


def main(seed: int = 0) -> None:
    print("| law | variables | recovered | status | points | seconds | answer |\n|---|---|---|---|---|---|---|")
    recovered = 0
    for law in LAWS:
        result = discover(
            law.function, variables=law.variables, operators=law.operators, seed=seed, time_limit=TIME_LIMIT
        )
        right = result.tree is not None and judge(result.tree, equation_of(law)).recovered
        recovered += right
        cells = [law.name, len(law.variables), "yes" if right else "no", result.status, result.oracle_queries]
        answer = result.formula if len(result.formula) < 90 else result.formula[:87] + "..."
        print("|", " | ".join(map(str, [*cells, f"{result.seconds:.1f}", f"`{answer}`"])), "|", flush=True)
    print(f"\n{recovered} of {len(LAWS)} recovered, seed {seed}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
