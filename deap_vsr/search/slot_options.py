"""Numbers of slotwise expansion: how tables are measured, by what answers are like and how many may be asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deap_vsr.lab.evidence import Evidence
from deap_vsr.search.tables import Sweep

#: With so many points for each variable, a search in noise asks what it wants: some 2,000 are asked in a round.
PLENTY = 2500
#: With so many each variable is tried alone beforehand, at one setting: that takes at most a tenth of them.
TRIED = 1000
#: With fewer for each variable, everything is measured at one setting, and all formulas share the tables. Of 40 fresh
#: laws (`vsr data make --suite laws --programs 60 --seed 4711`, 2 to 5 variables, noise of 1 % that is stated, 200
#: points) 14 have the right form then, 4 with tables of their own at two settings.
FEW = 100


@dataclass(frozen=True)
class SlotOptions:
    """Numbers of slotwise expansion.

    A table has ``n_settings`` settings of what is held; ``sweeps`` says at which values of the new variable, first and
    where that does not do. ``beam`` combinations of forms are tried for a variable, of at most ``n_forms`` forms of a
    slot. A formula is verified with ``points`` and ``points_a_constant`` at each setting. ``share`` is the part of what
    is left that the regressor may spend on one slot.
    """

    n_settings: int = 3
    sweeps: tuple[Sweep, ...] = (
        Sweep(12),
        Sweep(28, even=True, spare=3),
        Sweep(24, window=0.2, spare=3),
        Sweep(24, window=0.04),
    )
    beam: int = 4
    n_forms: int = 6
    points: int = 4
    points_a_constant: int = 1
    share: float = 0.5
    n_starts: int = 2
    max_nodes: int = 300
    """Formulas grown in all."""
    more: int = 4
    """Where formulas are not told apart, they are judged by so many times the data at the most."""
    n_probed: int = 8
    """In noise, of so many times as many settings those are taken at which a variable is seen best."""
    shared: bool = False
    """In noise, whether points are so few that all formulas that are followed share one table, at one setting."""
    thrifty: bool = False
    """Whether points are so few that variables are freed as they come, and not tried beforehand."""
    n_tried: int = 0
    """In noise, at how many settings each variable is tried alone beforehand; 0 where points are too few."""

    @classmethod
    def of(cls, evidence: Evidence, queries: float = np.inf, n_vars: int = 1) -> SlotOptions:
        """Return options for answers of a kind, in a run that may ask so many points."""
        return cls.within(queries, n_vars) if evidence.certain else cls.in_noise(queries, n_vars)

    @classmethod
    def within(cls, queries: float, n_vars: int) -> SlotOptions:
        """Return options for exact answers: small tables where there are few points for each variable."""
        if queries >= 250 * n_vars:
            return cls()
        few = Sweep(8) if queries < 80 * n_vars else Sweep(10)
        return cls(n_settings=2, sweeps=(few, Sweep(20, even=True)), thrifty=True)

    @classmethod
    def in_noise(cls, queries: float = np.inf, n_vars: int = 1) -> SlotOptions:
        """Return options for noisy answers: each sweep has more points than the one before.

        Where there are few points for each variable a table takes a third of these, and checking it another third.
        """
        sweeps = (Sweep(12, n_points=6), Sweep(16, n_points=25), Sweep(24, n_points=100))
        plenty = cls(sweeps=sweeps, beam=20, points=150, points_a_constant=15, share=0.15, n_starts=1)
        if queries >= PLENTY * n_vars:
            return replace(plenty, n_tried=plenty.n_settings)
        a_round = queries / (n_vars + 1)  # as much is left for the end
        if a_round < FEW:
            J = int(np.clip(a_round / 5, 8, 12))
            return replace(
                plenty,
                n_settings=1,
                sweeps=(Sweep(J, n_points=1), Sweep(J + 4, n_points=2)),
                points=max(int(a_round / 5), 5),
                points_a_constant=1,
                n_probed=3,
                more=2,
                shared=True,
            )
        K = 3 if a_round >= 300 else 2  # of one nothing would be seen to move
        J = 10 if a_round >= 100 else 8
        n_points = max(int(a_round / 3 / (K * J)), 1)
        few = (Sweep(J, n_points=n_points), Sweep(J + 4, n_points=2 * n_points))
        return replace(
            plenty,
            n_settings=K,
            sweeps=few,
            points=max(int(a_round / 3 / K), 6),
            points_a_constant=2,
            n_probed=2,
            more=2,
            n_tried=int(queries >= TRIED * n_vars),
        )
