"""Tables with no known law: formulas of ours and others, and forests beside them, on rows that were held out.

    python benchmarks/real_tables.py --seconds 10 --methods vsr,pyoperon,gplearn,forest,boosting

Tables of scikit-learn, and tables made from public formulas of physics, chemistry and engineering with the noise that
such measurements have: implicit laws, sums of many powers. One line of JSON for each run in --out; kill it and the same
command goes on. Reported are R2 on 30 % of the rows, and nodes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from tables import METHODS as FORMULAS

from deap_vsr.engine.warm import compile_kernels
from deap_vsr.estimator import OPERATORS

FORESTS = {"forest": RandomForestRegressor, "boosting": GradientBoostingRegressor}


def column_of(loader, target):
    """Return one column of a table of scikit-learn by the others."""
    frame = loader().data
    return np.delete(frame, target, axis=1), frame[:, target]


def made(law, ranges, noise, n_rows=400, floor=0.0):
    """Return rows of a law: ranges, then noise relative to y, then a floor relative to the spread of y."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.uniform(low, high, n_rows) for low, high in ranges])
    y = law(*X.T)
    return X, y * (1.0 + noise * rng.standard_normal(n_rows)) + floor * np.std(y) * rng.standard_normal(n_rows)


def friction(reynolds, roughness):
    """Return Colebrook's friction factor of a pipe, which is implicit; both arguments in their usual sizes."""
    x = np.full(len(reynolds), 7.0)
    for _ in range(50):
        x = -2.0 * np.log10(roughness * 1e-3 / 3.7 + 2.51 * x / (1e3 * reynolds))
    return 1.0 / x**2


def sound(temperature, salinity, depth):
    """Return Mackenzie's speed of sound in sea water."""
    t, s, d = temperature, salinity, depth
    return (
        1448.96 + 4.591 * t - 5.304e-2 * t**2 + 2.374e-4 * t**3 + 1.340 * (s - 35) + 1.630e-2 * d + 1.675e-7 * d**2
        - 1.025e-2 * t * (s - 35) - 7.139e-13 * t * d**3
    )  # fmt: skip


def humid_air(temperature, pressure, humidity):
    """Return the density of humid air, with Magnus' vapour pressure."""
    vapour = humidity * 611.2 * np.exp(17.62 * temperature / (243.12 + temperature))
    kelvin = temperature + 273.15
    return (pressure * 1e3 - vapour) / (287.05 * kelvin) + vapour / (461.5 * kelvin)


def diode(voltage, light, kelvin):
    """Return the current of a solar cell without resistances."""
    return 3.0 * light - 1e-9 * (np.exp(voltage / (1.3 * 8.617e-5 * kelvin)) - 1.0)


def heat_transfer(reynolds, prandtl, ratio):
    """Return Gnielinski's Nusselt number; reynolds in thousands."""
    f = (0.79 * np.log(reynolds * 1e3) - 1.64) ** -2 / 8.0
    return (
        f * (reynolds * 1e3 - 1000) * prandtl / (1 + 12.7 * np.sqrt(f) * (prandtl ** (2 / 3) - 1)) * (1 + ratio**0.667)
    )


TABLES = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "iris: petal width": lambda: column_of(datasets.load_iris, 3),
    "wine: colour": lambda: column_of(datasets.load_wine, 9),
    "wine: flavanoids": lambda: column_of(datasets.load_wine, 6),
    "breast cancer: area": lambda: column_of(datasets.load_breast_cancer, 3),
    "breast cancer: concavity": lambda: column_of(datasets.load_breast_cancer, 6),
    "linnerud: pulse": lambda: (lambda d: (np.column_stack([d.data, d.target[:, :2]]), d.target[:, 2]))(
        datasets.load_linnerud()
    ),
    "friedman 1": lambda: datasets.make_friedman1(400, noise=1.0, random_state=7),
    "pipe friction": lambda: made(friction, [(4, 500), (0.01, 30)], 0.02),
    "sound in sea water": lambda: made(sound, [(2, 30), (25, 40), (0, 4000)], 0.0, floor=0.01),
    "humid air": lambda: made(humid_air, [(-10, 40), (90, 105), (0, 1)], 0.001),
    "solar cell": lambda: made(diode, [(0, 0.6), (0.2, 1), (280, 340)], 0.01, floor=0.01),
    "heat transfer": lambda: made(heat_transfer, [(5, 100), (0.7, 100), (0.01, 0.2)], 0.05),
    "enzyme, two inhibitors": lambda: made(
        lambda s, i, j: 4.2 * s / (0.8 * (1 + i / 0.5 + j / 2.0 + i * j) + s), [(0.1, 8), (0, 3), (0, 3)], 0.03
    ),
}


def one(table, method, options):
    """Return what came of one run."""
    X, y = TABLES[table]()
    X, test, y, wanted = train_test_split(X, y, test_size=0.3, random_state=options.seed)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    text, size, status = "", 0, ""
    if method in FORESTS:
        said = FORESTS[method](random_state=options.seed).fit(X, y).predict(test)
    else:
        tree, status = FORMULAS[method](X, y, OPERATORS, options.seconds, options.seed)
        with np.errstate(all="ignore"):
            said = np.asarray(tree.evaluate(test), dtype=float)
        text, size = tree.to_infix()[:300], len(tree)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    r2 = float(r2_score(wanted, said)) if np.isfinite(said).all() else -np.inf
    return {
        "table": table, "method": method, "seed": options.seed, "limit": options.seconds, "rows": len(y),
        "columns": X.shape[1], "r2": r2, "nodes": size, "seconds": seconds, "cpu": cpu, "status": status,
        "expression": text,
    }  # fmt: skip


def main():
    """Run what is not yet in the file, and show it as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default="vsr,forest,boosting")
    parser.add_argument("--out", type=Path, default=Path("real_tables.jsonl"))
    options = parser.parse_args()
    compile_kernels()
    methods = options.methods.split(",")
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(row["table"], row["method"], row["seed"], row["limit"]): row for row in done}
    for table in TABLES:
        for method in methods:
            key = (table, method, options.seed, options.seconds)
            if key not in known:
                known[key] = one(table, method, options)
                with options.out.open("a") as file:
                    file.write(json.dumps(known[key]) + "\n")
        rows = [known[table, method, options.seed, options.seconds] for method in methods]
        print(f"| {table} | {rows[0]['rows']} | {rows[0]['columns']} | ", end="")
        print(" | ".join(f"{r['r2']:.3f}" + (f" ({r['nodes']})" if r["nodes"] else "") for r in rows), "|", flush=True)
    for method in methods:
        mine = [known[table, method, options.seed, options.seconds] for table in TABLES]
        print(
            f"{method}: median R2 {np.median([row['r2'] for row in mine]):.3f}, "
            f"nodes {np.median([row['nodes'] for row in mine]):.0f}"
        )


if __name__ == "__main__":
    main()
