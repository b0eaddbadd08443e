"""The forms a round has met: a set, but small, and forgetting the oldest."""

import random
import sys
from base64 import b64encode

import numpy as np
import pytest

from deap_vsr.gp.seen import Seen


class FewSeen(Seen):
    """Forgets soon."""

    WAITING = 5
    HALF = 40


def forms(n, seed=0):
    """Return hashes as they come, the extremes among them."""
    rng = random.Random(seed)
    return [0, -1, 2**63 - 1, -(2**63), *(rng.getrandbits(64) - 2**63 for _ in range(n - 4))]


def test_it_holds_what_a_set_would_hold():
    known, seen = set(), Seen()
    for number, form in enumerate([*forms(30_000), *forms(100), *forms(30_000, 1)]):
        assert (form in seen) == (form in known)
        known.add(form)
        seen.add(form)
        assert form in seen
        if number % 7000 == 0:
            assert len(seen) == len(known)
    assert len(seen) == len(known) > 59_000


def test_its_text_is_that_of_the_sorted_numbers_until_something_is_forgotten():
    # What checkpoints held before, so that those can still be gone on with.
    known = forms(10_000)
    assert Seen(known).state() == b64encode(np.array(sorted(known), np.int64).tobytes()).decode()
    assert Seen().state() == ""


def test_the_oldest_are_forgotten_and_the_last_are_always_known():
    seen, met = FewSeen(), forms(1000)
    for number, form in enumerate(met):
        assert form not in seen
        seen.add(form)
        assert all(known in seen for known in met[max(number - 39, 0) : number + 1])
        assert len(seen) < 2 * 40
    assert met[0] not in seen
    assert sum(form in seen for form in met) == len(seen)


@pytest.mark.parametrize("n", [4, 39, 40, 41, 79, 80, 81, 117, 203])
def test_restored_from_its_text_it_goes_on_as_if_nothing_had_happened(n):
    met = forms(500)
    seen = FewSeen(met[:n])
    restored = FewSeen.restored(seen.state())
    for form in met[n:]:
        seen.add(form)
        restored.add(form)
        assert len(restored) == len(seen)
        assert restored.state() == seen.state()
    assert [form in restored for form in met] == [form in seen for form in met]


def test_it_takes_less_than_a_seventh_of_what_a_set_takes():
    known = forms(200_000)
    plain = sys.getsizeof(set(known)) + sum(map(sys.getsizeof, known))
    assert sum(sys.getsizeof(part) for part in vars(Seen(known)).values()) < plain / 7
