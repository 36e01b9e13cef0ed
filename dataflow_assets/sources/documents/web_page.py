"""HTML pages to text: the main text by trafilatura, or all of it by our own parser."""

import codecs
import html
import re
from typing import Literal

from dataflow_assets.operators.refiners.html import plain_text
from dataflow_assets.sources.documents.document import Document, UnreadableDocument
from dataflow_assets.sources.documents.plain import decoded

_HEAD_BYTES = 4096
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,2000}?)</title", re.IGNORECASE | re.DOTALL)
# What pages declare, by Python's name for it, and what browsers read: WHATWG Encoding standard, section
# 4.2. A declaration that is read as ASCII does not stand in UTF-16 (HTML standard, section 13.2.3.2).
_AS_BROWSERS_DO = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}


def read_html(content: bytes, encoding: str | None, part: Literal["main", "all"]) -> Document:
    """The text of a page and its `<title>`. Raises UnreadableDocument where there is no main text."""
    page = decoded(content, encoding, _declared(content))
    found = _TITLE.search(page)
    title = " ".join(html.unescape(found[1]).split()) if found else ""
    return Document([_main(page) if part == "main" else plain_text(page)], title or None)


def _declared(content: bytes) -> str | None:
    found = _CHARSET.search(content[:_HEAD_BYTES])
    if not found:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except LookupError:
        return None
    return _AS_BROWSERS_DO.get(name, name)


def _main(page: str) -> str:
    """The main text as trafilatura finds it, repeated paragraphs kept."""
    import trafilatura

    try:
        text = trafilatura.extract(page, include_comments=False, include_tables=True, deduplicate=False)
    except Exception as error:  # it and its parser name no errors of their own
        raise UnreadableDocument("broken", f"trafilatura cannot read the page: {error!r}") from error
    if not text:
        raise UnreadableDocument(
            "no main text", "trafilatura finds none in the page; `source.html: all` takes all of its text"
        )
    return text
