"""Which document formats there are, by extension, and what they need to be read."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from dataflow_assets.optional_packages import require
from dataflow_assets.sources.spec import FileFormat

FORMATS: dict[str, FileFormat] = {
    ".pdf": "pdf",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".docx": "docx",
    ".md": "md",
    ".markdown": "md",
    ".txt": "txt",
    ".text": "txt",
}
_PACKAGES = {"pdf": "pypdfium2", "html": "trafilatura"}


def document_format(name: str) -> FileFormat | None:
    """The format that a file name says."""
    return FORMATS.get(PurePosixPath(name).suffix.lower())


def check_packages(formats: Iterable[str | None]) -> None:
    """Raises ConfigError where a package that reads one of these formats is missing."""
    for kind in sorted({each for each in formats if each in _PACKAGES}):
        require({_PACKAGES[kind]: "documents"}, f"reading {kind}")
