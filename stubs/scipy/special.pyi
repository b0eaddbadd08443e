"""The part of scipy.special that we call."""

from typing import Any

def chdtri(v: Any, p: Any) -> Any: ...
