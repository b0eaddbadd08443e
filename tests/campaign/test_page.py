"""The page of a laboratory in a real browser: it shows what there is, takes results, and obeys no text."""

import shutil
import urllib.error
import urllib.request
from threading import Thread
from urllib.parse import urlencode

import numpy as np
import pytest
from bench import enzyme, measure, new, run

from deap_vsr.campaign.page import page
from deap_vsr.campaign.serve import server

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
needs_browser = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no chromium with its driver on this machine (make browser)"
)
ODD = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    browser.implicitly_wait(30)  # a sheet that is told is looked at before the answer comes
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A campaign with a formula, a row that is open, and texts that a browser might obey."""
    knobs = {"E": {"low": 0.1, "high": 2, "unit": ODD}, "S": (0.1, 5)}
    campaign = new(tmp_path_factory.mktemp("page") / "lab", knobs, unit="<b>mM")
    for _ in range(2):
        campaign.tell([row | {"comment": ODD} for row in measure(campaign.ask())])
    campaign.ask()
    return campaign


@pytest.fixture
def served(tmp_path):
    campaign = new(tmp_path / "lab")
    with server(campaign) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield campaign, running, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


def size(driver, width, height=900):
    wanted = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", wanted)


def press(driver):
    """Press the button of the form, and wait for the page that answers."""
    driver.execute_script("window.old = true")
    driver.find_element("css selector", "form button").click()
    wait_for_another_page(driver)


def wait_for_another_page(driver):
    from selenium.webdriver.support.ui import WebDriverWait

    ready = "return !window.old && document.readyState === 'complete'"
    WebDriverWait(driver, 60).until(lambda browser: browser.execute_script(ready))


def complaints(driver):
    return [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


@needs_browser
@pytest.mark.parametrize("width", [1200, 360])
def test_the_page_is_readable_at_a_desk_and_on_a_phone(driver, measured, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(page(measured), encoding="utf-8")
    size(driver, width)
    driver.get(path.as_uri())
    assert not complaints(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    seen = driver.find_element("css selector", "body").text
    for part in ("Sheet 3", "How the formula grows", "Slots", "Measured against the formula", "Measured so far", ODD):
        assert part in seen
    assert driver.execute_script("return document.querySelectorAll('img, script').length") == 0
    assert len(driver.find_elements("css selector", "svg circle")) > 14


@needs_browser
def test_results_typed_into_the_form_are_taken_and_the_next_sheet_comes(driver, served):
    campaign, _, address = served
    size(driver, 360)
    driver.get(address)
    press(driver)
    for _ in range(10):
        rows = campaign.state.open
        if not rows:
            break
        for row in rows:
            driver.find_element("name", f"y-{row.id}").send_keys(repr(enzyme(*row.x)))
        press(driver)
        assert "rows taken" in driver.find_element("css selector", "[role=status]").text
    assert driver.find_element("css selector", ".badge").text == "found"
    assert "E" in driver.find_element("css selector", "h1").text
    assert not complaints(driver)


@needs_browser
def test_a_typing_error_in_the_form_is_told_and_nothing_typed_is_lost(driver, served):
    campaign, _, address = served
    campaign.ask()
    driver.get(address)
    driver.find_element("name", "y-1").send_keys("1.5")
    driver.find_element("name", "y-2").send_keys("about 2")
    driver.find_element("name", "comment-2").send_keys(ODD)
    press(driver)
    assert "row 2, column v: found 'about 2'" in driver.find_element("css selector", "[role=status]").text
    assert driver.find_element("name", "y-1").get_attribute("value") == "1.5"
    assert driver.find_element("name", "comment-2").get_attribute("value") == ODD
    assert not campaign.state.measured
    driver.get_log("browser")  # the answer 400 is one of the browser's complaints


@needs_browser
def test_a_served_page_follows_the_folder_unless_something_is_typed(driver, served):
    campaign, _, address = served
    rows = measure(campaign.ask())
    driver.get(address)
    driver.execute_async_script("const done = arguments[0]; look().then(look).then(done);")
    campaign.tell(rows[:1])
    driver.execute_script("window.old = true; seen = seen || 'x'; look();")
    wait_for_another_page(driver)
    driver.find_element("name", "y-2").send_keys("7")
    campaign.tell(rows[2:3])
    driver.execute_async_script("const done = arguments[0]; window.old = true; look().then(done);")
    assert driver.execute_script("return window.old") is True
    assert driver.find_element("name", "y-2").get_attribute("value") == "7"


def post(address, fields, **headers):
    request = urllib.request.Request(address, urlencode(fields).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_only_the_page_itself_on_this_machine_may_tell(served):
    campaign, running, address = served
    campaign.ask()
    assert running.server_address[0] == "127.0.0.1"
    assert post(f"{address}tell", {"y-1": "1"}) == 403
    assert post(f"{address}tell", {"y-1": "1", "token": "guess"}) == 403
    right = {"y-1": "1", "token": running.token}
    assert post(f"{address}tell", right, Host="evil.example") == 403
    assert not campaign.state.measured
    assert post(f"{address}tell", right) == 200
    assert len(campaign.state.measured) == 1
    assert post(f"{address}tell", {"failed-2": "on", "token": running.token}) == 200
    assert not campaign.state.measured[1].valid


def test_the_page_is_one_file_without_a_network_and_escapes_what_people_write(measured):
    text = page(measured)
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert ODD not in text
    assert "&lt;img src=x" in text


def test_there_is_a_page_before_anything_was_measured_and_in_noise(tmp_path):
    campaign = new(tmp_path / "lab", noise="1 %", points=24)
    assert "nothing was measured yet" in page(campaign)
    run(campaign, noise=0.01, rng=np.random.default_rng(0))
    assert "Measured against the formula" in page(campaign)
