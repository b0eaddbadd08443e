"""The script of symbreg_plain.py with vertical search: variables are freed one by one."""

import functools
import operator
import random

import numpy as np
from deap import base, creator, gp, tools

import deap_vsr as vsr


def law(X):
    return 2.5 * X[:, 0] * X[:, 1] + X[:, 2] * X[:, 1] - 0.7 * X[:, 2]


def protected_division(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1.0


pset = gp.PrimitiveSet("MAIN", 3)
pset.addPrimitive(operator.add, 2)
pset.addPrimitive(operator.sub, 2)
pset.addPrimitive(operator.mul, 2)
pset.addPrimitive(protected_division, 2)
pset.addEphemeralConstant("constant", functools.partial(random.uniform, -1, 1))
pset.renameArguments(ARG0="a", ARG1="b", ARG2="c")

creator.create("FitnessMin", base.Fitness, weights=(-1.0,))
creator.create("Individual", gp.PrimitiveTree, fitness=creator.FitnessMin)

toolbox = base.Toolbox()
toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
toolbox.register("individual", tools.initIterate, creator.Individual, toolbox.expr)
toolbox.register("population", tools.initRepeat, list, toolbox.individual)


def error(individual, X, y):
    function = gp.compile(individual, pset)
    values = np.array([function(*map(float, x)) for x in X])
    return (float(np.mean((values - y) ** 2) / np.var(y)),)


X = np.random.default_rng(0).uniform(1, 5, (40, 3))
toolbox.register("evaluate", error, X=X, y=law(X))
toolbox.register("select", tools.selTournament, tournsize=3)
toolbox.register("mate", vsr.cxOnePoint)
toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
toolbox.register("mutate", vsr.mutUniform, expr=toolbox.expr_mut, pset=pset)


def main(seed=0):
    random.seed(seed)
    population = toolbox.population(n=60)
    best = tools.HallOfFame(1)
    oracle = vsr.CallableOracle(law, [(1, 5)] * 3)
    vsr.eaVertical(population, toolbox, 0.5, 0.9, 40, oracle, halloffame=best)
    return best[0]


if __name__ == "__main__":
    found = main()
    print("NMSE", found.fitness.values[0])
    print(found)
