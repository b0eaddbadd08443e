"""Limits and what is spent of them, of a whole and of its parts."""

import math
from types import SimpleNamespace

import pytest

from deap_vsr.lab import budget as module
from deap_vsr.lab.budget import NAMES, Budget


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes when it is told to."""
    clock = SimpleNamespace(now=5.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_without_limits_nothing_is_used_up():
    budget = Budget()
    budget.count(10**9)
    budget.count_queries(10**9)
    assert budget.used_up() is None
    assert budget.seconds_left() is None
    assert budget.queries_left() == math.inf
    assert [budget.left(name) for name in NAMES] == [math.inf] * 3


@pytest.mark.parametrize("name", ["evaluations", "queries"])
def test_a_limit_is_reached_when_as_much_is_spent(name):
    budget = Budget(**{name: 10})
    count = budget.count if name == "evaluations" else budget.count_queries
    count(9)
    assert budget.used_up() is None
    assert budget.left(name) == 1
    count(1)
    assert budget.used_up() == name
    count(5)
    assert budget.left(name) == -5
    assert budget.spent[name] == 15


def test_seconds_run_from_the_start_or_from_what_was_spent_before(clock):
    budget = Budget(seconds=100.0)
    clock.now += 10.0
    assert budget.seconds_left() == 90.0
    budget.resume({"seconds": 70.0, "evaluations": 3, "queries": 4, "batches": 2})
    clock.now += 1.0
    assert budget.seconds_left() == 29.0
    assert budget.spent == {"seconds": 71.0, "evaluations": 3, "queries": 4, "batches": 2}
    budget.restart()
    assert budget.seconds_left() == 100.0
    clock.now += 99.0
    assert budget.used_up() is None
    clock.now += 1.0
    assert budget.used_up() == "seconds"
    assert budget.seconds_left() > 0.0, "a deadline is never now"


def test_a_limit_of_nothing_is_reached_at_once():
    for name in NAMES:
        assert Budget(**{name: 0}).used_up() == name


def test_whoever_shows_progress_is_told_of_evaluations_in_every_part():
    told = []
    whole = Budget(tick=lambda: told.append(1))
    whole.part(0.5).part(0.5).count(7)
    assert len(told) == 1


# --- parts --------------------------------------------------------------------------------


def test_parts_of_a_budget_count_for_the_whole():
    whole = Budget(evaluations=100, queries=1000)
    part = whole.part(0.5)
    assert part.limits["evaluations"] == 50
    part.count(60)
    assert part.used_up() == "evaluations"
    assert whole.used_up() is None
    assert whole.evaluations == 60
    assert whole.part(0.5).limits["evaluations"] == 20
    part.count_queries(1000)
    assert whole.queries == 1000
    assert whole.used_up() == "queries"
    assert whole.part(1.0).used_up() is not None


def test_a_part_has_its_share_of_what_is_left_of_each(clock):
    whole = Budget(seconds=1000.0, evaluations=100, queries=1000)
    clock.now += 200.0
    whole.count(20)
    whole.count_queries(200)
    part = whole.part(0.25)
    assert part.limits == {"seconds": 200.0, "evaluations": 20, "queries": 200}
    assert part.spent == {"seconds": 0.0, "evaluations": 0, "queries": 0, "batches": 0}
    clock.now += 200.0
    assert part.used_up() == "seconds"
    assert whole.used_up() is None


def test_of_what_is_not_shared_the_limits_of_the_whole_hold(clock):
    whole = Budget(seconds=1000.0, evaluations=100, queries=1000)
    part = whole.part(0.25, ("evaluations",))
    assert part.limits == {"seconds": None, "evaluations": 25, "queries": None}
    assert part.queries_left() == 1000
    clock.now += 100.0
    assert part.seconds_left() == 900.0
    whole.count_queries(999)
    assert part.queries_left() == 1
    assert part.used_up() is None
    part.count_queries(1)
    assert part.used_up() == whole.used_up() == "queries"


def test_a_part_is_used_up_when_its_whole_is():
    whole = Budget(evaluations=100)
    part = whole.part(0.9).part(0.9)
    whole.count(100)
    assert part.evaluations == 0
    assert part.used_up() == "evaluations"
    assert part.left("evaluations") == 0


def test_a_part_has_no_more_than_it_may_at_most():
    whole = Budget(evaluations=100, queries=1000)
    part = whole.part(0.5, evaluations=10, queries=800)
    assert (part.limits["evaluations"], part.limits["queries"]) == (10, 500)
    part = whole.part(names=(), evaluations=10_000, queries=None)
    assert part.limits == {"seconds": None, "evaluations": 10_000, "queries": None}
    assert part.left("evaluations") == 100, "what the whole has not, the part has not"


def test_a_part_of_what_is_overspent_is_nothing():
    whole = Budget(evaluations=100)
    whole.count(150)
    assert whole.part(0.5).limits["evaluations"] == 0


def test_a_part_of_a_budget_without_limits_has_none():
    part = Budget().part(0.1)
    assert part.limits == dict.fromkeys(NAMES)
    assert part.used_up() is None


def test_a_lenient_part_is_used_up_at_its_limit_but_points_are_left_as_in_the_whole():
    whole = Budget(evaluations=100, queries=1000)
    part = whole.part(0.1).lenient()
    assert part.queries_left() == 1000
    assert part.left("evaluations") == 10
    part.count_queries(150)
    assert part.used_up() == "queries"
    assert part.queries_left() == whole.queries_left() == 850
    assert whole.used_up() is None
