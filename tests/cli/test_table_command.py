"""``vsr discover table.csv``: names in the answer, rows without numbers, and errors that say what to do."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deap_vsr.campaign.campaign import Campaign
from deap_vsr.cli import app
from deap_vsr.errors import VsrError
from deap_vsr.table_command import columns_of, read_table


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1.0, 5.0, (80, 2)), columns=["mass", "speed"])
    frame["energy"] = 0.5 * frame["mass"] * frame["speed"] ** 2
    frame["id"] = [f"row {i}" for i in range(80)]
    frame.loc[3, "mass"] = np.nan
    file = tmp_path / "table.csv"
    frame.to_csv(file, index=False)
    return file


def test_a_table_has_an_answer_in_the_names_of_its_columns(path, tmp_path):
    out = tmp_path / "out"
    arguments = ["discover", str(path), "--target", "energy", "--ignore", "id", "--json", "--out", str(out)]
    arguments += ["--lab", str(tmp_path / "lab"), "--jobs", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["expression"] == "0.5*mass*speed**2"
    assert told["status"] == "fits"
    assert "1 of 80 rows have no number" in told["notes"][0]
    assert json.loads((out / "result.json").read_text()) == told
    assert "mass" in (out / "formula.tex").read_text()
    assert {file.name for file in out.glob("*.png")} == {"front.png", "fit.png", "residuals.png"}
    assert len(Campaign(tmp_path / "lab").state.before) == 79


@pytest.mark.parametrize(
    ("target", "ignore", "message"),
    [
        ("power", [], "--target: found power, expected a column: mass, speed, energy, id"),
        ("energy", [], "column id is no number; leave it out with --ignore id"),
        ("energy", ["id", "name"], "--ignore: found name"),
        ("energy", ["id", "mass", "speed"], "no columns are left"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(path, target, ignore, message):
    with pytest.raises(VsrError, match=message):
        columns_of(read_table(path), path, target, "", ignore)


def test_a_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(VsrError, match="there is no such table"):
        read_table(tmp_path / "nothing.csv")
