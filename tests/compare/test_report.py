"""The report: one page that needs nothing else, in which all text is text."""

import csv
import json
import re
from html.parser import HTMLParser

import pytest
from rows import old_row_of, round_of, row_of, settings_of

from deap_vsr import VsrError
from deap_vsr.compare.paths import path_html
from deap_vsr.compare.report import command_of, how_bounded, write_report

HOSTILE = "<script>alert('x')</script>&\"'"


def folder_of(folder, rows, **settings):
    folder.mkdir(exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(settings_of(rows, **settings)))
    (folder / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def some_rows():
    return [row_of(m, 0.1 * (p + 1), p, s) for m in ("gp", "vsr-gp") for p in range(3) for s in range(2)]


class Page(HTMLParser):
    """What a page holds: tags with attributes, and that they are closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_report_has_tables_pictures_and_every_run(tmp_path):
    rows = some_rows()
    written = write_report(folder_of(tmp_path, rows))
    assert written[0] == tmp_path / "report.html"
    assert all(path.stat().st_size > 50 for path in written)
    names = {path.relative_to(tmp_path).as_posix() for path in written}
    assert {"tables.md", "tables.tex", "tables/overview.csv", "tables/pairs.csv", "pictures/nmse.png"} <= names
    page = Page(written[0].read_text())
    assert page.open == []
    kinds = [tag for tag, _ in page.tags]
    assert kinds.count("details") == len(rows)
    assert kinds.count("img") == sum(name.startswith("pictures/") for name in names)
    assert kinds.count("table") == sum(name.endswith(".csv") for name in names) + 1


def test_the_page_loads_nothing_from_elsewhere(tmp_path):
    text = write_report(folder_of(tmp_path, some_rows()))[0].read_text()
    for tag, attributes in Page(text).tags:
        for name in ("src", "href", "action", "data"):
            assert attributes.get(name, "#").startswith(("data:", "#")), (tag, attributes)
    assert "@import" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_text_from_files_stays_text(tmp_path):
    rows = [
        row_of("gp", 0.1, problem=0) | {"problem": HOSTILE, "set": HOSTILE, "group": HOSTILE, "expression": HOSTILE},
        row_of("gp", None, problem=1) | {"error": HOSTILE},
    ]
    rows[0]["result"] = {"rounds": [round_of("x1", [0]) | {"nodes": [], "expression": HOSTILE, "freed": [HOSTILE]}]}
    text = write_report(folder_of(tmp_path, rows, suites=[HOSTILE]))[0].read_text()
    page = Page(text)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert page.open == []


def test_the_same_rows_in_another_order_give_the_same_report(tmp_path):
    rows = some_rows()
    one = write_report(folder_of(tmp_path / "one", rows))
    other = write_report(folder_of(tmp_path / "other", rows[::-1], methods=["gp", "vsr-gp"]))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_evaluations": 5000}, "5,000 evaluations. Runs bounded by counts are reproducible"),
        ({"time_limit": 60.0}, "60 s. Runs bounded by seconds are not reproducible"),
        ({"time_limit": 60.0, "max_queries": 900}, "60 s or 900 oracle queries. Runs bounded by seconds are not"),
    ],
)
def test_the_report_says_whether_it_can_be_reproduced(tmp_path, limits, words):
    rows = some_rows()
    settings = settings_of(rows, **({"max_evaluations": None} | limits))
    assert words in how_bounded(settings)
    written = write_report(folder_of(tmp_path, rows, **({"max_evaluations": None} | limits)))
    for path in written[:3]:
        assert words in path.read_text()


def test_a_comparison_that_is_not_done_says_how_far_it_is(tmp_path):
    text = write_report(folder_of(tmp_path, some_rows(), runs=40))[0].read_text()
    assert "12 of 40" in text
    with pytest.raises(VsrError, match="no run is finished yet"):
        write_report(folder_of(tmp_path, []))


def test_without_matplotlib_the_report_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("deap_vsr.plot.find_spec", lambda name: None)
    written = write_report(folder_of(tmp_path, some_rows()))
    assert not [path for path in written if path.suffix == ".png"]
    assert "pip install matplotlib" in written[0].read_text()


def test_case_studies_have_pictures_of_their_own(tmp_path):
    rows = [row_of("gp", 0.1, noise=n, optimizer=o) for n in (0.02, 0.14) for o in ("lm", "BFGS")]
    names = [path.stem for path in write_report(folder_of(tmp_path, rows)) if path.suffix == ".png"]
    assert names == ["nmse", "queries", "convergence", "noise", "optimizers", "metrics"]


def test_time_is_drawn_against_the_number_of_variables_where_there_are_several(tmp_path):
    rows = [row_of("gp", 0.1, n_vars=2), row_of("gp", 0.1, 1, n_vars=3)]
    assert "time" in [path.stem for path in write_report(folder_of(tmp_path, rows))]


def told(row, **changed):
    """Return a row whose result says how its answer stands."""
    says = {"reason": "20 of 30 points <did> not", "share": 0.15, "rivals": [{"expression": "x1 & x2", "behind": 2.34}]}
    return row | {"result": row["result"] | says | changed}


def test_every_run_tells_how_its_answer_stands_why_and_its_rivals(tmp_path):
    rows = [
        told(row_of("vsr", 0.0, 0)),
        told(row_of("vsr", 0.1, 1, standing="fits"), rivals=[]),
        told(row_of("vsr", 0.1, 2, standing="found", false_found=True), rivals=[]),
    ]
    text = write_report(folder_of(tmp_path, rows))[0].read_text()
    assert Page(text).open == []
    doubt = "; it may be wrong in at most about 15.0% of the domain"
    assert f"<p><b>found</b>: 20 of 30 points &lt;did&gt; not{doubt}</p>" in text
    assert '<li>2.3 nats behind: <span class="formula">x1 &amp; x2</span></li>' in text
    assert text.count("Rivals that the data do not refute") == 1
    assert "<p><b>fits</b>: 20 of 30 points &lt;did&gt; not</p>" in text
    assert f"<p><b>found, falsely</b>: 20 of 30 points &lt;did&gt; not{doubt}</p>" in text
    assert '<span class="tag bad">found, falsely</span>' in text
    assert "<div><b>2</b><span>found</span></div><div><b>1</b><span>found falsely</span></div>" in text
    runs = text[text.index('<section id="runs">') : text.index('<section id="paths">')]
    for column in ("status", "reason"):
        assert f'<button type="button">{column}</button>' in runs
    assert runs.count("20 of 30 points &lt;did&gt; not</td>") == 3


def test_runs_of_before_it_was_said_how_answers_stand_are_reported(tmp_path):
    text = write_report(folder_of(tmp_path, [old_row_of("vsr", 0.0), old_row_of("vsr", None, 1)]))[0].read_text()
    assert Page(text).open == []
    assert "<div><b>not known</b><span>found</span></div>" in text
    assert '<td data-value="done">done</td>' in text, "as it is called now"
    assert "<p><b>found" not in text
    with (tmp_path / "tables" / "overview.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert (line["recovered"], line["found"], line["false found"]) == ("0.5", "", "")


def test_failures_alone_are_a_report_too(tmp_path):
    text = write_report(folder_of(tmp_path, [row_of("gp", None), row_of("vsr", None)]))[0].read_text()
    assert text.count('<span class="tag bad">failed</span>') == 2


def test_frozen_nodes_slots_and_open_nodes_are_coloured():
    text = path_html([round_of("C*x1 + sin(x2)", [0, 0, 1, 0, 1, 1])])
    assert (
        '<span class="frozen"><span class="frozen"><span class="slot">C1</span>*<span class="frozen">x1</span></span>'
        ' + <span class="open">sin(<span class="open">x2</span>)</span></span>'
    ) in text
    assert "1 slot" in text
    assert re.sub("<[^>]+>", "", text).endswith("y = C1*x1 + sin(x2)")


def test_a_frozen_number_is_short_and_no_slot():
    text = path_html([round_of("0.30000000000000004*x1", [0, 0, 0])])
    assert '<span class="frozen">0.3</span>*' in text
    assert "slot" not in text.replace("0 slots", "")


def test_the_path_is_that_of_the_last_pass():
    rounds = [round_of("x1", [1], freed=["x1", "x2"][:n], accepted=n == 2) for n in (1, 2, 1, 2)]
    text = path_html(rounds)
    assert text.count("<li>") == 2
    assert "2 rounds of other attempts and earlier passes are left out" in text
    assert text.count("does not fit") == 1
    assert path_html([]) == ""


def test_the_report_says_what_noise_is_a_share_of(tmp_path):
    rows = [row_of("vsr", 0.1, noise=0.1, noise_of="rms")]
    written = write_report(folder_of(tmp_path, rows, noise=[0.1], noise_of="rms"))
    assert all("shares of the root mean square of y" in path.read_text() for path in written[:3])
    assert command_of(rows[0]).endswith("--noise 0.1 --noise-of rms --max-evaluations 1000")


def test_every_run_of_ours_says_how_to_repeat_it():
    row = row_of("vsr-gp+slotwise", 0.1, seed=3, noise=0.1, optimizer="BFGS", preset="paper", problem=0)
    assert command_of(row) == (
        "vsr discover trigonometric/inv/2-1-1/prog_0 --method vsr-gp --expansion slotwise --seed 3 --noise 0.1 "
        "--preset paper --optimizer BFGS --max-evaluations 1000"
    )
    assert command_of(row_of("gp") | {"problem": "a b; rm"}).startswith("vsr discover 'a b; rm' --method gp")
    assert "--method gplearn" in command_of(row_of("gplearn"))
    assert "--method own:METHOD" in command_of(row_of("own:METHOD"))
    assert command_of(row_of("magic")) == ""


def test_a_spreadsheet_latex_and_markdown_take_text_for_text(tmp_path):
    # Fails at 95877ac: a cell began with =, a title left its comment, and slots could be a script.
    evil = '=HYPERLINK("http://x")\n\\input{/etc/passwd} $\\frac'
    rows = [row_of("gp", 0.1, s, group=evil, set=evil) for s in range(2)]
    write_report(folder_of(tmp_path, rows, suites=[evil]))
    for path in (tmp_path / "tables").glob("*.csv"):
        with path.open(newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert not any(cell[:1] in ("=", "+", "@", "\t", "\r") and cell != "=" for cell in cells)
    latex = (tmp_path / "tables.tex").read_text()
    assert all(line.startswith("%") for line in latex.splitlines() if "\\input" in line)
    assert "HYPERLINK" in latex
    assert (tmp_path / "tables.md").read_text().splitlines()[1] == ""
    record = round_of("x1 + C", [0, 0, 1]) | {"slots": HOSTILE}
    assert "<script" not in path_html([record])


def test_names_with_formulas_of_matplotlib_are_drawn_as_they_are(tmp_path):
    rows = [row_of("_gp", 0.1, p, s, group="$\\nonsense{$") for p in range(2) for s in range(2)]
    assert any(path.suffix == ".png" for path in write_report(folder_of(tmp_path, rows)))
