from importlib.util import find_spec

import pytest

if find_spec("torch") is None:  # the extra [neural] is not installed
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread():
    """Many small tensors on many threads only wait for each other."""
    from deap_vsr.neural.policy import one_thread

    with one_thread():
        yield
