"""The same, vertically: their tournament selects."""

import functools
import operator
import random

import numpy as np
from deap import base, creator, gp, tools

import deap_vsr as vsr


def law(X):
    return X[:, 0] * X[:, 1] - 1.4 * X[:, 1] * X[:, 2]


pset = gp.PrimitiveSet("MAIN", 3)
pset.addPrimitive(operator.add, 2)
pset.addPrimitive(operator.sub, 2)
pset.addPrimitive(operator.mul, 2)
pset.addEphemeralConstant("constant", functools.partial(random.uniform, -1, 1))

creator.create("Fitness", base.Fitness, weights=(-1.0,))
creator.create("Individual", gp.PrimitiveTree, fitness=creator.Fitness)

toolbox = base.Toolbox()
toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
toolbox.register("individual", tools.initIterate, creator.Individual, toolbox.expr)
toolbox.register("population", tools.initRepeat, list, toolbox.individual)

X = np.random.default_rng(0).uniform(1, 5, (40, 3))
y = law(X)


def error(individual, X, y):
    function = gp.compile(individual, pset)
    values = np.array([function(*map(float, x)) for x in X])
    return (float(np.mean((values - y) ** 2)),)


toolbox.register("evaluate", error, X=X, y=y)
toolbox.register("select", tools.selDoubleTournament, fitness_size=5, parsimony_size=1.4, fitness_first=True)
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
    print(found.fitness.values)
    print(found)
