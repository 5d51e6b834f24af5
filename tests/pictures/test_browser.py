"""The page in a real browser: Debian's chromium with its driver, nothing is downloaded."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infoknife.theory import confidence_bound
from tests.pictures.test_pictures import whole_page

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is not installed (Debian: chromium-driver)"
)
OPTIONS = "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"
CURVE = "return getComputedStyle(document.querySelector('svg path[stroke*=ff0000]')).stroke"
OVERFLOW = "return document.documentElement.scrollWidth > window.innerWidth"

Browser = Any  # selenium is an extra


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The page, with everything unfolded."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    path: Path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(whole_page().replace("<details>", "<details open>"), encoding="utf-8")
    driver.get(path.as_uri())
    yield driver
    driver.quit()


def test_the_policy_refuses_nothing_that_is_there(browser: Browser) -> None:
    assert browser.get_log("browser") == []
    assert browser.execute_script("return getComputedStyle(document.body).marginTop") == "0px"  # the sheet applies


@pytest.mark.parametrize(("scheme", "stroke"), [("light", "rgb(255, 0, 0)"), ("dark", "rgb(255, 136, 136)")])
def test_curves_follow_the_colours_of_the_page(browser: Browser, scheme: str, stroke: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert browser.execute_script(CURVE) == stroke


@pytest.mark.parametrize("width", [1280, 360])
def test_a_page_does_not_scroll_sideways(browser: Browser, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert not browser.execute_script(OVERFLOW)


def test_the_calculator_of_theorem_2_is_the_function_of_the_library(browser: Browser) -> None:
    script = (Path(__file__).parents[2] / "docs" / "scripts" / "bound.js").read_text(encoding="utf-8")
    for N, M, w, d, L in ((100, 1e20, 1e-5, 1, 4.0), (10, 1e26, 1e-5, 2, 6.0), (50, 1e18, 1e-5, 1, 9.0)):
        values = {"N": N, "M": M, "w": w, "d": d, "delta": 0.1, "L": L}
        shown = browser.execute_script(f"{script}; return confidenceBound(arguments[0])", values)
        assert shown == pytest.approx(confidence_bound(N, M, w, d, 0.1, lipschitz=L), rel=1e-9)
    few = {"N": 100, "M": 1000, "w": 0.1, "d": 1, "delta": 0.1, "L": 4.0}
    assert "says nothing" in browser.execute_script(f"{script}; return boundInWords(arguments[0])", few)
