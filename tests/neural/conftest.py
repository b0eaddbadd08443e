import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    """Many small tensors on many threads only wait for each other."""
    pytest.importorskip("torch")
    from deap_vsr.neural.policy import one_thread

    with one_thread():
        yield
