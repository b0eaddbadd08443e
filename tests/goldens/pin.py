"""Pin the outcomes of runs in goldens.json: ``python tests/goldens/pin.py [NAME...]``, by default of all of them."""

import json
import sys
import time
from pathlib import Path

from runs import RUNS

GOLDENS = Path(__file__).with_name("goldens.json")


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
    GOLDENS.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    print(f"{time.perf_counter() - begun:6.2f} s  in all; {len(pinned)} runs are pinned")


if __name__ == "__main__":
    main(sys.argv[1:])
