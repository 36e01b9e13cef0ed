"""What a pipeline says of its input files, checked before any of them is opened."""

import codecs
from typing import Literal

from pydantic import Field, field_validator, model_validator

from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.remote.urls import is_url, shown_url

FileFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "txt", "pdf", "html", "docx", "md"]
DOCUMENTS_VERSION = "2"
_TABLE_FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "txt")
_DOCUMENT_FORMATS = ("pdf", "html", "docx", "md", "txt")


class SourceSpec(ReadingSpec):
    """The `source` of a pipeline that reads files."""

    path: str | list[str] | None = Field(
        default=None,
        description="A file, a folder (read recursively), a glob, or a list of these; relative ones count "
        "from the folder of the project. Or URLs: `s3://…`, `gs://…`, `az://…`, `https://…`.",
    )
    files: str | list[str] | None = Field(
        default=None,
        description="Documents instead of `path`, given in the same way: PDF, HTML, DOCX, Markdown and plain "
        "text, a row each with `path`, `text`, `format`, `title` and where its pages begin.",
    )
    format: FileFormat | None = Field(
        default=None,
        description="The format of every file. Default: by extension. `path`: .jsonl .ndjson .json .csv .tsv "
        ".parquet .txt, each but parquet also with .gz or .zst. `files`: .pdf .html .htm .xhtml .docx .md "
        ".markdown .txt .text.",
    )
    encoding: str = Field(
        default="utf-8",
        description="The text encoding of the files, as Python names it. Without it, `files` finds out "
        "whether a text is UTF-8 or GB18030; a byte order mark and the charset of an HTML page count first.",
    )
    rows: Literal["line", "file", "page"] = Field(
        default="line",
        description="What is one row. `path`: a line, or a whole file (txt only). `files`: a whole file "
        "(default), or a page of a PDF, its number in `page`.",
    )
    html: Literal["main", "all"] = Field(
        default="main",
        description="What of an HTML page of `files` is read: its main text, without menus and footers "
        "(trafilatura), or all of its text.",
    )
    max_line_bytes: int = Field(
        default=64 * 2**20,
        gt=0,
        description="A longer line, cell or record is bad and is not held in memory; so is a document whose "
        "text is longer.",
    )
    max_file_bytes: int = Field(
        default=256 * 2**20, gt=0, description="A larger file of `files` is set aside and not opened."
    )
    max_expansion: int = Field(
        default=250,
        gt=0,
        description="An archive that grows by more than this factor is refused, once 256 MiB came out of it.",
    )

    storage_options: dict[str, object] = Field(
        default={},
        description="What the file system of a URL is opened with, in the words of fsspec: `anon`, "
        "`endpoint_url`, … Logins belong into the environment.",
    )

    def settings(self) -> dict[str, object]:
        """All fields but where the files are, and how to get there: a file that moved is the same."""
        fields = self.model_dump(mode="json", exclude={"path", "files", "storage_options"})
        return {**fields, "documents": DOCUMENTS_VERSION if self.files is not None else False}

    @property
    def is_remote(self) -> bool:
        """Whether the files are elsewhere, by URL."""
        return any(map(is_url, self.paths))

    def shown(self) -> dict[str, object]:
        """The fields that were set; URLs without login and signature, and no options."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"storage_options"})
        if self.is_remote:
            urls = [shown_url(url) for url in self.paths]
            fields["path" if self.files is None else "files"] = urls if len(urls) > 1 else urls[0]
        return fields

    @property
    def is_far(self) -> bool:
        """Whether a network is asked."""
        return self.is_remote

    @property
    def paths(self) -> list[str]:
        """The paths or files as a list."""
        given = self.path if self.files is None else self.files
        return [given] if isinstance(given, str) else list(given or [])

    @property
    def by_page(self) -> bool:
        """Whether a page of a document is one row."""
        return self.files is not None and self.rows == "page"

    @field_validator("path", "files")
    @classmethod
    def _paths_say_something(cls, path: str | list[str] | None) -> str | list[str] | None:
        if path is None:
            return None
        paths = [path] if isinstance(path, str) else path
        if not paths or not all(each.strip() for each in paths):
            raise ValueError("path is empty; expected a file, a folder or a glob")
        if any("\0" in each for each in paths):
            raise ValueError("path holds a NUL character, which no file name has")
        return path

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, encoding: str) -> str:
        try:
            codecs.getincrementaldecoder(encoding)
            "a".encode(encoding)
        except (LookupError, ValueError) as error:
            raise ValueError(
                f"encoding {encoding!r} is no text encoding of Python; expected e.g. utf-8, utf-16, gb18030"
            ) from error
        return encoding

    @model_validator(mode="after")
    def _reads_tables_or_documents(self) -> "SourceSpec":
        if (self.path is None) == (self.files is None):
            found = "neither" if self.path is None else "both"
            raise ValueError(f"expected `path` (tables, lines) or `files` (documents), found {found}")
        kind, formats = ("path", _TABLE_FORMATS) if self.files is None else ("files", _DOCUMENT_FORMATS)
        if self.format is not None and self.format not in formats:
            raise ValueError(f"`{kind}` does not read {self.format}; expected one of {', '.join(formats)}")
        if self.files is None and self.rows == "page":
            raise ValueError("rows: page is for documents; give `files` instead of `path`")
        if self.files is not None and self.rows == "line" and "rows" in self.model_fields_set:
            raise ValueError("rows: line has no meaning for `files`; expected file or page")
        return self

    @model_validator(mode="after")
    def _parts_fit_together(self) -> "SourceSpec":
        if self.files is None and self.rows == "file" and self.format not in (None, "txt"):
            raise ValueError(
                f"rows: file reads text files, and format is {self.format}; expected format: txt"
            )
        if self.is_remote and not all(map(is_url, self.paths)):
            raise ValueError("path names URLs and local files; expected one kind of them")
        if self.is_remote and self.files is None and self.rows == "file":
            raise ValueError("rows: file is for local files; give URLs of documents as `files`")
        if self.storage_options and not self.is_remote:
            raise ValueError("storage_options is for URLs, and path names local files; leave it out")
        if self.format == "parquet" and codecs.lookup(self.encoding).name != "utf-8":
            raise ValueError(f"encoding {self.encoding!r} has no meaning for parquet; leave it out")
        return self
