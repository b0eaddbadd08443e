"""The searches of slotwise expansion, one after the other: `vsr`, and DEAP scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.forms.widening import atoms_in_noise
from deap_vsr.lab.lab import Lab
from deap_vsr.search.anchored import Anchored
from deap_vsr.search.contract import Regressor
from deap_vsr.search.joint import Joint
from deap_vsr.search.sequence import in_order, is_a_sum
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import Slotwise
from deap_vsr.search.sums import Sums


def searches(
    names: Sequence[str], slots: Regressor, lab: Lab, joint: Joint | None = None
) -> Iterator[Joint | Slotwise | Anchored | Sums]:
    """Yield the searches of these names in their order: as few points as do first, then what the answers allow."""
    if "anchored" in names:
        yield Anchored(slots)
    lab.begin()
    if "anchored" in names and lab.evidence.certain and isinstance(slots, FormsRegressor):  # others know no efforts
        yield Anchored(slots, passes=(("quick", (6, 9, 14)), ("most", (6, 9, 14))))
        yield Anchored(slots, passes=(("cheap", (4, 6)), ("quick", (6, 9))), elsewhere=True)
        yield Anchored(slots, elsewhere=True)
    sums = Sums(atoms_in_noise, regressor=slots)
    can_be_sum = "sums" in names and not lab.evidence.certain and sums.can_be_written(lab)
    sums_first = can_be_sum and "slotwise" in names and is_a_sum(_slotwise(slots, lab), lab)
    for name in in_order(names, lab, sums_first):
        if name == "sums" and can_be_sum:
            yield sums
        elif name == "slotwise":
            yield _slotwise(slots, lab)
        elif name == "joint" and joint is not None:
            yield joint


def _slotwise(slots: Regressor, lab: Lab) -> Slotwise:
    return Slotwise(slots, SlotOptions.of(lab.evidence, lab.budget.queries_left(), lab.n_vars))
