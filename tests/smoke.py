"""Try an installed package where there is no network: ``python tests/smoke.py``, in the environment that it is in.

Not a test of the suite: `make release` runs it in an empty environment. Everything is done in an empty folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Put before everything else that Python imports: whoever asks for another machine is told that there is none.
_NO_NETWORK = """
import socket

def refused(*arguments, **options):
    raise OSError("the smoke test has no network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
"""
_FUNCTION = "def pressure(n, T, V):\n    return 8.314 * n * T / V\n"


def main() -> None:
    """Run what a newcomer would; AssertionError where something is not as it should be."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(_NO_NETWORK)
        (folder / "simulator.py").write_text(_FUNCTION)
        assert "no network" in _run(
            folder, "-c", "import urllib.request as r; r.urlopen('http://localhost')", fails=True
        )
        where = _run(folder, "-c", "import deap_vsr; print(deap_vsr.__file__)").strip()
        assert Path(sys.prefix) in Path(where).parents, f"this is not the installed package: {where}"
        print(_vsr(folder, "--version").strip(), "in", where)
        suites = json.loads(_vsr(folder, "data", "list", "--json"))
        assert suites["problems"] > 600, suites
        assert json.loads(_vsr(folder, "data", "check", "feynman-unit", "--json"))["errors"] == []
        law = json.loads(_vsr(folder, "discover", "feynman-unit/I.39.22", "--max-evaluations", "20000", "--json"))
        assert (law["status"], law["recovered"]) == ("found", True), law
        domains = ("--domain", "n=1:3", "--domain", "T=280:400", "--domain", "V=0.1:2")
        found = json.loads(
            _vsr(folder, "discover", "simulator.py:pressure", *domains, "--max-queries", "100", "--json")
        )
        assert found["status"] == "found", found
        compared = (
            "compare",
            "feynman-unit/I.39.22",
            "--methods",
            "gp,vsr",
            "--max-evaluations",
            "500",
            "--out",
            "out",
        )
        assert json.loads(_vsr(folder, *compared, "--json"))["failed"] == 0
        assert "<html" in (folder / "out" / "report.html").read_text(encoding="utf-8")
        _vsr(folder, "lab", "init", "bench", "--knob", "E=0.1:2", "--knob", "S=0.1:5")
        _vsr(folder, "lab", "ask", "bench")
        assert (folder / "bench" / "asked.csv").exists()
    print("the smoke test has passed")


def _vsr(folder: Path, *arguments: str) -> str:
    return _run(folder, "-m", "deap_vsr", *arguments)


def _run(folder: Path, *arguments: str, fails: bool = False) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment | {"PYTHONPATH": str(folder)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert (done.returncode != 0) is fails, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stderr if fails else done.stdout


if __name__ == "__main__":
    main()
