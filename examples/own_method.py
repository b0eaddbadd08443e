"""A method of one's own: a regressor that solves slots by polynomials, behind vertical search and in a comparison.

In this folder: vsr compare trigonometric/inv/2-1-1 --methods own_method:METHOD,vsr --max-evaluations 5000
"""

from itertools import combinations

from deap_vsr import CallableOracle, MaskedTree, discover, fit
from deap_vsr.methods import Method
from deap_vsr.search.contract import Candidate


class Polynomials:
    """Sums of powers of one variable and its inverse, few terms first."""

    def regress(self, task):
        if task.candidates or len(task.columns) != 1:
            return []  # only slots: one variable, nothing to start from
        x, trials = f"x{task.columns[0] + 1}", task.draw(task.rng)
        terms = ["C", f"C*{x}", f"C*{x}*{x}", f"C*{x}*{x}*{x}", f"C*inv({x})"]
        for count in range(1, 4):
            for chosen in combinations(terms, count):
                outcome = fit(MaskedTree.from_infix(" + ".join(chosen)), trials, n_starts=0)
                task.budget.count(outcome.evaluations)
                if (outcome.errors <= task.target).all():
                    return [Candidate.of(outcome)]
        return []


METHOD = Method("polynomials", lambda options: Polynomials(), expansions=("slotwise",), then=("slotwise",))

if __name__ == "__main__":

    def law(X):
        return 2.5 * X[:, 0] ** 2 * X[:, 1] - 0.7 * X[:, 2] / X[:, 1]

    result = discover(CallableOracle(law, [(1, 3)] * 3, ["add", "sub", "mul", "inv", "const"]), METHOD)
    print(result.expression, f"({result.oracle_queries} points)")
