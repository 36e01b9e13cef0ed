"""DOCX to Markdown-like text: `#` headings, tables as rows with `|`, equations in `$`, the rest as it is."""

import zipfile
from collections.abc import Container, Iterator
from pathlib import Path
from xml.etree import ElementTree

from dataflow_assets.sources.documents.document import Document, Limits, UnreadableDocument
from dataflow_assets.sources.documents.docx_math import EQUATION, equation_text
from dataflow_assets.sources.documents.docx_symbols import symbol

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT_W = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_SMALL_BYTES = 1 << 20
_SPACES = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_CHARACTERS = frozenset([f"{_W}t", f"{_W}sym", EQUATION, *_SPACES])
_NO = frozenset(["0", "false", "off"])
# Properties, what was deleted or moved away, and the copy of a drawing for old programs.
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_NOT_READ = frozenset([f"{_W}pPr", f"{_W}rPr", f"{_W}del", f"{_W}moveFrom", _FALLBACK])
_Element = ElementTree.Element


def read_docx(path: Path, limits: Limits) -> Document:
    """The body in reading order, without headers, footers, notes, deleted and hidden text.

    Raises UnreadableDocument for a file that is encrypted, broken, or larger inside than the limits.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            body = _parsed(archive, "word/document.xml", limits)
            if body is None:
                raise UnreadableDocument("broken", "the archive has no word/document.xml, so it is no DOCX")
            styles = _heading_styles(_parsed(archive, "word/styles.xml", limits))
            core = _parsed(archive, "docProps/core.xml", limits)
    except UnreadableDocument:
        raise
    except Exception as error:  # whatever zipfile and the packers of its members raise on odd bytes
        raise _broken(path, error) from error
    title = core.findtext(_TITLE) if core is not None else None
    return Document(["\n".join(_blocks(body, styles))], " ".join((title or "").split()) or None)


def _broken(path: Path, error: Exception) -> UnreadableDocument:
    with open(path, "rb") as file:
        head = file.read(8)
    if head == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        return UnreadableDocument("encrypted", "the DOCX needs a password, or is an old DOC file")
    return UnreadableDocument("broken", f"the DOCX is no whole zip archive: {error}")


def _parsed(archive: zipfile.ZipFile, name: str, limits: Limits) -> _Element | None:
    """The XML of a member, which may neither unpack without measure nor define entities."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        return None
    if info.flag_bits & 1:
        raise UnreadableDocument("encrypted", f"{name} in the DOCX needs a password")
    grown = info.file_size > max(_SMALL_BYTES, limits.max_expansion * max(info.compress_size, 1))
    if grown or info.file_size > limits.max_file_bytes:
        raise UnreadableDocument("too large", f"{name} in the DOCX unpacks to {info.file_size} bytes")
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)
    in_ascii = content.replace(b"\0", b"")  # so that UTF-16 hides nothing
    if b"<!DOCTYPE" in in_ascii or b"<!ENTITY" in in_ascii:
        raise UnreadableDocument("broken", f"{name} in the DOCX defines entities, which no DOCX does")
    try:
        return ElementTree.fromstring(content.replace(_STRICT_W[1:-1].encode(), _W[1:-1].encode()))
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: its encoding
        raise UnreadableDocument("broken", f"its XML cannot be read: {error}") from error


def _heading_styles(styles: _Element | None) -> dict[str, int]:
    """The level of each heading style by its id; Word names them `heading 1` in every language."""
    levels: dict[str, int] = {}
    for style in styles.iter(f"{_W}style") if styles is not None else ():
        name = style.find(f"{_W}name")
        words = (name.get(f"{_W}val", "") if name is not None else "").lower().split()
        if len(words) == 2 and words[0] == "heading" and words[1] in "123456":
            levels[style.get(f"{_W}styleId", "")] = int(words[1])
        elif words == ["title"]:
            levels[style.get(f"{_W}styleId", "")] = 1
    return levels


def _nearest(element: _Element, tags: Container[str]) -> Iterator[_Element]:
    """The elements below with one of these tags, in order; none within another, none deleted or hidden."""
    pending = list(reversed(element))
    while pending:
        part = pending.pop()
        if part.tag in tags:
            yield part
        elif part.tag not in _NOT_READ and not _is_hidden(part):
            pending.extend(reversed(part))


def _is_hidden(element: _Element) -> bool:
    """Whether a run says so itself; a style that hides its text is not looked at."""
    mark = element.find(f"{_W}rPr/{_W}vanish") if element.tag == f"{_W}r" else None
    return mark is not None and mark.get(f"{_W}val", "") not in _NO


def _blocks(body: _Element, styles: dict[str, int]) -> Iterator[str]:
    """The paragraphs and table rows, in order."""
    for block in _nearest(body, (f"{_W}p", f"{_W}tbl")):
        if block.tag == f"{_W}p":
            text = _text(block)
            yield f"{_heading_mark(block, styles) if text.strip() else ''}{text}"
        else:
            yield from map(_row, _nearest(block, (f"{_W}tr",)))


def _heading_mark(paragraph: _Element, styles: dict[str, int]) -> str:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    level = styles.get(style.get(f"{_W}val", ""), 0) if style is not None else 0
    return f"{'#' * level} " if level else ""


def _row(row: _Element) -> str:
    cells = (" ".join(map(_text, _nearest(cell, (f"{_W}p",)))) for cell in _nearest(row, (f"{_W}tc",)))
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _text(paragraph: _Element) -> str:
    return "".join(map(_characters, _nearest(paragraph, _CHARACTERS)))


def _characters(part: _Element) -> str:
    if part.tag == EQUATION:
        return equation_text(part)
    if part.tag == f"{_W}sym":
        return symbol(part.get(f"{_W}font", ""), part.get(f"{_W}char", ""))
    return part.text or _SPACES.get(part.tag, "")
