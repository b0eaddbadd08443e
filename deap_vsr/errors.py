"""Our few exception types."""

from __future__ import annotations


class VsrError(Exception):
    """Base of every error that deap_vsr and cfg_mcts raise on purpose."""


class ExpressionError(VsrError, ValueError):
    """A text, token list, graph or tree that is not an expression we accept."""


class EquationError(VsrError, ValueError):
    """An equation file that cannot be used.

    The message names the file, the field, the value found and what was expected.
    """

    def __init__(self, source: str, field: str, found: object, expected: str) -> None:
        self.source = source
        self.field = field
        self.found = found
        self.expected = expected
        where = f"{source}: {field}" if field else source
        super().__init__(f"{where}: found {_short(found)}, expected {expected}")

    def __reduce__(self) -> tuple[type[EquationError], tuple[str, str, object, str]]:
        return EquationError, (self.source, self.field, _short(self.found), self.expected)


class OracleError(VsrError, RuntimeError):
    """An oracle that raises, answers in the wrong shape or never gives a finite value."""


def _short(value: object, limit: int = 80) -> str:
    """Text of `value` for a message: one line, never long."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
