from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

class _WilcoxonResult:
    statistic: float
    pvalue: float

def wilcoxon(x: Sequence[float], *, method: str = ...) -> _WilcoxonResult: ...
def rankdata(a: ArrayLike) -> NDArray[Any]: ...
