"""Make the pictures of docs/slotwise.md: ``python benchmarks/pictures.py docs/pictures``."""

from pathlib import Path

import typer

from deap_vsr import discover
from deap_vsr.plot import plot_path, plot_slots


def main(folder: Path, problem: str = "trigonometric/sincosinv/3-2-2/prog_1") -> None:
    """Run one problem with seed 0 and write slots.png and path.png."""
    result = discover(problem)
    folder.mkdir(parents=True, exist_ok=True)
    plot_slots(result).savefig(folder / "slots.png", dpi=75)
    plot_path(result).savefig(folder / "path.png", dpi=75)
    print(result.expression)


if __name__ == "__main__":
    typer.run(main)
