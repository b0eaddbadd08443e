"""The paper's tables and case studies: as suites to run, and its figures to stand beside ours."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import lru_cache

from deap_vsr.problems.suites import data_root

#: The paper's names of the methods that we have; its code searches with coefficient leaves.
NAMES = {
    "vsr-gp": "VSR-GP",
    "gp": "GP",
    "vsr-mcts": "VSR-MCTS",
    "mcts": "MCTS",
    "vsr-mcts+coefficients": "VSR-MCTS",
    "mcts+coefficients": "MCTS",
    "dsr": "DSR",
    "pqt": "PQT",
    "vpg": "VPG",
    "gpmeld": "GPMeld",
}

#: What must be said wherever its figures stand beside ours.
OTHER_DRAWS = (
    "The paper's figures are for other programs: ours are other draws of the same distribution (trigonometric sets), "
    "checked versions of the same formulas (feynman-unit, livermore2). It let every run go on for up to 48 hours."
)


@dataclass(frozen=True)
class PaperSuite:
    """A table or case study of the paper: which problems, at which noise, with which optimizers.

    `methods` are those that it is about; empty: all.
    """

    what: str
    places: tuple[str, ...]
    noise: tuple[float, ...] = (0.0,)
    optimizers: tuple[str | None, ...] = (None,)
    methods: tuple[str, ...] = ()


_SMALLEST = ("trigonometric/*/2-1-1/*.json", "trigonometric/*/3-2-2/*.json")

#: The paper prints the numbers of tables 1 to 4; of the other studies it shows pictures only, and which sets they
#: are of is our choice.
SUITES = {
    "paper:table1": PaperSuite("median NMSE of the trigonometric sets, noiseless", ("trigonometric",)),
    "paper:table2": PaperSuite("median NMSE of the Feynman and Livermore2 sets", ("feynman-unit", "livermore2")),
    "paper:table3": PaperSuite("median NMSE of the trigonometric sets, noise 0.1", ("trigonometric",), (0.1,)),
    "paper:table4": PaperSuite("recovery, time and memory of the two smallest sizes", _SMALLEST),
    "paper:optimizers": PaperSuite(
        "how constants are fitted",
        ("trigonometric/sincosinv/3-2-2",),
        optimizers=("lm", "BFGS", "CG", "Nelder-Mead", "basinhopping", "shgo", "dual_annealing", "direct"),
        methods=("vsr-gp",),
    ),
    "paper:noise": PaperSuite(
        "NMSE against the level of noise",
        ("trigonometric/sincosinv/3-2-2",),
        noise=(0.02, 0.04, 0.08, 0.1, 0.12, 0.14),
    ),
    "paper:quartiles": PaperSuite("quartiles of the NMSE", ("trigonometric/sincosinv",), (0.0, 0.1)),
    "paper:metrics": PaperSuite(
        "all metrics of goodness of fit", ("trigonometric/sincosinv/3-2-2", "trigonometric/sincosinv/4-4-6")
    ),
    "paper:memory": PaperSuite("peak memory of the learning phase", _SMALLEST),
}


@dataclass(frozen=True)
class Published:
    """A number that the paper prints; `text` as it prints it, "<1E-6" being an upper bound."""

    text: str
    value: float
    upper_bound: bool


@lru_cache(maxsize=1)
def published() -> dict[tuple[str, str, float, str, str], Published]:
    """Return the numbers of the paper's tables by (set, group, noise, measure, the paper's name of the method).

    Measures are nmse (the median), accuracy, minutes and peak_memory_mb.
    """
    with (data_root() / "sources" / "paper_tables.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["set"], row["group"], float(row["noise"]), row["measure"], row["method"]): Published(
                row["text"], float(row["value"]), row["upper_bound"] == "yes"
            )
            for row in csv.DictReader(file)
        }


def compared(ours: float, paper: Published) -> str:
    """Return "<", ">" or "=": whether our number is smaller, larger, or about the same.

    About the same is within a factor of two, as the programs are other ones, or both below the paper's upper bound.
    """
    if math.isnan(ours):
        return ""
    if paper.upper_bound:
        return "=" if ours <= paper.value else ">"
    if ours > 2 * paper.value:
        return ">"
    return "<" if ours < paper.value / 2 else "="
