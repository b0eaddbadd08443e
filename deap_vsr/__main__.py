"""``python -m deap_vsr`` is the ``vsr`` command."""

from deap_vsr.cli import main

main()
