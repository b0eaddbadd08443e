"""Committed reports are those of the committed runs; those of the two smallest sets are what a fresh run gives."""

from pathlib import Path

import pytest
from test_run import lasting

from deap_vsr.compare.job import Job
from deap_vsr.compare.plan import plan
from deap_vsr.compare.report import write_report
from deap_vsr.compare.run import do, order
from deap_vsr.compare.store import read_rows, read_settings

RESULTS = Path(__file__).parents[2] / "results" / "smallest"
SETTINGS = read_settings(RESULTS)
ROWS = {Job(**{name: row[name] for name in Job.__annotations__}): row for row in read_rows(RESULTS)}


def planned():
    return plan(
        SETTINGS["suites"],
        methods=SETTINGS["methods"],
        n_seeds=len(SETTINGS["seeds"]),
        max_evaluations=SETTINGS["max_evaluations"],
    )


def test_the_results_are_complete_and_of_the_problems_that_are_here():
    assert planned().settings == SETTINGS
    assert set(planned().jobs) == set(ROWS)


@pytest.mark.parametrize("method", SETTINGS["methods"])
def test_a_fresh_run_gives_the_row_that_is_committed(method):
    job = next(job for job in ROWS if job.method == method)
    fresh = do(order(job, planned().problems[job.problem]))
    assert fresh["status"] == "done"
    assert fresh["recovered"] or method != "vsr"
    # Elsewhere last digits may differ, and then a random search takes another way.
    if (fresh["machine"], fresh["versions"]) == (ROWS[job]["machine"], ROWS[job]["versions"]):
        assert lasting(fresh) == lasting(ROWS[job])


@pytest.mark.parametrize("results", sorted(RESULTS.parent.iterdir()), ids=lambda folder: folder.name)
def test_the_committed_tables_are_those_of_the_runs(results, tmp_path, monkeypatch):
    monkeypatch.setattr("deap_vsr.compare.report.have_matplotlib", lambda: False)  # pictures are not committed
    for name in ("comparison.json", "runs.jsonl"):
        (tmp_path / name).write_bytes((results / name).read_bytes())
    write_report(tmp_path)
    assert (tmp_path / "tables.md").read_text() == (results / "tables.md").read_text()
