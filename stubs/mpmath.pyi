"""mpmath, which sympy brings along. It ships no types."""

from typing import Any

def __getattr__(name: str) -> Any: ...
