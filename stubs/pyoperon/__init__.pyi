"""Operon's Python module, an optional peer in our benchmark. It ships no types."""

from typing import Any

def __getattr__(name: str) -> Any: ...
