"""The house: imports point one way, a search knows no regressor, one place asks, and the old doors still open."""

import ast
import importlib
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import pytest

import cfg_mcts
import deap_vsr
from deap_vsr._moved import MOVED, SPLIT

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (deap_vsr, cfg_mcts)}

#: Bottom to top: a room imports from those before it, and not from its own row. deap_vsr itself is what people type.
ORDER = (
    ("errors",),
    ("_moved", "files", "memory", "loading", "markup", "interrupts"),
    ("tree",),
    ("engine", "plot"),
    ("problems",),
    ("lab",),
    ("search",),
    ("forms", "cfg_mcts", "testing"),
    ("gp",),
    ("neural",),
    ("judge",),
    ("deap_vsr",),
    ("saved", "shown"),
    ("result", "peers", "doors", "narrate"),
    ("methods", "terminal"),
    ("campaign",),
    ("adapters",),
    ("table",),
    ("estimator",),
    ("table_command",),
    ("compare", "bench", "discover_command"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, row in enumerate(ORDER) for room in row}
SEARCHING = ("lab", "search", "forms", "gp", "cfg_mcts", "neural")


def modules():
    """Return the parsed source of every module, by its name."""
    found = {}
    for package, folder in PACKAGES.items():
        for file in sorted(folder.rglob("*.py")):
            parts = (package, *file.relative_to(folder).with_suffix("").parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return found


MODULES = modules()


def room(module):
    """Return the room of a module: the folder or file in deap_vsr, or the package."""
    package, *rest = module.split(".")
    return rest[0] if package == "deap_vsr" and rest else package


def for_types_only(tree):
    """Return the nodes below ``if TYPE_CHECKING:``: they are not imported when the program runs."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    return {id(node) for test in tests for statement in test.body for node in ast.walk(statement)}


def imported(name):
    """Yield every module of ours that a module imports, anywhere in it."""
    skipped = for_types_only(MODULES[name])
    for node in ast.walk(MODULES[name]):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            assert node.module is not None
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [target if target in MODULES else node.module for target in targets]
        else:
            continue
        yield from (target for target in targets if target.split(".")[0] in PACKAGES)


def imports_between_rooms():
    """Return for each room the rooms it imports from, and by which modules."""
    found = defaultdict(set)
    for name in MODULES:
        for target in imported(name):
            if room(target) != room(name):
                found[room(name), room(target)].add(f"{name} imports {target}")
    return found


def test_every_room_has_its_place():
    assert {room(name) for name in MODULES} == set(LEVEL)


def test_imports_point_one_way():
    wrong = [lines for (above, below), lines in imports_between_rooms().items() if LEVEL[below] >= LEVEL[above]]
    assert not wrong


@pytest.mark.parametrize("name", ["deap_vsr.search", "deap_vsr.lab"])
def test_search_and_laboratory_know_no_regressor(name):
    of_room = [module for module in MODULES if room(module) == name.split(".")[1]]
    assert len(of_room) > 5
    known = {room(target) for module in of_room for target in imported(module)}
    assert not known & {"forms", "gp", "cfg_mcts", "neural", "methods"}


def test_mcts_needs_no_gp_and_no_forms():
    known = {room(target) for module in MODULES if room(module) == "cfg_mcts" for target in imported(module)}
    assert known <= {"cfg_mcts", "tree", "engine", "lab", "search", "errors", "files", "plot"}


def test_the_judge_is_no_part_of_a_search():
    knowing = {room(module) for module in MODULES for target in imported(module) if room(target) == "judge"}
    assert not knowing & set(SEARCHING)


def asks(tree):
    """Yield the lines in which ``oracle.evaluate`` is called, or handed on, of a name or an attribute `oracle`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "evaluate":
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name.lstrip("_") == "oracle":
                yield node.lineno


def test_the_laboratory_alone_asks():
    asking = {name for name, tree in MODULES.items() if list(asks(tree))}
    assert "deap_vsr.lab.lab" in asking
    # The contract for everybody's oracle asks it, to test it.
    assert {name for name in asking if room(name) != "lab"} == {"deap_vsr.testing"}


# --- what is looked for is seen -----------------------------------------------------------


def test_imports_within_functions_are_seen_and_those_for_types_are_not(monkeypatch):
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from deap_vsr.gp.regressor import GpRegressor
def late():
    from deap_vsr import forms
    import deap_vsr.judge.metrics
"""
    monkeypatch.setitem(MODULES, "deap_vsr.search.example", ast.parse(source))
    assert list(imported("deap_vsr.search.example")) == ["deap_vsr.forms", "deap_vsr.judge.metrics"]


@pytest.mark.parametrize("text", ["oracle.evaluate(X)", "self.oracle.evaluate(X)", "map(lab._oracle.evaluate, X)"])
def test_a_question_to_an_oracle_is_seen(text):
    assert list(asks(ast.parse(text))) == [1]
    assert not list(asks(ast.parse("tree.evaluate(X) + evaluate(oracle)")))


# --- version 0.1 --------------------------------------------------------------------------


@pytest.fixture
def old_import(monkeypatch):
    """Return a function that imports as version 0.1 did, for the first time, and gives the module and the warnings."""
    for name in MOVED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    old_names = {name.split(".")[1] for name in MOVED}
    face = {name: value for name, value in vars(deap_vsr).items() if name in old_names}

    def old_import(name):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = importlib.import_module(name)
        assert all(issubclass(warning.category, DeprecationWarning) for warning in caught)
        return module, [str(warning.message) for warning in caught]

    yield old_import
    for name in MOVED:
        sys.modules.pop(name, None)
    for name in old_names:
        vars(deap_vsr).pop(name, None)
    vars(deap_vsr).update(face)


def test_imports_of_version_0_1_still_work_with_a_warning(old_import):
    module, told = old_import("deap_vsr.control.oracle")
    assert told[-1] == "deap_vsr.control.oracle is deap_vsr.lab.oracle since version 0.2"
    assert module.CallableOracle is deap_vsr.CallableOracle
    with pytest.warns(DeprecationWarning, match=r"deap_vsr\.operators is deap_vsr\.tree\.operators"):
        from deap_vsr.operators import register
    assert register is deap_vsr.register_operator
    with pytest.warns(DeprecationWarning, match=r"deap_vsr\.metrics is deap_vsr\.judge\.metrics"):
        from deap_vsr.metrics import judge
    assert judge is importlib.import_module("deap_vsr.judge.metrics").judge


@pytest.mark.parametrize("name", sorted(MOVED))
def test_every_module_that_moved_is_found_where_it_is_now(name, old_import):
    old, told = old_import(name)
    assert any(message.startswith(f"{name} is {MOVED[name]} ") for message in told)
    for home in (MOVED[name], *SPLIT.get(name, ())):
        new = importlib.import_module(home)
        assert {key for key in vars(new) if not key.startswith("__")} <= set(vars(old))
    assert old_import(name) == (old, []), "it is told once"


@pytest.mark.parametrize(
    "name",
    [
        "deap_vsr.nothing",
        "deap_vsr.control.nothing",
        "deap_vsr.control.slots",
        "deap_vsr.forms.noisy",
        "deap_vsr.operators.nothing",
    ],
)
def test_a_module_that_never_was_or_is_gone_is_not_found(name, old_import):
    with pytest.raises(ModuleNotFoundError):
        old_import(name)


def test_what_version_0_1_exported_is_still_there():
    for name in deap_vsr.__all__:
        assert getattr(deap_vsr, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        deap_vsr.nothing  # noqa: B018
