"""The report in a real browser: rows stay data, and the page can be used with keys and on a phone."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataflow_assets.report import choosing
from dataflow_assets.report.page import render
from dataflow_assets.report.texts import legible
from dataflow_assets_tests.report.browser import Watched, browser
from dataflow_assets_tests.report.hostile_rows import TEXTS, hostile_work

pytestmark = pytest.mark.slow
Open = Callable[..., Watched]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    file = folder / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MAX_ROWS", "MAX_SET_ASIDE", "PER_REASON"):
            patch.setattr(choosing, name, 1000)
        file.write_text(render(hostile_work(folder)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def open_page(page_file: Path) -> Iterator[Open]:
    with browser() as chromium:

        def opened(width: int = 1280, scheme: str = "light", javascript: bool = True) -> Watched:
            context = chromium.new_context(
                viewport={"width": width, "height": 900},
                color_scheme=scheme,  # pyright: ignore[reportArgumentType]
                java_script_enabled=javascript,
            )
            return Watched(context.new_page(), page_file)

        yield opened


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("DATAFLOW_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def choose(watched: Watched, text: str) -> None:
    """Looks for a row by a text in it; the first that is found is shown."""
    watched.page.fill("#find", text)


@pytest.mark.parametrize(("fate", "tabs"), [("stays", 5), ("repeats", 4), ("fails", 3)])
def test_hostile_rows_are_shown_as_text_and_do_nothing(open_page: Open, fate: str, tabs: int):
    watched = open_page()
    for name, text in TEXTS.items():
        choose(watched, f"{name}_{fate}")
        wanted = legible(text)[:150].split("\n")[0].strip()
        buttons = watched.page.locator("#row-tabs button").all()
        assert len(buttons) == tabs
        for button in buttons:
            button.click()
            assert wanted in watched.shown("#row-panel"), (name, button.inner_text())
        assert watched.did_nothing(), (name, vars(watched))


def test_the_whole_page_opened_does_nothing(open_page: Open):
    watched = open_page()
    watched.page.click("#open-all")
    watched.page.wait_for_load_state("networkidle")
    assert watched.did_nothing(), vars(watched)
    assert watched.page.title() == "p: report"
    assert watched.page.locator("h1").count() == 1


def test_without_javascript_all_but_the_samples_is_there(open_page: Open):
    watched = open_page(javascript=False)
    text = watched.shown("main")
    assert "duplicate" in text and "ValueError" in text and "looked through with JavaScript" in text
    assert not watched.page.locator("#viewer").is_visible()


def test_the_page_may_run_no_script_but_its_own(open_page: Open):
    watched = open_page()
    watched.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')")
    watched.page.wait_for_timeout(200)
    assert watched.dialogs == []


def test_the_steps_of_a_row_are_gone_through_with_the_arrow_keys(open_page: Open):
    watched = open_page()
    choose(watched, "arabic_stays")
    watched.page.focus("#row-tabs [aria-selected=true]")
    names = []
    for _ in range(6):
        names.append(watched.shown("#row-tabs [aria-selected=true]"))
        watched.page.keyboard.press("ArrowRight")
    assert names == ["Whole life", "0 source", "1 fails", "2 unique", "3 shouted", "Whole life"]
    watched.page.keyboard.press("End")
    assert watched.page.evaluate("document.activeElement.textContent") == "3 shouted"
    assert "changed" in watched.shown("#row-panel h4 >> nth=0")
    before, after = watched.shown("#row-panel del"), watched.shown("#row-panel ins")
    assert before == after.replace("!", "")


def test_rows_are_filtered_by_what_became_of_them(open_page: Open):
    watched = open_page()
    watched.page.select_option("#ending", "failed")
    assert watched.shown("#count").startswith(f"{len(TEXTS)} of ")
    watched.page.click("#next")
    assert "failed: ValueError" in watched.shown("#row-panel")
    choose(watched, "no such text")
    assert watched.shown("#count").startswith("0 of ")
    assert watched.shown("#row-panel") == ""


def test_everything_is_reached_by_tab_and_the_focus_is_seen(open_page: Open):
    watched = open_page()
    seen = set()
    for _ in range(120):
        watched.page.keyboard.press("Tab")
        seen.add(
            watched.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")
        )
        width = watched.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        inside_graph = watched.page.evaluate("!!document.activeElement.closest('svg')")
        assert inside_graph or width == "3px"
    assert {"Skip to the report", "Alarms", "open-all", "find", "row", "row-panel", "next"} <= seen


def test_a_step_of_the_graph_opens_its_part(open_page: Open):
    watched = open_page()
    watched.page.click("#close-all")
    watched.page.click("svg.steps a >> nth=2")
    assert watched.page.locator("#step-2").get_attribute("open") is not None
    assert watched.page.locator("#step-1").get_attribute("open") is None


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("wide", 1280, "light"), ("narrow", 390, "light"), ("dark", 1280, "dark"), ("narrow_dark", 390, "dark")],
)
def test_the_page_fits_the_screen(open_page: Open, screenshots: Path, name: str, width: int, scheme: str):
    watched = open_page(width, scheme)
    watched.page.click("#open-all")
    assert watched.page.evaluate("document.documentElement.scrollWidth") == width
    back = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 24, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
    watched.page.screenshot(path=screenshots / f"report_{name}.png", full_page=True)
