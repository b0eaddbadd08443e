"""Vertical symbolic regression to read on a train: the whole method in one file.

Hold every variable but one, find a form in that one whose constants may differ from trial to trial, freeze
it, and let the constants that did differ (the slots) grow in the next variable.

The package does the same with a population, noise, budgets and a hall; here one formula grows alone. Only
trees, trials and constant fitting come from it.
"""

import random

import numpy as np

from deap_vsr import EquationOracle, MaskedTree, fit, load_equation, sample_trials
from deap_vsr.tree import Constant, node_from_name, variable, with_flag

FITS = 1e-12  # a form fits if its NMSE is below this in every trial
SAME = 1e-6  # a constant is the same in all trials if it varies by less than this share
K = 5  # trials of an experiment, each with controlled values of its own


def vertical(oracle, order, seed=0):
    """Return the formula of `oracle` and the path of reduced forms; variables are freed in `order`."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    form = MaskedTree([Constant(1.0)])  # to begin with, everything is one slot
    path = []
    for i, new in enumerate(order):
        free = order[: i + 1]
        trials = sample_trials(oracle, free, K, 20, rng)
        form = freeze(grow(form, new, trials, oracle.function_set, chance))
        path.append(form)
    return form, path


def grow(form, new, trials, operators, chance):
    """Change the slots at random, once, twice, ..., until something fits every trial; return the shortest fit.

    A form whose constants the data cannot tell apart is refused, as they would move from trial to trial even
    where the formula does not.
    """
    found = [fit(form, trials)]
    n_changes = 0
    while not any(accepted := [max(f.errors) <= FITS and f.determined.all() for f in found]):
        n_changes += 1
        found = []
        for _ in range(500):
            candidate = form
            for _ in range(n_changes):
                candidate = change(candidate, new, operators, chance)
            found.append(fit(candidate, trials, n_starts=1))
    return min((f for f, good in zip(found, accepted, strict=True) if good), key=lambda f: len(f.tree))


def change(tree, new, operators, chance):
    """Return the tree with one mutable sub-tree replaced by random material, or grown by it."""
    tree = MaskedTree(tree)
    mutable = [i for i, flag in enumerate(tree.mask) if flag]
    place = tree.searchSubtree(chance.choice(mutable))
    if chance.random() < 0.5:
        tree[place] = material(new, operators, chance, 2)
    else:
        binary = [name for name in operators if name != "const" and node_from_name(name).arity == 2]
        parts = [tree[place], material(new, operators, chance, 1)]
        chance.shuffle(parts)
        tree[place] = [node_from_name(chance.choice(binary)), *parts[0], *parts[1]]
    return tree


def material(new, operators, chance, depth):
    """Return a random small expression of the new variable and open constants."""
    if depth == 0 or chance.random() < 0.4:
        return [variable(new + 1) if chance.random() < 0.5 else Constant(1.0)]
    operator = node_from_name(chance.choice([name for name in operators if name != "const"]))
    operands = [material(new, operators, chance, depth - 1) for _ in range(operator.arity)]
    return [operator, *(node for operand in operands for node in operand)]


def freeze(outcome):
    """Return the form with everything frozen but the slots: constants that moved from trial to trial."""
    nodes = [with_flag(node, False) for node in outcome.tree]
    for column, position in enumerate(outcome.tree.open_constants):
        values = outcome.constants[:, column]
        moves = np.ptp(values) > SAME * abs(values.mean()) or not outcome.determined[:, column].all()
        nodes[position] = Constant(values[-1]) if moves else Constant(values.mean(), fitted=False, mutable=False)
    return MaskedTree(nodes)


if __name__ == "__main__":
    law = load_equation("feynman-unit/I.39.22")
    found, path = vertical(EquationOracle(law), order=[2, 1, 0])
    for form in path:
        print(form.to_infix(skeleton=True))
    print("hidden:", law.formula)
