"""Whole campaigns on the ten laws of campaign_laws.json: ``python benchmarks/campaign.py [noise|exact] [seed]``.

Sheets of 12, knobs of three digits; readings with 1 % of normal noise, which is stated, and at most 200 of them, or
exact ones and at most 80. Prints a row of a table for each law: how it ended, whether it has the right form, its cost.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from deap_vsr import Campaign, MaskedTree
from deap_vsr.judge.form import right_form
from deap_vsr.problems.equation import Equation

LAWS = json.loads(Path(__file__).with_name("campaign_laws.json").read_text(encoding="utf-8"))["laws"]


def equation_of(law, setup):
    """Return a law as an equation in x1, x2, ..., for the judge."""
    places = {variable["name"]: f"x{i + 1}" for i, variable in enumerate(law["variables"])}
    text = re.sub(r"[A-Za-z_]\w*", lambda word: places.get(word[0], word[0]), law["law"])
    return Equation(law["name"], setup.variables, setup.operators, MaskedTree.from_infix(text), text)


def campaign_of(law, folder, exact, seed):
    """Run a campaign to its end; returns it and its law."""
    noise, points = ("exact", 80) if exact else ("1 %", 200)
    options = {"output": law["output"], "operators": law["operators"], "noise": noise, "points": points, "seed": seed}
    campaign = Campaign(folder, law["variables"], **options)
    equation, rng = equation_of(law, campaign.setup), np.random.default_rng(seed)
    while True:
        sheet = campaign.ask()
        if not len(sheet):
            return campaign, equation
        y = equation.evaluate(np.array([row.x for row in sheet.rows]))
        y = y if exact else y * (1.0 + 0.01 * rng.standard_normal(len(y)))
        campaign.tell({row.id: value for row, value in zip(sheet.rows, y.tolist(), strict=True)})


def main(kind="noise", seed="0"):
    """Run all laws."""
    print("| law | status | right form | points | sheets | seconds | formula |\n|---|---|---|---|---|---|---|")
    n_right = 0
    for law in LAWS:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            campaign, equation = campaign_of(law, Path(folder) / "lab", kind == "exact", int(seed))
            result, status = campaign.result, campaign.status()
        right = result.tree is not None and right_form(result.tree, equation)
        n_right += right
        formula = result.formula if len(result.formula) < 70 else result.formula[:66] + " ..."
        cells = (law["name"], result.status, "yes" if right else "no", status.asked, status.sheets)
        seconds = f"{time.perf_counter() - begun:.0f}"
        print("|", " | ".join(map(str, cells)), "|", seconds, f"| `{formula}` |", flush=True)
    print(f"\n{n_right} of {len(LAWS)} have the right form.")


if __name__ == "__main__":
    main(*sys.argv[1:])
