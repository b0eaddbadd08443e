"""Domain knowledge as a grammar: a rate law that saturates, found among laws of that kind alone.

In enzyme kinetics a rate is a product of saturating factors S/(K + S) and of inhibitions 1/(1 + I/K). The rules say so;
nothing else is tried, and every answer is a rate law that one can read.
"""

from cfg_mcts import Grammar
from deap_vsr import CallableOracle, discover

RULES = """
# a maximal rate times factors
Rate -> C * Factor
Factor -> Factor * Factor | Saturation | Inhibition | x1 | x2 | x3
Saturation -> x1/(C + x1) | x2/(C + x2) | x3/(C + x3)
Inhibition -> 1/(1 + C*x1) | 1/(1 + C*x2) | 1/(1 + C*x3)
"""


def measured(X):
    """Return the rate at substrate x1, inhibitor x2 and temperature-like factor x3; the laboratory, here."""
    return 2.4 * X[:, 0] / (0.7 + X[:, 0]) / (1 + X[:, 1] / 1.5) * X[:, 2]


def main():
    grammar = Grammar.from_text(RULES, "rate laws")
    print(grammar)
    print("expressions of at most 15 nodes:", sum(grammar.count(15)))
    oracle = CallableOracle(measured, [(0.1, 5.0), (0.1, 5.0), (0.5, 2.0)], ["add", "mul", "div", "const"])
    result = discover(oracle, "mcts", grammar=grammar, max_evaluations=200_000)
    print("found:", result.expression)
    print(f"{result.evaluations} evaluations, {result.oracle_queries} oracle queries, stopped by {result.stopped_by}")
    return result


if __name__ == "__main__":
    main()
