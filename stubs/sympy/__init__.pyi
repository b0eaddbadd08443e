"""The part of sympy that we name in types. sympy itself ships none."""

from typing import Any

class Expr:
    def __getattr__(self, name: str) -> Any: ...

def __getattr__(name: str) -> Any: ...
