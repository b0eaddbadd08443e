"""joblib ships no types; these are of what we use."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

class Parallel:
    def __init__(self, n_jobs: int, *, backend: str, batch_size: int, return_as: str) -> None: ...
    def __call__(self, calls: Iterable[Any]) -> Generator[Any, None, None]: ...

def delayed(function: Callable[..., Any]) -> Callable[..., Any]: ...
