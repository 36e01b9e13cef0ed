"""The documents of a group to chunks: a row a document or a page, and those that cannot be read."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import ColumnType, Schema, column_of
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BadRecord, Chunk
from dataflow_assets.sources.columns import final_names, table_of_arrays
from dataflow_assets.sources.discovery import SourceFile
from dataflow_assets.sources.documents.document import Document, Limits, UnreadableDocument
from dataflow_assets.sources.documents.docx import read_docx
from dataflow_assets.sources.documents.formats import FORMATS, document_format
from dataflow_assets.sources.documents.pdf import read_pdf
from dataflow_assets.sources.documents.plain import read_markdown, read_plain
from dataflow_assets.sources.documents.web_page import read_html
from dataflow_assets.sources.naming import document_slug
from dataflow_assets.sources.spec import FileFormat, SourceSpec

_COLUMNS: Schema = {"path": "string", "text": "string", "format": "string", "title": "string"}
_PAGE: dict[bool, Schema] = {True: {"page": "int64"}, False: {"pages": "json"}}


class _Row(NamedTuple):
    row_id: str
    values: tuple[object, ...]


def document_schema(name: str, spec: SourceSpec) -> dict[str, ColumnType]:
    """The columns of documents, as the source chooses and names them."""
    has: Schema = {**_COLUMNS, **_PAGE[spec.by_page]}
    if missing := [column for column in spec.columns or [] if column not in has]:
        raise SourceError(
            f"source {name}: there is no column {missing[0]!r}, which `source.columns` asks for; "
            f"documents have {', '.join(has)}"
        )
    return {new: has[old] for old, new in final_names(has, name, spec).items()}


def read_documents(file: SourceFile, spec: SourceSpec, chunk_bytes: int) -> Iterator[Chunk]:
    """The documents of a group in order, one at a time in memory, about `chunk_bytes` of text a chunk.

    Columns: `path`, `text`, `format`, `title`; with `rows: page` also `page` (from 1; null where the
    format has no pages), else `pages` (where in `text` each page begins; null likewise). Documents
    that cannot be read are bad records.
    """
    document_schema(file.name, spec)
    held = _Held()
    for path, name in zip(file.members, file.names, strict=True):
        try:
            for found in _rows(path, name, spec):
                held.add(found, name)
        except UnreadableDocument as error:
            held.add(error, name)
        if held.chars >= chunk_bytes:
            yield held.chunk(file.name, spec)
            held = _Held(held.number)
    yield held.chunk(file.name, spec)


def named_document(path: Path, name: str, spec: SourceSpec) -> tuple[FileFormat, Document]:
    """The text of a file whose format its name says, or the source.

    Raises UnreadableDocument, and SourceError where the file is not there or may not be read.
    """
    kind = spec.format or document_format(name)
    if kind is None:
        raise UnreadableDocument(
            "unknown format",
            f"found {PurePosixPath(name).suffix or 'no extension'}, expected one of {' '.join(FORMATS)}",
        )
    return kind, _checked(path, kind, spec)


def page_starts(document: Document) -> list[int]:
    """Where each page begins in the text that its pages make, with a line break between them."""
    return list(accumulate((len(text) + 1 for text in document.pages[:-1]), initial=0))


def _checked(path: Path, kind: FileFormat, spec: SourceSpec) -> Document:
    limits = Limits(spec.max_file_bytes, spec.max_line_bytes, spec.max_expansion)
    try:
        size = _bytes_of(path)
        if size > limits.max_file_bytes:
            raise UnreadableDocument(
                "too large",
                f"the file has {size} bytes, more than the {limits.max_file_bytes} of max_file_bytes",
            )
        document = _read(path, kind, spec, limits)
    except OSError as error:
        raise SourceError(f"source {path}: {error.strerror}; expected a file that can be read") from error
    if not any(page.strip() for page in document.pages):
        hint = "; is it a scan? It needs OCR" if kind == "pdf" else ""
        raise UnreadableDocument("no text", f"the document has no text{hint}")
    if sum(map(len, document.pages)) > limits.max_text_chars:
        raise UnreadableDocument(
            "too large", f"its text has more than the {limits.max_text_chars} characters of max_line_bytes"
        )
    return document


def _bytes_of(path: Path) -> int:
    """The size of a file. A pipe or a device is not opened: reading it may never end."""
    try:
        found = path.stat()
    except ValueError as error:
        raise SourceError(f"source {str(path)!r}: {error}; expected a path without NUL") from error
    if not S_ISREG(found.st_mode):
        raise SourceError(f"source {path}: it is no file; expected a file that can be read")
    return found.st_size


def _read(path: Path, kind: FileFormat, spec: SourceSpec, limits: Limits) -> Document:
    if kind == "pdf":
        return read_pdf(path, limits)
    if kind == "docx":
        return read_docx(path, limits)
    encoding = spec.encoding if "encoding" in spec.model_fields_set else None
    content = path.read_bytes()
    if kind == "html":
        return read_html(content, encoding, spec.html)
    return read_markdown(content, encoding) if kind == "md" else read_plain(content, encoding)


def _rows(path: Path, name: str, spec: SourceSpec) -> Iterator[_Row | UnreadableDocument]:
    """The rows of a document, and its pages without text."""
    kind, document = named_document(path, name, spec)
    slug, head, paged = document_slug(name), (kind, document.title), kind == "pdf"
    if not spec.by_page:
        starts = page_starts(document) if paged else None
        yield _Row(f"{slug}:1", (name, "\n".join(document.pages), *head, starts))
        return
    for page, text in enumerate(document.pages, 1):
        if text.strip():
            yield _Row(f"{slug}:{page}", (name, text, *head, page if paged else None))
        else:
            yield UnreadableDocument("no text", f"page {page} has none; is it blank, or a scan?")


class _Held:
    """The rows of a chunk that is not full yet, and the bad records, numbered together."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.chars = 0
        self._rows: list[_Row] = []
        self._numbers: list[int] = []
        self._bad: list[BadRecord] = []

    def add(self, found: _Row | UnreadableDocument, name: str) -> None:
        self.number += 1
        if isinstance(found, UnreadableDocument):
            self._bad.append(BadRecord(name, self.number, str(found), ""))
            return
        self._rows.append(found)
        self._numbers.append(self.number)
        self.chars += len(str(found.values[1]))

    def chunk(self, file: str, spec: SourceSpec) -> Chunk:
        has: Schema = {**_COLUMNS, **_PAGE[spec.by_page]}
        columns = zip(*(row.values for row in self._rows), strict=True) if self._rows else [()] * len(has)
        values = dict(zip(has, columns, strict=True))
        pairs: list[tuple[str, tuple[pa.Array, ColumnType | None]]] = [
            (new, (column_of(values[old], has[old]), has[old]))
            for old, new in final_names(has, file, spec).items()
        ]
        return Chunk(
            table_of_arrays(pairs, len(self._rows)),
            pa.array(self._numbers, pa.int64()),
            self._bad,
            pa.array([row.row_id for row in self._rows], pa.large_string()),
        )
