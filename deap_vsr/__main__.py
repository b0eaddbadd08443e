"""The ``vsr`` command, and ``python -m deap_vsr``: signals are heard before anything large is loaded."""

import os

from deap_vsr.interrupts import Interrupts

#: Products of the small matrices of a search take longer on several processors than on one, and where these are busy a
#: hundred times as long: of 30 s of a search in noise, beside two other jobs on two processors, 10 went there.
ONE_THREAD = "OPENBLAS_NUM_THREADS"


def main() -> None:
    """Take the signals over, then load the command and run it; linear algebra by one thread, unless it is said."""
    os.environ.setdefault(ONE_THREAD, "1")  # it is read when numpy is loaded
    interrupts = Interrupts(loading=True).install()
    from deap_vsr.cli import main as run

    interrupts.loading = False
    try:
        run(interrupts)
    finally:
        interrupts.ignore()


if __name__ == "__main__":
    main()
