"""What holds for every search alike: joint, slotwise, slotwise in noise, sums in noise."""

import numpy as np
import pytest

from deap_vsr import CallableOracle
from deap_vsr.forms.atoms import atoms_of
from deap_vsr.forms.regressor import FormsRegressor
from deap_vsr.gp.regressor import GpRegressor
from deap_vsr.lab.budget import Budget
from deap_vsr.lab.lab import Lab
from deap_vsr.search.joint import Joint, JointOptions
from deap_vsr.search.slot_options import SlotOptions
from deap_vsr.search.slotwise import Slotwise
from deap_vsr.search.sums import Sums
from deap_vsr.search.vertical import vertical
from deap_vsr.tree import Constant

OPERATORS = ("add", "sub", "mul", "const")
#: Each search, and whether its answers have noise.
SEARCHES = {"joint": False, "slots": False, "slots in noise": True, "sums in noise": True}

every_search = pytest.mark.parametrize("search", SEARCHES)


def expansion_of(search):
    if search == "joint":
        return Joint(GpRegressor())
    if search == "sums in noise":
        return Sums(atoms_of)
    return Slotwise(FormsRegressor(), SlotOptions.in_noise() if SEARCHES[search] else SlotOptions())


def lab_of(search, law, n_vars, scale=1.0, limits=None, domain=(1.0, 3.0), queries=None):
    """Return a laboratory with noise of a thousandth where the search is one in noise."""
    noise = 1e-3 * scale if SEARCHES[search] else 0.0
    oracle = CallableOracle(lambda X: scale * law(X), [domain] * n_vars, OPERATORS, noise=noise, limits=limits, seed=1)
    lab = Lab(oracle, Budget(evaluations=2_000_000, queries=queries or 40_000), np.random.default_rng(3))
    lab.begin()
    return lab


def schedule_of(n_vars):
    return tuple((column,) for column in range(n_vars))


def found_by(search, lab):
    return vertical(lab, expansion_of(search), schedule_of(lab.n_vars))


def error_of(found, law, n_vars, domain=(1.0, 3.0), scale=1.0):
    X = np.random.default_rng(9).uniform(*domain, (200, n_vars))
    y = law(X)
    return float(np.max(np.abs(found.tree.evaluate(X) / scale - y) / np.abs(y)))


def product(X):
    return 2.0 * X[:, 0] * X[:, 1] + 0.5


@every_search
def test_variables_that_do_not_matter_are_never_freed(search):
    n_vars = 15  # in noise a few variables are all kept
    lab = lab_of(search, lambda X: 2.0 * X[:, 3] * X[:, 11] + 0.5, n_vars)
    found = found_by(search, lab)
    assert found.stopped_by == "found"
    assert {column for record in found.rounds for column in record.freed} == {3, 11}


@every_search
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_huge_and_tiny_answers_are_asked_for_in_other_units(search, scale):
    lab = lab_of(search, product, 2, scale)
    found = found_by(search, lab)
    assert found.stopped_by == "found"
    assert error_of(found, product, 2, scale=scale) < (1e-3 if SEARCHES[search] else 1e-11)
    assert (found.noise > 0) == SEARCHES[search]
    assert found.noise == pytest.approx(1e-3 * scale if SEARCHES[search] else 0.0, rel=0.3)
    numbers = [node.value for node in found.tree if isinstance(node, Constant) and abs(node.value) != 1.0]
    assert sorted(numbers) == pytest.approx([0.5 * scale, 2.0 * scale], rel=1e-12)
    assert len(found.standard_errors) == 2


@every_search
def test_tied_slots_become_one(search):
    def law(X):
        return (X[:, 0] + 2.0 * X[:, 1]) * (X[:, 2] + 3.0)

    lab = lab_of(search, law, 3)
    found = found_by(search, lab)
    assert found.stopped_by == "found"
    second = [record for record in found.rounds if record.freed == (0, 1) and record.accepted]
    assert second
    assert second[-1].slots == 1  # C*(x1 + 2*x2), not C*x1 + C*x2


@every_search
def test_answers_have_short_numbers_and_standard_errors(search):
    found = found_by(search, lab_of(search, product, 2))
    numbers = [node.value for node in found.tree if isinstance(node, Constant) and abs(node.value) != 1.0]
    assert sorted(numbers) == [0.5, 2.0]
    assert found.standard_errors is not None
    assert len(found.standard_errors) == 2
    assert all(0.0 <= error < 1e-2 for error in found.standard_errors)


@every_search
def test_a_formula_that_fails_on_a_wider_domain_is_not_found(search):
    def law(X):
        inside = ((X >= 1.0) & (X <= 3.0)).all(axis=1)
        return np.where(inside, product(X), 40.0 + X[:, 0])

    lab = lab_of(search, law, 2, limits=[(0.0, 6.0)] * 2, queries=20_000)
    expansion = expansion_of(search)
    if search == "joint":
        expansion = Joint(GpRegressor(generations=20), JointOptions(restart=False))
    found = vertical(lab, expansion, schedule_of(2))
    assert found.stopped_by != "found"
    assert error_of(found, product, 2) < 1e-2  # and is given as the best so far


class KilledError(BaseException):
    """Stands for kill -9: nothing is done after it."""


class Mortal(CallableOracle):
    """Is killed when asked for more than so many points."""

    last = np.inf

    def evaluate(self, X):
        if self.queries + len(X) > self.last:
            raise KilledError
        return super().evaluate(X)


@every_search
def test_a_killed_run_goes_on_from_its_log(search, tmp_path):
    log = tmp_path / "points.csv"

    def run(last, log):
        oracle = Mortal(product, [(1.0, 3.0)] * 2, OPERATORS, noise=1e-3 if SEARCHES[search] else 0.0, seed=1)
        oracle.last = last
        lab = Lab(oracle, Budget(evaluations=50_000, queries=20_000), np.random.default_rng(3), log=log)
        lab.begin()
        return found_by(search, lab), lab, oracle

    whole, once, _ = run(np.inf, None)
    for last in (50, 600 if SEARCHES[search] else 250):
        with pytest.raises(KilledError):
            run(last, log)
    kept = len(log.read_text().splitlines()) - 1
    again, lab, oracle = run(np.inf, log)
    assert again.tree.to_infix() == whole.tree.to_infix()
    assert lab.budget.queries == once.budget.queries
    assert lab.log.n_read == kept > 20
    assert oracle.queries == once.budget.queries - kept


@every_search
def test_what_was_measured_is_known_to_the_next_search(search):
    lab = lab_of(search, product, 2)
    found_by(search, lab)
    before, facts = len(lab.log), dict(lab.facts)
    assert before == lab.budget.queries
    lab.begin()  # nothing is asked twice: noise, size, which variables matter
    assert len(lab.log) == before
    found_by(search, lab)
    assert lab.facts == facts
    assert len(lab.measured().y) == len(lab.log) > before


@every_search
def test_a_search_charges_the_part_of_the_budget_that_it_is_given(search):
    lab = lab_of(search, product, 2)
    begun = lab.budget.evaluations
    part = lab.part(0.5)
    found_by(search, part)
    assert part.budget.evaluations == lab.budget.evaluations - begun > 0
    assert part.budget.queries > 0


def test_a_round_that_leaves_much_more_than_the_noise_is_not_accepted():
    lab = lab_of("sums in noise", lambda X: np.exp(np.sin(6.0 * X[:, 0])) * X[:, 1], 2)
    found = found_by("sums in noise", lab)
    assert found.stopped_by != "found"
    assert found.rounds
    assert not any(record.accepted for record in found.rounds)
