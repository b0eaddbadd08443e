"""The store: what is written stays, whatever happens to the process."""

import errno
import json
import os

import pandas
import pytest
from rows import old_row_of, row_of, settings_of

from deap_vsr import VsrError
from deap_vsr.compare.job import NEW_COLUMNS
from deap_vsr.compare.store import RUNS, SETTINGS, Store, read_rows, read_settings

SETTINGS_OF = settings_of([])


def filled(folder, n=3):
    with Store(folder, SETTINGS_OF) as store:
        for seed in range(n):
            store.append(row_of(seed=seed))
    return folder / RUNS


def test_rows_come_back_as_they_were_written(tmp_path):
    filled(tmp_path)
    assert read_rows(tmp_path) == [row_of(seed=seed) for seed in range(3)]
    assert read_settings(tmp_path) == SETTINGS_OF


def test_pandas_reads_the_store_in_one_line(tmp_path):
    frame = pandas.read_json(filled(tmp_path), lines=True)
    assert list(frame["seed"]) == [0, 1, 2]
    assert list(frame["nmse"]) == [0.1] * 3


def test_a_row_is_on_the_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("deap_vsr.compare.store.os.fsync", lambda fd: synced.append((tmp_path / RUNS).read_bytes()))
    with Store(tmp_path, SETTINGS_OF) as store:
        synced.clear()
        store.append(row_of())
        assert [json.loads(content) for content in synced] == [row_of()]


def test_a_run_is_not_counted_twice(tmp_path):
    with Store(tmp_path, SETTINGS_OF) as store:
        assert store.append(row_of())
        assert not store.append(row_of(nmse=0.5))
    assert read_rows(tmp_path) == [row_of()]


def test_runs_that_failed_are_missing_again_where_that_is_asked_for(tmp_path):
    with Store(tmp_path, SETTINGS_OF) as store:
        store.append(row_of(seed=0))
        store.append(row_of(seed=1, nmse=None) | {"status": "failed"})
    with Store(tmp_path, SETTINGS_OF, resume=True) as store:
        assert len(store.rows) == 2
    with Store(tmp_path, SETTINGS_OF, resume=True, retry_failed=True) as store:
        assert len(store.rows) == 1
        with pytest.raises(VsrError, match="another comparison is writing there"):
            Store(tmp_path, SETTINGS_OF, resume=True)
        assert store.append(row_of(seed=1))
    assert read_rows(tmp_path) == [row_of(seed=0), row_of(seed=1)]


def test_where_all_runs_failed_all_are_missing_again(tmp_path):
    with Store(tmp_path, SETTINGS_OF) as store:
        store.append(row_of(nmse=None) | {"status": "failed"})
    with Store(tmp_path, SETTINGS_OF, resume=True, retry_failed=True) as store:
        assert not store.rows
    assert read_rows(tmp_path) == []


@pytest.mark.parametrize("lost", [1, 2, 200])
def test_a_line_torn_by_a_kill_is_cut_off_and_its_run_is_missing_again(tmp_path, lost):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:-lost])
    assert read_rows(tmp_path) == [row_of(seed=0), row_of(seed=1)]
    with Store(tmp_path, SETTINGS_OF, resume=True) as store:
        assert len(store.rows) == 2
        assert store.append(row_of(seed=2))
    assert read_rows(tmp_path) == [row_of(seed=seed) for seed in range(3)]


def test_every_way_to_tear_the_last_line_leaves_the_lines_before(tmp_path):
    path = filled(tmp_path, 2)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole), 37):
        path.write_bytes(whole[:end])
        assert read_rows(tmp_path) == [row_of(seed=0)]


def test_damage_in_the_middle_is_not_passed_over_in_silence(tmp_path):
    path = filled(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{\n" + lines[2])
    with pytest.raises(VsrError, match="line 2 is damaged"):
        Store(tmp_path, SETTINGS_OF, resume=True)


def test_rows_of_another_version_are_refused_and_kept(tmp_path):
    path = filled(tmp_path)
    before = path.read_bytes() + json.dumps({"problem": "p"}).encode() + b"\n"
    path.write_bytes(before)
    with pytest.raises(VsrError, match="line 4 has no method; were these runs made by another version"):
        Store(tmp_path, SETTINGS_OF, resume=True)
    assert path.read_bytes() == before


def test_rows_of_before_it_was_said_how_answers_stand_are_read_and_gone_on_with(tmp_path):
    blank = dict.fromkeys(NEW_COLUMNS)
    path = filled(tmp_path, 0)
    path.write_text(
        "".join(json.dumps(old_row_of(seed=seed, nmse=nmse)) + "\n" for seed, nmse in ((0, 0.0), (1, None)))
    )
    assert read_rows(tmp_path) == [old_row_of(seed=0, nmse=0.0) | blank, old_row_of(seed=1, nmse=None) | blank]
    before = path.read_bytes()
    with Store(tmp_path, SETTINGS_OF, resume=True) as store:
        assert not store.append(row_of(seed=0))
        assert store.append(row_of(seed=2))
    assert path.read_bytes().startswith(before)
    with Store(tmp_path, SETTINGS_OF, resume=True, retry_failed=True) as store:
        assert len(store.rows) == 2
    assert read_rows(tmp_path) == [old_row_of(seed=0, nmse=0.0) | blank, row_of(seed=2)]


def test_a_full_disk_is_a_clear_error_and_what_was_written_stays(tmp_path, monkeypatch):
    filled(tmp_path)
    write = os.write

    def full(fd, data):
        if len(data) > 100:
            return write(fd, data[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store(tmp_path, SETTINGS_OF, resume=True) as store:
        line = len(json.dumps(row_of(seed=3), ensure_ascii=False)) + 1
        assert line % 100, "the last piece meets the full disk"
        monkeypatch.setattr("deap_vsr.compare.store.os.write", full)
        with pytest.raises(
            VsrError, match=r"No space left on device\. 3 runs are safe; make room on the disk and go on"
        ):
            store.append(row_of(seed=3))
    assert (tmp_path / RUNS).read_bytes().endswith(b"\n")
    assert len(read_rows(tmp_path)) == 3


def test_a_folder_with_runs_is_only_gone_on_with_when_asked(tmp_path):
    filled(tmp_path)
    with pytest.raises(VsrError, match="holds a comparison already; go on with --resume, or give another --out"):
        Store(tmp_path, SETTINGS_OF)


def test_the_runs_of_another_comparison_are_refused_and_kept(tmp_path):
    before = filled(tmp_path).read_bytes()
    with pytest.raises(VsrError, match="holds another comparison: max_evaluations is 1000 there and 2000 here"):
        Store(tmp_path, SETTINGS_OF | {"max_evaluations": 2000}, resume=True)
    assert (tmp_path / RUNS).read_bytes() == before


def test_two_comparisons_cannot_write_to_one_folder(tmp_path):
    with Store(tmp_path, SETTINGS_OF), pytest.raises(VsrError, match="another comparison is writing there"):
        Store(tmp_path, SETTINGS_OF, resume=True)
    with Store(tmp_path, SETTINGS_OF, resume=True) as store:
        assert store.append(row_of())


def test_runs_without_settings_are_refused(tmp_path):
    filled(tmp_path)
    (tmp_path / SETTINGS).unlink()
    with pytest.raises(VsrError, match=r"holds runs but no comparison\.json"):
        Store(tmp_path, SETTINGS_OF, resume=True)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_settings_that_are_none_are_refused(tmp_path, content):
    (tmp_path / SETTINGS).write_text(content)
    with pytest.raises(VsrError, match="these are no settings of a comparison"):
        read_settings(tmp_path)


def test_a_folder_that_is_none_is_a_clear_error(tmp_path):
    with pytest.raises(VsrError, match="is this a folder of `vsr compare`"):
        read_settings(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(VsrError, match="cannot write"):
        Store(tmp_path / "file", SETTINGS_OF)
