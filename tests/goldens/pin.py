"""Pin the outcomes of runs in goldens.json: ``python tests/goldens/pin.py [NAME...]``, by default of all of them."""

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np
from runs import RUNS
from scipy.linalg import cho_factor, cho_solve

GOLDENS = Path(__file__).with_name("goldens.json")
#: What told the numerical libraries apart with which the runs were pinned.
MACHINE = Path(__file__).with_name("machine.txt")


def fingerprint():
    """Return what sums, solutions and functions come to here, to the last digit."""
    A = np.random.default_rng(0).standard_normal((400, 24))
    G = A.T @ A
    solved = cho_solve(cho_factor(G), A.T @ A[:, 0])
    values = [G, solved, np.linalg.qr(A)[1], np.linalg.lstsq(A, A[:, 1] ** 2, rcond=None)[0], np.exp(np.sin(A))]
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()[:16]


def text_of(outcome):
    """Return an outcome as JSON, with a line for each field and each round."""
    lines = []
    for key, value in outcome.items():
        rows = isinstance(value, list) and value
        text = "[\n   " + ",\n   ".join(map(json.dumps, value)) + "\n  ]" if rows else json.dumps(value)
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n }"


def main(names):
    """Run `names`, or everything, and keep what is pinned of the others."""
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        sys.exit(f"no such run: {', '.join(unknown)}; there are {', '.join(RUNS)}")
    before = json.loads(GOLDENS.read_text()) if GOLDENS.exists() else {}
    pinned = {name: outcome for name, outcome in before.items() if name in RUNS}
    begun = time.perf_counter()
    for name in names or RUNS:
        started = time.perf_counter()
        pinned[name] = RUNS[name]()
        news = "new" if name not in before else "as before" if pinned[name] == before[name] else "CHANGED"
        print(f"{time.perf_counter() - started:6.2f} s  {news:9}  {name}", flush=True)
    entries = [f" {json.dumps(name)}: {text_of(pinned[name])}" for name in RUNS if name in pinned]
    if not names:
        MACHINE.write_text(fingerprint() + "\n")
    GOLDENS.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    print(f"{time.perf_counter() - begun:6.2f} s  in all; {len(pinned)} runs are pinned")


if __name__ == "__main__":
    main(sys.argv[1:])
