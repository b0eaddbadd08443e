from typing import Any

from deap import base

def varAnd(population: list[Any], toolbox: base.Toolbox, cxpb: float, mutpb: float) -> list[Any]: ...
