"""A person at a bench: fills in sheets as a law says, with noise and other human things."""

import csv

import numpy as np

from deap_vsr import Campaign

ENZYME = {"E": {"low": 0.1, "high": 2, "unit": "mg"}, "S": {"low": 0.1, "high": 5, "unit": "mM"}}
OPERATORS = "add,sub,mul,div,const"


def enzyme(E, S):
    return 3.4 * E * S / (0.8 + S)


def new(folder, variables=ENZYME, **options):
    """Return a new campaign of an exact instrument, unless something else is said."""
    given = {"output": "v", "noise": "exact", "points": 80, "operators": OPERATORS} | options
    return Campaign(folder, variables, **given)


def values(row, names):
    return {name: row[name] for name in names}


def measure(sheet, law=enzyme, noise=0.0, rng=None, output="v", setting=0.0):
    """Return rows with answers; with `setting`, knobs are off by such a share, and the row says so."""
    rows = []
    for row in sheet:
        point = values(row, sheet.names)
        if setting:
            point = {name: value * (1.0 + setting * rng.standard_normal()) for name, value in point.items()}
        y = law(**point) * (1.0 + (noise * rng.standard_normal() if noise else 0.0))
        rows.append({"id": row["id"], **point, output: y})
    return rows


def run(campaign, law=enzyme, noise=0.0, rng=None, output="v", setting=0.0, at_most=100):
    """Ask and tell until nothing more is asked; returns the result."""
    for _ in range(at_most):
        sheet = campaign.ask()
        if not len(sheet):
            break
        campaign.tell(measure(sheet, law, noise, rng, output, setting))
    return campaign.result


def fill_in(path, law=enzyme, output="v", noise=0.0, rng=None):
    """Fill in the CSV file of a sheet, as a person with a text editor does."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("id", "why", output, "sigma", "valid", "comment")]
    for row in rows:
        y = law(**{name: float(row[name]) for name in names})
        row[output] = repr(y * (1.0 + (noise * rng.standard_normal() if noise else 0.0)))
    new = path.with_suffix(".saved")  # as an editor saves: whole or not at all
    with new.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    new.replace(path)


def numbers(tree):
    return np.array([node.value for node in tree if not node.arity and not isinstance(node.value, str)])
