"""Runs side by side: in processes of this machine (joblib), or on a cluster (Dask)."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from uuid import uuid4

from deap_vsr.compare.job import key_of
from deap_vsr.compare.run import Row, failure, run_apart
from deap_vsr.errors import VsrError

#: How often a pool may be lost without a run having been finished in between.
_MAX_LOST = 3


def run_locally(orders: Sequence[Row], n_jobs: int = 1) -> Iterator[Row]:
    """Do the jobs of `orders`, `n_jobs` at a time; yields rows as they are finished."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = {key_of(given["job"]): given for given in orders}
    lost = 0
    while waiting:
        pool = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
        with _no_interrupts():
            rows = pool(delayed(run_apart)(given, os.getpid()) for given in list(waiting.values()))
        try:
            for row in rows:
                del waiting[key_of(row)]
                lost = 0
                yield row
        except TerminatedWorkerError:  # a process of the pool was killed, none of its runs has come back
            lost += 1
            if lost == _MAX_LOST:
                raise VsrError(
                    "processes of the pool are killed again and again; is there memory for so many --jobs?"
                ) from None
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of runs that are given up: that is what was asked for
                rows.close()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, and let processes that are started meanwhile ignore it for good: this one ends them."""
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_on_cluster(orders: Sequence[Row], address: str) -> Iterator[Row]:
    """Do the jobs of `orders` on the Dask cluster whose scheduler is at `address`; yields rows as they are finished.

    A job whose worker is lost is done by another one. The workers need deap_vsr, and no files.
    """
    if find_spec("distributed") is None:
        raise VsrError("--cluster needs Dask: pip install distributed, or deap-vsr[cluster]")
    from distributed import CancelledError, Client, KilledWorker, as_completed
    from distributed.comm.addressing import get_address_host_port, normalize_address

    try:
        get_address_host_port(normalize_address(address), strict=True)  # a client without a port takes a minute to go
        client = Client(address, timeout=30, set_as_default=False)
    except (OSError, ValueError) as error:
        raise VsrError(f"--cluster {address}: no scheduler answers there: {error}") from None
    ours = uuid4().hex  # another comparison on the same cluster may have a run of the same key
    with client:
        futures = {
            client.submit(run_apart, given, key=f"{key_of(given['job'])}|{ours}", pure=False): given for given in orders
        }
        try:
            for future in as_completed(futures, loop=client.loop):
                try:
                    yield future.result()
                except KilledWorker as error:
                    yield failure(futures[future], f"was lost with its worker again and again: {error}")
        except CancelledError:
            raise VsrError(f"the cluster at {address} was lost; go on with the same command and --resume") from None
        finally:
            client.cancel(list(futures), force=True)
