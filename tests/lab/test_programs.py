import sys
import textwrap

import numpy as np
import pytest

from deap_vsr import OracleError
from deap_vsr.errors import OracleFailure
from deap_vsr.lab.domains import inputs_of
from deap_vsr.lab.programs import ProgramOracle
from deap_vsr.testing import RepeatingOracleContract

VARIABLES = inputs_of({"T": (1, 2), "n": (1, 5, "integer")}).variables
X = np.array([[1.0, 1.0], [1.5, 2.0], [2.0, 5.0]])


def oracle(command, **options):
    return ProgramOracle(command, VARIABLES, ["add", "mul"], **options)


def script(tmp_path, text):
    """Return the command that runs a Python script."""
    path = tmp_path / "sim.py"
    path.write_text("import sys\n" + textwrap.dedent(text), encoding="utf-8")
    return f"{sys.executable} -S {path}"


class TestContract(RepeatingOracleContract):
    def make(self):
        return oracle(f"{sys.executable} -S -c 'import sys; print(float(sys.argv[1]) * 2)' {{T}} {{n}}")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_process_for_each_point_prints_a_number_in_its_last_line(tmp_path, workers):
    command = script(tmp_path, "print('warming up'); print(float(sys.argv[1]) * int(sys.argv[2]))")
    asked = oracle(command + " {T} {n}", workers=workers)
    np.testing.assert_allclose(asked.evaluate(X), X[:, 0] * X[:, 1])
    assert asked.queries == 3


@pytest.mark.parametrize("printed", ["2.5, 0.1", "2.5 0.1", '{"y": 2.5, "sigma": 0.1}'])
def test_a_number_and_its_standard_error(tmp_path, printed):
    y, sigma = oracle(script(tmp_path, f"print({printed!r})") + " {T} {n}").evaluate(X[:1])
    assert (y.tolist(), sigma.tolist()) == ([2.5], [0.1])


@pytest.mark.parametrize("printed", ["1 2", "1,2", '{"b": 2, "a": 1}', "[1, 2]"])
def test_several_outputs(tmp_path, printed):
    asked = oracle(script(tmp_path, f"print({printed!r})") + " {T} {n}", outputs=["a", "b"])
    assert next(asked.stream(X[:1]))[1].values == (1.0, 2.0)


def test_one_of_several_by_its_name(tmp_path):
    asked = oracle(script(tmp_path, """print('{"a": 1, "b": 2}')""") + " {T} {n}", output="b")
    assert asked.evaluate(X[:1]).tolist() == [2.0]


ROWS = "import csv\nrows = [(float(r['T']), int(r['n'])) for r in csv.DictReader(sys.stdin)]\n"
BATCHES = {
    "CSV with a header": ("csv", ROWS + "print('y')\nfor T, n in rows: print(T * n)"),
    "CSV with more columns": ("csv", ROWS + "print('T,y,k')\nfor T, n in rows: print(T, T * n, 0, sep=',')"),
    "bare numbers": ("csv", ROWS + "for T, n in rows: print(T * n)"),
    "JSON lines": (
        "jsonl",
        "import json\nfor line in sys.stdin:\n r = json.loads(line); print(json.dumps({'y': r['T'] * r['n']}))",
    ),
}


@pytest.mark.parametrize(("form", "text"), BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_for_a_batch(tmp_path, form, text, workers):
    asked = oracle(script(tmp_path, text), form=form, workers=workers)
    np.testing.assert_allclose(asked.evaluate(X), X[:, 0] * X[:, 1])


def test_a_batch_in_a_file(tmp_path):
    text = "import csv\nfor r in csv.DictReader(open(sys.argv[1])): print(r['T'])"
    assert oracle(script(tmp_path, text) + " {points}").evaluate(X).tolist() == X[:, 0].tolist()


def test_a_batch_that_fails_is_asked_point_by_point(tmp_path):
    text = """
    import csv
    rows = list(csv.DictReader(sys.stdin))
    if any(r["T"] == "1.5" for r in rows): sys.exit("does not converge")
    for r in rows: print(r["T"])
    """
    heard = dict(oracle(script(tmp_path, text)).stream(X))
    assert [heard[0].values, heard[2].values] == [(1.0,), (2.0,)]
    assert "does not converge" in str(heard[1])


def test_a_program_that_fails_has_no_answer_and_tells_why(tmp_path):
    command = script(tmp_path, "sys.exit('no licence' if sys.argv[1] == '1.5' else print(1))") + " {T} {n}"
    heard = dict(oracle(command).stream(X))
    assert [heard[0].values, heard[2].values] == [(1.0,), (1.0,)]
    assert isinstance(heard[1], OracleFailure)
    assert "ended with 1: no licence" in str(heard[1])


def test_a_program_that_fails_at_first_is_tried_again(tmp_path):
    text = f"""
    import os
    marker = {str(tmp_path / "tried")!r}
    if not os.path.exists(marker): open(marker, "w").close(); sys.exit(1)
    print(7)
    """
    command = script(tmp_path, text) + " {T} {n}"
    assert isinstance(next(oracle(command).stream(X[:1]))[1], OracleFailure)
    (tmp_path / "tried").unlink()
    assert oracle(command, retries=1).evaluate(X[:1]).tolist() == [7.0]


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    command = "sh -c 'sleep 1000 & wait; echo {T} {n}'"
    heard = next(oracle(command, timeout=0.2).stream(X[:1]))[1]
    assert "longer than 0.2 s" in str(heard)


@pytest.mark.parametrize(
    ("printed", "message"),
    [("", "printed nothing"), ("no number", "expected a number"), ("{1", "no JSON"), ("1 2 3", "expected a number")],
)
def test_what_is_no_number_is_no_answer(tmp_path, printed, message):
    heard = next(oracle(script(tmp_path, f"print({printed!r})") + " {T} {n}").stream(X[:1]))[1]
    assert message in str(heard)


def test_no_shell_sees_a_command_unless_asked(tmp_path):
    marker = tmp_path / "marker"
    asked = oracle(f"echo 5 ; touch {marker} {{T}} {{n}}")
    assert isinstance(next(asked.stream(X[:1]))[1], OracleFailure)  # echo has printed everything
    assert not marker.exists()
    assert oracle(f"touch {marker}; echo 5 | cat #{{T}} {{n}}", shell=True).evaluate(X[:1]).tolist() == [5.0]
    assert marker.exists()


def test_braces_stand_for_themselves_if_doubled():
    assert oracle("awk 'BEGIN {{ print {T} + {n} }}'").evaluate(X).tolist() == [2.0, 3.5, 7.0]


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("./no-such-program {T} {n}", {}, "no program that can be run"),
        ("echo {T} {m}", {}, "has {m}, which is no variable; variables are T, n"),
        ("echo {T}", {}, "no place for n"),
        ("", {}, "the command is empty"),
        ("echo '{T} {n}", {}, "No closing quotation"),
        ("echo {T} {n}", {"timeout": 0}, "timeout is 0"),
        ("echo {T} {n}", {"retries": -1}, "retries is -1"),
        ("echo {T} {n}", {"form": "xml"}, "form is 'xml', expected csv or jsonl"),
    ],
)
def test_commands_that_cannot_work_are_refused_before_a_run(command, options, message):
    with pytest.raises(OracleError) as caught:
        oracle(command, **options)
    assert message in str(caught.value)
