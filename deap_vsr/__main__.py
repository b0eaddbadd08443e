"""The ``vsr`` command, and ``python -m deap_vsr``: signals are heard before anything large is loaded."""

from deap_vsr.interrupts import Interrupts


def main() -> None:
    """Take the signals over, then load the command and run it."""
    interrupts = Interrupts(loading=True).install()
    from deap_vsr.cli import main as run

    interrupts.loading = False
    try:
        run(interrupts)
    finally:
        interrupts.ignore()


if __name__ == "__main__":
    main()
