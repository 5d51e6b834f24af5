"""The page in a real browser: Debian's chromium with its driver, nothing is downloaded."""

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.experiments.report import page
from infoknife.paper.experiments.report.sections import sections
from infoknife.paper.experiments.report.verdicts import verdicts
from tests.paper.experiments.record_factory import Record

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is not installed (Debian: chromium-driver)"
)
OPTIONS = "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"
UNFOLD = "document.querySelectorAll('details').forEach(fold => fold.open = true)"
SCATTER = "figure.chart[data-chart='table3-features-usps-mnist-cpu']"
CHART = "figure.chart[data-chart='table1-paper']"

Browser = Any  # selenium is an extra


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(page.html(sections(records), verdicts(records), records), encoding="utf-8")
    return Path(path).as_uri()


@pytest.fixture
def opened(browser: Browser, address: str) -> Browser:
    """The page, freshly loaded in a wide window with a light system."""
    media = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get(address)
    browser.execute_script("localStorage.clear()")
    browser.get(address)
    return browser


def find(browser: Browser, selector: str) -> Any:
    return browser.find_element(By.CSS_SELECTOR, selector)


def paths(browser: Browser, chart: str = CHART, panel: int = 1) -> list[str]:
    """The curves of a panel."""
    script = "return [...document.querySelectorAll(arguments[0])].map(curve => curve.getAttribute('d'))"
    return list(browser.execute_script(script, f"{chart} .panel:nth-child({panel}) .curve"))


def plot(browser: Browser, chart: str = CHART) -> Any:
    svg = find(browser, f"{chart} .panel svg")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg)
    return svg


def drag(browser: Browser, svg: Any, right: int, down: int) -> None:
    actions = ActionChains(browser).move_to_element_with_offset(svg, -60, -30).click_and_hold()
    actions.move_by_offset(right, down).release().perform()


def ground(browser: Browser) -> str:
    return str(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))


def test_it_loads_quietly_and_alone(opened: Browser) -> None:
    assert [entry for entry in opened.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}] == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    requests = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert {url.split(":")[0] for url in requests} <= {"file", "data"}
    assert {url for url in requests if url.startswith("file")} == {opened.current_url}
    assert opened.title == "infoknife: experiments"  # the records' scripts did not run


def test_every_chart_is_drawn(opened: Browser) -> None:
    opened.execute_script(UNFOLD)
    script = "return [...document.querySelectorAll('figure.chart')].map(f => f.querySelectorAll('.curve').length)"
    counts = WebDriverWait(opened, 5).until(lambda browser: min(found := browser.execute_script(script)) and found)
    assert len(counts) > 10
    assert min(counts) >= 2


def test_pointing_reads_values(opened: Browser) -> None:
    svg = plot(opened)
    tip = find(opened, f"{CHART} .tip")
    assert not tip.is_displayed()
    ActionChains(opened).move_to_element(svg).perform()
    assert tip.is_displayed()
    assert svg.rect["y"] <= tip.rect["y"] < svg.rect["y"] + svg.rect["height"] / 2
    assert svg.rect["x"] <= tip.rect["x"] < svg.rect["x"] + svg.rect["width"]
    lines = tip.text.splitlines()
    assert lines[0].startswith("step ")
    assert [line.rsplit(" ", 1)[0] for line in lines[1:]] == ["truth", "KNIFE", "Schraudolph", "DoE"]
    assert float(lines[1].split()[-1]) == pytest.approx(14.189, abs=0.01)
    ActionChains(opened).move_to_element(find(opened, "h1")).perform()
    assert not tip.is_displayed()


def test_arrows_read_values(opened: Browser) -> None:
    svg = plot(opened)
    opened.execute_script("arguments[0].focus()", svg)
    tip, seen = find(opened, f"{CHART} .tip"), set()
    for _ in range(4):
        ActionChains(opened).send_keys(Keys.ARROW_RIGHT).perform()
        seen.add(tip.text.splitlines()[0])
    assert len(seen) == 4


def test_the_legend_switches_curves(opened: Browser) -> None:
    plot(opened)
    before = paths(opened)
    key = next(b for b in opened.find_elements(By.CSS_SELECTOR, f"{CHART} .key") if b.text == "DoE")
    assert key.get_attribute("aria-pressed") == "true"
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert len(paths(opened)) == len(before) - 1
    key.send_keys(Keys.ENTER)
    assert key.get_attribute("aria-pressed") == "true"
    assert paths(opened) == before


@pytest.mark.parametrize("way", ["button", "double click", "key"])
@pytest.mark.parametrize("down", [0, 50])
def test_dragging_zooms_and_resets(opened: Browser, way: str, down: int) -> None:
    svg, before = plot(opened), paths(opened)
    reset = find(opened, f"{CHART} .reset")
    assert not reset.is_displayed()
    drag(opened, svg, 120, down)
    zoomed = paths(opened)
    assert zoomed != before
    assert reset.is_displayed()
    if way == "button":
        reset.click()
    elif way == "double click":
        ActionChains(opened).double_click(svg).perform()
    else:
        opened.execute_script("arguments[0].focus()", svg)
        ActionChains(opened).send_keys("0").perform()
    assert paths(opened) == before
    assert not reset.is_displayed()


def test_marks_have_no_lines_and_tell_their_numbers(opened: Browser) -> None:
    plane = "figure.chart[data-chart='fig4-plane-cpu']"
    names = "return [...document.querySelectorAll(arguments[0])].map((title) => title.textContent)"
    told = opened.execute_script(names, f"{plane} .panel title")
    assert len(told) == 5
    assert sum(text.startswith("KNIFE ") for text in told) == 3
    assert sum(text.startswith("Label only ") for text in told) == 1


def test_whiskers_and_published_curves_are_not_read(opened: Browser) -> None:
    figure = "figure.chart[data-chart='fig4-cpu']"
    opened.execute_script(f'document.querySelector("{figure}").scrollIntoView()')
    ActionChains(opened).move_to_element(find(opened, f"{figure} .panel svg")).perform()
    lines = find(opened, f"{figure} .tip").text.splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == ["λ", "chance", "Label only", "KNIFE", "CLUB"]


def test_dots_have_no_lines_and_zoom_by_themselves(opened: Browser) -> None:
    opened.execute_script(UNFOLD)
    WebDriverWait(opened, 5).until(lambda browser: paths(browser, SCATTER))
    before = [paths(opened, SCATTER, panel) for panel in (1, 2)]
    assert [len(curves) for curves in before] == [2, 2]
    assert all(path.count("M") == path.count("h0") == 200 and "L" not in path for path in before[0])
    svg = plot(opened, SCATTER)
    ActionChains(opened).move_to_element(svg).perform()
    assert not find(opened, f"{SCATTER} .tip").is_displayed()  # the nearest dots by x tell nothing
    drag(opened, svg, 100, 50)
    assert paths(opened, SCATTER, 1) != before[0]
    assert paths(opened, SCATTER, 2) == before[1]
    find(opened, f"{SCATTER} .reset").click()
    assert paths(opened, SCATTER, 1) == before[0]


def test_shares_are_shaded(opened: Browser) -> None:
    script = (
        "return [...document.querySelectorAll('.confusion td')].map(cell => getComputedStyle(cell).backgroundColor)"
    )
    assert len(set(opened.execute_script(script))) > 10


def test_fingers_zoom(opened: Browser) -> None:
    svg, before = plot(opened), paths(opened)
    box = opened.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", svg
    )
    x, y = box[0] + 0.4 * box[2], box[1] + 0.5 * box[3]
    touch = [("touchStart", [{"x": x, "y": y}])]
    touch += [("touchMove", [{"x": x + dx, "y": y}]) for dx in (20, 60, 110)]
    for kind, points in [*touch, ("touchEnd", [])]:
        opened.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert paths(opened) != before


def test_dark_by_button_and_by_system(opened: Browser) -> None:
    light, button = ground(opened), find(opened, "#theme")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    dark = ground(opened)
    assert dark != light
    assert button.get_attribute("aria-pressed") == "true"
    opened.refresh()
    assert ground(opened) == dark  # the choice is kept
    opened.execute_script("localStorage.clear()")
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    opened.refresh()
    assert ground(opened) == dark
    find(opened, "#theme").click()
    assert ground(opened) == light


def test_verdicts_can_be_filtered(opened: Browser) -> None:
    shown = "return [...document.querySelectorAll('.verdicts .good')].filter(i => i.offsetParent).length"
    assert opened.execute_script(shown) > 0
    find(opened, ".filter.good").click()
    assert opened.execute_script(shown) == 0
    assert find(opened, ".filter.good").get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_do_not_scroll_sideways(opened: Browser, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.refresh()
    opened.execute_script(UNFOLD)
    assert opened.execute_script("return window.innerWidth") == width
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width


def test_values_stay_on_a_narrow_screen(opened: Browser) -> None:
    metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.refresh()
    for panel in (0, 1):
        svg = opened.find_elements(By.CSS_SELECTOR, "figure[data-chart='fig3-gaussian-paper'] .panel svg")[panel]
        opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg)
        ActionChains(opened).move_to_element(svg).perform()
        (tip,) = [tip for tip in opened.find_elements(By.CSS_SELECTOR, ".tip") if tip.is_displayed()]
        assert 0 <= tip.rect["x"] < tip.rect["x"] + tip.rect["width"] <= 360
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 360


def test_the_first_column_and_the_head_stay_in_sight(opened: Browser) -> None:
    metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.refresh()
    script = """
      const boxes = [...document.querySelectorAll("#bench .pinned")];
      const box = boxes.find(box => box.querySelector("thead").innerText.startsWith("task"));
      box.style.maxHeight = "120px";
      box.scrollTo({left: 150, top: 100, behavior: "instant"});
      const edge = box.getBoundingClientRect();
      const places = [...box.querySelectorAll("th:first-child")].map(th => th.getBoundingClientRect().left - edge.left);
      const head = box.querySelector("thead th").getBoundingClientRect().top - edge.top;
      return [box.scrollLeft, box.scrollTop, places, head];
    """
    left, top, places, head = opened.execute_script(script)
    assert (left, top) == (150, 100)
    assert places == pytest.approx([1.0] * len(places), abs=0.5)  # the box's border
    assert head == pytest.approx(1.0, abs=0.5)


def test_headings_descend_step_by_step(opened: Browser) -> None:
    script = "return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    levels = opened.execute_script(script)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
