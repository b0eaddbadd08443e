"""Finding problem files: by folder, file, pattern and name of a suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from deap_vsr.problems import suites


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("prog_10.json", "prog_9.json", "prog_1.json", "b/prog_2.json", "a/x.json", "a/notes.txt"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return tmp_path / "set"


def test_a_folder_gives_its_json_files_in_natural_order(folder: Path) -> None:
    found = [path.relative_to(folder).as_posix() for path in suites.problem_files(folder)]
    assert found == ["a/x.json", "b/prog_2.json", "prog_1.json", "prog_9.json", "prog_10.json"]


def test_a_file_gives_itself(folder: Path) -> None:
    assert suites.problem_files(str(folder / "prog_9.json")) == [folder / "prog_9.json"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("prog_1*.json", ["prog_1.json", "prog_10.json"]),
        ("prog_?.json", ["prog_1.json", "prog_9.json"]),
        ("prog_[19].json", ["prog_1.json", "prog_9.json"]),
        ("*/*.json", ["a/x.json", "b/prog_2.json"]),
    ],
)
@pytest.mark.parametrize("absolute", [True, False])
def test_a_pattern_gives_the_files_that_match(
    pattern: str, names: list[str], absolute: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    place = f"{folder if absolute else 'set'}/{pattern}"
    assert [path.resolve() for path in suites.problem_files(place)] == [folder / name for name in names]


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("trigonometric", 210),
        ("trigonometric/inv", 70),
        ("trigonometric/inv/2-1-1", 10),
        ("trigonometric/inv/2-1-1/prog_0", 1),
        ("trigonometric/*/2-1-1/*.json", 30),
        ("feynman", 120),
        ("feynman-unit", 120),
        ("livermore2", 150),
        ("classic", 73),
        ("livermore2/Vars7", 25),
        ("nothing", 0),
        ("nothing/*.json", 0),
        ("/nothing/*.json", 0),
        ("**nothing", 0),
        ("n" * 5000, 0),
        ("n" * 5000 + "*", 0),
        ("a\0b", 0),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_place_in_the_data_folder_is_found_from_anywhere(
    place: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = suites.problem_files(place)
    assert len(found) == count
    assert all(path.is_file() and path.is_relative_to(suites.data_root()) for path in found)


def test_a_pattern_gives_the_files_of_folders_that_match(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [path.resolve() for path in suites.problem_files("set/[ab]")] == [
        folder / "a/x.json",
        folder / "b/prog_2.json",
    ]
    found = suites.problem_files("trigonometric/*/2-1-1")
    assert len(found) == 30
    assert all(path.is_file() for path in found)


def test_names_with_digits_of_other_kinds_are_listed_too(tmp_path: Path) -> None:
    for name in ("1²3.json", "1\u06613.json", "1a3.json"):
        (tmp_path / name).write_text("{}")
    assert len(suites.problem_files(tmp_path)) == 3


def test_a_problem_is_called_after_its_place(tmp_path: Path) -> None:
    assert suites.name_of(suites.data_root() / "feynman" / "I.6.20.json") == "feynman/I.6.20"
    assert suites.name_of(tmp_path / "I.6.20.json") == "I.6.20"
    assert suites.name_of(tmp_path / "plain") == "plain"
    assert suites.name_of(tmp_path / "I.6.20") == "I.6.20"


def test_names_are_the_same_where_the_data_folder_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "data"
    link.symlink_to(suites.data_root(), target_is_directory=True)
    monkeypatch.setattr(suites, "data_root", lambda: link)
    assert suites.name_of(link / "feynman" / "I.6.20.json") == "feynman/I.6.20"
