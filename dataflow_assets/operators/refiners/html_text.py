"""Takes the main text out of web pages, and HTML entities out of texts."""

import re
from collections.abc import Mapping
from html.entities import html5
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.errors import NoMainText
from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.refiners.html import ENTITY, plain_text
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, texts_by_row
from dataflow_assets.optional_packages import version_of

_TAG = re.compile(r"<[A-Za-z!/]")


class _ExtractHtmlTextParams(ColumnParams):
    column: str = Field("text", description="The column with HTML; it gets the text.")
    favour: Literal["balance", "precision", "recall"] = Field(
        "balance", description="Rather less beside the main text, or rather all of it."
    )
    format: Literal["text", "markdown"] = Field("text", description="Of the result.")
    tables: bool = Field(True, description="Keep the text of tables.")
    comments: bool = Field(False, description="Keep the comments of readers.")
    on_nothing: Literal["strip", "empty", "fail"] = Field(
        "strip",
        description="Where no main text is found: all text of the page (as `strip_html` gives it), the "
        "empty text, or the row fails as NoMainText.",
    )


@register
class ExtractHtmlText(TextMapper):
    """Takes the main text out of web pages, without menus, headers, footers and advertisements.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). The
    extraction is trafilatura's (Barbaresi 2021), with its deduplication off, because it remembers texts
    of other pages. A text without a tag comes back unchanged. Where nothing is found, short pages above
    all, `on_nothing` decides. Use `strip_html` for fragments. Raises ConfigError where the package
    trafilatura (extra `html`) is missing, NoMainText with `on_nothing: fail`.

    Example:
        - {name: main_text, type: extract_html_text, params: {column: text}}
    """

    name = "extract_html_text"
    Params = _ExtractHtmlTextParams
    params: _ExtractHtmlTextParams

    def needed_packages(self) -> Mapping[str, str]:
        """The extractor."""
        return {"trafilatura": "html"}

    def identity(self) -> Mapping[str, object]:
        """The versions of the extractor and its parser."""
        return {package: version_of(package) for package in ("trafilatura", "lxml")}

    def edit(self, text: str) -> str:
        """The main text of a page."""
        if not _TAG.search(text):
            return text
        found = self._main_text(text)
        if found:
            return found
        if self.params.on_nothing == "fail":
            raise NoMainText("no main text was found in the page; `on_nothing: strip` takes all of its text")
        return plain_text(text) if self.params.on_nothing == "strip" else ""

    def _main_text(self, page: str) -> str | None:
        from trafilatura import extract

        return extract(
            page,
            output_format="markdown" if self.params.format == "markdown" else "txt",
            favor_precision=self.params.favour == "precision",
            favor_recall=self.params.favour == "recall",
            include_tables=self.params.tables,
            include_comments=self.params.comments,
            deduplicate=False,
        )


class _RemoveHtmlEntitiesParams(ColumnParams):
    replacement: str = Field("", description="What stands in the place of an entity.")


@register
class RemoveHtmlEntities(TextMapper):
    """Takes HTML entities out of a text column: `&nbsp;`, `&#8217;`, `&#x27;`.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). An entity
    is a name of the HTML standard or a number, with `&` and `;`. To turn entities into their characters
    instead use `fix_unicode` or `strip_html` with `entities: always`. Raises nothing on text.

    Example:
        - {name: without_entities, type: remove_html_entities, params: {replacement: " "}}
    """

    name = "remove_html_entities"
    Params = _RemoveHtmlEntitiesParams
    params: _RemoveHtmlEntitiesParams

    def edit(self, text: str) -> str:
        """The text without entities."""
        return _entity.sub(self._replaced, text)

    def _replaced(self, entity: re.Match[str]) -> str:
        known = entity[0][1] == "#" or entity[0][1:] in html5
        return self.params.replacement if known else entity[0]

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without entities."""
        found = pc.match_substring_regex(texts, ENTITY)
        return edited_where(texts, found, lambda some: texts_by_row(some, self.edit)), RowErrors.none()


_entity = re.compile(ENTITY)
