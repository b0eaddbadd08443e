"""A comparison on a real Dask cluster, of which a worker is killed in the middle."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

from deap_vsr import VsrError
from deap_vsr.compare import parallel
from deap_vsr.compare.job import key_of
from deap_vsr.compare.store import read_rows

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")


def process(stack, *command):
    """Start a process that ends with the test; its error output can be read."""
    begun = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    stack.callback(begun.communicate)
    stack.callback(begun.kill)
    return begun


def read_until(begun, pattern):
    """Return the first match of `pattern` in what a process says."""
    guard = threading.Timer(120, begun.kill)
    guard.start()
    try:
        for line in begun.stderr:
            found = re.search(pattern, line)
            if found:
                return found
    finally:
        guard.cancel()
    raise AssertionError(f"the process ended without {pattern}")


def at_work(address):
    """Return the names of the workers that have a run."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        names = {place: known["name"] for place, known in client.scheduler_info(n_workers=-1)["workers"].items()}
        return {names[place] for place, keys in client.processing().items() if keys}


@needs_dask
def test_a_run_whose_worker_is_killed_is_done_by_another_and_none_is_counted_twice(tmp_path):
    with ExitStack() as stack:
        scheduler = process(
            stack, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"
        )
        address = read_until(scheduler, r"Scheduler at:\s+(tcp://\S+)")[1]
        worker = ["distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        workers = [
            process(stack, *worker, "--name", f"worker-{n}", "--local-directory", tmp_path / str(n)) for n in range(3)
        ]
        for one in workers:
            read_until(one, "Registered to")
        comparison = process(
            stack, "deap_vsr", "compare", "trigonometric/inv/2-1-1/prog_[0-2].json", "--methods", "gp,vsr-gp",
            "--max-evaluations", "2000", "--cluster", address, "--out", tmp_path / "out",
        )  # fmt: skip
        read_until(comparison, "^1/6 ")
        busy = at_work(address)
        assert busy, "four or five runs are left: some worker is at one"
        victim = next(n for n in range(3) if f"worker-{n}" in busy)
        os.kill(workers[victim].pid, signal.SIGKILL)
        said = comparison.communicate(timeout=120)[1]
        assert comparison.returncode == 0, said
    rows = read_rows(tmp_path / "out")
    assert len(rows) == 6
    assert set(Counter(map(key_of, rows)).values()) == {1}
    assert {row["status"] for row in rows} == {"done"}
    assert (tmp_path / "out" / "report.html").exists()


@needs_dask
@pytest.mark.parametrize("address", ["nowhere://127.0.0.1:1", "foo"])
def test_an_address_at_which_no_scheduler_answers_is_a_clear_error(address):
    # Fails for foo at 7ff2e9b: a minute later the client that was begun ended in a traceback.
    with pytest.raises(VsrError, match="no scheduler answers there"):
        list(parallel.run_on_cluster([], address))
    gc.collect()  # an exception of a client that was half made would be an error of this test


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(parallel, "find_spec", lambda name: None)
    with pytest.raises(VsrError, match=r"pip install distributed, or deap-vsr\[cluster\]"):
        list(parallel.run_on_cluster([], "tcp://127.0.0.1:1"))
