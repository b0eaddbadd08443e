"""Formulas for tables of known laws, ours and other packages' on the same rows, judged alike.

    python benchmarks/tables.py feynman-unit --rows 1000 --noise 0.01 --seconds 20 --methods vsr,gplearn,pyoperon

One line of JSON for each run in --out; kill it and the same command goes on. ``--every K`` takes every K-th problem, in
the order of the number of variables. Exact: recovered as docs/metrics.md says. In noise: the right form. All methods
have the same rows, operators, limit and judge; the others' are those of ``deap_vsr.peers``.
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
from deap_vsr.peers import PEERS, Sample
from deap_vsr.problems import suites
from deap_vsr.problems.sampling import draw_inputs


def table(equation, n_rows, noise, seed):
    """Return rows of a law: X, y, and y without noise."""
    rng = np.random.default_rng(seed)
    X = draw_inputs(equation.variables, 4 * n_rows, rng)
    y = equation.evaluate(X)
    good = np.flatnonzero(np.isfinite(y))[:n_rows]
    X, y = X[good], y[good]
    return X, y + noise * np.std(y) * rng.standard_normal(len(y))


def with_vsr(X, y, operators, seconds, seed):
    """Return our formula, and how it stands."""
    model = VsrRegressor(operators, time_limit=seconds, random_state=seed).fit(X, y)
    return model._trees[model.best_index_], model.status_


def with_peer(package):
    """Return what finds a formula with another package in the same rows, with the same operators and limit."""

    def fitted(X, y, operators, seconds, seed):
        tree, _ = PEERS[package].fit(Sample(X, y, tuple(operators), seed, seconds, None))
        return tree, ""

    return fitted


METHODS = {"vsr": with_vsr, "gplearn": with_peer("gplearn"), "pyoperon": with_peer("pyoperon")}


def one(name, method, options):
    """Return what came of one run."""
    equation = load_equation(name)
    X, y = table(equation, options.rows, options.noise, options.seed)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    answer, status = METHODS[method](X, y, equation.function_set, options.seconds, options.seed)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    points = draw_inputs(equation.variables, 4000, np.random.default_rng(10**6))
    truth = equation.evaluate(points)
    good = np.isfinite(truth)
    with np.errstate(all="ignore"):
        error = nmse(truth[good], answer.evaluate(points[good]))
    right = right_form(answer, equation) if options.noise else judge(answer, equation).recovered
    return {
        "problem": name, "method": method, "rows": options.rows, "noise": options.noise, "seed": options.seed,
        "limit": options.seconds, "n_vars": equation.n_vars, "right": bool(right), "nmse": float(error),
        "seconds": seconds, "cpu": cpu, "status": status, "expression": answer.to_infix()[:200],
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
        wrong = sum(r["status"] == "fits" and not r["right"] for r in mine)
        print(f"{method}: {len(mine)} tables, {right} right, {close} with NMSE < 1e-8 on fresh points")
        print(f"  {wrong} said to fit that are not right")


if __name__ == "__main__":
    main()
