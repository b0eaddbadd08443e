"""Stages: one entry for each way of finding forms, in the order in which they are tried.

A stage of one's own is one more entry (examples/own_stage.py)::

    def saturation(target):
        tree = MaskedTree.from_infix("C*x1/(C + x1)")
        starts = [[1.0, middle] for middle in np.median(target.table.x, axis=1)]
        yield [Form(target.wrap(tree), np.array(starts), cost=len(tree))], 0

    FormsRegressor(stages=(*STAGES, Stage("saturation", saturation, few_constants=True)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from deap_vsr.errors import VsrError, short
from deap_vsr.forms.alone import functions_alone
from deap_vsr.forms.inner import TRIPLES, inner_constants
from deap_vsr.forms.pairs import two_inner_constants
from deap_vsr.forms.rationals import rational_functions
from deap_vsr.forms.ratios import ratios
from deap_vsr.forms.roots import roots
from deap_vsr.forms.skeletons import QUICK, THOROUGH, small_skeletons
from deap_vsr.forms.sums import sparse_sums
from deap_vsr.forms.table import Step, Table, Target
from deap_vsr.forms.targets import (
    behind_factors,
    behind_few_factors,
    everything_undone,
    few_factors,
    once,
    once_twice_and_factors,
    plain,
    thrice,
)
from deap_vsr.forms.wave import waves_of_two_terms

#: What a task may ask for, each with all that comes before it.
EFFORTS = ("cheap", "quick", "most", "all")


@dataclass(frozen=True)
class Stage:
    """One way of finding forms.

    Attributes
    ----------
    name : str
    find : callable
        ``find(target)`` yields steps ``(forms, n_tried)``: forms for ``target.z`` at ``target.table.x``, put through
        ``target.wrap``, and how many expressions were evaluated to come to them. A form is written in x1 with the
        operators of ``target.table.allowed``; its cost is about its number of nodes. Its constants are starts: the
        regressor fits it in every setting, counts that, and takes it if it holds, so that a step may propose what turns
        out to be wrong. The first step with a form that holds ends the search; a stage with much to try takes many.
    targets : callable
        ``targets(table)`` returns what `find` is called with, one after the other: y itself, or a list of
        :mod:`deap_vsr.forms.targets`, in which something is undone.
    effort : "cheap", "quick", "most" or "all"
        A task of this effort, or more, asks for it. Cheap stages take milliseconds, quick ones tenths of a second.
    few_constants : bool
        Whether it is used in noise as well, where forms with many constants fit anything.
    n_constants : int
        How many constants its forms have at least. In noise it is not tried where a form of fewer fits, unless rivals
        are wanted.
    """

    name: str
    find: Callable[[Target], Iterable[Step]]
    targets: Callable[[Table], Iterable[Target]] = plain
    effort: str = "cheap"
    few_constants: bool = False
    n_constants: int = 0

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise VsrError(
                f"stage {self.name}: effort: found {short(self.effort)}, expected one of {', '.join(EFFORTS)}"
            )

    def is_wanted(self, effort: str) -> bool:
        """Whether a task of `effort` asks for it."""
        return EFFORTS.index(self.effort) <= EFFORTS.index(effort)

    def steps(self, table: Table) -> Iterator[Step]:
        """Yield the steps behind one target after the other."""
        for target in self.targets(table):
            yield from self.find(target)


#: The stages of the package: those with few constants, and behind simple targets, first.
STAGES = (
    Stage("sums", partial(sparse_sums, counts=(150, 120, 45)), plain, few_constants=True),
    Stage("short sums, much undone", partial(sparse_sums, counts=(30, 24)), everything_undone, few_constants=True),
    Stage("sums, less undone", partial(sparse_sums, counts=(0, 45, 24)), once_twice_and_factors, few_constants=True),
    Stage("sums of four", partial(sparse_sums, counts=(0, 0, 0, 28)), plain, few_constants=True),
    Stage("ratios", partial(ratios, counts=(0, 26, 22, 18)), plain, few_constants=True),
    Stage("roots", roots, plain, few_constants=True),
    Stage("short sums behind three functions", partial(sparse_sums, counts=(12, 9)), thrice, few_constants=True),
    Stage("ratios behind a function", partial(ratios, counts=(0, 26, 22, 18)), once, few_constants=True),
    Stage("roots behind a function", partial(roots, counts=(0, 38, 32)), once, few_constants=True),
    Stage("sums of three behind factors", partial(sparse_sums, counts=(0, 0, 20)), behind_factors, few_constants=True),
    Stage("sums of five", partial(sparse_sums, counts=(0, 0, 0, 0, 20)), plain, few_constants=True),
    Stage("long ratios", ratios, plain, few_constants=True),
    Stage("rational functions", rational_functions, plain, "quick"),
    Stage("inner alone", functions_alone, plain, "quick"),
    Stage("inner", inner_constants, plain, "quick", few_constants=True),
    Stage("two inner", two_inner_constants, plain, "quick", few_constants=True),
    Stage("first skeletons", partial(small_skeletons, passes=QUICK), plain, "quick", few_constants=True),
    Stage("wave of two terms", waves_of_two_terms, plain, "most"),
    Stage("inner behind a function", partial(inner_constants, n_inner=1), once, "most", True, n_constants=3),
    Stage("inner of atoms behind a function", partial(inner_constants, n_inner=3, first=1), once, "most"),
    Stage("inner behind a factor", partial(inner_constants, n_inner=2), few_factors, "most"),
    Stage("inner, sums of three", partial(inner_constants, counts=TRIPLES), plain, "most"),
    Stage("inner behind factors", partial(inner_constants, n_inner=1), behind_few_factors, "most"),
    Stage("inner, sums of three behind", partial(inner_constants, n_inner=2, counts=TRIPLES), once, "most"),
    Stage("skeletons", partial(small_skeletons, passes=THOROUGH), plain, "all"),
)
