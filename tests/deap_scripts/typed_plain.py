"""A typed set with booleans between the numbers."""

import functools
import operator
import random

import numpy as np
from deap import algorithms, base, creator, gp, tools


def law(X):
    return 2.2 * X[:, 0] + X[:, 1] * X[:, 2]


def choose(condition, yes, no):
    return yes if condition else no


pset = gp.PrimitiveSetTyped("MAIN", [float] * 3, float)
pset.addPrimitive(operator.add, [float, float], float)
pset.addPrimitive(operator.sub, [float, float], float)
pset.addPrimitive(operator.mul, [float, float], float)
pset.addPrimitive(operator.lt, [float, float], bool)
pset.addPrimitive(choose, [bool, float, float], float)
pset.addTerminal(True, bool)
pset.addEphemeralConstant("constant", functools.partial(random.uniform, -1, 1), float)

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
toolbox.register("select", tools.selTournament, tournsize=3)
toolbox.register("mate", gp.cxOnePoint)
toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
toolbox.register("mutate", gp.mutUniform, expr=toolbox.expr_mut, pset=pset)


def main(seed=0):
    random.seed(seed)
    population = toolbox.population(n=60)
    best = tools.HallOfFame(1)
    algorithms.eaSimple(population, toolbox, 0.5, 0.3, 20, halloffame=best, verbose=False)
    return best[0]


if __name__ == "__main__":
    found = main()
    print(found.fitness.values)
    print(found)
