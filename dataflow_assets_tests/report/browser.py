"""Debian's Chromium, without a window, driven by Playwright; nothing is downloaded for it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@contextmanager
def browser() -> "Iterator[Browser]":
    """A browser; skips the test where the machine has none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(
            f"no browser is installed (none of {', '.join(_NAMES)}); `apt-get install chromium` brings one"
        )
    with sync_api.sync_playwright() as playwright:
        # as root, as in a container, Chromium's own sandbox does not start
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])


class Watched:
    """A page, with all that it did beside showing itself."""

    def __init__(self, page: "Page", file: Path) -> None:
        self.page = page
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.goto(file.as_uri())
        self.own = file.as_uri()

    def did_nothing(self) -> bool:
        """Whether no dialog opened, nothing but the page itself was asked for, and no script complained."""
        return not self.dialogs and not self.messages and set(self.requests) == {self.own}

    def shown(self, selector: str) -> str:
        """The text of an element as a person sees it."""
        return self.page.locator(selector).inner_text()
