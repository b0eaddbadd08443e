"""Sheets as people and spreadsheets make them: a clear message with row and column, and nothing is lost."""

import pytest
from bench import enzyme, new

from deap_vsr.campaign.sheets import SheetError

HEAD = ("id", "E", "S", "v")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of a first sheet, filled in: id, E, S, v."""
    sheet = new(tmp_path_factory.mktemp("rows") / "lab").ask()
    return [[row["id"], repr(row["E"]), repr(row["S"]), repr(enzyme(row["E"], row["S"]))] for row in sheet]


@pytest.fixture
def campaign(tmp_path):
    campaign = new(tmp_path / "lab")
    campaign.ask()
    return campaign


def text(rows, head=HEAD, sep=",", end="\n"):
    return end.join(sep.join(row) for row in (head, *rows)) + end


def cell(row, column, value):
    """Return a kind of sheet in which one cell, of the row with this number in the file, says something else."""

    def kind(rows):
        rows = [list(row) for row in rows]
        rows[row - 2][column] = value
        return text(rows).encode()

    return kind


def head(*names):
    return lambda rows: text(rows, names).encode()


def quoted(row, column, value):
    return cell(row, column, f'"{value}"')


#: What is refused: how it is made, and what the message says: the row, the column, what was found.
REFUSED = {
    "text in a number": (cell(4, 3, "about 2"), "row 4, column v: found 'about 2'"),
    "a unit behind a number": (cell(3, 3, "1.5 mM/s"), "row 3, column v: .*without a unit"),
    "a percentage": (cell(3, 3, "15%"), "row 3, column v: .*without %"),
    "a bound": (cell(3, 3, "<0.01"), "row 3, column v: .*a bound"),
    "plus or minus": (cell(3, 3, "1.2±0.1"), "row 3, column v: .*sigma"),
    "an error of a spreadsheet": (cell(5, 3, "#DIV/0!"), "row 5, column v: .*an error of the spreadsheet"),
    "a missing value of a spreadsheet": (cell(5, 3, "#N/A"), "row 5, column v: .*an error of the spreadsheet"),
    "a formula": (cell(5, 3, "=B5*2"), "row 5, column v: .*a formula"),
    "a date": (cell(2, 3, "2026-05-01"), "row 2, column v: .*a date"),
    "a date of a spreadsheet": (cell(2, 3, "01.May"), "row 2, column v: .*a date"),
    "a month and a year": (cell(2, 3, "Mai 25"), "row 2, column v: .*a date"),
    "a time": (cell(2, 3, "12:30"), "row 2, column v: .*a date or time"),
    "not a number": (cell(6, 3, "nan"), "row 6, column v: .*leave the cell empty"),
    "infinity": (cell(6, 3, "inf"), "row 6, column v: .*leave the cell empty"),
    "n/a": (cell(6, 3, "n/a"), "row 6, column v: .*leave the cell empty"),
    "a dash": (cell(6, 3, "-"), "row 6, column v: .*leave the cell empty"),
    "a number too large": (cell(6, 3, "1e999"), "row 6, column v: .*too large"),
    "underscores": (cell(6, 3, "1_000"), "row 6, column v: found '1_000'"),
    "digits of another script": (cell(6, 3, "\uff11\uff12"), "row 6, column v: found '\uff11\uff12'"),
    "a hexadecimal number": (cell(6, 3, "0x1F"), "row 6, column v"),
    "a fraction": (cell(6, 3, "1/3"), "row 6, column v: .*fraction"),
    "thousands": (cell(6, 3, "1'234'567.8"), "row 6, column v: .*thousands"),
    "a comma among points": (quoted(7, 3, "1,5"), "row 7, column v: .*two things"),
    "a comma that splits a cell": (cell(7, 3, "1,5"), "row 7, column 5: .*decimal comma"),
    "two numbers": (cell(7, 3, "1.5 1.6"), "row 7, column v"),
    "a set value that is text": (cell(8, 1, "low"), "row 8, column E: found 'low'"),
    "a set value far outside": (cell(8, 2, "300"), "row 8, column S: found 300, far outside 0.1 to 5"),
    "an id that was never asked": (cell(9, 0, "77"), "row 9, column id: found '77'"),
    "an id that is text": (cell(9, 0, "first"), "row 9, column id: found 'first'"),
    "an id that is a date": (cell(9, 0, "01.02.2026"), "row 9, column id"),
    "a negative sigma": (
        lambda rows: text([[*row, "-0.1" if i == 3 else ""] for i, row in enumerate(rows)], (*HEAD, "sigma")).encode(),
        "row 5, column sigma: found -0.1",
    ),
    "half a repeat": (
        lambda rows: text([[*row, "1.5"] for row in rows], (*HEAD, "n")).encode(),
        "row 2, column n: .*a whole number",
    ),
    "valid that says maybe": (
        lambda rows: text([[*row, "maybe"] for row in rows], (*HEAD, "valid")).encode(),
        "row 2, column valid: found 'maybe'",
    ),
    "no column of answers": (lambda rows: text([row[:3] for row in rows], HEAD[:3]).encode(), "row 1, column v: is mi"),
    "no id and not all variables": (
        lambda rows: text([[row[1], row[3]] for row in rows], ("E", "v")).encode(),
        "row 1, column S: is missing",
    ),
    "no id and an empty variable": (
        lambda rows: text([["", "0.5", "", "1.0"]]).encode(),
        "row 2, column S: found nothing",
    ),
    "a column twice": (head("id", "E", "E", "v"), "row 1, column 3: 'E' is there twice"),
    "the answer twice": (head("id", "E", "y", "v"), "row 1, column v: v is there twice"),
    "a column without a name": (head("id", "E", "", "v"), "row 2, column 3: .*names no column"),
    "a row that is too long": (lambda rows: text([[*rows[0], "9"], *rows[1:]]).encode(), "row 2, column 5: found '9'"),
    "quotes that do not match": (cell(4, 3, '"1.5'), "row .*: quotes that do not match"),
    "an empty file": (lambda rows: b"", "row 1: is empty"),
    "blank lines only": (lambda rows: b"\n\n ,, \n", "row 1: is empty"),
    "a workbook": (lambda rows: b"PK\x03\x04" + bytes(60), "row 1: is a workbook .*save it as CSV"),
    "a PDF": (lambda rows: b"%PDF-1.7 ...", "row 1: is a PDF"),
    "bytes of no text": (lambda rows: text(rows).encode().replace(b"\n3", b"\n\x003"), "row 4: has bytes of no text"),
    "half of UTF-16": (lambda rows: b"\xff\xfe" + text(rows).encode("utf-16-le")[:-1], "row 1: is no UTF-16"),
    "a very long cell": (cell(4, 3, "9" * 3000), "row 4, column v: more than"),
    "several problems": (
        lambda rows: text([[*rows[0][:3], "x"], [*rows[1][:3], "y"], *rows[2:]]).encode(),
        "row 2, column v: .*\n.*row 3, column v: ",
    ),
    "a header only in another language": (head("Nr", "Enzym", "Substrat", "Rate"), "row 1, column v: is missing"),
}

#: What is taken as it was meant, and what is said of it.
TAKEN = {
    "a byte order mark": (lambda rows: b"\xef\xbb\xbf" + text(rows).encode(), ""),
    "UTF-16": (lambda rows: text(rows).encode("utf-16"), ""),
    "lines of Windows": (lambda rows: text(rows, end="\r\n").encode(), ""),
    "lines of an old Macintosh": (lambda rows: text(rows, end="\r").encode(), ""),
    "semicolons": (lambda rows: text(rows, sep=";").encode(), ""),
    "tabs": (lambda rows: text(rows, sep="\t").encode(), ""),
    "decimal commas": (
        lambda rows: text([[cell.replace(".", ",") for cell in row] for row in rows], sep=";").encode(),
        "commas were read as decimal points",
    ),
    "quoted decimal commas": (
        lambda rows: text([[f'"{cell.replace(".", ",")}"' for cell in row] for row in rows]).encode(),
        "commas were read as decimal points",
    ),
    "a line that names the separator": (lambda rows: b"sep=;\n" + text(rows, sep=";").encode(), ""),
    "blanks around cells": (lambda rows: text([[f"  {c}\u00a0" for c in row] for row in rows]).encode(), ""),
    "apostrophes of a spreadsheet": (lambda rows: text([[f"'{c}" for c in row] for row in rows]).encode(), ""),
    "numbers as text": (lambda rows: text([[row[0], row[1], row[2], f'"=""{row[3]}"""'] for row in rows]).encode(), ""),
    "ids as decimal numbers": (lambda rows: text([[f"{row[0]}.0", *row[1:]] for row in rows]).encode(), ""),
    "empty columns at the end": (lambda rows: text([[*row, "", ""] for row in rows], (*HEAD, "", "")).encode(), ""),
    "blank rows": (lambda rows: text(rows).replace("\n3,", "\n,,,\n\n3,").encode(), ""),
    "comments": (lambda rows: ("# by Ada\n" + text(rows)).encode(), "row 1: begins with # and was left out"),
    "names in other cases, with units": (head("ID", "e [mg]", "s (mM)", "V"), ""),
    "the answer called y": (head("id", "E", "S", "y"), ""),
    "Windows letters": (
        lambda rows: text([[*row, "größer"] for row in rows], (*HEAD, "comment")).encode("cp1252"),
        "was read as Windows text",
    ),
    "a minus that is none": (
        lambda rows: text([[*row, "1e\u22122"] for row in rows], (*HEAD, "sigma")).encode(),
        "",
    ),
    "columns in another order": (
        lambda rows: text([row[::-1] for row in rows], HEAD[::-1]).encode(),
        "",
    ),
    "no ids, found by the values": (
        lambda rows: text([row[1:] for row in rows], HEAD[1:]).encode(),
        "a row without id, found by its values",
    ),
    "an id twice": (lambda rows: text([*rows, [*rows[0][:3], "1.5"]]).encode(), "is there twice; taken as repeats"),
    "a row twice": (lambda rows: text([*rows, rows[0]]).encode(), "was told before, and is taken once"),
}


def test_there_are_fifty_kinds():
    assert len(REFUSED) >= 50


@pytest.mark.parametrize("kind", REFUSED)
def test_a_bad_sheet_is_refused_with_its_row_and_column_and_nothing_is_lost(kind, rows, campaign, tmp_path):
    make, message = REFUSED[kind]
    campaign.tell([{"id": rows[0][0], "v": float(rows[0][3])}])
    kept = (campaign.folder / "measured.csv").read_bytes()
    path = tmp_path / "bad.csv"
    path.write_bytes(make(rows))
    before = path.read_bytes()
    with pytest.raises(SheetError, match=f"(?s){message}"):
        campaign.tell(path)
    assert path.read_bytes() == before
    assert (campaign.folder / "measured.csv").read_bytes() == kept
    assert len(campaign.ask()) == len(rows) - 1, "and it goes on"


@pytest.mark.parametrize("kind", TAKEN)
def test_what_a_spreadsheet_does_to_a_sheet_is_understood(kind, rows, campaign, tmp_path):
    make, note = TAKEN[kind]
    path = tmp_path / "odd.csv"
    path.write_bytes(make(rows))
    told = campaign.tell(path)
    assert told.taken >= len(rows)
    assert note in "\n".join(told.notes)
    state = campaign.state
    assert not state.open
    for answer, row in list(zip(state.answers, rows, strict=True))[1:]:
        assert answer.y == float(row[3])


def test_empty_rows_stay_open_and_are_named(campaign, rows, tmp_path):
    path = tmp_path / "part.csv"
    path.write_text(text([row if i % 2 else [*row[:3], ""] for i, row in enumerate(rows)]))
    told = campaign.tell(path)
    assert told.taken == 6
    assert "still open: 1, 3, 5, 7, 9, 11" in told.notes[-1]


def test_a_file_that_was_edited_badly_is_named_with_its_row_and_column(campaign, rows):
    campaign.tell([{"id": row[0], "v": float(row[3])} for row in rows])
    path = campaign.folder / "measured.csv"
    good = path.read_text()
    path.write_text(good.replace(f"\n2,{rows[1][1]}", "\n2,oops"))
    with pytest.raises(SheetError, match=r"measured.csv: row 3, column E: found 'oops'"):
        campaign.status()
    path.write_text(good)
    path = campaign.folder / "asked.csv"
    path.write_text(path.read_text().replace("\n3,1", "\n3,one"))
    with pytest.raises(SheetError, match=r"asked.csv: row 4: found 'one'"):
        campaign.ask()


def test_comments_and_other_columns_are_kept_and_obeyed_by_no_spreadsheet(campaign, rows, tmp_path):
    path = tmp_path / "notes.csv"
    odd = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2", "<script>", '"a, b"']
    cells = [*odd, *["fine"] * 6]
    filled = [[*row, cells[i], f"lamp {i}"] for i, row in enumerate(rows)]
    path.write_text(text(filled, (*HEAD, "comment", "=lamp")))
    campaign.tell(path)
    for line in (campaign.folder / "measured.csv").read_text().splitlines():
        assert not any(part.startswith(("=", "@", "+1+1")) for part in line.split(","))
    measured = campaign.state.measured
    assert [row.comment for row in measured[:4]] == odd[:4]
    assert measured[3].extra[0][1] == "lamp 3"
