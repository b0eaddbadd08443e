"""The notebook in examples runs, and its answers are what it says."""

import json
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "examples" / "table.ipynb"


def test_the_notebook_runs_and_finds_the_pendulum(capsys):
    space = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)  # noqa: S102 - our own file, as a user would run it
    model = space["model"]
    assert model.sympy().free_symbols == space["known"].sympy().free_symbols
    unit = space["table"].assign(length=1.0, gravity=1.0).head(1)
    assert abs(model.predict(unit)[0] - 6.283) < 0.05
    assert model.status_ in capsys.readouterr().out
