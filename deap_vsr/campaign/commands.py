"""The commands ``vsr lab``: a laboratory in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from deap_vsr.errors import VsrError, short
from deap_vsr.markup import escape

if TYPE_CHECKING:
    from deap_vsr.campaign.campaign import Campaign, Sheet

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

lab_app = typer.Typer(
    help="A laboratory in a folder: it asks for sheets of measurements, people measure, and the formula grows.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the laboratory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]


@lab_app.command("init")
def init_command(
    folder: Folder,
    knob: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[unit]=LOW:HIGH[:STEP]",
            help="A variable: its range, and the step of its knob (default: 3 digits). Behind it :log for values "
            "spread over decades, :cost=3 if changing it is dear. Once for each variable.",
        ),
    ],
    output: Annotated[str, typer.Option(metavar="NAME[unit]", help="What is measured.")] = "y",
    noise: Annotated[
        str,
        typer.Option(
            help="Standard deviation of a reading, a share of it such as 1%, or exact; empty: it is found out by "
            "repeats, which cost measurements."
        ),
    ] = "",
    operators: Annotated[
        str, typer.Option(help="What the law may be made of, e.g. add,mul,div,exp,const; empty: the usual ones.")
    ] = "",
    sheet: Annotated[int, typer.Option(min=1, help="Measurements of a sheet.")] = 12,
    points: Annotated[int, typer.Option(min=1, help="Measurements in all, at the most.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole campaign.")] = 0,
) -> None:
    """Begin a laboratory.

    vsr lab init enzyme --knob "E[mg]=0.1:2" --knob "S[mM]=0.1:5" --output "v[mM/s]" --noise 1%
    """
    from deap_vsr.campaign.campaign import Campaign
    from deap_vsr.campaign.setup import FILE
    from deap_vsr.campaign.setup import knob as read_knob

    name, _, unit = output.partition("[")
    options: dict[str, Any] = {"output": name.strip(), "unit": unit.rstrip("] "), "noise": noise or None}
    if operators:
        options["operators"] = operators
    if (folder / FILE).exists():
        raise VsrError(f"{folder / FILE}: is there already; `vsr lab status {folder}` shows how it stands")
    Campaign(folder, [read_knob(text) for text in knob], **options, sheet=sheet, points=points, seed=seed)
    console.print(f"{folder / FILE} written; next: vsr lab ask {folder}", markup=False, highlight=False, soft_wrap=True)


@lab_app.command("ask")
def ask_command(
    folder: Folder,
    n: Annotated[int | None, typer.Option("-n", min=1, help="Rows at the most; default: as lab.json says.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the next sheet, and write it as a CSV file to fill in; the same one until its rows were told."""
    campaign = _opened(folder)
    with console.status("looking at what was measured"):
        sheet = campaign.ask(n)
    if as_json:
        document = {"sheet": sheet.number, "rows": list(sheet), "reason": sheet.reason}
        print(json.dumps(document | {"file": str(sheet.path) if sheet.path else None}, ensure_ascii=False))
        return
    if not len(sheet):
        console.print(sheet.reason, markup=False, highlight=False, soft_wrap=True)
        return
    _print_sheet(sheet, campaign)
    console.print(f"fill in {sheet.path}, then: vsr lab tell {folder} {sheet.path}", markup=False, soft_wrap=True)


@lab_app.command("tell")
def tell_command(
    folder: Folder,
    sheet: Annotated[
        list[str], typer.Argument(metavar="FILE | ID=VALUE...", help="A filled-in CSV file, or answers by their ids.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="What was told of these rows before was wrong; it is kept, as failed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take what was measured: any part of a sheet, rows that were not asked for, repeats, failures.

    A whole sheet: vsr lab tell enzyme enzyme/sheet-1.csv

    Single answers, one of which failed: vsr lab tell enzyme 1=3.42 2=3.51 3=failed
    """
    campaign = _opened(folder)
    told = campaign.tell(_given(sheet), replace)
    if not as_json:
        console.print(f"{told.taken} rows taken", highlight=False)
        for note in told.notes:
            console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    with console.status("looking at what was measured"):
        status = campaign.status()
    if as_json:
        print(json.dumps({"taken": told.taken, "notes": told.notes, "status": status.to_json()}, ensure_ascii=False))
    else:
        _print_status(campaign)


@lab_app.command("status")
def status_command(folder: Folder, as_json: AsJson = False) -> None:
    """Show the formula so far, its rivals, what the next sheet will decide, and what to look at."""
    campaign = _opened(folder)
    with console.status("looking at what was measured"):
        status = campaign.status()
    if as_json:
        print(json.dumps(status.to_json(), ensure_ascii=False))
    else:
        _print_status(campaign)


@lab_app.command("report")
def report_command(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(help="File to write; default: report.md in the folder.")] = None,
) -> None:
    """Write all that there is as a page of Markdown."""
    from deap_vsr.campaign.folder import write
    from deap_vsr.campaign.report import markdown
    from deap_vsr.campaign.status import status_of

    campaign = _opened(folder)
    with console.status("looking at what was measured"):
        state = campaign.state
        seen = campaign.look(state)
    path = out or folder / "report.md"
    write(path, markdown(state, status_of(state, seen), seen.result))
    console.print(f"{path} written", markup=False, highlight=False, soft_wrap=True)


@lab_app.command("page")
def page_command(
    folder: Folder,
    serve: Annotated[bool, typer.Option("--serve", help="Keep it up to date on this machine, with a form.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of --serve; 0: any that is free.")] = 8765,
    out: Annotated[Path | None, typer.Option(help="File to write; default: page.html in the folder.")] = None,
) -> None:
    """Write a page for the laboratory: the sheet, the formula as it grows, measured against predicted.

    With --serve it takes results too, on this machine only: http://127.0.0.1:8765/
    """
    from deap_vsr.campaign.folder import write
    from deap_vsr.campaign.page import page
    from deap_vsr.campaign.serve import server

    campaign = _opened(folder)
    if serve:
        with server(campaign, port) as running:
            address = f"http://127.0.0.1:{running.server_port}/"
            console.print(f"{address} is up to date as long as this runs; Ctrl-C ends it", highlight=False)
            try:
                running.serve_forever()
            except KeyboardInterrupt:
                return
    path = out or folder / "page.html"
    with console.status("looking at what was measured"):
        text = page(campaign)
    write(path, text)
    console.print(f"{path} written", markup=False, highlight=False, soft_wrap=True)


def _opened(folder: Path) -> Campaign:
    from deap_vsr.campaign.campaign import Campaign

    return Campaign(folder)


def _given(sheet: list[str]) -> Any:
    """Return what is told on a command line: a file, or rows of ids and answers."""
    if len(sheet) == 1 and ("=" not in sheet[0] or Path(sheet[0]).exists()):
        return Path(sheet[0])
    rows = []
    for text in sheet:
        name, equals, value = text.partition("=")
        if not equals:
            raise VsrError(f"{short(text)}: expected a file, or answers such as 3=1.25 and 4=failed")
        failed = value.strip().lower() in ("failed", "fail")
        rows.append({"id": name.strip(), "y": "" if failed else value, "valid": 0 if failed else 1})
    return rows


def _print_sheet(sheet: Sheet, campaign: Campaign) -> None:
    setup = campaign.setup
    table = Table(title=f"sheet {sheet.number}", title_justify="left")
    for name in ("id", *(f"{v.name} [{v.unit}]" if v.unit else v.name for v in setup.variables)):
        table.add_column(escape(name), justify="right")
    table.add_column(escape(f"{setup.output} [{setup.unit}]" if setup.unit else setup.output))
    table.add_column("why")
    from deap_vsr.campaign.sheets import shown

    for row in sheet.rows:
        table.add_row(row.id, *map(shown, row.x), "", escape(row.why))
    console.print(table)


def _print_status(campaign: Campaign) -> None:
    from deap_vsr.campaign.report import lines_of

    for line in lines_of(campaign.status(), campaign.setup.output):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
