"""DEAP scripts as people write them, plain and with vertical search: a few lines apart, and better."""

import difflib
import runpy
import warnings
from pathlib import Path

import pytest
from deap import creator

HERE = Path(__file__).parent
KINDS = sorted(path.stem.removesuffix("_plain") for path in HERE.glob("*_plain.py"))
#: What a script is told, and no other is.
TOLD = {"no_constants": "no ephemeral constant", "table_scattered": "nothing constant"}


def best_of(kind, version):
    """Return the best individual of a script, and what was said in warnings; the classes it makes go afterwards."""
    before = set(vars(creator))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = runpy.run_path(str(HERE / f"{kind}_{version}.py"))["main"](seed=0)
    for name in set(vars(creator)) - before:
        delattr(creator, name)
    return found, [str(one.message) for one in said]


def test_there_are_twelve_kinds_at_least_each_with_both_versions():
    assert len(KINDS) >= 12
    assert all((HERE / f"{kind}_vertical.py").exists() for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_vertical_script_is_at_most_ten_lines_away(kind):
    plain, vertical = ((HERE / f"{kind}_{version}.py").read_text().splitlines() for version in ("plain", "vertical"))
    changed = [line for line in difflib.ndiff(plain[1:], vertical[1:]) if line[2:].strip()]  # the first line is a title
    for sign in "+-":
        assert sum(line[:2] == f"{sign} " for line in changed) <= 10


@pytest.mark.parametrize("kind", KINDS)
def test_the_vertical_script_ends_better_in_its_first_objective_with_the_same_seed(kind):
    plain, _ = best_of(kind, "plain")
    vertical, said = best_of(kind, "vertical")
    assert vertical.fitness.wvalues[0] > plain.fitness.wvalues[0]
    assert [TOLD[kind] in text for text in said] == [True] * (kind in TOLD)
    assert type(vertical) is not type(plain)  # each of its own script's class
    assert len(vertical) <= 60
