"""A generation loop of its own, with varAnd."""

import functools
import operator
import random

import numpy as np
from deap import algorithms, base, creator, gp, tools


def law(X):
    return X[:, 0] * X[:, 1] - 2.3 * X[:, 2]


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
toolbox.register("select", tools.selTournament, tournsize=3)
toolbox.register("mate", gp.cxOnePoint)
toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
toolbox.register("mutate", gp.mutUniform, expr=toolbox.expr_mut, pset=pset)


def evolve(population, toolbox):
    for individual in population:
        individual.fitness.values = toolbox.evaluate(individual)
    for _ in range(20):
        offspring = algorithms.varAnd(toolbox.select(population, 60), toolbox, 0.5, 0.3)
        for individual in offspring:
            if not individual.fitness.valid:
                individual.fitness.values = toolbox.evaluate(individual)
        population = tools.selBest(population + offspring, 60)
    return population


def main(seed=0):
    random.seed(seed)
    population = toolbox.population(n=60)
    best = tools.HallOfFame(1)
    best.update(evolve(population, toolbox))
    return best[0]


if __name__ == "__main__":
    found = main()
    print(found.fitness.values)
    print(found)
