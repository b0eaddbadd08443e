"""Make the pictures of docs/slotwise.md, few-points.md, mcts.md and README.md.

``python benchmarks/pictures.py docs/pictures``
"""

import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import typer
from matplotlib.figure import Figure

from cfg_mcts import Deriver, Grammar, Limits, SearchTree, mcts, plot_tree
from deap_vsr import MaskedTree, Trial, discover, fit
from deap_vsr.bench.points import plot_points
from deap_vsr.methods import METHODS
from deap_vsr.plot import plot_path, plot_slots


def searched(form: str | None, column: int, rollouts: int) -> SearchTree:
    """Return the search tree of y = 2*x1 + 3*x1*sin(x2): from nothing, or at the slots of a frozen form."""
    X = np.random.default_rng(0).uniform(0.5, 3.0, (40, 2))
    X[:, 1] = X[:, 1] if form else X[0, 1]
    data = [Trial(X, 2.0 * X[:, 0] + 3.0 * X[:, 0] * np.sin(X[:, 1]))]
    deriver = Deriver(Grammar.from_operators(["add", "mul", "sin", "const"], [column]), Limits(9, 4, 1))
    start = None
    if form:
        tree = MaskedTree.from_infix(form)
        start = tree.with_mask([node.name == "C" or position in tree.slots for position, node in enumerate(tree)])
    search = SearchTree.of(deriver.begin(start))
    mcts(
        search,
        deriver,
        lambda trees: [1.0 / (1.0 + fit(tree, data).error) for tree in trees],
        random.Random(0),
        stop=lambda: search.rollouts >= rollouts,
    )
    return search


def asked_points(problem: str) -> Figure:
    """Return a picture of every point that a run asked, and what for, two variables at a time."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "points.csv"
        result = discover(problem, log=log)
        X = np.loadtxt(log, delimiter=",", skiprows=1)[:, :-1]
    n_search = sum(record.queries for record in result.rounds)
    changed = (X[:n_search] != X[0]).sum(axis=1)
    rows = np.arange(n_search)
    parts = {
        "the anchor": rows[changed == 0],
        "sweeps": rows[changed == 1],
        "rows of later tables": rows[changed > 1],
        "fresh points, to attack the answer": np.arange(n_search, len(X)),
    }
    figure = Figure(figsize=(12, 4), layout="constrained")
    pairs = list(combinations(range(X.shape[1]), 2))
    for axes, (i, j) in zip(figure.subplots(1, len(pairs)), pairs, strict=True):
        for (label, part), marker in zip(parts.items(), "*os^", strict=True):
            axes.scatter(X[part, i], X[part, j], marker=marker, s=130 if marker == "*" else 35, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"x{i + 1}")
        axes.set_ylabel(f"x{j + 1}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"{len(X)} points: y = {result.expression}", fontsize=10)
    return figure


def on_record() -> Figure:
    """Return the picture of the figures in benchmarks/points.md: the share of feynman-unit against the points asked."""
    cells = {}
    for line in (Path(__file__).parent / "points.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            name, *rest = [cell.strip() for cell in line.strip("|").split("|")]
            cells.setdefault(name, rest)
    limits = [None if word == "no limit" else int(word.split()[0].replace(",", "")) for word in cells[""]]
    rows = {0.0: cells["exact: recovered"], 0.01: cells["noise 1 %: right form"]}
    return plot_points([
        {"noise": noise, "limit": limit, "good": int(told), "problems": 120}
        for noise, row in rows.items() for limit, told in zip(limits, row, strict=True) if told
    ])  # fmt: skip


def main(folder: Path, problem: str = "trigonometric/sincosinv/3-2-2/prog_1") -> None:
    """Run one problem with seed 0 and write slots.png, path.png and points.png; then those of noise and of MCTS."""
    at_settings = replace(METHODS["vsr"], then=("slotwise",))
    result = discover(problem, at_settings)
    folder.mkdir(parents=True, exist_ok=True)
    on_record().savefig(folder / "recovery.png", dpi=90)
    plot_slots(result).savefig(folder / "slots.png", dpi=75)
    plot_path(result).savefig(folder / "path.png", dpi=75)
    print(result.expression)
    asked_points(problem).savefig(folder / "points.png", dpi=75)
    noisy = discover("feynman-unit/I.6.20", noise=0.003, seed=1)
    plot_slots(noisy).savefig(folder / "slots_noise.png", dpi=75)
    print(noisy.expression)
    plot_tree(searched(None, 0, 600), 16).savefig(folder / "mcts_first.png", dpi=90)
    plot_tree(searched("C*x1", 1, 1500), 20).savefig(folder / "mcts_slot.png", dpi=90)


if __name__ == "__main__":
    typer.run(main)
