"""How a campaign stands: the formula so far, what speaks against it, and what the next sheet will decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import deap_vsr
from deap_vsr.campaign.folder import DONE, FAILED, State
from deap_vsr.campaign.replay import Answer, Look
from deap_vsr.campaign.setup import Setup
from deap_vsr.campaign.slips import slips
from deap_vsr.lab.oracle import Relative
from deap_vsr.tree import is_variable
from deap_vsr.tree.names import Names
from deap_vsr.tree.notation import short_formula

#: A row that is further off the formula than so many standard deviations is told of; of a million by chance none is.
SUSPECT = 6.0
#: Where the instrument is exact, a row is off that differs by this share.
OFF_EXACT = 1e-6
#: Where more rows than this, and than this share, are off it is the formula that is wrong.
FEW_OFF, SHARE_OFF = 3, 0.1
#: Repeats of a row differ by chance by so many standard deviations; one campaign in a thousand by more.
DRIFT = 3.3
#: What a variable takes where the instrument is exact, on the average of benchmarks/points.md: a sweep, and some more.
POINTS_A_VARIABLE = 5


@dataclass(frozen=True)
class Status:
    """How a campaign stands.

    Attributes
    ----------
    formula, status, reason : of the answer so far; the status is found, fits or partial
    rivals : formulas that do nearly as well
    path : reduced forms that led there: what is free, what is held, the formula
    asked, measured, failed, open : rows
    decides : what the next sheet will decide
    needed : measurements that are likely still needed
    notes : what a person should look at
    off : rows that are far off the formula: their id, y, and what the formula says
    """

    formula: str
    status: str
    reason: str
    rivals: tuple[str, ...]
    path: tuple[tuple[str, str, str], ...]
    asked: int
    measured: int
    failed: int
    open: int
    sheets: int
    points: int
    decides: str
    needed: int
    error: float | None
    notes: tuple[str, ...]
    off: tuple[tuple[str, float, float], ...]

    def to_json(self) -> dict[str, Any]:
        """Return it in JSON values."""
        kept = dict(vars(self))
        return kept | {"rivals": list(self.rivals), "notes": list(self.notes), "path": [list(row) for row in self.path],
                       "off": [list(row) for row in self.off]}  # fmt: skip


def status_of(state: State, look: Look) -> Status:
    """Return how a campaign stands."""
    result, setup, names = look.result, state.setup, look.result.names
    states = [state.status(row) for row in state.asked]
    off = _off(state, look)
    waits = len(look.needed) > 0
    reason = result.reason
    told = bool(state.everything) and result.tree is not None
    path = tuple(
        (_listed(names, record.freed), _listed(names, record.controlled), short_formula(record.tree, names))
        for record in result.path
        if record.accepted
    )
    if waits:
        told = told and any(map(is_variable, result.tree or ()))
        reason = _so_far(look, path if not told else ())
    return Status(
        formula=result.formula if told else "",
        status=result.status if not waits else "partial" if result.status == "partial" else "fits",
        reason=reason if state.everything else "nothing was measured yet",
        rivals=tuple(names.named(tree).to_infix() for _, tree in result.standing.rivals),
        path=path,
        asked=len(state.asked),
        measured=states.count(DONE) + len(state.before),
        failed=states.count(FAILED),
        open=len(state.open),
        sheets=max((row.batch for row in state.asked), default=0),
        points=setup.points,
        decides=_decides(look, state),
        needed=_needed(look, state),
        error=result.error,
        notes=tuple(_notes(state, look, off)),
        off=off,
    )


def _so_far(look: Look, path: Sequence[tuple[str, str, str]]) -> str:
    """Return how far the search has come, while points are missing: a reduced form, or what the formula leaves."""
    result = look.result
    if path:
        free, held, form = path[-1]
        return f"the search goes on; with {held} held, {result.names.output} depends on {free} as {form}"
    if result.error is None or result.error > 1.0:
        return "the search goes on; no formula holds yet"
    return f"the search goes on; what the formula so far leaves is {100 * result.error:.2g} % of the spread"


def _listed(names: Names, columns: Sequence[int]) -> str:
    return ", ".join(map(names.name, columns)) or "nothing"


def _decides(look: Look, state: State) -> str:
    """Return what the next sheet will decide, in words."""
    if not len(look.needed):
        return "nothing more is needed" if look.result.tree is not None else "nothing more can be tried"
    if len(state.asked) >= state.setup.points and not state.open:
        return f"all {state.setup.points} measurements were asked"
    names = look.result.names
    if not state.answers:
        return "a first look: which variables matter, and whether readings repeat"
    spread = [len(np.unique(look.needed[:, column])) for column in range(look.needed.shape[1])]
    varied = [column for column, values in enumerate(spread) if values > 1]
    if look.freed and not all(values >= 0.7 * len(look.needed) for values in spread):
        new = look.freed[-1]
        others = f", with {_listed(names, look.freed[:-1])} free" if look.freed[:-1] else ""
        return f"how {names.output} depends on {names.name(new)}{others}"
    if varied and look.result.tree is not None:
        return "whether the formula so far holds anywhere, or a rival does better"
    return f"how {names.output} depends on {_listed(names, varied or range(len(spread)))}"


def _needed(look: Look, state: State) -> int:
    """Return how many measurements are likely still needed: a rule of thumb."""
    if not len(look.needed):
        return 0
    n_vars, setup = len(state.setup.variables), state.setup
    left = max(setup.points - len(state.asked), 0)
    if setup.noise == 0.0:
        freed = max((len(record.freed) for record in look.result.rounds if record.accepted), default=0)
        guess = POINTS_A_VARIABLE * (n_vars - freed) + 8 + 2 * n_vars + 1
        guess -= min(len(state.asked) - POINTS_A_VARIABLE * freed, POINTS_A_VARIABLE * (n_vars - freed))
        return int(min(max(guess, len(look.needed)), left))
    return left  # in noise a search plans with all the points that it may have


# --- what a person should look at -----------------------------------------------------------


def _off(state: State, look: Look) -> tuple[tuple[str, float, float], ...]:
    """Return rows that are far off the formula, where they are few: the formula explains the others."""
    tree, rows = look.result.tree, state.everything
    if tree is None or len(rows) < FEW_OFF + 2:
        return ()
    X, y = np.array([one.x for one in rows]), np.array([one.y for one in rows])
    with np.errstate(all="ignore"):
        said = tree.evaluate(X)
        distance = np.abs(y - said) / _room(rows, said, state.setup, look)
    far = np.flatnonzero(~(distance <= SUSPECT))
    if not len(far) or len(far) > max(FEW_OFF, SHARE_OFF * len(rows)) or len(far) > len(rows) // 3:
        return ()
    return tuple((rows[i].id or "-", float(y[i]), float(said[i])) for i in far)


def _room(rows: Sequence[Answer], said: Any, setup: Setup, look: Look) -> Any:
    """Return the standard deviation of each row."""
    told = np.array([one.sigma if np.isfinite(one.sigma) else setup.sigma(one.y) for one in rows])
    told = np.where(np.isfinite(told), told, look.result.noise)
    scale = np.median(np.abs(said[np.isfinite(said)])) if np.isfinite(said).any() else 1.0
    return np.maximum(told, OFF_EXACT / SUSPECT * (np.abs(said) + 1e-3 * scale) + 1e-300)


def _notes(state: State, look: Look, off: Sequence[tuple[str, float, float]]) -> list[str]:
    notes = []
    setup = state.setup
    if setup.version and setup.version != deap_vsr.__version__:
        notes.append(
            f"this folder was made by version {setup.version}, and this is {deap_vsr.__version__}: what is asked from "
            "now on may differ; all that was measured is used"
        )
    for name, y, said in off:
        power = np.log10(abs(said / y)) if y and said and np.isfinite(said) else 0.5
        slip = "; a digit or the decimal point?" if abs(power - round(power)) < 0.02 and round(power) else ""
        slip = slip or ("; the sign?" if abs(y + said) < 0.05 * abs(said) else "")
        notes.append(
            f"id {name}: {y:g} was measured where the formula says {said:.4g}: an outlier, or a typing error{slip}"
        )
    if not off and look.result.status == "partial":
        notes += slips(state.everything, setup)
    notes += [f"id {row.id}: the answer {row.y:g} was left out as an outlier" for row in _left_out(state, look)]
    drifted = drift(state)
    if drifted is not None:
        notes.append(f"the instrument may drift: repeats differ by {abs(drifted):.1f} standard deviations")
    missed = [row for row in state.measured if row.id and row.valid and row not in state.rows[row.id]]
    if missed:
        notes.append(f"set points were missed in {len(missed)} rows; they are data, and were asked again")
    if look.result.tree is None and len(state.asked) and not len(look.needed):
        notes.append("nothing fits: other operators, a variable that was not written down, or a row that is wrong?")
    return notes


def _left_out(state: State, look: Look) -> list[Answer]:
    gone = {y for _, y in look.result.outliers}
    return [one for one in state.answers if one.y in gone and one.id]


def drift(state: State) -> float | None:
    """Return how far repeats of the first row are off it, in standard deviations; None if that is chance.

    Repeats are rows at the same point that were asked in later sheets.
    """
    first: dict[tuple[float, ...], Answer] = {}
    batches = {row.id: row.batch for row in state.asked}
    off = []
    for one in (*state.answers, *state.repeats):
        point = tuple(one.asked.tolist())
        before = first.setdefault(point, one)
        if before is one or batches[before.id] == batches[one.id] or not np.isfinite([one.y, before.y]).all():
            continue
        sigma = [row.sigma if np.isfinite(row.sigma) else state.setup.sigma(row.y) for row in (one, before)]
        if np.isfinite(sigma).all() and max(sigma) > 0:
            off.append((one.y - before.y) / float(np.hypot(sigma[0], sigma[1])))
    if not off:
        return None
    mean = float(np.sum(off) / np.sqrt(len(off)))
    return mean if abs(mean) > DRIFT else None


def noise_text(setup: Setup) -> str:
    """Return what is stated of the noise, in words."""
    if setup.noise is None:
        return "not stated: found out by repeats"
    if isinstance(setup.noise, Relative):
        return f"{100 * setup.noise.share:g} % of the reading"
    return "none, the instrument is exact" if setup.noise == 0.0 else f"standard deviation {setup.noise:g}"
