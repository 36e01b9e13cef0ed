"""The bytes of a text file to text: by byte order mark, declared charset, UTF-8, or GB18030 if it fits."""

import codecs
import re
from itertools import chain

from dataflow_assets.sources.documents.document import Document, UnreadableDocument
from dataflow_assets.text.sentences import fence_spans

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S[^\n]*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_PLAUSIBLE_SHARE = 0.9


def read_plain(content: bytes, encoding: str | None) -> Document:
    """The text as it is, line ends too. Raises UnreadableDocument for what is no text."""
    return Document([decoded(content, encoding)])


def read_markdown(content: bytes, encoding: str | None) -> Document:
    """The same; the title is the first heading of level one, where it begins with `#` and is no code."""
    text = decoded(content, encoding)
    return Document([text], _title(text))


def _title(text: str) -> str | None:
    start = 0
    for fence, end in chain(fence_spans(text), [(len(text), len(text))]):
        if found := _HEADING.search(text, start, fence):
            return found[1]
        start = end
    return None


def decoded(content: bytes, encoding: str | None, declared: str | None = None) -> str:
    """The text of these bytes. A byte order mark counts first, then `encoding`, then `declared`.

    With none of them: UTF-8, or GB18030 where at least 90% of the characters beyond ASCII are among
    the 7,445 of GB 2312, which text of another encoding is not. Raises UnreadableDocument.
    """
    for mark, name in _MARKS:
        if content.startswith(mark):
            return _strict(content[len(mark) :], name, "its byte order mark")
    if encoding is not None:
        return _strict(content, encoding, "`source.encoding`")
    if b"\0" in content:
        raise UnreadableDocument("binary", f"a NUL byte at {content.index(0) + 1}, which no text has")
    if declared is not None and (text := _or_none(content, declared)) is not None:
        return text
    if (text := _or_none(content, "utf-8")) is not None:
        return text
    if (text := _or_none(content, "gb18030")) is not None and _is_plausible(text):
        return text
    raise UnreadableDocument(
        "unknown encoding", "the text is neither UTF-8 nor GB18030; say `source.encoding`, or convert it"
    )


def _strict(content: bytes, encoding: str, said_by: str) -> str:
    try:
        text = content.decode(encoding)
        text.encode()
    except UnicodeError as error:
        detail = f"it is no {encoding}, as {said_by} says ({error})"
        raise UnreadableDocument("unknown encoding", detail) from error
    if "\0" in text:
        raise UnreadableDocument("binary", f"a NUL character at {text.index(chr(0)) + 1}, which no text has")
    return text


def _or_none(content: bytes, encoding: str) -> str | None:
    try:
        text = content.decode(encoding)
        text.encode()
    except (UnicodeError, LookupError):  # LookupError: a codec that is none of texts, such as hex
        return None
    return text


def _is_plausible(text: str) -> bool:
    foreign = [character for character in text if character > "\x7f"]
    known = sum(len(character.encode("gb2312", "ignore")) > 0 for character in foreign)
    return known >= _PLAUSIBLE_SHARE * len(foreign)
