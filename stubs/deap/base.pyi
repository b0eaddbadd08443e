"""The part of deap.base that we use."""

from collections.abc import Callable, Sequence
from typing import Any

class Fitness:
    weights: Sequence[float]
    values: tuple[float, ...]
    wvalues: tuple[float, ...]
    valid: bool
    def __init__(self, values: Sequence[float] = ...) -> None: ...

class Toolbox:
    def register(self, alias: str, function: Callable[..., Any], *args: Any, **kargs: Any) -> None: ...
    def unregister(self, alias: str) -> None: ...
    def decorate(self, alias: str, *decorators: Callable[..., Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
