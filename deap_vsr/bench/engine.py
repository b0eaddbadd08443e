"""``vsr bench engine``: our evaluation and fitting beside DEAP's, scipy's and Operon's.

All on one thread, in one run, on the same trees, points and starts; the ratios say how many times
faster we are.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from deap import gp
from scipy import optimize

from deap_vsr.bench.bank import FAMILIES, FitProblem, fit_bank
from deap_vsr.engine.fitting import Dataset, fit
from deap_vsr.engine.program import evaluate
from deap_vsr.tree import is_open, is_variable, operators, primitive_set, variable
from deap_vsr.tree.operators import Array

#: A fit counts as a success below this NMSE.
SUCCESS = 1e-12
#: Operon computes in single precision, which cannot do better than this.
_SINGLE_SUCCESS = 1e-10
_BFGS_ITERATIONS = 500

Progress = Callable[[str], None]


def bench_engine(
    n_trees: int = 2000, n_problems: int = 200, repeats: int = 5, progress: Progress = lambda text: None
) -> dict[str, Any]:
    """Measure and return the report as one flat object (the keys of ``--json``)."""
    progress("warming up: kernels are compiled once and cached on disk")
    problems = fit_bank(n_problems)
    for warm in (_ours, _ours_spread, _least_squares):
        warm(problems[:5])
    started = time.perf_counter()
    progress(f"evaluating {n_trees} trees")
    report = _bench_evaluation(n_trees, repeats)
    progress(f"fitting {n_problems} expressions: ours")
    ours, errors = _timed(_ours, problems)
    report |= {"fits_per_second_ours": n_problems / ours, "success_ours": _share(errors)}
    report["success_ours_by_family"] = _by_family(problems, errors)
    progress("fitting: ours with spread starts")
    spread, errors = _timed(_ours_spread, problems)
    report |= {"fits_per_second_ours_spread": n_problems / spread, "success_ours_spread": _share(errors)}
    progress("fitting: scipy least_squares with our Jacobian")
    seconds, errors = _timed(_least_squares, problems)
    report |= {
        "fit_vs_least_squares": seconds / ours,
        "fits_per_second_least_squares": n_problems / seconds,
        "success_least_squares": _share(errors),
    }
    progress("fitting: scipy BFGS with finite differences")
    seconds, errors = _timed(_bfgs, problems)
    report |= {
        "fit_vs_bfgs": seconds / ours,
        "fits_per_second_bfgs": n_problems / seconds,
        "success_bfgs": _share(errors),
        "success_bfgs_by_family": _by_family(problems, errors),
    }
    progress("evaluating and fitting: Operon")
    report |= _bench_operon(problems, ours)
    report["measured_seconds"] = time.perf_counter() - started
    return report


def _timed(
    run: Callable[[Sequence[FitProblem]], list[float]], problems: Sequence[FitProblem]
) -> tuple[float, list[float]]:
    started = time.perf_counter()
    errors = run(problems)
    return time.perf_counter() - started, errors


def _share(errors: Sequence[float]) -> float:
    return float(np.mean(np.array(errors) < SUCCESS))


def _by_family(problems: Sequence[FitProblem], errors: Sequence[float]) -> dict[str, float]:
    return {
        family: _share([error for problem, error in zip(problems, errors, strict=True) if problem.family == family])
        for family in FAMILIES
    }


# --- evaluation ---------------------------------------------------------------------------


def _bench_evaluation(n_trees: int, repeats: int) -> dict[str, Any]:
    """Time trees to values: ours in one call, DEAP's compile and call tree by tree."""
    pset = primitive_set(["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "const"], 3)
    trees = _random_trees(pset, n_trees)
    X = np.random.default_rng(0).uniform(0.1, 3.0, (256, 3))
    evaluate(trees[:2], X, pset)
    ours, theirs = [], []
    for _ in range(repeats):
        started = time.perf_counter()
        evaluate(trees, X, pset)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        with np.errstate(all="ignore"):
            for tree in trees:
                gp.compile(tree, pset)(*X.T)
        theirs.append(time.perf_counter() - started)
    return {
        "evaluate_vs_compile": float(np.median(theirs) / np.median(ours)),
        "evaluations_per_second": n_trees / float(np.median(ours)),
        "evaluations_per_second_compile": n_trees / float(np.median(theirs)),
        "evaluation_trees": n_trees,
        "evaluation_mean_nodes": float(np.mean([len(tree) for tree in trees])),
    }


def _random_trees(pset: gp.PrimitiveSetTyped, n_trees: int) -> list[gp.PrimitiveTree]:
    """Return random trees of 9 to 15 nodes; the state of the standard ``random`` is kept."""
    state = random.getstate()
    random.seed(0)
    trees: list[gp.PrimitiveTree] = []
    while len(trees) < n_trees:
        tree = gp.PrimitiveTree(gp.genHalfAndHalf(pset, 2, 4))
        if 9 <= len(tree) <= 15:
            trees.append(tree)
    random.setstate(state)
    return trees


# --- fitting: each returns the best NMSE over the problem's starts ------------------------


def _ours(problems: Sequence[FitProblem]) -> list[float]:
    return [
        float(fit(p.tree, Dataset.of([p.trial]), starts=p.starts, n_starts=0, enough=SUCCESS).errors[0])
        for p in problems
    ]


def _ours_spread(problems: Sequence[FitProblem]) -> list[float]:
    return [float(fit(p.tree, Dataset.of([p.trial]), enough=SUCCESS).errors[0]) for p in problems]


def _least_squares(problems: Sequence[FitProblem]) -> list[float]:
    return [
        float(
            fit(
                p.tree,
                Dataset.of([p.trial]),
                optimizer="least_squares",
                starts=p.starts,
                n_starts=0,
                max_iterations=200,
                enough=SUCCESS,
            ).errors[0]
        )
        for p in problems
    ]


def _bfgs(problems: Sequence[FitProblem]) -> list[float]:
    return [_bfgs_one(problem) for problem in problems]


def _bfgs_one(problem: FitProblem) -> float:
    """Do what published implementations do: numpy values of the tree, finite differences, BFGS."""
    X, y = problem.trial.X, problem.trial.y
    n_constants = problem.tree.n_constants
    pset = gp.PrimitiveSet("bfgs", X.shape[1] + n_constants)
    pset.renameArguments(**{f"ARG{i}": f"x{i + 1}" for i in range(X.shape[1] + n_constants)})
    for node in problem.tree:
        if node.arity and node.name not in pset.context:
            pset.addPrimitive(operators.get(node.name).function, node.arity, node.name)
    places = itertools.count(X.shape[1] + 1)
    named = gp.PrimitiveTree(variable(next(places)) if is_open(node) else node for node in problem.tree)
    function = gp.compile(named, pset)
    columns = list(X.T)
    variance = float(np.var(y))

    def error(constants: Array) -> float:
        value = float(np.mean((function(*columns, *constants) - y) ** 2)) / variance
        return value if np.isfinite(value) else 1e300

    best = np.inf
    with np.errstate(all="ignore"):
        for start in problem.starts:
            result = optimize.minimize(error, start, method="BFGS", options={"maxiter": _BFGS_ITERATIONS})
            best = min(best, float(result.fun))
            if best <= SUCCESS:
                break
    return best


# --- Operon -------------------------------------------------------------------------------

_OPERON = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "sin": "Sin", "cos": "Cos", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "n2": "Square",
}  # fmt: skip


def _bench_operon(problems: Sequence[FitProblem], ours: float) -> dict[str, Any]:
    """Operon's Levenberg-Marquardt on the same expressions, points and starts; null where it is absent."""
    try:
        import pyoperon as operon
    except ImportError:
        return dict.fromkeys(
            (
                "fit_vs_operon",
                "fits_per_second_operon",
                "success_operon",
                "evaluate_vs_operon",
                "evaluations_per_second_operon",
            )
        )
    seconds = evaluating = 0.0
    errors = []
    for problem in problems:
        table = np.asfortranarray(np.column_stack([problem.trial.X, problem.trial.y]).astype(np.float32))
        # Operon refers to what it is handed and does not keep it alive: everything gets a name here.
        dataset = operon.Dataset(table)
        variables = list(dataset.Variables)
        task = operon.Problem(dataset)
        task.TrainingRange = task.TestRange = operon.Range(0, len(table))
        task.Target = variables[-1]
        functions = operon.DispatchTable()
        levenberg = operon.LMOptimizer(functions, task, 60, 256)
        optimizer = operon.CoefficientOptimizer(levenberg)
        generator = operon.RandomGenerator(1)
        trees = [_operon_tree(operon, problem, start, dataset.VariableHashes) for start in problem.starts]
        total = float(np.sum((table[:, -1] - table[:, -1].mean()) ** 2))
        started = time.perf_counter()
        for _ in range(10):
            for tree in trees:
                operon.Evaluate(functions, tree, dataset, operon.Range(0, len(table)))
        evaluating += time.perf_counter() - started
        started = time.perf_counter()
        best = np.inf
        for tree in trees:
            _, summary = optimizer(generator, tree)
            # Its cost is half the sum of squares, in single precision.
            cost = 2.0 * summary.FinalCost / total
            best = min(best, cost if np.isfinite(cost) else np.inf)
            if best <= _SINGLE_SUCCESS:
                break
        seconds += time.perf_counter() - started
        errors.append(best)
    return {
        "fit_vs_operon": seconds / ours,
        "fits_per_second_operon": len(problems) / seconds,
        "success_operon": float(np.mean(np.array(errors) < _SINGLE_SUCCESS)),
        "evaluate_vs_operon": evaluating / _evaluate_like_operon(problems),
        "evaluations_per_second_operon": 10 * sum(len(p.starts) for p in problems) / evaluating,
        "operon_precision": "single; success is counted below 1e-10",
    }


def _evaluate_like_operon(problems: Sequence[FitProblem]) -> float:
    """Return our seconds for what Operon was timed on: trees one by one, on the same points."""
    trees = [[p.tree.with_constants(start) for start in p.starts] for p in problems]
    started = time.perf_counter()
    for problem, variants in zip(problems, trees, strict=True):
        for _ in range(10):
            for tree in variants:
                evaluate([tree], problem.trial.X)
    return time.perf_counter() - started


def _operon_tree(operon: Any, problem: FitProblem, start: Array, hashes: Sequence[int]) -> Any:
    nodes = []
    tree = problem.tree.with_constants(start)
    fitted = set(tree.open_constants)
    for i in range(len(tree) - 1, -1, -1):
        node = tree[i]
        if node.arity and node.name == "inv":  # as 1 / x
            nodes.append(_operon_constant(operon, 1.0, False))
            other = operon.Node(operon.NodeType.Div)
            other.Optimize = False
        elif node.arity:
            other = operon.Node(getattr(operon.NodeType, _OPERON[node.name]))
            other.Optimize = False
        elif is_variable(node):
            other = operon.Node.Variable(1.0)
            other.HashValue = other.CalculatedHashValue = hashes[int(node.value[1:]) - 1]
            other.Optimize = False
        else:
            other = _operon_constant(operon, node.value, i in fitted)
        nodes.append(other)
    result = operon.Tree(nodes)
    result.UpdateNodes()
    return result


def _operon_constant(operon: Any, value: float, optimize_it: bool) -> Any:
    node = operon.Node.Constant(value)
    node.Optimize = optimize_it
    return node
