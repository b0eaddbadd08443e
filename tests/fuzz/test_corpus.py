"""Past failures of readers, and a few seeded damages of each: refused in one line or read, never a traceback."""

import copy
import random
import warnings
from contextlib import suppress
from pathlib import Path

import mutate
import pytest
import targets
from fuzz import case

from deap_vsr.errors import VsrError

NAMES = [name for name in targets.TARGETS if name != "discover"]


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Read in a folder of its own, without pictures, with every warning an error."""
    monkeypatch.setattr(targets, "FOLDER", tmp_path)
    monkeypatch.setattr(targets.report, "have_matplotlib", lambda: False)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield tmp_path
    assert not (tmp_path / "marker").exists()


def edited(name, at, value, number=0):
    """Return a sound document with another value at a place."""
    document = copy.deepcopy(targets.TARGETS[name].document(number))
    return targets.TARGETS[name].write(mutate.put(document, at, value)).encode("utf-8", "surrogatepass")


STATE = ["state"]
MCTS = ["state", "regressor"]
#: Target, place, value. What was seen before it was mended is behind it.
DAMAGES = [
    ("checkpoint mcts", [*MCTS, "data", "offsets"], [0, 50_000_000]),  # segmentation fault
    ("checkpoint mcts", [*MCTS, "own", "edges"], [[0, 1], [1, 2], [2, 1]]),  # never ended
    ("checkpoint mcts", [*MCTS, "own", "visits"], []),  # IndexError
    ("checkpoint mcts", [*MCTS, "own", "nodes"], [[0, ""], [1, "A -> nothing"]]),  # KeyError
    ("checkpoint mcts", [*MCTS, "best"], 7),  # TypeError
    ("checkpoint gp", [*MCTS, "population"], [[["leaf", "x999", True]]]),  # read beyond an array
    ("checkpoint gp", [*MCTS, "random"], [3, [1, 2], None]),  # ValueError
    ("checkpoint gp", [*MCTS, "seen"], "no base64!"),  # binascii.Error
    ("checkpoint vsr-gp", [*STATE, "hall", "data", "offsets"], [0, 10**9]),  # segmentation fault
    ("checkpoint vsr-gp", [*STATE, "number"], 7),  # IndexError
    ("checkpoint vsr-gp", [*STATE, "latest"], [["leaf", 1, True]]),  # TypeError
    ("checkpoint gp", [*STATE, "spent"], {"seconds": "x"}),  # TypeError
    ("checkpoint gp", [*STATE, "refused"], [[]]),  # TypeError: unhashable
    ("store", [0, "result", "rounds", 0, "slots"], "<script>alert(1)</script>"),  # ran in a browser
    ("store", [0, "result", "rounds", 0], {}),  # KeyError
    ("store", [0, "seed"], "x"),  # ValueError
    ("store", [0, "nmse"], float("nan")),  # ranked first
    ("store", [0, "noise"], []),  # TypeError
    ("store", [0, "machine"], None),  # TypeError
    ("store", [0, "error"], "\ud800"),  # UnicodeEncodeError
    ("store", [0, "evaluations"], 10**400),  # OverflowError
    ("settings", ["methods"], {"a": 1}),  # TypeError
    ("settings", ["runs"], None),
    ("settings", ["time_limit"], "1"),
    ("equation", ["variables", 0, "low"], 10**400),
    ("result", ["kept", "standard_errors"], [1.0]),  # ValueError when it was shown
    ("result", ["kept", "correlation"], [[1.0], []]),  # ValueError
    ("result", ["kept", "schedule"], [[999]]),  # IndexError
    ("result", ["kept", "rounds", 0, "tree"], [["leaf", "x999", True]]),  # IndexError
    ("result", ["kept", "names", "given"], []),  # IndexError
    ("result", ["kept", "settings"], {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}),  # RecursionError, if deeper
]


@pytest.mark.parametrize(("name", "at", "value"), DAMAGES, ids=lambda part: str(part)[:40])
def test_what_once_failed_is_refused_with_file_and_place(name, at, value):
    with pytest.raises(VsrError) as caught:
        targets.TARGETS[name].try_one(edited(name, at, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_deep_nesting_is_refused():
    deep = b"[" * 100_000
    for name in NAMES:
        with pytest.raises(VsrError):
            targets.TARGETS[name].try_one(deep)


@pytest.mark.parametrize("sigma", ["1e-200", "1e200"])
def test_a_standard_error_whose_square_is_no_number_is_one_like_others(sigma):
    # A warning of numpy's, and weights of no meaning.
    text = f"id,E,S,v,sigma\n2,1.0,2.0,2.43,{sigma}\n2,1.0,2.0,2.45,{sigma}\n"
    state = targets.laboratory(targets.made_laboratory(), targets.ASKED, text)
    assert state.answers[0].y == pytest.approx(2.44)
    assert state.answers[0].sigma == pytest.approx(float(sigma) / 2**0.5)


#: So many of each are read in a fraction of a second; `make fuzz` reads many more.
COUNTS = {"equation": 300, "grammar": 40, "log": 200, "store": 60, "settings": 60}
COUNTS |= dict.fromkeys(("laboratory", "measured", "asked", "table", "result"), 40)


@pytest.mark.parametrize("name", NAMES)
def test_seeded_damages_are_read_or_refused(name):
    for number in range(COUNTS.get(name, 12)):
        content = targets.TARGETS[name].draw(case(name, 7, number))
        with suppress(VsrError):
            targets.TARGETS[name].try_one(content)


def test_a_case_is_known_by_target_seed_and_number():
    first, again = (targets.TARGETS["store"].draw(case("store", 3, 5)) for _ in range(2))
    assert first == again
    assert isinstance(case("store", 3, 5), random.Random)


@pytest.mark.parametrize("number", range(25))
def test_discover_of_a_random_law_ends_with_a_result_or_a_clear_word(number):
    with suppress(VsrError):
        targets.TARGETS["discover"].try_one(targets.TARGETS["discover"].draw(case("discover", 7, number)))


def test_the_fuzzer_knows_every_target():
    text = Path(__file__).with_name("fuzz.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in text for name in targets.TARGETS)
