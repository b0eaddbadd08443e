import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quiet():
    """With the compiler switched off the kernels are plain Python, in which numpy scalars warn."""
    with np.errstate(all="ignore"):
        yield
