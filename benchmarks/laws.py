"""Twenty laws from science and engineering that are in none of our equation files: the share recovered.

Run with ``python benchmarks/laws.py [--seeds 3] [--time-limit 60]``; laws.csv was written before the first run.
"""

from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from deap_vsr import discover
from deap_vsr.problems.generate import table_problems


def main(seeds: int = 3, time_limit: float = 60.0, method: str = "vsr") -> None:
    """Run every law with seeds 0, 1, ... and print what was recovered."""
    table = Table("law", "recovered", "seconds", "queries", "answer of the last seed")
    recovered = runs = 0
    for law in table_problems(Path(__file__).with_name("laws.csv"), "laws"):
        results = [discover(law, method, seed=seed, time_limit=time_limit) for seed in range(seeds)]
        if any(result.stopped_by == "interrupted" for result in results):
            raise KeyboardInterrupt
        hits = sum(bool(result.verdict and result.verdict.recovered) for result in results)
        recovered, runs = recovered + hits, runs + seeds
        seconds = ", ".join(f"{result.seconds:.2f}" for result in results)
        queries = ", ".join(str(result.oracle_queries) for result in results)
        table.add_row(law.name, f"{hits}/{seeds}", seconds, queries, results[-1].expression)
    Console().print(table)
    print(f"recovered {recovered} of {runs} runs")


if __name__ == "__main__":
    typer.run(main)
