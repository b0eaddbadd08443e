"""Ctrl-C and SIGTERM in the ``vsr`` command: once ends a search with what it has, and that is then shown."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

#: The exit code behind a signal, as shells count.
EXIT = {signal.SIGINT: 130, signal.SIGTERM: 143}
#: So many signals after the first are not obeyed: a second Ctrl-C would lose the result that the first asked for.
PATIENCE = 2


class Interrupts:
    """What a command does with signals that end it; `code` is the exit code that the last of them asks for."""

    def __init__(self) -> None:
        self.count = 0
        self.code: int | None = None

    def install(self) -> Interrupts:
        """Take the signals over, where that can be done: in the main thread."""
        if threading.current_thread() is threading.main_thread():
            for number in EXIT:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as for a command behind nohup
                    signal.signal(number, self._take)
        return self

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.code = EXIT[signal.Signals(number)]
        if self.count == 1 or self.count > 1 + PATIENCE:
            raise KeyboardInterrupt
        left = 2 + PATIENCE - self.count
        sys.stderr.write(f"ending with what there is; {left} more to give that up\n")

    def exit_code(self, code: int) -> int:
        """Return the exit code of the command: that of the signal where it was interrupted."""
        return self.code if code == 130 and self.code is not None else code
