"""How an answer stands: found, fits or partial, with the reason in words. It is attacked before it is called found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deap_vsr.engine.fitting import Dataset
from deap_vsr.errors import NoValuesError, OutOfQueriesError
from deap_vsr.lab.lab import Lab
from deap_vsr.lab.look import drift
from deap_vsr.lab.outliers import without_outliers
from deap_vsr.lab.trials import Trial
from deap_vsr.problems.equation import Variable
from deap_vsr.problems.sampling import on_grid
from deap_vsr.search.anonymous import anonymous
from deap_vsr.search.doubts import never_found
from deap_vsr.search.finish import EXACT, finished_in_noise, reopened, wider
from deap_vsr.search.records import Found
from deap_vsr.search.regions import MOST, Region, region_of
from deap_vsr.search.rivals import lead
from deap_vsr.search.shape import shape_of
from deap_vsr.tree import MaskedTree, is_variable
from deap_vsr.tree.operators import Array
from deap_vsr.tree.simplify import literals

#: A formula leads clearly if it is so many nats ahead of every rival: then it is e**10, some 20,000 times as likely,
#: and hardly one of a hundred laws, each with some dozen rivals, is called found wrongly.
CLEARLY = 10.0
#: Points that tell a formula from its nearest rival, and how often they are asked for at the most: of more, one of
#: several approximations comes out ahead of the others where the law is not among them.
TELLING, ATTEMPTS = 150, 2
#: How often a rival may take the formula's place.
MOST_REPLACED = 4
#: Where none of n points shows an error, at most about 3/n of the domain does, in 95 of 100 cases.
RULE_OF_THREE = 3.0
#: Beside twice the points to attack it with, so many are kept for the end of a run, and no more than this share.
KEPT, KEPT_SHARE = 30, 0.15
#: With less than this share of the points that are usual for an attack nothing is called found.
MIN_SHARE = 0.5
#: How many rivals are told of.
TOLD = 3
#: Points of `verify="thorough"`.
THOROUGH = 300


@dataclass(frozen=True)
class Standing:
    """How an answer stands.

    Attributes
    ----------
    status : "found", "fits" or "partial"
        Found: it survived being attacked and, in noise, leads its rivals clearly. Fits: it explains the data; the
        reason says what is unsure. Partial: the best so far.
    reason : in words
    survived : fresh points, inside the domain, that did not refute it
    share : the largest share of the domain in which it may still be wrong, about 3/n
    outside : whether it was asked outside the domain too
    search : which search found it
    lead : nats by which it is ahead of its nearest rival; None where it was not looked for
    rivals : other formulas that the data do not refute, and how far they are behind
    """

    status: str
    reason: str
    survived: int = 0
    share: float = 1.0
    outside: bool = False
    search: str = ""
    lead: float | None = None
    rivals: tuple[tuple[float, MaskedTree], ...] = field(default=())


def points_to_attack(lab: Lab, n_vars: int) -> int:
    """Return how many fresh points a formula of `n_vars` variables is attacked with: as asked for, or as is usual."""
    return lab.verify or 8 + 2 * n_vars


def points_to_keep(lab: Lab) -> int:
    """Return how many points a search leaves to attack its answer with: at most a part of them all."""
    left = lab.budget.queries_left()
    return 0 if left == np.inf else int(min(points_to_attack(lab, lab.n_vars) + KEPT, KEPT_SHARE * left))


def standing(found: Found, lab: Lab) -> tuple[Found, Standing]:
    """Return an answer and how it stands; in noise a rival that proves better takes its place.

    ::

        partial, if the search did not come to an end with it
        attack: fresh points, at the edges, in each decade of y, where it was furthest off, outside
        in noise: residuals must have no shape; ask where the nearest rival differs most, until one leads clearly
    """
    if found.tree is None:
        return found, Standing("partial", "no formula was found", search=found.search)
    if found.stopped_by != "found":
        return found, Standing("partial", _unfinished(found), search=found.search)
    lab.budget.kept = 0
    inner = found.own
    assert inner is not None
    attack = lab.facts.get("attack")
    if attack is None or attack.formula != inner:
        attack = Attack(inner, lab)
    try:
        attack.run()
    except (OutOfQueriesError, NoValuesError):
        attack.reason = attack.reason or "fewer points could be asked than it takes to attack it"
    except KeyboardInterrupt:
        attack.reason = "interrupted before it was attacked"
        found = replace(found, stopped_by="interrupted")
    stands = _explained(attack.standing(found), attack.formula, lab)
    if attack.formula is not inner:
        tree, errors = lab.in_units(attack.formula, attack.errors)
        found = replace(found, tree=tree, inner=attack.formula, standard_errors=errors, hall=[(0.0, tree)])
    return found, stands


#: Share of the variance of answers that a formula which is called found may leave, and steps of the last digit that
#: answers may have between them and still be one: differences of some units are rounding.
LEFT, STEPS = 1e-4, 16


def _explained(stands: Standing, formula: MaskedTree, lab: Lab) -> Standing:
    """Return how an exact answer stands when what varies in the last digits of y is looked at: an offset hides it."""
    X, y = lab.log.X[lab.log.good], lab.log.y[lab.log.good] / lab.scale
    if stands.status != "found" or not lab.evidence.certain or not lab.repeats or not len(y):
        return stands
    with np.errstate(all="ignore"):
        left = formula.evaluate(X, lab.pset) - y
        hidden = np.ptp(y) > STEPS * np.spacing(np.abs(y).max()) and np.var(left) > LEFT * np.var(y)
    why = "answers vary in their last digits, which it does not explain: measure without the offset"
    return replace(stands, status="fits", reason=why) if hidden else stands


def _unfinished(found: Found) -> str:
    ends = {"queries": "the points were used up", "seconds": "the time was up", "exhausted": "everything was tried"}
    ends |= {
        "evaluations": "the evaluations were used up",
        "interrupted": "it was interrupted",
        "memory": "the memory was used up",
    }
    return f"{ends.get(found.stopped_by, found.stopped_by)} before a formula held"


class Attack:
    """What is done to refute a formula, on counted points."""

    def __init__(self, formula: MaskedTree, lab: Lab) -> None:
        self.formula, self.lab = formula, lab
        self.errors: tuple[float, ...] | None = None
        self.n_points = points_to_attack(lab, len({node.name for node in formula if is_variable(node)}))
        self.done = False
        self.reason = ""
        self.refuted = False
        """Whether answers disagree with it; it may be in doubt for other reasons."""
        self.survived = 0
        self.outside = False
        self.region: Region | None = None
        """Where answers do not follow it, if they do everywhere else."""
        self.lead: float | None = None
        self.rivals: list[tuple[float, MaskedTree]] = []

    def run(self) -> None:
        """Attack until something refutes it, once."""
        if self.done:
            return
        self.done = True
        self._ask()
        if not self.reason and not self.lab.evidence.certain:
            self._compare()
        if not self.reason and not self.lab.evidence.certain:
            self.reason = anonymous(self.formula, self.lab) or shape_of(self.formula, self.lab)

    def standing(self, found: Found) -> Standing:
        """Return how the formula stands."""
        reason = self.reason or never_found(found, self.formula, self.lab, bool(self.rivals))
        status = "fits" if reason else "found"
        share = RULE_OF_THREE / self.survived if self.survived > 0 else 1.0
        share = min(1.0, share if self.region is None else share + self.region.share)
        if not reason:
            where = "inside and outside the domain" if self.outside else "inside the domain; outside was not asked"
            reason = f"{self.survived} fresh points did not refute it, {where}"
            if self.region is not None:
                where = self.region.in_words(self.lab.variables[self.region.column])
                reason += f"; but {where} answers jump away from it"
            if self.lead is not None and self.rivals:
                reason += f"; {self.lead:.0f} nats ahead of its nearest rival"
        told = tuple(self.rivals[:TOLD])
        return Standing(status, reason, self.survived, share, self.outside, found.search, self.lead, told)

    # --- points that may refute it ---

    def _ask(self) -> None:
        """Ask fresh points, and compare all that was measured."""
        lab = self.lab
        n_points = int(min(self.n_points, lab.budget.queries_left()))
        if n_points < MIN_SHARE * self.n_points:
            self.reason = f"only {n_points} fresh points could be asked, where {self.n_points} are usual"
        if n_points < 1:
            return
        far = self._outside(n_points // 4)
        chosen = self._chosen(n_points // 4)
        uniform = _spread_out(lab.variables, n_points - len(chosen) - len(far), lab.rng)
        self._move_dropped(uniform)
        inside = np.vstack([uniform, chosen])
        answers = lab.ask(np.vstack([inside, far]))
        self.survived = int(np.isfinite(answers[: len(inside)]).sum()) + self._asked_before()
        self.outside = bool(np.isfinite(answers[len(inside) :]).any())
        self._find_region(inside)
        cleaned: Trial | None = lab.measured()
        while cleaned is not None:
            known = cleaned
            cleaned = without_outliers(self.formula, known, lab)
        drifted = drift(lab)
        if drifted is not None:
            self.reason = f"the answers drift: asked again they are {abs(drifted):.1f} standard deviations off"
            return
        if self._refute(known):
            self.refuted = True
        elif lab.evidence.certain and not self._is_exact(known):
            self.reason = "it does not leave rounding alone: it may only come close to the law"
            self.refuted = True

    def _refute(self, known: Trial) -> bool:
        """Whether answers disagree with it, which is said."""
        off = self.off(known)
        allowed = self.allowed(len(off))
        worst = int(np.argmax(off)) if len(off) else 0
        if not len(off) or off[worst] <= allowed:
            return False
        names = ", ".join(f"{v.name}={x:.6g}" for v, x in zip(self.lab.variables, known.X[worst], strict=True))
        n_off = int(np.sum(~(off <= allowed)))
        self.reason = f"{n_off} of {len(off)} answers disagree with it, the most at {names}"
        return True

    def disagree(self, other: MaskedTree) -> bool:
        """Whether answers disagree with another formula."""
        known = self.lab.measured()
        off = Attack(other, self.lab).off(known)
        return bool(not (off <= self.allowed(len(off))).all())

    def _find_region(self, inside: Array) -> None:
        """Set the answers aside that are off because they are in a region, and count the fresh points without it."""
        known = self.lab.measured()
        off = self.off(known)
        bad = ~(off <= self.allowed(len(off)))
        fresh = (known.X[:, None] == inside).all(axis=2).any(axis=1)
        if not self.lab.evidence.certain or not bad.any() or bad[fresh].sum() > MOST * fresh.sum():
            return
        region = region_of(self.formula, known, bad, self.lab)
        if region is not None:
            self.region = region
            self.survived -= int(region.holds(inside).sum())
            self.lab.log.set_aside(region.holds(self.lab.log.X))

    def _move_dropped(self, X: Array) -> None:
        """Put variables that the formula has not at their ends in two of the points: many matter there alone."""
        used = {node.value for node in self.formula if is_variable(node)}
        for column, variable in enumerate(self.lab.variables):
            if f"x{column + 1}" not in used:
                ends = variable.bounds
                X[: len(ends), column] = ends[: len(X)]

    def _is_exact(self, known: Trial) -> bool:
        """Whether, its numbers fitted to all that was measured, nothing but rounding is left."""
        lab = self.lab.at(self.lab.evidence.at(EXACT))
        data = Dataset.of([lab.evidence.weighted(known)])
        fits = [lab.fit(tree, data, n_starts=0) for tree in (self.formula, reopened(self.formula))]
        return any(lab.evidence.fits(outcome, data) for outcome in fits)

    def _asked_before(self) -> int:
        """Return how many points drawn from the whole domain the ending has asked before."""
        return int(self.lab.facts.get("checked", 0))

    def allowed(self, n: int) -> float:
        """Return how many tolerances the worst of n answers may be off."""
        return 1.0 if self.lab.evidence.certain else max(1.0, np.sqrt(2.0 * np.log(max(n, 2))) / 3.0)

    def off(self, trial: Trial) -> Array:
        """Return how far answers are off, in tolerances; those outside the domain, in noise, do not count."""
        tolerance = self.lab.evidence.tolerance(trial.y, trial.weights)
        with np.errstate(all="ignore"):
            off = np.abs(self.formula.evaluate(trial.X, self.lab.pset) - trial.y) / tolerance
        off[np.isnan(off)] = np.inf
        if not self.lab.evidence.certain:
            low, high = np.array([v.bounds for v in self.lab.variables]).T
            off[((low > trial.X) | (high < trial.X)).any(axis=1)] = 0.0
        return np.asarray(off)

    def _chosen(self, count: int) -> Array:
        """Return points at corners, beside where it was furthest off, and where it is smallest and largest, in turn."""
        lab = self.lab
        corner, beside, *decades = self._corner(), self._beside_furthest(), *self._decades(max(count - 2, 0))
        chosen = [point for point in (corner, beside, *decades) if point is not None]
        return np.array(chosen[:count]).reshape(-1, lab.n_vars)

    def _corner(self) -> Array:
        """Return a corner of the domain."""
        point: Array = self.lab.draw(1)[0]
        for i, variable in enumerate(self.lab.variables):
            if variable.sampling != "integer" and variable.sign != "both":
                edge = variable.low if self.lab.rng.uniform() < 0.5 else variable.high
                point[i] = on_grid(variable, np.array([edge]))[0]
        return point

    def _beside_furthest(self) -> Array | None:
        """Return a point beside the one where it was furthest off; None if there is none in the domain."""
        lab = self.lab
        known = lab.measured()
        if not len(known.y):
            return None
        point = 0.5 * (known.X[int(np.argmax(self.off(known)))] + lab.draw(1)[0])
        for i, variable in enumerate(lab.variables):
            point[i] = np.round(point[i]) if variable.sampling == "integer" else on_grid(variable, point[i : i + 1])[0]
        inside = [bool(_reaches(variable, point[i : i + 1])[0]) for i, variable in enumerate(lab.variables)]
        return point if all(inside) else None

    def _decades(self, count: int) -> Array:
        """Return points spread over the sizes that it has in the domain, from the smallest to the largest."""
        many = self.lab.draw(64 * max(count, 1))
        with np.errstate(all="ignore"):
            size = np.log(np.abs(self.formula.evaluate(many, self.lab.pset)))
        order = np.argsort(np.where(np.isfinite(size), size, 0.0))
        return np.asarray(many[order[np.linspace(0, len(many) - 1, count).astype(int)]])

    def _outside(self, count: int) -> Array:
        """Return points of the wider domain, where it may be asked."""
        lab = self.lab
        ranges = [wider(v, limits) for v, limits in zip(lab.variables, lab.limits, strict=True)]
        if all(wide == variable for wide, variable in zip(ranges, lab.variables, strict=True)):
            return np.empty((0, lab.n_vars))
        return _spread_out(ranges, count, lab.rng)

    # --- rivals ---

    def _compare(self) -> None:
        """Compare the formula with its rivals, asking where the nearest differs most, until one leads clearly.

        A rival that proves better takes the formula's place, and has it for a rival.
        """
        lab, asked, replaced = self.lab, 0, 0
        while not self._is_late():
            known = lab.measured()
            data = Dataset.of([known])
            self.lead, self.rivals = lead(self.formula, data, lab)
            if self._is_late():
                return
            if self.lead < 0.0 and replaced < MOST_REPLACED:
                better = finished_in_noise(self.rivals[0][1], data, lab)
                lab.facts.setdefault("others", []).append(self.formula)
                self.formula, self.errors = better.tree, better.standard_errors
                replaced += 1
                continue
            if self.lead >= CLEARLY:
                self._refute(known)  # another one may have taken its place
                return
            if asked == ATTEMPTS or not self._tell_apart(self.rivals[0][1]):
                nearest = lab.names.named(literals(self.rivals[0][1])).to_infix() if self.rivals else ""
                self.reason = f"{nearest} does nearly as well ({max(self.lead or 0.0, 0.0):.1f} nats behind)"
                return
            asked += 1

    def _is_late(self) -> bool:
        """Whether the time is up, which is said."""
        late = self.lab.budget.used_up(asking=False) is not None
        self.reason = "there was no time to compare it with its rivals" if late else self.reason
        return late

    def _tell_apart(self, rival: MaskedTree) -> bool:
        """Ask where two formulas differ most, in units of the noise; returns whether there were points left for it."""
        lab = self.lab
        n_points = int(min(TELLING, 0.5 * lab.budget.queries_left()))
        if n_points < 1:
            return False
        X = lab.draw(20 * n_points)
        with np.errstate(all="ignore"):
            values = self.formula.evaluate(X, lab.pset)
            apart = np.abs(values - rival.evaluate(X, lab.pset)) / lab.evidence.sigma(values)
        apart = np.where(np.isfinite(apart), apart, 0.0)
        lab.ask(X[np.argsort(-apart)[:n_points]])
        return True


def _reaches(variable: Variable, x: Array) -> Array:
    """Return which values are within the domain of a variable."""
    size = np.abs(x) if variable.sign == "both" else x
    return np.asarray((size >= variable.low) & (size <= variable.high))


def _spread_out(variables: Sequence[Variable], count: int, rng: np.random.Generator) -> Array:
    """Return points of which each part of each variable's range has its share: a Latin hypercube."""
    columns = []
    for variable in variables:
        places = (rng.permutation(count) + rng.uniform(size=count)) / count
        if variable.sampling == "loguniform":
            values = variable.low * (variable.high / variable.low) ** places
        elif variable.sampling == "integer":
            first, last = int(np.ceil(variable.low)), int(np.ceil(variable.high)) - 1
            values = np.minimum(first + np.floor(places * (last - first + 1)), last)
        else:
            values = variable.low + places * (variable.high - variable.low)
        if variable.sign == "both":
            values = values * rng.choice([-1.0, 1.0], count)
        columns.append(on_grid(variable, values))
    return np.column_stack(columns)
