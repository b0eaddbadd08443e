"""What is no file where a file is wanted: refused at once, not waited for."""

import os

import pytest

from cfg_mcts import Grammar
from deap_vsr.compare.store import read_rows, read_settings
from deap_vsr.errors import VsrError
from deap_vsr.files import read_bytes
from deap_vsr.lab.log import Log
from deap_vsr.search.checkpoint import Checkpoint


@pytest.mark.parametrize(
    "read",
    [
        Grammar.from_file,
        lambda path: Log(["x1"], path),
        lambda path: Checkpoint(path, {}, resume=True).load(),
        lambda path: read_settings(path.parent),
        lambda path: read_rows(path.parent),
    ],
    ids=["grammar", "log", "checkpoint", "settings", "rows"],
)
def test_a_pipe_is_no_file(read, tmp_path):
    # Fails at 95877ac: each waits for a writer that never comes.
    for name in ("file", "comparison.json", "runs.jsonl"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(VsrError, match="a pipe or a device"):
        read(tmp_path / "file")


def test_a_file_that_never_ends_is_no_grammar():
    with pytest.raises(VsrError, match="a pipe or a device"):
        Grammar.from_file("/dev/zero")


def test_a_file_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_bytes(tmp_path / "file", 4)


@pytest.mark.parametrize("name", ["", "."])
def test_an_empty_name_is_no_checkpoint(name, tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    with pytest.raises(VsrError, match="empty name"):
        Checkpoint(Path(name), {})
