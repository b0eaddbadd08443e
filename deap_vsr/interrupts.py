"""Ctrl-C and SIGTERM in the ``vsr`` command: once ends a search with what it has, and that is then shown.

This module is loaded before all others, so it imports nothing that is large.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

#: The exit code behind a signal, as shells count.
EXIT = {signal.SIGINT: 130, signal.SIGTERM: 143}
#: Seconds after which an interrupt that was lost comes again.
AGAIN = 0.01
#: So many signals after the first are not obeyed: a second Ctrl-C would lose the result that the first asked for.
PATIENCE = 2


class Interrupts:
    """What a command does with signals that end it.

    Attributes
    ----------
    count : how many have come
    code : the exit code that the last of them asks for
    loading : whether modules are still being loaded: there is nothing to lose, and it ends at once
        An exception that is raised within the import of an extension may come out as another one, or not at all.
    """

    def __init__(self, loading: bool = False) -> None:
        self.count = 0
        self.code: int | None = None
        self.loading = loading

    def install(self) -> Interrupts:
        """Take the signals over, where that can be done: in the main thread."""
        if self._each(self._take):
            signal.signal(signal.SIGALRM, self._take_again)
            sys.unraisablehook = self._lost
        return self

    def ignore(self) -> None:
        """Hear no more of them: what there was to say has been said, and the process ends."""
        self._each(signal.SIG_IGN)

    def _each(self, handler: signal._HANDLER) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return False
        for number in EXIT:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for a command behind nohup
                signal.signal(number, handler)
        return True

    def _lost(self, what: sys.UnraisableHookArgs) -> None:
        """Let an interrupt come again that was raised where nobody can catch it: in a callback, or a destructor."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            sys.__unraisablehook__(what)

    def _take_again(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.code = EXIT[signal.Signals(number)]
        if self.loading:
            os.write(2, b"interrupted\n")
            os._exit(self.code)
        if self.count == 1 or self.count > 1 + PATIENCE:
            raise KeyboardInterrupt
        left = 2 + PATIENCE - self.count
        os.write(2, f"ending with what there is; {left} more to give that up\n".encode())

    def exit_code(self, code: int) -> int:
        """Return the exit code of the command: that of the signal where it was interrupted."""
        return self.code if code == 130 and self.code is not None else code
