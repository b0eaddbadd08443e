"""What a run tells as it goes on, through the logging module: the logger `deap_vsr`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deap_vsr.lab.lab import Lab
from deap_vsr.search.records import Progress
from deap_vsr.tree.notation import short_formula

logger = logging.getLogger("deap_vsr")

#: Values of a variable that a sweep takes, where answers are exact; what is fresh comes on top (`points_to_attack`).
SWEEP = 6


@contextmanager
def narrated(verbose: bool, progress: Callable[[Progress], None]) -> Iterator[Callable[[Progress], None]]:
    """Yield a `progress` that logs reduced forms as they are found, too; with `verbose` they are shown on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    before = logger.level
    if verbose:
        logger.addHandler(handler)
        logger.setLevel(min(logging.INFO, before or logging.INFO))

    def tell(news: Progress) -> None:
        progress(news)
        if news.tree is not None and logger.isEnabledFor(logging.INFO):
            free = " ".join(map(news.names.name, news.freed))
            spent = news.budget.spent
            form = short_formula(news.tree, news.names)
            logger.info("%s free: %s = %s (%d points)", free, news.names.output, form, spent["queries"])

    try:
        yield tell
    finally:
        if verbose:
            logger.removeHandler(handler)
            logger.setLevel(before)


def hint(lab: Lab, attack: int) -> str:
    """Return that points are too few for so many variables; empty if they are not.

    `attack` is how many fresh points an answer is attacked with.
    """
    limit = lab.budget.limits["queries"]
    needed = 1 + (SWEEP - 1) * lab.n_vars + attack
    if limit is None or limit >= needed:
        return ""
    return (
        f"{limit:.0f} points are few for {lab.n_vars} variable(s): where answers are exact it takes some {needed}, "
        f"{SWEEP} values of each variable and {attack} to attack the answer with; in noise many more"
    )
