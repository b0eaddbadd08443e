"""`vsr lab`: a whole campaign through its files, killed at random moments, and what the commands say."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from bench import enzyme, fill_in, new, run
from typer.testing import CliRunner

from deap_vsr import Campaign
from deap_vsr.campaign import folder
from deap_vsr.cli import app
from deap_vsr.errors import VsrError

INIT = ["--knob", "E[mg]=0.1:2", "--knob", "S[mM]=0.1:5:0.01", "--output", "v[mM/s]", "--noise", "exact"]
INIT += ["--operators", "add,sub,mul,div,const", "--points", "80"]


def vsr(*args, code=0):
    result = CliRunner().invoke(app, ["lab", *map(str, args)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def test_a_whole_campaign_runs_through_its_files(tmp_path):
    lab = tmp_path / "lab"
    vsr("init", lab, *INIT)
    for number in range(1, 20):
        sheet = json.loads(vsr("ask", lab, "--json"))
        if not sheet["rows"]:
            break
        assert sheet["file"].endswith(f"sheet-{number}.csv")
        fill_in(lab / f"sheet-{number}.csv")
        vsr("tell", lab, sheet["file"])
    status = json.loads(vsr("status", lab, "--json"))
    assert status["status"] == "found"
    assert status["open"] == 0
    assert "found: v = " in vsr("status", lab)
    assert "the search has ended" in vsr("ask", lab)
    vsr("report", lab)
    report = (lab / "report.md").read_text()
    assert "## How it grew" in report
    assert report.count("\n| 1") >= 1
    vsr("page", lab)
    assert (lab / "page.html").read_text().startswith("<!doctype html>")


def test_single_answers_are_told_on_the_command_line(tmp_path):
    lab = tmp_path / "lab"
    vsr("init", lab, *INIT)
    assert "sheet 1" in vsr("ask", lab, "-n", 4)
    text = vsr("tell", lab, "1=1.5", "2=failed")
    assert "2 rows taken" in text
    assert "still open: 3, 4" in text
    vsr("tell", lab, "1=1.4", "--replace")
    assert Campaign(lab).state.answers[0].y == 1.4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("init", "lab", "--knob", "E"), "expected NAME=LOW:HIGH"),
        (("init", "lab", "--knob", "E=2:1"), "low"),
        (("init", "lab", "--knob", "E=a:b"), "expected a finite number"),
        (("init", "lab", "--knob", "E=1:2:0.1:9"), "is too much"),
        (("ask", "nowhere"), "no laboratory there"),
        (("tell", "nowhere", "x.csv"), "no laboratory there"),
        (("status", "nowhere"), "no laboratory there"),
    ],
)
def test_bad_input_is_told_by_what_was_found_and_expected(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VsrError, match=message):
        vsr(*args)


def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path):
    command = [sys.executable, "-m", "deap_vsr", "lab", "ask", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere: no laboratory there")
    assert "Traceback" not in done.stderr


#: Asks and tells until the end; a child that is killed whenever the parent likes.
CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from bench import fill_in
from deap_vsr import Campaign
campaign = Campaign({lab!r})
while True:
    sheet = campaign.ask()
    print("asked", flush=True)
    if not len(sheet):
        break
    fill_in(sheet.path)
    print("filled in", flush=True)
    campaign.tell(sheet.path)
    print("told", flush=True)
"""


def test_killed_at_random_moments_it_goes_on_and_loses_nothing(tmp_path):
    whole = new(tmp_path / "whole")
    expected = run(whole)
    lab = tmp_path / "killed"
    new(lab)
    rng = np.random.default_rng(0)
    code = CHILD.format(here=os.path.dirname(__file__), lab=str(lab))
    kills = 0
    for _ in range(30):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        steps = int(rng.integers(0, 3)) if kills < 5 else 10_000  # lines until it is killed
        for _ in range(steps):
            if not child.stdout.readline():
                break
        if steps < 10_000:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.stdout.read()
        child.stdout.close()
        if child.wait() == 0:
            break
        assert kills < 5 or steps < 10_000, "left alone it comes to its end"
        told = [row.id for row in Campaign(lab).state.measured]
        assert len(told) == len(set(told))
    campaign = Campaign(lab)
    assert kills == 5
    assert [row.x for row in campaign.state.asked] == [row.x for row in whole.state.asked]
    assert campaign.result.formula == expected.formula


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    campaign = new(tmp_path / "lab")
    first = campaign.ask().rows[0]
    campaign.tell({first.id: enzyme(*first.x)})
    kept = (campaign.folder / "measured.csv").read_bytes()

    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_atomically", full)
    with pytest.raises(Exception, match=r"measured.csv: cannot be written: No space left"):
        campaign.tell({"2": 1.0})
    assert (campaign.folder / "measured.csv").read_bytes() == kept
