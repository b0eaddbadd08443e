from collections.abc import Callable
from typing import Any

def make_function(*, function: Callable[..., Any], name: str, arity: int) -> Any: ...
