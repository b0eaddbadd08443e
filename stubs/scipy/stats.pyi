from collections.abc import Sequence

class _WilcoxonResult:
    statistic: float
    pvalue: float

def wilcoxon(x: Sequence[float]) -> _WilcoxonResult: ...
