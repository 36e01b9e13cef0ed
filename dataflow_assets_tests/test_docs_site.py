"""The hooks that make a site of README, CHANGELOG and docs/; CI builds it with warnings as errors."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

TREE = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed: the extra `docs`"
)


def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", TREE / "docs/site/pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation(folder: Path) -> dict[str, list[str]]:
    config = hooks().on_config(SimpleNamespace(docs_dir=str(folder), nav=None))
    return {title: pages for section in config.nav for title, pages in section.items()}


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [page for pages in navigation(TREE / "docs").values() for page in pages]
    assert len(pages) == len(set(pages))
    assert {path.name for path in (TREE / "docs").glob("*.md")} <= set(pages)


def test_a_page_that_is_not_named_comes_under_more(tmp_path: Path) -> None:
    (tmp_path / "fresh.md").touch()
    assert "fresh.md" in navigation(tmp_path)["More"]


def test_links_of_files_lead_to_pages_of_the_site() -> None:
    page = hooks().on_page_markdown("[a](../README.md#speed) [b](../CHANGELOG.md)", None, None, None)
    assert page == "[a](index.md#speed) [b](changelog.md)"
    assert hooks()._for_site("[x](docs/llm.md), docs/pii.md") == "[x](llm.md), [pii](pii.md)"


def test_a_list_gets_its_gap_and_code_does_not() -> None:
    text = "Say:\n* one\n* two\n```\na\n* b\n```"
    assert hooks().on_page_markdown(text, None, None, None) == text.replace("Say:\n", "Say:\n\n")


def test_ci_builds_the_site_with_warnings_as_errors() -> None:
    assert "mkdocs build --strict" in (TREE / ".ci/run").read_text()
