"""The part of deap.tools that we use."""

from typing import Any

class Statistics:
    fields: list[str]
    def compile(self, data: Any) -> dict[str, Any]: ...

class HallOfFame:
    def update(self, population: Any) -> None: ...
    def clear(self) -> None: ...

class Logbook(list[dict[str, Any]]):
    header: list[str]
    stream: str
    def record(self, **infos: Any) -> None: ...

def selTournament(individuals: Any, k: int, tournsize: int, fit_attr: str = ...) -> list[Any]: ...
