"""Campaigns: ask is idempotent, tell takes what people bring, state is replay, and laws are found."""

import json
import shutil

import numpy as np
import pytest
from bench import ENZYME, enzyme, measure, new, run

from deap_vsr import Campaign, MaskedTree
from deap_vsr.campaign.sheets import SheetError
from deap_vsr.errors import VsrError


def said(result, E, S):
    return float(result.tree.evaluate(np.array([[E, S]]))[0])


def test_a_law_is_found_with_an_exact_instrument_and_called_by_its_names(tmp_path):
    campaign = new(tmp_path / "lab")
    result = run(campaign)
    assert result.status == "found"
    assert said(result, 1.5, 3.0) == pytest.approx(enzyme(1.5, 3.0), rel=1e-12)
    assert {"E", "S"} <= set(result.formula.replace("/", " ").replace("*", " ").replace(")", " ").split())
    assert len(campaign.state.asked) <= 40
    assert campaign.ask().reason.startswith("the search has ended: found")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """A campaign in noise that has come to its end."""
    campaign = new(tmp_path_factory.mktemp("noisy") / "lab", noise="1 %", points=200)
    run(campaign, noise=0.01, rng=np.random.default_rng(1))
    return campaign


def test_a_law_is_found_in_noise_that_is_stated(noisy):
    campaign, result = noisy, noisy.result
    assert result.status in ("found", "fits")
    assert said(result, 1.5, 3.0) == pytest.approx(enzyme(1.5, 3.0), rel=0.01)
    assert len(campaign.state.asked) <= 200


def test_ask_gives_the_same_sheet_until_it_is_told(tmp_path):
    campaign = new(tmp_path / "lab")
    first = campaign.ask()
    assert list(campaign.ask()) == list(first) == list(Campaign(tmp_path / "lab").ask())
    campaign.tell(measure(first)[:5])
    assert [row["id"] for row in campaign.ask()] == [row["id"] for row in list(first)[5:]]


def test_sheets_are_full_of_points_on_the_grid_in_few_digits(tmp_path):
    knobs = {"E": (0.1, 2), "S": {"low": 0.1, "high": 5, "step": 0.05}}
    sheet = new(tmp_path / "lab", knobs).ask()
    assert len(sheet) == 12
    for row in sheet:
        assert float(f"{row['E']:.3g}") == row["E"]
        assert float(f"{round(row['S'] / 0.05) * 0.05:.12g}") == row["S"]
        assert row["why"]


def test_a_dear_knob_changes_seldom(tmp_path):
    knobs = {"E": {"low": 0.1, "high": 2, "cost": 5}, "S": (0.1, 5)}
    column = [row["E"] for row in new(tmp_path / "lab", knobs).ask()]
    assert column == sorted(column)


def test_another_process_goes_on_where_this_one_was(tmp_path):
    one, other = new(tmp_path / "one"), new(tmp_path / "other")
    run(one)
    for _ in range(20):
        other = Campaign(tmp_path / "other")
        sheet = other.ask()
        if not len(sheet):
            break
        other.tell(measure(sheet))
    assert other.state.asked == one.state.asked
    assert other.result.formula == one.result.formula


def test_any_part_of_a_sheet_in_any_order_leads_to_the_same_end(tmp_path):
    plain, slow = new(tmp_path / "plain"), new(tmp_path / "slow")
    result = run(plain)
    for _ in range(200):
        sheet = slow.ask()
        if not len(sheet):
            break
        slow.tell(measure(sheet)[::-1][:3])
    assert slow.result.formula == result.formula
    assert [row.x for row in slow.state.asked] == [row.x for row in plain.state.asked]


def test_failures_are_told_and_another_point_takes_their_place(tmp_path):
    campaign = new(tmp_path / "lab")
    rows = measure(campaign.ask())
    rows[3] = {"id": rows[3]["id"], "v": "", "valid": 0, "comment": "broken cuvette"}
    campaign.tell(rows)
    assert campaign.status().failed == 1
    assert run(campaign).status == "found"


def test_rows_that_were_not_asked_for_are_data(tmp_path):
    campaign = new(tmp_path / "lab")
    told = campaign.tell([{"E": 1.0, "S": s, "v": enzyme(1.0, s)} for s in (0.5, 1.0, 2.0, 4.0)])
    assert "4 rows that were not asked for" in " ".join(told.notes)
    result = run(campaign)
    assert result.status == "found"
    assert campaign.status().measured == len(campaign.state.asked) + 4


def test_data_from_before_that_contradict_a_formula_keep_it_from_being_found(tmp_path):
    campaign = new(tmp_path / "lab")
    campaign.tell([{"E": 1.0, "S": s, "v": 2.0 * enzyme(1.0, s)} for s in (0.5, 1.0, 2.0, 4.0)])
    assert run(campaign).status != "found"


def test_repeats_of_an_id_are_replicates(tmp_path):
    campaign = new(tmp_path / "lab", noise=0.1)
    first = next(iter(campaign.ask()))
    campaign.tell([{"id": first["id"], "v": 1.0}, {"id": first["id"], "v": 2.0}])
    (answer,) = campaign.state.answers
    assert answer.y == 1.5
    assert answer.sigma == pytest.approx(0.1 / np.sqrt(2))


def test_telling_the_same_file_twice_counts_once(tmp_path):
    campaign = new(tmp_path / "lab")
    rows = measure(campaign.ask())
    assert campaign.tell(rows).taken == len(rows)
    again = campaign.tell(rows)
    assert again.taken == 0
    assert "told before" in again.notes[0]


def test_a_typing_error_can_be_replaced_and_is_kept(tmp_path):
    campaign = new(tmp_path / "lab")
    rows = measure(campaign.ask())
    right = rows[0]["v"]
    campaign.tell([rows[0] | {"v": 10 * right}])
    campaign.tell([rows[0]], replace_told=True)
    assert campaign.state.answers[0].y == right
    assert len(campaign.state.measured) == 2
    assert "withdrawn" in campaign.state.measured[0].comment


def test_a_typing_error_is_pointed_out_by_its_row_where_the_formula_is_known(noisy, tmp_path):
    campaign = Campaign(shutil.copytree(noisy.folder, tmp_path / "lab"))
    campaign.tell([{"E": 1.0, "S": 2.0, "v": 10 * enzyme(1.0, 2.0), "comment": "x"}])
    assert any("the decimal point?" in note for note in campaign.status().notes)


@pytest.mark.parametrize(("factor", "word"), [(10.0, "decimal point"), (0.01, "decimal point"), (-1.0, "sign")])
def test_a_slip_is_pointed_out_before_there_is_a_formula(tmp_path, factor, word):
    campaign = new(tmp_path / "lab")
    rows = measure(campaign.ask())
    campaign.tell([row | {"v": row["v"] * factor} if row["id"] == "5" else row for row in rows])
    assert any(note.startswith("id 5: ") and word in note for note in campaign.status().notes)
    campaign.tell([rows[4]], replace_told=True)
    assert not any("?" in note for note in campaign.status().notes)


def test_a_set_point_that_was_missed_is_data_and_its_row_stays_open(tmp_path):
    campaign = new(tmp_path / "lab", noise="1 %")
    first = next(iter(campaign.ask()))
    far = first["S"] + (1.0 if first["S"] < 3 else -1.0)
    told = campaign.tell([{"id": first["id"], "S": far, "v": enzyme(first["E"], far)}])
    assert f"S was set to {far:g}" in told.notes[0]
    assert first["id"] in [row["id"] for row in campaign.ask()]
    assert len(campaign.state.before) == 1


def test_setting_errors_of_one_percent_do_not_spoil_a_law(tmp_path):
    campaign = new(tmp_path / "lab", noise="0.5 %", points=200)
    rng = np.random.default_rng(3)
    result = run(campaign, noise=0.005, rng=rng, setting=0.01)
    assert result.tree is not None
    for E, S in ((0.5, 0.4), (1.5, 3.0), (1.9, 1.0)):
        assert said(result, E, S) == pytest.approx(enzyme(E, S), rel=0.02)


def test_drift_is_noticed_by_repeats(tmp_path):
    campaign = new(tmp_path / "lab", noise="1 %", points=60)
    slope = iter(np.linspace(1.0, 1.5, 80))
    for _ in range(20):
        sheet = campaign.ask()
        if not len(sheet):
            break
        campaign.tell([row | {"v": row["v"] * next(slope)} for row in measure(sheet)])
    assert any("drift" in note for note in campaign.status().notes)


def test_the_limit_on_points_is_kept_and_said(tmp_path):
    campaign = new(tmp_path / "lab", points=15)
    run(campaign)
    assert len(campaign.state.asked) <= 15
    assert campaign.result.status != "found"


def test_a_folder_of_another_version_says_so_and_goes_on(tmp_path):
    campaign = new(tmp_path / "lab")
    campaign.tell(measure(campaign.ask()))
    path = tmp_path / "lab" / "lab.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"version": "0.1.9"}))
    again = Campaign(tmp_path / "lab")
    assert any("0.1.9" in note for note in again.status().notes)
    assert run(again).status == "found"


def test_rows_of_another_path_are_data_in_the_end(tmp_path):
    campaign = new(tmp_path / "lab")
    campaign.tell(measure(campaign.ask()))
    path = tmp_path / "lab" / "lab.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"seed": 5}))
    again = Campaign(tmp_path / "lab")
    assert run(again).status == "found"
    assert len(again.look().used) < len(again.state.asked)


def test_the_status_says_what_comes_next_and_survives_json(tmp_path):
    campaign = new(tmp_path / "lab")
    assert campaign.status().reason == "nothing was measured yet"
    campaign.tell(measure(campaign.ask()))
    status = campaign.status()
    assert status.decides
    assert 0 < status.needed <= 80
    assert json.loads(json.dumps(status.to_json()))["measured"] == 12


def test_frames_go_out_and_come_back(tmp_path):
    pytest.importorskip("pandas")
    campaign = new(tmp_path / "lab")
    frame = campaign.ask().frame()
    frame["v"] = [enzyme(E, S) for E, S in zip(frame["E"], frame["S"], strict=True)]
    frame["operator"] = "Ada"
    assert campaign.tell(frame).taken == 12
    assert dict(campaign.state.measured[0].extra)["operator"] == "Ada"
    assert campaign.tell({"1": 3.0}).taken == 1  # a mapping of ids to answers


@pytest.mark.parametrize(
    ("variables", "options", "message"),
    [
        ({"E": (2, 1)}, {}, "low"),
        ({"E": 3}, {}, "expected a pair"),
        ({"id": (0, 1)}, {}, "is a column of the tables"),
        ({"a,b": (0, 1)}, {}, "without commas"),
        ({"E": (0, 1)}, {"output": "E"}, "a name of its own"),
        ({"E": (0, 1)}, {"noise": "much"}, "expected a finite number"),
        ({"E": (0, 1)}, {"noise": -1}, "at least 0"),
        ({"E": (0, 1)}, {"operators": "magic"}, "unknown operator"),
        ({"E": (0, 1)}, {"sheet": 0}, "a whole number from 1"),
        ({"E": (0, 1)}, {"colour": 1}, "unknown option"),
        ({"E": {"low": 0, "high": 1, "hight": 2}}, {}, "hight"),
        ({"E": {"low": 0, "high": 1, "step": 3}}, {}, "step"),
        ({}, {}, "a list of 1 to"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused_by_its_field(tmp_path, variables, options, message):
    with pytest.raises(VsrError, match=message):
        Campaign(tmp_path / "lab", variables, **options)
    assert not (tmp_path / "lab" / "lab.json").exists()


def test_a_folder_is_opened_or_made_but_not_made_over(tmp_path):
    with pytest.raises(VsrError, match="no laboratory there"):
        Campaign(tmp_path / "nothing")
    new(tmp_path / "lab")
    new(tmp_path / "lab")
    with pytest.raises(VsrError, match="says otherwise"):
        new(tmp_path / "lab", points=7)
    for text, message in (("{", "no JSON"), ("[]", "an object"), ('{"schema": 2}', "schema")):
        (tmp_path / "lab" / "lab.json").write_text(text)
        with pytest.raises(VsrError, match=message):
            Campaign(tmp_path / "lab")


def test_capitals_tell_variables_apart_and_names_of_columns_may_be_variables(tmp_path):
    campaign = Campaign(tmp_path / "lab", {"T": (1, 2), "t": (1, 2), "n": (1, 2)}, noise="exact")
    sheet = campaign.ask()
    campaign.tell([row | {"y": row["T"] * row["t"] + row["n"]} for row in sheet])
    assert (tmp_path / "lab" / "measured.csv").read_text().startswith("id,T,t,n,y,sigma,repeats,valid,comment\n")
    assert len(Campaign(tmp_path / "lab").state.answers) == len(sheet)


def test_a_campaign_is_about_what_its_tree_says(tmp_path):
    result = run(new(tmp_path / "lab", ENZYME))
    assert isinstance(result.tree, MaskedTree)
    with pytest.raises(SheetError, match="row 1"):
        Campaign(tmp_path / "lab").tell([{"id": "1"}])
