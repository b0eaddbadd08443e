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
    chapters: dict[str, Logbook]
    log_header: bool
    def record(self, **infos: Any) -> None: ...

class MultiStatistics(dict[str, Statistics]):
    fields: list[str]
    def __init__(self, **statistics: Statistics) -> None: ...
    def compile(self, data: Any) -> dict[str, Any]: ...

def selTournament(individuals: Any, k: int, tournsize: int, fit_attr: str = ...) -> list[Any]: ...
