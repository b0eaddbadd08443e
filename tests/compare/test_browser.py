"""The report in a real browser: no errors, tables sort, pictures load, readable on a phone."""

import json
import shutil

import pytest
from rows import round_of, row_of
from test_report import folder_of

from deap_vsr.compare.report import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no chromium with its driver on this machine (make browser)"
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with much in it: long formulas, many sets, failures, text that a browser might obey."""
    long = " + ".join(f"{n}.123456789*x1*sin(x2)" for n in range(40))
    rows = []
    for n, method in enumerate(("gp", "vsr-gp", "vsr")):
        for problem in range(12):
            error = 10.0 ** -((5 * problem + n) % 11)
            rows.append(row_of(method, error, problem, expression=long))
            rows[-1]["result"] = {"rounds": [round_of(f"C*x1 + {long}", [1] * 283, accepted=False)]}
            group = "(10,10,20)" if problem % 2 else "(9,9,9)"
            rows.append(row_of(method, error / 7, set="trigonometric/sincosinv", group=group) | {
                "problem": f"trigonometric/sincosinv/q/prog_{problem}", "n_vars": 9 + problem % 2})  # fmt: skip
    rows.append(row_of("gp", None, 99, error="<img src=x onerror=alert(1)><script>alert(1)</script>"))
    return write_report(folder_of(tmp_path_factory.mktemp("page"), rows))[0]


def show(driver, page, width=1200, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())


def column(driver, section, name):
    """Return the values of a column of the table of a section, as they are sorted by."""
    return driver.execute_script(
        """
        const table = document.querySelector(`#${arguments[0]} table`);
        const heads = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
        const at = heads.indexOf(arguments[1]);
        return Array.from(table.tBodies[0].rows, (row) => row.cells[at].dataset.value);
        """,
        section, name,
    )  # fmt: skip


def click_head(driver, section, name):
    heads = driver.find_elements("css selector", f"#{section} th button")
    next(head for head in heads if head.text == name or head.get_attribute("textContent") == name).click()


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_opens_without_errors_and_its_pictures_load(driver, page, width):
    show(driver, page, width)
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    sizes = driver.execute_script("return Array.from(document.images, (image) => image.naturalWidth)")
    assert len(sizes) == 5
    assert min(sizes) > 300


def test_numbers_are_sorted_by_size_both_ways_with_empty_cells_last(driver, page):
    show(driver, page)
    before = column(driver, "runs", "seconds")
    click_head(driver, "runs", "NMSE")
    up = [float(value) for value in column(driver, "runs", "NMSE")]
    assert up == sorted(up)
    assert up[-1] == float("inf"), "the failed run"
    click_head(driver, "runs", "NMSE")
    down = [float(value) for value in column(driver, "runs", "NMSE")]
    assert down == sorted(up, reverse=True)
    click_head(driver, "runs", "seconds")
    assert column(driver, "runs", "seconds")[-1] == ""
    assert sorted(column(driver, "runs", "seconds")) == sorted(before)


def test_names_are_sorted_with_their_numbers_in_order_and_the_head_says_so(driver, page):
    show(driver, page)
    click_head(driver, "overview", "group")
    groups = column(driver, "overview", "group")
    assert groups == ["(2,1,1)"] * 3 + ["(9,9,9)"] * 3 + ["(10,10,20)"] * 3
    sorted_heads = driver.find_elements("css selector", "#overview th[aria-sort='ascending']")
    assert [head.text.split()[0] for head in sorted_heads] == ["group"]


def test_nothing_is_wider_than_a_phone_but_what_scrolls_by_itself(driver, page):
    show(driver, page, 390, 844)
    driver.execute_script("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    widths = driver.execute_script(
        "return [document.documentElement.scrollWidth, document.body.scrollWidth, window.innerWidth]"
    )
    assert widths[0] <= 390, json.dumps(widths)
    assert widths[1] <= 390
    size = driver.execute_script("return parseFloat(getComputedStyle(document.querySelector('td')).fontSize)")
    assert size >= 12


def test_frozen_nodes_slots_and_open_nodes_have_colours_of_their_own(driver, page):
    show(driver, page)
    driver.execute_script("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    colours = [
        driver.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor", f".path .{kind}"
        )
        for kind in ("frozen", "slot", "open")
    ]
    assert len(set(colours)) == 3


def test_text_from_a_failed_run_is_shown_and_not_obeyed(driver, page):
    show(driver, page)
    assert driver.execute_script("return document.querySelectorAll('script').length") == 1
    assert "<img src=x onerror=alert(1)>" in driver.execute_script("return document.body.textContent")


def test_a_run_in_the_table_leads_to_its_path(driver, page):
    show(driver, page)
    link = driver.find_element("css selector", "#runs tbody a")
    driver.execute_script("arguments[0].click()", link)
    target = link.get_attribute("href").partition("#")[2]
    assert driver.execute_script("return document.getElementById(arguments[0]).open", target)
    summary = driver.find_element("css selector", f"#{target} summary").text
    assert summary.startswith(link.text)
