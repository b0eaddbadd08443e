"""Operon behind scikit-learn's interface; it ships no types."""

from typing import Any

class SymbolicRegressor:
    model_: Any
    stats_: dict[str, int]
    def __init__(self, **settings: Any) -> None: ...
    def fit(self, X: Any, y: Any) -> SymbolicRegressor: ...
    def get_model_string(self, model: Any, precision: int = ..., names: list[str] | None = ...) -> str: ...
