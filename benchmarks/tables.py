"""Formulas for tables of known laws, ours and other packages' on the same rows, judged alike.

    python benchmarks/tables.py feynman-unit --rows 1000 --noise 0.01 --seconds 20 --methods vsr,gplearn,pyoperon

One line of JSON for each run in --out; kill it and the same command goes on. ``--every K`` takes every K-th problem, in
the order of the number of variables. Exact: recovered as docs/metrics.md says. In noise: the right form.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from deap_vsr import VsrRegressor, load_equation
from deap_vsr.engine.warm import compile_kernels
from deap_vsr.judge.form import right_form
from deap_vsr.judge.metrics import judge, nmse
from deap_vsr.problems import suites
from deap_vsr.problems.sampling import draw_inputs
from deap_vsr.tree import MaskedTree


def table(equation, n_rows, noise, seed):
    """Return rows of a law: X, y, and y without noise."""
    rng = np.random.default_rng(seed)
    X = draw_inputs(equation.variables, 4 * n_rows, rng)
    y = equation.evaluate(X)
    good = np.flatnonzero(np.isfinite(y))[:n_rows]
    X, y = X[good], y[good]
    return X, y + noise * np.std(y) * rng.standard_normal(len(y))


def with_vsr(X, y, equation, seconds, seed):
    """Return our formula."""
    model = VsrRegressor(equation.function_set, time_limit=seconds, random_state=seed).fit(X, y)
    return model._trees[model.best_index_], model.status_


def with_gplearn(X, y, equation, seconds, seed):
    """Return gplearn's formula: its defaults, generation after generation until time is up."""
    from gplearn.genetic import SymbolicRegressor

    known = {"add", "sub", "mul", "div", "sqrt", "log", "abs", "neg", "inv", "sin", "cos", "tan"}
    functions = [name for name in equation.function_set if name in known] or ["add", "mul"]
    begun = time.perf_counter()
    model = SymbolicRegressor(generations=1, function_set=functions, random_state=seed, warm_start=True)
    generation = 0
    while time.perf_counter() - begun < seconds:
        generation += 1
        model.set_params(generations=generation).fit(X, y)
    return model.predict, ""


def with_pyoperon(X, y, equation, seconds, seed):
    """Return pyoperon's formula: its defaults, one thread, until time is up; without an interception in time none."""
    from pyoperon.sklearn import SymbolicRegressor

    known = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "sqrt": "sqrt", "exp": "exp", "log": "log"}
    known |= {"sin": "sin", "cos": "cos", "tanh": "tanh", "n2": "square"}
    symbols = [known[name] for name in equation.function_set if name in known]
    model = SymbolicRegressor(
        allowed_symbols=",".join([*symbols, "constant", "variable"]), n_threads=1, random_state=seed,
        max_time=int(seconds), generations=1_000_000, max_evaluations=1_000_000_000,
    )  # fmt: skip
    model.fit(X, y)
    text = model.get_model_string(model.model_, 17)
    return _read(text, X.shape[1]) or model.predict, ""


def _read(text, n_vars):
    """Return a formula of pyoperon's as a tree, if it can be read."""
    for i in range(n_vars, 0, -1):
        text = text.replace(f"X{i}", f"x{i}")
    try:
        return MaskedTree.from_infix(text.replace("^", "**"))
    except ValueError:
        return None


METHODS = {"vsr": with_vsr, "gplearn": with_gplearn, "pyoperon": with_pyoperon}


def one(name, method, options):
    """Return what came of one run."""
    equation = load_equation(name)
    X, y = table(equation, options.rows, options.noise, options.seed)
    begun = time.perf_counter()
    answer, status = METHODS[method](X, y, equation, options.seconds, options.seed)
    seconds = time.perf_counter() - begun
    points = draw_inputs(equation.variables, 4000, np.random.default_rng(10**6))
    truth = equation.evaluate(points)
    good = np.isfinite(truth)
    evaluate = answer.evaluate if isinstance(answer, MaskedTree) else answer
    with np.errstate(all="ignore"):
        error = nmse(truth[good], np.asarray(evaluate(points[good]), dtype=float))
    right = False
    if isinstance(answer, MaskedTree):
        right = right_form(answer, equation) if options.noise else judge(answer, equation).recovered
    return {
        "problem": name, "method": method, "rows": options.rows, "noise": options.noise, "seed": options.seed,
        "limit": options.seconds, "n_vars": equation.n_vars, "right": bool(right), "nmse": float(error),
        "seconds": seconds, "status": status,
        "expression": answer.to_infix()[:200] if isinstance(answer, MaskedTree) else "",
    }  # fmt: skip


def main():
    """Run what is not yet in the file, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--methods", default="vsr")
    parser.add_argument("--out", type=Path, default=Path("tables.jsonl"))
    options = parser.parse_args()
    compile_kernels()
    names = [name for name in suites.problem_names() if name.startswith(f"{options.suite}/")]
    names = [str(path) for path in sorted(Path(options.suite).rglob("*.json"))] if not names else names  # noqa: SIM212
    names.sort(key=lambda name: (load_equation(name).n_vars, name))
    names = [name for name in names if load_equation(name).usable][:: options.every]
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    keys = ("problem", "method", "rows", "noise", "seed", "limit")
    known = {tuple(row[key] for key in keys) for row in done}
    for name in names:
        for method in options.methods.split(","):
            if (name, method, options.rows, options.noise, options.seed, options.seconds) in known:
                continue
            row = one(name, method, options)
            done.append(row)
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name} {method}: right {row['right']}, NMSE {row['nmse']:.1e}, {row['seconds']:.1f} s", flush=True)
    for method in options.methods.split(","):
        mine = [r for r in done if r["method"] == method and r["noise"] == options.noise and r["problem"] in names]
        right, close = sum(r["right"] for r in mine), sum(r["nmse"] < 1e-8 for r in mine)
        print(f"{method}: {len(mine)} tables, {right} right, {close} with NMSE < 1e-8 on fresh points")


if __name__ == "__main__":
    main()
