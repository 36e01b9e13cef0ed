"""Reads the documents whose paths stand in a column."""

from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, model_validator

from dataflow_assets.batch import Schema, schema_of
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.operators.operator import ColumnParams, Outcome, TextOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import rows_with
from dataflow_assets.sources.documents.document import UnreadableDocument
from dataflow_assets.sources.documents.formats import check_packages
from dataflow_assets.sources.documents.reader import named_document, page_starts
from dataflow_assets.sources.spec import SourceSpec

_WRITES: Schema = {"text": "string", "format": "string", "title": "string", "pages": "json"}


class _ReadDocumentsParams(ColumnParams):
    column: str = Field(
        "path", description="The column with paths; relative ones begin at the folder of the pipeline."
    )
    html: Literal["main", "all"] = Field(
        "main", description="Of an HTML page its main text (trafilatura), or all of its text."
    )
    encoding: str | None = Field(
        None, description="Of text, Markdown and HTML; default: UTF-8, or GB18030 if it fits."
    )
    max_file_bytes: int = Field(256 * 2**20, gt=0, description="A larger file fails its row unopened.")
    _folder: Path = PrivateAttr(Path())
    _spec: SourceSpec | None = PrivateAttr(None)

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self._folder

    @property
    def spec(self) -> SourceSpec:
        """How the files are read, as a source says it."""
        assert self._spec is not None
        return self._spec

    @model_validator(mode="after")
    def _can_read(self, info: ValidationInfo) -> "_ReadDocumentsParams":
        self._folder = Path(str((info.context or {}).get("base_dir") or "."))
        given = {"files": "files", "html": self.html, "max_file_bytes": self.max_file_bytes}
        try:
            check_packages(["pdf", "html"])
            encoding = {} if self.encoding is None else {"encoding": self.encoding}
            self._spec = SourceSpec.model_validate({**given, **encoding})
        except ConfigError as error:
            raise ValueError(str(error)) from error
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
        return self


@register
class ReadDocuments(TextOperator):
    """Reads the documents whose paths stand in a column: PDF, HTML, DOCX, Markdown and plain text.

    Grain: one row in, one row out; order and ids unchanged. Reads `column` (string) and the files. Writes
    `text`, `format`, `title` (strings, `title` may be null) and `pages` (JSON list of the places in `text`
    where the pages of a PDF begin; else null), as `source: {files: …}` does. Use that where you can: it
    sees when a file changes. This operator does not; it is for paths that come with other columns, and it
    reads on all workers.

    A row fails as UnreadableDocument, with the reason first (`encrypted`, `broken`, `no text`, `no main
    text`, `unknown format`, `unknown encoding`, `binary`, `too large`), or as SourceError for no such file.

    Example:
        - {name: texts, type: read_documents, params: {column: path}}
    """

    name = "read_documents"
    version = "3"
    Params = _ReadDocumentsParams
    params: _ReadDocumentsParams

    def writes(self) -> Schema:
        """The text of the document, and what is known of it."""
        return _WRITES

    def apply(self, table: pa.Table) -> Outcome:
        """The rows with their documents."""
        paths = self.texts(table)
        places = range(table.num_rows) if paths.positions is None else paths.positions.to_pylist()
        errors, read = paths.errors, dict[int, tuple]()
        for place, path in zip(places, paths.values.to_pylist(), strict=True):
            try:
                read[place] = self._read(path)
            except (UnreadableDocument, SourceError) as error:
                errors.add(place, error)
        if self.params.on_null == "keep":
            read |= {place: (None,) * len(_WRITES) for place in paths.nulls}
        kept = sorted(read)
        new = {name: [read[place][number] for place in kept] for number, name in enumerate(_WRITES)}
        return Outcome(
            rows_with(table, kept, new, self.output_schema(schema_of(table))),
            self._rejected_nulls(table, paths),
            errors.in_order().failed_rows(table),
        )

    def _read(self, path: str) -> tuple:
        kind, document = named_document(self.params.folder / path, path, self.params.spec)
        starts = page_starts(document) if kind == "pdf" else None
        return "\n".join(document.pages), kind, document.title, starts
