"""The part of scipy.spatial that we call. scipy itself ships no types."""

from typing import Any

class cKDTree:  # noqa: N801
    def __init__(self, data: Any) -> None: ...
    def query(self, x: Any, k: int = ...) -> tuple[Any, Any]: ...
