"""Which document formats there are, by extension, and what they need to be read."""

import importlib.util
from collections.abc import Iterable
from pathlib import PurePosixPath

from dataflow_assets.errors import ConfigError
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
        if importlib.util.find_spec(_PACKAGES[kind]) is None:
            raise ConfigError(
                f"reading {kind} needs the package {_PACKAGES[kind]}, which is not installed; "
                "run `pip install 'dataflow_assets[documents]'`"
            )
