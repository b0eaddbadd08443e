"""Our few exception types."""

from __future__ import annotations


class VsrError(Exception):
    """Base of every error that deap_vsr and cfg_mcts raise on purpose."""


class ExpressionError(VsrError, ValueError):
    """A text, token list, graph or tree that is not an expression we accept.

    ``column``, from 1, says where in a text, if that is known.
    """

    column: int | None = None

    def at(self, column: int) -> ExpressionError:
        """Return the error itself, with its place in the text."""
        self.column = column
        return self


class UnknownOperatorError(ExpressionError):
    """A name that is no operator of the catalogue."""

    def __init__(self, name: object, known: str) -> None:
        self.name = name
        self.known = known
        super().__init__(f"unknown operator {short(name)!r}; known are {known}")

    def __reduce__(self) -> tuple[type[UnknownOperatorError], tuple[object, str]]:
        return UnknownOperatorError, (short(self.name), self.known)


class EquationError(VsrError, ValueError):
    """An equation file that cannot be used.

    The message names the file, the field, the value found and what was expected.
    """

    def __init__(self, source: str, field: str, found: object, expected: str) -> None:
        self.source = source
        self.field = field
        self.found = found
        self.expected = expected
        where = printable(f"{source}: {field}" if field else source)
        super().__init__(f"{where}: found {short(found)}, expected {expected}")

    def __reduce__(self) -> tuple[type[EquationError], tuple[str, str, object, str]]:
        return EquationError, (self.source, self.field, short(self.found), self.expected)


class OracleError(VsrError, RuntimeError):
    """An oracle that raises, answers in the wrong shape or never gives a finite value."""


class OracleFailure(OracleError):  # noqa: N818 - it is no error of the run: such points have no answer
    """An exception of the function behind an oracle, at some point."""


class OutOfQueriesError(VsrError):
    """A point too many was about to be asked; searches end with what they have."""


class OutOfTimeError(OutOfQueriesError):
    """The time was up while a slow oracle was asked; what it had answered is kept."""


class LogError(VsrError, ValueError):
    """A log of measurements that cannot be read or written."""


class NoValuesError(OracleError):
    """An oracle that gives too few finite values where it was asked."""


class NoControlError(NoValuesError):
    """A table whose rows hold nothing constant while the free variables vary: it has no such trial."""


def short(value: object, limit: int = 80) -> str:
    """Text of `value` for a message: one line, never long."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # a whole number of more digits than Python prints
        text = f"a {type(value).__name__} too large to print"
    text = printable(text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def printable(text: str) -> str:
    """Return `text` on one line, with escapes for what a terminal would obey or cannot print."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
